"""What a timing is worth nothing without: the file, the machine, the versions."""

from __future__ import annotations

import os
import platform
import subprocess
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tools.bench_child import opener

__all__ = [
    "BenchError",
    "default_traces",
    "machine",
    "shared_traces",
    "size_of",
    "trace_facts",
    "versions",
]

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = 1 << 20
_SHARED = ("hta-nccl-data-a100.json.gz", "b200-eager.json.gz", "h100-falconsai-vit.json.gz")
_STORED = (
    "gloo-2rank/rank0_trace.json.gz",
    "hand/three-streams/k-old.json",
)
# HolisticTraceAnalysis is the name that traceinsight had until 0.5
_PACKAGES = (
    "HolisticTraceAnalysis",
    "isal",
    "msgspec",
    "numpy",
    "orjson",
    "pandas",
    "pyarrow",
    "torch-tb-profiler",
    "traceinsight",
    "traceparse",
    "zstandard",
)


class BenchError(Exception):
    """What keeps a benchmark from running, in one line."""


def shared_traces() -> Path:
    """Return where real traces are: where the tests look for them too."""
    return Path(os.environ.get("TRACEPARSE_SHARED_TRACES", ROOT.parent / "shared" / "traces"))


def default_traces() -> list[Path]:
    """Return what traces are made of by default: three shared ones, or two of this project.

    The shared ones have collectives with their arguments (A100), Python frames and shapes
    (B200), and both with memory (H100). The stored ones are a capture of gloo on a CPU and
    one drawn by hand, for the device.
    """
    shared = shared_traces()
    traces = [shared / name for name in _SHARED]
    if all(path.exists() for path in traces):
        return traces
    return [ROOT / "fixtures" / name for name in _STORED]


def size_of(path: Path) -> int:
    """Return how many bytes of JSON the file holds; reading them, fill the page cache."""
    try:
        with opener(path)() as file:
            return sum(len(block) for block in iter(lambda: file.read(_BLOCK), b""))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise BenchError(f"{path}: cannot be read: {reason}; give another PATH") from error


def trace_facts(path: Path) -> dict[str, Any]:
    """Return the name and sizes of a trace file."""
    uncompressed = size_of(path)
    return {
        "name": path.name,
        "path": str(path),
        "bytes": path.stat().st_size,
        "uncompressed_bytes": uncompressed,
    }


def machine() -> dict[str, Any]:
    """Return what ran the benchmark."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    return {
        "cpu": _cpu_name(),
        "num_cpus": len(usable) or os.cpu_count(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown")


def versions() -> dict[str, str]:
    """Return the versions of what is timed and of what it stands on, if installed."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    commit = _commit()
    return {**found, "commit": commit} if commit else found


def _commit() -> str | None:
    """Return the commit of this checkout, marked when it was changed since."""
    try:
        command = ["git", "describe", "--always", "--dirty"]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout.strip()
