"""Sizes, groups, peers and order of calls."""

from __future__ import annotations

import pytest

from tests.rank.calls import (
    GATHER,
    GENERIC,
    GROUPS,
    OLD,
    SEND_RECV,
    call_of,
    calls_of,
    comm,
    digest_of,
    record,
    under,
)
from tests.traces import BASE_NS, annotation, kernel, launch, step, write
from traceparse.ingest import read_trace
from traceparse.rank import public_tables
from traceparse.tables import schema_of


@pytest.mark.parametrize(
    ("told", "groups", "ranks", "size"),
    [
        ({"Process Group Name": "tp"}, GROUPS, "0,8", 2),
        ({"Process Group Name": "tp", "Process Group Ranks": "[3, 4]"}, GROUPS, "0,8", 2),
        ({"Process Group Name": "x", "Process Group Ranks": "[5, 3, 4]"}, GROUPS, "3-5", 3),
        ({"Process Group Ranks": "[0, 1, 2]", "Group size": 3}, [], "0-2", 3),
        ({"Process Group Ranks": "[0, 1, 2]", "Group size": 40}, [], None, 40),
        ({"Process Group Ranks": "[0, 1, ...]", "Group size": 40}, [], None, 40),
        ({"Process Group Ranks": "[0, 1, ..., 39]", "Group size": 40}, [], None, 40),
        ({"Process Group Ranks": "[0, 0]"}, [], None, None),
        ({"Process Group Ranks": "[]"}, [], None, None),
        # one that the header has otherwise is not believed
        ({"Process Group Name": "tp", "Group size": 3}, GROUPS, None, 3),
        ({"Group size": 0}, [], None, None),
        ({"Group size": 1 << 30}, [], None, None),
    ],
)
def test_ranks_of_a_group(tmp_path, told, groups, ranks, size):
    told = {"Collective name": "allreduce", **told}
    found = call_of(tmp_path, comm(10, 5, **told), groups=groups)
    assert (found.get("group_ranks"), found.get("group_size")) == (ranks, size)


@pytest.mark.parametrize(
    ("first", "stride", "size", "ranks"),
    [
        (0, 1, 40, "0-39"),
        (1, 8, 4, "1,9,17,25"),
        (0, 1, 1 << 20, "0-1048575"),
        (0, -1, 4, None),
        (-1, -1, 4, None),
        (1, 1, 1 << 20, None),  # beyond all ranks
        (0, 2, 4096, None),  # more than anybody writes out
    ],
)
def test_ranks_by_first_stride_and_size(tmp_path, first, stride, size, ranks):
    told = {
        **OLD,
        "Process Group Ranks": "[0, 1, ...]",
        "Global rank start": first,
        "Global rank stride": stride,
        "Group size": size,
    }
    assert call_of(tmp_path, comm(10, 5, **told), groups=[]).get("group_ranks") == ranks


def test_point_to_point_names_both_ends(tmp_path):
    sent = {"Collective name": "send", **OLD, "Dst Rank": 4}
    got = {"Collective name": "recv", **OLD, "Src Rank": 2, "Dst Rank": 9}
    events = [comm(10, 5, SEND_RECV, **sent), comm(20, 5, SEND_RECV, **got), comm(30, 5)]
    rows = calls_of(tmp_path, events)
    assert [(row["collective"], row["source"], row["destination"]) for row in rows] == [
        ("send", 3, 4),
        ("recv", 2, 3),
        ("allreduce", None, None),
    ]
    odd = {"Collective name": "send", "Dst Rank": -1, "Src Rank": 9}
    found = call_of(tmp_path, comm(10, 5, SEND_RECV, **odd))
    assert (found["source"], found.get("destination")) == (3, None)


def test_an_all_to_all_of_many_kernels_is_partial(tmp_path):
    told = {"Collective name": "all_to_allv", **OLD}
    events = [
        record(**told),
        *under(name=SEND_RECV, correlation=1),
        *under(name=SEND_RECV, correlation=2),
        record(ts=200, dur=50, **told),
        launch(210, correlation=3),
        comm(300, 5, SEND_RECV, correlation=3),
    ]
    rows = calls_of(tmp_path, events)
    assert [(row["collective"], row["is_partial"]) for row in rows] == [
        ("all_to_allv", True),
        ("all_to_allv", True),
        ("all_to_allv", False),
    ]


def test_kernels_of_one_call_share_its_id(tmp_path):
    events = [
        comm(10 * n, 5, **{**GATHER, "Comms Id": cid}) for n, cid in ((1, 5), (2, 5), (3, 6))
    ]
    assert [row["is_partial"] for row in calls_of(tmp_path, events)] == [True, True, False]


def test_what_was_coalesced_is_partial(tmp_path):
    around = [record(**GATHER), annotation(12, 70, "nccl:coalesced")]
    found = call_of(tmp_path, *under(*around))
    assert (found["is_partial"], found["collective"]) == (True, "_allgather_base")


