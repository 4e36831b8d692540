"""Whatever fails in capture, training goes on: every call that capture makes is made to fail.

Which calls there are is seen in captures that go well: calls of functions of ours, and calls
that functions of ours make, of torch or anything else. Each fails once, before it has done
anything or, if it is not ours, when it has done all, as an error of torch or of the system.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from torch.utils import _python_dispatch
from torch.utils import checkpoint as checkpoints

import traceparse
from tests.capture.loops import nobody_listens
from traceparse.capture.optimizers import OPTIMIZERS
from traceparse.capture.rivals import RIVALS

_PACKAGE = Path(traceparse.__file__).parent
_OURS = (
    f"{_PACKAGE / 'capture'}{os.sep}",
    f"{_PACKAGE / 'packing.py'}",
    f"{_PACKAGE / 'whole.py'}",
)

_ENTRY = "called by the job, and holds the guard: what it calls of ours is made to fail"
_BY_TORCH = "called by torch: what it calls of ours is made to fail"
_GUARD = "is the guard, or what the guard says"
_ENDS = "ends something, which nobody else could: what it calls is made to fail"
_TOLD = "runs before training, where a wrong wish is refused"
_FIELDS = "only sets fields"

#: Functions that are not made to fail, and why.
EXEMPT = {
    "profile.__init__": _TOLD,
    "profile.__call__": _TOLD,
    "asked_for": _TOLD,
    "_checked": _TOLD,
    "plan_of": _TOLD,
    "_contiguous": _TOLD,
    "ranks_of": _TOLD,
    "_begun": "says that torch is missing",
    "profile.__enter__": _ENTRY,
    "profile.__exit__": _ENTRY,
    "profile.step": _ENTRY,
    "profile.path": _ENTRY,
    "profile.__call__.<locals>.captured": _ENTRY,
    "following_optimizers": _ENTRY,
    "Session.begin": _ENTRY,
    "Session.step": _ENTRY,
    "Session.close": _ENTRY,
    "Session._give_way": _ENTRY,
    "Session._or_give_up": _GUARD,
    "Session._give_up": _GUARD,
    "Said.training_goes_on": _GUARD,
    "Said.warn": _GUARD,
    "Said._say": _GUARD,
    "in_words": _GUARD,
    "_naming": _GUARD,
    "Keeper.keep": "names the raw file when what it calls fails",
    "Session.__init__": _FIELDS,
    "Said.__init__": _FIELDS,
    "Keeper.__init__": _FIELDS,
    "Pace.__init__": _FIELDS,
    "Leader.__init__": _FIELDS,
    "Terminated.__init__": _FIELDS,
    "Terminated.held": _FIELDS,
    "Optimizers.forget": _FIELDS,
    "Look.end": _ENDS,
    "Checkpoints.leave": _ENDS,
    "FlopCounter.stop": _ENDS,
    "FlopCounter.count": _BY_TORCH,
    "FlopCounter.is_made_of_others": _BY_TORCH,
    "Look._see": _BY_TORCH,
    "Look._see_end": _FIELDS,
    "__getattr__": "is what the test itself asks for the profile",
    "Optimizers._counted.<locals>.counted": _BY_TORCH,
    "Checkpoints.watch.<locals>.noted.<locals>.noting": _BY_TORCH,
    "_mode.<locals>.Counting.__torch_dispatch__": _BY_TORCH,
    "_mode.<locals>.Counting.__torch_dispatch__.<locals>.<genexpr>": _BY_TORCH,
}
#: Modules whose C functions fail; those of builtins and of strings, lists and dicts cannot.
_MAY_FAIL = ("posix", "time", "gc", "_io", "_signal", "torch", "_json", "_posixsubprocess")
#: What cannot fail in Python's own library, and what begins or ends a ``with``.
_CANNOT = (
    "BufferedReader.__exit__",
    "BufferedWriter.__exit__",
    "ExitStack.",
    "Mapping.get",
    "PurePath.",
    "WeakSet.",  # garbage is collected when it likes
    "_BaseExitStack.",
    "_GeneratorContextManager.",
    "contextmanager.<locals>.helper",
    "update_wrapper",
    "wraps",
)
#: What is open or on when it has been called, and fails by itself only before.
_ONLY_BEFORE = ("Path.open", "TorchDispatchMode.__enter__")
#: What nothing else could do in its place.
_ONLY_AFTER = ("TorchDispatchMode.__exit__",)


class InjectedError(RuntimeError):
    """An error of torch's, let us say."""


