"""What people type, as what it means."""

from __future__ import annotations

import re

from traceparse.errors import UsageError

__all__ = ["parse_steps"]


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
