"""The sizes of a model from its ``config.json``, by architecture.

An architecture is known here if its parameters can be counted to the last one: key names and
defaults are those of its ``configuration_*.py`` in Hugging Face transformers, norms and biases
those of its ``modeling_*.py``. Of any other the shape would be a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from traceparse.errors import InputError
from traceparse.work.model import Model
from traceparse.work.parameters import Small, derive, derive_heads
from traceparse.work.sizes import Sizes

__all__ = ["is_huggingface", "model_of_config"]


class _Family(NamedTuple):
    """How an architecture's configuration is read, and what it has besides matrices."""

    shape: Callable[[Sizes], Model]
    small: Callable[[Sizes, Model], Small]


def is_huggingface(config: Mapping[str, Any]) -> bool:
    """Is it a configuration of transformers? Each of those says what it is."""
    return "model_type" in config or "architectures" in config


def model_of_config(sizes: Sizes) -> Model:
    """Read the shape of an architecture that is known, and count its parameters.

    Raises
    ------
    InputError
        The architecture is not known, or a number of its shape is missing or wrong.
    """
    kind = sizes.config.get("model_type")
    family = _FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise InputError(
            f"{sizes.path}: the shape of model_type {str(kind)[:60]!r} is not known; known are "
            f"{', '.join(_FAMILIES)}; describe others in a TOML of layers, hidden, heads, ..."
        )
    model = family.shape(sizes)
    hidden, heads = model.numbers("hidden", "heads")
    if model.head_dim is None and hidden % heads:
        raise InputError(
            f"{sizes.path}: the hidden size {hidden:,} is no multiple of {heads:,} heads; "
            "add head_dim"
        )
    model = derive_heads(model)
    return derive(model, family.small(sizes, model))


def _decoder(sizes: Sizes, *, tied: bool, all_heads: bool = False) -> Model:
    """Read what decoders since Llama share; ``all_heads``: without GQA unless it says so."""
    heads = sizes.whole("num_attention_heads")
    is_grouped = not all_heads or sizes.has("num_key_value_heads")
    return Model(
        layers=sizes.whole("num_hidden_layers"),
        hidden=sizes.whole("hidden_size"),
        heads=heads,
        kv_heads=sizes.whole("num_key_value_heads") if is_grouped else None,
        head_dim=sizes.whole("head_dim") if sizes.has("head_dim") else None,
        ffn=sizes.whole("intermediate_size"),
        vocab=sizes.whole("vocab_size"),
        gated_mlp=True,
        tied_embedding=sizes.flag("tie_word_embeddings", default=tied),
    )


def _llama(sizes: Sizes) -> Model:
    return _decoder(sizes, tied=False, all_heads=True)


def _mistral(sizes: Sizes) -> Model:
    return _decoder(sizes, tied=False)


def _qwen3(sizes: Sizes) -> Model:
    sizes.whole("head_dim")  # its default is no quotient
    return _decoder(sizes, tied=False)


def _gemma(sizes: Sizes) -> Model:
    sizes.whole("head_dim")
    return _decoder(sizes, tied=True)


def _mixtral(sizes: Sizes) -> Model:
    return replace(
        _decoder(sizes, tied=False),
        experts=sizes.whole("num_local_experts"),
        experts_per_token=sizes.whole("num_experts_per_tok"),
        moe_ffn=sizes.whole("intermediate_size"),
    )


def _qwen_moe(sizes: Sizes) -> Model:
    layers, step = sizes.whole("num_hidden_layers"), sizes.whole_or("decoder_sparse_step", 1)
    dense = sizes.config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(type(layer) is int for layer in dense):
        raise InputError(f"{sizes.path}: mlp_only_layers is no list of numbers; correct it")
    kept = {layer for layer in dense if 0 <= layer < layers and (layer + 1) % step == 0}
    return replace(
        _decoder(sizes, tied=False),
        experts=sizes.whole("num_experts"),
        experts_per_token=sizes.whole("num_experts_per_tok"),
        moe_ffn=sizes.whole("moe_intermediate_size"),
        shared_ffn=sizes.whole_or("shared_expert_intermediate_size", 0, least=0),
        dense_layers=layers - layers // step + len(kept),
    )


