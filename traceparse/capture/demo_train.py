"""The training job of ``traceparse demo``: a small transformer on CPU ranks.

It knows nothing of traceparse, as a training script does; ``traceparse capture`` runs it:
``traceparse capture --out traces --steps 10-13 -- torchrun --nproc-per-node 2 -m
traceparse.capture.demo_train``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

__all__ = ["build_model", "main", "train"]

_HIDDEN, _LAYERS, _HEADS = 128, 3, 4
_VOCAB, _SEQ, _BATCH = 4096, 64, 8
# Gradients go out in several buckets, so that some of the communication hides under backward.
_BUCKET_MB = 1.0


def main(words: Sequence[str] | None = None) -> None:
    """Train as the command line says."""
    parser = argparse.ArgumentParser(prog="traceparse.capture.demo_train", description=__doc__)
    parser.add_argument("--num-steps", type=int, default=40, help="how many steps to train")
    train(num_steps=parser.parse_args(words).num_steps)


def train(*, num_steps: int, seed: int = 0) -> list[float]:
    """Train this rank's replica, and return the loss of every step.

    Which rank, of how many, and where the others are is in the environment, set by torchrun:
    ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR``, ``MASTER_PORT``.
    """
    torch = import_module("torch")
    torch.set_num_threads(1)  # the ranks share one machine: more would only get in the way
    torch.manual_seed(seed)  # the same replica on every rank
    torch.distributed.init_process_group("gloo")
    try:
        model = torch.nn.parallel.DistributedDataParallel(
            build_model(), bucket_cap_mb=_BUCKET_MB
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        # Other data on every rank.
        random = torch.Generator().manual_seed(seed + 1 + torch.distributed.get_rank())
        losses = []
        for _ in range(num_steps):
            tokens = torch.randint(_VOCAB, (_BATCH, _SEQ), generator=random)
            losses.append(_train_step(torch, model, optimizer, tokens))
        return losses
    finally:
        torch.distributed.destroy_process_group()


def build_model() -> nn.Module:
    """Return a small transformer: a score for every word at every position."""
    nn = import_module("torch").nn
    layer = nn.TransformerEncoderLayer(
        _HIDDEN, _HEADS, 4 * _HIDDEN, dropout=0.0, batch_first=True, norm_first=True
    )
    return nn.Sequential(
        nn.Embedding(_VOCAB, _HIDDEN),
        nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False),
        nn.Linear(_HIDDEN, _VOCAB),
    )


def _train_step(
    torch: ModuleType, model: nn.Module, optimizer: Optimizer, tokens: Tensor
) -> float:
    wanted = (5 * tokens + 7) % _VOCAB  # a rule that can be learned, so that the loss falls
    scores = model(tokens)
    loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())
    # A collective that nothing hides, as many a training loop has. Never the last thing a job
    # does: gloo's thread still holds the tensor for a moment, and a process that exits in that
    # moment aborts (pytorch/pytorch#179291).
    mean = loss.detach() / torch.distributed.get_world_size()
    torch.distributed.all_reduce(mean)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return float(mean.item())


if __name__ == "__main__":
    main()
    # Leave at once: gloo's threads may still let go of a tensor, and one that asks for the
    # interpreter while it shuts down aborts the process (pytorch/pytorch#179291).
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
