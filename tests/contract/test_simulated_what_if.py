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


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("scenario", KINDS)
@pytest.mark.parametrize(
    "conditions",
    [
        pytest.param({"every_host": Fraction(12)}, id="slow hosts"),
        pytest.param({"every_host": Fraction(4)}, id="slower hosts"),
        pytest.param({"network": Fraction(4)}, id="slow network"),
        pytest.param({"contention": Fraction(5, 4)}, id="contention"),
        pytest.param({"compute": {2: Fraction(4, 3)}}, id="slow rank"),
        pytest.param({"host": {2: Fraction(12)}}, id="late rank"),
    ],
)
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
    found = traceparse.analyze(tmp_path, accelerator="h100-sxm").to_dict()["what_if"]
    told = {
        (row["change"], tuple(row["ranks"] or ())): row["step_ns"] for row in found["changes"]
    }
    for change, step_ns in truth.items():
        if step_ns is not None and change != "as_run":
            ranks_of = (2,) if change == "straggler_median" else ()
            assert told[change, ranks_of] == pytest.approx(step_ns, rel=0.02), change
