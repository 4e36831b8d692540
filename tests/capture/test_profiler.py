from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import traceparse
from tests.capture.loops import (
    facts_beside,
    kept_names,
    loop,
    names_in,
    read,
    step_names,
    work,
)
from traceparse.capture import profile
from traceparse.errors import MissingExtraError, UsageError
from traceparse.ingest import read_trace

pytestmark = pytest.mark.usefixtures("packed_at_once")


@pytest.mark.parametrize(
    "steps",
    [range(1), range(3), range(1, 2), range(1, 4), range(2, 3), range(3, 7), [4, 5]],
    ids=str,
)
def test_spans_in_the_trace_have_exactly_the_asked_numbers(
    tmp_path: Path, steps: Any, caplog: pytest.LogCaptureFixture
) -> None:
    prof = loop(tmp_path, 9, steps=steps)
    assert prof.path == tmp_path / "rank0_trace.json.gz"
    assert step_names(prof.path) == [f"ProfilerStep#{step}" for step in steps]
    assert caplog.messages == []


def test_every_step_has_the_work_that_was_done_in_it(tmp_path: Path) -> None:
    """GIVEN k+1 products in step k THEN span k holds k+1: no step is off by one."""
    with profile(tmp_path, steps=range(2, 5)) as prof:
        for step in range(6):
            for _ in range(step + 1):
                work()
            prof.step()
    events = read(tmp_path / "rank0_trace.json.gz")["traceEvents"]
    counts = {
        span["name"]: sum(
            event["name"] == "aten::mm" and 0 <= event["ts"] - span["ts"] < span["dur"]
            for event in events
        )
        for span in events
        if span["name"].startswith("ProfilerStep")
    }
    assert counts == {"ProfilerStep#2": 3, "ProfilerStep#3": 4, "ProfilerStep#4": 5}


def test_the_file_is_whole_has_shapes_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    loop(tmp_path / "new" / "traces", 4, steps=range(1, 3))
    assert names_in(tmp_path / "new" / "traces") == kept_names([0])
    trace = read(tmp_path / "new" / "traces" / "rank0_trace.json.gz")
    assert trace["record_shapes"] == 1
    assert trace["traceEvents"][-1]["name"] == "Record Window End"
    products = [event for event in trace["traceEvents"] if event["name"] == "aten::mm"]
    assert [event["args"]["Input Dims"] for event in products] == [[[4, 8], [8, 2]]] * 2
    assert not any(event.get("cat") == "python_function" for event in trace["traceEvents"])


def test_stacks_and_memory_are_recorded_when_asked_for(tmp_path: Path) -> None:
    trace = read(loop(tmp_path, 2, steps=range(1), stacks=True, memory=True).path)
    assert trace["with_stack"] == trace["profile_memory"] == 1
    assert any(event.get("cat") == "python_function" for event in trace["traceEvents"])
    assert any(event["name"] == "[memory]" for event in trace["traceEvents"])


def test_profile_is_public() -> None:
    assert traceparse.profile is profile


def test_rank_is_the_given_one_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "2")
    assert loop(tmp_path, 1, steps=range(1)).path == tmp_path / "rank2_trace.json.gz"
    assert loop(tmp_path, 1, steps=range(1), rank=7).path == tmp_path / "rank7_trace.json.gz"


def test_rank_of_torch_distributed_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_group: Callable[[], None]
) -> None:
    monkeypatch.setenv("RANK", "2")
    fake_group()
    prof = loop(tmp_path, 1, steps=range(1))
    assert prof.path == tmp_path / "rank3_trace.json.gz"
    assert read(prof.path)["distributedInfo"]["rank"] == 3


def test_rank_may_be_known_only_after_entering(
    tmp_path: Path, fake_group: Callable[[], None]
) -> None:
    with profile(tmp_path, steps=range(1)) as prof:
        fake_group()
        work()
        prof.step()
    assert names_in(tmp_path) == kept_names([3])


