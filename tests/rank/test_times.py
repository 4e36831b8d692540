from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.intervals import from_spans
from traceparse.rank import times
from traceparse.rank.times import partition

_SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 15)), max_size=6)


def _points(spans):
    return {point for start, last in spans for point in range(start, start + last)}


def _set(spans):
    starts = np.array([start for start, _ in spans], np.int64)
    return from_spans(starts, starts + np.array([last for _, last in spans], np.int64))


@given(_SPANS, _SPANS, _SPANS, st.integers(0, 40), st.integers(0, 50))
def test_partition_is_what_counting_instants_gives(compute, comm, copy, start, span):
    window = set(range(start, start + span))
    a, b, c = (_points(spans) & window for spans in (compute, comm, copy))
    found = partition(
        _set(compute), _set(comm), _set(copy), start_ns=start, end_ns=start + span
    )
    assert asdict(found) == {
        "start_ns": start,
        "end_ns": start + span,
        "span_ns": span,
        "busy_ns": len(a | b | c),
        "compute_ns": len(a),
        "comm_ns": len(b),
        "copy_ns": len(c),
        "overlap_ns": len(a & b),
        "exposed_comm_ns": len(b - a),
        "exposed_copy_ns": len(c - a - b),
        "idle_ns": len(window - a - b - c),
    }
    parts = found.compute_ns + found.exposed_comm_ns + found.exposed_copy_ns + found.idle_ns
    assert parts == found.span_ns


@given(_SPANS, _SPANS, _SPANS, st.integers(0, 40), st.integers(0, 50))
def test_the_account_of_a_span_is_the_sum_of_those_of_its_pieces(
    compute, comm, copy, start, span
):
    sets = [_set(spans) for spans in (compute, comm, copy)]
    whole = partition(*sets, start_ns=start, end_ns=start + span)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(times, "_PIECE", 2)
        assert partition(*sets, start_ns=start, end_ns=start + span) == whole