@dataclass(frozen=True, order=True)
class Call:
    """A call in a line of a function: ``when`` is before it, or after it."""

    caller: str
    callee: str
    when: str

    @property
    def is_of_ours(self) -> bool:
        return not self.callee.startswith("<")

    @property
    def is_exempt(self) -> bool:
        function, _, _line = self.caller.partition(":")
        _where, _, name = self.callee.rpartition("> ")
        return (
            self.callee in EXEMPT
            or (function in EXEMPT and EXEMPT[function] != _ENDS and not self.is_of_ours)
            or name.startswith(_CANNOT)
            or (self.when == "after" and name.startswith(_ONLY_BEFORE))
            or (self.when == "before" and name.startswith(_ONLY_AFTER))
        )

    @property
    def errors(self) -> list[Exception]:
        if self.is_of_ours or self.when == "after":
            return [InjectedError("torch is unwell")]
        return [InjectedError("torch is unwell"), OSError(28, "No space left on device")]


def is_ours(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(_OURS)


def call_of(frame: FrameType, event: str, arg: Any) -> Call | None:
    """Return what call this is, if a function of ours is in it."""
    if event in ("call", "return"):
        caller, code = frame.f_back, frame.f_code
        if code.co_name == "<module>" or not (is_ours(frame) or is_ours(caller)):
            return None
        if event == "return" and is_ours(frame):
            return None  # it fails by what it calls
        callee = (
            code.co_qualname if is_ours(frame) else f"<{code.co_filename}> {code.co_qualname}"
        )
    elif event in ("c_call", "c_return") and is_ours(frame):
        module = (
            getattr(arg, "__module__", None) or type(getattr(arg, "__self__", None)).__module__
        )
        if not module.startswith(_MAY_FAIL):
            return None
        caller, callee = frame, f"<{module}> {arg.__qualname__}"
    else:
        return None
    if caller is None or not is_ours(caller):
        return Call("", callee, "before")
    place = f"{caller.f_code.co_qualname}:{caller.f_lineno}"
    return Call(place, callee, "before" if event.endswith("call") else "after")


@contextmanager
def watching(see: Callable[[Call], None]) -> Iterator[None]:
    """Have each call of interest seen; what the one who sees raises, the call raises."""

    def profiler(frame: FrameType, event: str, arg: Any) -> None:
        call = call_of(frame, event, arg)
        if call is not None and not call.is_exempt:
            see(call)

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        yield
    finally:
        sys.setprofile(before)


# What a job does


class Job:
    """A small model that trains, always the same."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.losses: list[float] = []

    def step(self) -> None:
        data = torch.arange(12.0).reshape(2, 6) / 12
        out = checkpoints.checkpoint(self.model, data, use_reentrant=False)
        loss = out.square().sum()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def counts_and_records(out: Path, job: Job) -> None:
    """Go on until nothing is left to do."""
    with traceparse.profile(out, steps=range(2, 3), count_flop=True, with_host=True) as prof:
        for _ in range(10):
            job.step()
            prof.step()


def follows_a_schedule(out: Path, job: Job) -> None:
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=2)
    with traceparse.profile(out, steps=schedule, memory=True) as prof:
        for _ in range(5):
            job.step()
            prof.step()


def ends_early(out: Path, job: Job) -> None:
    with traceparse.profile(out, steps=range(1, 9)) as prof:
        for _ in range(3):
            job.step()
            prof.step()


def ends_before_anything(out: Path, job: Job) -> None:
    with traceparse.profile(out, steps=range(5, 9)) as prof:
        for _ in range(2):
            job.step()
            prof.step()


def is_refused(out: Path, job: Job) -> None:
    out.mkdir()
    (out / "rank0_trace.json.gz").touch()
    ends_early(out, job)


def gives_way(out: Path, job: Job) -> None:
    with traceparse.profile(out, steps=range(1, 9)) as prof:
        for step in range(4):
            job.step()
            if step == 2:
                with torch.profiler.profile():
                    pass
            prof.step()


def steps_by_optimizers(out: Path, job: Job) -> None:
    @traceparse.profile(out, steps=range(1, 2), ranks="node")
    def train() -> None:
        for _ in range(3):
            job.step()

    train()


JOBS = [
    counts_and_records,
    follows_a_schedule,
    ends_early,
    ends_before_anything,
    is_refused,
    gives_way,
    steps_by_optimizers,
]

# Takes the place of Python that packs, which would take half a second each time.
_PACKER = """#!/bin/sh
test "$2" = traceparse.engine.pack || exit 1
read -r request || test -n "$request" || exit 1
for raw in "$OUT"/.*.raw "$OUT"/*/.*.raw; do
  name="${raw%.json.gz*.raw}.json.gz"
  test -e "$raw" && mv "$raw" "${name%/*}/${name##*/.}"
