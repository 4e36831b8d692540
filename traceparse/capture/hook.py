"""In each process of a command that ``traceparse capture`` runs: wait for torch, then capture.

Loaded before anything of the job, so it imports next to nothing until torch is imported.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from traceparse.capture.environment import Told, told
from traceparse.capture.functions import Named, after_import
from traceparse.capture.said import Said

if TYPE_CHECKING:
    from traceparse.capture.optimizers import Leader
    from traceparse.capture.session import Session

__all__ = ["install"]


def install() -> None:
    """Capture in this process, if its environment says so and it trains something."""
    what = told(os.environ)
    if what is None:
        return
    following = Following(what)
    if what.step_on is not None:
        following.follow_function(Named(what.step_on))
    # torch.optim.optimizer is imported by torch itself, last of all.
    after_import("torch.optim.optimizer", following.follow_optimizers)


class Following:
    """A capture in a process that knows nothing of it.

    Its methods are called in the middle of an import, or of an optimizer: none of them raises.
    """

    def __init__(self, what: Told) -> None:
        self._what = what
        self._said = Said()
        self._session: Session | None = None
        self._leader: Leader | None = None
        self._function: Named | None = None

    def follow_function(self, function: Named) -> None:
        """End steps where a function returns, as soon as there is such a function."""
        self._function = function
        if function.module != "__main__":
            after_import(function.module, self._find_function)

    def follow_optimizers(self) -> None:
        """End steps where optimizers have stepped, or notice at least that there are some."""
        with self._said.training_goes_on():
            from traceparse.capture.optimizers import OPTIMIZERS, Leader

            self._leader = Leader()
            OPTIMIZERS.listen(self._stepped, on_made=self._begin_early)

    def _find_function(self) -> None:
        with self._said.training_goes_on():
            if self._function is not None and self._function.call_after(self._step):
                self._begin()

    def _begin_early(self) -> None:
        """Begin with the first optimizer that is made: what precedes is no training yet."""
        if self._function is not None:
            self._find_function()  # by now the main module has most of its functions
            return
        with self._said.training_goes_on():
            self._begin()

    def _begin(self) -> Session:
        if self._session is None:
            from traceparse.capture.asked import asked_for
            from traceparse.capture.ending import at_exit
            from traceparse.capture.session import Session

            what = self._what
            first, last = what.steps
            asked = asked_for(
                what.directory,
                steps=range(first, last + 1),
                ranks=what.ranks,
                step_on=what.step_on or "optimizer",
                stacks=what.stacks,
                memory=what.memory,
                overwrite=what.overwrite,
                with_host=what.with_host,
                count_flop=what.count_flop,
                facts={
                    "model_flop_per_step": what.model_flop_per_step,
                    "params": what.params,
                    "tokens_per_step": what.tokens_per_step,
                    "samples_per_step": what.samples_per_step,
                },
            )
            self._session = Session(asked)
            self._session.begin()
            at_exit(self._session.close)
        return self._session

    def _stepped(self, optimizer: object) -> None:
        if self._function is not None:
            if not self._function.is_found:
                self._find_function()
                self._say_not_found()
        elif self._leader is not None and self._leader.ends_step(optimizer):
            self._step()

    def _step(self) -> None:
        with self._said.training_goes_on():
            self._begin().step()

    def _say_not_found(self) -> None:
        if self._function is not None and not self._function.is_found:
            self._said.warn(
                f"an optimizer has stepped, and {self._what.step_on} is not there yet: no step "
                "is counted before it is"
            )