def test_a_rank_in_the_environment_that_is_none_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("RANK", "first")
    assert loop(tmp_path, 3, steps=range(1, 2)).path is None
    assert caplog.messages == [
        "traceparse: no trace was kept, training goes on: RANK='first' in the environment is "
        "no rank; set it, or pass rank="
    ]


def test_a_negative_rank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^rank=-1: ranks count from 0$"):
        profile(tmp_path, rank=-1)


@pytest.mark.parametrize(
    "steps", [range(0), range(10, 13, 2), [3, 5], [5, 4], range(-1, 2), 7, "3-5", ["a"], {3, 4}]
)
def test_steps_that_are_no_contiguous_range_are_refused(tmp_path: Path, steps: Any) -> None:
    with pytest.raises(UsageError) as caught:
        profile(tmp_path, steps=steps)
    assert str(caught.value) == (
        f"steps={steps!r}: needs one contiguous range of steps counted from 0, "
        "such as range(10, 13), or a schedule of torch.profiler"
    )


@pytest.mark.usefixtures("alone")
def test_the_trace_and_a_file_beside_it_say_what_is_known_of_the_job(tmp_path: Path) -> None:
    known = {
        "model_flop_per_step": 10**30 - 1,
        "params": 16,
        "tokens_per_step": 4096,
        "samples_per_step": 8,
    }
    prof = loop(tmp_path, 4, steps=range(1, 3), **known)
    told = read(prof.path)["traceparse"]
    assert told.items() <= facts_beside(prof.path).items()
    assert told == {
        **known,
        "facts_version": 1,
        "traceparse_version": traceparse.__version__,
        "python_version": ".".join(map(str, sys.version_info[:3])),
        "torch_version": str(torch.__version__),
        "device_name": told["device_name"],
        "num_threads": torch.get_num_threads(),
        "rank": 0,
        "steps": [1, 2],
        "step_on": "step()",
    }
    assert prof.path is not None
    beside = facts_beside(prof.path)
    assert read_trace(prof.path).header.facts == beside
    size, events = prof.path.stat().st_size, read(prof.path)["traceEvents"]
    assert beside.keys() - told.keys() == {"num_events", "trace_bytes"}
    assert {name: beside[name] for name in ("num_events", "trace_bytes")} == {
        "num_events": len(events),
        "trace_bytes": size,
    }


def test_times_that_are_known_later_are_in_the_file_beside_it(tmp_path: Path) -> None:
    """GIVEN steps before and behind the recorded ones THEN both are compared."""
    prof = loop(tmp_path, 9, steps=range(3, 5))
    early, late = read(prof.path)["traceparse"], facts_beside(prof.path)
    # step 1 is looked at, and step 2 makes ready
    assert "num_unprofiled_steps" not in early
    assert late["num_unprofiled_steps"] == 3
    ratio = late["profiled_step_ns"] / late["unprofiled_step_ns"] - 1
    assert late["capture_overhead_ratio"] == pytest.approx(ratio, abs=1e-6)


def test_threads_are_those_at_the_end(tmp_path: Path) -> None:
    num_threads = torch.get_num_threads()
    with profile(tmp_path, steps=range(1, 3)) as prof:
        prof.step()
        prof.step()
        torch.set_num_threads(1)
        work()
        prof.step()
    torch.set_num_threads(num_threads)
    assert read(prof.path)["traceparse"]["num_threads"] == 1


def test_a_loop_that_ends_early_has_told_it(tmp_path: Path) -> None:
    with profile(tmp_path, steps=range(1, 5), params=3) as prof:
        prof.step()
        work()
    told = read(prof.path)["traceparse"]
    assert (told["params"], told["steps"]) == (3, [1, 1])


def test_host_command_and_folder_are_told_only_when_asked_for(tmp_path: Path) -> None:
    secret = {"host_name", "command", "folder"}
    without, with_host = (
        loop(tmp_path / f"{n}", 1, steps=range(1), with_host=bool(n)) for n in range(2)
    )
    assert not secret & read(without.path)["traceparse"].keys()
    assert os.fspath(tmp_path) not in json.dumps(read(without.path))
    told = read(with_host.path)
    assert told["traceparse"]["command"] == sys.argv
    assert told["traceparse"]["folder"] == os.fspath(Path.cwd())
    assert told["traceparse"]["host_name"] == os.uname().nodename
    assert read(without.path)["traceName"] == told["traceName"] == "rank0_trace.json"


