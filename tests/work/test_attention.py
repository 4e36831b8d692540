"""Attention by hand: every operator with its arguments where its schema has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.work.calls import FP8, T, count, reason
from traceparse.work import formulas

# GIVEN 2 batches of 6 heads, 3 of keys; 5 queries, 7 keys; depths 4 and 8
B, H, G, Q, K, D, V = 2, 6, 3, 5, 7, 4, 8
PAIR = 2 * H * (D + V)
PAIR_BACKWARD = 2 * H * (3 * D + 2 * V)
FULL, TOP_LEFT, BOTTOM_RIGHT = Q * K, 1 + 2 + 3 + 4 + 5, 3 + 4 + 5 + 6 + 7
INPUTS = 2 * (B * H * Q * D + B * G * K * (D + V))
OUTPUT, LSE = 2 * B * H * Q * V, 4 * B * H * Q

BHSD = T([B, H, Q, D]), T([B, G, K, D]), T([B, G, K, V])
BSHD = T([B, Q, H, D]), T([B, K, G, D]), T([B, K, G, V])
BHSD_OUT, BSHD_OUT = T([B, H, Q, V]), T([B, Q, H, V])
LSE_OF = T([B, H, Q], "float")
NO_LENGTHS = T([0], "int")
SEED = T([2], "long int")


def _sdpa_backward(*args):
    return (BHSD_OUT, *BHSD, *args)


def _flash_backward(causal, *window, lengths=(None, None)):
    head = (BSHD_OUT, *BSHD, BSHD_OUT, LSE_OF, *lengths, Q, K, 0.0)
    return (*head, causal, SEED, SEED, 0.5, *window)


#: arguments of each forward, by what ``is_causal`` is
FORWARD = {
    "aten::_scaled_dot_product_flash_attention": (
        lambda causal: (*BHSD, 0.0, causal, False, 0.5),
        BOTTOM_RIGHT,
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu": (
        lambda causal: (*BHSD, 0.0, causal, None, 0.5),
        TOP_LEFT,
    ),
    "aten::_scaled_dot_product_efficient_attention": (
        lambda causal: (*BHSD, None, True, 0.0, causal, 0.5),
        TOP_LEFT,
    ),
    "aten::_scaled_dot_product_cudnn_attention": (
        lambda causal: (*BHSD, None, True, 0.0, causal, False, 0.5),
        TOP_LEFT,
    ),
    "aten::_cudnn_attention_forward": (
        lambda causal: (*BHSD, None, None, None, Q, K, True, 0.0, causal, False, 0.5),
        TOP_LEFT,
    ),
    "aten::_scaled_dot_product_fused_attention_overrideable": (
        lambda causal: (*BHSD, None, 0.0, causal, False, 0.5),
        TOP_LEFT,
    ),
    "aten::_flash_attention_forward": (
        lambda causal: (*BSHD, None, None, Q, K, 0.0, causal, False, 0.5, None, None),
        BOTTOM_RIGHT,
    ),
    "flash_attn::_flash_attn_forward": (
        lambda causal: (*BSHD, 0.0, 0.5, causal, -1, -1, 0.0, None, False),
        BOTTOM_RIGHT,
    ),
}

BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": (
        lambda causal: _sdpa_backward(
            *(BHSD_OUT, LSE_OF, None, None, Q, K, 0.0, causal, SEED, SEED, 0.5)
        ),
        BOTTOM_RIGHT,
    ),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (
        lambda causal: _sdpa_backward(BHSD_OUT, LSE_OF, 0.0, causal, None, 0.5),
        TOP_LEFT,
    ),
    "aten::_scaled_dot_product_efficient_attention_backward": (
        lambda causal: _sdpa_backward(
            *(None, BHSD_OUT, LSE_OF, SEED, SEED, 0.0, [True, True, True, False], causal)
        ),
        TOP_LEFT,
    ),
    "aten::_scaled_dot_product_cudnn_attention_backward": (
        lambda causal: _sdpa_backward(
            *(BHSD_OUT, LSE_OF, SEED, SEED, None, None, None, Q, K, 0.0, causal, 0.5)
        ),
        TOP_LEFT,
    ),
    "aten::_cudnn_attention_backward": (
        lambda causal: _sdpa_backward(
            *(BHSD_OUT, LSE_OF, SEED, SEED, None, None, None, Q, K, 0.0, causal, 0.5)
        ),
        TOP_LEFT,
    ),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": (
        lambda causal: _sdpa_backward(
            *(None, [True] * 4, BHSD_OUT, LSE_OF, None, None, Q, K, 0.0, causal, SEED, SEED)
        ),
        TOP_LEFT,
    ),
    "aten::_flash_attention_backward": (_flash_backward, BOTTOM_RIGHT),
    "flash_attn::_flash_attn_backward": (
        lambda causal: (
            *(BSHD_OUT, *BSHD, BSHD_OUT, LSE_OF, *BSHD, 0.0, 0.5, causal, -1, -1, 0.0),
            *(None, False, SEED),
        ),
        BOTTOM_RIGHT,
    ),
}


@pytest.mark.parametrize("name", FORWARD)
def test_forward(name):
    args, causal_pairs = FORWARD[name]
    work = count(name, *args(False))
    assert work.flop == work.lowest_flop == work.highest_flop == B * FULL * PAIR
    assert (work.recompute_flop, work.dtype, work.conventions) == (0, "bf16", ())
    assert work.least_bytes == INPUTS + OUTPUT + LSE
    where = "causal=top-left" if causal_pairs == TOP_LEFT else "causal=bottom-right"
    causal = count(name, *args(True))
    assert (causal.flop, causal.conventions) == (B * causal_pairs * PAIR, (where,))
    assert causal.least_bytes == work.least_bytes


@pytest.mark.parametrize("name", BACKWARD)
def test_backward_multiplies_five_times_and_repeats_one_of_them(name):
    args, causal_pairs = BACKWARD[name]
    work = count(name, *args(False))
    assert work.flop == work.lowest_flop == work.highest_flop == B * FULL * PAIR_BACKWARD
    assert work.recompute_flop == B * FULL * 2 * H * D
    assert work.conventions == ("attn_bwd=2.5x",)
    assert work.flop - work.recompute_flop == 2 * B * FULL * PAIR  # what the model needs
    assert work.least_bytes == 2 * INPUTS + 2 * OUTPUT + LSE
    causal = count(name, *args(True))
    assert causal.flop == B * causal_pairs * PAIR_BACKWARD
    assert causal.recompute_flop == B * causal_pairs * 2 * H * D


def test_of_equal_depths_backward_is_two_and_a_half_forward():
    square = [T([2, 4, 6, 8])] * 3
    forward = count("aten::_scaled_dot_product_flash_attention", *square, 0.0, True, False)
    assert forward.flop == 2 * 2 * 4 * 21 * 16
    assert forward.conventions == ("causal=half",)
    rest = (square[0], T([2, 4, 6], "float"), None, None, 6, 6, 0.0, True, SEED, SEED)
    name = "aten::_scaled_dot_product_flash_attention_backward"
    work = count(name, square[0], *square, *rest)
    assert work.flop == 5 * forward.flop // 2
    assert work.recompute_flop == forward.flop // 2


@pytest.mark.parametrize(
    ("name", "place", "mask"),
    [
        ("aten::_scaled_dot_product_flash_attention_for_cpu", 5, T([Q, K])),
        ("aten::_scaled_dot_product_efficient_attention", 3, T([B, H, Q, K])),
        ("aten::_scaled_dot_product_cudnn_attention", 3, T([1, 1, Q, K], "bool")),
        ("aten::_cudnn_attention_forward", 3, T([B, H, Q, K])),
        ("aten::_scaled_dot_product_fused_attention_overrideable", 3, T([B, H, Q, K])),
        ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", 8, T([Q, K])),
        ("aten::_scaled_dot_product_efficient_attention_backward", 4, T([B, H, Q, K])),
        ("aten::_scaled_dot_product_cudnn_attention_backward", 8, T([B, H, Q, K])),
        ("aten::_cudnn_attention_backward", 8, T([B, H, Q, K])),
        ("aten::_scaled_dot_product_fused_attention_overrideable_backward", 4, T([Q, K])),
    ],
)
def test_an_explicit_mask_makes_it_an_upper_bound(name, place, mask):
    args = list((FORWARD | BACKWARD)[name][0](False))
    plain = count(name, *args)
    args[place] = mask
    work = count(name, *args)
    assert (work.lowest_flop, work.flop, work.highest_flop) == (0, plain.flop, plain.flop)
    assert work.conventions == (*plain.conventions, "mask=upper bound")
    assert work.least_bytes == plain.least_bytes


@pytest.mark.parametrize(
    "name", [name for name in FORWARD if "efficient" in name or "cudnn" in name]
)
def test_log_sum_exp_is_written_where_it_is_asked_for(name):
    args = list(FORWARD[name][0](False))
    args[args.index(True)] = False
    assert count(name, *args).least_bytes == INPUTS + OUTPUT


def test_quantized_overloads_have_scales_in_between():
    scale = T([B, G], "float")
    queries = [T(each.sizes, FP8) for each in BHSD]
    name = "aten::_scaled_dot_product_flash_attention"
    work = count(name, *queries, scale, scale, scale, 0.0, True, False, 0.5)
    assert (work.flop, work.dtype) == (B * BOTTOM_RIGHT * PAIR, "fp8")
    rest = (None, None, Q, K, 0.0, False, False, scale, scale, scale, 0.5, 2, 0, None, None)
    work = count("aten::_flash_attention_forward", *BSHD, *rest)
    assert work.flop == B * (Q * 3) * PAIR
    used = (*rest[:-2], T([B], "int"), None)
    told = "the lengths are in a tensor"
    assert reason("aten::_flash_attention_forward", *BSHD, *used) == told
    plain = (*rest[:7], 0.5, None, None, T([B], "int"), None)
    assert reason("aten::_flash_attention_forward", *BSHD, *plain) == told


@pytest.mark.parametrize(
    ("name", "args"),
    [
        (
            "aten::_flash_attention_forward",
            (*BSHD, None, None, Q, K, 0.0, False, False, 0.5, 2, 0, None, None),
        ),
        ("aten::_flash_attention_backward", _flash_backward(False, 2, 0)),
        ("aten::_flash_attention_backward", _flash_backward(True, 2, -1)),
        ("flash_attn::_flash_attn_forward", (*BSHD, 0.0, 0.5, True, 2, -1, 0.0, None, False)),
        (
            "flash_attn::_flash_attn_backward",
            (BSHD_OUT, *BSHD, BSHD_OUT, LSE_OF, *BSHD, 0.0, 0.5, False, 2, 0),
        ),
    ],
)
def test_a_window_of_flash_attention_ends_bottom_right(name, args):
    each = PAIR_BACKWARD if "backward" in name else PAIR
    assert count(name, *args).flop == B * 3 * Q * each


def _efficient(kind, window=None, *, bias=None):
    tail = (True, 0.5, None, window)
    return (*BSHD, bias, None, None, Q, K, 0.0, kind, *tail)


def _efficient_backward(kind, window=None):
    head = (BSHD_OUT, *BSHD, None, BSHD_OUT, None, None, Q, K, LSE_OF, 0.0, SEED, SEED)
    return (*head, kind, False, 0.5, None, window, False)


@pytest.mark.parametrize(
    ("kind", "window", "num_pairs"),
    [
        (0, None, FULL),
        (0, 0, FULL),
        (1, None, TOP_LEFT),
        (2, None, BOTTOM_RIGHT),
        (1, 2, 1 + 2 * 4),
        (2, 2, 2 * 5),
    ],
)
def test_the_efficient_kernel_says_which_mask(kind, window, num_pairs):
    work = count("aten::_efficient_attention_forward", *_efficient(kind, window))
    assert work.flop == B * num_pairs * PAIR
    assert work.least_bytes == INPUTS + OUTPUT + LSE
    work = count("aten::_efficient_attention_backward", *_efficient_backward(kind, window))
    assert work.flop == B * num_pairs * PAIR_BACKWARD
    assert work.recompute_flop == B * num_pairs * 2 * H * D


def test_masks_of_the_efficient_kernel_that_are_not_known():
    name = "aten::_efficient_attention_forward"
    assert reason(name, *_efficient(3)) == "mask type 3 is none that is known"
    assert reason(name, *_efficient(None)) == "argument 9 is not recorded"
    assert reason(name, *_efficient(0, 2)) == "a window without a causal mask"
    args = list(_efficient(0))
    args[12] = T([2], "int")
    assert reason(name, *args) == "the lengths are in a tensor"
    bounded = count(name, *_efficient(0, bias=T([B, H, Q, K])))
    assert bounded.lowest_flop == 0


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [
        (0, T([B, H, Q]), "input 0 has 3 dimensions instead of 4"),
        (0, T([B, 5, Q, D]), "the heads do not divide among the keys"),
        (0, T([3, H, Q, D]), "queries and keys do not fit each other"),
        (0, T([B, H, Q, 5]), "queries and keys do not fit each other"),
        (1, None, "input 1 has no shape"),
        (2, T([B, G, 9, V]), "keys and values differ"),
        (4, None, "argument 4 is no flag"),
    ],
)
def test_what_does_not_fit(place, value, told):
    args = [*BHSD, 0.0, False, False, 0.5]
    args[place] = value
    assert reason("aten::_scaled_dot_product_flash_attention", *args) == told


def test_no_heads_of_keys():
    args = (BHSD[0], T([B, 0, K, D]), T([B, 0, K, V]), 0.0, False, False)
    told = "the heads do not divide among the keys"
    assert reason("aten::_scaled_dot_product_flash_attention", *args) == told


def test_empty_cumulative_lengths_are_none():
    dense = count("aten::_flash_attention_backward", *_flash_backward(False))
    args = _flash_backward(False, lengths=(NO_LENGTHS, NO_LENGTHS))
    assert count("aten::_flash_attention_backward", *args) == dense


def test_both_names_of_the_package():
    for name, formula in formulas().items():
        if name.startswith("flash_attn::"):
            other = formulas()[name.replace("flash_attn::", "flashattn::")]
            assert other.keywords == formula.keywords  # type: ignore[attr-defined]


@given(st.integers(0, 9), st.integers(0, 9), st.none() | st.integers(-1, 9), st.integers(-1, 9))
def test_windows_one_by_one(queries, keys, left, right):
    shapes = T([1, queries, 1, 4]), T([1, keys, 1, 4]), T([1, keys, 1, 4])
    args = (*shapes, 0.0, 0.5, False, left, right)
    seen = 0
    for query in range(queries):
        for key in range(keys):
            behind = query + keys - queries - key
            near = left is None or left < 0 or behind <= left
            seen += near and (right < 0 or -behind <= right)
    assert count("flash_attn::_flash_attn_forward", *args).flop == seen * 2 * 8
