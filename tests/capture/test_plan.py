from __future__ import annotations

from typing import Any

import pytest
import torch

from traceparse.capture.plan import Do, plan_of, ranks_of
from traceparse.errors import UsageError


def done(steps: Any, num: int) -> list[str]:
    plan = plan_of(steps)
    return [plan.do(step).name for step in range(num)]


def test_the_step_before_the_first_makes_ready_and_the_last_is_saved() -> None:
    assert done(range(2, 4), 6) == [
        "NONE",
        "WARMUP",
        "RECORD",
        "RECORD_AND_SAVE",
        "NONE",
        "NONE",
    ]


def test_one_step_is_the_first_and_the_last() -> None:
    assert done([0], 2) == ["RECORD_AND_SAVE", "NONE"]


def test_a_schedule_of_torch_is_followed() -> None:
    schedule = torch.profiler.schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=1)
    assert done(schedule, 7) == [schedule(step).name for step in range(7)]
    assert plan_of(schedule).steps is None


def test_what_records_is_known_by_its_name() -> None:
    assert [do.records for do in Do] == [False, False, True, True]


@pytest.mark.parametrize(
    ("steps", "look_at"),
    [
        (range(10, 13), 8),
        (range(3, 4), 1),
        (range(2, 3), None),
        (range(1, 2), None),
        (torch.profiler.schedule(wait=3, warmup=1, active=1), 1),
        (torch.profiler.schedule(wait=2, warmup=1, active=1), None),
    ],
)
def test_a_step_is_looked_at_where_there_is_time_before(
    steps: Any, look_at: int | None
) -> None:
    """Never in the first step, which may compile, nor in one that makes ready or records."""
    assert plan_of(steps).look_at == look_at


def test_a_range_is_over_and_a_schedule_never() -> None:
    assert [plan_of(range(1, 3)).is_over(step) for step in (2, 3, 9)] == [False, True, True]
    assert not plan_of(torch.profiler.schedule(wait=1, warmup=1, active=1)).is_over(10**9)


def test_an_enormous_range_costs_nothing() -> None:
    assert plan_of(range(5, 10**12)).steps == range(5, 10**12)


NODE = {"LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("ranks", "recording"),
    [
        ("all", [0, 1, 2, 3, 4, 5]),
        ("1,3-4", [1, 3, 4]),
        (" 0 , 2-2", [0, 2]),
        ("3", [3]),
        (5, [5]),
        ([0, 2], [0, 2]),
        (range(1, 3), [1, 2]),
        ({4}, [4]),
    ],
    ids=str,
)
def test_ranks_that_are_named_record(ranks: Any, recording: list[int]) -> None:
    wants = ranks_of(ranks)
    assert [rank for rank in range(6) if wants(rank, NODE)] == recording


@pytest.mark.parametrize(
    ("environment", "is_first"),
    [
        ({}, True),
        ({"LOCAL_RANK": "0"}, True),
        ({"LOCAL_RANK": "3"}, False),
        ({"SLURM_LOCALID": " 0 "}, True),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "1"}, False),
        ({"MPI_LOCALRANKID": "1"}, False),
        ({"LOCAL_RANK": "0", "SLURM_LOCALID": "1"}, True),
    ],
)
def test_the_first_of_a_node_is_known_by_its_launcher(
    environment: dict[str, str], is_first: bool
) -> None:
    assert ranks_of("node")(7, environment) is is_first


@pytest.mark.parametrize(
    "ranks",
    ["", "nodes", "1,,2", "4-3", "-1", "1.5", -1, [], [0, -1], ["0"], 1.5, None],
    ids=repr,
)
def test_ranks_that_are_none_are_refused(ranks: Any) -> None:
    with pytest.raises(UsageError) as caught:
        ranks_of(ranks)
    assert str(caught.value) == (
        f"ranks={ranks!r}: give 'all', 'node' (one of each node), or ranks such as '0,8-15'"
    )