@pytest.mark.parametrize(
    "name", ["model_flop_per_step", "params", "tokens_per_step", "samples_per_step"]
)
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "7", 10**30], ids=repr)
def test_what_is_told_of_the_job_are_whole_numbers(
    tmp_path: Path, name: str, value: Any
) -> None:
    with pytest.raises(UsageError) as caught:
        profile(tmp_path, **{name: value})
    assert str(caught.value) == (
        f"{name}={value!r}: needs a whole number above 0 and below 10**30"
    )


def test_a_fact_that_torch_does_not_tell_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("no driver\nand more of that")

    monkeypatch.setattr(torch.xpu, "is_available", lambda: True)
    monkeypatch.setattr(torch.xpu, "get_device_properties", broken)
    prof = loop(tmp_path, 2, steps=range(1), params=3)
    told = read(prof.path)["traceparse"]
    assert "device_name" not in told
    assert (told["params"], told["rank"]) == (3, 0)
    assert caplog.messages == [
        "traceparse: facts are missing (device_facts), training goes on: "
        "RuntimeError: no driver"
    ]


ALREADY = (
    "there is a trace of rank 0 already; "
    "choose another directory, or pass overwrite=True to replace it"
)


def test_a_trace_that_is_there_already_is_not_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rank0_trace.json.gz"
    path.write_text("precious")
    assert loop(tmp_path, 3, steps=range(1, 2)).path is None
    assert caplog.messages == [
        f"traceparse: no trace was kept, training goes on: {path}: {ALREADY}"
    ]
    assert path.read_text() == "precious"
    assert names_in(tmp_path) == [path.name]


def test_overwrite_replaces_it(tmp_path: Path) -> None:
    (tmp_path / "rank0_trace.json.gz").write_text("old")
    loop(tmp_path, 2, steps=range(1), overwrite=True)
    assert step_names(tmp_path / "rank0_trace.json.gz") == ["ProfilerStep#0"]


def test_a_trace_that_appears_during_training_is_not_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rank0_trace.json.gz"
    with profile(tmp_path, steps=range(1)) as prof:
        path.write_text("precious")
        work()
        prof.step()
    assert path.read_text() == "precious"
    assert prof.path is None
    raw = tmp_path / f".{path.name}.{os.getpid()}.raw"
    assert caplog.messages == [
        f"traceparse: no trace was kept, training goes on: {path}: another process kept a "
        "trace of this rank meanwhile; choose another directory for each job; what torch wrote "
        f"is in {raw}"
    ]
    assert names_in(tmp_path) == [raw.name, path.name]


def test_a_directory_that_cannot_be_made_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    assert loop(tmp_path / "file", 3, steps=range(1, 2)).path is None
    assert caplog.messages == [
        f"traceparse: no trace was kept, training goes on: {tmp_path / 'file'}: is no "
        "directory and cannot be made one: File exists"
    ]


def test_an_exception_goes_on_and_what_was_recorded_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(KeyError, match="batch 3"), profile(tmp_path, steps=range(1, 5)) as prof:
        for step in range(5):
            if step == 3:
                raise KeyError("batch 3")
            work()
            prof.step()
    path = tmp_path / "rank0_trace.json.gz"
    assert step_names(path) == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]
    assert caplog.messages == [
        f"traceparse: {path}: steps 1-4 were asked for, but the loop ended in step 3 before "
        "its step() was called: the trace has that step cut short or empty"
    ]
    assert names_in(tmp_path) == kept_names([0])


