# ruff: noqa: E501 - messages are what is tested

from __future__ import annotations

import json

import pytest

from tests.work import configs
from traceparse.errors import InputError
from traceparse.work.model_file import load_model


@pytest.fixture
def load(tmp_path):
    def loaded(config, **changes):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config | changes))
        return load_model(path)

    return loaded


@pytest.fixture
def refused(load, tmp_path):
    def text(config, **changes):
        with pytest.raises(InputError) as caught:
            load(config, **changes)
        return str(caught.value).removeprefix(f"{tmp_path / 'config.json'}: ")

    return text


# Totals that are published with the weights (safetensors, model cards, papers)
@pytest.mark.parametrize(
    ("config", "params"),
    [
        (configs.LLAMA3_8B, 8_030_261_248),
        (configs.LLAMA3_405B, 405_853_388_800),
        (configs.LLAMA32_1B, 1_235_814_400),
        (configs.MISTRAL_7B, 7_241_732_096),
        (configs.MIXTRAL_8X7B, 46_702_792_704),
        (configs.QWEN25_7B, 7_615_616_512),
        (configs.QWEN15_MOE, 14_315_784_192),
        (configs.QWEN3_8B, 8_190_735_360),
        (configs.QWEN3_30B_A3B, 30_532_122_624),
        (configs.DEEPSEEK_V2_LITE, 15_706_484_224),
        (configs.DEEPSEEK_V3, 671_026_419_200),
        (configs.GPT2, 124_439_808),
        (configs.PYTHIA_69B, 6_857_302_016),
        (configs.BERT_BASE, 109_482_240),
        (configs.VIT_BASE, 86_567_656),
        (configs.GEMMA_2B, 2_506_172_416),
        (configs.GEMMA2_2B, 2_614_341_888),
        (configs.PHI3_MINI, 3_821_079_552),
    ],
    ids=lambda value: (
        value["model_type"] if isinstance(value, dict) else f"{value / 1e9:.3f}e9"
    ),
)
def test_parameters_are_those_of_the_published_weights(load, config, params):
    assert load(config).params == params


