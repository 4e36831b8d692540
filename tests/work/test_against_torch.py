"""``torch.utils.flop_counter`` where it is right, and a test of each place where it is not.

It counts what is called, on real tensors or on meta tensors; we count what the profiler would
have recorded of the same call.
"""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from tests.work.calls import T, count, record
from traceparse.work import work_of

aten = torch.ops.aten


def empty(*sizes, dtype=torch.bfloat16):
    return torch.empty(sizes, dtype=dtype, device="meta")


def counted_by_torch(operator, *args) -> int:
    with FlopCounterMode(display=False) as counter:
        operator(*args)
    return int(counter.get_total_flops())


def counted_by_us(operator, *args):
    recorded = [T(list(arg.shape)) if isinstance(arg, torch.Tensor) else arg for arg in args]
    return count(operator._schema.name, *recorded)


PRODUCTS = [
    (aten.mm.default, empty(3, 5), empty(5, 7)),
    (aten.addmm.default, empty(7), empty(3, 5), empty(5, 7)),
    (aten.bmm.default, empty(4, 3, 5), empty(4, 5, 7)),
    (aten.baddbmm.default, empty(4, 3, 7), empty(4, 3, 5), empty(4, 5, 7)),
]


@pytest.mark.parametrize("case", PRODUCTS, ids=lambda case: case[0]._schema.name)
def test_products(case):
    assert counted_by_us(*case).flop == counted_by_torch(*case)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("num", [1, 2, 3])
def test_convolutions(num, groups, transposed):
    ins, outs = 4, 6
    filters = (ins, outs // groups) if transposed else (outs, ins // groups)
    case = (
        *(aten.convolution.default, empty(2, ins, *(9, 8, 7)[:num])),
        *(empty(*filters, *(3, 2, 2)[:num]), None, [2] * num, [1] * num, [1] * num),
        *(transposed, [1 if transposed else 0] * num, groups),
    )
    assert counted_by_us(*case).flop == counted_by_torch(*case)
    operator, *args = case
    ours = counted_by_us(*case)
    traffic = 2 * (args[0].numel() + args[1].numel() + operator(*args).numel())
    assert ours.least_bytes == traffic  # so the sizes of the result are torch's


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    "mask", [[True, True, False], [True, False, False], [False, True, True]]
)
def test_backward_without_groups(transposed, mask):
    data, weight = empty(2, 4, 9, 8), empty(4, 4, 3, 2)
    args = (weight, None, [2, 1], [1, 0], [1, 1], transposed, [0, 0], 1)
    upstream = aten.convolution.default(data, *args)
    case = (
        *(aten.convolution_backward.default, upstream, data, weight, [4]),
        *([2, 1], [1, 0], [1, 1], transposed, [0, 0], 1, mask),
    )
    assert counted_by_us(*case).flop == counted_by_torch(*case)


FLASH = aten._scaled_dot_product_flash_attention.default
EFFICIENT = aten._scaled_dot_product_efficient_attention.default


@pytest.mark.parametrize("heads", [6, 2])
def test_attention(heads):
    query, key = empty(2, 6, 16, 8), empty(2, heads, 24, 8)
    case = (FLASH, query, key, key, 0.0, False, False)
    assert counted_by_us(*case).flop == counted_by_torch(*case)


def test_attention_of_the_efficient_kernel():
    query, key = empty(2, 6, 16, 8), empty(2, 6, 24, 8)
    case = (EFFICIENT, query, key, key, None, True, 0.0, False)
    assert counted_by_us(*case).flop == counted_by_torch(*case)


def test_attention_backward():
    query, key = empty(2, 6, 16, 8), empty(2, 6, 24, 8)
    case = (
        *(aten._scaled_dot_product_flash_attention_backward.default, query, query, key, key),
        *(query, empty(2, 6, 16, dtype=torch.float32), None, None, 16, 24, 0.0, False),
        *(empty(2), empty(2)),
    )
    assert counted_by_us(*case).flop == counted_by_torch(*case)


# Where it is wrong: each of these fails on the day that torch mends it.


