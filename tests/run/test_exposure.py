from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceparse.intervals import Intervals, from_spans, length
from traceparse.run.exposure import Parts, exposure_of


def exposure(exposed, parts):
    """Split; a part is (start, end, transfer, is_peer, is_split)."""
    columns = list(zip(*parts, strict=True)) or [()] * 5
    start, end, transfer = (np.array(column, np.int64) for column in columns[:3])
    is_peer, is_split = (np.array(column, np.bool_) for column in columns[3:])
    spans = from_spans(
        *(np.array(list(column), np.int64) for column in zip(*exposed, strict=True))
    )
    return exposure_of(spans, Parts(start, end, transfer, is_peer, is_split))


def spans_of(intervals: Intervals) -> list[tuple[int, int]]:
    return list(zip(intervals.starts.tolist(), intervals.ends.tolist(), strict=True))


def test_the_last_nanoseconds_are_transfer_and_what_precedes_is_wait():
    found = exposure([(0, 100)], [(0, 100, 30, False, True)])
    assert spans_of(found.transfer) == [(70, 100)]
    assert spans_of(found.wait) == [(0, 70)]
    assert found.within(60, 90) == (20, 10, 0, 0)


def test_only_what_is_exposed_counts():
    found = exposure([(0, 10), (60, 80)], [(0, 100, 30, False, True)])
    assert [length(part) for part in found] == [10, 20, 0, 0]


def test_waiting_for_a_peer_is_the_pipeline():
    found = exposure([(0, 100)], [(0, 100, 30, True, True)])
    assert [length(part) for part in found] == [30, 0, 70, 0]


def test_what_cannot_be_split_is_left_whole():
    found = exposure([(0, 100)], [(0, 100, 30, False, False), (50, 70, 5, False, True)])
    assert spans_of(found.transfer) == [(65, 70)]
    assert spans_of(found.wait) == [(50, 65)]
    assert spans_of(found.unsplit) == [(0, 50), (70, 100)]


instants = st.integers(0, 40)
some_spans = st.lists(st.tuples(instants, st.integers(0, 15)), min_size=1, max_size=5)


@given(
    some_spans,
    st.lists(
        st.tuples(
            instants, st.integers(0, 15), st.integers(0, 20), st.booleans(), st.booleans()
        ),
        max_size=6,
    ),
    st.tuples(instants, instants),
)
def test_every_instant_is_what_comes_first(exposed, parts, window):
    spans = [(start, start + last) for start, last in exposed]
    calls = [(start, start + last, *rest) for start, last, *rest in parts]
    found = exposure(spans, calls)
    counts = [0, 0, 0, 0]
    for at in range(*window):
        if not any(start <= at < end for start, end in spans):
            continue
        kinds = [3]
        for start, end, transfer, is_peer, is_split in calls:
            if start <= at < end and is_split:
                kinds.append(0 if at >= end - transfer else 2 if is_peer else 1)
        counts[min(kinds)] += 1
    assert found.within(*window) == tuple(counts)
