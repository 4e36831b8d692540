"""Where the results of a command go: standard output, standard error, a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceparse.errors import InputError

if TYPE_CHECKING:
    from traceparse.run import Comparison, Report, Scaling
    from traceparse.run.check import Checked
    from traceparse.tables import ArrowTable

__all__ = ["show_answer", "show_checked", "show_compared", "show_report", "show_scaling"]


def show_report(
    report: Report,
    *,
    as_json: bool,
    quiet: bool,
    out: Path | None,
    formats: Sequence[str] | None = None,
    full: bool = False,
) -> None:
    """Print a report, and save it if there is a folder for it, in all formats by default.

    The report goes to standard output, as JSON, on one screen or in ``full``; notes and the
    names of written files go to standard error, unless quiet. JSON has the notes in it.
    """
    saved: Sequence[Path] = []
    if out:
        with _writing(out):
            saved = report.save(out, formats=formats) if formats else report.save(out)
    if as_json:
        from traceparse.report import json_text

        sys.stdout.write(json_text.render(report))
    else:
        _draw(report, quiet=quiet, full=full)
    if not quiet:
        _say_written(saved)
        _say_what_is_missing(saved)


def show_answer(
    table: ArrowTable, report: Report, kind: str, *, out: Path | None, rows: int, quiet: bool
) -> None:
    """Print what a query found, or write it as a file; notes of the run on standard error."""
    if out:
        with _writing(out, "--out another file"):
            _write_answer(table, kind, out)
    elif kind == "table":
        from rich.console import Console

        from traceparse.report import answer_text

        answer_text.render(table, Console(), most=rows)
    else:
        sys.stdout.write(_answer_text(table, kind))
    if not quiet:
        _draw_notes(report)
        _say_written([out] if out else [])


def _write_answer(table: ArrowTable, kind: str, out: Path) -> None:
    from traceparse.report import answer
    from traceparse.run import write_whole
    from traceparse.whole import whole

    if kind != "parquet":
        write_whole(out, _answer_text(table, kind))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    with whole(out) as temporary:
        answer.write_parquet(table, temporary)


def _answer_text(table: ArrowTable, kind: str) -> str:
    from traceparse.report import answer

    return answer.render_csv(table) if kind == "csv" else answer.render_json(table)


def _draw_notes(report: Report) -> None:
    from rich.console import Console

    from traceparse.report import terminal

    terminal.render_notes(report, Console(stderr=True), whole=False)


def show_scaling(curve: Scaling, *, as_json: bool, quiet: bool, out: Path | None) -> None:
    """Print how a job scales, and save it as ``report.json``, as :func:`show_report` does."""
    from traceparse.report import json_text

    text = json_text.render(curve)
    saved = []
    if out:
        from traceparse.run import write_whole

        with _writing(out):
            out.mkdir(parents=True, exist_ok=True)
            saved = [write_whole(out / "report.json", text)]
    if as_json:
        sys.stdout.write(text)
    else:
        _draw_scaling(curve, quiet=quiet)
    if not quiet:
        _say_written(saved)


def show_compared(found: Comparison, *, as_json: bool, quiet: bool, out: Path | None) -> None:
    """Print what changed between runs, and save it if there is a place for it.

    A folder gets ``report.json`` and ``report.html``; a name that ends in ``.html`` or
    ``.json`` is that file.
    """
    from traceparse.report import json_text

    text = json_text.render(found)
    saved: list[Path] = []
    if out:
        from traceparse.report import compare_html
        from traceparse.run import write_whole

        renders = {".html": lambda: compare_html.render(found), ".json": lambda: text}
        is_file = out.suffix in renders
        with _writing(out):
            paths = [out] if is_file else [out / f"report{ending}" for ending in renders]
            saved = [write_whole(path, renders[path.suffix]()) for path in paths]
    if as_json:
        sys.stdout.write(text)
    else:
        _draw_compared(found, quiet=quiet)
    if not quiet:
        _say_written(saved)


def _draw_compared(found: Comparison, *, quiet: bool) -> None:
    from rich.console import Console

    from traceparse.report import compare_text

    compare_text.render(found, Console())
    if not quiet:
        compare_text.render_notes(found, Console(stderr=True))


def show_checked(checked: Checked, *, as_json: bool, quiet: bool, junit: Path | None) -> None:
    """Print what became of conditions, and write it as JUnit XML if there is a file for it."""
    written = []
    if junit:
        from traceparse.report import check_junit
        from traceparse.run import write_whole

        with _writing(junit, "--junit another file"):
            written = [write_whole(junit, check_junit.render(checked))]
    if as_json:
        from traceparse.report import json_text

        sys.stdout.write(json_text.render(checked))
    else:
        _draw_checked(checked, quiet=quiet)
    if not quiet:
        _say_written(written)


def _draw_checked(checked: Checked, *, quiet: bool) -> None:
    from rich.console import Console

    from traceparse.report import check_text

    check_text.render(checked, Console())
    if not quiet:
        check_text.render_notes(checked, Console(stderr=True))


@contextmanager
def _writing(out: Path, other: str = "--out another folder") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written to ({error.strerror}); give {other}"
        ) from error


def _say_written(paths: Sequence[Path]) -> None:
    for path in paths:
        print(f"wrote {path}", file=sys.stderr)


def _say_what_is_missing(paths: Sequence[Path]) -> None:
    """Say why files that would have charts have none, and what to do."""
    from traceparse.report.charts import why_no_charts

    drawn = [path.name for path in paths if path.suffix in (".html", ".md")]
    if drawn and (reason := why_no_charts()):
        print(f"{', '.join(drawn)}: without charts: {reason}", file=sys.stderr)


def _draw_scaling(curve: Scaling, *, quiet: bool) -> None:
    from rich.console import Console

    from traceparse.report import scaling_text

    scaling_text.render(curve, Console())
    if not quiet:
        scaling_text.render_notes(curve, Console(stderr=True))


def _draw(report: Report, *, quiet: bool, full: bool) -> None:
    from rich.console import Console

    from traceparse.report import screen, terminal

    (terminal if full else screen).render(report, Console())
    if not quiet:
        terminal.render_notes(report, Console(stderr=True), whole=full)
