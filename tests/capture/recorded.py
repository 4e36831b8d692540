"""What a capture left: its spans, its facts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.capture.loops import read

_ROOT = Path(__file__).parents[2]

#: Ranks talk on this machine only; else gloo looks up the machine's own name.
LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo0" if sys.platform == "darwin" else "lo"}


def events(trace: Path | None) -> list[dict[str, Any]]:
    return [event for event in read(trace)["traceEvents"] if event["ph"] == "X"]


def within_steps(trace: Path | None, name: str) -> dict[str, int]:
    """Count events of a name in each span of a step, in the order of the steps."""
    every = events(trace)
    spans = [event for event in every if event["name"].startswith("ProfilerStep#")]
    return {
        span["name"]: sum(
            event["name"] == name and 0 <= event["ts"] - span["ts"] < span["dur"]
            for event in every
        )
        for span in sorted(spans, key=lambda span: float(span["ts"]))
    }


def run_python(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the tests can be imported."""
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **LOOPBACK, "PYTHONPATH": os.fspath(_ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )
