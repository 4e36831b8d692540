"""The tool that installs traceparse as a newcomer does: what it measures, what it refuses."""

from __future__ import annotations

import pytest

from tests.contract.places import ROOT
from tools import newcomer
from tools.newcomer import COMMANDS, Installed, NewcomerError, extras, megabytes

EXTRAS = extras((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture
def environment(tmp_path):
    """Make an environment whose traceparse is a script."""

    def make(script, name="venv"):
        packages = tmp_path / name / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True)
        command = tmp_path / name / "bin" / "traceparse"
        command.parent.mkdir()
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        return Installed(tmp_path / name)

    return make


def test_every_extra_has_a_command_and_all_is_none():
    assert {"", *EXTRAS} == COMMANDS.keys()
    assert "all" not in EXTRAS


def test_megabytes_are_those_on_disk(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_bytes(b"x" * 3_000_000)
    assert megabytes(tmp_path) == pytest.approx(3.0, abs=0.01)


def test_what_is_installed_is_found(environment):
    made = environment("")
    for name in ("One", "two"):
        about = made.packages / f"{name}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    assert made.names() == {"one", "two"}


def test_a_command_is_run_twice_and_may_not_fail(environment, tmp_path):
    made = environment('echo "$@" >> "$PWD/ran"; test "$1" = analyze')
    found = newcomer.figures(made, "hta", tmp_path / "traces", tmp_path)
    assert all(isinstance(value, float) and value > 0 for value in found.values())
    ran = (tmp_path / "ran").read_text().splitlines()
    assert ran == [f"analyze {tmp_path}/traces --no-cache --hta"] * 2
    with pytest.raises(NewcomerError, match=r"^traceparse sql .*: status 1"):
        newcomer.figures(made, "sql", tmp_path / "traces", tmp_path)


def test_with_charts_there_must_be_charts(environment, tmp_path):
    with pytest.raises(NewcomerError, match="no charts"):
        newcomer.figures(environment("true"), "report", tmp_path, tmp_path)


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_extra_has_to_be_said_in_a_line(environment, tmp_path, extra):
    said = f"traceparse: needs it: pip install 'traceparse[{extra}]'"
    made = environment(f'echo before; echo "{said}"; exit 1')
    assert newcomer.require_said(made, extra, tmp_path, tmp_path) == said
    silent = environment("exit 1", "silent")
    with pytest.raises(NewcomerError, match=f"without {extra} says"):
        newcomer.require_said(silent, extra, tmp_path, tmp_path)
    loud = environment(f'echo Traceback; echo "{said}"', "loud")
    with pytest.raises(NewcomerError):
        newcomer.require_said(loud, extra, tmp_path, tmp_path)


def test_the_table_and_what_is_said_without(environment, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(newcomer, "extras", lambda _: ["sql"])
    figures = {"install_s": 1.0, "megabytes": 2.5, "num_packages": 3}
    monkeypatch.setattr(newcomer, "install", lambda *_: dict(figures))
    monkeypatch.setattr(newcomer, "Installed", lambda path: environment("true", path.name))
    monkeypatch.setattr(newcomer, "require_said", lambda *_: "install it")
    assert newcomer.main([str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:4]] == [".", ".[sql]"]
    assert lines[-1] == "without sql: install it"


def test_what_cannot_be_installed_ends_in_one_line(tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise NewcomerError("pip install .: no network")

    monkeypatch.setattr(newcomer, "install", refuse)
    assert newcomer.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "newcomer.py: pip install .: no network"
