from __future__ import annotations

from types import SimpleNamespace

import pytest

from traceparse.capture import pace
from traceparse.capture.pace import Pace, Step


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=0)
    monkeypatch.setattr(pace, "time", SimpleNamespace(perf_counter_ns=lambda: clock.now))
    return clock


def paced(clock: SimpleNamespace, *steps: tuple[int, Step]) -> Pace:
    """Steps of so many ns, with 1000 ns of capture between them."""
    it = Pace()
    for took_ns, kind in steps:
        clock.now += took_ns
        it.end(kind)
        clock.now += 1000
        it.begin()
    return it


def plain(*times: int) -> list[tuple[int, Step]]:
    return [(time, Step.PLAIN) for time in times]


def test_medians_of_both_kinds_are_compared(clock: SimpleNamespace) -> None:
    it = paced(
        clock,
        (9999, Step.OTHER),
        *plain(100, 110, 500),
        (7777, Step.OTHER),
        (150, Step.PROFILED),
        (130, Step.PROFILED),
        *plain(90, 95),
    )
    assert it.facts() == {
        "profiled_step_ns": 140,
        "unprofiled_step_ns": 100,
        "num_unprofiled_steps": 5,
        "capture_overhead_ratio": 0.4,
    }


def test_a_faster_recorded_step_is_a_ratio_below_0(clock: SimpleNamespace) -> None:
    it = paced(clock, *plain(300), (200, Step.PROFILED))
    assert it.facts()["capture_overhead_ratio"] == -0.333333


def test_only_the_last_20_before_and_the_first_5_behind_count(clock: SimpleNamespace) -> None:
    it = paced(
        clock, *plain(*[9] * 50, *[1] * 20), (1, Step.PROFILED), *plain(*[1] * 5, *[9] * 7)
    )
    assert it.facts()["unprofiled_step_ns"] == 1
    assert it.facts()["num_unprofiled_steps"] == 25


def test_five_steps_behind_are_enough(clock: SimpleNamespace) -> None:
    assert not paced(clock, (1, Step.PROFILED), *plain(1, 1, 1, 1)).is_known
    assert paced(clock, (1, Step.PROFILED), *plain(1, 1, 1, 1, 1)).is_known


@pytest.mark.parametrize("steps", [[], plain(1, 2), [(1, Step.PROFILED)], [(1, Step.OTHER)]])
def test_without_both_kinds_nothing_is_compared(
    clock: SimpleNamespace, steps: list[tuple[int, Step]]
) -> None:
    assert paced(clock, *steps).facts() == {}


def test_steps_that_take_no_time_are_no_division_by_0(clock: SimpleNamespace) -> None:
    assert paced(clock, *plain(0), (5, Step.PROFILED)).facts()["capture_overhead_ratio"] == 4
