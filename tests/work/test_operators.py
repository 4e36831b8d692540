"""The registry, and what other packages may put into it."""

from __future__ import annotations

import math
from importlib import metadata

import pytest

from tests.work.calls import T, count, reason, record
from traceparse.errors import TraceparseError
from traceparse.work import NotKnownError, Work, formulas, work_of


def ours(call) -> Work:
    (rows,) = call.shape(0, 1)
    if rows == 13:
        raise NotKnownError("thirteen")
    if rows == 14:
        raise IndexError(rows)
    if rows == 15:
        return 15  # type: ignore[return-value]
    return Work(flop=rows)


constant = math.pi


@pytest.fixture
def installed(monkeypatch):
    """Make entry points of pairs of name and value, and forget them."""

    def install(*points):
        def entry_points(*, group):
            return [metadata.EntryPoint(name, value, group) for name, value in points]

        monkeypatch.setattr(metadata, "entry_points", entry_points)
        formulas.cache_clear()

    yield install
    monkeypatch.undo()
    formulas.cache_clear()


OURS = f"{__name__}:ours"


def test_an_operator_that_is_not_counted():
    assert work_of(record("aten::add", T([3]), T([3]), 1)) is None
    assert work_of(record("aten::linear", T([3, 3]), T([3, 3]), None)) is None


def test_the_registry_cannot_be_written_to():
    with pytest.raises(TypeError):
        formulas()["aten::add"] = ours  # type: ignore[index]


def test_formulas_of_other_packages(installed):
    installed(("ours::op", OURS), ("aten::mm", OURS))
    assert count("ours::op", T([7])).flop == 7
    assert count("aten::mm", T([7])).flop == 7  # theirs comes before ours
    assert count("aten::bmm", T([1, 2, 3]), T([1, 3, 4])).flop == 48


def test_a_formula_that_fails_costs_one_call(installed):
    installed(("ours::op", OURS))
    where = f"entry point ours::op = {OURS} of traceparse.flops"
    assert reason("ours::op", T([13])) == "thirteen"
    assert reason("ours::op", T([14])) == f"{where} failed: IndexError"
    assert reason("ours::op", T([15])) == f"{where} returned int instead of Work"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (
            "no.such.module:f",
            "cannot be loaded: ModuleNotFoundError: No module named 'no'",
        ),
        (f"{__name__}:constant", "is no function but of type float"),
    ],
)
def test_an_entry_point_that_fails_is_named_in_one_line(installed, value, told):
    installed(("ours::op", value))
    with pytest.raises(TraceparseError) as error:
        work_of(record("aten::mm", T([2, 3]), T([3, 4])))
    assert str(error.value) == f"entry point ours::op = {value} of traceparse.flops {told}"


def test_two_formulas_of_one_operator(installed):
    installed(("ours::op", OURS), ("ours::op", f"{__name__}:reason"))
    with pytest.raises(TraceparseError, match=r"already; uninstall one of them$"):
        formulas()


def test_entry_points_are_loaded_once(monkeypatch):
    asked = []

    def entry_points(*, group):
        asked.append(group)
        return []

    formulas.cache_clear()
    monkeypatch.setattr(metadata, "entry_points", entry_points)
    assert formulas() is formulas()
    assert asked == ["traceparse.flops"]
    formulas.cache_clear()
