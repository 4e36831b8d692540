from __future__ import annotations

import pytest

from tests.rank.said import said
from tests.traces import annotation, kernel, step


def _steps(*numbers: int):
    return [kernel(1, 1), *(step(n, 100 * at, 50) for at, n in enumerate(numbers, 1))]


@pytest.mark.parametrize(
    ("numbers", "missing"),
    [
        ((1, 2, 4), "1 step missing between ProfilerStep#1 and #4 (3)"),
        ((1, 2, 4, 9), "5 steps missing between ProfilerStep#1 and #9 (3, 5-8)"),
        ((4, 2), "1 step missing between ProfilerStep#2 and #4 (3)"),
    ],
)
def test_steps_that_are_missing(tmp_path, numbers, missing):
    assert said(tmp_path, _steps(*numbers), "steps_missing") == [
        f"{missing}: the step before a gap lasts until the next one marked, so its times take "
        f"in what is missing"
    ]


def test_no_step_is_missing_before_the_first_or_where_marks_have_no_number(tmp_path):
    odd = annotation(900, 50, "ProfilerStep#x")
    for events in (_steps(7, 8, 9), _steps(7), [*_steps(7, 8), odd]):
        assert said(tmp_path, events, "steps_missing") == []
        assert said(tmp_path, events, "steps_repeated") == []


def test_a_gap_of_any_size_is_not_counted_through(tmp_path):
    (message,) = said(tmp_path, _steps(1, 10**18 - 1), "steps_missing")
    assert message.startswith(
        "999,999,999,999,999,997 steps missing between ProfilerStep#1 and "
        "#999999999999999999 (2-999999999999999998): "
    )


def test_many_gaps_are_shortened(tmp_path):
    (message,) = said(tmp_path, _steps(*range(1, 101, 2)), "steps_missing")
    assert "(2, 4, 6, 8, " in message
    assert " more): the step" in message
    assert len(message) < 300


def test_steps_that_are_repeated(tmp_path):
    assert said(tmp_path, _steps(1, 2, 2, 3, 3, 3, 4), "steps_repeated") == [
        "2 step numbers marked more than once (2-3): every mark counts as a step of its own"
    ]
    assert said(tmp_path, _steps(1, 2, 3), "steps_repeated") == []


def test_steps_that_overlap(tmp_path):
    one = [kernel(1, 1), step(1, 100, 60)]
    assert said(tmp_path, [*one, step(2, 160, 60)], "steps_overlap") == []
    assert said(tmp_path, [*one, step(2, 159, 60)], "steps_overlap") == [
        "ProfilerStep marks overlap: work in two of them belongs to both"
    ]
