"""Stages that do not have the same to do."""

from __future__ import annotations

from fractions import Fraction

import pytest

from traceparse.run.findings.pipeline import pipeline_imbalance


@pytest.fixture
def stages(seen):
    """A pipeline whose ranks compute so long in steps of 1,000 ns, and wait for 300."""

    def made(*compute_ns, waited=300, **fields):
        peers = seen.collective("send/recv", ranks=list(range(len(compute_ns))))
        return seen.view(
            compute=700,
            comm=300,
            num_device_steps=1,
            communication_ns={"pipeline_wait": waited},
            collectives=[peers],
            **{
                "compute_ns_by_rank": dict(enumerate(map(Fraction, compute_ns))),
                **fields,
            },
        )

    return made


def test_the_longest_stage_is_named_and_the_mean_is_what_it_could_be(stages):
    flop = {0: 100, 1: 100, 2: 100, 3: 180}
    (found,) = pipeline_imbalance(stages(500, 500, 500, 900, flop_by_rank=flop))
    assert found["title"] == (
        "stages of the pipeline are uneven: rank 3 computes 1.50 times as long as the mean"
    )
    assert (found["severity"], found["lost_ratio"]) == ("warning", pytest.approx(0.3))
    assert "the mean of 4 ranks is 0.6 us, and 1.50 times its FLOP" in found["evidence"]


def test_no_more_is_won_than_is_waited_for(stages):
    (found,) = pipeline_imbalance(stages(500, 500, 500, 900, waited=40))
    assert (found["severity"], found["lost_ratio"]) == ("info", pytest.approx(0.04))


def test_a_tenth_is_what_chips_and_the_loss_make_of_even_stages(stages):
    assert not list(pipeline_imbalance(stages(500, 500, 500, 566)))
    assert list(pipeline_imbalance(stages(500, 500, 500, 570)))


def test_a_slow_rank_is_no_large_stage(stages):
    slow = {
        "code": "straggler",
        "title": "rank 3 is waited for: slow compute",
        "lost_ratio": 0.1,
    }
    placed = {**slow, "title": "rank 3 is waited for: place in the pipeline"}
    assert not list(pipeline_imbalance(stages(500, 500, 500, 900, stragglers=[slow])))
    (found,) = pipeline_imbalance(stages(500, 500, 500, 900, stragglers=[placed]))
    assert found["evidence"].endswith("findings `straggler` claim 10.0%")


def test_only_ranks_that_send_and_receive_are_stages(seen, stages):
    assert not list(pipeline_imbalance(stages(500, 900, waited=0)))
    data = seen.view(
        collectives=[seen.collective()],
        communication_ns={"pipeline_wait": 300},
        compute_ns_by_rank={0: Fraction(500), 1: Fraction(900)},
    )
    assert not list(pipeline_imbalance(data))
