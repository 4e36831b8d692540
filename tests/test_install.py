"""The package installs with a compiler and without, and reads traces either way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.contract.places import HAND, ROOT

TRACE = HAND / "two-devices" / "py.json"


def installed(folder, compiler):
    """Install what is in the repository, built with a compiler, and return what it says."""
    source, target = folder / "source", folder / "installed"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    unwanted = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "traceparse", source / "traceparse", ignore=unwanted)
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--target", str(target))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", *options, str(source)],
        env={**os.environ, "CC": compiler},
        check=True,
    )
    run = subprocess.run(
        [sys.executable, "-P", "-m", "traceparse", "analyze", str(TRACE), "--json"],
        env={**os.environ, "PYTHONPATH": str(target)},
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    report = json.loads(run.stdout)
    notes = {note["code"]: note["message"] for note in report.pop("notes")}
    report.pop("argv", None)
    return list(target.rglob("_scanner*.so")), report, notes


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_the_native_engine_is_optional(tmp_path):
    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    scanners, report, notes = installed(tmp_path / "with", "cc")
    assert [path.name for path in scanners] == ["_scanner.abi3.so"]
    assert "native_engine_missing" not in notes
    assert {path.name for path in (tmp_path / "with").rglob("installed/traceparse/data/*")} == {
        "accelerators.toml",
        "bands.toml",
        "collectives.toml",
        "kernels.toml",
    }
    scanners, same, others = installed(tmp_path / "without", "/bin/false")
    assert scanners == []
    assert "no C compiler when traceparse was installed" in others.pop("native_engine_missing")
    assert (same, others) == (report, notes)
