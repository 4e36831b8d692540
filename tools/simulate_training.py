"""How jobs train: what each rank's host does under one way of parallelism, as a program.

The network is a row of square linear layers with an activation between them. All ranks of a
job write their programs with the same shape; where a rank is in its groups tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tools.simulate_parts import Writer
from tools.simulate_program import COMPUTE_STREAM, Group

__all__ = [
    "Saved",
    "Shape",
    "backward_layer",
    "buckets",
    "data_parallel",
    "forward_layer",
    "fully_sharded",
    "gradients",
    "hybrid_sharded",
    "linear",
    "loss",
    "loss_backward",
    "prefetched",
    "step",
    "warm_up",
]

_HTOD = "Memcpy HtoD (Pinned -> Device)"


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the network is and how long it trains; the profiler counts from ``first``."""

    tokens: int
    hidden: int
    layers: int
    steps: int
    first: int

    @property
    def weights(self) -> int:
        """Elements of one layer's weight."""
        return self.hidden * self.hidden

    @property
    def activations(self) -> tuple[int, int]:
        """The shape of what goes from layer to layer."""
        return self.tokens, self.hidden


@dataclass(frozen=True, slots=True)
class Saved:
    """Sequence numbers of one layer's forward, which its backward repeats."""

    product: int
    activation: int


def warm_up(host: Writer) -> None:
    """Begin a little apart from the other ranks, as processes do."""
    host.pause(20_000 + 1_500 * (7 * host.rank % 5))


