"""How jobs train whose layers have experts: each rank has one, and tokens go to theirs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tools.simulate_parts import Writer
from tools.simulate_program import COMPUTE_STREAM, Group
from tools.simulate_training import (
    Saved,
    Shape,
    backward_layer,
    forward_layer,
    loss,
    loss_backward,
    step,
    warm_up,
)

__all__ = ["expert_parallel"]

_EXPERT_STREAM, _DATA_STREAM = 20, 21
_MOST_TOKENS, _UNEVEN = 1.25, 0.15  # an expert has room for, gets more or less; of its share
_EXCHANGE = "_AllToAll"


@dataclass(frozen=True, slots=True)
class _Layer:
    """Of one layer: the shape that its expert worked on, and what its forward saved."""

    tokens: Shape
    dense: Saved
    dispatch: int
    expert: Saved
    combine: int


def expert_parallel(host: Writer, shape: Shape, experts: Group, world: Group) -> None:
    """Send tokens to experts and back in each layer, and reduce dense gradients at the end.

    As GShard does (Lepikhin et al., 2020, section 2.2), what is sent is padded to what experts
    have room for, and they work on what they got, which is as uneven as the router is.
    """
    warm_up(host)
    for number in range(shape.steps):
        with step(host, shape, number):
            layers = [_forward(host, shape, experts) for _ in range(shape.layers)]
            begin = loss(host, shape)
            with host.on_thread("autograd"):
                loss_backward(host, shape, begin)
                for layer in reversed(layers):
                    _backward(host, shape, experts, layer)
                nelems = shape.layers * shape.weights
                host.collective(world, "allreduce", nelems, _DATA_STREAM)
            host.wait(COMPUTE_STREAM, _DATA_STREAM)


def _forward(host: Writer, shape: Shape, experts: Group) -> _Layer:
    uneven = 1 + _UNEVEN * (2 * host.costs.random.random() - 1)
    tokens = replace(shape, tokens=round(shape.tokens * uneven))
    dense = forward_layer(host, shape)
    dispatch = _exchange_forward(host, shape, experts)
    expert = forward_layer(host, tokens)
    combine = _exchange_forward(host, shape, experts)
    return _Layer(tokens, dense, dispatch, expert, combine)


def _backward(host: Writer, shape: Shape, experts: Group, layer: _Layer) -> None:
    _exchange_backward(host, shape, experts, layer.combine)
    backward_layer(host, layer.tokens, layer.expert)
    _exchange_backward(host, shape, experts, layer.dispatch)
    backward_layer(host, shape, layer.dense)


def _exchange_forward(host: Writer, shape: Shape, experts: Group) -> int:
    """Send tokens to their experts, or back; return what its backward repeats."""
    sequence = host.next_sequence()
    with host.span(_EXCHANGE, args={"Sequence number": sequence, "Fwd thread id": 0}):
        _exchange(host, shape, experts)
    return sequence


def _exchange_backward(host: Writer, shape: Shape, experts: Group, sequence: int) -> None:
    with host.backward_by(f"{_EXCHANGE}Backward", sequence):
        _exchange(host, shape, experts)


def _exchange(host: Writer, shape: Shape, experts: Group) -> None:
    nelems = round(_MOST_TOKENS * shape.tokens) * shape.hidden
    host.collective(experts, "all_to_all", nelems, _EXPERT_STREAM)
    host.wait(COMPUTE_STREAM, _EXPERT_STREAM)