@pytest.mark.parametrize(("num_steps", "asked"), [(0, range(1, 2)), (1, range(4, 6))])
def test_a_loop_that_ends_before_the_steps_is_told_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, num_steps: int, asked: range
) -> None:
    prof = loop(tmp_path, num_steps, steps=asked)
    words = {1: "step 1 was", 4: "steps 4-5 were"}[asked[0]]
    assert caplog.record_tuples == [
        (
            "traceparse.capture",
            logging.WARNING,
            f"traceparse: {tmp_path}: no trace was written: {words} asked for, but the loop "
            f"ended in step {num_steps}; ask for earlier steps (a step ends with step())",
        )
    ]
    assert prof.path is None
    assert names_in(tmp_path) == []


def test_the_loop_may_go_on_long_after_the_steps(tmp_path: Path) -> None:
    with profile(tmp_path, steps=range(1)) as prof:
        work()
        prof.step()
        assert prof.path == tmp_path / "rank0_trace.json.gz"
        assert not torch.autograd._profiler_enabled()
        for _ in range(5):
            prof.step()
    assert step_names(prof.path) == ["ProfilerStep#0"]


def test_step_outside_of_the_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="profile that has not begun: use `with traceparse"):
        profile(tmp_path).step()


def break_export(monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]) -> None:
    export = torch.profiler._KinetoProfile.export_chrome_trace

    def broken(self: Any, path: str) -> None:
        export(self, path)
        change(Path(path))

    monkeypatch.setattr(torch.profiler._KinetoProfile, "export_chrome_trace", broken)


def cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_last_brackets(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: text.rindex("]")])


def fill_disk(path: Path) -> None:
    raise OSError(28, "No space left on device", str(path))


def fail_in_torch(_: Path) -> None:
    raise RuntimeError("kineto is unwell\nand says so at length")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut_off, "torch stopped in the middle of writing the trace ("),
        (cut_last_brackets, "torch stopped in the middle of writing the trace ("),
        (
            lambda path: os.truncate(path, 0),
            "torch wrote no trace; is the directory writable, or the disk full?",
        ),
        (Path.unlink, "torch wrote no trace; is the directory writable, or the disk full?"),
        (fill_disk, "OSError: [Errno 28] No space left on device"),
        (fail_in_torch, "RuntimeError: kineto is unwell"),
    ],
)
def test_a_trace_that_did_not_get_whole_is_told_once_and_not_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[Path], None],
    said: str,
) -> None:
    break_export(monkeypatch, change)
    done = []
    with profile(tmp_path, steps=range(1)) as prof:
        for step in range(3):
            work()
            prof.step()
            done.append(step)
    assert done == [0, 1, 2]
    assert prof.path is None
    assert names_in(tmp_path) == []
    (message,) = caplog.messages
    assert message.startswith("traceparse: no trace was kept, training goes on: ")
    assert said in message
    assert "\n" not in message


def test_a_profiler_that_fails_in_a_step_does_not_stop_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Any) -> None:
        raise RuntimeError("CUPTI_ERROR_NOT_INITIALIZED")

    with profile(tmp_path, steps=range(2, 3)) as prof:
        monkeypatch.setattr(torch.profiler._KinetoProfile, "start_trace", broken)
        for _ in range(4):
            prof.step()
    assert caplog.messages == [
        "traceparse: no trace was kept, training goes on: "
        "RuntimeError: CUPTI_ERROR_NOT_INITIALIZED",
        "traceparse: capture could not end everything that it began, training goes on: "
        "RuntimeError: CUPTI_ERROR_NOT_INITIALIZED",
    ]
    assert not torch.autograd._profiler_enabled()


def test_without_torch_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError) as caught, profile(tmp_path):
        pytest.fail("the block was entered")
    assert str(caught.value) == "capturing needs torch: pip install 'traceparse[capture]'"


def test_importing_capture_imports_nothing_heavy() -> None:
    code = (
        "import sys, traceparse, traceparse.capture; traceparse.profile; "
        "print(*{'torch', 'numpy', 'pandas', 'pyarrow', 'rich', 'typer'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n"


def test_a_loop_that_ends_early_and_cannot_be_kept_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    break_export(monkeypatch, cut_off)
    assert loop(tmp_path, 2, steps=range(1, 4)).path is None
    (message,) = caplog.messages
    assert "torch stopped in the middle" in message