done
printf '{"said": ["this and that"], "facts": {}}'
"""


@dataclass
class After:
    """What a job left."""

    losses: list[float]
    said: list[str]
    files: list[Path]

    @property
    def wrong(self) -> list[str]:
        """What should not be so."""
        traces = [each for each in self.files if each.name.endswith("_trace.json.gz")]
        raws = [each for each in self.files if each.suffix == ".raw"]
        wrong = {
            "the profiler runs": torch.autograd._profiler_enabled(),
            "somebody waits for SIGTERM": signal.getsignal(signal.SIGTERM) != signal.SIG_DFL,
            "operators go through Python": torch._C._len_torch_dispatch_stack() > 0,
            "checkpoints are watched": checkpoints.CheckpointFunction.__name__ == "Noting",
            "optimizers are listened to": bool(OPTIMIZERS._listeners),
            "somebody else's profiler is thought to run": RIVALS.is_busy,
            "ours is thought to run": RIVALS._is_ours or RIVALS._give_way is not None,
            "half a file is left": any(each.suffix == ".tmp" for each in self.files),
            "a raw file is left that nobody names": any(
                not any(str(raw) in text for text in self.said) for raw in raws
            ),
            "a trace is missing, and nobody says so": not traces and not self.said,
        }
        return [text for text, is_so in wrong.items() if is_so]


def put_right() -> None:
    """Undo whatever a job has left, as the next one is not to blame."""
    if torch.autograd._profiler_enabled():
        torch.autograd.profiler._disable_profiler()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while torch._C._len_torch_dispatch_stack():
        _python_dispatch._pop_mode()
    if checkpoints.CheckpointFunction.__name__ == "Noting":
        checkpoints.CheckpointFunction = checkpoints.CheckpointFunction.__mro__[1]
    nobody_listens()
    RIVALS._is_busy = RIVALS._is_ours = False
    RIVALS._give_way = None


class Runner:
    """Runs jobs, each in a folder of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch
        self._num_runs = 0
        self._said: list[str] = []
        self._packers: list[Packer] = []
        packer = folder / "packer"
        packer.write_text(_PACKER)
        packer.chmod(packer.stat().st_mode | stat.S_IXUSR)
        patch.setenv("TRACEPARSE_PYTHON", str(packer))
        started = self._packers

        class Packer(subprocess.Popen[bytes]):
            def __init__(self, *args: Any, **options: Any) -> None:
                super().__init__(*args, **options)
                self._num_polls = 0
                started.append(self)

            def poll(self) -> int | None:
                """Be still running when asked first, whatever else the machine has to do."""
                self._num_polls += 1
                return None if self._num_polls == 1 else self.wait()

        patch.setattr(subprocess, "Popen", Packer)
        said = self._said

        class Keeping(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                said.append(record.getMessage())

        log = logging.getLogger("traceparse.capture")
        patch.setattr(log, "handlers", [Keeping()])
        patch.setattr(log, "propagate", False)

    def __call__(
        self, job: Callable[[Path, Job], None], see: Callable[[Call], None] = lambda _: None
    ) -> After:
        self._num_runs += 1
        out = self._folder / f"{self._num_runs}"
        self._patch.setenv("OUT", str(out))
        self._said.clear()
        training = Job()
        with watching(see):
            job(out, training)
        for packer in self._packers:  # one that the job did not wait for
            with packer, suppress(BrokenPipeError):
                pass
        self._packers.clear()
        files = [each for each in out.rglob("*") if each.is_file()]
        return After(training.losses, list(self._said), files)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Runner]:
    with pytest.MonkeyPatch.context() as patch:
        gc.collect()
        gc.freeze()  # what other tests have made is not looked at in each of hundreds of runs
        yield Runner(tmp_path, patch)
        gc.unfreeze()


