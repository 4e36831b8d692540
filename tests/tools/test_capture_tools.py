from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import bench, bench_capture, capture_faults, capture_matrix


def rows(text: str) -> list[list[str]]:
    """The cells of a table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.slow
def test_two_ranks_are_captured_in_both_forms(capsys: pytest.CaptureFixture[str]) -> None:
    """GIVEN FSDP2 with checkpoints THEN counted and executed less recomputed FLOP are equal."""
    assert capture_matrix.main(["--ranks", "2", "--only", "fsdp2-other"]) == 0
    found = rows(capsys.readouterr().out)
    assert [row[4] for row in found] == ["context", "command"]
    for row in found:
        named = dict(zip(capture_matrix.TITLES, row, strict=True))
        assert (named["files"], named["losses"]) == ("4 of 4", "same")
        assert (named["checkpointing"], named["compiled (fact)"]) == ("yes", "no")
        assert (named["groups"], named["steps"]) == ("0-1", "10-12")
        counted, executed, recomputed = (
            int(named[name].replace(",", ""))
            for name in ("model FLOP counted a rank", "executed FLOP a step", "recomputed")
        )
        assert counted == executed - recomputed == 97_615_872
        assert named["MFU source"] == "counted"


@pytest.mark.slow
def test_faults_leave_the_job_alone(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["it cannot stop", "another profiler starts meanwhile", "os._exit in rank 1"]
    assert capture_faults.main(names) == 0
    found = rows(capsys.readouterr().out)
    assert [row[0] for row in found] == names
    assert [row[1] for row in found] == [
        "went on, same losses",
        "went on, same losses",
        "ended with status 1, as without",
    ]
    assert "RuntimeError: stop_trace is broken" in found[0][2]
    assert "another profiler begins in this process" in found[1][2]
    assert [row[3] for row in found] == ["none", "rank0_trace.json.gz", "rank0_trace.json.gz"]


@pytest.mark.slow
def test_the_cost_of_capture_is_timed_in_turns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--num-steps", "30", "--recorded", "1", "--hidden", "32", "--repeat", "1"]
    path = tmp_path / "capture.json"
    bench.main(["capture", *words, "--json", str(path)])
    record = json.loads(path.read_text())
    assert record["benchmark"] == "capture"
    assert set(record["rows"]) == {
        "no capture",
        "traceparse.profile",
        "traceparse capture",
        "one process, in turns",
    }
    assert "% by which steps are slower that are not recorded" in capsys.readouterr().out


def test_ratios_are_taken_within_rounds() -> None:
    """GIVEN a machine that was twice as slow in one round THEN it is in no ratio."""
    plain = [{"outside_s": 1.0}, {"outside_s": 2.0}, {"outside_s": 1.0}]
    other = [{"outside_s": 1.01}, {"outside_s": 2.0}, {"outside_s": 1.02}]
    assert bench_capture.paired(other, plain) == pytest.approx(1.01)
    assert bench_capture.paired([], plain) is None
