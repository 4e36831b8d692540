"""Where does each attention operator have what?

One entry an operator; positions are those of its schema (see :mod:`traceparse.work.attention`
for the versions read).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from traceparse.work.call import Call
from traceparse.work.count import need
from traceparse.work.pairs import Span

__all__ = ["KERNELS", "Kernel", "Layout", "is_varlen", "span_of"]


class Layout(Enum):
    """The order of dimensions: heads before the sequence, or after it."""

    BHSD = "batch, heads, sequence, depth"
    BSHD = "batch, sequence, heads, depth"


class Kernel(NamedTuple):
    """Positions of one operator's arguments; ``None`` for what it does not have.

    ``query`` is followed by keys and values, ``cumulative`` and ``longest`` hold queries' and
    then keys', ``window`` left and then right. ``causal`` is a flag, ``mask_type`` that of the
    efficient kernel: 0 none, 1 top-left, 2 bottom-right, with one ``window_size``. Calls that
    have one of ``lengths`` given reach into memory that the shapes do not tell.
    """

    query: int
    layout: Layout
    is_backward: bool = False
    causal: int | None = None
    is_bottom_right: bool = False
    mask: int | None = None
    mask_type: int | None = None
    window: int | None = None
    window_size: int | None = None
    cumulative: int | None = None
    longest: int | None = None
    needs_cumulative: bool = False
    keeps_lse: int | None = None
    lengths: tuple[int, ...] = ()
    quantized: Callable[[Kernel, Call], Kernel] | None = None

    @property
    def output_like(self) -> int:
        """The input whose elements the output has: dO in backward, else the queries."""
        return 0 if self.is_backward else self.query

    def has_lse(self, call: Call) -> bool:
        """Is log-sum-exp written or read? Some kernels keep it on request only."""
        return self.keeps_lse is None or call.flag(self.keeps_lse)

    def of(self, call: Call) -> Kernel:
        """Return the positions of the overload that this call is of."""
        return self if self.quantized is None else self.quantized(self, call)


def is_varlen(call: Call, kernel: Kernel) -> bool:
    """Are sequences packed one after another? Dense calls have no cumulative lengths.

    Raises
    ------
    NotKnownError
        The lengths lie in tensors whose contents no trace records.
    """
    need(not any(map(call.is_given, kernel.lengths)), "the lengths are in a tensor")
    if kernel.cumulative is None:
        return False
    is_packed = call.is_given(kernel.cumulative) and call.shape(kernel.cumulative) != (0,)
    need(is_packed or not kernel.needs_cumulative, "no cumulative lengths are recorded")
    return is_packed


def span_of(call: Call, kernel: Kernel) -> Span:
    """Read how far each query sees.

    Raises
    ------
    NotKnownError
        The arguments that say it are not recorded, or are none of those known.
    """
    if kernel.mask_type is not None:
        return _efficient_span(call, kernel.mask_type, kernel.window_size)
    assert kernel.causal is not None
    left = right = None
    if kernel.window is not None:
        left, right = (_window(call.whole(kernel.window + i)) for i in range(2))
    if call.flag(kernel.causal):
        right = 0
    return Span(left, right, kernel.is_bottom_right)


def _window(size: int | None) -> int | None:
    """Return a window's reach; flash attention writes -1 for one without end."""
    return None if size is None or size < 0 else size


def _efficient_span(call: Call, mask_type: int, window_size: int | None) -> Span:
    """Read the efficient kernel's mask; its window counts the query's own key."""
    kind = call.number(mask_type)
    need(kind in {0, 1, 2}, f"mask type {kind} is none that is known")
    size = None if window_size is None else call.whole(window_size)
    if not kind:
        need(not size, "a window without a causal mask")
        return Span()
    return Span(size - 1 if size and size > 0 else None, 0, kind == 2)


def _quantized_sdpa(kernel: Kernel, call: Call) -> Kernel:
    """``_scaled_dot_product_flash_attention.quantized`` has three scales after the values."""
    return kernel._replace(causal=7) if call.num_inputs >= 10 else kernel


