"""Print each finding with a job that has it, and one that nearly does and must not.

``python tools/findings_table.py`` simulates the jobs of ``tools/findings_cases.py``, analyzes
them and writes a table in Markdown; the status is 1 if one of them is not as it should be.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import traceparse  # noqa: E402
from tools.findings_cases import CASES, Case, Scene  # noqa: E402

__all__ = ["findings_of", "main", "report_of"]


def report_of(scene: Scene) -> Mapping[str, Any]:
    """Simulate a job, and analyze its traces."""
    with tempfile.TemporaryDirectory() as folder:
        scene.write(Path(folder))
        return traceparse.analyze(folder, jobs=1, **scene.options).to_dict()


def findings_of(case: Case, report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the findings of a report that a case is about."""
    return [
        one
        for one in report["findings"]
        if one["code"] == case.code and one["title"].endswith(case.title)
    ]


def _lines() -> Iterator[tuple[str, bool]]:
    yield "| finding | triggered by | wins back | nearly, and must not |", True
    yield "|---|---|---|---|", True
    for case in CASES:
        has, nearly = (report_of(scene) for scene in (case.triggered, case.nearly))
        found = findings_of(case, has)
        lost = found[0]["lost_ratio"] if found else None
        yield (
            f"| `{case.code}`{': ' + case.title if case.title else ''} "
            f"| {case.triggered.words}: {case.figures(has)} "
            f"| {'unknown' if lost is None else f'{100 * lost:.1f} %'} "
            f"| {case.nearly.words}: {case.figures(nearly)} |",
            bool(found) and not findings_of(case, nearly),
        )


def main() -> int:
    """Print the table and return the exit status."""
    is_good = True
    for line, is_as_told in _lines():
        print(line if is_as_told else f"{line} NOT SO")
        is_good &= is_as_told
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
