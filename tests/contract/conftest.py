from __future__ import annotations

import sys

import pytest

from traceparse import cli


@pytest.fixture
def traceparse(monkeypatch, capfd):
    """Run the command line as the installed program does: exit status, output, errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["traceparse", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capfd.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run
