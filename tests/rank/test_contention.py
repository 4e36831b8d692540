"""How much longer kernels take beside collectives: by hand, and by search."""

from __future__ import annotations

from fractions import Fraction
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import kernel, launch, op, step, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import digest

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def slowed(path):
    """Return contention by step, what was overlapped, and what never ran alone; in us."""
    (device,) = digest(read_trace(path)).devices
    steps = [Fraction(one.twice_contention_ns, 2000) for one in device.steps]
    return steps, device.overlapped_ns // 1000, device.never_alone_ns // 1000


def run(start, last, correlation, *, name="gemm", shapes=((2, 2),), at=None):
    dims = {"Input Dims": [list(sizes) for sizes in shapes]}
    launched = at or 10 * correlation
    return [
        op(launched, 5, "aten::mul", **dims),
        launch(launched + 1, correlation=correlation),
        kernel(start, last, name, correlation=correlation),
    ]


def test_kernels_are_held_against_those_alike_that_ran_alone(tmp_path):
    events = [
        *run(1000, 10, 1),
        *run(1100, 13, 2),
        *run(1200, 20, 3),  # beside the collective: 20 - 11.5
        *run(1300, 99, 4, shapes=((9, 9),)),  # of another shape, alone
        *run(1500, 90, 5, shapes=((3, 3),)),  # beside it, and never alone
        kernel(1210, 5, REDUCE),
        kernel(1510, 5, REDUCE),
    ]
    path = write(tmp_path / "rank0.json", events)
    assert slowed(path) == ([Fraction(17, 2)], 110, 90)


def test_what_ends_as_the_collective_begins_ran_alone(tmp_path):
    events = [*run(1000, 10, 1), *run(1020, 12, 2), kernel(1010, 10, REDUCE)]
    assert slowed(write(tmp_path / "rank0.json", events)) == ([0], 0, 0)


def test_time_belongs_to_the_step_in_which_a_kernel_begins(tmp_path):
    events = [
        step(1, 1, 50),
        step(2, 51, 50),
        *run(1000, 10, 1, at=5),
        *run(1100, 14, 2, at=10),
        *run(1200, 10, 3, at=60),
        *run(1300, 15, 4, at=70),
        kernel(1105, 1, REDUCE),
        kernel(1305, 1, REDUCE),
    ]
    assert slowed(write(tmp_path / "rank0.json", events))[0] == [4, 5]


def test_nothing_that_communicates_contends_with_nothing(tmp_path):
    assert slowed(write(tmp_path / "rank0.json", run(1000, 10, 1))) == ([0], 0, 0)


kernels = st.tuples(
    st.integers(0, 60), st.integers(1, 9), st.sampled_from("ab"), st.sampled_from([1, 2])
)
spans = st.tuples(st.integers(0, 60), st.integers(1, 9))


@settings(max_examples=100)
@given(
    st.lists(kernels, min_size=1, max_size=14), st.lists(spans, max_size=4), st.integers(2, 9)
)
def test_it_agrees_with_a_search(tmp_path_factory, kernels, comms, rows):
    events = [kernel(1000 + start, last, REDUCE) for start, last in comms]
    for number, (start, last, name, size) in enumerate(kernels, 1):
        events += run(1000 + start, last, number, name=name, shapes=((size, size),))
    path = write(tmp_path_factory.mktemp("any") / "rank0.json", events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", rows)
        patch.setattr(ordered, "_LEAST", 1)
        found = slowed(path)

    def overlapped(start, last):
        return any(one < start + last and start < one + long for one, long in comms)

    alone: dict[tuple[str, int], list[int]] = {}
    for start, last, name, size in kernels:
        if not overlapped(start, last):
            alone.setdefault((name, size), []).append(last)
    beside = [one for one in kernels if overlapped(*one[:2])]
    known = [one for one in beside if one[2:] in alone]
    excess = sum(Fraction(one[1]) - Fraction(median(alone[one[2:]])) for one in known)
    total = sum(one[1] for one in beside)
    assert found == ([excess], total, total - sum(one[1] for one in known))
