"""``traceparse overlay``: what is asked for, what is said, and what is left of it."""

from __future__ import annotations

import json

import pytest

from tests.traces import job, kernel, launch, op, span, step, write


@pytest.fixture
def overlay(run):
    return lambda *words: run(*words, "--no-cache")


@pytest.fixture
def traces(tmp_path):
    """Two ranks of two steps, which never met."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(2):
        events = [
            *(step(1, 10, 90), op(12, 20), launch(15, correlation=1)),
            *(kernel(20, 40, correlation=1), step(2, 100, 90), launch(105, correlation=2)),
            *(kernel(110, 40, correlation=2), span("python_function", "f", 11, 3)),
        ]
        write(folder / f"rank{rank}.json", events, distributedInfo=job(rank, 2))
    return folder


def test_a_file_is_written_and_said_so_on_standard_error(overlay, traces, tmp_path):
    out = tmp_path / "o.json"
    status, printed, said = overlay(traces, "-o", out, "--ranks", "1")
    assert (status, printed) == (0, "")
    document = json.loads(out.read_text())
    num = len(document["traceEvents"])
    megabytes = f"{out.stat().st_size / 1e6:.3f}"
    assert said == (
        f"wrote {out}: {num:,} events of 1 rank, {megabytes} MB of JSON; open it at "
        f"https://ui.perfetto.dev\n"
    )
    assert document["distributedInfo"]["rank"] == 1


def test_quiet_says_nothing(overlay, traces, tmp_path):
    assert overlay(traces, "-o", tmp_path / "o.json", "--quiet") == (0, "", "")


def test_what_was_left_out_and_what_is_doubtful_is_said(overlay, traces, tmp_path):
    out = tmp_path / "o.json"
    status, _, said = overlay(traces, "-o", out, "--max-bytes", "14kB")
    assert status == 0
    first, second, _ = said.splitlines()
    assert first.startswith("left out to stay under its size: ")
    assert (
        first.partition(": ")[2].split("; ")
        == (json.loads(out.read_text())["traceparse_overlay"]["left_out"])
    )
    assert second.startswith("note: clocks of ranks are not aligned")
    assert out.stat().st_size <= 14_000


def test_steps_are_drawn_alone(overlay, traces, tmp_path):
    out = tmp_path / "o.json.gz"
    assert overlay(traces, "-o", out, "--steps", "2")[0] == 0
    status, _, said = overlay(traces, "-o", out, "--steps", "7")
    assert (status, said) == (
        1,
        "traceparse: no trace has step 7: they have 1-2; change --steps\n",
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--ranks", "1-"], 2, "--ranks '1-': give ranks or ranges of them, such as 0,1,8-15"),
        (["--max-bytes", "much"], 2, "--max-bytes 'much': give a size, such as 200MB"),
        (["--max-bytes", "10"], 2, "--max-bytes 10: a step of these ranks takes more than"),
        (["--ranks", "5"], 1, "no trace has rank 5: they have 0-1; change --ranks"),
        (["--ceiling", "sky"], 2, "--ceiling 'sky': there are spec and mamf"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(overlay, traces, tmp_path, words, status, said):
    out = tmp_path / "o.json"
    found, printed, errors = overlay(traces, "-o", out, *words)
    assert (found, printed, errors.count("\n")) == (status, "", 1)
    assert errors.startswith(f"traceparse: {said}")
    assert not out.exists()


def test_a_file_is_asked_for(overlay, traces):
    status, _, said = overlay(traces)
    assert status == 2
    assert "--out" in said


def test_what_was_there_stays_if_writing_fails(overlay, traces, tmp_path, monkeypatch):
    out = tmp_path / "o.json"
    out.write_text("before")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("traceparse.bridge.overlay.file.timed", full)
    status, _, said = overlay(traces, "-o", out)
    assert (status, said) == (
        1,
        f"traceparse: {out}: cannot be written to (No space left on device); give -o another "
        f"file\n",
    )
    assert out.read_text() == "before"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["o.json", "traces"]
