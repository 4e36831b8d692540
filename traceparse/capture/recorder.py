"""torch's profiler, one recording long: made ready, started, stopped, written to a file."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from traceparse.capture.rivals import RIVALS
from traceparse.errors import CaptureError

__all__ = ["ANOTHER_RUNS", "Recorder"]

ANOTHER_RUNS = (
    "another profiler is running in this process, and torch can run only one: "
    "stop it before the first step that traceparse records"
)

_TAIL_BYTES = 16_384  # the last event and the "traceName" behind it, a path of 4096 at most


class Recorder:
    """One recording. ``give_way`` is called when somebody else's profiler begins meanwhile.

    Every method may raise whatever torch raises, and ``CaptureError``.
    """

    def __init__(self, *, stacks: bool, memory: bool, give_way: Callable[[], None]) -> None:
        if RIVALS.is_busy:
            raise CaptureError(ANOTHER_RUNS)
        torch = import_module("torch")
        self._give_way = give_way
        self._span: Any = None  # of the step, while it lasts
        self._torch = torch
        self._is_ready = False  # made ready, and not started yet
        self.is_recording = False
        self.device_stopped = False  #: the device's tracer gave up before the recording ended
        self._session = torch.profiler._KinetoProfile(
            activities=_activities(torch),
            record_shapes=True,
            with_stack=stacks,
            profile_memory=memory,
            experimental_config=_trace_only(torch, stacks=stacks),
        )
        with RIVALS.ours(give_way):
            self._session.prepare_trace()
        self._is_ready = True

    def start(self) -> None:
        """Record from now on."""
        with RIVALS.ours(self._give_way):
            self._session.start_trace()
        self._is_ready = False
        self.is_recording = True

    def begin_step(self, step: int) -> None:
        """Begin the span that marks a step in the trace."""
        self._span = self._torch.profiler.record_function(f"ProfilerStep#{step}")
        self._span.__enter__()

    def end_step(self) -> None:
        """End the span of the step, if there is one."""
        span, self._span = self._span, None
        if span is not None:
            span.__exit__(None, None, None)

    def stop(self) -> None:
        """End the recording."""
        with RIVALS.ours():
            self.is_recording = False
            if not self._torch.autograd._profiler_enabled():
                raise CaptureError(
                    "another profiler took the place of ours: what it had is lost"
                )
            self.device_stopped = bool(
                self._session.use_device is not None
                and getattr(self._torch.autograd, "_is_kineto_stopped", bool)()
            )
            self._stop()

    def abandon(self) -> None:
        """End what was made ready or recorded, and keep nothing of it."""
        is_enabled = self._torch.autograd._profiler_enabled
        self.is_recording = False
        with RIVALS.ours():
            try:
                if self._is_ready and not is_enabled():
                    self._session.start_trace()  # as torch does: what was made ready must start
            finally:
                self._is_ready = False
                if is_enabled():
                    self._stop()

    def _stop(self) -> None:
        try:
            _end_spans(self._torch)
            self._session.stop_trace()
        finally:
            # A process that ends while torch's profiler records ends with a crash.
            if self._torch.autograd._profiler_enabled():
                self._torch.autograd._disable_profiler()

    def write(self, raw: Path, target: Path) -> None:
        """Write what was recorded to ``raw``, which becomes ``target``.

        Raises
        ------
        CaptureError
            The file is not whole; there is none then.
        """
        try:
            self._session.export_chrome_trace(os.fspath(raw))
            _check_whole(raw, target)
        except BaseException:
            raw.unlink(missing_ok=True)
            raw.with_name(f"{raw.name}.tmp").unlink(missing_ok=True)  # torch's own half
            raise


def _end_spans(torch: ModuleType) -> None:
    """End the job's spans that are open; what has ended, or ends again later, ends once.

    With a recording torch frees what its open spans point to, and writes there when they end
    while another profiler runs (seen with 2.13): the process ends with a crash, then or later.
    """
    kind = torch.profiler.record_function
    end = torch.ops.profiler._record_function_exit._RecordFunction
    for one in reversed(gc.get_objects()):  # the innermost, which is the newest, first
        if issubclass(type(one), kind) and one.record is not None:
            end(one.record)


def _check_whole(raw: Path, target: Path) -> None:
    """Refuse a file that torch did not finish, which it tells only standard error."""
    size = raw.stat().st_size if raw.exists() else 0
    if not size:
        raise CaptureError(
            f"{target}: torch wrote no trace; is the directory writable, or the disk full?"
        )
    with raw.open("rb") as file:
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
    # The profiler's last event; then the list of events must close, and the whole.
    _, found, rest = tail.rpartition(b'"Record Window End"')
    if not (found and b"]" in rest and rest.rstrip().endswith(b"}")):
        raise CaptureError(
            f"{target}: torch stopped in the middle of writing the trace ({size} bytes); "
            "is the disk full?"
        )


def _activities(torch: ModuleType) -> list[Any]:
    """Return what there is to record; ROCm's devices are torch's CUDA too."""
    kinds = torch.profiler.ProfilerActivity
    there = {
        kinds.CPU: True,
        kinds.CUDA: torch.cuda.is_available(),
        kinds.XPU: torch.xpu.is_available(),
    }
    supported = torch.profiler.supported_activities()
    return [kind for kind, is_there in there.items() if is_there and kind in supported]


def _trace_only(torch: ModuleType, *, stacks: bool) -> Any:  # noqa: ANN401 - torch's own
    """Ask for the file alone, which stops faster; ``None`` where torch cannot, before 2.13."""
    try:
        return None if stacks else torch._C._profiler._ExperimentalConfig(trace_only=True)
    except (AttributeError, TypeError):
        return None
