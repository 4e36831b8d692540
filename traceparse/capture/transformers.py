"""Capture in a ``transformers.Trainer``, and in the trainers that are made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceparse.capture.attached import OfTrainer, Options
from traceparse.capture.plan import plan_of
from traceparse.errors import MissingExtraError

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingExtraError(
        "traceparse.capture.transformers needs transformers: pip install transformers"
    ) from error

if TYPE_CHECKING:
    from torch import nn
    from transformers import TrainerState, TrainingArguments

__all__ = ["ProfileCallback"]


class ProfileCallback(OfTrainer, TrainerCallback):  # type: ignore[misc]  # untyped for us
    """Record some steps of a ``Trainer``, one trace file a rank.

    ::

        trainer = Trainer(..., callbacks=[ProfileCallback("traces/", steps=range(10, 13))])
        trainer.train()

    A step is one of the optimizer's, as ``state.global_step`` counts them, with all batches
    whose gradients it accumulates. Steps count from 0 where training begins, also when it goes
    on from a checkpoint. Evaluating, saving and logging behind a step are part of the next one.

    A trainer tells its callbacks nothing of an exception. What was recorded until then is kept
    when the process ends, when training begins again, or by :meth:`close`.

    Parameters
    ----------
    directory
        Where ``rank0_trace.json.gz`` and ``rank0_facts.json`` and so on go.
    steps
        A contiguous range, counted from 0, or a schedule of ``torch.profiler.schedule``.
    **options
        Those of :class:`traceparse.profile`. Not given: ``model`` is the one that is trained,
        and ``samples_per_step`` what the arguments and the data loader say, where all steps
        that are recorded have equally many samples.

    Raises
    ------
    UsageError
        Here, for what :class:`traceparse.profile` raises it for. Training raises nothing.
    """

    def close(self) -> None:
        """Keep what was recorded until now; needed only where training failed."""
        self._attached.end()

    def on_train_begin(  # noqa: D102 - the trainer's
        self,
        args: TrainingArguments,
        state: TrainerState,
        *_: object,
        model: nn.Module | None = None,
        train_dataloader: object = None,
        **__: object,
    ) -> None:
        known: Options = {}
        with self._attached.finding_out("the trainer"):
            if not args.torch_compile:  # else what is called is not this, but compiled from it
                known["model"] = model
            known["samples_per_step"] = self._samples(args, state, train_dataloader)
        self._attached.begin(known)

    def on_step_end(self, *_: object, **__: object) -> None:  # noqa: D102 - the trainer's
        self._attached.step()

    def on_train_end(self, *_: object, **__: object) -> None:  # noqa: D102 - the trainer's
        self._attached.end()

    def _samples(
        self,
        args: TrainingArguments,
        state: TrainerState,
        loader: Any,  # noqa: ANN401
    ) -> int | None:
        """Count the samples of a step; ``None`` where recorded ones may have fewer.

        That is the last one of an epoch, and every one of data whose length nobody knows.
        """
        from torch.utils.data import BatchSampler, IterableDataset

        if isinstance(loader.dataset, IterableDataset):
            return None
        sampler = loader.batch_sampler
        sampler = getattr(sampler, "batch_sampler", sampler)  # accelerate deals out batches
        if type(sampler) is not BatchSampler:
            return None
        samples = int(loader.total_batch_size) * int(args.gradient_accumulation_steps)
        num_full, rest = divmod(len(sampler.sampler), samples)
        steps = plan_of(self._steps).steps
        are_full = steps is not None and steps.stop <= num_full and not state.global_step
        return samples if are_full or not rest else None
