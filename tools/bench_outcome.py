"""What a benchmark gave: the text that is printed and the record that is kept. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.bench_runs import WARM_UP, Result
from tools.bench_table import Column, Figures, Goal, goals_text, table

__all__ = ["METHOD", "Outcome", "record", "text"]

METHOD = f"""\
Medians of {{repeat}} rounds after {WARM_UP} of warm-up. Every run is a fresh process, all take
turns in an order that rotates, and files are in the page cache.
spread: slowest less fastest, over the median. MB are 10^6 bytes."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was run on what, what it gave, and what had been promised.

    ``results`` and ``rows`` go by the same names; ``titles`` are for those that have another
    one in the table.
    """

    benchmark: str
    subject: str
    facts: Mapping[str, Any]
    results: Mapping[str, Result]
    rows: Mapping[str, Figures]
    columns: Sequence[Column]
    goals: Sequence[Goal]
    notes: str = ""
    titles: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_failed(self) -> bool:
        """Say whether any run did not do what it was to."""
        return any(result.status.startswith("failed") for result in self.results.values())


def text(outcome: Outcome, where: Mapping[str, Any]) -> str:
    """Write the table with all that is needed to believe it."""
    titles = {name: outcome.titles.get(name, name) for name in outcome.results}
    rows = {
        titles[name]: (result.status, outcome.rows[name])
        for name, result in outcome.results.items()
    }
    absent = [
        f"{titles[name]}: {result.status}"
        for name, result in outcome.results.items()
        if result.status != "ok"
    ]
    return "\n".join(
        [
            f"{outcome.benchmark}: {outcome.subject}",
            *_place(where),
            "",
            table(outcome.benchmark, outcome.columns, rows),
            *absent,
            "",
            goals_text(outcome.goals),
            "",
            METHOD.format_map(where),
            *filter(None, [outcome.notes]),
        ]
    )


def _place(where: Mapping[str, Any]) -> list[str]:
    host = where["machine"]
    before, after = host["load_average"]
    return [
        f"{host['cpu']}, {host['num_cpus']} CPUs, load average {before:.1f} before and "
        f"{after:.1f} after; {host['system']}; {host['python']}",
        ", ".join(f"{name} {version}" for name, version in where["versions"].items()),
    ]


def record(outcome: Outcome, where: Mapping[str, Any]) -> dict[str, Any]:
    """Return all there is to keep: facts, medians, every sample, every goal."""
    return {
        "benchmark": outcome.benchmark,
        **outcome.facts,
        **where,
        "warm_up": WARM_UP,
        "rows": {
            name: {
                "title": outcome.titles.get(name, name),
                "status": result.status,
                "medians": outcome.rows[name],
                "samples": result.samples,
            }
            for name, result in outcome.results.items()
        },
        "goals": [{**goal._asdict(), "is_met": goal.is_met} for goal in outcome.goals],
    }
