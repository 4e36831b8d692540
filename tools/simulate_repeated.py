"""How jobs train that run something again: a graph of kernels, the forward of a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from tools.simulate_parts import Writer
from tools.simulate_program import COMPUTE_STREAM, Group, Launch, Work
from tools.simulate_training import (
    Saved,
    Shape,
    backward_layer,
    forward_layer,
    gradients,
    linear,
    loss,
    loss_backward,
    step,
    warm_up,
)

__all__ = ["checkpointed", "graphed"]


def graphed(host: Writer, shape: Shape, world: Group, *, stream: int = 20) -> None:
    """Replay one CUDA graph a step, in which kernels compute and reduce; a little is eager."""
    warm_up(host)
    for number in range(shape.steps):
        with step(host, shape, number):
            linear(host, shape, host.next_sequence())
            works, after = _graph(host, shape, world, stream)
            name, duration_ns = "cudaGraphLaunch", host.costs.host(15_000)
            host.add(Launch(name, duration_ns, tuple(works), after, is_graph=True))
            host.wait(COMPUTE_STREAM, stream)


def _graph(
    host: Writer, shape: Shape, world: Group, stream: int
) -> tuple[Sequence[Work], dict[int, int]]:
    """Return a graph of forward and backward, and which of its parts wait for which."""
    flop = 2 * shape.tokens * shape.weights
    works: list[Work] = []
    after: dict[int, int] = {}
    for _ in range(shape.layers):
        works += [host.product_work(flop), host.pointwise_work("Relu", shape.activations)]
    for _ in range(shape.layers):
        works.append(host.pointwise_work("Threshold", shape.activations))
        works += [host.product_work(flop), host.product_work(flop)]
        call, _seq = host.ledger.collective(host.rank, world, "allreduce", shape.weights)
        after[len(works)] = len(works) - 1
        works.append(host.comm_work(call, stream))
    return works, after


def checkpointed(
    host: Writer, shape: Shape, world: Group, *, stream: int = 20, num_kept: int = 0
) -> None:
    """Keep nothing inside a block (layer, product) and repeat its forward in backward.

    As ``torch.utils.checkpoint`` with ``use_reentrant=False`` does. The first ``num_kept``
    blocks are in no checkpoint.
    """
    warm_up(host)
    for number in range(shape.steps):
        with step(host, shape, number):
            saved = []
            for _ in range(shape.layers):
                layer = forward_layer(host, shape)
                saved.append((layer, host.next_sequence()))
                linear(host, shape, saved[-1][1])
            begin = loss(host, shape)
            with host.on_thread("autograd"):
                loss_backward(host, shape, begin)
                for place, (layer, last) in reversed(list(enumerate(saved))):
                    is_kept = place < num_kept
                    _backward_block(host, shape, layer, last, is_kept=is_kept)
                    host.collective(world, "allreduce", 2 * shape.weights, stream)
            host.wait(COMPUTE_STREAM, stream)


def _backward_block(
    host: Writer, shape: Shape, layer: Saved, last: int, *, is_kept: bool
) -> None:
    """Undo a block, after its forward was repeated for the first tensor that is missed.

    Forward stops as soon as all that was not kept is there again: of the last product only
    the call is recorded, for it was stopped before it worked.
    """
    with host.backward_of("Addmm", last):
        if not is_kept:
            linear(host, shape, host.next_sequence(), is_recompute=True)
            host.pointwise("aten::relu", "Relu", shape.activations, host.next_sequence())
            dims = (shape.hidden,), shape.activations, (shape.hidden, shape.hidden)
            host.stopped_product(*dims, sequence=host.next_sequence())
        gradients(host, shape)
    backward_layer(host, shape, layer)
