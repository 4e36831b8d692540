"""Keeps a trace that torch wrote: a process beside the job packs it and reads it back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traceparse.capture.environment import without_capture
from traceparse.capture.said import Said, in_words
from traceparse.errors import CaptureError
from traceparse.packing import pack, write_facts
from traceparse.whole import whole, whole_new

__all__ = ["Keeper", "Keeping", "raw_path"]

_MODULE = "traceparse.engine.pack"  # by name only: nothing of the analysis is imported here


@dataclass(frozen=True, slots=True)
class Keeping:
    """One trace on its way from ``raw`` to ``target``."""

    raw: Path
    target: Path
    facts: Mapping[str, Any]
    overwrite: bool
    with_host: bool

    def pack(self, packed: Path) -> None:
        """Pack the trace here, under a name for now."""
        pack(
            self.raw,
            packed,
            self.facts,
            name=self.target.name.removesuffix(".gz"),
            with_host=self.with_host,
        )

    def request(self) -> bytes:
        """Return what the process beside the job is told."""
        return json.dumps(
            {
                "job": os.getpid(),
                "raw": os.fspath(self.raw),
                "target": os.fspath(self.target),
                "facts": self.facts,
                "overwrite": self.overwrite,
                "with_host": self.with_host,
            }
        ).encode()


class Keeper:
    """The traces of one capture, and the processes that keep them."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._running: list[tuple[Keeping, subprocess.Popen[bytes]]] = []
        self.kept: dict[Path, dict[str, Any]] = {}  #: facts by trace

    @property
    def is_busy(self) -> bool:
        """Is a trace still being kept?"""
        return bool(self._running)

    def keep(self, keeping: Keeping) -> None:
        """Start to keep a trace; where no process can be started, do it here."""
        try:
            process = _started(keeping)
        except Exception as error:  # noqa: BLE001 - whatever it is, the trace can be kept here
            self._said.warn(
                f"{keeping.target}: no process can be started beside the job "
                f"({in_words(error)}): the trace is packed by the job itself, and not read back"
            )
            self._keep_here(keeping)
        else:
            self._running.append((keeping, process))

    def look(self) -> None:
        """See, without waiting, which traces are kept by now, and say so."""
        ended = [each for each in self._running if each[1].poll() is not None]
        for each in ended:
            self._running.remove(each)
            self._conclude(*each)

    def wait(self, timeout_s: float) -> None:
        """Wait until all traces are kept; what takes longer is finished without us."""
        for keeping, process in self._running:
            try:
                with _naming(keeping.raw):
                    process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                if not timeout_s:
                    continue
                self._said.warn(
                    f"{keeping.target}: still being packed after {timeout_s:g} s; "
                    "it goes on by itself, give it time before the machine is taken away"
                )
        self.look()

    def _conclude(self, keeping: Keeping, process: subprocess.Popen[bytes]) -> None:
        # What it says is shorter than a pipe is deep, so it could end without being read.
        with _naming(keeping.raw):
            answer, _ = process.communicate()
        try:
            verdict = json.loads(answer.splitlines()[-1])
        except (ValueError, IndexError):
            self._said.warn(
                f"{keeping.target}: the process that packs the trace ended with status "
                f"{process.returncode}: the job packs it itself, and it is not read back"
            )
            self._keep_here(keeping)
            return
        if "error" in verdict:
            is_left = keeping.raw.exists()
            left = f"; what torch wrote is in {keeping.raw}" if is_left else ""
            raise CaptureError(f"{verdict['error']}{left}")
        for text in verdict["said"]:
            self._said.warn(f"{keeping.target}: {text}")
        self._is_kept(keeping, verdict["facts"])

    def _keep_here(self, keeping: Keeping) -> None:
        naming = whole if keeping.overwrite else whole_new
        if keeping.raw.exists() or not keeping.target.exists():
            with _naming(keeping.raw), naming(keeping.target) as packed:
                keeping.pack(packed)
            keeping.raw.unlink(missing_ok=True)
        write_facts(keeping.target, keeping.facts)
        self._is_kept(keeping, dict(keeping.facts))

    def _is_kept(self, keeping: Keeping, facts: dict[str, Any]) -> None:
        self.kept[keeping.target] = facts
        size = keeping.target.stat().st_size
        self._said.tell(f"{keeping.target}: kept, {size / 1e6:.1f} MB")


@contextmanager
def _naming(raw: Path) -> Iterator[None]:
    """Have what goes wrong say where the trace is that torch wrote."""
    try:
        yield
    except subprocess.TimeoutExpired:
        raise
    except Exception as error:
        if not raw.exists():
            raise
        raise CaptureError(f"{in_words(error)}; what torch wrote is in {raw}") from error


def raw_path(target: Path) -> Path:
    """Return where torch writes what becomes ``target``.

    The process id keeps apart two processes that claim one rank.
    """
    return target.with_name(f".{target.name}.{os.getpid()}.raw")


def _started(keeping: Keeping) -> subprocess.Popen[bytes]:
    request = keeping.request()
    # In a session of its own: what ends the job does not end it.
    process = subprocess.Popen(  # noqa: S603 - our own module, with a Python that was told
        [os.environ.get("TRACEPARSE_PYTHON") or sys.executable, "-m", _MODULE],
        env=without_capture(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    told, process.stdin = process.stdin, None  # what comes back is all that is left to do
    assert told is not None
    try:
        with told:
            told.write(request)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return process
