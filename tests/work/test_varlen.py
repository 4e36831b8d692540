"""Attention of sequences packed one after another, whose lengths no trace records."""

from __future__ import annotations

import pytest

from tests.work.calls import T, count, reason
from tests.work.test_attention import (
    BACKWARD,
    FORWARD,
    PAIR,
    PAIR_BACKWARD,
    SEED,
    D,
    G,
    H,
    V,
)
from traceparse.work import formulas

# GIVEN 9 rows in 3 sequences, 5 at most: 27 to 41 pairs, 18 to 25 under a causal mask
PACKED = T([9, H, D]), T([9, G, D]), T([9, G, V])
PACKED_OUT, PACKED_LSE = T([9, H, V]), T([H, 9], "float")
LENGTHS = T([4], "int"), T([4], "int")

VARLEN = {
    "aten::_flash_attention_forward": lambda causal: (
        *(*PACKED, *LENGTHS, 5, 5, 0.0, causal, False, 0.5, None, None),
    ),
    "aten::_flash_attention_backward": lambda causal: (
        *(PACKED_OUT, *PACKED, PACKED_OUT, PACKED_LSE, *LENGTHS, 5, 5, 0.0, causal),
        *(SEED, SEED, 0.5),
    ),
    "aten::_efficient_attention_forward": lambda causal: (
        *(T([1, *each.sizes]) for each in PACKED),
        *(None, *LENGTHS, 5, 5, 0.0, 2 * causal, True, 0.5, None, None),
    ),
    "aten::_efficient_attention_backward": lambda causal: (
        *(T([1, *each.sizes]) for each in (PACKED_OUT, *PACKED)),
        *(None, T([1, 9, H, V]), *LENGTHS, 5, 5, PACKED_LSE, 0.0, SEED, SEED, 2 * causal),
    ),
    "aten::_cudnn_attention_forward": lambda causal: (
        *(*PACKED, None, *LENGTHS, 5, 5, True, 0.0, causal, False, 0.5),
    ),
    "aten::_cudnn_attention_backward": lambda causal: (
        *(PACKED_OUT, *PACKED, PACKED_OUT, PACKED_LSE, SEED, SEED, None, *LENGTHS, 5, 5, 0.0),
        *(causal, 0.5),
    ),
    "flash_attn::_flash_attn_varlen_forward": lambda causal: (
        *(*PACKED, *LENGTHS, 5, 5, 0.0, 0.5, causal, -1, -1, 0.0, None, False, None),
    ),
    "flash_attn::_flash_attn_varlen_backward": lambda causal: (
        *(PACKED_OUT, *PACKED, PACKED_OUT, PACKED_LSE, *PACKED, *LENGTHS, 5, 5, 0.0, 0.5),
        *(causal, -1, -1, 0.0, None, False),
    ),
}


@pytest.mark.parametrize("name", VARLEN)
def test_varlen_is_an_interval(name):
    backward = "backward" in name
    each = PAIR_BACKWARD if backward else PAIR
    work = count(name, *VARLEN[name](False))
    assert (work.lowest_flop, work.flop, work.highest_flop) == (27 * each, 27 * each, 41 * each)
    said = ("varlen=self", "varlen=equal lengths")
    assert work.conventions == (("attn_bwd=2.5x", *said) if backward else said)
    assert work.recompute_flop == (27 * 2 * H * D if backward else 0)
    inputs, output, lse = 2 * 9 * (H * D + G * (D + V)), 2 * 9 * H * V, 4 * 9 * H
    wanted = 2 * inputs + 2 * output + lse if backward else inputs + output + lse
    assert work.least_bytes == wanted
    causal = count(name, *VARLEN[name](True))
    assert (causal.flop, causal.highest_flop) == (18 * each, 25 * each)
    assert causal.conventions[-2:] == said


def _varlen(queries, keys, longest, *, num=(4, 4), causal=False):
    lengths = [T([n], "int") for n in num]
    shapes = T([queries, H, D]), T([keys, G, D]), T([keys, G, V])
    return (*shapes, *lengths, *longest, 0.0, 0.5, causal, -1, -1, 0.0, None, False)


def test_varlen_of_the_longest_only_is_exact():
    name = "flash_attn::_flash_attn_varlen_forward"
    work = count(name, *_varlen(15, 15, (5, 5)))
    assert work.lowest_flop == work.flop == work.highest_flop == 3 * 25 * PAIR
    assert work.conventions == ()


def test_varlen_of_nothing():
    name = "flash_attn::_flash_attn_varlen_forward"
    for longest, num in (((0, 0), (1, 1)), ((0, 0), (4, 4)), ((5, 5), (4, 4))):
        work = count(name, *_varlen(0, 0, longest, num=num))
        assert work.lowest_flop == work.flop == work.highest_flop == 0


def test_varlen_decoding_is_exact():
    name = "flash_attn::_flash_attn_varlen_forward"
    work = count(name, *_varlen(3, 21, (1, 9), causal=True))
    assert work.lowest_flop == work.flop == work.highest_flop == 21 * PAIR
    assert work.conventions == ("causal=bottom-right",)


def test_varlen_of_other_keys():
    # GIVEN 6 queries and 9 keys in 3 sequences, 3 and 5 at most
    name = "flash_attn::_flash_attn_varlen_forward"
    work = count(name, *_varlen(6, 9, (3, 5)))
    assert (work.flop, work.highest_flop) == (3 * (2 * 3) * PAIR, 3 * 9 * PAIR)
    assert work.lowest_flop == (3 * 9 + 5 * 6 - 3 * 3 * 5) * PAIR
    assert work.conventions == ("varlen=equal lengths",)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (_varlen(9, 9, (5, 5), num=(4, 5)), "not as many sequences of queries as of keys"),
        (_varlen(16, 16, (5, 5)), "the sequences are longer than the longest"),
        (_varlen(9, 9, (-5, -5)), "lengths below zero"),
        (_varlen(9, 9, (None, 5)), "argument 5 is not recorded"),
        (_varlen(9, 9, (5, 5), num=(0, 0)), "no cumulative lengths are recorded"),
        ((*_varlen(9, 9, (5, 5)), T([3, 2], "int")), "the lengths are in a tensor"),
    ],
)
def test_varlen_that_cannot_be_counted(args, told):
    assert reason("flash_attn::_flash_attn_varlen_forward", *args) == told


def test_packed_sequences_have_no_batch():
    args = list(VARLEN["aten::_efficient_attention_forward"](False))
    args[:3] = [T([2, *each.sizes]) for each in PACKED]
    told = "packed sequences have a batch"
    assert reason("aten::_efficient_attention_forward", *args) == told


def test_every_attention_is_tested():
    tested = {*FORWARD, *BACKWARD, *VARLEN}
    efficient = {name for name in formulas() if "::_efficient" in name}
    wanted = {name for name in formulas() if "attention" in name or "flash_attn::" in name}
    assert tested | efficient == wanted
