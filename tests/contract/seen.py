"""Look at a report as the oracle writes its own: the figures that both claim, and no more."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from traceparse.engine import analyze

TIMES = (
    *("start_ns", "end_ns", "span_ns", "busy_ns", "compute_ns", "comm_ns", "copy_ns"),
    *("overlap_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns"),
)
# said of what a job worked, against its peak: true of whole traces as of damaged ones
OF_WORK = frozenset(
    {
        *("peak_unknown", "flop_unknown", "model_flop_unknown", "model_flop_estimated"),
        *("nothing_counted", "kernels_unattributed"),
    }
)
# said of what ranks did together: whole traces of one rank have it as damaged ones do,
# and tests/contract/test_across_bad_input.py says which is said of what
OF_COMMUNICATION = frozenset(
    {
        *("no_communication", "communication_unsplit", "contention_unknown"),
        *("collectives_unmatched", "collectives_ambiguous", "rank_not_in_group"),
        *("replay_impossible", "replay_unexplained", "what_if_unknown"),
        *("what_if_doubtful", "what_if_unlike"),
    }
)
COUNTS = ("count", "time_ns", "unlinked_count", "unlinked_time_ns")


def seen(path: Path) -> dict[str, Any]:
    """Analyze one file and say what the report has of it, in the oracle's form."""
    return as_oracle(analyze(path, jobs=1).to_dict())


def as_oracle(report: dict[str, Any]) -> dict[str, Any]:
    """Reduce a report of one file to what ``expected.json`` holds."""
    (file,) = report["files"]
    lost = Counter(file["skipped"])
    return {
        "rank": file["rank"],
        "world_size": report["run"]["world_size"],
        "skipped": {
            reason: lost[reason]
            for reason in sorted(lost)
            if reason.startswith(("time_", "duration_")) and lost[reason]
        },
        "devices": sorted(
            map(device, report["devices"]), key=lambda found: str(found["device"])
        ),
    }


def device(found: dict[str, Any]) -> dict[str, Any]:
    """Reduce one entry of ``devices``; kernels of a CPU are no kernels."""
    counts = {name: found["kernels"][name] for name in COUNTS}
    return {
        "device": found["device"],
        "window": found["window"],
        "steps": [step(entry) for entry in found["steps"]],
        "kernels": None if found["device"] == "cpu" else counts,
    }


def step(found: dict[str, Any]) -> dict[str, Any]:
    """Gather the TIMES of a step, which stand beside its other fields; all of them or none."""
    values = [found[name] for name in TIMES]
    absent = all(value is None for value in values)
    return {
        "step": found["step"],
        "name": found["name"],
        "open_ended": found["open_ended"],
        "times": None if absent else dict(zip(TIMES, values, strict=True)),
    }


def partition_errors(found: dict[str, Any]) -> list[str]:
    """Name every identity of the contract that some account of the report breaks."""
    accounts = [
        entry
        for part in found["devices"]
        for entry in (part["window"], *(cut["times"] for cut in part["steps"]))
        if entry is not None
    ]
    return [f"{name}: {entry}" for entry in accounts for name in broken(entry)]


def broken(entry: dict[str, int]) -> list[str]:
    """Name the identities that one account breaks."""
    worked = entry["compute_ns"] + entry["exposed_comm_ns"] + entry["exposed_copy_ns"]
    claims = {
        "span is end - start": entry["span_ns"] == entry["end_ns"] - entry["start_ns"],
        "parts add up": worked + entry["idle_ns"] == entry["span_ns"],
        "busy + idle is span": entry["busy_ns"] + entry["idle_ns"] == entry["span_ns"],
        "overlap + exposed is comm": entry["overlap_ns"] + entry["exposed_comm_ns"]
        == entry["comm_ns"],
        "exposed copy is copy": entry["exposed_copy_ns"] <= entry["copy_ns"],
        "nothing is negative": all(entry[name] >= 0 for name in TIMES),
    }
    return [name for name, holds in claims.items() if not holds]
