"""A program that uses the installed package is checked as strictly as its author likes."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.test_install import installed

PROGRAM = """\
from __future__ import annotations

import traceparse


def slowest(paths: list[str]) -> list[tuple[int | None, int]]:
    report: traceparse.Report = traceparse.analyze(paths, accelerator="h100-sxm", price=2.5)
    windows = [(one.rank, one.window.exposed_comm_ns) for one in report.devices]
    return sorted(windows, key=lambda window: window[1])


def notes(run: traceparse.Run) -> dict[str, str]:
    return {note.code: note.message for note in run.notes}


def main() -> None:
    run = traceparse.read("traces/", extras=["counters"])
    print(slowest(["traces/"]), notes(run), run.sql("SELECT 1").num_rows)
    diff: traceparse.Comparison = traceparse.compare("base/", "new/", steps=range(3, 6))
    curve: traceparse.Scaling = traceparse.scaling(["n1/", "n8/"], mode="weak")
    print(diff.verdict, [one.efficiency for one in curve.runs])
    try:
        with traceparse.profile("traces/", steps=range(10, 13)) as prof:
            prof.step()
    except traceparse.TraceparseError as error:
        raise SystemExit(error.exit_status) from error
"""

WRONG = """\
import traceparse

traceparse.analyze(3)
traceparse.analyze("traces/", accelerater="h100-sxm")
traceparse.read("traces/").report.devices[0].window.exposed_ns
"""


@pytest.mark.slow
def test_mypy_strict_accepts_a_program_and_finds_what_is_wrong_in_one(tmp_path):
    (tmp_path / "build").mkdir()
    installed(tmp_path / "build", "/bin/false")
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True
    )
    (packages,) = (tmp_path / "env").glob("lib/python*/site-packages")
    shutil.copytree(tmp_path / "build" / "installed", packages, dirs_exist_ok=True)

    def said_of(name: str, text: str) -> list[str]:
        program = tmp_path / name
        program.write_text(text)
        checked = subprocess.run(
            [
                *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary"),
                *("--config-file=", "--cache-dir", str(tmp_path / "cache")),
                *("--python-executable", str(tmp_path / "env" / "bin" / "python"), name),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.stderr == ""
        return checked.stdout.splitlines()

    assert said_of("program.py", PROGRAM) == []
    wrong = [line.partition(": ")[0] for line in said_of("wrong.py", WRONG) if "error" in line]
    assert wrong == ["wrong.py:3", "wrong.py:4", "wrong.py:5"]