def _quantized_flash(kernel: Kernel, call: Call) -> Kernel:
    """``_flash_attention_forward.quantized`` has three scales before the softmax scale."""
    if call.num_inputs < 18:
        return kernel
    return kernel._replace(window=14, lengths=(16,))


_SDPA = Kernel(0, Layout.BHSD, causal=4)
_SDPA_BACKWARD = Kernel(1, Layout.BHSD, is_backward=True, causal=11)
_FLASH = Kernel(
    0,
    Layout.BSHD,
    causal=8,
    is_bottom_right=True,
    window=11,
    cumulative=3,
    longest=5,
    lengths=(13, 15),
    quantized=_quantized_flash,
)
_FLASH_BACKWARD = Kernel(
    1,
    Layout.BSHD,
    is_backward=True,
    causal=11,
    is_bottom_right=True,
    window=15,
    cumulative=6,
    longest=8,
)
_PACKAGE = Kernel(0, Layout.BSHD, causal=5, is_bottom_right=True, window=6)
_PACKAGE_BACKWARD = _PACKAGE._replace(query=1, is_backward=True, causal=11, window=12)
_PACKAGE_VARLEN = _PACKAGE._replace(
    causal=9, window=10, cumulative=3, longest=5, needs_cumulative=True, lengths=(15, 16, 17)
)
_PACKAGE_VARLEN_BACKWARD = _PACKAGE_BACKWARD._replace(
    causal=15, window=16, cumulative=9, longest=11, needs_cumulative=True
)

KERNELS = {
    "aten::_scaled_dot_product_flash_attention": _SDPA._replace(
        is_bottom_right=True, quantized=_quantized_sdpa
    ),
    "aten::_scaled_dot_product_flash_attention_backward": _SDPA_BACKWARD._replace(
        is_bottom_right=True
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu": _SDPA._replace(mask=5),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _SDPA_BACKWARD._replace(
        causal=7, mask=8
    ),
    "aten::_scaled_dot_product_efficient_attention": _SDPA._replace(
        causal=6, mask=3, keeps_lse=4
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": _SDPA_BACKWARD._replace(mask=4),
    "aten::_scaled_dot_product_cudnn_attention": _SDPA._replace(causal=6, mask=3, keeps_lse=4),
    "aten::_scaled_dot_product_cudnn_attention_backward": _SDPA_BACKWARD._replace(
        causal=14, mask=8
    ),
    "aten::_cudnn_attention_forward": _SDPA._replace(
        causal=10, mask=3, keeps_lse=8, cumulative=4, longest=6
    ),
    "aten::_cudnn_attention_backward": _SDPA_BACKWARD._replace(
        causal=14, mask=8, cumulative=9, longest=11
    ),
    "aten::_scaled_dot_product_fused_attention_overrideable": _SDPA._replace(causal=5, mask=3),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _SDPA_BACKWARD._replace(
        causal=13, mask=4
    ),
    "aten::_flash_attention_forward": _FLASH,
    "aten::_flash_attention_backward": _FLASH_BACKWARD,
    "aten::_efficient_attention_forward": Kernel(
        0,
        Layout.BSHD,
        mask=3,
        mask_type=9,
        window_size=13,
        cumulative=4,
        longest=6,
        keeps_lse=10,
        lengths=(12,),
    ),
    "aten::_efficient_attention_backward": Kernel(
        1,
        Layout.BSHD,
        is_backward=True,
        mask=4,
        mask_type=14,
        window_size=18,
        cumulative=6,
        longest=8,
    ),
    **{
        f"{package}::{name}": kernel
        for package in ("flash_attn", "flashattn")  # the releases' name, and some builds'
        for name, kernel in {
            "_flash_attn_forward": _PACKAGE,
            "_flash_attn_backward": _PACKAGE_BACKWARD,
            "_flash_attn_varlen_forward": _PACKAGE_VARLEN,
            "_flash_attn_varlen_backward": _PACKAGE_VARLEN_BACKWARD,
        }.items()
    },
}
