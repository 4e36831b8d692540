"""The benchmark ``capture``: what it costs a training job, in recorded steps and outside."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tools.bench_outcome import Outcome
from tools.bench_runs import Sample, run_python, take_turns
from tools.bench_table import Column, Goal, fixed, over, process_figures

__all__ = ["capture", "paired"]

ROOT = Path(__file__).resolve().parent.parent
_TRAIN = str(ROOT / "tools" / "train.py")
_PLAIN, _CONTEXT, _COMMAND = "no capture", "traceparse.profile", "traceparse capture"
_TURNS = "one process, in turns"
_BLOCK = 5  # steps with capture, and as many without
_MANY = 5  # times as many steps as otherwise, as it is about less
_SETTLED = 2  # steps before this one are of a process that warms up
_AROUND = 2  # before the recorded steps: the look at the model, and making the profiler ready


def capture(*, num_steps: int, recorded: int, hidden: int, repeat: int) -> Outcome:
    """Time each step of a training job, with capture and without.

    Outside are all steps but those that are recorded; their median is what a job pays for
    having capture on. All of them together have also what is done once: looking at the model,
    and the trace being packed beside the job.

    Processes that do the same differ by several percent. So the promise is measured in one: a
    few steps with a capture that records nothing yet, then a few without, and so on.
    """
    first = num_steps // 2
    steps = range(first, first + recorded)
    network = ["--hidden", str(hidden), "--layers", "4"]
    shape = ["--num-steps", str(num_steps), *network]
    results = take_turns(
        {
            _PLAIN: lambda: _run([], shape, steps),
            _CONTEXT: lambda: _run(["--capture"], shape, steps),
            _COMMAND: lambda: _run(["capture"], shape, steps),
            _TURNS: lambda: _in_turns(network, _MANY * num_steps),
        },
        repeat,
    )
    rows = process_figures(results)
    for name, result in results.items():
        rows[name] |= {key: result.median(key) for key in ("outside_s", "inside_s", "all_s")}
        if name == _TURNS:
            rows[name]["outside_x"] = result.median("ratio")
            continue
        rows[name]["outside_x"] = paired(result.samples, results[_PLAIN].samples)
        rows[name]["inside_x"] = over(rows[name]["inside_s"], rows[_PLAIN]["inside_s"])
    return Outcome(
        "capture",
        f"a network of 4 layers, {hidden} wide: {num_steps} steps, {recorded} of them recorded",
        {"num_steps": num_steps, "recorded": recorded, "hidden": hidden},
        results,
        rows,
        (
            Column("step outside ms", "outside_s", fixed(3, scale=1e3)),
            Column("x", "outside_x", fixed(4)),
            Column("step inside ms", "inside_s", fixed(3, scale=1e3)),
            Column("x", "inside_x", fixed(3)),
            Column("all outside s", "all_s", fixed(3)),
            Column("whole process s", "process_s", fixed(2)),
        ),
        [_goal(rows[_TURNS]["outside_x"])],
        "x: over no capture, the median of the ratios within each round; in turns, over the "
        "steps without capture of the same process.",
    )


def paired(samples: Sequence[Sample], plain: Sequence[Sample]) -> float | None:
    """Return the median of the ratios within rounds: what a machine does slowly hits both."""
    ratios = [
        own["outside_s"] / other["outside_s"]
        for own, other in zip(samples, plain, strict=False)
    ]
    return median(ratios) if ratios else None


def _goal(ratio: float | None) -> Goal:
    return Goal(
        "% by which steps are slower that are not recorded",
        None if ratio is None else 100 * (ratio - 1),
        1.0,
        is_least=False,
    )


def _in_turns(network: Sequence[str], num_steps: int) -> Sample:
    """Compare steps of one process, with a capture that will begin after the last of them."""
    with tempfile.TemporaryDirectory(prefix="bench-capture-") as folder:
        never = str(num_steps + 9)
        options = ["--capture", str(Path(folder, "traces")), "--steps", never, never]
        options += ["--num-steps", str(num_steps), "--turns", str(_BLOCK)]
        sample = run_python([_TRAIN, *network, "--out", folder, *options])
        seconds = json.loads(Path(folder, "rank0.json").read_text())["seconds"]
    settled = list(enumerate(seconds))[2 * _BLOCK :]
    without, captured = (
        median(took for step, took in settled if step // _BLOCK % 2 == turn) for turn in (0, 1)
    )
    return {**sample, "outside_s": captured, "ratio": captured / without}


def _run(how: Sequence[str], shape: Sequence[str], steps: range) -> Sample:
    first, last = str(steps[0]), str(steps[-1])
    with tempfile.TemporaryDirectory(prefix="bench-capture-") as folder:
        traces = str(Path(folder, "traces"))
        words = [_TRAIN, *shape, "--out", folder]
        if how == ["--capture"]:
            words += ["--capture", traces, "--steps", first, last]
        elif how:
            options = ["--out", traces, "--steps", f"{first}-{last}", "--quiet"]
            words = ["-m", "traceparse", "capture", *options, "--", sys.executable, *words]
        sample = run_python(words)
        seconds = json.loads(Path(folder, "rank0.json").read_text())["seconds"]
    outside = [
        took
        for step, took in enumerate(seconds)
        if step >= _SETTLED and not steps[0] - _AROUND <= step <= steps[-1] + 1
    ]
    return {
        **sample,
        "outside_s": median(outside),
        "all_s": sum(took for step, took in enumerate(seconds) if step not in steps),
        "inside_s": median(seconds[step] for step in steps),
    }
