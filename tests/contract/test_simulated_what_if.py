"""Steps under other conditions, of jobs whose network, hosts or kernels are slow themselves."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

import traceparse
from tools.simulate_events import Conditions
from tools.simulate_gloo import run_job
from tools.simulate_job import Straggler
from tools.simulate_record import record
from tools.simulate_scenarios import build
from tools.simulate_truth import truth_of
from tools.simulate_write import trace_bytes

KINDS = [
    "ddp",
    "fsdp",
    "fsdp_prefetch",
    "moe",
    "tp_pp",
    "straggler_link",
    "graphs",
    "recompute",
]


CONDITIONS = {
    "slow hosts": {"every_host": Fraction(12)},
    "slower hosts": {"every_host": Fraction(4)},
    "slow network": {"network": Fraction(4)},
    "slow both": {"every_host": Fraction(12), "network": Fraction(4)},
    "contention": {"contention": Fraction(5, 4)},
    "slow rank": {"compute": {2: Fraction(4, 3)}},
    "late rank": {"host": {2: Fraction(12)}},
}
JOBS = [
    # of either size, every kind and every condition
    pytest.param(scenario, ranks, conditions, id=f"{name} {scenario} {ranks}")
    for number, (name, conditions) in enumerate(CONDITIONS.items())
    for place, scenario in enumerate(KINDS)
    for ranks in ((4, 8)[(number + place) % 2],)
    # there nearly no kernel runs alone: how much they are slowed is not known
    if not (name == "contention" and scenario.startswith("fsdp"))
]


@pytest.mark.parametrize(("scenario", "ranks", "conditions"), JOBS)
def test_in_every_kind_of_job(scenario, ranks, conditions, tmp_path):
    job = build(scenario, ranks=ranks, seed=1)
    is_slow = bool({"compute", "host"} & conditions.keys())
    straggler = Straggler(2, "") if is_slow else None
    job = replace(job, conditions=Conditions(**conditions), straggler=straggler)
    ran = run_job(job)
    recordings = record(job, ran)
    for recording in recordings:
        path = tmp_path / f"rank{recording.rank}_trace.json"
        path.write_bytes(trace_bytes(job, recording))
    truth = truth_of(job, ran, recordings)["what_if"]
    report = traceparse.analyze(tmp_path, accelerator="h100-sxm").to_dict()
    told = {
        (row["change"], tuple(row["ranks"] or ())): row for row in report["what_if"]["changes"]
    }
    is_known = []
    for change, step_ns in truth.items():
        if step_ns is None or change == "as_run":
            continue
        row = told[change, (2,) if change == "straggler_median" else ()]
        is_known.append(row["step_ns"] is not None)
        if row["between_ns"] is not None:
            least, most = row["between_ns"]
            assert 0.98 * least <= step_ns <= 1.02 * most, change
        if is_known[-1]:
            assert row["step_ns"] == pytest.approx(step_ns, rel=0.02), change
    noted = {note["code"] for note in report["notes"]}
    assert all(is_known) or noted & {"what_if_doubtful", "what_if_unlike"}
    assert any(is_known)
