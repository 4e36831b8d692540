"""How jobs train that cut the network: layers across stages, each layer across neighbors."""

from __future__ import annotations

from dataclasses import dataclass

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

__all__ = ["Place", "pipelined"]

_TENSOR_STREAM, _DATA_STREAM = 20, 21
_MESSAGE_STREAM = 30  # and one more for each neighbor


@dataclass(frozen=True, slots=True)
class Place:
    """Where a rank is: the groups it shares its layers, its stages and its copies with."""

    tensor: Group | None
    stages: Group
    data: Group | None


def pipelined(host: Writer, shape: Shape, place: Place, micro_batches: int) -> None:
    """Send micro-batches forward through all stages, then backward, as GPipe does."""
    warm_up(host)
    for number in range(shape.steps):
        with step(host, shape, number):
            saved = [_forward(host, shape, place) for _ in range(micro_batches)]
            for layers, begin in reversed(saved):
                _backward(host, shape, place, layers, begin)
            if place.data is not None:
                nelems = shape.layers * shape.weights
                host.collective(place.data, "allreduce", nelems, _DATA_STREAM)
                host.wait(COMPUTE_STREAM, _DATA_STREAM)


def _forward(host: Writer, shape: Shape, place: Place) -> tuple[list[Saved], int]:
    """Let one micro-batch through this stage."""
    _receive(host, shape, place, -1)
    saved = []
    for _ in range(shape.layers):
        saved.append(forward_layer(host, shape))
        _reduce(host, shape, place)
    _send(host, shape, place, +1)
    is_last = place.stages.ranks[-1] == host.rank
    return saved, loss(host, shape) if is_last else 0


def _backward(host: Writer, shape: Shape, place: Place, saved: list[Saved], begin: int) -> None:
    """Let the gradient of one micro-batch through this stage."""
    _receive(host, shape, place, +1)
    with host.on_thread("autograd"):
        if begin:
            loss_backward(host, shape, begin)
        for layer in reversed(saved):
            backward_layer(host, shape, layer)
            _reduce(host, shape, place)
    _send(host, shape, place, -1)


def _reduce(host: Writer, shape: Shape, place: Place) -> None:
    """Add up the parts of a layer; computing cannot go on before that."""
    if place.tensor is not None:
        nelems = shape.tokens * shape.hidden
        host.collective(place.tensor, "allreduce", nelems, _TENSOR_STREAM)
        host.wait(COMPUTE_STREAM, _TENSOR_STREAM)


def _neighbor(host: Writer, place: Place, to: int) -> int | None:
    stage = place.stages.ranks.index(host.rank) + to
    return place.stages.ranks[stage] if 0 <= stage < len(place.stages.ranks) else None


def _receive(host: Writer, shape: Shape, place: Place, to: int) -> None:
    other = _neighbor(host, place, to)
    if other is not None:
        nelems = shape.tokens * shape.hidden
        stream = _MESSAGE_STREAM + (to > 0)
        host.message(place.stages, (other, host.rank), nelems, stream)
        host.wait(COMPUTE_STREAM, stream)


def _send(host: Writer, shape: Shape, place: Place, to: int) -> None:
    other = _neighbor(host, place, to)
    if other is not None:
        nelems = shape.tokens * shape.hidden
        stream = _MESSAGE_STREAM + (to > 0)
        host.message(place.stages, (host.rank, other), nelems, stream)
