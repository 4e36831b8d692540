from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse import ordered
from traceparse.ingest import Kept
from traceparse.rank.overruns import overruns
from traceparse.tables import TEXT, schema_of

_ROWS = st.lists(
    st.tuples(
        st.integers(0, 60),  # start, in us
        st.integers(0, 60),  # duration
        st.sampled_from(["0", "1"]),  # device
        st.sampled_from([0, 7, 2**64 - 1]),  # stream
        st.sampled_from([None, 1, 2, 2**64 - 1]),  # correlation
    ),
    min_size=1,
    max_size=12,
)


def _table(rows):
    starts, lasts, devices, streams, keys = zip(*rows, strict=True)
    columns = {
        "start_ns": pa.array([1000 * s for s in starts], pa.int64()),
        "end_ns": pa.array(
            [1000 * (s + d) for s, d in zip(starts, lasts, strict=True)], pa.int64()
        ),
        "category": pa.array(["kernel"] * len(rows), pa.string()).cast(TEXT),
        "device": pa.array(devices, pa.string()).cast(TEXT),
        "stream": pa.array(streams, pa.uint64()),
        "correlation": pa.array(keys, pa.uint64()),
    }
    fields = schema_of("device_events", stage="ingest")
    arrays = [columns.get(f.name, pa.nulls(len(rows), f.type)) for f in fields]
    return pa.Table.from_arrays(arrays, schema=fields)


def _overruns(rows):
    """Return all overruns, the table given a row a part."""
    found: list[tuple[int, int]] = []
    for starts, ends in overruns(Kept.of(pa.concat_tables(_table([row]) for row in rows))):
        assert starts.dtype == ends.dtype == np.int64
        found += zip(starts.tolist(), ends.tolist(), strict=True)
    return sorted(found)


def _by_hand(rows):
    """Compare every kernel with those after it on its stream, up to the next launch."""
    found = []
    lanes = {(device, stream) for _, _, device, stream, _ in rows}
    for lane in lanes:
        row_of = [row for row in rows if row[2:4] == lane]
        row_of.sort(key=lambda row: (row[0], row[0] + row[1]))
        for at, (start, last, _, _, key) in enumerate(row_of):
            others = [r[0] for r in row_of[at + 1 :] if key is None or r[4] != key]
            if others and start + last - others[0] > 10 and 2 * (others[0] - start) <= last:
                found.append((1000 * others[0], 1000 * (start + last)))
    return sorted(found)


@given(_ROWS)
def test_overruns_agree_with_a_search_by_hand(rows):
    assert _overruns(rows) == _by_hand(rows)


@given(_ROWS)
def test_overruns_are_the_same_a_few_rows_at_a_time(rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", 2)
        patch.setattr(ordered, "_LEAST", 1)
        assert _overruns(rows) == _by_hand(rows)


def test_overruns_of_durations_past_belief():
    rows = [(0, 1 << 51, "0", 7, 1), (5, 1 << 51, "0", 7, 2)]
    assert _overruns(rows) == [(5000, 1000 << 51)]
