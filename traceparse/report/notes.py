"""What is worth saying beside the numbers, said once: notes and file health, grouped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from traceparse.errors import Note
from traceparse.ingest import LOSSES, FileHealth
from traceparse.units import format_count, format_number_of, rank_ranges

__all__ = ["NoteLine", "health_text", "note_lines"]

_MOST_APART = 4  # notes of one code on the whole run, such as on each of its process groups


@dataclass(frozen=True, slots=True)
class NoteLine:
    """Notes of one code in one line: where they apply (may be empty), and what they say."""

    code: str
    where: str
    message: str

    @property
    def text(self) -> str:
        """The place and the message, as one sentence."""
        return f"{self.where}: {self.message}" if self.where else self.message


def note_lines(notes: Sequence[Note]) -> list[NoteLine]:
    """Merge notes that say the same of several files or ranks.

    Those on the whole run stay apart, unless there are more of a code than anyone reads.
    """
    on_run: dict[str, set[str]] = {}
    for note in filter(_is_on_run, notes):
        on_run.setdefault(note.code, set()).add(note.message)
    groups: dict[tuple[str, str | None], list[Note]] = {}
    for note in notes:
        is_apart = _is_on_run(note) and len(on_run[note.code]) <= _MOST_APART
        key = (note.code, note.message if is_apart else None)
        groups.setdefault(key, []).append(note)
    return [_line(group) for group in groups.values()]


def _is_on_run(note: Note) -> bool:
    return note.rank is None and note.file is None


def health_text(file: FileHealth, said: Collection[str] = ()) -> str | None:
    """Say what is wrong with a file, or ``None``: truncated, events lost, events repaired.

    ``said`` has the codes of the notes on the file; what they say already is left out.
    """
    lost = {reason: n for reason, n in file.skipped.items() if reason in LOSSES}
    parts = {
        "truncated": "truncated" if file.truncated else "",
        "events_lost": _counts("lost", lost),
        "repaired": _counts("repaired", file.repaired),
    }
    text = "; ".join(part for code, part in parts.items() if part and code not in said)
    return text or None


def _line(group: Sequence[Note]) -> NoteLine:
    messages = list(dict.fromkeys(note.message for note in group))
    message = messages[0]
    where = _where(group)
    if where in message:
        where = ""
    if len(messages) > 1:
        message = f"{message} (and {len(messages) - 1:,} more like it in report.json)"
    return NoteLine(group[0].code, where, message)


def _where(group: Sequence[Note]) -> str:
    files = list(dict.fromkeys(note.file for note in group if note.file is not None))
    ranks = sorted({note.rank for note in group if note.rank is not None})
    if len(files) > 1:
        return f"{format_number_of(len(files), 'file')} (first: {files[0]})"
    if len(ranks) > 1:
        return f"ranks {rank_ranges(ranks)}"
    if files:
        return files[0]
    return f"rank {ranks[0]}" if ranks else ""


def _counts(verb: str, reasons: Mapping[str, int]) -> str:
    total = sum(reasons.values())
    parts = ", ".join(f"{format_count(n)} {reason}" for reason, n in reasons.items() if n)
    return f"{verb} {format_number_of(total, 'event')} ({parts})" if total else ""
