from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata

import pytest
from typer.testing import CliRunner

from tests.traces import kernel, launch, step, write, write_rank
from traceparse.cli import app
from traceparse.engine import analyze
from traceparse.errors import InputError, MissingExtraError, StrictError, UsageError


def _run(*words, fails: type[Exception] | None = None):
    result = CliRunner().invoke(app, ["analyze", *map(str, words), "--jobs", "1"])
    if fails:
        assert isinstance(result.exception, fails)
    else:
        assert result.exit_code == 0, result.output
    return result


def test_an_analysis_does_without_pandas(tmp_path):
    words = ["traceparse", "analyze", str(write_rank(tmp_path, 0, 1)), "--out", str(tmp_path)]
    code = (
        "import sys\nfrom traceparse.cli import main\n"
        f"sys.argv = {words!r}\n"
        "try:\n    main()\nfinally:\n    assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_json_is_the_report_and_nothing_else(tmp_path):
    path = write_rank(tmp_path, 0, 1)
    result = _run(path, "--json")
    assert json.loads(result.stdout) == analyze(path).to_dict()
    assert result.stderr == ""


def test_quiet_says_nothing_on_standard_error(tmp_path):
    path = write_rank(tmp_path, 0, 4)
    assert "missing_ranks" in _run(path).stderr
    result = _run(path, "--quiet", "--out", tmp_path / "out")
    assert result.stderr == ""
    assert "Compute takes" in result.stdout


def test_out_writes_the_report_and_says_where(tmp_path):
    path = write_rank(tmp_path, 0, 1)
    result = _run(path, "--out", tmp_path / "out")
    assert f"wrote {tmp_path}/out/report.json" in result.stderr
    assert json.loads((tmp_path / "out/report.json").read_text()) == analyze(path).to_dict()
    assert (tmp_path / "out/report.html").read_text().startswith("<!doctype html>")


def test_nothing_is_written_when_it_fails(tmp_path):
    path = write_rank(tmp_path, 0, 2)
    _run(path, "--strict", "--out", tmp_path / "out", fails=StrictError)
    assert not (tmp_path / "out").exists()


def test_steps_and_rank_are_passed_on(tmp_path):
    events = [
        *(step(n, 100 * n, 90) for n in (1, 2)),
        *(launch(100 * n + 1, correlation=n) for n in (1, 2)),
        *(kernel(100 * n + 10, 5, correlation=n) for n in (1, 2)),
    ]
    path = write(tmp_path / "t.json", events)
    report = json.loads(_run(path, "--steps", "1", "--rank", "7", "--json").stdout)
    assert report["run"]["ranks"] == [7]
    assert [step["step"] for step in report["devices"][0]["steps"]] == [1]
    _run(path, "--steps", "x", fails=UsageError)


def test_what_was_digested_is_kept_where_it_is_wanted(tmp_path, monkeypatch):
    path = write_rank(tmp_path, 0, 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    first = _run(path, "--json", "--no-cache").stdout
    assert not (tmp_path / "user").exists()
    assert _run(path, "--json", "--cache", tmp_path / "here").stdout == first
    assert not (tmp_path / "user").exists()
    assert len(list((tmp_path / "here").glob("*.parquet"))) == 1
    for _ in range(2):
        assert _run(path, "--json").stdout == first
        assert len(list((tmp_path / "user" / "traceparse").glob("*.parquet"))) == 1
    _run(path, "--cache", tmp_path, "--no-cache", fails=UsageError)


def test_names_in_a_trace_cannot_drive_the_terminal(tmp_path):
    folder = tmp_path / "[red]\x1b[31m"
    folder.mkdir()
    write_rank(folder, 0, 4)
    result = _run(folder)
    assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.parametrize("command", ["analyze", "demo", "schema"])
def test_every_command_explains_itself(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert command in result.stdout


def test_out_that_is_no_folder_is_one_line(tmp_path):
    path = write_rank(tmp_path, 0, 1)
    result = _run(path, "--out", path, fails=InputError)
    assert str(result.exception) == (
        f"{path}: cannot be written to (File exists); give --out another folder"
    )


@pytest.mark.hta
def test_hta_adds_what_hta_finds(tmp_path):
    pytest.importorskip("hta")
    events = [launch(100, correlation=5), kernel(110, 20, correlation=5)]
    path = write(tmp_path / "t.json", events)
    report = json.loads(_run(path, "--hta", "--json").stdout)
    (queue,) = report["hta"]["queue_length"]
    assert (queue["rank"], queue["stream"], queue["max"]) == (0, 7, 1)
    assert json.loads(_run(path, "--json").stdout) == {**report, "hta": None}


def test_hta_that_is_not_installed_is_named_before_anything_is_read(tmp_path, monkeypatch):
    def version(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    result = _run(tmp_path / "nowhere", "--hta", fails=MissingExtraError)
    assert str(result.exception) == "HTA is not installed: pip install 'traceparse[hta]'"
