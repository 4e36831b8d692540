"""How a command's processes are told to capture: by their environment, and by nothing else."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Told", "told", "with_capture", "without_capture"]

_OPTIONS = "TRACEPARSE_CAPTURE"  # what to capture, as JSON
_HOME = "TRACEPARSE_HOME"  # the folder that holds this package
_PYTHON = "TRACEPARSE_PYTHON"  # the one that the analysis is installed for
_HOOK = os.fspath(Path(__file__).with_name("inject"))
_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Told:
    """What ``traceparse capture`` tells the processes of the command that it runs."""

    directory: str
    steps: tuple[int, int]  #: first and last
    step_on: str | None = None  #: ``module:function`` whose calls are steps
    ranks: str = "all"
    stacks: bool = False
    memory: bool = False
    overwrite: bool = False
    with_host: bool = False
    count_flop: bool = False
    model_flop_per_step: int | None = None
    params: int | None = None
    tokens_per_step: int | None = None
    samples_per_step: int | None = None


def with_capture(environment: Mapping[str, str], what: Told) -> dict[str, str]:
    """Return the environment of a command whose processes capture."""
    path = environment.get("PYTHONPATH")
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join([_HOOK, path] if path else [_HOOK]),
        _OPTIONS: json.dumps(asdict(what)),
        _HOME: os.fspath(_PACKAGE),
        _PYTHON: sys.executable,
    }


def told(environment: Mapping[str, str]) -> Told | None:
    """Return what this process is told, if it is."""
    text = environment.get(_OPTIONS)
    if not text:
        return None
    options: dict[str, Any] = json.loads(text)
    first, last = options.pop("steps")
    return Told(steps=(first, last), **options)


def without_capture(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process of our own, which captures nothing."""
    kept = {name: value for name, value in environment.items() if name != _OPTIONS}
    path = [each for each in kept.get("PYTHONPATH", "").split(os.pathsep) if each]
    path = [each for each in path if each != _HOOK]
    # last: whatever this package is found by, it is found by the child as well
    kept["PYTHONPATH"] = os.pathsep.join([*path, kept.get(_HOME) or os.fspath(_PACKAGE)])
    return kept
