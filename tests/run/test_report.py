from __future__ import annotations

import json

import pytest

from tests.traces import write_rank
from traceparse.engine import analyze
from traceparse.errors import MissingExtraError
from traceparse.run import write_whole


@pytest.fixture
def report(tmp_path):
    return analyze(write_rank(tmp_path, 0, 1))


def test_top_level_fields_are_those_of_the_contract(report):
    assert set(report.to_dict()) == {
        *("schema_version", "generator", "run", "notes", "files", "devices", "utilization"),
        *("collectives", "clock", "scaling_loss", "roofline", "findings", "summary", "cost"),
        *("what_if", "bands", "top_kernels"),
    }
    assert next(iter(report.to_dict())) == "schema_version"


def test_step_times_stand_beside_the_other_fields(report):
    (step,) = report.to_dict()["devices"][0]["steps"]
    assert step["span_ns"] == step["end_ns"] - step["start_ns"] == 8000
    assert "times" not in step


def test_saving_writes_whole_files(report, tmp_path):
    out = tmp_path / "new" / "folder"
    paths = report.save(out)
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "report.json"]
    assert {path.name for path in paths} == {"report.html", "report.json"}
    assert json.loads((out / "report.json").read_text()) == report.to_dict()


def test_an_unknown_format_is_refused_before_anything_is_written(report, tmp_path):
    with pytest.raises(
        MissingExtraError, match="report format pdf is not installed; there are"
    ):
        report.save(tmp_path / "out", formats=["json", "pdf"])
    assert not (tmp_path / "out").exists()


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
