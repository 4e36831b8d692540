"""Make capture fail in every way there is, and say what the job did, and what its log says.

``python tools/capture_faults.py [FAULT ...]`` trains on this machine, each time with another
fault, and prints a row for each: whether the job went on and every loss is the same bit for bit
as without capture (of jobs that end early by themselves: whether they ended as they do without
capture), what was logged, and which traces are there. Exit status 1 if a job did otherwise.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.capture_matrix import launch, losses_in  # noqa: E402

__all__ = ["FAULTS", "main"]

_OURS = re.compile(r"^(?:\[rank\d+\]: ?)?traceparse: (.*)$", re.M)
_RANKS = 2


def _raising(where: Any, name: str, error: Exception) -> None:  # noqa: ANN401 - a class or module
    def broken(*_args: object, **_kwargs: object) -> None:
        raise error

    setattr(where, name, broken)


def _break_torch(name: str) -> Callable[[Path], None]:
    def fault(_traces: Path) -> None:
        from torch.profiler import _KinetoProfile  # noqa: PLC0415

        _raising(_KinetoProfile, name, RuntimeError(f"{name} is broken"))

    return fault


def _break(module: str, name: str, error: Exception) -> Callable[[Path], None]:
    def fault(_traces: Path) -> None:
        from importlib import import_module  # noqa: PLC0415

        _raising(import_module(module), name, error)

    return fault


def _break_recorder(name: str) -> Callable[[Path], None]:
    def fault(_traces: Path) -> None:
        from traceparse.capture.recorder import Recorder  # noqa: PLC0415

        _raising(Recorder, name, RuntimeError(f"{name} is broken"))

    return fault


def _no_packer(_traces: Path) -> None:
    from traceparse.capture import keeper  # noqa: PLC0415

    keeper._MODULE = "no.such.module"


def _trace_is_there(traces: Path) -> None:
    traces.mkdir(parents=True, exist_ok=True)
    for rank in range(_RANKS):
        (traces / f"rank{rank}_trace.json.gz").write_text("precious")


def _no_directory(traces: Path) -> None:
    traces.parent.mkdir(parents=True, exist_ok=True)
    traces.touch()


def _other_profiler(steps: range) -> Callable[[Path], None]:
    """Let the job have a profiler of its own in some of its steps."""

    def fault(_traces: Path) -> None:
        import torch  # noqa: PLC0415

        from tools import train  # noqa: PLC0415

        other = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
        forward = train.Network.forward

        calls: list[None] = []

        def with_profiler(self: Any, words: Any) -> Any:  # noqa: ANN401
            if len(calls) == steps.start:
                other.start()
            if len(calls) == steps.stop:
                other.stop()
                assert len(other.key_averages()), "the other profiler recorded nothing"
            calls.append(None)
            return forward(self, words)

        train.Network.forward = with_profiler  # type: ignore[method-assign]

    return fault


_FULL = OSError(28, "No space left on device")
FAULTS: dict[str, Callable[[Path], None]] = {
    "the profiler cannot be made": _break_torch("__init__"),
    "it cannot be made ready": _break_torch("prepare_trace"),
    "it cannot start": _break_torch("start_trace"),
    "it cannot stop": _break_torch("stop_trace"),
    "it cannot write": _break_torch("export_chrome_trace"),
    "the span of a step cannot begin": _break_recorder("begin_step"),
    "the span of a step cannot end": _break_recorder("end_step"),
    "facts of the process fail": _break(
        "traceparse.capture.facts", "_versions", RuntimeError("no versions")
    ),
    "looking at the model fails": _break(
        "traceparse.capture.models", "_roots", RuntimeError("no models")
    ),
    "counting FLOP fails": _break("traceparse.work", "work_of", RuntimeError("no formulas")),
    "no process can be started": _break("subprocess", "Popen", _FULL),
    "the process that packs dies": _no_packer,
    "a trace is there already": _trace_is_there,
    "the directory is a file": _no_directory,
    "another profiler runs before and meanwhile": _other_profiler(range(5, 15)),
    "another profiler starts meanwhile": _other_profiler(range(11, 15)),
    "another profiler runs before": _other_profiler(range(5, 8)),
}
_SMALL_DISK = "the disk is full: 64 KB"
# What ends a job, told to tools/train.py: in step 11 of 20, of which 10 to 12 are recorded.
_ENDS = {
    "an exception in the loop of rank 1": "raise",
    "os._exit in rank 1": "exit",
    "rank 1 is killed": "kill",
    "SIGTERM to rank 1": "term",
    "SIGINT to rank 1": "int",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train with every fault and print the table; as a child, train with one."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["--fault"]:
        return _train_with(FAULTS[words[1]], words[2:])
    parser = argparse.ArgumentParser(prog="capture_faults.py", description=__doc__)
    parser.add_argument(
        "faults", nargs="*", metavar="FAULT", help="which of them (default: all)"
    )
    wanted = parser.parse_args(words)
    names = wanted.faults or [*FAULTS, _SMALL_DISK, *_ENDS]
    print("| fault | the job | logged by capture | traces |")
    print("|---|---|---|---|")
    good: list[bool] = []
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        place = Path(folder)
        expected = _alone(None, place / "plain")[1]
        for number, name in enumerate(names):
            own = place / str(number)
            if name in _ENDS:
                good.append(_ended_row(name, _ENDS[name], own))
            elif name in FAULTS:
                good.append(_row(name, own, expected))
            else:
                with _small_disk(own / "traces") as is_there:
                    good.append(not is_there or _row(name, own, expected))
    return 0 if all(good) else 1


def _train_with(fault: Callable[[Path], None], words: Sequence[str]) -> int:
    from tools import train  # noqa: PLC0415

    fault(Path(words[words.index("--capture") + 1]))
    sys.argv = ["train.py", *words]
    train.main()
    return 0


def _alone(fault: str | None, place: Path) -> tuple[subprocess.CompletedProcess[str], Any]:
    """Train in one process, with a fault in the room of capture or with no capture at all."""
    script = [str(ROOT / "tools" / "train.py")]
    capture = []
    if fault is not None:
        script = [str(ROOT / "tools" / "capture_faults.py")]
        script += ["--fault", fault] if fault in FAULTS else []
        capture = ["--capture", str(place / "traces"), "--steps", "10", "12", "--count-flop"]
    if fault not in FAULTS:
        script = [str(ROOT / "tools" / "train.py")]
    done = subprocess.run(
        [sys.executable, *script, "--out", str(place / "losses"), *capture],
        capture_output=True,
        text=True,
        check=False,
        # sums of several threads need not be the same twice, with no capture at all
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return done, losses_in(place / "losses")


def _row(fault: str, place: Path, expected: Any) -> bool:  # noqa: ANN401 - losses
    done, losses = _alone(fault, place)
    went_on = done.returncode == 0 and losses == expected
    verdict = "went on, same losses" if went_on else f"status {done.returncode}, OTHER"
    _print(fault, verdict, done.stderr, place / "traces")
    return went_on


def _ended_row(name: str, how: str, place: Path) -> bool:
    words = ["--wrapper", "ddp", "--fail", how, "--fail-at", "1:11"]
    plain = launch([*words, "--out", str(place / "plain")], ranks=_RANKS)
    traces = place / "traces"
    captured = launch(
        [*words, "--out", str(place / "captured")],
        ranks=_RANKS,
        capture=["--out", str(traces), "--steps", "10-12", "--quiet"],
    )
    same = captured.returncode == plain.returncode
    verdict = f"ended with status {captured.returncode}"
    _print(
        name, f"{verdict}, as without" if same else f"{verdict}, OTHER", captured.stderr, traces
    )
    return same and (traces / "rank0_trace.json.gz").exists()


def _print(name: str, verdict: str, said: str, traces: Path) -> None:
    logged = "; ".join(dict.fromkeys(_OURS.findall(said))) or "nothing"
    logged = logged.replace(f"{traces}/", "").replace(str(traces), "traces").replace("|", "/")
    files = sorted(traces.iterdir()) if traces.is_dir() else []
    whole = [path.name for path in files if path.name.endswith("trace.json.gz")]
    print(f"| {name} | {verdict} | {logged} | {', '.join(whole) or 'none'} |", flush=True)


@contextmanager
def _small_disk(traces: Path) -> Iterator[bool]:
    """Mount a file system of 64 KB, where one may; was there one?"""
    traces.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(traces)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        print("no file system of 64 KB: it may not be mounted here", file=sys.stderr)
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", str(traces)], check=True)


if __name__ == "__main__":
    sys.exit(main())
