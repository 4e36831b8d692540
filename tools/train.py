"""A training job for the capture tools: what it does, and how fast, is told by its options.

It trains a small network, alone or on the ranks that torchrun started, and writes what it
computed and how long each step took, one JSON file a rank.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

__all__ = ["main"]

_VOCAB = 512


class Block(nn.Module):  # type: ignore[misc]
    """Attention and two layers, as in a transformer."""

    def __init__(self, hidden: int, checkpointing: str) -> None:
        super().__init__()
        self.heads = hidden // 32
        self.norm = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.wide = nn.Linear(hidden, 4 * hidden)
        self.narrow = nn.Linear(4 * hidden, hidden)
        self.checkpointing = checkpointing

    def forward(self, x: Tensor) -> Tensor:
        """Run the block, its activations kept or computed again."""
        if self.checkpointing == "none":
            return self.run(x)
        reentrant = self.checkpointing == "reentrant"
        again: Tensor = checkpoint(self.run, x, use_reentrant=reentrant)
        return again

    def run(self, x: Tensor) -> Tensor:
        """Compute what :meth:`forward` returns."""
        batch, seq, hidden = x.shape
        parts = self.qkv(self.norm(x)).view(batch, seq, 3, self.heads, 32)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.transpose(1, 2).reshape(batch, seq, hidden)
        return x + self.narrow(nn.functional.gelu(self.wide(x)))


class Network(nn.Module):  # type: ignore[misc]
    """Words in, a score for every next word out."""

    def __init__(self, hidden: int, layers: int, checkpointing: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(_VOCAB, hidden)
        self.blocks = nn.ModuleList(Block(hidden, checkpointing) for _ in range(layers))
        self.head = nn.Linear(hidden, _VOCAB)

    def forward(self, words: Tensor) -> Tensor:
        """Score the words that follow."""
        x = self.embed(words)
        for block in self.blocks:
            x = block(x)
        scores: Tensor = self.head(x)
        return scores


def _wrapped(network: Network, wanted: argparse.Namespace) -> nn.Module:
    model: nn.Module = network
    if wanted.wrapper == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    elif wanted.wrapper == "fsdp2":
        from torch.distributed.fsdp import fully_shard  # noqa: PLC0415 - slow to import

        for block in network.blocks:
            fully_shard(block)
        fully_shard(network)
    if wanted.compile:
        compiled: Any = torch.compile(model)
        return compiled
    return model


def _loop(model: nn.Module, wanted: argparse.Namespace, capture: Any) -> dict[str, list[Any]]:  # noqa: ANN401
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rank = int(os.environ.get("RANK", "0"))
    random = torch.Generator().manual_seed(1 + rank)
    losses, seconds = [], []
    for step in range(wanted.num_steps):
        began = time.perf_counter()
        words = torch.randint(_VOCAB, (wanted.batch, wanted.seq), generator=random)
        with torch.profiler.record_function(wanted.span):
            scores = model(words)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten())
        loss.backward()
        if f"{rank}:{step}" == wanted.fail_at:
            _fail(wanted.fail)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item().hex())
        if capture is not None and (not wanted.turns or step // wanted.turns % 2):
            capture.step()
        seconds.append(time.perf_counter() - began)
    return {"losses": losses, "seconds": seconds}


def _fail(how: str) -> None:
    """End as jobs do when they do not end well."""
    if how == "raise":
        raise ValueError("a batch that cannot be read")
    if how == "exit":
        os._exit(7)
    os.kill(os.getpid(), getattr(signal, f"SIG{how.upper()}"))


@contextlib.contextmanager
def _capture(wanted: argparse.Namespace) -> Iterator[Any]:
    if wanted.capture is None:
        yield None
        return
    from traceparse import profile  # noqa: PLC0415 - only where the job itself captures

    first, last = wanted.steps
    with profile(
        wanted.capture, steps=range(first, last + 1), count_flop=wanted.count_flop
    ) as prof:
        yield prof


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="train.py", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of what was computed")
    parser.add_argument("--wrapper", choices=("none", "ddp", "fsdp2"), default="none")
    parser.add_argument("--checkpoint", choices=("none", "reentrant", "other"), default="none")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--num-steps", type=int, default=20)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seq", type=int, default=32)
    parser.add_argument("--span", default="forward", help="name of a span in the trace")
    parser.add_argument("--capture", type=Path, help="capture here, by traceparse.profile")
    parser.add_argument("--steps", type=int, nargs=2, default=(10, 12), help="first and last")
    parser.add_argument("--count-flop", action="store_true")
    parser.add_argument(
        "--turns", type=int, default=0, help="so many steps with capture, so many without"
    )
    parser.add_argument("--fail", choices=("raise", "exit", "term", "int", "kill"))
    parser.add_argument("--fail-at", help="RANK:STEP")
    return parser


def main() -> None:
    """Train as the command line says."""
    wanted = _parser().parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if wanted.wrapper != "none":
        dist.init_process_group("gloo")
    model = _wrapped(Network(wanted.hidden, wanted.layers, wanted.checkpoint), wanted)
    with _capture(wanted) as capture:
        done = _loop(model, wanted, capture)
    wanted.out.mkdir(parents=True, exist_ok=True)
    rank = os.environ.get("RANK", "0")
    (wanted.out / f"rank{rank}.json").write_text(json.dumps(done))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
    # Leave at once: gloo's threads may abort a process that shuts down (pytorch#179291).
    sys.stdout.flush()
    sys.stderr.flush()
    if "RANK" in os.environ and "--fail" not in sys.argv:
        os._exit(0)
