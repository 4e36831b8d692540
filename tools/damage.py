"""Make every known kind of damage to a trace, and show what traceparse makes of it.

``python tools/damage.py --table`` analyzes all of them and prints a Markdown table;
``--write DIR`` leaves the damaged files in a folder for inspection. The kinds are numbered as
in section 5 of ``kineto-format.md``; each says which outcome is right.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import (  # noqa: E402
    damage_file,
    damage_header,
    damage_ids,
    damage_job,
    damage_text,
    damage_time,
)
from tools.damage_base import REGISTRY, Damaged, Expect, Kind, write  # noqa: E402
from tools.damage_clean import clean  # noqa: E402

__all__ = ["KINDS", "LOSSES", "Expect", "Kind", "main"]

# registering the kinds is what importing these modules is for
MODULES = (damage_file, damage_header, damage_ids, damage_job, damage_text, damage_time)
KINDS: tuple[Kind, ...] = tuple(sorted(REGISTRY, key=lambda kind: kind.number))
LOSSES = frozenset(
    {
        *("undecodable", "time_missing", "time_zero", "time_negative", "time_too_large"),
        *("duration_missing", "duration_negative"),
    }
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What traceparse made of one damaged input, in a few words."""

    verdict: str
    printed: str
    kept: str


def outcome(kind: Kind, layout: str, folder: Path) -> Outcome:
    """Analyze one kind of damage in one layout, and compare with what must come out."""
    from traceparse.engine import analyze  # noqa: PLC0415  making files needs no analyzer
    from traceparse.errors import TraceparseError  # noqa: PLC0415

    made = kind.build(layout)
    path = made.place(folder / "damaged")
    try:
        report = analyze(path).to_dict()
    except TraceparseError as error:
        text = str(error).replace(f"{folder}/damaged", "").lstrip("/")
        return Outcome("refused" if made.expect.refused else "LOST", text, "nothing")
    if made.expect.refused:
        return Outcome("NOT REFUSED", _printed(report, layout, folder), _kept(report))
    same = _windows(report) == _undamaged(made, layout, folder / "undamaged")
    kept = _kept(report) + (", TIMES equal" if same else ", TIMES DIFFER")
    return Outcome(
        _verdict(report) if same else "WRONG", _printed(report, layout, folder), kept
    )


def _undamaged(made: Damaged, layout: str, folder: Path) -> list[Any]:
    """Account for what must come out, written whole, one trace at a time."""
    from traceparse.engine import analyze  # noqa: PLC0415

    windows = []
    for number, trace in enumerate(made.kept):
        path = folder / f"{number}" / "trace.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(write(trace, "k-new" if layout == "any" else layout))
        windows += _windows(analyze(path).to_dict())
    return windows


def _windows(report: dict[str, Any]) -> list[Any]:
    return [
        (found["device"], found["window"], found["kernels"], found["steps"])
        for found in report["devices"]
    ]


def _lost(file: dict[str, Any]) -> Counter[str]:
    return Counter({reason: n for reason, n in file["skipped"].items() if reason in LOSSES})


def _verdict(report: dict[str, Any]) -> str:
    files = report["files"]
    if any(_lost(file) for file in files):
        return "skipped"
    codes = {note["code"] for note in report["notes"]}
    mended = any(file["repaired"] or file["truncated"] for file in files)
    return "repaired" if mended or "header_damaged" in codes else "kept whole"


def _kept(report: dict[str, Any]) -> str:
    events = sum(file["events"] for file in report["files"])
    lost = sum(sum(_lost(file).values()) for file in report["files"])
    return f"{events - lost} of {events} events" if lost else f"{events} events"


def _printed(report: dict[str, Any], layout: str, folder: Path) -> str:
    """Join the notes that a clean trace of that layout does not have."""
    notes = [note for note in report["notes"] if note["code"] not in _usual(layout)]
    said = dict.fromkeys(f"{note['code']}: {note['message']}" for note in notes)
    return "; ".join(said).replace(f"{folder}/damaged/", "") or "nothing"


@cache
def _usual(layout: str) -> frozenset[str]:
    """Return the codes of what is noted of the undamaged trace of a layout anyway."""
    from traceparse.engine import analyze  # noqa: PLC0415

    if layout == "any":
        return frozenset()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(write(clean(layout), layout))
        return frozenset(note.code for note in analyze(path).notes)


def rows() -> Iterator[tuple[Kind, list[tuple[str, Outcome]]]]:
    """Yield every kind with its outcome in each layout."""
    for kind in KINDS:
        found = []
        for layout in kind.layouts:
            with tempfile.TemporaryDirectory() as folder:
                found.append((layout, outcome(kind, layout, Path(folder))))
        yield kind, found


def print_table() -> None:
    """Print a row a kind, and how many inputs were repaired, skipped, refused, kept whole."""
    verdicts: Counter[str] = Counter()
    print("| # | how damaged | layouts | traceparse says | it keeps | verdict |")
    print("|--:|---|---|---|---|---|")
    for kind, found in rows():
        verdicts.update(result.verdict for _, result in found)
        first = found[0][1]
        layouts = " ".join(layout for layout, _ in found if layout != "any") or "-"
        verdict = ", ".join(dict.fromkeys(result.verdict for _, result in found))
        cells = (kind.number, kind.title, layouts, first.printed, first.kept, verdict)
        print(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    counts = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))
    numbers = len({kind.number for kind in KINDS})
    print(f"\n{numbers} kinds, {len(KINDS)} forms, {verdicts.total()} inputs: {counts}")


def _cell(value: object) -> str:
    text = "".join(char if char.isprintable() else "?" for char in str(value))
    return (text if len(text) <= 160 else f"{text[:157]}...").replace("|", "\\|") or "nothing"


def write_all(folder: Path) -> None:
    """Write every damaged input, and the clean trace of every layout."""
    for kind in KINDS:
        for layout in kind.layouts:
            kind.make(folder / f"{kind.number:02}-{kind.name}" / layout, layout)
    for layout in sorted({layout for kind in KINDS for layout in kind.layouts} - {"any"}):
        path = folder / "00-clean" / layout / "trace.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(write(clean(layout), layout))


def main() -> None:
    """Do what the arguments ask for."""
    assert MODULES
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true", help="analyze all, print a table")
    parser.add_argument("--write", metavar="DIR", type=Path, help="leave all files there")
    wanted = parser.parse_args()
    if wanted.write:
        write_all(wanted.write)
    if wanted.table:
        print_table()
    if not (wanted.write or wanted.table):
        parser.error("give --table or --write DIR")


if __name__ == "__main__":
    main()