def test_torch_counts_a_weight_gradient_once_for_each_group():
    data, weight, upstream = empty(1, 8, 6, 6), empty(8, 2, 3, 3), empty(1, 8, 4, 4)

    def case(mask):
        return (
            *(aten.convolution_backward.default, upstream, data, weight, None),
            *([1, 1], [0, 0], [1, 1], False, [0, 0], 4, mask),
        )

    forward = 2 * 16 * weight.numel()
    of_data, of_weight = case([True, False, False]), case([False, True, False])
    assert counted_by_torch(*of_data) == counted_by_us(*of_data).flop == forward
    assert counted_by_us(*of_weight).flop == forward
    assert counted_by_torch(*of_weight) == 4 * forward


def test_torch_reads_the_benchmark_flag_of_cudnn_as_transposed():
    shapes = [2, 4, 9, 9], [4, 4, 3, 3]
    rest = ([0, 0], [2, 2], [1, 1], 1, True, False, True)  # benchmark is the first flag

    def theirs(*args):
        return flop_registry[aten.cudnn_convolution](*args, out_val=empty(2, 4, 4, 4))

    right = counted_by_us(
        aten.cudnn_convolution.default, *(empty(*sizes) for sizes in shapes), *rest
    )
    assert theirs(*shapes, *rest[:4], False, False, True) == right.flop == 2 * 2 * 16 * 144
    assert theirs(*shapes, *rest) == 2 * 2 * 81 * 144


def test_torch_does_not_see_a_causal_mask():
    query = empty(2, 6, 16, 8)
    full, causal = ((FLASH, query, query, query, 0.0, mask, False) for mask in (False, True))
    assert counted_by_torch(*causal) == counted_by_torch(*full)
    ours = counted_by_us(*causal).flop
    assert ours is not None
    assert ours * 32 == counted_by_torch(*full) * 17  # 16 * 17 / 2 of 16 * 16 pairs


def test_torch_counts_no_attention_on_the_cpu():
    query = torch.ones(1, 2, 4, 8)
    attend = torch.nn.functional.scaled_dot_product_attention
    assert counted_by_torch(attend, query, query, query) == 0
    name = "aten::_scaled_dot_product_flash_attention_for_cpu"
    assert count(name, *[T([1, 2, 4, 8])] * 3, 0.0, False, None, None).flop == 2 * 2 * 16 * 16


def test_torch_counts_packed_fp4_at_half_its_depth():
    theirs = flop_registry[aten._scaled_mm]([16, 32], [32, 8], [1], [1], out_val=empty(16, 8))
    kind = "c10::Float4_e2m1fn_x2"
    tensors = T([16, 32], kind), T([32, 8], kind), T([4], "c10::Float8_e4m3fn")
    ours = count("aten::_scaled_mm", *tensors, tensors[2], None, None, 15, "False")
    assert ours.flop == 2 * theirs


@pytest.mark.parametrize(
    "name",
    [
        *("_scaled_mm_v2", "_grouped_mm", "_scaled_grouped_mm", "_scaled_grouped_mm_v2"),
        *("_int_mm", "_addmm_activation", "addbmm", "miopen_convolution"),
        *("mkldnn_convolution", "_scaled_dot_product_fused_attention_overrideable"),
    ],
)
def test_torch_has_no_formula_for(name):
    assert getattr(aten, name) not in flop_registry
    assert work_of(record(f"aten::{name}")) is not None


def test_what_torch_counts_we_count():
    names = {
        str(packet).replace(".", "::") for packet in flop_registry if "aten" in str(packet)
    }
    assert {name for name in names if work_of(record(name)) is None} == {
        "aten::_slow_conv2d_forward"  # whose parent, aten::_convolution, is counted
    }


# Which way a causal mask lies, by what the kernel computes.


def test_causal_of_the_cpu_kernel_is_top_left():
    queries, keys = torch.zeros(1, 1, 3, 5), torch.zeros(1, 1, 5, 5)
    values = torch.eye(5).reshape(1, 1, 5, 5)
    seen, _ = aten._scaled_dot_product_flash_attention_for_cpu(
        queries, keys, values, is_causal=True
    )
    assert (seen != 0).sum(-1).flatten().tolist() == [1, 2, 3]
    name = "aten::_scaled_dot_product_flash_attention_for_cpu"
    args = (T([1, 1, 3, 5]), T([1, 1, 5, 5]), T([1, 1, 5, 5]), 0.0, True, None, None)
    assert count(name, *args).flop == 2 * 10 * (1 + 2 + 3)
