"""Run any training command with capture on, and end as it ended."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from traceparse.capture.environment import Told, with_capture
from traceparse.errors import CaptureError, UsageError
from traceparse.packing import UNSAID, facts_path

__all__ = ["end_as", "kept_in", "run_captured", "unsaid_in", "wait_until_kept"]

_PASSED_ON = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGQUIT,
    signal.SIGINT,  # so that it does not end us before the command has ended
)
_RAW = ".rank*_trace.json.gz.*.raw"
_LOOK_S = 0.1
_START_S = 10.0  # what packs is slow to begin on a machine that has a lot to do


def run_captured(command: Sequence[str], what: Told) -> int:
    """Run a command whose processes capture, and return its exit status, below 0 for a signal.

    Its input and output are ours, and so are the signals that we get.

    Raises
    ------
    UsageError
        There is no such command.
    CaptureError
        The directory cannot be made, or has traces already.
    """
    directory = Path(what.directory)
    _make_room(directory, overwrite=what.overwrite)
    if not command or shutil.which(command[0]) is None:
        said = command[0] if command else ""
        raise UsageError(f"{said!r}: no such command; give it behind --, as you would run it")
    with _signals_go_on() as to:
        child = subprocess.Popen(command, env=with_capture(os.environ, what))  # noqa: S603 - the user's
        to(child)
        return child.wait()


def end_as(status: int) -> int:
    """Return an exit status as it is; die of the signal that a status below 0 stands for."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command has left one, if any
        with suppress(OSError):  # of SIGKILL nobody may say what it does
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


def kept_in(directory: Path) -> list[Path]:
    """Return the traces that were kept in a directory."""
    return sorted(directory.glob("rank*_trace.json.gz"))


def unsaid_in(directory: Path) -> dict[str, list[Path]]:
    """Return what no process was left to say, with the traces that it is of."""
    found: dict[str, list[Path]] = {}
    for trace in kept_in(directory):
        facts = facts_path(trace)
        told = json.loads(facts.read_text("utf-8")) if facts.exists() else {}
        for text in told.get(UNSAID, ()):
            found.setdefault(text, []).append(trace)
    return found


def wait_until_kept(directory: Path, *, patience_s: float) -> list[Path]:
    """Wait for traces that are still being packed, and return what torch wrote of others."""
    end_s = time.monotonic() + patience_s
    while any(map(_is_being_packed, directory.glob(_RAW))) and time.monotonic() < end_s:
        time.sleep(_LOOK_S)
    return sorted(directory.glob(_RAW))


def _is_being_packed(raw: Path) -> bool:
    """Say whether somebody packs a file, or is about to: one may be left from long ago."""
    target, _, _ = raw.name.partition(".json.gz")
    try:
        is_new = time.time() - raw.stat().st_mtime < _START_S
    except FileNotFoundError:
        return False
    return is_new or any(raw.parent.glob(f"{target}.json.gz.*.tmp"))


def _make_room(directory: Path, *, overwrite: bool) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CaptureError(
            f"{directory}: is no directory and cannot be made one: {error.strerror}"
        ) from error
    there = kept_in(directory)
    if there and not overwrite:
        raise CaptureError(
            f"{there[0]}: there is a trace already; choose another --out, or give --overwrite"
        )


@contextmanager
def _signals_go_on() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Pass signals on to the child that the block names; also those that come before it does.

    One from the keyboard has reached the command by itself. Handlers are not inherited by what
    is started, but that a signal is ignored would be.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            return
        early.append(number)
        to_children()

    def to_children() -> None:
        while children and early:
            children[0].send_signal(early.pop(0))

    def to(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        to_children()

    heeded = [each for each in _PASSED_ON if signal.getsignal(each) != signal.SIG_IGN]
    before = {number: signal.signal(number, pass_on) for number in heeded}
    try:
        yield to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
