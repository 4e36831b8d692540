"""Capture two and four ranks in every way, and say what came of it.

``python tools/capture_matrix.py [--ranks 2 4] [--only WORD]`` trains by gloo on this machine,
wrapped in DDP or FSDP2, with and without activation checkpoints, compiled or not; each once
without capture, once with ``traceparse.profile`` in the loop and once under ``traceparse
capture``. It prints a row for each captured job: files, facts, what the analysis says, and
whether every loss is the same bit for bit as without capture. Exit status 1 if one is not, or a
file is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import traceparse  # noqa: E402

__all__ = ["TITLES", "Job", "launch", "losses_in", "main"]

_STEPS = (10, 12)
_TRAIN = ROOT / "tools" / "train.py"


@dataclass(frozen=True, slots=True)
class Job:
    """One way to train."""

    ranks: int
    wrapper: str
    checkpoint: str = "none"
    compiled: bool = False

    @property
    def name(self) -> str:
        """What the job is called."""
        return f"{self.wrapper}-{self.checkpoint}-{'compiled' if self.compiled else 'eager'}"

    @property
    def words(self) -> list[str]:
        """What the training script is told."""
        return [
            *("--wrapper", self.wrapper, "--checkpoint", self.checkpoint),
            *(["--compile"] if self.compiled else []),
        ]


def launch(
    words: Sequence[str], *, ranks: int, capture: Sequence[str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Train under torchrun, with ``traceparse capture`` and these options before it."""
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
        *(f"--nproc-per-node={ranks}", str(_TRAIN), *words),
    ]
    if capture is not None:
        command = [sys.executable, "-m", "traceparse", "capture", *capture, "--", *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def losses_in(folder: Path) -> dict[str, list[str]]:
    """Return the losses of each rank, exactly, by the names of their files."""
    return {
        path.name: json.loads(path.read_text())["losses"] for path in folder.glob("rank*.json")
    }


def _captured(job: Job, form: str, place: Path) -> tuple[dict[str, list[str]], Path]:
    traces = place / f"traces-{form}"
    steps = [str(step) for step in _STEPS]
    words = [*job.words, "--out", str(place / form)]
    if form == "command":
        options = ["--out", str(traces), "--steps", "-".join(steps), "--count-flop"]
        done = launch(words, ranks=job.ranks, capture=options)
    else:
        words += ["--capture", str(traces), "--steps", *steps, "--count-flop"]
        done = launch(words, ranks=job.ranks)
    if done.returncode:
        raise SystemExit(f"{job}: {form}: {done.stderr[-2000:]}")
    return losses_in(place / form), traces


def _row(job: Job, form: str, place: Path, expected: dict[str, list[str]]) -> tuple[str, bool]:
    losses, traces = _captured(job, form, place)
    files = sorted(path.name for path in traces.iterdir())
    wanted = sorted(
        f"rank{rank}_{kind}"
        for rank in range(job.ranks)
        for kind in ("facts.json", "trace.json.gz")
    )
    facts: dict[str, Any] = json.loads((traces / "rank0_facts.json").read_text())
    report = traceparse.analyze([traces], cache=None).to_dict()
    is_same = losses == expected and len(losses) == job.ranks
    told = [
        f"{job.ranks}",
        job.wrapper,
        job.checkpoint,
        "yes" if job.compiled else "no",
        form,
        f"{len(files)} of {len(wanted)}",
        "same" if is_same else "OTHER",
        *_facts_told(facts),
        *_report_told(report),
    ]
    return "| " + " | ".join(told) + " |", is_same and files == wanted


def _facts_told(facts: dict[str, Any]) -> list[str]:
    counted = facts.get("model_flop_per_rank_step")
    groups = {group["ranks"] for group in facts.get("groups", ())}
    return [
        f"{facts.get('num_params', 0):,}",
        {True: "yes", False: "no", None: "?"}[facts.get("checkpointing")],
        {True: "yes", False: "no", None: "?"}[facts.get("compiled")],
        ", ".join(sorted(groups)),
        f"{counted:,}" if counted else "unknown",
        f"{100 * facts['capture_overhead_ratio']:.0f} %",
    ]


def _report_told(report: dict[str, Any]) -> list[str]:
    steps = sorted({step["step"] for device in report["devices"] for step in device["steps"]})
    use = report["utilization"]
    first = next(step for step in report["devices"][0]["steps"] if not step["open_ended"])
    share = report["summary"]
    return [
        f"{steps[0]}-{steps[-1]}",
        f"{first['executed_flop']:,}",
        f"{first['recompute_flop']:,}" if first["recompute_flop"] is not None else "unknown",
        f"{use['mfu_source']}",
        f"{100 * share['exposed_comm_ratio']:.1f} %",
    ]


TITLES = (
    *("ranks", "wrapper", "checkpoints", "compiled", "form", "files", "losses"),
    *("parameters", "checkpointing", "compiled (fact)", "groups", "model FLOP counted a rank"),
    *("profiled slower by", "steps", "executed FLOP a step", "recomputed", "MFU source"),
    "exposed comm",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture every job and print the table."""
    parser = argparse.ArgumentParser(prog="capture_matrix.py", description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=(2, 4))
    parser.add_argument("--only", help="a part of the names of jobs, such as fsdp2-none-eager")
    wanted = parser.parse_args(arguments)
    jobs = [
        Job(ranks, wrapper, checkpoint)
        for ranks, wrapper, checkpoint in product(
            wanted.ranks, ("ddp", "fsdp2"), ("none", "reentrant", "other")
        )
    ]
    jobs += [Job(ranks, "ddp", compiled=True) for ranks in wanted.ranks]
    print("| " + " | ".join(TITLES) + " |")
    print("|" + "---|" * len(TITLES))
    good = []
    for job in jobs:
        if wanted.only and wanted.only not in job.name:
            continue
        with tempfile.TemporaryDirectory(prefix="capture-") as folder:
            place = Path(folder)
            plain = launch([*job.words, "--out", str(place / "plain")], ranks=job.ranks)
            if plain.returncode:
                raise SystemExit(f"{job}: without capture: {plain.stderr[-2000:]}")
            expected = losses_in(place / "plain")
            for form in ("context", "command"):
                row, is_good = _row(job, form, place, expected)
                print(row, flush=True)
                good.append(is_good)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
