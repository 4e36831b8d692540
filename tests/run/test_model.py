"""Where model FLOP are from: the user, what capture recorded, what ran."""

from __future__ import annotations

import pytest

RANK, JOB = "model_flop_per_rank_step", "model_flop_per_step"
AT_PEAK = 989_400  # FLOP a nanosecond in bf16 on the H100 of tests/run/conftest.py


def job(make, *told, world_size=None, **asked):
    """Steps of 100 ns on each rank, half of them at the peak, one fifth of it recomputed."""
    work = make.work(flop=50 * AT_PEAK, recompute=10 * AT_PEAK)
    step = make.step(1, make.times(compute=100), work, counted=80)
    size = world_size or len(told)
    digests = (
        make.digest(rank, make.device(step), world_size=size, facts=facts)
        for rank, facts in enumerate(told)
    )
    return make.report(*digests, **asked)


def model(report):
    use = report.utilization
    return use["mfu_source"], use["model_flop"]


def said(report, *codes):
    return [note.message for note in report.notes if note.code in codes]


SIX_ND = {"params": 10, "tokens_per_step": 100}  # 6,000
ALL = {JOB: 2_000, RANK: 700, **SIX_ND}


@pytest.mark.parametrize(
    ("left_out", "asked", "source", "flop"),
    [
        ((), {"model_flop_per_step": 9_000}, "declared", 9_000),
        ((), {}, "counted", 2_000),
        ((JOB,), {}, "counted", 1_400),
        ((JOB, RANK), {}, "counted", 6_000),
        ((JOB, RANK, "params"), {}, "estimated", 2 * 40 * AT_PEAK),
    ],
)
def test_the_first_of_the_sources_counts(make, left_out, asked, source, flop):
    facts = {name: value for name, value in ALL.items() if name not in left_out}
    report = job(make, facts, facts, **asked)
    assert model(report) == (source, flop)
    convention = {"declared": "given", "counted": "6nd" if RANK in left_out else "counted"}
    assert report.run.conventions.get("model_flop") == convention.get(source)


def test_ranks_that_count_otherwise_are_added_up(make):
    """Stages of a pipeline differ; their devices share the job's work evenly in MFU."""
    report = job(make, {RANK: 30 * AT_PEAK}, {RANK: 10 * AT_PEAK})
    assert model(report) == ("counted", 40 * AT_PEAK)
    assert report.utilization["mfu"] == 0.2
    assert report.run.conventions["model_flop"] == "counted"
    assert said(report, "facts_disagree", "model_flop_scaled") == []


def test_a_rank_may_have_nothing_to_do(make):
    assert model(job(make, {RANK: 100}, {RANK: 0})) == ("counted", 100)
    assert model(job(make, {RANK: 0}, {RANK: 0}))[0] == "estimated"


def test_ranks_that_did_not_count_are_as_the_others(make):
    report = job(make, {RANK: 100}, {RANK: 200}, {}, world_size=6)
    assert report.utilization["model_flop"] == 450  # three of six ranks of 150 each
    assert said(report, "model_flop_scaled") == [
        "2 ranks of 6 recorded model_flop_per_rank_step: their sum is scaled to all 6"
    ]
    assert said(job(make, {RANK: 1}, {}), "model_flop_scaled") == [
        "1 rank of 2 recorded model_flop_per_rank_step: their sum is scaled to all 2"
    ]


def test_what_the_whole_job_needs_must_be_agreed_on(make):
    report = job(make, {JOB: 5, RANK: 70}, {JOB: 6, RANK: 80})
    assert model(report) == ("counted", 150)
    assert said(report, "facts_disagree") == [
        "the traces disagree on model_flop_per_step (5, 6), so it is not used"
    ]
