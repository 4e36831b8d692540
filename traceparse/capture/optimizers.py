"""When does a step end, in a loop that does not say so? When its last optimizer has stepped."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from traceparse.capture.said import Said

__all__ = ["OPTIMIZERS", "Leader", "Optimizers"]

_STILL_EARLY = 10  # steps of the leader, in which another optimizer may take its place
_GONE_AFTER = 50  # steps of others since the leader stepped last
_MARK = "_counted_by_traceparse"


class Leader:
    """Which optimizer's step ends the step of the job, where there are several?

    The last one of a round, as is seen in the first rounds: of a generator and a discriminator
    the one that steps behind the other, or less often. One that comes later, or steps now and
    then, ends nothing; one that is not used any more is followed by another.
    """

    def __init__(self) -> None:
        self._leader: weakref.ref[object] | None = None
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._num_led = 0
        self._num_others = 0

    def ends_step(self, optimizer: object) -> bool:
        """Say whether the job's step ends with this step of an optimizer."""
        is_new = optimizer not in self._known
        self._known.add(optimizer)
        leader = self._leader() if self._leader is not None else None
        if optimizer is leader:
            self._num_led += 1
            self._num_others = 0
            return True
        self._num_others += 1
        if leader is None or self._num_others > _GONE_AFTER:
            self._lead(optimizer)
            return True
        if is_new and self._num_led <= _STILL_EARLY:
            self._lead(optimizer)  # the step that the other one ended ends here
        return False

    def _lead(self, optimizer: object) -> None:
        self._leader = weakref.ref(optimizer)
        self._num_led = max(self._num_led, 1)
        self._num_others = 0


class Optimizers:
    """Tells a listener when an optimizer of torch, any, has stepped.

    Outside of the range that torch records of an optimizer's step, so that no range is cut by
    the end of a recording; of optimizers inside one another, the outermost.
    """

    def __init__(self) -> None:
        self._said = Said()
        self._inside = threading.local()
        self._late: object | None = None  # what stepped in a backward pass that has not ended
        self._listeners: list[Callable[[object], None]] = []
        self._on_made: Callable[[], None] | None = None

    def listen(
        self,
        listener: Callable[[object], None],
        *,
        on_made: Callable[[], None] | None = None,
    ) -> None:
        """Call ``listener`` with each optimizer that has stepped.

        ``on_made`` is called once, when the first optimizer of a class is made.
        """
        self._listeners.append(listener)
        self._on_made = on_made or self._on_made
        optimizer_type = import_module("torch.optim.optimizer").Optimizer
        if not hasattr(optimizer_type.profile_hook_step, _MARK):
            original = optimizer_type.profile_hook_step

            def hook_step(step: Callable[..., Any]) -> Callable[..., Any]:
                self._tell_made()
                return self._counted(original(step))

            setattr(hook_step, _MARK, True)
            optimizer_type.profile_hook_step = staticmethod(hook_step)
            self._count_those_there(optimizer_type)

    def forget(self, listener: Callable[[object], None]) -> None:
        """Call it no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _count_those_there(self, optimizer_type: Any) -> None:  # noqa: ANN401 - torch's class
        """Count the steps of optimizers, and of their classes, that were made before."""
        for each in _subclasses(optimizer_type):
            step = each.__dict__.get("step")
            # What torch has not hooked yet, it will hook through the above.
            if step is not None and hasattr(step, "hooked"):
                each.step = self._counted(step)  # type: ignore[attr-defined]
        for one in gc.get_objects():
            # A schedule of learning rates puts a step in its optimizer that has the old one.
            if issubclass(type(one), optimizer_type) and "step" in one.__dict__:
                one.step = self._counted(one.__dict__["step"], of=weakref.ref(one))

    def _tell_made(self) -> None:
        on_made, self._on_made = self._on_made, None
        if on_made is not None:
            with self._said.training_goes_on():
                on_made()

    def _tell(self, torch: ModuleType, optimizer: object) -> None:
        if torch._C._current_graph_task_id() != -1:
            # Inside of a backward pass no profiler may start or stop. What steps there is done
            # when it ends; of the very first one the end is not seen.
            self._late = optimizer
            self._watch_backward(torch)
            return
        for listener in tuple(self._listeners):
            listener(optimizer)

    def _watch_backward(self, torch: ModuleType) -> None:
        original = torch.autograd.backward
        if hasattr(original, _MARK):
            return

        @wraps(original)
        def backward(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's own
            result = original(*args, **kwargs)
            late, self._late = self._late, None
            if late is not None:
                with self._said.training_goes_on():
                    self._tell(torch, late)
            return result

        setattr(backward, _MARK, True)
        torch.autograd.backward = backward

    def _counted(
        self, step: Callable[..., Any], of: Callable[[], object] | None = None
    ) -> Callable[..., Any]:
        """Return a step that is told to listeners: a class's, or that ``of`` one optimizer."""
        torch = import_module("torch")
        inside = self._inside

        @wraps(step)
        def counted(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the optimizer's own
            if torch.compiler.is_compiling():  # then it is compiled as if this were not here
                return step(*args, **kwargs)
            depth = getattr(inside, "depth", 0)
            inside.depth = depth + 1
            try:
                result = step(*args, **kwargs)
            finally:
                inside.depth = depth
            if depth == 0 and self._listeners:
                with self._said.training_goes_on():
                    self._tell(torch, of() if of is not None else args[0])
            return result

        setattr(counted, _MARK, True)
        return counted


OPTIMIZERS = Optimizers()


def _subclasses(kind: type) -> Iterator[type]:
    each: type
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)
