"""Who tells what a call is, in traces of any version of torch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rank.calls import (
    ALLREDUCE,
    GATHER,
    GENERIC,
    OLD,
    SEND_RECV,
    SIZES,
    call_of,
    calls_of,
    comm,
    record,
    under,
)
from tests.traces import annotation, launch, op, step


def test_a_kernel_with_all_that_torch_2_12_writes(tmp_path):
    told = {
        **GATHER,
        "Process Group Name": "0",
        "Process Group Ranks": "[0, 1, 2, ..., 63]",
        "Group size": 64,
        "Seq": 7,
        "Comms Id": 2**64 - 1,
    }
    assert call_of(tmp_path, comm(10, 5, GENERIC, **told)) == {
        "collective": "_allgather_base",
        "dtype": "BFloat16",
        "in_elements": 100,
        "out_elements": 800,
        "message_bytes": 1600,
        "group": "0",
        "group_ranks": "0-63",
        "group_size": 64,
        "sequence": 7,
        "comms_id": 2**64 - 1,
        "told_by": "kernel",
        "is_partial": False,
    }


def test_a_kernel_of_torch_2_2_names_no_collective(tmp_path):
    found = call_of(tmp_path, comm(10, 5, **OLD))
    assert found == {
        "collective": "allreduce",  # by the kernel's name
        "dtype": "Float",
        "in_elements": 100,
        "out_elements": 100,
        "message_bytes": 400,
        "group_size": 4,
        "told_by": "kernel",
        "is_partial": False,
    }


def test_a_nightly_of_2_3_numbers_its_groups(tmp_path):
    groups = [{"pg_name": 5, "ranks": [0, 8, 16]}]
    told = {**OLD, "Process Group ID": 5, "Group size": 3}
    found = call_of(tmp_path, comm(10, 5, **told), groups=groups)
    assert (found["group"], found["group_ranks"]) == ("5", "0,8,16")


def test_the_operator_tells_what_the_kernel_does_not(tmp_path):
    around = [op(5, 90, "c10d::allreduce_"), record(**GATHER), op(12, 70, "aten::empty")]
    found = call_of(tmp_path, *under(*around))
    assert found["told_by"] == "operator"
    assert (found["collective"], found["message_bytes"]) == ("_allgather_base", 1600)


def test_the_operator_adds_to_what_the_kernel_tells(tmp_path):
    around = record(**{"Global rank start": 4, "Global rank stride": 1, **GATHER, "Seq": 3})
    own = {"Collective name": "all_gather", **SIZES}
    found = call_of(tmp_path, *under(around, **own))
    assert found["told_by"] == "kernel"
    assert (found["collective"], found["group_ranks"], found["sequence"]) == (
        "all_gather",
        "4-11",
        3,
    )


@pytest.mark.parametrize(
    "around",
    [
        record(ts=10, dur=5, **GATHER),  # over before the launch
        {**record(**GATHER), "tid": 2},
        op(10, 80, "record_other", **GATHER),
        record(),
    ],
)
def test_other_operators_tell_nothing(tmp_path, around):
    found = call_of(tmp_path, *under(around, name=ALLREDUCE))
    assert found == {"collective": "allreduce", "told_by": "name", "is_partial": False}


def test_the_operator_is_found_where_nothing_has_a_correlation(tmp_path):
    """As in some traces of ROCm, whose kernels are all of one name."""
    call = {**launch(20, correlation=0, name="hipExtLaunchKernel")}
    call["args"] = {"External id": 5}
    events = [record(**GATHER), call, comm(100, 5, GENERIC, **{"External id": 5})]
    found = call_of(tmp_path, *events)
    assert (found["told_by"], found["collective"]) == ("operator", "_allgather_base")


def test_a_graph_replay_is_told_by_name(tmp_path):
    events = [
        record(**GATHER),
        launch(21, correlation=1, name="cudaGraphLaunch"),
        comm(100, 5, correlation=1),
    ]
    assert call_of(tmp_path, *events)["told_by"] == "name"


def test_a_span_around_the_launch_tells_what_old_traces_lack(tmp_path):
    inputs = {"Input Dims": [[64, 2]], "Input type": ["float"]}
    around = [record(), annotation(12, 70, "nccl:all_to_all", **inputs)]
    assert call_of(tmp_path, *under(*around, name=SEND_RECV)) == {
        "collective": "all_to_all",
        "dtype": "Float",
        "in_elements": 128,
        "message_bytes": 512,
        "told_by": "span",
        "is_partial": False,
    }


def test_kernels_that_say_no_more_than_that_they_communicate(tmp_path):
    for name in (GENERIC, SEND_RECV, "void rcclGenericKernel<1>(...)"):
        assert call_of(tmp_path, comm(10, 5, name)) == {"told_by": "name", "is_partial": False}


def test_what_a_cpu_calls(tmp_path):
    inputs = {"Input Dims": [[3, 4], [2]], "Input type": ["long int", "long int"]}
    lists = {"Input Dims": [[[2], [3]]], "Input type": ["TensorList"]}
    events = [
        op(1, 100, "aten::mm"),
        annotation(20, 5, "gloo:all_reduce", **inputs),
        annotation(10, 5, "gloo:recv 0<-1", **inputs),
        annotation(30, 5, "mpi:something"),
        annotation(40, 5, "gloo:all_gather", **lists),
        op(50, 5, "gloo:barrier"),
        annotation(60, 5, "nccl:all_reduce", **inputs),  # marks no work of a CPU
        step(4, 15, 12),
    ]
    rows = calls_of(tmp_path, events)
    columns = ("step", "collective", "dtype", "in_elements", "out_elements", "message_bytes")
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (None, "recv", "Long", None, 14, 112),
        (4, "allreduce", "Long", 14, None, 112),
        (None, None, None, None, None, None),
        (None, "all_gather", None, 5, None, None),
        (None, "barrier", None, None, None, None),
    ]
    assert {row["told_by"] for row in rows} == {"span"}
    assert all(row["launched_ns"] == row["start_ns"] for row in rows)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**65), 2**65),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["1e3", "٣", "0x1", " 1", "[0, 1]", "[", "send", "Float", "..."]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)
KEYS = (
    *("Collective name", "Comms Id", "Dst Rank", "Src Rank", "Seq", "dtype", "Group size"),
    *("Global rank start", "Global rank stride", "In msg nelems", "Out msg nelems"),
    *("In msg size", "Process Group ID", "Process Group Name", "Process Group Ranks"),
    *("Input Dims", "Input type"),
)
ARGS = st.dictionaries(st.sampled_from(KEYS), ODD, max_size=8)


@settings(max_examples=150)
@given(ARGS, ARGS, ARGS, st.lists(ODD, max_size=3))
def test_odd_arguments_never_raise(tmp_path_factory, own, recorded, spanned, groups):
    told = [{"pg_name": one, "ranks": one} for one in groups]
    events = under(record(**recorded), annotation(12, 70, "nccl:send 0->1", **spanned), **own)
    folder = tmp_path_factory.mktemp("odd")
    (row,) = calls_of(folder, events, groups=told)
    assert row["message_bytes"] is None or row["message_bytes"] >= 0
    assert row["group_size"] is None or 0 < row["group_size"] <= 1 << 20
    gloo = [annotation(1, 5, "gloo:all_reduce", **spanned)]
    assert len(calls_of(folder, gloo, groups=told)) == 1
