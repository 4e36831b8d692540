"""Where a name of an expression leads in a report, and why what is there is unknown."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from traceparse.errors import UsageError
from traceparse.run.check.tree import Field, Filter, Key, Node, Place
from traceparse.run.check.values import NUMBER, Known, Unknown, Value, is_number, kind_of

__all__ = ["LOSS_FIELDS", "looked_up"]

Chosen = Callable[[Node, Mapping[str, Any], str], Value]

# those of ``scaling_loss``, which is null as a whole where nothing communicated
LOSS_FIELDS: Final = frozenset(
    {
        "step_ns",
        "exposed_transfer_ratio",
        "exposed_wait_ratio",
        "pipeline_wait_ratio",
        "exposed_unsplit_ratio",
        "contention_ratio",
        "comm_ratio",
        "load_balance",
        "serialization",
        "transfer",
        "parallel_efficiency",
    }
)
_USE: Final = "utilization"
_BARE: Final = (_USE, "scaling_loss", "run")
# objects whose keys are no fields: one that is missing is not known, and no mistake
_OPEN: Final = frozenset(
    {
        "bands",
        "drift_ppm",
        "last_rank_counts",
        "offsets_ns",
        "peak_flop_per_s",
        "repaired",
        "skipped",
    }
)
# codes of notes that say why something is null, by the place that it is in
_PEAKS: Final = ("peak_unknown", "peak_missing", "accelerators_differ")
_WORK: Final = ("flop_unknown", "nothing_counted", "waterfall_unknown")
_MODEL: Final = ("model_flop_unknown", "reference_dtype_unknown")
_TOGETHER: Final = (
    "no_communication",
    "collectives_unmatched",
    "collectives_disagree",
    "collectives_ambiguous",
    "clocks_unaligned",
)
_WHY: Final[Mapping[str, Sequence[str]]] = {
    "hfu": (*_WORK, *_PEAKS),
    "mfu": (*_WORK, *_MODEL, *_PEAKS),
    "mfu_source": (*_WORK, *_MODEL),
    "model_flop": (*_WORK, *_MODEL),
    "utilization": (*_WORK, *_PEAKS, *_MODEL),
    "roofline": _WORK,
    "accelerator": _PEAKS,
    "reference_dtype": (*_MODEL, *_WORK),
    "missing_ranks": ("world_size_unknown", "world_size_disagrees"),
    "scaling_loss": _TOGETHER,
    "clock": _TOGETHER,
    "collectives": _TOGETHER,
    "what_if": ("what_if_unknown", *_TOGETHER),
    "step_ns": _TOGETHER,
}
_ADVICE: Final = {"cost": "no price was given: give --price"}
_NEAR: Final = 3


def looked_up(
    field: Field, document: Mapping[str, Any], scope: Mapping[str, Any] | None, chosen: Chosen
) -> Value:
    """Return what a field has.

    Parameters
    ----------
    field
        Names, numbers of entries and conditions on entries, one behind the other.
    document
        The report, as ``report.json`` has it.
    scope
        The entry of a list that the first name is a field of; ``None``: the report.
    chosen
        Says whether a condition holds for an entry.

    Raises
    ------
    UsageError
        There is no such field.
    """
    steps = field.steps if scope is not None else _from_the_top(field, document)
    walk = _Walk(document, chosen)
    value = Known(document if scope is None else scope)
    for step in steps:
        found = walk.on(value, step)
        if isinstance(found, Unknown):
            return found
        value = found
    if value.value is None:
        return Unknown((walk.why(),))
    kinds = (kind_of(step.name) for step in reversed(steps) if isinstance(step, Key))
    kind = next((kind for kind in kinds if kind), NUMBER)
    is_plain = is_number(value.value) or isinstance(value.value, list)
    return Known(value.value, kind if is_plain else None)


def _from_the_top(
    field: Field, document: Mapping[str, Any]
) -> tuple[Key | Place | Filter, ...]:
    """Put before a bare name what it is a field of."""
    first = field.steps[0]
    assert isinstance(first, Key)
    if first.name in document:
        return field.steps
    names = {section: _names(section, document) for section in _BARE}
    homes = [section for section in _BARE if first.name in names[section]]
    if len(homes) > 1:
        both = " or ".join(f"{section}.{first.name}" for section in homes)
        raise UsageError(f"{first.name} may be {both}; write which")
    if not homes:
        raise UsageError(_no_such(first.name, "the report", _all_names(document, names)))
    return (Key(homes[0]), *field.steps)


def _names(section: str, document: Mapping[str, Any]) -> Collection[str]:
    told = document.get(section)
    if section == "scaling_loss":
        return dict.fromkeys((*(told or ()), *sorted(LOSS_FIELDS)))
    return told if isinstance(told, Mapping) else ()


def _all_names(
    document: Mapping[str, Any], bare: Mapping[str, Collection[str]]
) -> Iterable[str]:
    yield from (name for section in bare.values() for name in section)
    for top, value in document.items():
        yield top
        if top not in bare and isinstance(value, Mapping):
            yield from (f"{top}.{name}" for name in value)


def _no_such(name: str, where: str, names: Iterable[str]) -> str:
    known = dict.fromkeys(names)
    by_end = {full.rpartition(".")[2]: full for full in reversed(known)}
    near = get_close_matches(name, [*known, *by_end], n=_NEAR, cutoff=0.6)
    found = ", ".join(dict.fromkeys(by_end.get(one, one) for one in near))
    hint = f"did you mean {found}?" if found else _some(list(known))
    return f"{where} has no field {name!r}; {hint}"


def _some(names: Sequence[str]) -> str:
    return f"it has {', '.join(names[:12])}{', ...' if len(names) > 12 else ''}"


class _Walk:
    """The way from the report to a value, as far as it has come."""

    def __init__(self, document: Mapping[str, Any], chosen: Chosen) -> None:
        self._document = document
        self._chosen = chosen
        self._trail = ""
        self._keys: list[str] = []

    def on(self, value: Known, step: Key | Place | Filter) -> Value:
        """Go one step on."""
        if value.value is None:
            return Unknown((self.why(),))
        if isinstance(step, Key):
            return self._key(value.value, step.name)
        if not isinstance(value.value, list):
            raise UsageError(f"{self._trail} is no list, so it has no entries to choose from")
        if isinstance(step, Place):
            return self._entry(value.value, step.number)
        return self._filtered(value.value, step.condition)

    def why(self) -> str:
        """Say why there is nothing here, in the words of the report's notes if they tell."""
        for key in (*self._keys[-1:], *(key for key in self._keys[:1] if key == _USE)):
            codes = (f"{key}_unknown", f"{key}_disagrees", *_WHY.get(key, ()))
            if said := self._told(codes):
                return f"{self._trail} is unknown: {said}"
            if key in _ADVICE:
                return f"{self._trail} is unknown: {_ADVICE[key]}"
        return f"{self._trail} is unknown (null in the report)"

    def _told(self, codes: Sequence[str]) -> str | None:
        notes = self._document.get("notes") or []
        by_code = {note["code"]: note["message"] for note in reversed(notes)}
        code = next((code for code in codes if code in by_code), None)
        return None if code is None else f"{code}: {by_code[code]}"

    def _key(self, value: object, name: str) -> Value:
        was = self._trail
        if isinstance(value, list):
            found = [
                None if entry is None else self._of(entry, name, was or "a list")
                for entry in value
            ]
            self._step(name)
            return Known(found)
        found_one = self._of(value, name, was or "the entry")
        self._step(name)
        return Known(found_one)

    def _step(self, name: str) -> None:
        is_word = name.isidentifier()
        text = (f".{name}" if self._trail else name) if is_word else f"[{name!r}]"
        self._trail += text
        self._keys.append(name)

    def _of(self, value: object, name: str, where: str) -> Any:  # noqa: ANN401 - JSON
        if not isinstance(value, Mapping):
            kind = "a list" if isinstance(value, list) else "a value"
            raise UsageError(f"{where} is {kind} and has no field {name!r}")
        if name not in value and not (self._keys and self._keys[-1] in _OPEN):
            raise UsageError(_no_such(name, where, value))
        return value.get(name)

    def _entry(self, value: list[Any], number: int) -> Value:
        trail = f"{self._trail}[{number}]"
        if number >= len(value):
            return Unknown((f"{trail} is unknown: there are {len(value)}, counted from 0",))
        self._trail = trail
        return Known(value[number])

    def _filtered(self, value: list[Any], condition: Node) -> Value:
        kept, reasons = [], []
        for number, entry in enumerate(value):
            if not isinstance(entry, Mapping):
                raise UsageError(f"entries of {self._trail} have no fields to choose them by")
            held = self._chosen(condition, entry, f"{self._trail}[{number}]")
            if isinstance(held, Unknown):
                reasons += [f"{self._trail}[{number}]: {reason}" for reason in held.reasons]
            elif held.value:
                kept.append(entry)
        if reasons:
            more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            return Unknown((f"{reasons[0]}{more}",))
        return Known(kept)
