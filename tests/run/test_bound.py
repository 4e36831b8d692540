"""What bounds a run: views worked out by hand, of 1,000 ns."""

from __future__ import annotations

import pytest

from tests.run.findings.conftest import Seen
from tools.findings_cases import Scene
from tools.findings_table import report_of
from tools.simulate_findings import Training
from traceparse.run.bound import Bound, bound_of

NOBODY = Bound(None, None)


@pytest.fixture
def seen():
    return Seen()


def product(seen, bound, time_ns=1_000, **fields):
    return seen.product("64x64, 64x64", reached=0.5, bound=bound, time_ns=time_ns, **fields)


def host(**known):
    return {"data_loader_ns": 0, "sync_ns": 0, "launch_ns": 0, "unknown_ns": 0, **known}


def test_communication(seen):
    view = seen.view(compute=400, comm=450, idle=150, counted_ns=400)
    assert bound_of(view) == Bound("communication", 0.45)


def test_the_host_where_it_is_known_what_it_did(seen):
    idle = {"compute": 300, "idle": 700, "counted_ns": 300}
    told = host(data_loader_ns=100, sync_ns=150, launch_ns=250, unknown_ns=200)
    assert bound_of(seen.view(host=told, **idle)) == Bound("host", 0.5)
    assert bound_of(seen.view(**idle)) == NOBODY
    # 300 ns of unknown cause may be the host's or not: 400 against 300 at most
    unknown = host(launch_ns=100, unknown_ns=600)
    assert bound_of(seen.view(host=unknown, **idle)) == NOBODY


def test_memory_is_uncounted_kernels_and_counted_ones_below_its_roof(seen):
    rows = [product(seen, "memory"), product(seen, "compute", 3_000)]
    view = seen.view(compute=1_000, counted_ns=400, roofline=rows)
    assert bound_of(view) == Bound("memory", 0.7)
    view = seen.view(compute=1_000, counted_ns=800, roofline=rows)
    assert bound_of(view) == Bound("compute", 0.8 * 0.75)


def test_what_uses_little_of_the_bandwidth_is_not_bound_by_it(seen):
    fields = {"compute": 1_000, "counted_ns": 1_000}
    slow = product(seen, "memory", roof_ratio=0.49)
    assert bound_of(seen.view(roofline=[slow], **fields)) == Bound("compute", 1.0)
    small = product(seen, "latency")
    assert bound_of(seen.view(roofline=[small], **fields)) == Bound("compute", 1.0)
    unknown = product(seen, None)
    assert bound_of(seen.view(roofline=[unknown], **fields)) == NOBODY


def test_kernels_that_nobody_knows_may_be_either(seen):
    kernels = {"time_ns": 100, "unattributed_time_ns": 30}
    fields = {"compute": 1_000, "kernels": kernels, "roofline": [product(seen, "compute")]}
    assert bound_of(seen.view(counted_ns=600, **fields)) == Bound("compute", 0.6)
    assert bound_of(seen.view(counted_ns=400, **fields)) == NOBODY


def test_what_a_host_does_besides_products_may_be_anything(seen):
    fields = {"compute": 1_000, "roofline": [product(seen, "compute")], "is_host": True}
    assert bound_of(seen.view(counted_ns=600, **fields)) == Bound("compute", 0.6)
    assert bound_of(seen.view(counted_ns=400, **fields)) == NOBODY


def test_without_shapes_communication_can_be_named_and_kernels_cannot(seen):
    assert bound_of(seen.view(compute=400, comm=600)) == Bound("communication", 0.6)
    assert bound_of(seen.view(compute=600, comm=400)) == NOBODY


def test_where_copies_take_most_none_of_the_four_does(seen):
    assert bound_of(seen.view(compute=200, copy=500, comm=300, counted_ns=200)) == NOBODY


def test_no_time_is_bound_by_nothing(seen):
    assert bound_of(seen.view(compute=0)) == NOBODY


@pytest.mark.parametrize(
    ("training", "by"),
    [
        pytest.param(Training(), "compute", id="compute"),
        pytest.param(Training(num_pointwise=12), "memory", id="memory"),
        pytest.param(
            Training(is_overlapped=False, reduced=1 << 28), "communication", id="communication"
        ),
        pytest.param(Training(load_ns=4_000_000, num_syncs=1), "host", id="host"),
    ],
)
def test_the_verdict_on_a_job_names_what_it_was_made_to_wait_for(training, by):
    summary = report_of(Scene(by, training))["summary"]
    assert summary["bound"]["by"] == by
    assert 0.5 < summary["bound"]["ratio"] < 1
    assert summary["verdict"].startswith(f"{by.capitalize()}-bound: ")
