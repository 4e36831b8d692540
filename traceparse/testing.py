"""Assertions for tests of training jobs: what a stored trace says must stay so.

>>> from traceparse.testing import assert_report
>>> def test_my_job_is_as_fast_as_it_was():                            # doctest: +SKIP
...     assert_report(
...         "traces/my-job/",
...         fail_on=["mfu < 0.35", "comm_ratio > 10%", "finding('straggler')"],
...         golden="tests/my-job.json",
...         tolerance=0.02,
...     )

A function to import, and no plugin of pytest: a plugin would be loaded into each run of pytest
wherever traceparse is installed, and this works in any framework, or none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from traceparse.engine import analyze
from traceparse.engine.stored import stored_in
from traceparse.errors import UsageError
from traceparse.ingest import path_text, place_of
from traceparse.report import json_text
from traceparse.report.check_text import found_lines
from traceparse.report.safe import visible
from traceparse.run import Report, write_whole
from traceparse.run.check import check, require_conditions
from traceparse.run.check.golden import Difference, Tolerance, differences
from traceparse.run.stored_report import read_report
from traceparse.units import format_ratio

__all__ = ["assert_report"]

_UPDATE: Final = "TRACEPARSE_UPDATE_GOLDEN"
_MOST: Final = 20


def assert_report(
    traces: str | Path | Sequence[str | Path] | Report,
    *,
    fail_on: Sequence[str] = (),
    golden: str | Path | None = None,
    tolerance: Tolerance = 0.0,
    ignore: Sequence[str] = (),
    **reading: Any,  # noqa: ANN401 - those of analyze, each of its type
) -> Report:
    """Assert that a job keeps its limits, and that its report is what it was; return it.

    Parameters
    ----------
    traces
        Trace files, folders and globs of one job; a stored ``report.json``; or a report.
    fail_on
        Conditions under which it fails, as ``traceparse check --fail-on`` takes them.
    golden
        A stored ``report.json`` that the report must equal. With TRACEPARSE_UPDATE_GOLDEN=1 in
        the environment it is written instead.
    tolerance
        The relative change of a number that is none; or by patterns of paths, such as
        ``{"*_ns": 0.02}``, and 0 for all others.
    ignore
        Patterns of paths in the report that may differ, such as ``"clock.*"``.
    **reading
        As :func:`traceparse.analyze` has them: ``accelerator``, ``steps``, ``strict``, ...

    Raises
    ------
    AssertionError
        A condition holds or cannot be told, or the report is another.
    UsageError
        There is nothing to assert, or a condition cannot be understood.
    InputError
        The traces, or the golden report, cannot be used.
    """
    __tracebackhide__ = True
    conditions = [fail_on] if isinstance(fail_on, str) else list(fail_on)
    if not conditions and golden is None:
        raise UsageError(
            "nothing to assert: give fail_on=['mfu < 0.35'], or golden='FILE.json'"
        )
    if conditions:
        require_conditions(conditions)
    report = traces if isinstance(traces, Report) else _report(traces, reading)
    name = _name(traces)
    complaints = [*_about_conditions(name, report, conditions)]
    if golden is not None:
        complaints += _about_golden(report, Path(golden), tolerance, ignore)
    if complaints:
        raise AssertionError("\n".join([f"{name}:", *complaints]))
    return report


def _report(traces: str | Path | Sequence[str | Path], reading: dict[str, Any]) -> Report:
    stored = stored_in(traces)
    if stored is None:
        return analyze(traces, **reading)
    if reading:
        raise UsageError(f"{stored}: is a stored report, which no option of reading changes")
    return read_report(stored)


def _name(traces: str | Path | Sequence[str | Path] | Report) -> str:
    if isinstance(traces, Report):
        return "the report"
    given = [traces] if isinstance(traces, str | Path) else list(traces)
    more = f" and {len(given) - 1} more" if len(given) > 1 else ""
    return visible(path_text(place_of(given[0])) + more)


def _about_conditions(name: str, report: Report, conditions: list[str]) -> Iterator[str]:
    if not conditions:
        return
    failed = [one for one in check(report, conditions).gates if one.outcome != "pass"]
    for gate in failed:
        words = "holds" if gate.outcome == "fail" else "cannot be told"
        yield f"  {visible(gate.expression)}   {words}"
        yield from (f"    {visible(line)}" for line in found_lines(gate))
    if failed:
        yield (
            f"  to do: see where the time went, `traceparse analyze {name}`; where that is as "
            f"it should be, change fail_on"
        )


def _about_golden(
    report: Report, golden: Path, tolerance: Tolerance, ignore: Sequence[str]
) -> Iterator[str]:
    shown = visible(path_text(golden))
    update = f"{_UPDATE}=1 in the environment writes it"
    if os.environ.get(_UPDATE) == "1":
        write_whole(golden, json_text.render(report))
        return
    if not golden.exists():
        yield f"  {shown} is not there to compare with; {update}"
        return
    before = read_report(golden).to_dict()
    found = list(differences(before, report.to_dict(), tolerance=tolerance, ignore=ignore))
    if not found:
        return
    yield f"  {len(found):,} fields differ from {shown}:"
    yield from (f"    {_shown(one)}" for one in islice(found, _MOST))
    if len(found) > _MOST:
        yield f"    and {len(found) - _MOST:,} more"
    yield f"  to do: where that is as it should be, {update}; or give tolerance=, ignore="


def _shown(one: Difference) -> str:
    change = "" if one.ratio is None else f" ({one.ratio:+.3%})"
    if one.ratio is not None and abs(one.ratio) >= 0.001:
        change = f" ({'+' if one.ratio > 0 else ''}{format_ratio(one.ratio)})"
    return visible(f"{one.path}: was {one.before!r:.60}, is {one.after!r:.60}{change}")
