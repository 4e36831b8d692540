"""The pieces that an overlay is drawn with: lanes, places of steps, bins, sizes."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.bridge.overlay.counters import Done, bins_of, shared_out
from traceparse.bridge.overlay.job import by_value, groups
from traceparse.bridge.overlay.lanes import lanes, outside_in
from traceparse.bridge.overlay.lines import Event, encoded, in_us, timed
from traceparse.bridge.overlay.partition import PARTS, Sets, partition
from traceparse.bridge.overlay.plan import (
    FINDINGS,
    LAUNCHES,
    OPERATORS,
    PYTHON,
    Choice,
    Plan,
    choices,
    host_layer,
    tracks_layer,
)
from traceparse.bridge.overlay.rows import Ids, decoded
from traceparse.bridge.overlay.steps import Marked, StepPlaces, Window
from traceparse.intervals import EMPTY, from_spans
from traceparse.rank import Times

_SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=20)


def _array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _sorted(spans):
    starts = _array(*(start for start, _ in spans))
    ends = starts + _array(*(last for _, last in spans))
    order = outside_in(starts, ends)
    return starts[order], ends[order]


@given(_SPANS, st.booleans())
def test_slices_of_a_lane_never_cross(spans, may_nest):
    starts, ends = _sorted(spans)
    lane = lanes(starts, ends, may_nest=may_nest)
    rows = list(zip(lane.tolist(), starts.tolist(), ends.tolist(), strict=True))
    for at, (own, start, end) in enumerate(rows):
        for other, later, last in rows[at + 1 :]:
            if own == other and later < end:
                assert may_nest and last <= end, (start, end, later, last)


def test_a_lane_more_is_taken_only_where_it_has_to_be():
    starts, ends = _sorted([(0, 10), (0, 10), (2, 3), (5, 9), (10, 1)])
    assert lanes(starts, ends, may_nest=True).tolist() == [0, 0, 0, 1, 0]
    assert lanes(starts, ends, may_nest=False).tolist() == [0, 1, 2, 2, 0]


def test_times_are_microseconds_digit_by_digit():
    assert [in_us(ns) for ns in (0, 1, 1000, 12_345, 10**18 + 7)] == [
        *(b"0", b"0.001", b"1", b"12.345"),
        b"1000000000000000.007",
    ]


def test_lines_get_their_time_last_and_stay_json():
    events = [Event("X", 'a"\n', 1, 2, "c", args={"x": "\u2028"}), Event("M", "b", 1)]
    lines = encoded(events)
    assert lines.count(b"\n") == 2
    text = timed(lines, _array(1_500, 2_000), base_ns=500, first_ns=0)
    first, second = json.loads(b"[" + text[:-2] + b"]")
    assert (first["ts"], first["name"], first["args"]) == (1, 'a"\n', {"x": "\u2028"})
    assert second == {"ts": 1.5, "ph": "M", "name": "b", "pid": 1}
    assert timed(lines, None, base_ns=500, first_ns=1501).count(b'"ts":1.001,') == 2


def test_hundreds_of_lanes_take_no_longer_a_slice_than_a_few():
    starts = np.arange(5_000, dtype=np.int64)
    lane = lanes(starts, starts + 10_000, may_nest=True)
    assert lane.tolist() == list(range(5_000))  # each crosses all others


def test_rows_are_told_by_value():
    found = {value: rows.tolist() for value, rows in by_value(_array(3, 1, 3, 2, 1))}
    assert found == {1: [1, 4], 2: [3], 3: [0, 2]}
    assert not list(by_value(_array()))


# -- steps


def test_an_instant_is_in_the_step_that_began_last():
    steps = StepPlaces([7, 5, 6, 5])
    marked = [Marked(6, 20, 30), Marked(5, 10, 18), Marked(99, 25, 26)]
    times = _array(9, 10, 17, 18, 20, 25, 29, 30)
    assert steps.of(marked, times).tolist() == [0, 1, 1, 1, 2, 2, 2, 4]
    assert steps.of([], times).tolist() == [0] * 8
    assert steps.everything == (0, 4)
    assert steps.window([6]) == (2, 2)
    assert steps.window([4, 5, 6]) == (1, 2)
    empty = steps.window([8])
    assert empty.last < empty.first


# -- parts of the time


@given(_SPANS, _SPANS, _SPANS, st.lists(st.integers(0, 90), max_size=4))
def test_every_instant_has_one_part_and_the_sums_are_those_of_brute_force(
    compute, comm, copy, cuts
):
    spans = [*compute, *comm, *copy]
    start = min((first for first, _ in spans), default=0)
    end = max((first + last for first, last in spans), default=1)
    sets = Sets(*(from_spans(*_ends(one)) for one in (compute, comm, copy)))
    window = Times(start, max(end, start + 1), *([0] * 9))
    slices = partition(sets, None, window, _array(*cuts))
    assert slices.starts.tolist()[1:] == slices.ends.tolist()[:-1]
    assert (slices.starts[0], slices.ends[-1]) == (window.start_ns, window.end_ns)
    inside = {cut for cut in cuts if window.start_ns < cut < window.end_ns}
    assert inside <= set(slices.starts.tolist())
    for first, last, part in zip(*slices, strict=True):
        for instant in range(first, last):
            assert PARTS[part] == _part_of(instant, compute, comm, copy)


def _ends(spans):
    starts = _array(*(start for start, _ in spans))
    return starts, starts + _array(*(last for _, last in spans))


def _part_of(instant, compute, comm, copy) -> str:
    def runs(spans) -> bool:
        return any(start <= instant < start + last for start, last in spans)

    if runs(compute):
        return "compute"
    if runs(comm):
        return "exposed unsplit"
    return "exposed copy" if runs(copy) else "idle"


def test_nothing_but_idle():
    window = Times(5, 9, *([0] * 9))
    slices = partition(Sets(EMPTY, EMPTY, EMPTY), None, window, _array())
    assert [one.tolist() for one in slices] == [[5], [9], [PARTS.index("idle")]]


# -- bins


@given(
    st.lists(
        st.tuples(st.integers(0, 100), st.integers(0, 60), st.integers(0, 10**15)), max_size=8
    ),
    st.lists(st.integers(1, 40), min_size=1, max_size=8),
)
def test_what_is_shared_out_stays_as_much_and_is_where_it_was_done(work, widths):
    edges = np.append(0, np.cumsum(widths)).astype(np.int64)
    starts, lasts, amounts = (
        (_array(*column) for column in zip(*work, strict=True))
        if work
        else (
            _array(),
            _array(),
            _array(),
        )
    )
    done = Done(starts, starts + lasts, amounts)
    found = shared_out(done, edges).tolist()
    assert sum(found) == sum(amounts.tolist())
    exact = [Fraction(0)] * len(widths)
    for start, last, amount in work:
        for instant in range(start, start + max(last, 1)):
            at = min(int(np.searchsorted(edges, instant, "right")) - 1, len(widths) - 1)
            exact[at] += Fraction(amount, max(last, 1))
    assert all(abs(one - other) <= len(work) for one, other in zip(found, exact, strict=True))


def test_bins_end_where_steps_do():
    bins = bins_of(_array(0, 100, 400, 401), _array(0, 1, 2), 8)
    # 8 for 401 ns: one for 100 ns, five for 300, and no span is without
    assert bins.edges.tolist() == [0, 100, 160, 220, 280, 340, 400, 401]
    assert bins.places.tolist() == [0, 1, 1, 1, 1, 1, 2]


# -- what is put together


def test_short_neighbors_are_put_together():
    starts, ends = _array(0, 5, 20, 200, 210), _array(4, 9, 25, 205, 400)
    tracks = _array(1, 1, 1, 1, 1)
    assert groups(starts, ends, tracks, 0).tolist() == [0, 1, 2, 3, 4]
    # 200 is too far from 25, and 210 too long
    assert groups(starts, ends, tracks, 50).tolist() == [0, 3, 4]
    assert groups(starts, ends, _array(1, 1, 2, 2, 2), 50).tolist() == [0, 2, 3, 4]
    kept = np.array([False, True, False, False, False])
    assert groups(starts, ends, tracks, 50, kept).tolist() == [0, 1, 2, 3, 4]
    assert groups(starts, ends, tracks, 1 << 62).tolist() == [0]
    assert groups(_array(), _array(), _array(), 5).tolist() == []


# -- sizes


def test_what_goes_first_where_room_is_short():
    steps = StepPlaces(range(10, 18))
    ordered = choices(steps, None, 7, has_python=True)
    assert ordered[0] == Choice(Window(0, 9), 0, PYTHON)
    assert [one.window for one in ordered if one.host == OPERATORS] == [
        *((0, 9), (1, 8), (1, 7), (4, 7)),
    ]
    assert [one.window for one in ordered if one.host == LAUNCHES] == [
        *((0, 9), (1, 8), (1, 7), (4, 7), (6, 7), (7, 7)),
    ]
    assert [(one.window, one.has_extras) for one in ordered[-2:]] == [
        ((7, 7), True),
        ((7, 7), False),
    ]
    assert list(ordered[-1].left_out(ordered[0])) == [
        "host events",
        "single kernels: there is a slice a step and stream",
        "counters and collectives",
    ]
    launches = next(one for one in ordered if one.host == LAUNCHES)
    assert list(launches.left_out(ordered[0])) == ["host operators and Python functions"]
    assert not list(ordered[0].left_out(ordered[0]))
    assert choices(steps, None, 7, has_python=False)[0].host == OPERATORS


def test_a_plan_takes_the_next_choice_when_one_no_longer_fits():
    ordered = choices(StepPlaces(range(1, 9)), None, 8, has_python=False)
    plan = Plan(ordered, 2_900, has_details=False)
    event = Event("X", "n" * 100, 1, 1, "c")

    def put(layer: str, place: int, num: int) -> None:
        plan.put(layer, [event] * num, _array(*range(num)) + place * 100, Window(place, place))

    put(tracks_layer(0), 1, 4)
    put(tracks_layer(0), 8, 4)
    assert plan.choice == ordered[0]
    put(host_layer(OPERATORS), 8, 9)  # 17 events of 173 bytes at most
    assert plan.choice == Choice(Window(5, 8), 0, OPERATORS)
    assert [entry.first for entry in plan.chosen()] == [8, 8]
    put(host_layer(OPERATORS), 6, 9)
    # without operators there is room for all steps again
    assert plan.choice == Choice(Window(0, 9), 0, LAUNCHES)
    assert not plan.wants(host_layer(OPERATORS), 6, 6)
    put(host_layer(OPERATORS), 6, 9)
    assert [entry.num for entry in plan.chosen()] == [4, 4]
    put(tracks_layer(0), 8, 99)
    assert not plan.chosen()
    assert plan.least_bytes > 2_900


def test_flows_need_both_ends_in_the_window():
    choice = Choice(Window(2, 3), 0, OPERATORS)
    assert choice.has("flows", 2, 3)
    assert not choice.has("flows", 1, 2)
    assert not choice.has("flows", 3, 4)
    assert choice.has(FINDINGS, 0, 0)
    assert not choice.has(host_layer(PYTHON), 2, 2)


# -- numbers and texts of traces


def test_numbers_of_two_ranks_are_never_the_same():
    numbers = [None, 1, 2**32 - 1, 2**32, 2**64 - 1, 2**63]
    alone = Ids(0, is_alone=True)
    assert alone.of(list(numbers)) == numbers
    found = [Ids(place, is_alone=False).of(list(numbers)) for place in (0, 1, 2)]
    every = [number for own in found for number in own if number is not None]
    assert len(set(every)) == len(every) == 15
    assert max(every) < 2**53  # what a double holds
    assert found[0][:3] == [None, 1, 2**32 - 1]


@pytest.mark.parametrize("text", [None, "", "[1,", "NaN", "[1] 2", "[" * 100_000])
def test_what_is_no_json_is_left_out(text):
    assert decoded(text) is None


def test_json_is_what_it_stands_for():
    assert decoded("[[8, 4], []]") == [[8, 4], []]
