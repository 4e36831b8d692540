from __future__ import annotations

import io
import sys

from traceparse.cli import progress
from traceparse.cli.progress import shown_progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _on_terminal(monkeypatch) -> _Terminal:
    # not a fixture: pytest puts its own standard error in place when the test begins
    screen = _Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    return screen


def _work(bar) -> None:
    bar.start(2, 1000)
    bar.advance(400)
    bar.file_done()
    bar.advance(600)
    bar.file_done()


def test_a_long_task_shows_files_and_bytes(monkeypatch):
    terminal = _on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    with shown_progress(quiet=False) as bar:
        assert bar is not None
        _work(bar)
    shown = terminal.getvalue()
    assert "2/2 files" in shown
    assert "1.0/1.0 kB" in shown


def test_a_short_task_shows_nothing(monkeypatch):
    terminal = _on_terminal(monkeypatch)
    with shown_progress(quiet=False) as bar:
        assert bar is not None
        _work(bar)
    assert terminal.getvalue() == ""


def test_nobody_to_show_it_to(monkeypatch):
    terminal = _on_terminal(monkeypatch)
    with shown_progress(quiet=True) as bar:
        assert bar is None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with shown_progress(quiet=False) as bar:
        assert bar is None
    assert terminal.getvalue() == ""


def test_one_run_after_another_is_one_task(monkeypatch):
    terminal = _on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    with shown_progress(quiet=False) as bar:
        assert bar is not None
        _work(bar)
        _work(bar)
    shown = terminal.getvalue()
    assert "4/4 files" in shown
    assert "2.0/2.0 kB" in shown
