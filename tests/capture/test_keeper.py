from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture.loops import facts_beside, names_in, read
from traceparse.capture import keeper
from traceparse.capture.keeper import Keeper, Keeping, raw_path
from traceparse.capture.said import Said
from traceparse.errors import CaptureError
from traceparse.packing import write_facts

RAW = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    ],
    "traceName": "/home/somebody/trace.json",
}


@pytest.fixture
def keeping(tmp_path: Path) -> Keeping:
    target = tmp_path / "rank0_trace.json.gz"
    raw = raw_path(target)
    raw.write_text(json.dumps(RAW, indent=1))
    return Keeping(raw, target, {"params": 3}, overwrite=False, with_host=False)


class Packer:
    """A process beside the job, as it is seen by the job."""

    def __init__(self, answer: bytes, *, polls: tuple[int | None, ...] = (0,)) -> None:
        self.returncode = polls[-1]
        self._answer = answer
        self._polls = list(polls)
        self.waited: list[float] = []

    def poll(self) -> int | None:
        return self._polls.pop(0) if len(self._polls) > 1 else self._polls[0]

    def wait(self, timeout_s: float) -> None:
        self.waited.append(timeout_s)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("python", timeout_s)

    def communicate(self) -> tuple[bytes, None]:
        return self._answer, None


@pytest.fixture
def packer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Packer]:
    def make(answer: object, **options: Any) -> Packer:
        it = Packer(
            answer if isinstance(answer, bytes) else json.dumps(answer).encode(), **options
        )
        monkeypatch.setattr(keeper, "_started", lambda _: it)
        return it

    return make


def test_a_raw_file_is_hidden_and_of_this_process() -> None:
    assert raw_path(Path("a/rank3_trace.json.gz")) == Path(
        f"a/.rank3_trace.json.gz.{os.getpid()}.raw"
    )


