from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.traces import write_rank
from traceparse import __version__, cli
from traceparse.errors import TraceparseError

HEAVY = {"duckdb", "pandas", "torch", "altair", "pyarrow", "numpy", "msgspec", "jinja2"}


def _run(*words: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "traceparse", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize(
    "words",
    [
        "--version",
        "--help",
        "accelerators --help",
        "analyze --help",
        "demo --help",
        "mfu --help",
        "sql --help",
    ],
)
def test_version_and_help_import_nothing_heavy(words):
    code = (
        "import sys\nfrom traceparse.cli import main\n"
        f"sys.argv = ['traceparse', *{words.split()!r}]\n"
        "try:\n    main()\nfinally:\n    print(sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.strip().startswith(
        f"traceparse {__version__}" if "version" in words else "Usage"
    )
    loaded = {name.strip("'") for name in done.stderr.strip("[]\n").split(", ")}
    assert "typer" in loaded
    assert not loaded & HEAVY


def _main(monkeypatch, *words: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["traceparse", *words])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    return caught.value.code


def test_status_0_and_the_report_on_standard_output(monkeypatch, capsys, tmp_path):
    path = write_rank(tmp_path, 0, 1)
    assert _main(monkeypatch, "analyze", str(path), "--jobs", "1") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("Compute takes 75.0% of a mean window of 0.008000 ms")
    assert "no_step_markers" in captured.err


def test_status_1_and_one_line_for_bad_input(monkeypatch, capsys, tmp_path):
    assert _main(monkeypatch, "analyze", str(tmp_path / "gone")) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert (
        captured.err == f"traceparse: {tmp_path}/gone: no such file or folder; check the path\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ["analyze"],
        ["analyse"],
        ["analyze", "x", "--jobs", "-1"],
        ["analyze", "--steps", "b", "x"],
    ],
)
def test_status_2_for_wrong_words(monkeypatch, capsys, words):
    assert _main(monkeypatch, *words) == 2
    assert capsys.readouterr().out == ""


def test_no_words_at_all_show_the_help(monkeypatch, capsys):
    assert _main(monkeypatch) == 2
    captured = capsys.readouterr()
    assert "analyze" in captured.out + captured.err


def test_debug_shows_the_traceback(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["traceparse", "analyze", str(tmp_path), "--debug"])
    with pytest.raises(TraceparseError):
        cli.main()


def test_an_interruption_is_status_130(monkeypatch, capsys, tmp_path):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("traceparse.engine.analyze", interrupted)
    assert _main(monkeypatch, "analyze", str(tmp_path)) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_a_reader_that_leaves_sees_no_traceback(tmp_path):
    path = write_rank(tmp_path, 0, 1)
    reading, writing = os.pipe()
    os.close(reading)
    command = [
        sys.executable,
        "-m",
        "traceparse",
        "analyze",
        str(path),
        "--json",
        "--jobs",
        "1",
    ]
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert done.stderr == ""


@pytest.mark.slow
def test_the_module_is_the_command():
    done = _run("--version")
    assert (done.returncode, done.stdout) == (0, f"traceparse {__version__}\n")
