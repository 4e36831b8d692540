"""Where the results of a command go: standard output, standard error, a folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceparse.run import Report

__all__ = ["show_report"]


def show_report(report: Report, *, as_json: bool, quiet: bool, out: Path | None) -> None:
    """Print a report, and save it if there is a folder for it.

    The report goes to standard output, as tables or as JSON; notes and the names of written
    files go to standard error, unless quiet. JSON has the notes in it.
    """
    saved = report.save(out) if out else []
    if as_json:
        from traceparse.report import json_text

        sys.stdout.write(json_text.render(report))
    else:
        _draw(report, quiet=quiet)
    if not quiet:
        for path in saved:
            print(f"wrote {path}", file=sys.stderr)


def _draw(report: Report, *, quiet: bool) -> None:
    from rich.console import Console

    from traceparse.report import terminal

    terminal.render(report, Console())
    if not quiet:
        terminal.render_notes(report, Console(stderr=True))
