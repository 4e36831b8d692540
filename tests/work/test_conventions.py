# ruff: noqa: E501 - messages are what is tested

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.work import configs
from traceparse.errors import UsageError
from traceparse.work.conventions import (
    CONVENTIONS,
    RECOMPUTE,
    counts_of,
    default_convention,
    doubts,
    flop_per_token,
    hardware_flop_per_token,
)
from traceparse.work.model import Model
from traceparse.work.model_file import load_model
from traceparse.work.parameters import derive


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    def loaded(config):
        path = tmp_path_factory.mktemp("model") / "config.json"
        path.write_text(json.dumps(config))
        return load_model(path)

    return loaded


# Worked out by hand from each formula, as its source writes it
@pytest.mark.parametrize(
    ("convention", "recompute", "flop"),
    [
        ("6nd", "none", 6 * 1_000),
        ("palm-noattn", "none", 6 * 1_000),
        ("6nd", "full", 8 * 1_000),
        ("palm", "none", 6_000 + 12 * 2 * 3 * 4 * 5),
        ("palm", "full", 8_000 + 16 * 2 * 3 * 4 * 5),
        ("nanogpt", "none", 6 * (1_000 - 30) + 12 * 2 * 3 * 4 * 5),
        ("megatron", "none", 72 * 2 * 144 + 12 * 2 * 12 * 5 + 6 * 12 * 7),
        ("megatron", "selective", 72 * 2 * 144 + 24 * 2 * 12 * 5 + 6 * 12 * 7),
        ("megatron", "full", 96 * 2 * 144 + 16 * 2 * 12 * 5 + 6 * 12 * 7),
        ("megatron-causal", "none", 72 * 2 * 144 + 6 * 2 * 12 * 5 + 6 * 12 * 7),
        ("llm-foundry", "none", 3 * (2_000 + 4 * 2 * 12 * 5)),
        ("llm-foundry", "full", 4 * (2_000 + 4 * 2 * 12 * 5)),
    ],
)
def test_formulas_by_hand(convention, recompute, flop):
    model = Model(
        layers=2, heads=3, head_dim=4, hidden=12, vocab=7, params=1_000, position_params=30
    )
    assert hardware_flop_per_token(model, convention, 5, recompute) == flop
    if recompute == "none":
        assert flop_per_token(model, convention, 5) == flop


def test_embeddings_are_left_out_where_the_convention_or_the_user_says_so(load):
    llama = load(configs.LLAMA3_8B)
    attention = 12 * 32 * 32 * 128 * 8192
    palm = flop_per_token(llama, "palm", 8192)
    assert palm == 6 * 8_030_261_248 + attention
    assert flop_per_token(llama, "torchtitan", 8192) == palm - 6 * 128256 * 4096
    assert flop_per_token(llama, "6nd") == 6 * 8_030_261_248  # derived, not given
    given = Model(params=1_000, embedding_params=100)
    assert flop_per_token(given, "6nd") == 6 * 900
    assert hardware_flop_per_token(given, "6nd", recompute="full") == 8 * 900
    assert "embed=in" in counts_of(llama, "6nd")
    assert "embed=out" in counts_of(given, "palm-noattn")


def test_a_tied_embedding_multiplies_as_the_head_and_stays_in(load):
    model = load(configs.LLAMA32_1B)
    assert flop_per_token(model, "torchtitan", 8) == flop_per_token(model, "palm", 8)


def test_nanogpt_leaves_out_positions_and_not_words(load):
    model = load(configs.GPT2)
    attention = 12 * 12 * 768 * 1024
    expected = 6 * (124_439_808 - 1024 * 768) + attention
    assert flop_per_token(model, "nanogpt", 1024) == expected
    assert flop_per_token(load(configs.LLAMA3_8B), "nanogpt", 9) == flop_per_token(
        load(configs.LLAMA3_8B), "palm", 9
    )


def test_of_experts_only_those_count_that_a_token_meets(load):
    model = load(configs.MIXTRAL_8X7B)
    attention = 12 * 32 * 32 * 128 * 4096
    assert flop_per_token(model, "6nd") == 6 * 12_879_925_248
    assert flop_per_token(model, "palm", 4096) == 6 * 12_879_925_248 + attention
    assert flop_per_token(model, "torchtitan", 4096) == (
        6 * (12_879_925_248 - 32000 * 4096) + attention
    )


