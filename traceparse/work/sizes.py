"""Numbers of a file that anyone may have written, each seen to be what it has to be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from traceparse.errors import InputError

__all__ = ["Sizes"]

_LARGEST = 10**16  # parameters; nothing of a model is more than all of it


class Sizes:
    """The values of a file by name; asked for, they are checked, and the file is named."""

    def __init__(self, path: Path, config: Mapping[str, Any]) -> None:
        self.path = path
        self.config = config

    def has(self, name: str) -> bool:
        """Is there a value, and is it more than ``null``?"""
        return self.config.get(name) is not None

    def whole(self, name: str, *, least: int = 1) -> int:
        """Return a whole number; ``8e9`` is one too."""
        value = self.config.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refusal(name, least)
        if not least <= value <= _LARGEST:
            raise self._refusal(name, least)
        return value

    def whole_or(self, name: str, default: int, *, least: int = 1) -> int:
        """Return a whole number, or the default where there is none."""
        return self.whole(name, least=least) if self.has(name) else default

    def flag(self, name: str, *, default: bool | None = None) -> bool:
        """Return a truth value."""
        value = self.config.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise InputError(f"{self.path}: {name} is {_short(value)}; write true or false")
        return value

    def _refusal(self, name: str, least: int) -> InputError:
        if not self.has(name):
            return InputError(f"{self.path}: {name} is missing; add it")
        return InputError(
            f"{self.path}: {name} is {_short(self.config[name])}; "
            f"write a whole number from {least} to 10^16"
        )


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        text = "endless"
    return text if len(text) <= 60 else f"{text[:60]}..."
