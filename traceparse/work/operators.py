"""How much does an operator call work? The registry of formulas, and its way in.

Other packages add formulas, or replace ours, through the entry points of group
``traceparse.flops``: the name is the operator's, the object a function from a :class:`Call` to
its :class:`Work`. Such a function may raise :class:`NotKnownError` with a reason. What it
counts says whose formula that was, among its ``conventions``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from traceparse.errors import TraceparseError, one_line
from traceparse.work.attention import ATTENTION
from traceparse.work.call import Call, NotKnownError, Work
from traceparse.work.convolution import CONVOLUTION
from traceparse.work.matmul import MATMUL
from traceparse.work.template import TEMPLATES, template

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

__all__ = ["GROUP", "TEMPLATES", "Formula", "added_formulas", "formulas", "work_of"]

GROUP = "traceparse.flops"

Formula: TypeAlias = Callable[[Call], Work]


def added_formulas() -> list[tuple[str, str, str]]:
    """Return who adds which formulas: operator, object, and version of its package."""
    return sorted(
        (point.name, point.value, point.dist.version if point.dist else "")
        for point in _entry_points()
    )


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # noqa: PLC0415 - not for who counts nothing

    return entry_points(group=GROUP)


@cache
def formulas() -> Mapping[str, Formula]:
    """Return the formula of each operator that is counted, entry points loaded once.

    Raises
    ------
    TraceparseError
        An entry point cannot be loaded, is no function, or two are of the same operator.
    """
    added: dict[str, Formula] = {}
    for point in _entry_points():
        if point.name in added:
            raise TraceparseError(
                f"entry point {point.name} = {point.value} of {GROUP}: "
                "another package has a formula of that operator already; uninstall one of them"
            )
        added[point.name] = _load(point)
    return MappingProxyType({**MATMUL, **CONVOLUTION, **ATTENTION, **added})


def work_of(call: Call) -> Work | None:
    """Say how much a call works; ``None`` of an operator that is not counted.

    Never raises because of what a call says: what cannot be counted is unknown, with a reason.

    Raises
    ------
    TraceparseError
        An entry point cannot be loaded.
    """
    formula = formulas().get(call.name)
    if formula is None and call.name.startswith(TEMPLATES):
        formula = template
    if formula is None:
        return None
    try:
        return formula(call)
    except NotKnownError as error:
        return Work(unknown=str(error))


def _load(point: EntryPoint) -> Formula:
    where = f"entry point {point.name} = {point.value} of {GROUP}"
    try:
        formula = point.load()
    except Exception as error:
        raise TraceparseError(
            f"{where} cannot be loaded: {type(error).__name__}: {one_line(error)}"
        ) from error
    if not callable(formula):
        raise TraceparseError(f"{where} is no function but of type {type(formula).__name__}")

    version = point.dist.version if point.dist else ""
    whose = f"formulas={point.name} by {point.value} {version}".rstrip()

    def guarded(call: Call) -> Work:
        try:
            work = formula(call)
        except NotKnownError:
            raise
        except Exception as error:
            # another's code on a trace of anyone: one call that it cannot count is no end
            raise NotKnownError(f"{where} failed: {type(error).__name__}") from error
        if not isinstance(work, Work):
            raise NotKnownError(f"{where} returned {type(work).__name__} instead of Work")
        return replace(work, conventions=(*work.conventions, whose))

    return guarded
