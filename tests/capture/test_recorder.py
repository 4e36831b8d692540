from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.capture.loops import work
from traceparse.capture import recorder
from traceparse.capture.recorder import ANOTHER_RUNS, Recorder
from traceparse.capture.rivals import RIVALS
from traceparse.errors import CaptureError


def never() -> None:
    pytest.fail("nobody else runs a profiler")


def recorder_of(**options: Any) -> Recorder:
    RIVALS.watch()
    return Recorder(**{"stacks": False, "memory": False, "give_way": never, **options})


@pytest.fixture(autouse=True)
def nothing_runs_afterwards() -> Iterator[None]:
    yield
    assert not torch.autograd._profiler_enabled()
    assert not RIVALS.is_busy


def recorded(tmp_path: Path, it: Recorder) -> dict[str, Any]:
    it.write(tmp_path / "raw", tmp_path / "target")
    trace: dict[str, Any] = json.loads((tmp_path / "raw").read_bytes())
    return trace


def test_what_runs_between_start_and_stop_is_written(tmp_path: Path) -> None:
    it = recorder_of()
    torch.zeros(1)
    it.start()
    assert it.is_recording
    it.begin_step(7)
    work()
    it.end_step()
    it.end_step()
    it.stop()
    torch.zeros(1)
    names = [event["name"] for event in recorded(tmp_path, it)["traceEvents"]]
    assert names.count("aten::mm") == names.count("ProfilerStep#7") == 1
    assert "aten::zeros" not in names


@pytest.mark.parametrize("starts", [False, True])
def test_what_is_abandoned_does_not_run_on(starts: bool) -> None:
    it = recorder_of()
    if starts:
        it.start()
    it.abandon()
    assert not it.is_recording
    it.abandon()


def test_a_start_that_fails_halfway_does_not_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch tells its own facts once it records: that may fail."""

    def broken(*_: Any) -> None:
        raise RuntimeError("no such thing")

    it = recorder_of()
    monkeypatch.setattr(torch.profiler._KinetoProfile, "add_metadata_json", broken)
    with pytest.raises(RuntimeError, match="no such thing"):
        it.start()
    assert torch.autograd._profiler_enabled()
    it.abandon()


def test_one_that_runs_already_is_left_alone() -> None:
    with torch.profiler.profile() as other:
        with pytest.raises(CaptureError) as caught:
            recorder_of()
        work()
    assert str(caught.value) == ANOTHER_RUNS
    assert any(event.key == "aten::mm" for event in other.key_averages())


def test_one_that_took_its_place_is_told() -> None:
    it = recorder_of()
    it.start()
    torch.autograd._disable_profiler()  # nobody is seen who does it like this
    with pytest.raises(CaptureError) as caught:
        it.stop()
    assert str(caught.value) == "another profiler took the place of ours: what it had is lost"


def test_a_device_that_stopped_before_the_end_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.autograd, "_is_kineto_stopped", lambda: True, raising=False)
    it = recorder_of()
    it.start()
    it._session.use_device = "cuda"
    it.stop()
    assert it.device_stopped


def test_without_a_device_none_can_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.autograd, "_is_kineto_stopped", lambda: True, raising=False)
    it = recorder_of()
    it.start()
    it.stop()
    assert not it.device_stopped


WHOLE = b'{"traceEvents": [{"name": "Record Window End", "ts": 1}\n]}\n'


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, "t: torch wrote no trace; is the directory writable, or the disk full?"),
        (b"", "t: torch wrote no trace; is the directory writable, or the disk full?"),
        (WHOLE[:-4], "t: torch stopped in the middle of writing the trace (55 bytes); is the "),
        (WHOLE[:20], "t: torch stopped in the middle of writing the trace (20 bytes); is the "),
        (b"x" * 20_000, "t: torch stopped in the middle of writing the trace (20000 bytes); "),
    ],
)
def test_a_file_that_is_not_whole_is_refused(
    tmp_path: Path, written: bytes | None, said: str
) -> None:
    raw = tmp_path / "raw"
    if written is not None:
        raw.write_bytes(written)
    with pytest.raises(CaptureError) as caught:
        recorder._check_whole(raw, Path("t"))
    assert str(caught.value).startswith(said)


def test_a_whole_file_is_accepted(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_bytes(b" " * 20_000 + WHOLE)
    recorder._check_whole(raw, raw)


def torch_with(devices: dict[str, bool], supported: set[str]) -> Any:
    return SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: devices["cuda"]),
        xpu=SimpleNamespace(is_available=lambda: devices["xpu"]),
        profiler=SimpleNamespace(
            ProfilerActivity=SimpleNamespace(CPU="cpu", CUDA="cuda", XPU="xpu"),
            supported_activities=lambda: supported,
        ),
    )


@pytest.mark.parametrize(
    ("devices", "supported", "recorded"),
    [
        ({"cuda": True, "xpu": False}, {"cpu", "cuda", "xpu"}, ["cpu", "cuda"]),
        ({"cuda": False, "xpu": True}, {"cpu", "cuda", "xpu"}, ["cpu", "xpu"]),
        ({"cuda": True, "xpu": False}, {"cpu"}, ["cpu"]),
    ],
)
def test_devices_that_are_there_are_recorded(
    devices: dict[str, bool], supported: set[str], recorded: list[str]
) -> None:
    assert recorder._activities(torch_with(devices, supported)) == recorded


def test_only_the_file_is_asked_for_where_torch_can() -> None:
    made: list[dict[str, Any]] = []

    def config(**options: Any) -> str:
        made.append(options)
        return "config"

    def torch_like(make: Callable[..., Any]) -> Any:
        return SimpleNamespace(
            _C=SimpleNamespace(_profiler=SimpleNamespace(_ExperimentalConfig=make))
        )

    def old(**_: Any) -> None:
        raise TypeError("no such option")

    assert recorder._trace_only(torch_like(config), stacks=False) == "config"
    assert made == [{"trace_only": True}]
    assert recorder._trace_only(torch_like(config), stacks=True) is None
    assert recorder._trace_only(torch_like(old), stacks=False) is None