# Mixtral's paper says 12.9 billion, Qwen 3.3 and 2.7, DeepSeek 37 and 2.4 without embeddings
@pytest.mark.parametrize(
    ("config", "active"),
    [
        (configs.MIXTRAL_8X7B, 12.9e9),
        (configs.QWEN3_30B_A3B, 3.3e9),
        (configs.QWEN15_MOE, 2.7e9),
        (configs.DEEPSEEK_V3, 37.5e9),
        (configs.DEEPSEEK_V2_LITE, 2.66e9),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else f"{value / 1e9}e9",
)
def test_a_token_meets_the_parameters_that_papers_say(load, config, active):
    assert load(config).active_params == pytest.approx(active, rel=0.02)


def test_what_is_derived_is_said(load):
    assert load(configs.LLAMA3_8B).derived == (
        "head_dim = 128: hidden / heads",
        "embedding_params = 525,336,576: vocab x hidden",
        "params = 8,030,261,248: counted from the shape",
    )
    assert load(configs.MIXTRAL_8X7B).derived[-1] == (
        "active_params = 12,879,925,248: without the 6 of 8 experts that a token passes by"
    )
    assert load(configs.GPT2).derived[2] == (
        "embedding_params = 786,432: the embedding is the head as well; learned positions"
    )
    assert load(configs.DEEPSEEK_V3).derived[0] == (
        "num_nextn_predict_layers 1: not counted, as transformers builds none"
    )


def test_an_image_has_as_many_tokens_as_patches_and_one(load):
    model = load(configs.VIT_BASE)
    assert model.seq == 197
    assert model.vocab is None
    assert model.embedding_params == model.position_params == 197 * 768


def test_which_layers_have_experts(load):
    qwen = configs.QWEN3_30B_A3B
    assert load(qwen).num_moe_layers == 48
    assert load(qwen, decoder_sparse_step=2).num_moe_layers == 24
    # of 5 and 7, both odd, layers 5 and 7 count from 0: each second one is sparse
    changed = load(qwen, decoder_sparse_step=2, mlp_only_layers=[5, 7, 8, 99])
    assert changed.num_moe_layers == 22
    deepseek = configs.DEEPSEEK_V3
    assert load(deepseek).num_moe_layers == 58
    for first, every in ((0, 2), (3, 2), (4, 2), (61, 1), (70, 3)):
        brute = sum(layer >= first and layer % every == 0 for layer in range(61))
        changed = load(deepseek, first_k_dense_replace=first, moe_layer_freq=every)
        assert changed.num_moe_layers == brute, (first, every)


def test_deepseek_without_experts_is_dense(load):
    dense = load(configs.DEEPSEEK_V3, n_routed_experts=None)
    assert dense.experts == 0
    assert dense.active_params is None


@pytest.mark.parametrize(
    ("config", "changes", "more"),
    [
        (configs.LLAMA3_8B, {"attention_bias": True}, 32 * (4096 + 2 * 1024 + 4096)),
        (configs.LLAMA3_8B, {"mlp_bias": True}, 32 * (2 * 14336 + 4096)),
        (configs.LLAMA3_8B, {"tie_word_embeddings": True}, -128256 * 4096),
        (configs.PYTHIA_69B, {"attention_bias": False}, -32 * 4 * 4096),
        (configs.VIT_BASE, {"qkv_bias": False}, -12 * 3 * 768),
        (configs.VIT_BASE, {"id2label": None}, -1000 * 769),
        (configs.GPT2, {"n_inner": 1536}, -12 * (2 * 768 * 1536 + 1536)),
    ],
)
def test_flags_add_or_take_what_they_name(load, config, changes, more):
    assert load(config, **changes).params == load(config).params + more


def test_another_architecture_is_no_guess(refused):
    assert refused({"model_type": "mamba", "hidden_size": 1}) == (
        "the shape of model_type 'mamba' is not known; known are llama, mistral, mixtral, "
        "phi3, gemma, gemma2, qwen2, qwen2_moe, qwen3, qwen3_moe, deepseek_v2, deepseek_v3, gpt2, "
        "gpt_neox, bert, vit; describe others in a TOML of layers, hidden, heads, ..."
    )
    assert refused({"architectures": ["LlamaForCausalLM"]}).startswith(
        "the shape of model_type 'None' is not known; known are llama, "
    )
    assert refused({"model_type": ["llama"]}).startswith(
        "the shape of model_type \"['llama']\""
    )


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (
            configs.LLAMA3_8B,
            {"num_hidden_layers": 0},
            "num_hidden_layers is 0; write a whole number from 1 to 10^16",
        ),
        (configs.LLAMA3_8B, {"hidden_size": None}, "hidden_size is missing; add it"),
        (configs.QWEN3_8B, {"head_dim": None}, "head_dim is missing; add it"),
        (configs.GEMMA_2B, {"head_dim": None}, "head_dim is missing; add it"),
        (configs.QWEN3_30B_A3B, {"head_dim": None}, "head_dim is missing; add it"),
        (
            configs.MIXTRAL_8X7B,
            {"num_key_value_heads": None},
            "num_key_value_heads is missing; add it",
        ),
        (
            configs.LLAMA3_8B,
            {"tie_word_embeddings": "no"},
            "tie_word_embeddings is 'no'; write true or false",
        ),
        (
            configs.GPT2,
            {"n_head": 7},
            "the hidden size 768 is no multiple of 7 heads; add head_dim",
        ),
        (
            configs.QWEN3_30B_A3B,
            {"mlp_only_layers": ["a"]},
            "mlp_only_layers is no list of numbers; correct it",
        ),
        (
            configs.DEEPSEEK_V3,
            {"attention_bias": True},
            "attention_bias is not known of MLA; set it to false",
        ),
        (
            configs.MIXTRAL_8X7B,
            {"num_experts_per_tok": 9},
            "experts_per_token is 9, which is more than experts, 8; correct one of them",
        ),
        (
            configs.LLAMA3_8B,
            {"num_key_value_heads": 5},
            "heads is 32, no multiple of kv_heads, 5; correct one of them",
        ),
    ],
)
def test_numbers_that_are_none_are_refused_by_name(refused, config, changes, message):
    assert refused(config, **changes) == message
