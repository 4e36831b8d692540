from __future__ import annotations

import pytest

from tests.traces import write_rank
from traceparse.engine import analyze


@pytest.fixture
def report(tmp_path):
    return analyze(write_rank(tmp_path, 0, 1))


def test_top_level_fields_are_those_of_the_contract(report):
    assert set(report.to_dict()) == {
        *("schema_version", "generator", "run", "notes", "files", "devices", "utilization"),
        *("collectives", "clock", "scaling_loss", "roofline", "findings", "summary", "cost"),
        *("what_if", "bands", "top_kernels", "host", "copies", "hta"),
    }
    assert next(iter(report.to_dict())) == "schema_version"


def test_step_times_stand_beside_the_other_fields(report):
    (step,) = report.to_dict()["devices"][0]["steps"]
    assert step["span_ns"] == step["end_ns"] - step["start_ns"] == 8000
    assert "times" not in step
