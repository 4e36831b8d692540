"""Kernels of all files in one table, worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.run.conftest import Maker, renamed
from tests.traces import kernel, write
from traceparse.ingest import read_trace
from traceparse.rank import KernelWork, digest
from traceparse.run.top_kernels import MOST_ROWS, top_kernels


def work(name, time_ns, *, op="aten::mm", kind="compute", count=1, least_bytes=8):
    return KernelWork(name, op, "2x2", kind, op == "aten::mm", count, time_ns, least_bytes)


def with_kernels(make, *kernels, rank=0):
    return make.digest(rank, make.device(make.step(1, make.times(compute=1))), kernels=kernels)


def test_files_add_up_and_most_time_comes_first(make):
    first = with_kernels(make, work("a", 30), work("b", 20, least_bytes=None))
    second = with_kernels(make, work("b", 40), work("a", 5, op=None), work("c", 5), rank=1)
    rows = make.report(first, second).top_kernels
    assert [(row["name"], row["op"], row["time_ns"], row["ratio"]) for row in rows] == [
        ("b", "aten::mm", 60, 0.6),
        ("a", "aten::mm", 30, 0.3),
        ("a", None, 5, 0.05),
        ("c", "aten::mm", 5, 0.05),
    ]
    assert [row["count"] for row in rows] == [2, 1, 1, 1]
    assert [row["least_bytes"] for row in rows] == [None, 8, 8, 8]
    assert rows[0] | {"ratio": None} == {
        "name": "b",
        "op": "aten::mm",
        "shapes": "2x2",
        "kind": "compute",
        "is_counted": True,
        "count": 2,
        "time_ns": 60,
        "ratio": None,
        "least_bytes": None,
    }


def test_what_is_too_many_is_one_row_more(make):
    many = [work(f"k{n:04}", 10_000 - n) for n in range(MOST_ROWS + 3)]
    rest = KernelWork(None, None, None, "copy", is_counted=False, count=7, time_ns=70)
    rows = top_kernels([with_kernels(make, *many, rest)])
    assert len(rows) == MOST_ROWS + 1
    left = [10_000 - n for n in range(MOST_ROWS, MOST_ROWS + 3)]
    assert (rows[-1]["name"], rows[-1]["kind"], rows[-1]["least_bytes"]) == (None, None, None)
    assert (rows[-1]["count"], rows[-1]["time_ns"]) == (10, sum(left) + 70)
    assert sum(row["time_ns"] for row in rows) == sum(one.time_ns for one in many) + 70
    assert abs(sum(row["ratio"] for row in rows) - 1) < 1e-9


def test_nothing_that_takes_time_has_no_share(make):
    rows = top_kernels([with_kernels(make, work("a", 0))])
    assert [row["ratio"] for row in rows] == [None]
    assert top_kernels([with_kernels(make)]) == []


kernels = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 2)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=50)
@given(kernels)
def test_splitting_a_run_by_rank_changes_nothing(tmp_path_factory, kernels):
    folder = tmp_path_factory.mktemp("any")
    events = [kernel(1 + 20 * n, last, name) for n, (name, last, _) in enumerate(kernels)]
    whole = digest(read_trace(write(folder / "whole.json", events)))
    parts = []
    for rank in range(3):
        own = [one for one, (_, _, at) in zip(events, kernels, strict=True) if at == rank]
        if own:
            path = write(folder / f"rank{rank}.json", own)
            parts.append(renamed(digest(read_trace(path)), rank))
    assert top_kernels(parts) == top_kernels([whole])
    total = sum(row["time_ns"] for row in top_kernels(parts))
    assert total == 1000 * sum(last for _, last, _ in kernels)


def test_a_rank_that_was_captured_twice_counts_once():
    make = Maker()
    one = with_kernels(make, work("a", 30))
    again = replace(one, health=replace(one.health, path="again.json"))
    rows = make.report(one, again).top_kernels
    assert [row["time_ns"] for row in rows] == [30]
