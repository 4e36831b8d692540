"""Is a report still what it was? Two documents field by field, numbers within a tolerance.

Adding a field is free (report contract), so what the older one has not is not looked at. Rows
of lists are matched by what they are of, wherever they stand. Texts for people hold numbers
that round otherwise, and are not compared, nor names of files and notes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from traceparse.run.check.values import is_number

__all__ = ["Difference", "Tolerance", "differences"]

Tolerance: TypeAlias = float | Mapping[str, float]

_TEXTS: Final = frozenset(
    {"advice", "argv", "detail", "evidence", "message", "source", "title", "verdict"}
)
_IGNORED: Final = ("generator.*", "notes*", "files*.path")
# what rows of a list are of: of a list that is not here, its place
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "by_dtype": ("dtype",),
    "changes": ("change", "ranks"),
    "collectives": ("process_group", "ranks", "collective", "dtype", "message_bytes"),
    "copies": ("direction", "memory"),
    "devices": ("rank", "device"),
    "files": ("rank",),
    "findings": ("code",),
    "roofline": ("op", "shapes", "dtype"),
    "steps": ("step",),
    "top_kernels": ("name", "op", "shapes", "kind"),
    "waterfall": ("name",),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not what it was; ``ratio`` is the relative change of a number."""

    path: str
    before: object
    after: object
    ratio: float | None = None


def differences(
    before: object, after: object, *, tolerance: Tolerance = 0.0, ignore: Sequence[str] = ()
) -> Iterator[Difference]:
    """Yield what differs by more than a tolerance, as ``report.json`` has it.

    Parameters
    ----------
    before, after
        The stored document, and the one of today.
    tolerance
        The relative change of a number that is none. By patterns of paths, such as
        ``{"*_ns": 0.02}``, the first one that fits counts, and 0 where none does.
    ignore
        Patterns of paths that are not compared, such as ``"devices*.steps*"``.
    """
    limits = tolerance if isinstance(tolerance, Mapping) else {"*": tolerance}
    yield from _Differences(limits, (*_IGNORED, *ignore)).of(before, after, "", "")


class _Differences:
    def __init__(self, limits: Mapping[str, float], ignored: Sequence[str]) -> None:
        self._limits = limits
        self._ignored = ignored

    def of(self, before: object, after: object, path: str, name: str) -> Iterator[Difference]:
        if name in _TEXTS or any(fnmatchcase(path, pattern) for pattern in self._ignored):
            return
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from self._objects(before, after, path)
        elif isinstance(before, list) and isinstance(after, list):
            yield from self._lists(before, after, path, name)
        elif is_number(before) and is_number(after):
            yield from self._numbers(before, after, path)
        elif type(before) is not type(after) or before != after:
            yield Difference(path, before, after)

    def _objects(
        self, before: Mapping[str, Any], after: Mapping[str, Any], path: str
    ) -> Iterator[Difference]:
        for name, value in before.items():
            inner = f"{path}.{name}" if path else name
            if name in after:
                yield from self.of(value, after[name], inner, name)
            else:
                yield Difference(inner, value, None)

    def _lists(
        self, before: list[Any], after: list[Any], path: str, name: str
    ) -> Iterator[Difference]:
        was, now = _by_key(before, name), _by_key(after, name)
        if was is None or now is None:
            was, now = dict(enumerate(before)), dict(enumerate(after))
        places = {key: place for place, key in enumerate(was)}
        for key, value in was.items():
            inner = f"{path}[{places[key]}]"
            if key in now:
                yield from self.of(value, now[key], inner, "")
            else:
                yield Difference(inner, _short(value), None)
        for key in (key for key in now if key not in was):
            yield Difference(f"{path}[]", None, _short(now[key]))

    def _numbers(self, before: Any, after: Any, path: str) -> Iterator[Difference]:  # noqa: ANN401
        if before == after:
            return
        ratio = abs(after - before) / abs(before) if before else None
        limit = next(
            (of for pattern, of in self._limits.items() if fnmatchcase(path, pattern)), 0
        )
        if ratio is None or ratio > limit:
            signed = None if ratio is None else ratio if after > before else -ratio
            yield Difference(path, before, after, signed)


def _by_key(rows: list[Any], name: str) -> dict[Hashable, Any] | None:
    """Return rows by what they are of; ``None`` where that does not tell them apart."""
    keys = _KEYS.get(name)
    if keys is None or not all(isinstance(row, Mapping) for row in rows):
        return None
    found: dict[Hashable, Any] = {repr([row.get(key) for key in keys]): row for row in rows}
    return found if len(found) == len(rows) else None


def _short(row: object) -> object:
    """Return of a row that is gone, or new, what tells it from others."""
    if not isinstance(row, Mapping):
        return row
    telling = {key for keys in _KEYS.values() for key in keys}
    return {key: value for key, value in row.items() if key in telling} or row