def _qwen3_moe(sizes: Sizes) -> Model:
    sizes.whole("head_dim")
    return _qwen_moe(sizes)


def _deepseek(sizes: Sizes) -> Model:
    rope = sizes.whole("qk_rope_head_dim")
    model = replace(
        _decoder(sizes, tied=False, all_heads=True),
        kv_heads=None,
        head_dim=sizes.whole("qk_nope_head_dim") + rope,
        v_head_dim=sizes.whole("v_head_dim"),
        rope_head_dim=rope,
        kv_lora_rank=sizes.whole("kv_lora_rank"),
        q_lora_rank=sizes.whole("q_lora_rank") if sizes.has("q_lora_rank") else None,
    )
    if ahead := sizes.whole_or("num_nextn_predict_layers", 0, least=0):
        text = f"num_nextn_predict_layers {ahead}: not counted, as transformers builds none"
        model = replace(model, derived=(text,))
    return _deepseek_experts(sizes, model) if sizes.has("n_routed_experts") else model


def _deepseek_experts(sizes: Sizes, model: Model) -> Model:
    width = sizes.whole("moe_intermediate_size")
    (layers,) = model.numbers("layers")
    first = sizes.whole_or("first_k_dense_replace", 0, least=0)
    every = sizes.whole_or("moe_layer_freq", 1)
    # those from the first on whose number is a multiple: up to the end, less before the first
    num_moe_layers = max(0, -(-layers // every) - -(-first // every))
    return replace(
        model,
        experts=sizes.whole("n_routed_experts"),
        experts_per_token=sizes.whole("num_experts_per_tok"),
        moe_ffn=width,
        shared_ffn=width * sizes.whole_or("n_shared_experts", 0, least=0),
        dense_layers=layers - num_moe_layers,
    )


def _gpt2(sizes: Sizes) -> Model:
    hidden = sizes.whole("n_embd")
    return Model(
        layers=sizes.whole("n_layer"),
        hidden=hidden,
        heads=sizes.whole("n_head"),
        ffn=sizes.whole_or("n_inner", 4 * hidden),
        vocab=sizes.whole("vocab_size"),
        position_params=hidden * sizes.whole("n_positions"),
        gated_mlp=False,
        tied_embedding=sizes.flag("tie_word_embeddings", default=True),
    )


def _gpt_neox(sizes: Sizes) -> Model:
    return replace(_decoder(sizes, tied=False, all_heads=True), gated_mlp=False)


def _bert(sizes: Sizes) -> Model:
    model = _decoder(sizes, tied=True, all_heads=True)
    rows = sizes.whole("max_position_embeddings") + sizes.whole("type_vocab_size")
    (hidden,) = model.numbers("hidden")
    return replace(model, gated_mlp=False, is_causal=False, position_params=hidden * rows)


def _vit(sizes: Sizes) -> Model:
    side = sizes.whole("image_size") // sizes.whole("patch_size")
    hidden, tokens = sizes.whole("hidden_size"), side * side + 1
    return Model(
        layers=sizes.whole("num_hidden_layers"),
        hidden=hidden,
        heads=sizes.whole("num_attention_heads"),
        ffn=sizes.whole("intermediate_size"),
        seq=tokens,
        position_params=hidden * tokens,
        gated_mlp=False,
        is_causal=False,
        derived=(f"seq = {tokens:,}: patches of the image, and one for its class",),
    )


def _rms_norms(num: int, *, has_query_bias: bool = False) -> Callable[[Sizes, Model], Small]:
    """Count so many RMS norms a layer, one at the end, and the biases that a flag asks for."""

    def small(sizes: Sizes, model: Model) -> Small:
        hidden, heads, kv_heads, head_dim, ffn = model.numbers(
            "hidden", "heads", "kv_heads", "head_dim", "ffn"
        )
        queries = (heads + 2 * kv_heads) * head_dim
        layer = num * hidden + (queries if has_query_bias else 0)
        if sizes.flag("attention_bias", default=False):
            layer += queries + hidden
        if sizes.flag("mlp_bias", default=False):
            layer += 2 * ffn + hidden
        return Small(layer, once=hidden)

    return small


def _qwen2_moe_small(sizes: Sizes, model: Model) -> Small:
    base = _rms_norms(2, has_query_bias=True)(sizes, model)
    return base._replace(moe_layer=base.once)  # the gate of the shared expert


def _qwen3_small(sizes: Sizes, model: Model) -> Small:
    base = _rms_norms(2)(sizes, model)
    (head_dim,) = model.numbers("head_dim")
    return base._replace(layer=base.layer + 2 * head_dim)  # norms of queries and of keys


def _deepseek_small(sizes: Sizes, model: Model) -> Small:
    if sizes.flag("attention_bias", default=False):
        raise InputError(f"{sizes.path}: attention_bias is not known of MLA; set it to false")
    (hidden,) = model.numbers("hidden")
    return Small(layer=2 * hidden, once=hidden)


def _deepseek_v3_small(sizes: Sizes, model: Model) -> Small:
    base = _deepseek_small(sizes, model)
    return base._replace(moe_layer=model.experts)  # what balances experts, without a loss


def _layer_norms(sizes: Sizes, model: Model) -> Small:
    """Count two norms a layer and one more, all with biases, as are all the projections."""
    hidden, ffn = model.numbers("hidden", "ffn")
    has_bias = sizes.flag("attention_bias", default=True)
    return Small(
        layer=4 * hidden + (4 * hidden if has_bias else 0) + ffn + hidden, once=2 * hidden
    )


def _bert_small(sizes: Sizes, model: Model) -> Small:
    base = _layer_norms(sizes, model)
    (hidden,) = model.numbers("hidden")
    return base._replace(once=base.once + hidden * hidden + hidden)  # the pooler


def _vit_small(sizes: Sizes, model: Model) -> Small:
    hidden, ffn = model.numbers("hidden", "ffn")
    has_bias = sizes.flag("qkv_bias", default=True)
    patch = sizes.whole_or("num_channels", 3) * sizes.whole("patch_size") ** 2
    labels = sizes.config.get("id2label")
    num_labels = len(labels) if isinstance(labels, dict) else 0
    once = 2 * hidden + hidden + (patch + 1) * hidden + num_labels * (hidden + 1)
    return Small(
        layer=4 * hidden + (3 * hidden if has_bias else 0) + hidden + ffn + hidden, once=once
    )


_FAMILIES: dict[str, _Family] = {
    "llama": _Family(_llama, _rms_norms(2)),
    "mistral": _Family(_mistral, _rms_norms(2)),
    "mixtral": _Family(_mixtral, _rms_norms(2)),
    "phi3": _Family(_llama, _rms_norms(2)),
    "gemma": _Family(_gemma, _rms_norms(2)),
    "gemma2": _Family(_gemma, _rms_norms(4)),
    "qwen2": _Family(_mistral, _rms_norms(2, has_query_bias=True)),
    "qwen2_moe": _Family(_qwen_moe, _qwen2_moe_small),
    "qwen3": _Family(_qwen3, _qwen3_small),
    "qwen3_moe": _Family(_qwen3_moe, _qwen3_small),
    "deepseek_v2": _Family(_deepseek, _deepseek_small),
    "deepseek_v3": _Family(_deepseek, _deepseek_v3_small),
    "gpt2": _Family(_gpt2, _layer_norms),
    "gpt_neox": _Family(_gpt_neox, _layer_norms),
    "bert": _Family(_bert, _bert_small),
    "vit": _Family(_vit, _vit_small),
}
