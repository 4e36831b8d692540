"""The commands as the installed program runs them."""

from __future__ import annotations

import sys

import pytest

from traceparse import cli


@pytest.fixture
def run(request, monkeypatch, capsys):
    """Run the command that a test module is named for: exit status, output, errors."""
    command = request.module.__name__.rpartition("test_")[2]

    def run_it(*words):
        line = ["traceparse", command, *map(str, words), "--jobs", "1"]
        monkeypatch.setattr(sys, "argv", line)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run_it
