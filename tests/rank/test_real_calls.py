"""Calls of real traces."""

from __future__ import annotations

import pytest

from tests.contract.places import GLOO, SHARED
from traceparse.ingest import read_trace
from traceparse.rank import digest, public_tables


def shared(name):
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"no {path}")
    return digest(read_trace(path))


def test_a_b200_has_one_call_of_nccl_and_73_of_symmetric_memory():
    found = shared("b200-eager.json.gz")
    (device,) = found.devices
    rows = device.calls.to_pylist()
    assert len(rows) == 74
    (one,) = [row for row in rows if row["told_by"] == "kernel"]
    assert (one["message_bytes"], one["group"], one["group_ranks"]) == (402_176, "3", "0-7")
    assert {row["collective"] for row in rows} == {"allreduce", "_allgather_base"}
    assert found.header.groups["0"] == "0-7"


def test_an_a100_has_metadata_of_every_kernel():
    (device,) = shared("hta-nccl-data-a100.json.gz").devices
    rows = device.calls.to_pylist()
    names = [row["collective"] for row in rows]
    assert (names.count("allreduce"), names.count("broadcast")) == (15, 6)
    assert {row["told_by"] for row in rows} == {"kernel"}
    assert all(row["group_ranks"] == "0-1" and row["message_bytes"] for row in rows)


def test_a_dlrm_of_2023_is_told_by_spans():
    (device,) = shared("param-dlrm/worker0_step_12.1694128201545.pt.trace.json.gz").devices
    rows = device.calls.to_pylist()
    assert [row["collective"] for row in rows].count("all_to_all") == 5
    assert {row["told_by"] for row in rows} == {"span"}
    assert rows[0]["message_bytes"] == 6144 * 4
    lasts = device.exposed["end_ns"].to_numpy() - device.exposed["start_ns"].to_numpy()
    assert int(lasts.sum()) == device.window.exposed_comm_ns


def test_steps_are_those_of_the_kernels():
    path = SHARED / "hta-nccl-data-a100.json.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    tables = public_tables(read_trace(path))
    columns = ("start_ns", "end_ns", "step", "stream", "name", "rank", "device")
    events = [row for row in tables["kernels"].to_pylist() if row["kind"] == "comm"]
    calls, kernels = (
        sorted(tuple(row[name] for name in columns) for row in rows)
        for rows in (tables["collectives"].to_pylist(), events)
    )
    assert calls == kernels
    assert len({step for _, _, step, *_ in calls}) > 1


def test_a_rocm_training_job_that_communicates_not():
    (device,) = shared("mi300x-ddp-resnet18.json.gz").devices
    assert device.calls.num_rows == device.exposed.num_rows == 0


def test_a_real_capture_of_gloo():
    (device,) = digest(read_trace(GLOO / "rank0_trace.json.gz")).devices
    rows = device.calls.to_pylist()
    assert len(rows) > 10
    assert {row["collective"] for row in rows} == {"allreduce"}
    assert all(row["message_bytes"] == 4 * row["in_elements"] for row in rows)
