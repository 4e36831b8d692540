"""From several runs to what sets them apart: analyze each, compare."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from traceparse.engine.local import Progress
from traceparse.engine.pipeline import REFUSED, analyze
from traceparse.engine.stored import stored_in
from traceparse.errors import InputError, Note, StrictError, UsageError
from traceparse.ingest import path_text, place_of
from traceparse.run import (
    Comparison,
    Report,
    Scaling,
    compare_of,
    require_runs,
    require_sides,
    scaling_of,
)
from traceparse.run.stored_report import read_report

__all__ = ["compare", "scaling"]

# of a report's notes, those that bear on times, and on what communication was
_WORTH_SAYING = REFUSED | {
    "clocks_unaligned",
    "collectives_ambiguous",
    "collectives_disagree",
    "collectives_mismatched",
    "collectives_unmatched",
    "no_complete_step",
    "transfer_upper_bound",
}


def scaling(
    runs: Sequence[str | Path],
    *,
    mode: str | None = None,
    steps: Collection[int] | None = None,
    strict: bool = False,
    jobs: int = 1,
    engine: str = "local",
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> Scaling:
    """Say what a job loses as it grows, and to what.

    Parameters
    ----------
    runs
        The traces of each run, of different sizes: a file, a folder (searched downwards) or a
        glob. The smallest run is the base point.
    mode
        ``"strong"``: the runs did the same work together. ``"weak"``: each device did the same
        in all of them. By default what their FLOP tell; else strong, and a note says so.
    steps, strict, jobs, engine, cache, progress
        As :func:`traceparse.analyze` has them, for each run.

    Raises
    ------
    UsageError
        There are fewer than two runs, or the mode is none.
    InputError
        Nothing in a run can be analyzed, or the runs cannot be compared.
    StrictError
        ``strict``, and some input is incomplete or damaged.

    Examples
    --------
    >>> curve = traceparse.scaling(["n4/", "n8/", "n16/"])
    >>> curve.mode, [(run.num_devices, round(run.efficiency, 4)) for run in curve.runs]
    ('weak', [(4, 1.0), (8, 0.9929), (16, 0.9893)])
    >>> worst = max(curve.runs[-1].terms.items(), key=lambda term: term[1])
    >>> worst[0], round(worst[1], 4)
    ('exposed_transfer', 0.01)
    """
    given = [runs] if isinstance(runs, str | Path) else list(runs)
    require_runs(len(given), mode)
    paths = [path_text(place_of(run)) for run in given]
    reports = []
    for path, run in zip(paths, given, strict=True):
        with _named(path):
            report = analyze(
                run,
                steps=steps,
                strict=strict,
                jobs=jobs,
                engine=engine,
                cache=cache,
                progress=progress,
            )
        reports.append(report)
    doubts = [
        doubt
        for path, report in zip(paths, reports, strict=True)
        for doubt in _doubts(path, report)
    ]
    return scaling_of(paths, reports, mode, notes=doubts)


def compare(
    base: str | Path | Sequence[str | Path],
    new: str | Path | Sequence[str | Path],
    *,
    steps: Collection[int] | None = None,
    **reading: Any,  # noqa: ANN401 - those of analyze, each of its type
) -> Comparison:
    """Say what changed between two runs of a job, and whether that is more than chance.

    Parameters
    ----------
    base, new
        The traces of a run: a file, a folder (searched downwards) or a glob; or a report of
        them that was stored, ``report.json``. A list names several runs of the same job, each
        in such a way: with three and more on a side, what runs differ by counts as chance.
    steps
        Numbers of the steps to compare, in each run; all by default.
    **reading
        As :func:`traceparse.analyze` has them, for each run: ``strict``, ``jobs``, ``engine``,
        ``cache``, ``accelerator``, and so on.

    Raises
    ------
    UsageError
        A side has no run, or options contradict each other.
    InputError
        Nothing in a run can be analyzed, or the runs cannot be compared.
    StrictError
        ``strict``, and some input is incomplete or damaged.

    Examples
    --------
    >>> diff = traceparse.compare("base/", "new/")
    >>> diff.verdict, diff.step_ns["delta"], diff.step_ns["interval"]
    ('slower', 119956, [119038, 120874])

    Terms add up to the change of a mean step, and an operator explains it:

    >>> sum(term["delta_ns"] for term in diff.terms.values())
    119956
    >>> diff.operators[0]["op"], diff.operators[0]["shapes"], diff.operators[0]["delta_ns"]
    ('aten::mm', '2048x4096, 4096x2048', 120454)
    """
    sides = [[one] if isinstance(one, str | Path) else list(one) for one in (base, new)]
    require_sides(*sides)
    names = [[path_text(place_of(run)) for run in runs] for runs in sides]
    reports = [
        [_report(path, run, steps, reading) for path, run in zip(paths, runs, strict=True)]
        for paths, runs in zip(names, sides, strict=True)
    ]
    doubts = [
        doubt
        for paths, own in zip(names, reports, strict=True)
        for path, report in zip(paths, own, strict=True)
        for doubt in _doubts(path, report)
    ]
    return compare_of((names[0], names[1]), (reports[0], reports[1]), notes=doubts)


def _report(
    path: str, run: str | Path, steps: Collection[int] | None, reading: dict[str, Any]
) -> Report:
    """Analyze the traces of a run, or read the report that was stored of them."""
    stored = stored_in(run)
    if stored is None:
        with _named(path):
            return analyze(run, steps=steps, **reading)
    if steps is not None:
        raise UsageError(
            f"{path}: is a stored report, whose steps are chosen; give its traces for --steps"
        )
    return read_report(stored)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Let errors say which of the runs they are about."""
    try:
        yield
    except (InputError, StrictError) as error:
        if path in str(error):
            raise
        raise type(error)(f"{path}: {error}") from error


def _doubts(path: str, report: Report) -> Iterator[Note]:
    """Say what makes a run's numbers less sure: a note of each kind, with the run's name."""
    kinds: dict[str, list[Note]] = {}
    for note in report.notes:
        if note.code in _WORTH_SAYING:
            kinds.setdefault(note.code, []).append(note)
    for code, notes in kinds.items():
        first, more = notes[0], len(notes) - 1
        where = path if first.file is None else first.file
        if first.rank is not None:
            where += f": rank {first.rank}"
        rest = f" (and {more:,} more like it: analyze this run alone)" if more else ""
        yield Note(code, f"{where}: {first.message}{rest}", first.rank, first.file)