@pytest.mark.parametrize(
    ("name", "given", "size"),
    [
        ("allreduce", (10, 10, 8), 40),
        ("all_gather", (10, 80, 8), 320),
        ("all_gather", (10, None, 8), 320),
        ("all_gather", (10, None, None), None),
        ("_reduce_scatter_base", (80, 10, 8), 320),
        ("_reduce_scatter_base", (None, 10, 8), 320),
        ("all_to_all", (10, 20, 8), 40),
        ("all_to_all", (None, 20, 8), None),
        ("broadcast", (None, 10, 8), 40),
        ("recv", (3, 10, 2), 40),
        ("send", (3, 10, 2), 12),
        ("gather", (10, 80, 8), 320),
        ("scatter", (80, 10, 8), 320),
        ("barrier", (0, 0, 8), None),
        ("something_new", (10, 10, 8), None),
        ("allreduce", (0, 0, 8), 0),
        ("allreduce", (2**62, 0, 8), None),  # no 64 bits hold it
        ("all_gather", (2**59, None, 8), None),
    ],
)
def test_the_side_that_is_the_size(tmp_path, name, given, size):
    keys = ("In msg nelems", "Out msg nelems", "Group size")
    told = {key: value for key, value in zip(keys, given, strict=True) if value is not None}
    found = call_of(
        tmp_path, comm(1, 5, GENERIC, **{"Collective name": name, "dtype": "Float", **told})
    )
    assert (found["collective"], found.get("message_bytes")) == (name, size)


def test_types_nobody_knows_have_no_size(tmp_path):
    found = call_of(tmp_path, comm(1, 5, **{**GATHER, "dtype": "Float2"}))
    assert (found["dtype"], found.get("message_bytes")) == ("Float2", None)
    found = call_of(tmp_path, comm(1, 5, **{**GATHER, "dtype": "c10::Half"}))
    assert (found["dtype"], found["message_bytes"]) == ("Half", 1600)


def test_rows_stand_in_order_with_step_stream_and_launch(tmp_path):
    events = [
        step(1, 10, 20),
        step(2, 30, 20),
        launch(15, correlation=1),
        launch(35, correlation=2),
        comm(300, 9, correlation=2, stream=2**64 - 1),
        comm(300, 5, correlation=1),
        comm(200, 5, "ncclKernel_Reduce_RING", correlation=9, stream=-1),
        kernel(100, 500),
        comm(250, 5, device=1),
    ]
    first, second = digest_of(tmp_path, events).devices
    columns = ["start_ns", "end_ns", "launched_ns", "step", "stream", "collective"]
    rows = [tuple(row.values()) for row in first.calls.select(columns).to_pylist()]
    ns = [tuple(None if v is None else (v - BASE_NS) // 1000 for v in row[:3]) for row in rows]
    assert ns == [(200, 205, None), (300, 305, 15), (300, 309, 35)]
    assert [row[3:] for row in rows] == [
        (None, None, "reduce"),
        (1, 7, "allreduce"),
        (2, 2**64 - 1, "allreduce"),
    ]
    assert second.calls.num_rows == 1
    assert first.exposed.num_rows == 0


def test_the_public_table_has_rank_and_device(tmp_path):
    events = [comm(10, 5, **GATHER), comm(20, 5, device=1), kernel(1, 2)]
    path = write(tmp_path / "rank3.json", events)
    table = public_tables(read_trace(path))["collectives"]
    assert table.schema.equals(schema_of("collectives"))
    rows = [(row["rank"], row["device"], row["collective"]) for row in table.to_pylist()]
    assert rows == [(3, "0", "_allgather_base"), (3, "1", "allreduce")]
    host = write(tmp_path / "rank4.json", [annotation(1, 2, "gloo:broadcast")])
    (row,) = public_tables(read_trace(host))["collectives"].to_pylist()
    assert (row["rank"], row["device"], row["collective"]) == (4, "cpu", "broadcast")


def test_texts_have_an_end(tmp_path):
    told = {"Collective name": "x" * 999, "Process Group Name": "y" * 999, "dtype": "z" * 999}
    found = call_of(tmp_path, comm(1, 5, "nccl" * 999, **told))
    assert [len(found[key]) for key in ("collective", "group", "dtype")] == [64, 256, 64]
    (row,) = calls_of(tmp_path, [comm(1, 5, "nccl" * 999)])
    assert len(row["name"]) == 1024


def test_as_many_names_as_one_likes(tmp_path):
    events = [
        comm(n, 1, f"nccl{n}", **{**GATHER, "Process Group Name": f"{n}"})
        for n in range(1, 5001)
    ]
    rows = calls_of(tmp_path, events)
    assert len(rows) == 5000
    assert sum(row["group"] is None for row in rows) == 5000 - 4096
    assert {row["message_bytes"] for row in rows} == {1600}
