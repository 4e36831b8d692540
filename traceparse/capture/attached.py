"""A capture that begins, steps and ends as the callbacks of somebody's trainer say."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from traceparse.capture.asked import asked_for
from traceparse.capture.ending import at_exit, not_at_exit
from traceparse.capture.plan import TEN_TO_TWELVE, Ranks, Steps
from traceparse.capture.said import Said
from traceparse.capture.session import Session

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Attached", "OfTrainer", "Options"]


class Facts(TypedDict, total=False):
    """What is told of the job, as :class:`traceparse.profile` explains it."""

    model_flop_per_step: int | None
    params: int | None
    tokens_per_step: int | None
    samples_per_step: int | None


class Options(Facts, total=False):
    """Options of :class:`traceparse.profile`, without the steps."""

    ranks: Ranks
    rank: int | None
    stacks: bool
    memory: bool
    overwrite: bool
    with_host: bool
    model: nn.Module | None
    count_flop: bool


class Attached:
    """The captures of one callback, one each time that training begins.

    Nothing is raised once it is made. Where training fails and nobody is told, what was
    recorded is kept when the process ends.

    Raises
    ------
    UsageError
        What :class:`traceparse.profile` raises it for.
    """

    def __init__(
        self, directory: str | os.PathLike[str], steps: Steps, options: Options
    ) -> None:
        self._directory = directory
        self._steps = steps
        self._options = options
        self._said = Said()
        self._session: Session | None = None
        self._made({})

    @property
    def path(self) -> Path | None:
        """The trace, once it is kept; of several, the last one."""
        kept = self._session.kept if self._session is not None else []
        return kept[-1] if kept else None

    def begin(self, known: Options) -> None:
        """Begin step 0; what is ``known`` is told as well, unless the options tell better."""
        self.end()
        with self._said.training_goes_on():
            session = self._session = self._made(known)
            session.begin()
            at_exit(self.end)

    def step(self) -> None:
        """End the step, and begin the next."""
        if self._session is not None:
            self._session.step()

    def end(self) -> None:
        """Keep what was recorded until now."""
        not_at_exit(self.end)
        if self._session is not None:
            self._session.close()

    @contextmanager
    def finding_out(self, what: str) -> Iterator[None]:
        """Find out a fact; if that fails, it is missing."""
        with self._said.training_goes_on(f"facts are missing ({what})"):
            yield

    def _made(self, known: Options) -> Session:
        told: dict[str, Any] = {**known, **self._options}
        facts = {name: told.pop(name) for name in Facts.__annotations__ if name in told}
        asked = asked_for(
            self._directory, steps=self._steps, step_on="optimizer", facts=facts, **told
        )
        return Session(asked)


class OfTrainer:
    """What callbacks of all trainers have: a capture, and where its trace is."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        steps: Steps = TEN_TO_TWELVE,
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        self._steps = steps
        self._attached = Attached(directory, steps, options)

    @property
    def path(self) -> Path | None:
        """The trace, once it is kept; of several, the last one."""
        return self._attached.path
