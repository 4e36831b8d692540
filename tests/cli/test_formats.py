"""Option --format: which files --out writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.traces import write_rank
from traceparse.cli import app
from traceparse.cli.words import parse_formats
from traceparse.errors import UsageError
from traceparse.report import charts


@pytest.mark.parametrize(
    "words", [["--format", "json,csv"], ["--format", "json", "--format", "csv"]]
)
def test_formats_are_given_together_or_one_by_one(words, tmp_path):
    path, out = write_rank(tmp_path, 0, 1), tmp_path / "out"
    result = CliRunner().invoke(app, ["analyze", str(path), "--out", str(out), *words])
    assert result.exit_code == 0
    assert sorted(place.name for place in out.iterdir()) == ["report.json", "tables"]
    assert {place.suffix for place in (out / "tables").iterdir()} == {".csv"}
    assert f"wrote {out / 'report.json'}" in result.stderr
    assert f"wrote {out / 'tables/run.csv'}" in result.stderr


def test_an_unknown_format_names_the_choices_before_anything_is_read(tmp_path):
    words = ["analyze", "nowhere", "--out", str(tmp_path / "out"), "--format", "json,pdf"]
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UsageError)
    assert str(result.exception) == (
        "--format 'pdf': give one or more of csv, html, json, md, parquet"
    )
    assert result.exception.exit_status == 2


def test_formats_need_a_folder():
    assert parse_formats(None, out=None) is None
    with pytest.raises(UsageError, match="the folder --out; give it too"):
        parse_formats(["json"], out=None)
    assert parse_formats(["json, md", "json"], out=Path()) == ("json", "md")


@pytest.mark.parametrize(
    ("words", "said"), [("html,md", "report.html, report.md"), ("json", "")]
)
def test_where_charts_cannot_be_drawn_that_is_said(monkeypatch, tmp_path, words, said):
    monkeypatch.setattr(charts, "find_spec", lambda _name: None)
    path, out = write_rank(tmp_path, 0, 1), tmp_path / "out"
    result = CliRunner().invoke(
        app, ["analyze", str(path), "--out", str(out), "--format", words]
    )
    assert result.exit_code == 0
    last = result.stderr.splitlines()[-1]
    expected = (
        f"{said}: without charts: {charts.NEEDED}" if said else f"wrote {out}/report.json"
    )
    assert last == expected
