"""What people type, as what it means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from traceparse.errors import UsageError

if TYPE_CHECKING:
    from traceparse.work import Accelerator

__all__ = ["one_accelerator", "one_of", "parse_formats", "parse_steps"]

_Word = TypeVar("_Word", bound=str)


def parse_steps(text: str) -> range:
    """Read one step, ``4``, or a range with both ends in it, ``3-5``.

    Raises
    ------
    UsageError
        The text is neither, or the range ends before it starts.
    """
    match = re.fullmatch(r"\s*([0-9]{1,18})(?:\s*-\s*([0-9]{1,18}))?\s*", text)
    if match is None:
        raise UsageError(f"--steps {text!r}: give one step, such as 4, or a range, such as 3-5")
    first = int(match[1])
    last = int(match[2] or first)
    if last < first:
        raise UsageError(
            f"--steps {text!r}: the range ends before it starts; write {last}-{first}"
        )
    return range(first, last + 1)


def parse_formats(texts: Sequence[str] | None, *, out: Path | None) -> tuple[str, ...] | None:
    """Read formats of a report, given one by one or with commas between; ``None``: none given.

    Raises
    ------
    UsageError
        Nothing installed renders one of them, or there is no folder to write them into.
    """
    if not texts:
        return None
    from traceparse.run import formats

    known = formats()
    wanted = [word.strip() for text in texts for word in text.split(",")]
    for word in wanted:
        if word not in known:
            raise UsageError(f"--format {word!r}: give one or more of {', '.join(known)}")
    if out is None:
        raise UsageError("--format says what to write into the folder --out; give it too")
    return tuple(dict.fromkeys(wanted))


def one_of(option: str, text: str, words: Sequence[_Word]) -> _Word:
    """Return the word that a text is.

    Raises
    ------
    UsageError
        It is none of them.
    """
    for word in words:
        if word == text:
            return word
    raise UsageError(f"{option} {text!r}: give one of {', '.join(words)}")


def one_accelerator(text: str) -> Accelerator:
    """Return the one accelerator that a name, or a TOML file, stands for.

    Raises
    ------
    UsageError
        No accelerator is called so, or several are; the message names them.
    InputError
        The file cannot be read, or describes none.
    """
    from traceparse.work import find_one, load_file

    if not text.lower().endswith(".toml"):
        return find_one(text)
    found = load_file(Path(text))
    if len(found) > 1:
        ids = ", ".join(entry.id for entry in found)
        raise UsageError(f"--accelerator {text!r}: that may be {ids}; give the one that it is")
    return found[0]
