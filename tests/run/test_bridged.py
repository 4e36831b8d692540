"""What a run asks of bridges, by their entry points."""

from __future__ import annotations

import pytest

from tests.traces import write_rank
from traceparse.engine import read
from traceparse.errors import MissingExtraError


@pytest.fixture
def run(tmp_path):
    return read(write_rank(tmp_path, 0, 1))


def test_a_run_is_asked_in_sql(run):
    found = run.sql("SELECT kind, sum(dur_ns) AS ns FROM kernels GROUP BY kind ORDER BY kind")
    assert found.to_pylist() == [{"kind": "comm", "ns": 4000}, {"kind": "compute", "ns": 6000}]
    assert found.to_pandas()["ns"].sum() == 10_000


def test_where_no_package_has_the_bridge_a_line_says_so(run, monkeypatch):
    monkeypatch.setattr("traceparse.run.bridged.entry_points", lambda **_: ())
    with pytest.raises(MissingExtraError, match="no installed package queries a run; install"):
        run.sql("SELECT 1")
