"""One capture, step by step: when the profiler starts and stops, and what is kept of it.

Nothing here reaches the training loop: whatever goes wrong ends the capture and is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from traceparse.capture.asked import Asked
from traceparse.capture.counter import FlopCounter
from traceparse.capture.facts import current_rank, process_facts
from traceparse.capture.keeper import Keeper, Keeping, raw_path
from traceparse.capture.models import Look
from traceparse.capture.pace import Pace, Step
from traceparse.capture.plan import Do
from traceparse.capture.recorder import ANOTHER_RUNS, Recorder
from traceparse.capture.rivals import RIVALS
from traceparse.capture.said import Said
from traceparse.capture.signals import Terminated
from traceparse.errors import CaptureError
from traceparse.packing import trace_name, write_facts

__all__ = ["Session"]

_PATIENCE_S = 60.0  # at the end of the loop, for traces that are being packed
_LITTLE_PATIENCE_S = 15.0  # when asked to end: torchrun kills what still runs after 30 s


class Session:
    """A capture from the beginning of step 0 on."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._pid = os.getpid()
        self._said = Said()
        self._keeper = Keeper(self._said)
        self._pace = Pace()
        self._recorder: Recorder | None = None
        self._look: Look | None = None
        self._counter: FlopCounter | None = None
        self._facts: dict[str, Any] = dict(asked.facts)
        self._terminated = Terminated(self._end_by_signal)
        self._first = 0  # step of the recording
        self._step = 0
        self.is_over = False  #: is there nothing left to do in this job?

    @property
    def kept(self) -> list[Path]:
        """The traces that are kept by now."""
        return list(self._keeper.kept)

    def begin(self) -> None:
        """Begin step 0, if the traces could be kept."""
        with self._or_give_up():
            self._make_room()
            RIVALS.watch()
            if RIVALS.is_busy and self._asked.plan.do(0) is not Do.NONE:
                raise CaptureError(ANOTHER_RUNS)
            self._enter()

    def step(self) -> None:
        """End the step, and begin the next."""
        if self.is_over or os.getpid() != self._pid:  # a process that the job forked
            return
        with self._terminated.held(), self._or_give_up():
            if import_module("torch")._C._current_graph_task_id() != -1:
                self._said.warn(
                    f"{self._asked.directory}: a step that ends inside of a backward pass is "
                    "not counted: no profiler can start or stop there"
                )
                return
            self._pace.end(self._kind())
            self._leave()
            self._step += 1
            self._enter()
            self._keeper.look()
            if self._is_done():
                self._finish(_PATIENCE_S)
            self._pace.begin()

    def close(self, patience_s: float = _PATIENCE_S) -> None:
        """Keep what was recorded until now: the loop has ended."""
        if os.getpid() != self._pid:
            return
        with self._terminated.held():
            if not self.is_over:
                with self._or_give_up():
                    was_recording = self._recorder is not None and self._recorder.is_recording
                    self._stop_looking()
                    self._stop_recording()
                    self._say_ended_early(was_recording=was_recording)
            with self._said.training_goes_on():
                self._finish(patience_s)

    @contextmanager
    def _or_give_up(self) -> Iterator[None]:
        """Run a part of the capture; if it fails, say so and do nothing from then on."""
        has_failed = True
        with self._said.training_goes_on():
            yield
            has_failed = False
        if has_failed:
            with self._said.training_goes_on("capture could not be ended"):
                self._give_up()

    def _give_up(self) -> None:
        self.is_over = True
        recorder, self._recorder = self._recorder, None
        look, self._look = self._look, None
        counter, self._counter = self._counter, None
        ends: list[Callable[[], object]] = [self._terminated.leave]
        ends += [recorder.abandon] if recorder is not None else []
        ends += [look.end] if look is not None else []
        ends += [counter.stop] if counter is not None else []
        for end in ends:
            with self._said.training_goes_on("capture could not end everything that it began"):
                end()

    def _enter(self) -> None:
        do = self._asked.plan.do(self._step)
        if not do.records and self._recorder is not None and self._recorder.is_recording:
            self._stop_recording()  # a schedule that forgot to save
        if do is Do.NONE or not self._is_wanted():
            self._stop_recording()
        elif self._recorder is None:
            self._recorder = self._made_ready()
        if self._recorder is not None and do.records:
            if not self._recorder.is_recording:
                self._first = self._step
                self._refuse_what_is_there()
                self._recorder.start()
                self._terminated.enter()
            self._recorder.begin_step(self._step)
        if self._step == self._look_at:
            self._start_looking()

    def _leave(self) -> None:
        self._stop_looking()
        if self._recorder is not None and self._recorder.is_recording:
            self._recorder.end_step()
            if self._asked.plan.do(self._step) is Do.RECORD_AND_SAVE:
                self._stop_recording()

    def _kind(self) -> Step:
        plan, step = self._asked.plan, self._step
        if plan.do(step).records and self._recorder is not None:
            return Step.PROFILED
        is_plain = step > 0 and step != self._look_at and plan.do(step) is Do.NONE
        if self._keeper.is_busy:  # what packs takes its share of a small machine
            return Step.OTHER
        return Step.PLAIN if is_plain and not plan.do(step - 1).records else Step.OTHER

    @property
    def _look_at(self) -> int | None:
        plan = self._asked.plan
        return plan.steps.stop if plan.look_at is None and plan.steps else plan.look_at

    def _is_wanted(self) -> bool:
        """Say whether this rank records: late, as it may not know its number at first."""
        wanted = self._asked.wants(self._rank(), os.environ)
        self.is_over = self.is_over or not wanted
        return wanted

    def _is_done(self) -> bool:
        over = self._recorder is None and self._asked.plan.is_over(self._step)
        looked = self._look_at is None or self._step > self._look_at
        return over and looked and self._pace.is_known and not self._keeper.is_busy

    def _made_ready(self) -> Recorder:
        return Recorder(
            stacks=self._asked.stacks, memory=self._asked.memory, give_way=self._give_way
        )

    def _give_way(self) -> None:
        """Let somebody else's profiler begin, after keeping what ours has."""
        with self._terminated.held(), self._or_give_up():
            self._said.warn(
                f"{self._target()}: another profiler begins in this process, and torch can run "
                f"only one: the recording ends in step {self._step}"
            )
            self._stop_recording()
            self.is_over = True

    def _stop_recording(self) -> None:
        """End the recording, if there is one, and keep what it has, if it has begun."""
        recorder = self._recorder
        if recorder is None:
            return
        try:
            if recorder.is_recording:
                self._keep(recorder)
            else:
                self._recorder = None
                recorder.abandon()
        finally:
            self._terminated.leave()

    def _keep(self, recorder: Recorder) -> None:
        recorder.end_step()
        recorder.stop()
        self._recorder = None
        target = self._target()
        target.parent.mkdir(parents=True, exist_ok=True)
        if recorder.device_stopped:
            self._said.warn(
                f"{target}: the device's tracer stopped before the recording did: kernels are "
                "missing at its end; record fewer steps"
            )
        keeping = Keeping(
            raw_path(target),
            target,
            self._all_facts(),
            overwrite=self._asked.overwrite,
            with_host=self._asked.with_host,
        )
        recorder.write(keeping.raw, target)
        self._keeper.keep(keeping)

    def _all_facts(self) -> dict[str, Any]:
        return {
            **process_facts(self._said, with_host=self._asked.with_host),
            "rank": self._rank(),
            "steps": [self._first, max(self._first, self._step)],
            **self._facts,
            **self._pace.facts(),
        }

    def _start_looking(self) -> None:
        with self._said.training_goes_on("facts are missing (the model)"):
            self._look = Look(self._said, self._asked.model)
            self._look.begin()
        if self._asked.count_flop:
            with self._said.training_goes_on("FLOP of the model are not counted"):
                counter = FlopCounter()
                counter.begin()
                self._counter = counter

    def _stop_looking(self) -> None:
        counter, self._counter = self._counter, None
        look, self._look = self._look, None
        if counter is not None:
            with self._said.training_goes_on("FLOP of the model are not counted"):
                counter.stop()
        if look is not None:
            with self._said.training_goes_on("facts are missing (the model)"):
                self._facts |= look.end()
        if counter is not None:
            checkpointing = bool(self._facts.get("checkpointing"))
            with self._said.training_goes_on("FLOP of the model are not counted"):
                counted = counter.flop(checkpointing=checkpointing)
                self._facts["model_flop_per_rank_step"] = counted

    def _finish(self, patience_s: float) -> None:
        """Wait for traces that are being packed, and tell what was learnt since."""
        self.is_over = True
        # What is packed goes on without us, should the signal come now.
        self._terminated.leave()
        self._keeper.wait(_LITTLE_PATIENCE_S if self._terminated.is_pending else patience_s)
        learnt = {**self._facts, **self._pace.facts()}
        for target, facts in self._keeper.kept.items():
            if any(facts.get(name) != value for name, value in learnt.items()):
                write_facts(target, {**facts, **learnt})

    def _end_by_signal(self) -> None:
        if not self.is_over:
            self._said.warn(
                f"{self._target()}: the job is told to end (SIGTERM) in step {self._step}: "
                "what is recorded until now is kept"
            )
        self.close(_LITTLE_PATIENCE_S)

    def _rank(self) -> int:
        return current_rank() if self._asked.rank is None else self._asked.rank

    def _target(self) -> Path:
        """Return the path of the trace; with a schedule, each recording has a folder."""
        folder = self._asked.directory
        if self._asked.plan.steps is None:
            folder /= f"iteration_{self._first}"
        return folder / trace_name(self._rank())

    def _make_room(self) -> None:
        """Make the directory, if traces could be kept in it."""
        try:
            self._asked.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CaptureError(
                f"{self._asked.directory}: is no directory and cannot be made one: "
                f"{error.strerror}"
            ) from error
        if self._asked.plan.steps is not None:
            self._refuse_what_is_there()

    def _refuse_what_is_there(self) -> None:
        target = self._target()
        if target.exists() and not self._asked.overwrite:
            raise CaptureError(
                f"{target}: there is a trace of rank {self._rank()} already; "
                "choose another directory, or pass overwrite=True to replace it"
            )

    def _say_ended_early(self, *, was_recording: bool) -> None:
        steps = self._asked.plan.steps
        if steps is None or self._step >= steps.stop:
            return
        first, last = steps[0], steps[-1]
        asked = f"steps {first}-{last} were" if last > first else f"step {first} was"
        if was_recording:
            self._said.warn(
                f"{self._target()}: {asked} asked for, but the loop ended in step {self._step} "
                "before its step() was called: the trace has that step cut short or empty"
            )
        else:
            step_on = self._asked.facts["step_on"]
            self._said.warn(
                f"{self._asked.directory}: no trace was written: {asked} asked for, but the "
                f"loop ended in step {self._step}; ask for earlier steps (a step ends with "
                f"{step_on})"
            )
