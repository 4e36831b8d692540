"""What HTA finds that traceparse does not compute: field ``hta`` of a report.

Queue lengths of streams, and the critical path of one step of each rank, as HTA computes them
over its frames: in whole microseconds, and without what the last step launched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from traceparse.bridge.hta.installed import installed, quiet
from traceparse.bridge.hta.trace import analysis_of
from traceparse.errors import Note, TraceparseError, one_line
from traceparse.run import Report

__all__ = ["MOST_RANKS", "with_hta"]

MOST_RANKS: Final = 8  # HTA builds a graph of each in Python: seconds for 100,000 events
_STEP: Final = "ProfilerStep"
_LONGEST: Final = 200  # letters of what HTA says


def with_hta(report: Report) -> Report:
    """Add what HTA finds in a report's traces; a note says what it could not.

    Raises
    ------
    MissingExtraError
        HTA is not installed.
    UsageError
        Two distributions of it are.
    """
    hta = installed()
    notes: list[Note] = []
    found: dict[str, Any] = {
        "distribution": hta.distribution,
        "version": hta.version,
        "queue_length": None,
        "critical_path": None,
    }
    analysis: Any = None
    with _noting(notes, "analyses", None):
        analysis = analysis_of(report.files, hta)
    if analysis is not None:
        ranks = sorted(analysis.t.traces)
        if len(ranks) > MOST_RANKS:
            message = f"HTA was asked about the first {MOST_RANKS} of {len(ranks)} ranks"
            notes.append(Note("hta_partial", message))
        asked: dict[str, Callable[[Any, int], list[dict[str, Any]]]] = {
            "queue_length": _queue_lengths,
            "critical_path": _critical_path,
        }
        for name, ask in asked.items():
            if reason := hta.unavailable.get(name):
                notes.append(Note("hta_unavailable", f"HTA's {_words(name)}: {reason}"))
            else:
                found[name] = _of_ranks(name, ask, analysis, ranks[:MOST_RANKS], notes)
    return replace(report, hta=found, notes=(*report.notes, *notes))


def _of_ranks(
    name: str,
    ask: Callable[[Any, int], list[dict[str, Any]]],
    analysis: Any,  # noqa: ANN401 - HTA has no types
    ranks: list[int],
    notes: list[Note],
) -> list[dict[str, Any]] | None:
    """Ask about each rank; ``None`` where HTA answers for none."""
    rows: list[dict[str, Any]] = []
    for rank in ranks:
        with _noting(notes, name, rank):
            rows.extend(ask(analysis, rank))
    return rows or None


@contextmanager
def _noting(notes: list[Note], name: str, rank: int | None) -> Iterator[None]:
    """Turn what goes wrong into a note: HTA raises what it comes across."""
    try:
        with quiet():
            yield
    except TraceparseError as error:
        notes.append(Note("hta_unavailable", f"HTA's {_words(name)}: {error}", rank))
    except Exception as error:  # noqa: BLE001 - of another package, whose errors are of any kind
        said = f"{type(error).__name__} {one_line(error)[:_LONGEST]}".strip()
        message = f"HTA's {_words(name)} could not be computed: it raised {said}"
        notes.append(Note("hta_unavailable", message, rank))


def _words(name: str) -> str:
    return name.replace("_", " ")


def _queue_lengths(analysis: Any, rank: int) -> list[dict[str, Any]]:  # noqa: ANN401
    """How many launches waited on each stream, over the moments at which that changed."""
    summary = analysis.get_queue_length_summary(ranks=[rank])
    if summary is None:
        raise TraceparseError("no launch in the trace has a device event")
    return [
        {
            "rank": rank,
            "stream": int(stream),
            "num_changes": int(row["count"]),
            "mean": float(row["mean"]),
            "median": float(row["50%"]),
            "max": int(row["max"]),
        }
        for (_, stream), row in summary["queue_length"].iterrows()
    ]


def _critical_path(analysis: Any, rank: int) -> list[dict[str, Any]]:  # noqa: ANN401
    """Say what the longest chain of one step of a rank is: of its second, if it has one.

    The first one of a trace lacks what was launched before it.
    """
    annotation, instance, step = _chosen(analysis.t, rank)
    answer = analysis.critical_path_analysis(rank, annotation, instance)
    if not (answer and answer[1]):
        raise TraceparseError("its graph of the events is not valid")
    edges = answer[0].get_critical_path_breakdown()
    bound = edges[edges["bound_by"] != ""].groupby("bound_by")["duration"].sum()
    return [
        {
            "rank": rank,
            "step": step,
            "num_edges": len(edges),
            "duration_ns": _ns(edges["duration"].sum()),
            "bound_by_ns": {str(name): _ns(lasted) for name, lasted in bound.items()},
        }
    ]


def _chosen(trace: Any, rank: int) -> tuple[str, int, int | None]:  # noqa: ANN401
    """Return the annotation to ask about, which instance of it, and the step that this is."""
    frame, ids = trace.get_trace(rank), trace.symbol_table.get_sym_id_map()
    marks = frame[frame["name"].isin([ids[name] for name in ids if _STEP in name])]
    of_host = [place for place, stream in enumerate(marks["stream"]) if stream < 0]
    of_host.sort(key=lambda place: marks["ts"].iloc[place])
    if not of_host:
        return "", 0, None
    instance = of_host[1 if len(of_host) > 1 else 0]
    step = marks["iteration"].iloc[instance]
    return _STEP, instance, int(step) if step >= 0 else None


def _ns(microseconds: float) -> int:
    return round(float(microseconds) * 1000)
