"""``traceparse.profile``: torch's profiler, with the settings that the analysis needs.

It never puts a half-written file under a trace's name, and once training runs nothing that
goes wrong in here stops it: the logger ``traceparse.capture`` says what was lost.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Self

from traceparse.errors import CaptureError, MissingExtraError, TraceparseError, UsageError
from traceparse.whole import whole

if TYPE_CHECKING:
    from torch.profiler import ProfilerAction, ProfilerActivity
    from torch.profiler import profile as Session  # noqa: N812 - it is a class

__all__ = ["profile", "trace_name"]

_log = logging.getLogger("traceparse.capture")

_TEN_TO_TWELVE = range(10, 13)
_TAIL_BYTES = 16_384  # the last event and the "traceName" behind it, a path of 4096 at most


class profile:  # noqa: N801 - called like a function, as torch.profiler.profile is
    """Record some steps of a training loop, one trace file a rank.

    ::

        with traceparse.profile("traces/", steps=range(10, 13)) as prof:
            for batch in loader:
                train(batch)
                prof.step()

    Parameters
    ----------
    directory
        Where ``rank0_trace.json.gz`` and so on go; made if it is not there.
    steps
        A contiguous range, counted from 0; the numbers of the ``ProfilerStep`` spans in the
        trace. Step k ends with the (k+1)-th call of :meth:`step`.
    stacks
        Record Python call stacks as well: slower steps, and files several times as large.
    memory
        Record allocations as well.
    rank
        Whose trace this is. Not given: torch.distributed's rank, else ``RANK`` of the
        environment, else 0.
    overwrite
        Replace a trace of this rank that the directory already holds.
    model_flop_per_step
        FLOP that the model needs for one step of the whole job: forward and backward, on all
        ranks together, without what is computed twice. MFU is this by time and peak.
    params
        Parameters of the model that activations are multiplied by, each counted once, however
        many ranks hold a copy or a part of it.
    tokens_per_step
        Tokens that one step of the whole job trains on, on all ranks together. With ``params``,
        they tell about how many FLOP the model needs.

    Raises
    ------
    UsageError
        The steps are no contiguous range, the rank is no rank, or a number that is told of the
        job is no whole number above 0.
    CaptureError
        On entering: the directory already has a trace of this rank or cannot be made, or
        another profiler is running. Later nothing is raised.
    MissingExtraError
        On entering: torch is not installed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        steps: Sequence[int] = _TEN_TO_TWELVE,
        stacks: bool = False,
        memory: bool = False,
        rank: int | None = None,
        overwrite: bool = False,
        model_flop_per_step: int | None = None,
        params: int | None = None,
        tokens_per_step: int | None = None,
    ) -> None:
        if rank is not None and rank < 0:
            raise UsageError(f"rank={rank}: ranks count from 0")
        self._facts = _checked(
            model_flop_per_step=model_flop_per_step,
            params=params,
            tokens_per_step=tokens_per_step,
        )
        self.path: Path | None = None  #: the trace, once it is written
        self._directory = Path(directory)
        self._steps = _contiguous(steps)
        self._settings = {"with_stack": stacks, "profile_memory": memory}
        self._rank = rank
        self._overwrite = overwrite
        self._entered = False
        self._session: Session | None = None  # from entering to the end of the last step

    def __enter__(self) -> Self:
        """Check that the trace can be kept, and start waiting for the first step."""
        torch = _torch()
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CaptureError(
                f"{self._directory}: is no directory and cannot be made one: {error.strerror}"
            ) from error
        self._target()
        if torch.autograd._profiler_enabled():
            raise CaptureError(
                "another profiler is running in this process, and torch can run only one: "
                "stop it before traceparse.profile starts"
            )
        session = torch.profiler.profile(
            activities=_activities(torch),
            schedule=_schedule(torch, self._steps),
            on_trace_ready=self._save,
            record_shapes=True,
            **self._settings,
        )
        session.start()
        self._session = session
        self._entered = True
        return self

    def step(self) -> None:
        """Say that one step of training has ended and the next begins."""
        if not self._entered:
            raise UsageError(
                "step() was called on a profile that has not begun: "
                "use `with traceparse.profile(...) as prof:`"
            )
        session, self._session = self._session, None
        if session is None:
            return
        with _training_goes_on():
            self._tell_facts(session)
            session.step()
            if session.step_num < self._steps.stop:
                self._session = session
            else:
                _leave(session)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Keep what was recorded, also when training failed; its exception goes on."""
        session, self._session = self._session, None
        if session is None:
            return
        with _training_goes_on():
            self._tell_facts(session)
            _leave(session)
            self._say_ended_early(session.step_num)

    def _target(self) -> Path:
        """Return the path of the trace, or refuse because there is one already."""
        rank = _current_rank() if self._rank is None else self._rank
        target = self._directory / trace_name(rank)
        if target.exists() and not self._overwrite:
            raise CaptureError(
                f"{target}: there is a trace of rank {rank} already; "
                "choose another directory, or pass overwrite=True to replace it"
            )
        return target

    def _tell_facts(self, session: Session) -> None:
        """Let the trace say what is known of the job, under its key ``traceparse``.

        While it records, and not before: until then, torch may have no profiler to tell. Told
        again, it replaces what it was told.
        """
        if session.step_num not in self._steps:
            return
        with _training_goes_on("the trace does not say what is known of the job"):
            facts = {**self._facts, "num_threads": _torch().get_num_threads()}
            session.add_metadata_json("traceparse", json.dumps(facts))

    def _save(self, session: Session) -> None:
        with _training_goes_on():
            # Asked again: torch.distributed may have come up since the block was entered.
            target = self._target()
            _write_whole(session, target)
            self.path = target

    def _say_ended_early(self, step: int) -> None:
        first, last = self._steps[0], self._steps[-1]
        asked = f"steps {first}-{last} were" if last > first else f"step {first} was"
        if step < first:
            _log.warning(
                "traceparse: %s: no trace was written: %s asked for, but the loop ended "
                "in step %d; ask for earlier steps, and call step() once a step",
                self._directory,
                asked,
                step,
            )
        elif self.path is not None:
            _log.warning(
                "traceparse: %s: %s asked for, but the loop ended in step %d before its "
                "step() was called: the trace has that step cut short or empty",
                self.path,
                asked,
                step,
            )


def trace_name(rank: int) -> str:
    """Return the file name of a rank's trace."""
    return f"rank{rank}_trace.json.gz"