@cache
def without_capture(num_steps: int) -> list[float]:
    job = Job()
    for _ in range(num_steps):
        job.step()
    return job.losses


def calls_of_all(run: Runner) -> dict[Call, Callable[[Path, Job], None]]:
    """Return all calls that there are, each with a job that makes it."""
    found: dict[Call, Callable[[Path, Job], None]] = {}
    for job in JOBS:
        made: set[Call] = set()
        run(job)  # whatever is imported only once
        after = run(job, made.add)
        found = {**dict.fromkeys(made, job), **found}
        assert after.wrong == []
        assert after.losses == without_capture(len(after.losses))
    return found


def what_goes_wrong(run: Runner, job: Any, call: Call, error: Exception) -> str:
    """Have a job run in which a call fails."""
    is_done = False

    def see(seen: Call) -> None:
        nonlocal is_done
        if seen == call and not is_done:
            is_done = True
            raise error

    wrong: list[str] = []
    try:
        after = run(job, see)
    except BaseException as raised:  # noqa: BLE001 - nothing may be raised
        wrong = [f"raises {raised!r}"]
    else:
        wrong = after.wrong
        if after.losses != without_capture(len(after.losses)) or len(after.losses) < 2:
            wrong += ["the losses are others"]
    if not is_done:
        wrong += ["the call was not made"]
    put_right()
    return f"{job.__name__}: {call}, {error!r}: {', '.join(wrong)}" if wrong else ""


@pytest.mark.slow
def test_training_goes_on_whatever_call_fails(run: Runner) -> None:
    calls = calls_of_all(run)
    assert len(calls) > 300
    names = {call.callee.rpartition("> ")[2] for call in calls}
    assert names >= {
        "FlopCounter.begin",
        "Keeper._conclude",
        "Look.begin",
        "Path.mkdir",
        "Path.stat",
        "Recorder.write",
        "Session._all_facts",
        "_KinetoProfile.__init__",
        "_KinetoProfile.export_chrome_trace",
        "_KinetoProfile.prepare_trace",
        "_KinetoProfile.start_trace",
        "_KinetoProfile.stop_trace",
        "get_objects",
        "record_function.__enter__",
        "record_function.__exit__",
        "write_facts",
    }
    wrong = [
        what_goes_wrong(run, job, call, error)
        for call, job in sorted(calls.items(), key=lambda each: each[0])
        for error in call.errors
    ]
    failed = "\n".join(each for each in wrong if each)
    assert not failed, failed


TORCH = [
    (torch.profiler._KinetoProfile, "__init__"),
    (torch.profiler._KinetoProfile, "prepare_trace"),
    (torch.profiler._KinetoProfile, "start_trace"),
    (torch.profiler._KinetoProfile, "export_chrome_trace"),
    (torch.profiler, "supported_activities"),
    (torch.autograd, "_profiler_enabled"),
    (torch.cuda, "is_available"),
    (torch, "get_num_threads"),
    (torch.distributed, "is_initialized"),
    (subprocess, "Popen"),
    (Path, "mkdir"),
    (Path, "open"),
    (Path, "stat"),
    (Path, "exists"),
    (gc, "get_objects"),
    (signal, "signal"),
    (signal, "getsignal"),
]


@pytest.mark.parametrize(
    ("owner", "name"), TORCH, ids=lambda it: it if isinstance(it, str) else it.__name__
)
@pytest.mark.parametrize("error", [InjectedError("never"), OSError(28, "No space")], ids=repr)
def test_training_goes_on_where_a_call_fails_ever_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    owner: Any,
    name: str,
    error: Exception,
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise error

    job = Job()
    # it fails once capture has begun: where it runs, and what is asked for, is known by then
    with (
        monkeypatch.context() as patch,
        traceparse.profile(tmp_path / "out", steps=range(4, 6), count_flop=True) as prof,
    ):
        patch.setattr(owner, name, broken)
        for _ in range(7):
            job.step()
            prof.step()
    assert job.losses == without_capture(7)
    assert caplog.messages
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    put_right()


def test_no_exemption_is_forgotten() -> None:
    """Every exempt name is one of a function that there is."""
    source = "\n".join(path.read_text() for path in (_PACKAGE / "capture").glob("*.py"))
    for name in EXEMPT:
        last = name.rpartition(".")[2]
        assert last == "<genexpr>" or f"def {last}(" in source, name