@pytest.mark.slow
def test_a_process_beside_the_job_keeps_it(
    keeping: Keeping, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    it = Keeper(Said())
    it.keep(keeping)
    it.wait(60)
    assert not it.is_busy
    assert names_in(keeping.target.parent) == ["rank0_facts.json", "rank0_trace.json.gz"]
    assert it.kept == {keeping.target: facts_beside(keeping.target)}
    assert read(keeping.target)["traceparse"] == {"params": 3}
    assert caplog.messages == [f"traceparse: {keeping.target}: kept, 0.0 MB"]


def test_what_the_process_finds_is_said(
    keeping: Keeping, packer: Callable[..., Packer], caplog: pytest.LogCaptureFixture
) -> None:
    packer({"said": ["a few names are lost"], "facts": {"params": 4}})
    keeping.target.touch()
    it = Keeper(Said())
    it.keep(keeping)
    it.look()
    assert it.kept == {keeping.target: {"params": 4}}
    assert caplog.messages == [f"traceparse: {keeping.target}: a few names are lost"]


def test_a_trace_that_cannot_be_kept_says_where_the_raw_one_is(
    keeping: Keeping, packer: Callable[..., Packer]
) -> None:
    packer({"error": "no room"})
    it = Keeper(Said())
    it.keep(keeping)
    with pytest.raises(CaptureError) as caught:
        it.look()
    assert str(caught.value) == f"no room; what torch wrote is in {keeping.raw}"
    assert not it.is_busy
    assert keeping.raw.exists()


def test_what_else_is_printed_is_no_verdict(
    keeping: Keeping, packer: Callable[..., Packer]
) -> None:
    """GIVEN a sitecustomize of the user that greets."""
    packer(b'hello\n\n{"said": [], "facts": {"params": 4}}\n')
    keeping.target.touch()
    it = Keeper(Said())
    it.keep(keeping)
    it.look()
    assert it.kept == {keeping.target: {"params": 4}}


def test_nobody_waits_for_one_that_still_runs(
    keeping: Keeping, packer: Callable[..., Packer], caplog: pytest.LogCaptureFixture
) -> None:
    process = packer({"said": [], "facts": {}}, polls=(None,))
    it = Keeper(Said())
    it.keep(keeping)
    it.look()
    assert it.is_busy
    it.wait(1.5)
    assert process.waited == [1.5]
    assert it.kept == {}
    assert caplog.messages == [
        f"traceparse: {keeping.target}: still being packed after 1.5 s; it goes on by itself, "
        "give it time before the machine is taken away"
    ]


@pytest.mark.parametrize("overwrite", [False, True])
def test_where_no_process_starts_the_job_packs(
    keeping: Keeping,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    overwrite: bool,
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(subprocess, "Popen", broken)
    if overwrite:
        keeping.target.write_text("old")
    it = Keeper(Said())
    it.keep(
        Keeping(
            keeping.raw, keeping.target, keeping.facts, overwrite=overwrite, with_host=False
        )
    )
    assert names_in(keeping.target.parent) == ["rank0_facts.json", "rank0_trace.json.gz"]
    assert read(keeping.target)["traceparse"] == facts_beside(keeping.target) == {"params": 3}
    assert caplog.messages == [
        f"traceparse: {keeping.target}: no process can be started beside the job (OSError: "
        "[Errno 12] Cannot allocate memory): the trace is packed by the job itself, and not "
        "read back"
    ]


def test_a_process_that_ends_without_a_verdict_is_stood_in_for(
    keeping: Keeping, packer: Callable[..., Packer], caplog: pytest.LogCaptureFixture
) -> None:
    packer(b"", polls=(-9,))
    it = Keeper(Said())
    it.keep(keeping)
    it.look()
    assert read(keeping.target)["traceparse"] == {"params": 3}
    assert caplog.messages == [
        f"traceparse: {keeping.target}: the process that packs the trace ended with status -9: "
        "the job packs it itself, and it is not read back"
    ]


def test_one_that_was_killed_after_it_gave_the_name_has_kept_the_trace(
    keeping: Keeping, packer: Callable[..., Packer]
) -> None:
    """The raw file is removed first of all that comes behind the name."""
    packer(b"", polls=(-9,))
    keeping.raw.rename(keeping.target)
    it = Keeper(Said())
    it.keep(keeping)
    it.look()
    assert it.kept == {keeping.target: {"params": 3}}
    assert facts_beside(keeping.target) == {"params": 3}


def test_the_job_replaces_nothing_either(
    keeping: Keeping, packer: Callable[..., Packer]
) -> None:
    packer(b"", polls=(1,))
    keeping.target.write_text("precious")
    it = Keeper(Said())
    it.keep(keeping)
    with pytest.raises(CaptureError) as caught:
        it.look()
    assert str(caught.value).endswith(f"; what torch wrote is in {keeping.raw}")
    assert keeping.target.read_text() == "precious"


def test_a_process_that_does_not_listen_is_ended(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """GIVEN a Python that ends at once WHEN more is told than a pipe is deep."""
    monkeypatch.setenv("TRACEPARSE_PYTHON", "/bin/true")
    facts = {"groups": "x" * 10**6}
    it = Keeper(Said())
    it.keep(Keeping(keeping.raw, keeping.target, facts, overwrite=False, with_host=False))
    assert facts_beside(keeping.target) == facts
    assert "the job itself, and not read back" in caplog.text


def test_the_process_gets_no_signal_of_the_job_and_captures_nothing(
    keeping: Keeping, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []

    class Process(SimpleNamespace):
        def __init__(self, command: list[str], **options: Any) -> None:
            super().__init__(stdin=(keeping.raw.parent / "told").open("wb"))
            started.append((command, options))

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setenv("TRACEPARSE_CAPTURE", "{}")
    keeper._started(keeping)
    ((command, options),) = started
    assert command[1:] == ["-m", "traceparse.engine.pack"]
    assert options["start_new_session"]
    assert options["stderr"] == subprocess.DEVNULL
    assert "TRACEPARSE_CAPTURE" not in options["env"]
    assert json.loads((keeping.raw.parent / "told").read_bytes()) == {
        "job": os.getpid(),
        "raw": str(keeping.raw),
        "target": str(keeping.target),
        "facts": {"params": 3},
        "overwrite": False,
        "with_host": False,
    }


def test_facts_are_one_readable_file(tmp_path: Path) -> None:
    target = tmp_path / "rank12_trace.json.gz"
    write_facts(target, {"a": 1, "é": ["x"]})
    assert (tmp_path / "rank12_facts.json").read_text() == (
        '{\n "a": 1,\n "\\u00e9": [\n  "x"\n ]\n}\n'
    )
