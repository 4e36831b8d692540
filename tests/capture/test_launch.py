from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capture.loops import kept_names, names_in
from traceparse.capture import launch
from traceparse.capture.launch import run_demo
from traceparse.errors import CaptureError, MissingExtraError, UsageError

MARK = "traceparse demo runs: something\n"


@pytest.fixture
def run_instead(monkeypatch: pytest.MonkeyPatch) -> RunInstead:
    return RunInstead(monkeypatch)


class RunInstead:
    """Puts a few lines of Python in the place of the training job."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def __call__(self, code: str) -> None:
        command = [sys.executable, "-c", code]
        self.monkeypatch.setattr(launch, "_command", lambda _traces, _ranks: command)


def failure(out: Path, *, ranks: int = 1, timeout_s: float = 60.0) -> str:
    with pytest.raises(CaptureError) as caught:
        run_demo(out, ranks=ranks, timeout_s=timeout_s)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.slow
def test_two_ranks_leave_two_whole_traces_that_communicate(tmp_path: Path) -> None:
    """GIVEN traces of an earlier demo with more ranks THEN only the new ones are there."""
    out = tmp_path / "demo-out"
    (out / "traces").mkdir(parents=True)
    (out / "train.log").write_text(MARK)
    for stale in (*kept_names([0, 2]), ".rank0_trace.json.gz.1.tmp", ".rank1_facts.json.2.tmp"):
        (out / "traces" / stale).write_text("stale")
    traces = run_demo(out, ranks=2)
    assert traces == out / "traces"
    assert names_in(traces) == kept_names([0, 1])
    for rank in range(2):
        trace = json.loads(gzip.decompress((traces / f"rank{rank}_trace.json.gz").read_bytes()))
        assert trace["distributedInfo"]["rank"] == rank
        assert trace["distributedInfo"]["world_size"] == 2
        names = [event["name"] for event in trace["traceEvents"] if event["ph"] == "X"]
        assert sorted(name for name in names if name.startswith("ProfilerStep")) == [
            f"ProfilerStep#{step}" for step in range(10, 14)
        ]
        assert names.count("gloo:all_reduce") >= 4 * 2
        facts = json.loads((traces / f"rank{rank}_facts.json").read_text())
        assert facts["num_params"] == 1_647_488
        assert facts["model_flop_per_rank_step"] == 3_573_547_008
        assert trace["traceparse"]["rank"] == facts["rank"] == rank
    log = (out / "train.log").read_text()
    assert log.startswith(f"traceparse demo runs: {sys.executable} -m traceparse capture ")
    assert "Warning" not in log


def test_no_ranks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        run_demo(tmp_path, ranks=0)
    assert str(caught.value) == "--ranks 0: the demo needs at least one rank"


def test_without_torch_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtraError) as caught:
        run_demo(tmp_path / "out", ranks=2)
    assert str(caught.value) == "the demo needs torch: pip install 'traceparse[capture]'"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["traces/rank0_trace.json.gz", "train.log"])
def test_files_of_someone_else_are_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / name).write_text("precious")
    assert failure(tmp_path) == (
        f"{tmp_path / name}: was there before and no demo wrote it; choose another --out"
    )
    assert (tmp_path / name).read_text() == "precious"


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = failure(tmp_path / "file")
    assert message.startswith(f"{tmp_path / 'file'}: the demo cannot write here: ")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "print('[rank1]:   in line 3'); print('[rank1]: ValueError: no such batch'); "
            "print('torch.x.errors.ChildFailedError: '); print('==='); raise SystemExit(1)",
            "exit status 1: ValueError: no such batch",
        ),
        (
            "print('torch.x.errors.ChildFailedError: '); "
            "print('  traceback : Signal 15 (SIGTERM) received by PID 12'); "
            "print('  traceback : Signal 9 (SIGKILL) received by PID 11'); "
            "print('==='); raise SystemExit(1)",
            "exit status 1: Signal 9 (SIGKILL) received by PID 11",
        ),
        ("print('out of luck\\n'); raise SystemExit(3)", "exit status 3: out of luck"),
        ("raise SystemExit(4)", "exit status 4: it printed nothing"),
    ],
)
def test_a_job_that_fails_is_told_in_one_line(
    tmp_path: Path, run_instead: RunInstead, code: str, said: str
) -> None:
    run_instead(code)
    assert failure(tmp_path) == (
        f"{tmp_path / 'train.log'}: the demo's training failed with {said}"
    )


def test_a_job_that_leaves_no_trace_is_told(tmp_path: Path, run_instead: RunInstead) -> None:
    run_instead("print('traceparse: no trace was kept')")
    assert failure(tmp_path, ranks=2) == (
        f"{tmp_path / 'train.log'}: the demo's training left no trace of rank 0, 1: "
        "traceparse: no trace was kept"
    )


def test_a_job_that_hangs_is_ended(tmp_path: Path, run_instead: RunInstead) -> None:
    run_instead("import signal; signal.pause()")
    assert failure(tmp_path, timeout_s=0.5) == (
        f"{tmp_path / 'train.log'}: the demo's training took over 0.5 s and was ended"
    )


def test_a_child_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_GRACE_S", 0.05)
    code = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print(flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        launch._end(child)
        assert child.returncode == -signal.SIGKILL


def test_the_ranks_talk_over_loopback_if_its_name_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    monkeypatch.setattr("socket.if_nameindex", lambda: [(2, "en0"), (1, "lo0")])
    assert launch._environment()["GLOO_SOCKET_IFNAME"] == "lo0"
    monkeypatch.setattr("socket.if_nameindex", lambda: [(2, "eth0")])
    assert "GLOO_SOCKET_IFNAME" not in launch._environment()