def test_queries_and_values_of_latent_attention_differ(load):
    model = load(configs.DEEPSEEK_V3)
    core = flop_per_token(model, "palm", 4096) - flop_per_token(model, "6nd")
    assert core == 6 * 61 * 128 * (192 + 128) * 4096


@given(st.integers(1, 200), st.integers(1, 50), st.integers(1, 300), st.integers(1, 10_000))
def test_megatron_core_of_a_gpt_is_megatron_causal(layers, heads, vocab, seq):
    """The exact count, of the layers that the closed formula is made for."""
    hidden = 8 * heads
    model = derive(
        Model(
            layers=layers,
            hidden=hidden,
            heads=heads,
            ffn=4 * hidden,
            vocab=vocab,
            gated_mlp=False,
        )
    )
    exact = flop_per_token(model, "megatron-core", seq)
    assert exact == flop_per_token(model, "megatron-causal", seq)
    assert doubts(model, "megatron-causal") == ()


def _products(*matrices):
    """Three products of two FLOP a multiply and add, for each matrix."""
    return sum(6 * rows * columns for rows, columns in matrices)


def test_megatron_core_counts_the_matrices_of_grouped_attention(load):
    layer = _products(
        *((4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096)),
        *((4096, 14336), (4096, 14336), (14336, 4096)),
    )
    core = 6 * 2 * 32 * 128 * 8192 // 2
    expected = 32 * (layer + core) + _products((4096, 128256))
    assert flop_per_token(load(configs.LLAMA3_8B), "megatron-core", 8192) == expected


def test_megatron_core_counts_two_of_eight_experts_and_no_router(load):
    attention = _products((4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096))
    expert = _products((4096, 14336), (4096, 14336), (14336, 4096))
    core = 6 * 2 * 32 * 128 * 4096 // 2
    expected = 32 * (attention + 2 * expert + core) + _products((4096, 32000))
    assert flop_per_token(load(configs.MIXTRAL_8X7B), "megatron-core", 4096) == expected


def test_megatron_core_counts_latent_attention_dense_layers_and_shared_experts(load):
    attention = _products(
        *((7168, 1536), (1536, 128 * 192), (7168, 512 + 64), (512, 128 * 256)),
        *((128 * 128, 7168), (1536, 1), (512, 1)),  # and the norms, as it does
    )
    core = 6 * 128 * (192 + 128) * 4096 // 2
    dense = _products((7168, 18432), (7168, 18432), (18432, 7168))
    expert = _products((7168, 2048), (7168, 2048), (2048, 7168))
    expected = 61 * (attention + core) + 3 * dense + 58 * 9 * expert + _products((7168, 129280))
    assert flop_per_token(load(configs.DEEPSEEK_V3), "megatron-core", 4096) == expected


@given(
    st.integers(1, 200), st.integers(1, 30_000), st.integers(1, 90_000), st.integers(1, 9999)
)
def test_what_megatron_recomputes(layers, hidden, vocab, seq):
    model = Model(layers=layers, hidden=hidden, vocab=vocab)
    needed = flop_per_token(model, "megatron", seq)
    full = hardware_flop_per_token(model, "megatron", seq, "full")
    selective = hardware_flop_per_token(model, "megatron", seq, "selective")
    head = 6 * hidden * vocab
    assert 3 * (full - head) == 4 * (needed - head)  # a third more, and logits not
    assert selective - needed == 12 * layers * hidden * seq
    assert 3 * hardware_flop_per_token(Model(params=hidden), "6nd", None, "full") == 4 * (
        flop_per_token(Model(params=hidden), "6nd")
    )


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_nothing_recomputed_is_the_model_and_counts_are_whole(load, convention):
    model = load(configs.GPT2)
    assert hardware_flop_per_token(model, convention, 1024) == flop_per_token(
        model, convention, 1024
    )
    for recompute in (*CONVENTIONS[convention].hardware, "none"):
        assert type(hardware_flop_per_token(model, convention, 1024, recompute)) is int
    assert set(CONVENTIONS[convention].hardware) <= set(RECOMPUTE)


