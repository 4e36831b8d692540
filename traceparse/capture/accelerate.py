"""Capture in a loop of one's own that trains with Accelerate."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import MethodType
from typing import Any, Unpack

from traceparse.capture.attached import Attached, Options
from traceparse.capture.optimizers import Leader
from traceparse.capture.plan import TEN_TO_TWELVE, Steps
from traceparse.errors import MissingExtraError, UsageError

try:
    from accelerate import Accelerator
except ImportError as error:
    raise MissingExtraError(
        "traceparse.capture.accelerate needs accelerate: pip install accelerate"
    ) from error

__all__ = ["profile"]


@contextmanager
def profile(
    accelerator: Accelerator,
    directory: str | os.PathLike[str],
    *,
    steps: Steps = TEN_TO_TWELVE,
    **options: Unpack[Options],
) -> Iterator[Attached]:
    """Record some steps of a loop with Accelerate, one trace file a rank.

    ::

        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        with profile(accelerator, "traces/", steps=range(10, 13)) as prof:
            for batch in loader:
                with accelerator.accumulate(model):
                    accelerator.backward(model(batch).loss)
                    optimizer.step()
                    optimizer.zero_grad()
        print(prof.path)

    A step ends when a prepared optimizer has stepped with gradients that are synchronized: it
    has all batches whose gradients are accumulated. Of several optimizers it is the last one of
    a round. What follows until the next batch is part of the next step.

    Parameters
    ----------
    accelerator
        Which has prepared the optimizers.
    directory
        Where ``rank0_trace.json.gz`` and ``rank0_facts.json`` and so on go.
    steps
        A contiguous range, counted from 0, or a schedule of ``torch.profiler.schedule``.
    **options
        Those of :class:`traceparse.profile`. Not given: ``rank`` is
        ``accelerator.process_index``.

    Yields
    ------
    Attached
        Its ``path`` is the trace, once it is kept.

    Raises
    ------
    UsageError
        On entering, for what :class:`traceparse.profile` raises it for, and where no optimizer
        was prepared. Nothing else is raised from then on.
    """
    attached = Attached(directory, steps, options)
    optimizers = list(accelerator._optimizers)
    if not optimizers:
        raise UsageError(
            "the accelerator has no optimizer whose steps could be counted: prepare one first, "
            "with accelerator.prepare(...)"
        )
    leader = Leader()

    def stepped(optimizer: object) -> None:
        if accelerator.sync_gradients and leader.ends_step(optimizer):
            attached.step()

    attached.begin({"rank": accelerator.process_index})
    try:
        with ExitStack() as stack:
            for optimizer in optimizers:
                stack.enter_context(_told(optimizer, stepped))
            yield attached
    finally:
        attached.end()


@contextmanager
def _told(optimizer: Any, stepped: Callable[[object], None]) -> Iterator[None]:  # noqa: ANN401
    """Call somebody with an optimizer behind each of its steps, made or left out.

    Of the object and not of its class: a scheduler may have put a step of its own there.
    """
    own, original = optimizer.__dict__.get("step"), optimizer.step

    @wraps(original)
    def step(self: object, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the optimizer's
        result = original(*args, **kwargs)
        stepped(self)
        return result

    optimizer.step = telling = MethodType(step, optimizer)
    try:
        yield
    finally:
        if optimizer.__dict__.get("step") is telling:  # else another one calls ours
            del optimizer.step
            if own is not None:
                optimizer.step = own
