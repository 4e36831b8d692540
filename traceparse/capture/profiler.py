"""``traceparse.profile``: torch's profiler, with the settings that the analysis needs.

It never puts a half-written file under a trace's name, and once training runs nothing that
goes wrong in here stops it: the logger ``traceparse.capture`` says what was lost.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from traceparse.capture.asked import asked_for
from traceparse.capture.following import following_optimizers
from traceparse.capture.plan import TEN_TO_TWELVE, Ranks, Steps
from traceparse.capture.session import Session
from traceparse.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from torch import nn

__all__ = ["profile"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class profile:  # noqa: N801 - called like a function, as torch.profiler.profile is
    """Record some steps of a training loop, one trace file a rank.

    ::

        with traceparse.profile("traces/", steps=range(10, 13)) as prof:
            for batch in loader:
                train(batch)
                prof.step()

    Or around a function that trains, whose steps are then told by torch's optimizers::

        @traceparse.profile("traces/")
        def train(): ...

    Parameters
    ----------
    directory
        Where ``rank0_trace.json.gz`` and ``rank0_facts.json`` and so on go; made if it is not
        there.
    steps
        A contiguous range, counted from 0; the numbers of the ``ProfilerStep`` spans in the
        trace. Step k ends with the (k+1)-th call of :meth:`step`. Or a schedule of
        ``torch.profiler.schedule``: then each recording has a folder, ``iteration_{step}``.
    ranks
        Which ranks record: ``"all"``, ``"node"`` (one of each node), or ranks, as numbers or
        as a text, ``"0,8-15"``.
    stacks
        Record Python call stacks as well: slower steps, and files several times as large.
    memory
        Record allocations as well.
    rank
        Whose trace this is. Not given: torch.distributed's rank, else ``RANK`` of the
        environment, else 0.
    overwrite
        Replace a trace of this rank that the directory already holds.
    with_host
        Record the name of the host, the command and its folder, which are left out otherwise.
    model
        What is trained, to count its parameters. Not given: the modules that are called.
    count_flop
        Count the FLOP that the model needs on this rank, once, in a step that is not recorded:
        a slow one, as all its operators go through Python. Not where torch.compile is used.
    model_flop_per_step
        FLOP that the model needs for one step of the whole job: forward and backward, on all
        ranks together, without what is computed twice. MFU is this by time and peak.
    params
        Parameters of the model that activations are multiplied by, each counted once, however
        many ranks hold a copy or a part of it.
    tokens_per_step
        Tokens that one step of the whole job trains on, on all ranks together. With ``params``,
        they tell about how many FLOP the model needs.
    samples_per_step
        Samples that one step of the whole job trains on.

    Raises
    ------
    UsageError
        The steps are no contiguous range and no schedule, a rank is no rank, or a number that
        is told of the job is no whole number above 0.
    MissingExtraError
        On entering: torch is not installed. Nothing else is raised from then on, whatever goes
        wrong: the job's log says it.

    Examples
    --------
    >>> import torch
    >>> layer = torch.nn.Linear(8, 8)
    >>> with traceparse.profile("recorded/", steps=range(1, 3)) as prof:
    ...     for batch in torch.ones(4, 2, 8):
    ...         loss = layer(batch).sum()
    ...         loss.backward()
    ...         prof.step()
    >>> prof.path.name
    'rank0_trace.json.gz'
    >>> [step.step for step in traceparse.analyze("recorded/").devices[0].steps]
    [1, 2]
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        steps: Steps = TEN_TO_TWELVE,
        ranks: Ranks = "all",
        stacks: bool = False,
        memory: bool = False,
        rank: int | None = None,
        overwrite: bool = False,
        with_host: bool = False,
        model: nn.Module | None = None,
        count_flop: bool = False,
        model_flop_per_step: int | None = None,
        params: int | None = None,
        tokens_per_step: int | None = None,
        samples_per_step: int | None = None,
    ) -> None:
        self._directory = directory
        self._options: dict[str, Any] = {
            "steps": steps,
            "ranks": ranks,
            "rank": rank,
            "stacks": stacks,
            "memory": memory,
            "overwrite": overwrite,
            "with_host": with_host,
            "model": model,
            "count_flop": count_flop,
            "facts": {
                "model_flop_per_step": model_flop_per_step,
                "params": params,
                "tokens_per_step": tokens_per_step,
                "samples_per_step": samples_per_step,
            },
        }
        self._asked = asked_for(directory, **self._options)
        self._session: Session | None = None

    @property
    def path(self) -> Path | None:
        """The trace, once it is kept; of several, the last one."""
        kept = self._session.kept if self._session is not None else []
        return kept[-1] if kept else None

    def __enter__(self) -> Self:
        """Begin step 0."""
        self._session = _begun(Session(self._asked))
        return self

    def step(self) -> None:
        """Say that one step of training has ended and the next begins."""
        if self._session is None:
            raise UsageError(
                "step() was called on a profile that has not begun: "
                "use `with traceparse.profile(...) as prof:`"
            )
        self._session.step()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Keep what was recorded, also when training failed; its exception goes on."""
        if self._session is not None:
            self._session.close()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Capture each call of a function that trains; its optimizers tell the steps."""
        asked = asked_for(self._directory, step_on="optimizer", **self._options)

        @wraps(function)
        def captured(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with following_optimizers(_begun(Session(asked))):
                return function(*args, **kwargs)

        return captured


def _begun(session: Session) -> Session:
    if find_spec("torch") is None:
        raise MissingExtraError("capturing needs torch: pip install 'traceparse[capture]'")
    session.begin()
    return session
