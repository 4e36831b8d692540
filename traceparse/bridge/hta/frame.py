"""Events as the frame that HTA's own loader would make of them.

Plain NumPy dtypes throughout: nullable and Arrow dtypes make HTA silently wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from traceparse.bridge.hta.events import Events

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of", "iterations"]

NONE: Final = -1  # of streams, correlations and iterations
_STEP: Final = re.compile(r"ProfilerStep\s*#\s*(\d+)")

_Numbers = npt.NDArray[Any]


def frame_of(
    events: Events, ids: dict[str, int], *, is_rounded: bool, marks_stream_0: bool
) -> pd.DataFrame:
    """Return the frame of one trace; ``ids`` numbers texts, for all ranks, and grows.

    ``is_rounded`` says that times with a fraction lose it, as HTA has it by default;
    ``marks_stream_0`` that operators on stream 0 belong to steps, as it has it since 0.6.
    """
    import pandas as pd  # noqa: PLC0415 - half a second, and only HTA wants frames

    start, dur = _times(events, is_rounded=is_rounded)
    columns: dict[str, Any] = {
        "index": events.index,
        "cat": _ids(events.categories, ids),
        "name": _ids(events.names, ids),
        "pid": _column(events.pids),
        "tid": _column(events.tids),
        "ts": start,
        "dur": dur,
        **{name: _column(values) for name, values in events.arguments.items()},
    }
    if "stream" in columns:
        columns["stream"] = _streams(events.arguments["stream"])
    # named, lest pandas makes its own texts of objects
    series = {
        name: pd.Series(values, events.index, values.dtype) for name, values in columns.items()
    }
    frame = pd.DataFrame(series)
    if "correlation" in columns:
        _correlate(frame, ids)
        frame["iteration"] = iterations(frame, ids, marks_stream_0=marks_stream_0)
    frame["end"] = frame["ts"] + frame["dur"]
    return frame


def _times(events: Events, *, is_rounded: bool) -> tuple[_Numbers, _Numbers]:
    """Return when events start and how long they last, in microseconds as HTA has them.

    Where any time has a fraction, it moves each start up and each end down to a microsecond,
    computing in doubles: of times since 1970 these keep quarters of a microsecond.
    """
    if events.is_whole_us:
        start = events.start_ns // 1000
        last = _microseconds(events.dur_ns)
        whole = last.astype(np.int64)
        return start, whole if np.array_equal(whole, last) else last
    begin, last = _microseconds(events.start_ns), _microseconds(events.dur_ns)
    if not is_rounded:
        return begin, last
    up = np.ceil(begin).astype(np.int64)
    return up, np.floor(begin + last).astype(np.int64) - up


def _microseconds(ns: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the doubles nearest to the decimal texts of these times.

    The sum is rounded once: its first part is exact below 2^53, its second fine enough.
    """
    whole, part = np.divmod(ns, 1000)
    return whole.astype(np.float64) + part / 1000.0


def _ids(texts: Sequence[str], ids: dict[str, int]) -> npt.NDArray[np.int64]:
    return np.fromiter(
        (ids.setdefault(text, len(ids)) for text in texts), np.int64, count=len(texts)
    )


def _column(values: Sequence[Any]) -> _Numbers:
    """Return values as numbers if all are, and as objects of Python if not."""
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            return _objects(values)
    if kinds <= {int, float, NoneType} and kinds != {NoneType}:
        return np.array(values, np.float64)  # NaN for null
    return _objects(values)


def _objects(values: Sequence[Any]) -> _Numbers:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def _streams(values: Sequence[Any]) -> npt.NDArray[np.int64]:
    if set(map(type, values)) == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            pass  # one by one, then
    return np.array([_stream(value) for value in values], np.int64)


def _stream(value: object) -> int:
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return NONE
    return number if abs(number) < 1 << 63 else NONE


def _correlate(frame: pd.DataFrame, ids: dict[str, int]) -> None:
    """Add for each event the index of the launch or device event that belongs to it.

    As HTA does: 0 where it is not in the trace, -1 where there is none.
    """
    linked = np.minimum(frame["correlation"].to_numpy(), 0)
    of_device = (frame["stream"].to_numpy() >= 0) & (frame["correlation"].to_numpy() >= 0)
    syncs = [ids[name] for name in ("Event Sync", "Context Sync") if name in ids]
    of_device |= frame["name"].isin(syncs).to_numpy()
    has_any = frame["correlation"].to_numpy() != NONE
    own = frame[["index", "correlation"]]
    pairs = own[has_any & ~of_device].merge(own[has_any & of_device], on="correlation")
    for of, to in (("index_x", "index_y"), ("index_y", "index_x")):
        places = np.searchsorted(frame["index"].to_numpy(), pairs[of].to_numpy())
        linked[places] = pairs[to].to_numpy()
    frame["index_correlation"] = linked


def iterations(frame: pd.DataFrame, ids: dict[str, int], *, marks_stream_0: bool) -> _Numbers:
    """Return the number of the step that each event belongs to, -1 for none.

    On the host that is the step in which it starts; on a device, that of its launch. NaN where
    HTA leaves it open, which it does of device events on stream 0.
    """
    stream, linked = frame["stream"].to_numpy(), frame["index_correlation"].to_numpy()
    marked = stream < 0
    if marks_stream_0 and "cpu_op" in ids:
        marked |= (stream == 0) & (frame["cat"].to_numpy() == ids["cpu_op"])
    found = np.full(len(frame), np.nan)
    found[marked] = _steps(frame, ids)[marked]
    on_device = stream > 0
    found[on_device] = NONE
    launched = np.flatnonzero(on_device & (linked > 0))
    launches = np.searchsorted(frame["index"].to_numpy(), linked[launched])
    found[launched] = found[launches]
    return found if np.isnan(found).any() else found.astype(np.int64)


def _steps(frame: pd.DataFrame, ids: dict[str, int]) -> npt.NDArray[np.float64]:
    """Return the number of the step in which each event starts: of several, the last marked."""
    numbers = {
        number: int(found[1]) for text, number in ids.items() if (found := _STEP.match(text))
    }
    start = frame["ts"].to_numpy()
    order = np.argsort(start, kind="stable")
    in_order = start[order]
    own = np.full(start.size, float(NONE))
    marks = frame[frame["name"].isin(list(numbers))]
    for begin, dur, name in zip(marks["ts"], marks["dur"], marks["name"], strict=True):
        first, last = np.searchsorted(in_order, (begin, begin + dur))
        own[order[first:last]] = numbers[name]
    return own
