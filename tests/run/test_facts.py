"""What capture recorded, as a job's facts; and what capture cost the job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traceparse.run.facts import AGREED

MESH = [{"names": ["dp", "tp"], "shape": [2, 4]}]


def job(make, *told, settings=()):
    """A job whose ranks recorded these facts."""
    digests = []
    for rank, facts in enumerate(told):
        step = make.step(1, make.times(compute=100), make.work(flop=1_000), counted=90)
        digest = make.digest(rank, make.device(step), world_size=len(told), facts=facts)
        header = replace(digest.header, settings=settings)
        digests.append(replace(digest, header=header))
    return make.report(*digests)


def costs(report):
    return [one for one in report.findings if one["code"] == "capture_overhead"]


def test_without_facts_there_are_none(make):
    report = job(make, {}, {})
    assert (report.run.facts, costs(report)) == (None, [])


def test_what_all_ranks_agree_on_is_the_jobs(make):
    same = {"torch_version": "2.13.0", "meshes": MESH, "compiled": False, "steps": [10, 12]}
    report = job(make, {**same, "num_params": 7}, {**same, "num_params": 8}, {"params": 3}, {})
    facts = report.run.facts
    assert set(facts) == {*AGREED, "capture_overhead_ratio"}
    assert {name: value for name, value in facts.items() if value is not None} == {
        **same,
        "params": 3,
    }
    assert report.to_dict()["run"]["facts"] == facts


def test_facts_of_ranks_alone_are_not_the_jobs(make):
    told = {"rank": 0, "num_events": 5, "trace_bytes": 6, "model_flop_per_rank_step": 7}
    facts = job(make, told).run.facts
    assert facts is not None
    assert all(value is None for value in facts.values())


def ratio(value, **more):
    return {"capture_overhead_ratio": value, **more}


def test_overhead_is_the_median_of_ranks(make):
    report = job(make, ratio(0.01), ratio(0.04), ratio(0.9), {})
    assert report.run.facts["capture_overhead_ratio"] == 0.04
    assert costs(report) == []


@pytest.mark.parametrize(("value", "num"), [(0.05, 0), (0.0501, 1), (-0.2, 0), (None, 0)])
def test_more_than_a_twentieth_of_a_step_is_a_finding(make, value, num):
    assert len(costs(job(make, {} if value is None else ratio(value)))) == num


def test_a_finding_says_how_much_and_what_to_do(make):
    more = {"profiled_step_ns": 110_000_000, "unprofiled_step_ns": 100_000_000}
    report = job(make, ratio(0.1, **more), ratio(0.2, **more), ratio(0.06, **more))
    assert costs(report) == [
        {
            "code": "capture_overhead",
            "severity": "warning",
            "title": "profiling slowed the steps by 10.0%",
            "evidence": (
                "profiled steps took 10.0% longer than unprofiled ones (median of 3 ranks: "
                "6.0% to 20.0%), 110.0 ms against 100.0 ms"
            ),
            "advice": (
                "record fewer ranks (--ranks) and fewer steps, and shapes only; ratios in this "
                "report are of slowed steps: launch gaps and idle are upper bounds"
            ),
            "lost_ratio": None,
            "lost_usd": None,
        }
    ]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("record_shapes", "with_stack"), "stacks"),
        (("profile_memory",), "memory"),
        (("profile_memory", "with_stack"), "stacks and memory"),
    ],
)
def test_what_slows_most_is_named_if_it_was_on(make, settings, words):
    (found,) = costs(job(make, ratio(0.3), settings=settings))
    assert found["evidence"] == "profiled steps took 30.0% longer than unprofiled ones (1 rank)"
    assert found["advice"].startswith(
        f"switch off {words}, which slow every operator, and record fewer ranks (--ranks) and "
    )
