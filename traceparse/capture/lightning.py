"""Capture in a ``lightning.pytorch.Trainer``, also as the package ``pytorch_lightning``."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from traceparse.capture.attached import OfTrainer, Options
from traceparse.errors import MissingExtraError

if TYPE_CHECKING:
    from lightning.pytorch import Trainer

__all__ = ["ProfileCallback"]

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _callbacks() -> tuple[type[Any], ...]:
    """Return the callback of each package that is there: a trainer takes its own package's."""
    found = []
    for name in _PACKAGES:
        with suppress(ImportError):
            found.append(import_module(name).Callback)
    if not found:
        raise MissingExtraError(
            "traceparse.capture.lightning needs lightning: pip install lightning"
        )
    return tuple(found)


class ProfileCallback(OfTrainer, *_callbacks()):  # type: ignore[misc]  # one or two
    """Record some steps of a Lightning ``Trainer``, one trace file a rank.

    ::

        trainer = Trainer(..., callbacks=[ProfileCallback("traces/", steps=range(10, 13))])
        trainer.fit(module)

    A step ends with the batch in which ``trainer.global_step`` grows: it has all batches whose
    gradients are accumulated, and where several optimizers step in one batch, all of those.
    Steps count from 0 where training begins, also when it goes on from a checkpoint. Validating
    and saving behind a step are part of the next one. The sanity check is part of none.

    What was recorded is kept when training ends, and when it fails.

    Parameters
    ----------
    directory
        Where ``rank0_trace.json.gz`` and ``rank0_facts.json`` and so on go.
    steps
        A contiguous range, counted from 0, or a schedule of ``torch.profiler.schedule``.
    **options
        Those of :class:`traceparse.profile`. Not given: ``model`` is the one that is trained.

    Raises
    ------
    UsageError
        Here, for what :class:`traceparse.profile` raises it for. Training raises nothing.
    """

    _num_steps = 0  # of the optimizers, in the whole training

    def on_train_start(self, trainer: Trainer, *_: object) -> None:  # noqa: D102 - the trainer's
        known: Options = {}
        with self._attached.finding_out("the trainer"):
            self._num_steps = trainer.global_step
            known["model"] = trainer.model  # wrapped, as it is called
        self._attached.begin(known)

    def on_train_batch_end(  # noqa: D102 - the trainer's
        self, trainer: Trainer, *_: object, **__: object
    ) -> None:
        if trainer.global_step != self._num_steps:
            self._num_steps = trainer.global_step
            self._attached.step()

    def on_train_end(self, *_: object) -> None:  # noqa: D102 - the trainer's
        self._attached.end()

    def on_exception(self, *_: object) -> None:  # noqa: D102 - the trainer's
        self._attached.end()

    def teardown(self, *_: object, **__: object) -> None:  # noqa: D102 - the trainer's
        self._attached.end()
