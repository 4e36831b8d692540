"""A run as HTA's ``Trace``, and HTA's analyses over it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from traceparse.bridge.hta.events import Argument, Events, read_events
from traceparse.bridge.hta.frame import frame_of
from traceparse.bridge.hta.installed import Hta, installed, quiet
from traceparse.errors import InputError, UsageError
from traceparse.ingest import FileHealth, Place, place_of
from traceparse.run import Report, Run

__all__ = ["analysis_of", "to_hta"]

_SINCE_STREAM_0: Final = (0, 6)
_DEVICE_TYPE: Final = "device_type"
_NTH: Final = re.compile(r"#(\d+)\Z")  # of several traces in a file


def to_hta(run: Run | Report, *, include_last_profiler_step: bool = False) -> Any:  # noqa: ANN401
    """Run HTA's analyses over traces that traceparse reads: its ``TraceAnalysis``.

    HTA's parser is not used. What it is given are frames of its own, which it may change.
    The files are read once more, as HTA counts events that the tables of a run leave out;
    what was repaired to be read is repaired again.

    Parameters
    ----------
    run
        What :func:`traceparse.read` or :func:`traceparse.analyze` returned; its files must
        still be there.
    include_last_profiler_step
        Keep what the last step launched; HTA leaves it out by default.

    Raises
    ------
    MissingExtraError
        HTA is not installed.
    UsageError
        Both distributions of HTA are; or a rank has several traces, or is unknown.
    InputError
        A file has changed since, or cannot be read any more.

    Examples
    --------
    >>> hta = traceparse.to_hta(traceparse.read("n4/"))
    >>> sorted(hta.t.get_all_traces())
    [0, 1, 2, 3]
    """
    report = run.report if isinstance(run, Run) else run
    return analysis_of(
        report.files, installed(), include_last_profiler_step=include_last_profiler_step
    )


def analysis_of(
    files: Iterable[FileHealth], hta: Hta, *, include_last_profiler_step: bool = False
) -> Any:  # noqa: ANN401 - HTA has no types
    """Return HTA's analyses over some files, one a rank."""
    with quiet():
        from hta.common.trace import Trace  # noqa: PLC0415 - it may not be there
        from hta.configs.env_options import disable_ns_rounding  # noqa: PLC0415
        from hta.configs.parser_config import ParserConfig  # noqa: PLC0415
        from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415

        trace = Trace(trace_files={}, trace_dir="")
        arguments = [
            Argument(own.name, own.raw_name, own.default_value)
            for own in ParserConfig.get_default_cfg().get_args()
        ]
        ids: dict[str, int] = {}
        for rank, health in sorted(_by_rank(files).items()):
            path, events = _read(health, arguments)
            trace.trace_files[rank] = str(path)
            trace.traces[rank] = frame_of(
                events,
                ids,
                is_rounded=not disable_ns_rounding(),
                marks_stream_0=hta.numbers >= _SINCE_STREAM_0,
            )
            trace.meta_data[rank] = _meta_data(events)
        trace.symbol_table.add_symbols(ids)
        # its own, as versions differ in what they leave out
        trace.align_and_filter_trace(include_last_profiler_step)
        for rank, frame in trace.traces.items():
            trace.traces[rank] = frame.set_index("index", drop=False).rename_axis(None)
        trace.is_parsed = True
        analysis = TraceAnalysis.__new__(TraceAnalysis)
        analysis.t = trace
    return analysis


def _by_rank(files: Iterable[FileHealth]) -> dict[int, FileHealth]:
    found: dict[int, FileHealth] = {}
    known = list(files)
    for health in known:
        rank = health.rank
        if rank is None and len(known) == 1:
            rank = 0  # of a trace on its own: HTA's analyses are of rank 0 by default
        if rank is None:
            raise UsageError(
                f"{health.path}: HTA needs its rank, which neither it nor its name says; give "
                f"the rank, or this file alone"
            )
        if rank in found:
            raise UsageError(
                f"{health.path}: HTA has one trace a rank, and {found[rank].path} is of rank "
                f"{rank} too; give one of them"
            )
        found[rank] = health
    return found


def _read(health: FileHealth, arguments: list[Argument]) -> tuple[Place, Events]:
    path, place = place_of(health.path), 0
    nth = _NTH.search(health.path)
    if nth and not path.exists():
        path, place = place_of(health.path[: nth.start()]), int(nth[1]) - 1
    try:
        events = read_events(path, arguments, place=place)
    except InputError as error:
        raise InputError(f"{health.path}: HTA cannot use it: {error}") from error
    if events.num_events != health.events:
        raise InputError(f"{path}: the file has changed since it was read; read it again")
    return path, events


def _meta_data(events: Events) -> dict[str, Any]:
    """Return what stands beside the events, with the kind of device as HTA tells it."""
    from hta.common import trace_parser  # noqa: PLC0415 - it may not be there

    found = dict(events.header)
    infer = getattr(trace_parser, "infer_gpu_type", None)  # since 0.6
    if infer is not None:
        found[_DEVICE_TYPE] = infer(found, dict.fromkeys(events.names, 0))
    return found
