"""When communication is exposed, and what is too much to keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rank.calls import comm, digest_of
from tests.traces import kernel, launch, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import account, collectives, digest


def brute_exposed(events):
    """Look at every microsecond: comm and no compute."""
    points: dict[str, set[int]] = {"comm": set(), "compute": set()}
    for one in events:
        kind = "comm" if "nccl" in one["name"] else "compute"
        points[kind] |= set(range(one["ts"], one["ts"] + one["dur"]))
    alone = sorted(points["comm"] - points["compute"])
    edges = (
        [at for at in alone if at - 1 not in alone],
        [at + 1 for at in alone if at + 1 not in alone],
    )
    return list(zip(*edges, strict=True))


KERNELS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 12), st.booleans()), min_size=1, max_size=25
)


@settings(max_examples=150)
@given(KERNELS)
def test_exposed_is_what_a_search_finds(tmp_path_factory, given_kernels):
    events = [
        kernel(ts, dur, "nccl" if is_comm else "gemm") for ts, dur, is_comm in given_kernels
    ]
    path = write(
        tmp_path_factory.mktemp("exposed") / "rank0.json", events, baseTimeNanoseconds=0
    )
    (device,) = digest(read_trace(path)).devices
    found = [
        (row["start_ns"] // 1000, row["end_ns"] // 1000) for row in device.exposed.to_pylist()
    ]
    assert found == brute_exposed(events)
    starts, ends = (device.exposed[name].to_numpy() for name in ("start_ns", "end_ns"))
    assert int(np.sum(ends - starts)) == device.window.exposed_comm_ns
    assert device.calls.num_rows == sum(is_comm for *_, is_comm in given_kernels)


def test_exposed_goes_on_where_parts_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(ordered, "_RUN", 4)
    monkeypatch.setattr(ordered, "_LEAST", 2)
    events = [comm(1, 500), *(kernel(10 * n, 3) for n in range(1, 40))]
    (device,) = digest_of(tmp_path, events).devices
    assert device.exposed.num_rows == 40
    lasts = device.exposed["end_ns"].to_numpy() - device.exposed["start_ns"].to_numpy()
    assert int(lasts.sum()) == device.window.exposed_comm_ns == (500 - 39 * 3) * 1000


@pytest.mark.parametrize("room", [(collectives, "MOST_CALLS"), (account, "MOST_EXPOSED")])
def test_more_than_anybody_has_are_not_kept(tmp_path, monkeypatch, room):
    events = [launch(1, correlation=1), *(comm(9 * n, 5, correlation=1) for n in range(1, 9))]
    monkeypatch.setattr(*room, 7)
    found = digest_of(tmp_path, events)
    (device,) = found.devices
    (note,) = [note for note in found.notes if note.code == "collectives_too_many"]
    assert note.rank == 3
    assert "not told apart" in note.message
    kept = (device.calls.num_rows, device.exposed.num_rows)
    assert kept == ((0, 8) if room[0] is collectives else (8, 0))
    assert device.window.exposed_comm_ns == 40_000
    monkeypatch.setattr(*room, 8)
    assert not [n for n in digest_of(tmp_path, events).notes if n.code.startswith("coll")]