@contextmanager
def _training_goes_on(lost: str = "no trace was kept") -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever it is, training is worth more
        _log.warning(
            "traceparse: %s, training goes on: %s",
            lost,
            error if isinstance(error, TraceparseError) else _first_line(error),
        )


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _leave(session: Session) -> None:
    # Not stop(): only leaving also lets go of torch's count of steps and of its observers.
    session.__exit__(None, None, None)


def _checked(**facts: object) -> Mapping[str, int]:
    """Return the facts that are told, each a whole number above 0 and below 10^30."""
    told = {}
    for name, value in facts.items():
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 10**30:
            raise UsageError(f"{name}={value!r}: needs a whole number above 0 and below 10**30")
        told[name] = value
    return told


def _contiguous(steps: object) -> range:
    """Return the steps as a range from first to last, or say that they are not one."""
    if isinstance(steps, Sequence) and len(steps) and isinstance(steps[0], int):
        whole = range(steps[0], steps[0] + len(steps))
        # Ranges compare by arithmetic, so an enormous one costs nothing.
        same = steps == whole if isinstance(steps, range) else list(steps) == list(whole)
        if same and whole.start >= 0:
            return whole
    raise UsageError(
        f"steps={steps!r}: needs one contiguous range of steps counted from 0, "
        "such as range(10, 13)"
    )


def _torch() -> ModuleType:
    try:
        return import_module("torch")
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "capturing needs torch: pip install 'traceparse[capture]'"
        ) from error


def _activities(torch: ModuleType) -> list[ProfilerActivity]:
    kinds = torch.profiler.ProfilerActivity
    there = {
        kinds.CPU: True,
        kinds.CUDA: torch.cuda.is_available(),
        kinds.XPU: torch.xpu.is_available(),
    }
    supported = torch.profiler.supported_activities()
    return [kind for kind, is_there in there.items() if is_there and kind in supported]


def _schedule(torch: ModuleType, steps: range) -> Callable[[int], ProfilerAction]:
    """Return torch's schedule for one recording: warm up for the step before, then record.

    Not ``torch.profiler.schedule``, which warns where there is no step before the first.
    """
    action = torch.profiler.ProfilerAction

    def action_in(step: int) -> ProfilerAction:
        if step == steps[-1]:
            return action.RECORD_AND_SAVE
        if step in steps:
            return action.RECORD
        return action.WARMUP if step == steps[0] - 1 else action.NONE

    return action_in


def _current_rank() -> int:
    distributed = import_module("torch.distributed")
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    text = os.environ.get("RANK", "0")
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"RANK={text!r} in the environment is no rank; set it, or pass rank=")
    return int(text)


def _write_whole(session: Session, target: Path) -> None:
    """Export the trace and compress it under temporary names, then rename it to the target."""
    # The process id keeps apart two processes that claim one rank.
    raw = target.with_name(f".{target.name}.{os.getpid()}.raw")
    try:
        session.export_chrome_trace(os.fspath(raw))
        _check_complete(raw, target)
        with whole(target) as packed, raw.open("rb") as source, packed.open("wb") as file:
            plain_name = target.with_suffix("").name
            with gzip.GzipFile(plain_name, "wb", 5, file, mtime=0) as sink:
                shutil.copyfileobj(source, sink, 1 << 20)
    finally:
        raw.unlink(missing_ok=True)


def _check_complete(raw: Path, target: Path) -> None:
    """Refuse a file that torch did not finish, which it tells only standard error."""
    size = raw.stat().st_size if raw.exists() else 0
    if not size:
        raise CaptureError(f"{target}: torch wrote no trace; is the directory writable?")
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
