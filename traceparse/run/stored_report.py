"""A report that was stored as ``report.json``, back as a :class:`~.report.Report`.

Whoever hands in a file may hand in any: it is read up to a size, as JSON, into the types that a
report has, and refused where it has others. What a later version has added is left out, what an
earlier one had not is unknown.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Final

import msgspec

from traceparse.errors import InputError, one_line
from traceparse.ingest import Place, path_text
from traceparse.rank import Times
from traceparse.run.report import SCHEMA_VERSION, Report

__all__ = ["is_report", "read_report"]

_LARGEST: Final = 1 << 28  # bytes: more than a report of ten thousand ranks
_BEGINS: Final = b'{"schema_version"'
_HEAD: Final = 256
_TIMES: Final = tuple(field.name for field in fields(Times))


def is_report(path: Place) -> bool:
    """Tell a stored report from a trace, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return b"".join(head.split()).startswith(_BEGINS)


def read_report(path: Place) -> Report:
    """Read a stored report.

    Raises
    ------
    InputError
        The file cannot be read, is too large, or holds no report of this version.
    """
    name = path_text(path)
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from error
    if len(content) > _LARGEST:
        raise InputError(
            f"{name}: is larger than {_LARGEST >> 20} MiB, which no report is; give its traces"
        )
    try:
        plain: Any = msgspec.json.decode(content)
        _require_version(plain)
        return msgspec.convert(_with_times(plain), Report)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(
            f"{name}: is no report.json that traceparse can read ({one_line(error)[:160]}); "
            f"give the traces, or analyze them again with --out"
        ) from error


def _require_version(plain: object) -> None:
    told = plain.get("schema_version") if isinstance(plain, dict) else None
    if told != SCHEMA_VERSION or isinstance(told, bool):
        raise ValueError(f"schema_version is {told!r:.20}, not {SCHEMA_VERSION}")


def _with_times(plain: dict[str, Any]) -> dict[str, Any]:
    """Put the times of each step into an object of their own, as ``StepReport`` has them."""
    devices = plain.get("devices")
    for device in devices if isinstance(devices, list) else ():
        steps = device.get("steps") if isinstance(device, dict) else None
        for step in steps if isinstance(steps, list) else ():
            if isinstance(step, dict):
                own = {name: step.get(name) for name in _TIMES}
                step["times"] = None if own["span_ns"] is None else own
    return plain