@contextmanager
def step(host: Writer, shape: Shape, number: int) -> Iterator[None]:
    """Let one step begin with the batch and end with the optimizer and a look at the loss."""
    name = f"ProfilerStep#{shape.first + number}"
    with host.span(name, "user_annotation", step=shape.first + number):
        host.copy(_HTOD, shape.tokens * shape.hidden // 4)
        yield
        with host.span("Optimizer.step#SGD.step", "user_annotation"):
            host.pointwise("aten::_foreach_add_", "Add", (shape.layers, *shape.activations))
        host.item()
    host.pause(2_000)


def forward_layer(host: Writer, shape: Shape) -> Saved:
    """Multiply by the weight, add the bias, and cut off what is negative."""
    saved = Saved(host.next_sequence(), host.next_sequence())
    linear(host, shape, saved.product)
    host.pointwise("aten::relu", "Relu", shape.activations, saved.activation)
    return saved


def linear(host: Writer, shape: Shape, sequence: int, *, is_recompute: bool = False) -> None:
    """Multiply by the weight and add the bias."""
    dims = (shape.hidden,), shape.activations, (shape.hidden, shape.hidden)
    args = {"Sequence number": sequence, "Fwd thread id": 0}
    with host.span("aten::linear", args=args):
        host.product("aten::addmm", *dims, sequence=sequence, is_recompute=is_recompute)


def backward_layer(host: Writer, shape: Shape, saved: Saved) -> None:
    """Undo one layer: the gradients of its input and of its weight."""
    with host.backward_of("Relu", saved.activation):
        host.pointwise("aten::threshold_backward", "Threshold", shape.activations)
    with host.backward_of("Addmm", saved.product):
        gradients(host, shape)


def gradients(host: Writer, shape: Shape) -> None:
    """Multiply the gradient by the weight, and by the input."""
    host.product("aten::mm", shape.activations, (shape.hidden, shape.hidden))
    host.product("aten::mm", shape.activations[::-1], shape.activations)


def loss(host: Writer, shape: Shape) -> int:
    """Compare the output; return what backward begins with."""
    sequence = host.next_sequence()
    host.pointwise("aten::mse_loss", "MseLoss", shape.activations, sequence)
    return sequence


def loss_backward(host: Writer, shape: Shape, sequence: int) -> None:
    """Begin backward."""
    with host.backward_of("MseLoss", sequence):
        host.pointwise("aten::mse_loss_backward", "MseLossBackward", shape.activations)


def buckets(shape: Shape) -> dict[int, int]:
    """Return, for layers that fill a bucket in backward, its elements: a small one first."""
    found, filled = {shape.layers - 1: shape.weights}, 0
    for layer in range(shape.layers - 2, -1, -1):
        filled += shape.weights
        if filled >= 2 * shape.weights or layer == 0:
            found[layer], filled = filled, 0
    return found


def data_parallel(host: Writer, shape: Shape, world: Group, *, stream: int = 20) -> None:
    """Reduce gradients in buckets while backward goes on, as DistributedDataParallel does."""
    warm_up(host)
    full = buckets(shape)
    for number in range(shape.steps):
        with step(host, shape, number):
            saved = [forward_layer(host, shape) for _ in range(shape.layers)]
            begin = loss(host, shape)
            with host.on_thread("autograd"):
                loss_backward(host, shape, begin)
                for layer in reversed(range(shape.layers)):
                    backward_layer(host, shape, saved[layer])
                    if layer in full:
                        host.collective(world, "allreduce", full[layer], stream)
            host.wait(COMPUTE_STREAM, stream)


def fully_sharded(host: Writer, shape: Shape, gather: Group, scatter: Group) -> None:
    """Gather each layer's weights one layer ahead, and scatter its gradients, as FSDP does."""
    _sharded(host, shape, scatter, lambda num: _in_turn(host, shape, gather, num))


def prefetched(host: Writer, shape: Shape, gather: Group, scatter: Group) -> None:
    """Gather the next layer's weights before computing waits for its own, as FSDP2 can.

    So what is waited for is not the last on its stream: an event was recorded behind it.
    """
    _sharded(host, shape, scatter, lambda num: _ahead(host, shape, gather, num))


def _sharded(
    host: Writer, shape: Shape, scatter: Group, weights: Callable[[int], Iterator[None]]
) -> None:
    """Train with ``weights`` that are there, of so many layers, whenever one more is asked."""
    warm_up(host)
    order = [*range(shape.layers), *reversed(range(shape.layers))]
    for number in range(shape.steps):
        with step(host, shape, number):
            saved: list[Saved] = []
            ready = weights(len(order))
            next(ready)
            for place, layer in enumerate(order):
                is_forward = place < shape.layers
                if place == shape.layers:
                    begin = loss(host, shape)
                    with host.on_thread("autograd"):
                        loss_backward(host, shape, begin)
                with host.on_thread("main" if is_forward else "autograd"):
                    next(ready)
                    if is_forward:
                        saved.append(forward_layer(host, shape))
                    else:
                        backward_layer(host, shape, saved[layer])
                        kind = "_reduce_scatter_base"
                        host.collective(scatter, kind, _shard(shape, scatter), 24)
            host.wait(COMPUTE_STREAM, 24)


def _in_turn(host: Writer, shape: Shape, group: Group, num: int) -> Iterator[None]:
    """Begin to gather the first weights; then wait for each, and gather the next."""
    for _ in range(num):
        host.collective(group, "_allgather_base", _shard(shape, group), 22)
        yield
        host.wait(COMPUTE_STREAM, 22)
    yield


def _ahead(host: Writer, shape: Shape, group: Group, num: int) -> Iterator[None]:
    """Begin to gather the first weights; then gather the next, and wait for each."""
    gathered = _gather(host, shape, group)
    for _ in range(num - 1):
        yield
        following = _gather(host, shape, group)
        host.wait_for(COMPUTE_STREAM, gathered)
        gathered = following
    yield
    host.wait_for(COMPUTE_STREAM, gathered)
    yield


def _gather(host: Writer, shape: Shape, group: Group) -> int:
    """Gather a layer's weights; return the event that they are there."""
    host.collective(group, "_allgather_base", _shard(shape, group), 22)
    return host.record(22)


def _shard(shape: Shape, group: Group) -> int:
    return shape.weights // len(group.ranks)


def hybrid_sharded(host: Writer, shape: Shape, shards: Group, copies: Group) -> None:
    """Scatter gradients among neighbors, reduce the parts across: hybrid sharding."""
    warm_up(host)
    part = _shard(shape, shards)
    for number in range(shape.steps):
        with step(host, shape, number):
            saved = [forward_layer(host, shape) for _ in range(shape.layers)]
            begin = loss(host, shape)
            with host.on_thread("autograd"):
                loss_backward(host, shape, begin)
                for layer in reversed(range(shape.layers)):
                    backward_layer(host, shape, saved[layer])
                    host.collective(shards, "_reduce_scatter_base", part, 20)
                    host.wait(21, 20)
                    host.collective(copies, "allreduce", part, 21)
            host.wait(COMPUTE_STREAM, 21)
            host.collective(shards, "_allgather_base", shape.layers * part, 20)
            host.wait(COMPUTE_STREAM, 20)
