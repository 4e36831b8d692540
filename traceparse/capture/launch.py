"""Start the demo's training job as a child process, and tell in one line when it fails."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from traceparse.errors import CaptureError, MissingExtraError, UsageError
from traceparse.packing import trace_name

__all__ = ["run_demo"]

_FIRST_WORDS = "traceparse demo runs: "  # how a log of ours begins
_STEPS = "10-13"  # some before and behind them, to tell how much slower they were
_GRACE_S = 15.0  # torchrun gives its workers less than this to end before it kills them
# An exception's last line in a traceback, behind the "[rank0]:" that torch puts there; torchrun
# raises one of its own over any failure.
_EXCEPTION = re.compile(
    r"^(?:\[rank\d+\]: ?)?((?!\S*ChildFailedError)(?:\w+\.)*\w*(?:Error|Exception)\b.*)", re.M
)
_SIGNAL = re.compile(r"\bSignal \d+ \(\w+\) received by PID \d+")


def run_demo(out: Path, *, ranks: int, timeout_s: float = 300.0) -> Path:
    """Train the demo's model on so many CPU ranks, and return the directory of their traces.

    Traces of a demo that ran here before are replaced. What the job prints is in
    ``out/train.log``.

    Raises
    ------
    MissingExtraError
        torch is not installed.
    CaptureError
        The job failed, took too long, or left no trace; or ``out`` cannot be written to, or
        holds files of someone else where the demo's would go.
    UsageError
        Fewer than one rank.
    """
    if ranks < 1:
        raise UsageError(f"--ranks {ranks}: the demo needs at least one rank")
    if find_spec("torch") is None:
        raise MissingExtraError("the demo needs torch: pip install 'traceparse[capture]'")
    traces, log = out / "traces", out / "train.log"
    try:
        _make_room(traces, log)
        status = _run(_command(traces, ranks), log, timeout_s)
    except OSError as error:
        raise CaptureError(f"{out}: the demo cannot write here: {error}") from error
    if status is None:
        raise CaptureError(
            f"{log}: the demo's training took over {timeout_s:g} s and was ended"
        )
    if status:
        raise CaptureError(
            f"{log}: the demo's training failed with exit status {status}: {_last_words(log)}"
        )
    _check_traces(traces, log, ranks)
    return traces


def _make_room(traces: Path, log: Path) -> None:
    """Remove an earlier demo's traces, and nothing that a demo did not write."""
    traces.mkdir(parents=True, exist_ok=True)
    ours = log.exists() and log.read_bytes().startswith(_FIRST_WORDS.encode())
    foreign = [] if ours else [*sorted(traces.iterdir()), *([log] if log.exists() else [])]
    if foreign:
        raise CaptureError(
            f"{foreign[0]}: was there before and no demo wrote it; choose another --out"
        )
    for pattern in ("rank*_trace.json.gz", "rank*_facts.json", ".rank*"):
        for path in traces.glob(pattern):
            path.unlink()


def _command(traces: Path, ranks: int) -> list[str]:
    return [
        sys.executable,
        *("-m", "traceparse", "capture", "--out", os.fspath(traces), "--steps", _STEPS),
        *("--count-flop", "--"),
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *(f"--nproc-per-node={ranks}", "-m", "traceparse.capture.demo_train"),
    ]


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    environment["OMP_NUM_THREADS"] = "1"
    # The ranks talk on this machine only; else gloo looks up the machine's own name.
    names = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    if names:
        environment.setdefault("GLOO_SOCKET_IFNAME", names[0])
    return environment


def _run(command: list[str], log: Path, timeout_s: float) -> int | None:
    """Return the command's exit status, ``None`` if it took too long; leave no child behind."""
    with log.open("wb") as sink:
        sink.write(f"{_FIRST_WORDS}{shlex.join(command)}\n".encode())
        sink.flush()
        child = subprocess.Popen(  # noqa: S603 - our own interpreter, module and words
            command,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.poll() is None:
                _end(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    # Asked first: torchrun's workers are in sessions of their own and would outlive a kill.
    child.terminate()
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _check_traces(traces: Path, log: Path, ranks: int) -> None:
    missing = [str(rank) for rank in range(ranks) if not (traces / trace_name(rank)).exists()]
    if missing:
        raise CaptureError(
            f"{log}: the demo's training left no trace of rank {', '.join(missing)}: "
            f"{_last_words(log)}"
        )


def _last_words(log: Path) -> str:
    """Return the first exception that a log tells of, else the signal, else the last line."""
    text = log.read_text("utf-8", "replace").partition("\n")[2]
    # torchrun lists the signals by rank, and the root cause behind them.
    told = _EXCEPTION.findall(text)[:1] or _SIGNAL.findall(text)[-1:] or text.split("\n")
    return next((line.strip() for line in reversed(told) if line.strip()), "it printed nothing")
