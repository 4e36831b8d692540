"""What a capture left out."""

from __future__ import annotations

import pytest

from traceparse.run.findings.captured import missing_shapes, missing_steps


def test_shapes_that_nobody_recorded(seen):
    (found,) = missing_shapes(seen.view())
    assert found["title"].startswith("no trace tells the shapes")
    assert "record_shapes=True" in found["advice"]


def test_shapes_that_somebody_did_not_record(seen):
    row = seen.product("64x64, 64x64", reached=0.5)
    (found,) = missing_shapes(seen.view(roofline=[row]))
    assert found["title"].startswith("not all traces tell the shapes")


def test_shapes_of_a_run_without_products_were_recorded(seen):
    assert not list(missing_shapes(seen.view(roofline=[], executed_flop=0)))


@pytest.mark.parametrize(
    ("basis", "num_steps", "title"),
    [
        ("windows", 1, "no trace has step markers, so whole windows are judged"),
        ("all_steps", 4, "no step is complete on every rank"),
        ("complete_steps", 1, "only 1 step can be judged"),
        ("complete_steps", 2, "only 2 steps can be judged"),
        ("complete_steps", 3, None),
    ],
)
def test_steps(seen, basis, num_steps, title):
    found = list(missing_steps(seen.view(basis=basis, num_steps=num_steps)))
    assert [one["title"] for one in found] == ([title] if title else [])
