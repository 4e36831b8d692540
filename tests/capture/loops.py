"""Small loops under capture, and what is asked of what they leave."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from traceparse.capture import profile
from traceparse.capture.optimizers import OPTIMIZERS


def work() -> None:
    torch.mm(torch.ones(4, 8), torch.ones(8, 2))


def loop(directory: Path, num_steps: int, **options: Any) -> profile:
    with profile(directory, **options) as prof:
        for _ in range(num_steps):
            work()
            prof.step()
    return prof


def read(path: Path | None) -> dict[str, Any]:
    assert path is not None
    with gzip.open(path, "rt", encoding="utf-8") as file:
        trace: dict[str, Any] = json.load(file)
    return trace


def facts_beside(path: Path | None) -> dict[str, Any]:
    assert path is not None
    name = path.name.replace("_trace.json.gz", "_facts.json")
    facts: dict[str, Any] = json.loads(path.with_name(name).read_text("utf-8"))
    return facts


def step_names(path: Path | None) -> list[str]:
    spans = [
        event
        for event in read(path)["traceEvents"]
        if event["name"].startswith("ProfilerStep") and event["ph"] == "X"
    ]
    return [span["name"] for span in sorted(spans, key=lambda span: float(span["ts"]))]


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def kept_names(ranks: Iterable[int]) -> list[str]:
    """Return what a capture leaves in its directory, and nothing else."""
    return sorted(
        f"rank{rank}_{what}" for rank in ranks for what in ("facts.json", "trace.json.gz")
    )


def nobody_listens() -> None:
    """Forget whoever listens to optimizers."""
    OPTIMIZERS._listeners.clear()
    OPTIMIZERS._on_made = OPTIMIZERS._late = None
