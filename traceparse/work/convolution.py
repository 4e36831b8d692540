"""FLOP and bytes of convolutions, forward and backward.

Every output point multiplies and adds every tap of its group's filter, taps on padding
included, as implementations and ``torch.utils.flop_counter`` have it; a transposed one does
so for every input point. Positions are those of the schemas of PyTorch 2.13, which put stride
and padding in an order of their own for each backend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from traceparse.work.call import Call, Work
from traceparse.work.count import need, work_from
from traceparse.work.dtypes import counted_dtype, element_bytes, tensor_bytes

__all__ = ["CONVOLUTION"]

_RANKS = (3, 4, 5)  # a batch, channels, and one to three dimensions of space


class _Places(NamedTuple):
    """Where a schema has what; ``transposed`` is a flag, ``is_transposed`` holds of all calls.

    ``also_read`` are inputs besides data and filter: bias, or what is added.
    """

    stride: int
    padding: int
    dilation: int
    groups: int
    transposed: int | None = None
    is_transposed: bool = False
    output_padding: int | None = None
    also_read: tuple[int, ...] = ()

    def is_transposed_in(self, call: Call) -> bool:
        """Is this call transposed?"""
        return self.is_transposed if self.transposed is None else call.flag(self.transposed)


class _Shapes(NamedTuple):
    """A convolution, forward: ``[batch, channels, space...]`` in and out, and the filter."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    result: tuple[int, ...]
    is_transposed: bool

    @property
    def flop(self) -> int:
        """``2 * batch * points * taps``: the filter holds one group's input channels only."""
        points = self.data if self.is_transposed else self.result
        return 2 * points[0] * prod(points[2:]) * prod(self.weight)


def _result_channels(
    data: Sequence[int], weight: Sequence[int], groups: int, *, is_transposed: bool
) -> int:
    """Return the channels that come out; filters are ``[out, in / groups, ...]``.

    Those of transposed convolutions are ``[in, out / groups, ...]``.
    """
    need(len(data) == len(weight), "data and filter differ in dimensions")
    need(groups > 0 and weight[0] % groups == 0, "the filter does not divide into the groups")
    taken = weight[0] if is_transposed else weight[1] * groups
    need(data[1] == taken, "the filter does not fit the channels")
    return weight[1] * groups if is_transposed else weight[0]


class _Axis(NamedTuple):
    """What a convolution does along one dimension of space."""

    size: int
    taps: int
    stride: int
    padding: int
    dilation: int
    output_padding: int

    @property
    def result(self) -> int:
        """Source: ``conv_output_size`` in ATen/native/ConvUtils.h."""
        reach = self.dilation * (self.taps - 1) + 1
        return (self.size + 2 * self.padding - reach) // self.stride + 1

    @property
    def result_transposed(self) -> int:
        """Source: ``conv_input_size`` in ATen/native/ConvUtils.h."""
        reach = self.dilation * (self.taps - 1) + 1
        stretched = (self.size - 1) * self.stride - 2 * self.padding
        return stretched + reach + self.output_padding


def _space(
    call: Call,
    places: _Places,
    data: Sequence[int],
    weight: Sequence[int],
    *,
    is_transposed: bool,
) -> list[int]:
    """Return the sizes of the result in space."""
    count = len(data) - 2
    extra: tuple[int, ...] = (0,) * count
    if is_transposed:
        assert places.output_padding is not None
        extra = call.wholes(places.output_padding, count, least=0)
    rows = zip(
        data[2:],
        weight[2:],
        call.wholes(places.stride, count, least=1),
        call.wholes(places.padding, count, least=0),
        call.wholes(places.dilation, count, least=1),
        extra,
        strict=True,
    )
    axes = [_Axis(*row) for row in rows]
    sizes = [axis.result_transposed if is_transposed else axis.result for axis in axes]
    need(min(sizes) >= 0, "the filter does not fit the padded data")
    return sizes


def _forward(call: Call, *, places: _Places) -> Work:
    """Any convolution forward: data and filter are the first two inputs."""
    data, weight = call.shape(0, *_RANKS), call.shape(1, *_RANKS)
    is_transposed = places.is_transposed_in(call)
    groups = call.number(places.groups)
    channels = _result_channels(data, weight, groups, is_transposed=is_transposed)
    space = _space(call, places, data, weight, is_transposed=is_transposed)
    shapes = _Shapes(data, weight, (data[0], channels, *space), is_transposed)
    traffic = tensor_bytes(call, 0, 1, *places.also_read)
    traffic += prod(shapes.result) * element_bytes(call, 0)
    return work_from(shapes.flop, counted_dtype(call, 0, 1), traffic)


def _backward(call: Call) -> Work:
    """``convolution_backward``: each gradient asked for costs what the forward did.

    Every multiply of the forward occurs once in the gradient of the data and once in that of
    the filter, whatever the groups; the gradient of the bias only adds.
    """
    upstream, data, weight = (call.shape(position, *_RANKS) for position in range(3))
    is_transposed = call.flag(7)
    groups = call.number(9)
    asked = call.flags(10)
    need(len(asked) == 3, "argument 10 does not say which gradients")
    channels = _result_channels(data, weight, groups, is_transposed=is_transposed)
    need(len(upstream) == len(data), "data and gradient differ in dimensions")
    need(upstream[:2] == (data[0], channels), "the gradient does not fit the filter")
    of_data, of_weight, of_bias = asked
    traffic = tensor_bytes(call, 0)
    traffic += (of_data + of_weight) * tensor_bytes(call, 1, 2)  # read one, write the other
    traffic += of_bias * channels * element_bytes(call, 0)
    flop = (of_data + of_weight) * _Shapes(data, weight, upstream, is_transposed).flop
    return work_from(flop, counted_dtype(call, 0, 1, 2), traffic)


_GENERAL = _Places(3, 4, 5, 8, transposed=6, output_padding=7, also_read=(2,))
_NATIVE = _Places(stride=4, padding=3, dilation=5, groups=6, also_read=(2,))

CONVOLUTION: dict[str, Callable[[Call], Work]] = {
    name: partial(_forward, places=places)
    for name, places in {
        "aten::convolution": _GENERAL,
        "aten::_convolution": _GENERAL,
        "aten::convolution_overrideable": _GENERAL,
        "aten::cudnn_convolution": _Places(stride=3, padding=2, dilation=4, groups=5),
        "aten::cudnn_convolution_transpose": _Places(
            stride=4, padding=2, dilation=5, groups=6, is_transposed=True, output_padding=3
        ),
        "aten::cudnn_convolution_relu": _NATIVE._replace(stride=3, padding=4),
        "aten::cudnn_convolution_add_relu": _Places(5, 6, 7, 8, also_read=(2, 4)),
        "aten::miopen_convolution": _NATIVE,
        "aten::miopen_depthwise_convolution": _NATIVE,
        "aten::miopen_convolution_transpose": _Places(
            5, 3, 6, 7, is_transposed=True, output_padding=4, also_read=(2,)
        ),
        "aten::mkldnn_convolution": _NATIVE,
    }.items()
} | {"aten::convolution_backward": _backward}
