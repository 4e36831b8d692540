from __future__ import annotations

from dataclasses import asdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceparse.rank.account import Account
from traceparse.rank.classify import COMM, COMPUTE, COPY

_WORK = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 15), st.sampled_from([COMPUTE, COMM, COPY])),
    max_size=18,
)
_SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 50)), min_size=1, max_size=4)


def _account(work, spans, *, at_once: int) -> Account:
    account = Account(np.array([(start, start + span) for start, span in spans], np.int64))
    ordered = sorted(work)
    for at in range(0, len(ordered), at_once):
        starts, lasts, kinds = map(np.array, zip(*ordered[at : at + at_once], strict=True))
        account.add(starts, starts + lasts, kinds.astype(np.int8))
    account.finish()
    return account


def _points(work, kind, window):
    return window & {
        point
        for start, last, own in work
        if own == kind
        for point in range(start, start + last)
    }


@given(_WORK, _SPANS, st.integers(1, 18))
def test_every_span_is_what_counting_its_instants_gives(work, spans, at_once):
    account = _account(work, spans, at_once=at_once)
    for start, span in spans:
        window = set(range(start, start + span))
        a, b, c = (_points(work, kind, window) for kind in (COMPUTE, COMM, COPY))
        found = account.times(start, start + span)
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
        parts = found.compute_ns + found.exposed_comm_ns + found.exposed_copy_ns
        assert parts + found.idle_ns == found.span_ns


def test_events_without_duration_at_the_end_take_nothing_back():
    """What ends last is not what starts last."""
    account = _account([(5, 10, COMPUTE), (30, 0, COPY)], [(5, 25), (20, 10)], at_once=1)
    assert account.times(5, 30).compute_ns == 10
    assert account.times(20, 30).busy_ns == 0
