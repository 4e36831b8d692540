"""How long, and in how much memory, does traceparse take a file that was made to hurt it?

``python tools/hostile.py`` writes each hostile file (tools/hostile_make.py) into a temporary
folder, analyzes it in a process of its own and prints what that took. The exit status is 1 if
any took more than 1 GB or 60 seconds, or did not end with its message.

``--quick`` makes them a hundredth of the size, at which not all of them are refused; ``--only
WORDS`` picks by name; ``--list`` names them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import hostile_make, hostile_many, hostile_packed, hostile_torn  # noqa: E402
from tools.hostile_parts import INPUTS, Hostile  # noqa: E402

__all__ = ["Measured", "main", "measure"]

# importing them is what puts their files on the list
_MAKERS = (hostile_make, hostile_many, hostile_packed, hostile_torn)
CHILD = ROOT / "tools" / "hostile_child.py"
MOST_S = 60.0
MOST_BYTES = 10**9
_PATIENCE_S = 120.0
_QUICK = 0.01
_MOST_LINES = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """What one hostile file took, and how it ended; ``said`` are lines for people."""

    hostile: Hostile
    scale: float
    disk_bytes: int
    inflated_bytes: int
    seconds: float
    peak_rss_bytes: int
    status: str
    said: Sequence[str]

    @property
    def faults(self) -> list[str]:
        """What is not as it has to be."""
        told = [line for line in self.said if self.hostile.words in line] or [""]
        claims = {
            f"over {MOST_S:g} s": self.seconds <= MOST_S,
            f"over {MOST_BYTES / 1e6:g} MB": self.peak_rss_bytes <= MOST_BYTES,
            f"ended with {self.status}": self.status in ("0", "1"),
        }
        if self.scale == 1:
            claims |= {
                f"not status {self.hostile.status}": self.status == str(self.hostile.status),
                f"does not say {self.hostile.words!r}": self.hostile.words in told[0],
            }
        return [fault for fault, holds in claims.items() if not holds]


def measure(
    hostile: Hostile, scale: float, folder: Path, *, patience_s: float = _PATIENCE_S
) -> Measured:
    """Write one hostile file, analyze it in a fresh process, remove it."""
    path = folder / f"rank0_trace{hostile.ending}"
    result, errors = folder / "result", folder / "errors"
    result.unlink(missing_ok=True)
    inflated = hostile.write(path, scale)
    size = path.stat().st_size
    begun = time.perf_counter()
    try:
        status = _run(path, folder, patience_s)
    finally:
        path.unlink()
    said = _lines(errors)
    if result.exists():
        found = json.loads(result.read_text())
        said = [found["message"]] if found["message"] else said
        peak, status = found["peak_rss_bytes"], str(found["status"])
    else:
        peak = 0
    seconds = time.perf_counter() - begun
    return Measured(hostile, scale, size, inflated, seconds, peak, status, said)


def _run(path: Path, folder: Path, patience_s: float) -> str:
    """Run the child; say how it ended, if it cannot say so itself."""
    results = [str(folder / "out"), str(folder / "result")]
    command = [sys.executable, "-P", str(CHILD), str(path), *results]
    with (folder / "errors").open("wb") as file, (folder / "output").open("wb") as output:
        child = subprocess.Popen(
            command,
            stdout=output,
            stderr=file,
            env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        )
        try:
            status = child.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            return f"killed after {patience_s:g} s"
        finally:
            child.kill()
            child.wait()
    return f"crashed ({status})" if status >= 0 else f"died of signal {-status}"


def _lines(errors: Path) -> list[str]:
    """Return what was said of this file: not the names of written files, and the like."""
    lines = errors.read_text(errors="replace").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("wrote ")]


def _row(found: Measured) -> str:
    return (
        f"{found.hostile.name:<62} {found.disk_bytes / 1e6:>8.1f} "
        f"{found.inflated_bytes / 1e6:>9.1f} {found.seconds:>6.1f} "
        f"{found.peak_rss_bytes / 1e6:>6.0f}  {found.status}"
    )


def _show(found: Measured) -> None:
    print(_row(found))
    for line in found.said[:_MOST_LINES]:
        print(f"    {line[:300]}")
    if left := len(found.said[_MOST_LINES:]):
        print(f"    … {left} more lines")
    for fault in found.faults:
        print(f"    FAULT: {fault}")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hostile.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the size")
    parser.add_argument("--scale", type=float, help="this part of the size")
    parser.add_argument("--only", nargs="+", default=[""], help="those with such words")
    parser.add_argument(
        "--patience", type=float, default=_PATIENCE_S, help="seconds until one is killed"
    )
    parser.add_argument("--list", action="store_true", help="name them and end")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the arguments ask for and return the exit status."""
    wanted = _parser().parse_args(arguments)
    scale = wanted.scale or (_QUICK if wanted.quick else 1.0)
    chosen = [found for found in INPUTS if any(word in found.name for word in wanted.only)]
    if wanted.list:
        print("\n".join(found.name for found in chosen))
        return 0
    assert _MAKERS
    print(f"{'input':<62} {'disk MB':>8} {'inflated':>9} {'s':>6} {'peak':>6}  status")
    faulty = 0
    for found in chosen:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            measured = measure(found, scale, Path(folder), patience_s=wanted.patience)
        _show(measured)
        faulty += bool(measured.faults)
    print(f"{len(chosen)} files, {faulty} with faults")
    return int(bool(faulty))


if __name__ == "__main__":
    sys.exit(main())
