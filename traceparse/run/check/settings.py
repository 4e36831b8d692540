"""What a project keeps of ``check`` in its ``pyproject.toml``.

::

    [tool.traceparse.check]
    fail-on = ["mfu < 0.35", "comm_ratio > 10%"]
    accelerator = "h100-sxm"
    steps = "3-5"

Keys are those of the command line. Whatever is none of them is an error, as a limit with a slip
in its name would hold nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from traceparse.errors import InputError, UsageError, one_line

__all__ = ["Settings", "found_settings", "read_settings"]

_NAME: Final = "pyproject.toml"
_TABLE: Final = "tool.traceparse.check"
_LARGEST: Final = 1 << 20  # bytes: nobody writes more
_FAIL_ON: Final = "fail-on"
_NUMBER: Final = (int, float)
_KEYS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "accelerator": ((str,), "a text"),
    "peak": ((list,), 'a list such as ["bf16=989"]'),
    "ceiling": ((str,), "a text"),
    "model-flop-per-step": (_NUMBER, "a number"),
    "params": (_NUMBER, "a number"),
    "tokens-per-step": (_NUMBER, "a number"),
    "recompute": ((str,), "a text"),
    "model": ((str,), "a path"),
    "convention": ((str,), "a text"),
    "seq": ((int,), "a whole number"),
    "price": (_NUMBER, "a number"),
    "steps": ((str,), 'a text such as "3-5"'),
    "strict": ((bool,), "true or false"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Conditions, and options by their names in Python; nothing where nothing is kept."""

    fail_on: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None


def read_settings(path: Path) -> Settings:
    """Read the settings of one file.

    Raises
    ------
    InputError
        It cannot be read.
    UsageError
        It is no TOML, has no such table, or one with anything else in it.
    """
    table = _table(path)
    if table is None:
        raise UsageError(f"{path}: has no table [{_TABLE}]; name the file that has, or add it")
    return _settings(path, table)


def found_settings(folder: Path) -> Settings:
    """Read the nearest ``pyproject.toml`` that has settings, from a folder upwards.

    Raises
    ------
    InputError, UsageError
        As :func:`read_settings`, of a file on the way.
    """
    for place in (folder, *folder.parents):
        path = place / _NAME
        table = _table(path) if path.is_file() else None
        if table is not None:
            return _settings(path, table)
    return Settings()


def _table(path: Path) -> object:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > _LARGEST:
        raise InputError(f"{path}: is larger than {_LARGEST:,} bytes, which no settings are")
    try:
        found: object = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: is no TOML ({one_line(error)[:120]})") from error
    for name in _TABLE.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _settings(path: Path, table: object) -> Settings:
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {_TABLE} is no table; write [{_TABLE}]")
    unknown = sorted(map(str, table.keys() - {*_KEYS, _FAIL_ON}))
    if unknown:
        known = ", ".join((_FAIL_ON, *_KEYS))
        raise UsageError(f"{path}: [{_TABLE}] has no key {unknown[0][:40]!r}; keys are {known}")
    fail_on = table.get(_FAIL_ON, [])
    if not _is_texts(fail_on):
        raise UsageError(f'{path}: {_FAIL_ON} is a list of texts, such as ["mfu < 0.35"]')
    options = {
        key.replace("-", "_"): _option(path, key, value)
        for key, value in table.items()
        if key != _FAIL_ON
    }
    return Settings(tuple(fail_on), options, path)


def _option(path: Path, key: str, value: object) -> object:
    types, words = _KEYS[key]
    is_right = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if not is_right or (list in types and not _is_texts(value)):
        raise UsageError(f"{path}: {key} is {words}, not {value!r:.40}")
    if key == "model" or (key == "accelerator" and str(value).lower().endswith(".toml")):
        # of the project, wherever the command runs
        return str(path.parent / str(value))
    return value


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
