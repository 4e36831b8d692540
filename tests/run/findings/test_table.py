"""Every finding is found in a job that has it, and in none that nearly does."""

from __future__ import annotations

import pytest

from tools.findings_cases import CASES, Scene
from tools.findings_table import findings_of, report_of
from tools.simulate_findings import Training
from traceparse.run.findings import RULES

KEYS = [case.key for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=KEYS)
def test_a_job_that_has_it(case):
    (found, *_) = findings_of(case, report_of(case.triggered))
    lost = found["lost_ratio"]
    assert lost is None or 0 < lost < 1
    assert all(found[part] for part in ("title", "evidence", "advice"))


@pytest.mark.parametrize("case", CASES, ids=KEYS)
def test_a_job_that_nearly_has_it(case):
    assert findings_of(case, report_of(case.nearly)) == []


def test_every_rule_is_in_the_table_under_its_name():
    assert {rule.__name__ for rule in RULES} <= {case.code for case in CASES}
    assert len(set(KEYS)) == len(KEYS)


def test_in_a_job_that_is_as_it_should_be_nothing_is_found():
    assert report_of(Scene("well", Training()))["findings"] == []


def test_what_a_finding_costs_is_its_share_of_a_step():
    scene = Scene("late", Training(is_overlapped=False, reduced=24 << 20), options={"price": 2})
    report = report_of(scene)
    (one,) = (one for one in report["findings"] if one["code"] == "communication_bound")
    assert one["lost_usd"] == one["lost_ratio"] * report["cost"]["usd_per_step"]
