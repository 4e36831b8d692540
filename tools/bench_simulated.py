"""Simulated jobs for benchmarks: each made once, and kept for the next time."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tools.bench_facts import BenchError
from tools.bench_runs import RunFailedError, run_python

__all__ = ["simulated"]

ROOT = Path(__file__).resolve().parent.parent


def simulated(kind: str, stem: str, words: Sequence[str], rooms: Iterable[str] = ()) -> Path:
    """Return a folder of ``bench-out/KIND`` with what ``simulate.py`` makes of some words.

    It is called ``stem`` and a hash of what makes it: the simulator, and the modules of these
    rooms of traceparse.

    Raises
    ------
    BenchError
        It cannot be simulated.
    """
    script = ROOT / "tools" / "simulate.py"
    sources = [*script.parent.glob("simulate*.py")]
    for room in rooms:
        sources += (ROOT / "traceparse" / room).glob("*.py")
    made_by = hashlib.sha256()
    for path in sorted(sources):
        made_by.update(path.read_bytes())
    name = f"{stem}-{made_by.hexdigest()[:8]}"
    made = ROOT / "bench-out" / kind / name
    if not made.exists():
        print(f"simulating {made.relative_to(ROOT)}", file=sys.stderr)
        temporary = made.with_name(f"{name}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            run_python([str(script), *words, "--out", str(temporary)])
        except RunFailedError as error:
            raise BenchError(f"{name} cannot be simulated: {error}") from error
        temporary.replace(made)
    return made
