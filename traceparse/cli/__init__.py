"""The command line: parses words, calls one function, prints. No logic.

Packages are imported by the command that needs them, so that ``--help`` answers at once. The
words themselves are read by :mod:`traceparse.cli.commands`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from traceparse.cli.phases import starting

if TYPE_CHECKING:
    from traceparse.cli.commands import app

__all__ = ["app", "main"]


def __getattr__(name: str) -> object:
    """Load the commands when they are first asked for."""
    if name != "app":
        raise AttributeError(f"module 'traceparse.cli' has no attribute {name!r}")
    from traceparse.cli.commands import app

    return app


def main() -> None:
    """Run the command line and end the process with the exit status of the report contract."""
    with starting():
        _run()


def _run() -> None:
    from traceparse.cli.commands import app
    from traceparse.errors import TraceparseError

    try:
        app()
    except TraceparseError as error:
        if "--debug" in sys.argv:
            raise
        from traceparse.report.safe import visible

        print(f"traceparse: {visible(str(error))}", file=sys.stderr)
        sys.exit(error.exit_status)