@pytest.mark.parametrize(
    ("convention", "recompute", "message"),
    [
        (
            "torchtitan",
            "full",
            "convention torchtitan does not define the FLOP of recompute full; "
            "those that do are 6nd, palm, megatron, llm-foundry",
        ),
        (
            "palm-noattn",
            "selective",
            "convention 6nd does not define the FLOP of recompute selective; "
            "those that do are megatron",
        ),
        (
            "chinchilla",
            "none",
            "no convention is called 'chinchilla'; there are 6nd, palm, torchtitan, nanogpt, "
            "megatron, megatron-causal, megatron-core, llm-foundry, palm-noattn",
        ),
    ],
)
def test_what_is_not_defined_is_refused(convention, recompute, message):
    with pytest.raises(UsageError) as caught:
        hardware_flop_per_token(Model(params=1), convention, 1, recompute)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("model", "convention", "seq", "message"),
    [
        (
            Model(params=9),
            "palm",
            None,
            "convention palm needs layers, heads, head_dim, seq (--seq), which the model does "
            "not say; add that, or take --convention 6nd, which needs params only",
        ),
        (
            Model(),
            "6nd",
            None,
            "convention 6nd needs params (or, to derive it, layers, hidden, heads, head_dim, "
            "vocab, gated_mlp, tied_embedding, ffn), which the model does not say; add that",
        ),
        (
            Model(params=9, layers=1, heads=1, head_dim=1, hidden=1),
            "torchtitan",
            1,
            "convention torchtitan needs embedding_params (or, to derive it, vocab, "
            "tied_embedding), which the model does not say; add that, or take --convention 6nd, "
            "which needs params only",
        ),
        (
            Model(params=9, experts=4),
            "6nd",
            None,
            "convention 6nd needs active_params (or, to derive it, layers, hidden, heads, "
            "head_dim, vocab, gated_mlp, tied_embedding, experts_per_token, moe_ffn), which the "
            "model does not say; add that",
        ),
        (
            Model(layers=1, hidden=8, heads=2, head_dim=4, vocab=3, experts=4, dense_layers=1),
            "megatron-core",
            5,
            "convention megatron-core needs gated_mlp, kv_heads, experts_per_token, moe_ffn, "
            "ffn, which the model does not say; add that",
        ),
        (
            Model(layers=1, hidden=8, vocab=3, experts=4),
            "megatron-causal",
            5,
            "convention megatron-causal counts layers of GPT-3, and this model has experts; "
            "take megatron-core, palm or torchtitan",
        ),
    ],
)
def test_what_a_convention_lacks_is_named(model, convention, seq, message):
    with pytest.raises(UsageError) as caught:
        flop_per_token(model, convention, seq)
    assert str(caught.value) == message


def test_by_default_it_is_palm_if_the_model_says_enough(load):
    assert default_convention(load(configs.LLAMA3_8B)) == "palm"
    assert default_convention(load(configs.DEEPSEEK_V3)) == "palm"
    assert default_convention(Model(params=7)) == "6nd"
    assert (
        default_convention(Model(params=7, layers=1, heads=1, head_dim=1, experts=2)) == "6nd"
    )


def test_where_a_convention_counts_another_model(load):
    llama, bert = load(configs.LLAMA3_8B), load(configs.BERT_BASE)
    qwen = load(configs.QWEN3_30B_A3B)
    assert doubts(llama, "palm") == doubts(bert, "palm") == doubts(llama, "llm-foundry") == ()
    assert doubts(llama, "megatron-causal") == (
        "megatron-causal counts the layers of GPT-3; this model has a gated MLP, fewer key heads "
        "than query heads: megatron-core or palm counts those",
    )
    assert doubts(bert, "megatron-core") == (
        "megatron-core halves attention, and this model's is not causal",
    )
    assert doubts(qwen, "llm-foundry") == (
        "llm-foundry takes heads to add up to hidden, and this model's do not: palm counts those",
    )
    odd = Model(layers=1, hidden=8, heads=1, head_dim=4, vocab=9, ffn=9, gated_mlp=False)
    assert doubts(odd, "megatron") == (
        "megatron counts the layers of GPT-3; this model has heads that do not add up to hidden, "
        "an MLP that is not 4 times as wide as hidden: megatron-core or palm counts those",
    )
    assert doubts(Model(layers=1, hidden=8, vocab=9), "megatron") == ()
