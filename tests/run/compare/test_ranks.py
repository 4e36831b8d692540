"""Whose change it is: one rank's, or everybody's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.run.compare.made import compared, report_of, steps_of

STEADY = (1_000, 1_002, 998, 1_000, 1_001, 999)


def straggler(rank, cause="slow link"):
    return {
        "code": "straggler",
        "severity": "warning",
        "title": f"rank {rank} is waited for: {cause}",
        "evidence": "",
        "advice": "",
        "lost_ratio": 0.1,
        "lost_usd": None,
    }


def job(*own, wait=0, **fields):
    """Ranks that do so much themselves, and wait for the longest of them."""
    longest = max(own)
    return report_of(
        *(
            [{"compute": at - 1_000 + ns, "split": (wait, longest - ns, 0, 0)} for at in STEADY]
            for ns in own
        ),
        **fields,
    )


def test_one_rank_that_others_wait_for_is_named():
    found = compared(job(700, 700, 700, 700), job(700, 700, 900, 700))
    assert (found.verdict, found.step_ns["delta"]) == ("slower", 200)
    assert found.rank == {
        "rank": 2,
        "delta_ns": 200,
        "others_delta_ns": 0,
        "term": "compute",
        "cause": None,
    }
    (_, _, slow, _) = found.ranks
    assert slow["rank"] == 2
    assert (slow["delta_span_ns"], slow["delta_compute_ns"]) == (200, 200)
    assert found.ranks[0]["delta_exposed_wait_ns"] == 200


def test_its_cause_is_that_of_the_finding():
    slow = job(700, 900, 700, findings=[straggler(1, "slow compute")])
    found = compared(job(700, 700, 700), slow)
    assert found.rank is not None
    assert (found.rank["rank"], found.rank["cause"]) == (1, "slow compute")
    # also where it is gone
    found = compared(slow, job(700, 700, 700))
    assert (found.verdict, found.rank and found.rank["rank"]) == ("faster", 1)
    assert found.rank is not None
    assert found.rank["cause"] == "slow compute"


def test_of_two_ranks_the_one_that_grew():
    found = compared(job(700, 700), job(700, 900))
    assert found.rank is not None
    assert found.rank["rank"] == 1


@pytest.mark.parametrize(
    "new",
    [
        pytest.param((900, 900, 900, 900), id="all"),
        pytest.param((900, 880, 700, 700), id="two"),
        pytest.param((700, 700, 700, 700), id="none"),
    ],
)
def test_what_is_not_one_rank_is_not_said_to_be(new):
    assert compared(job(700, 700, 700, 700), job(*new)).rank is None


def test_a_slow_link_is_that_of_the_rank_that_is_waited_for_now():
    base = job(700, 700, 700)
    slow = job(700, 700, 700, wait=100, findings=[straggler(0)])
    found = compared(base, slow)
    assert found.rank == {
        "rank": 0,
        "delta_ns": None,
        "others_delta_ns": None,
        "term": None,
        "cause": "slow link",
    }
    # but not where both have one
    assert compared(replace(base, findings=[straggler(0)]), slow).rank is None


def test_one_rank_alone_and_other_ranks():
    assert compared(report_of(steps_of(*STEADY)), report_of(steps_of(*STEADY))).rank is None
    found = compared(job(700), job(700, 700, 900))
    assert [row["rank"] for row in found.ranks] == [0]
