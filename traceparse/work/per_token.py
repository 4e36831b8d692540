"""The formulas of FLOP for a token, each with its source: whole numbers, forward and backward.

Those of :mod:`traceparse.work.conventions`, which says what the letters are. A formula asks for
what it needs, and says what of that the model does not.
"""

from __future__ import annotations

from traceparse.errors import UsageError
from traceparse.work.model import Model
from traceparse.work.parameters import attention, lacking, lacking_embedding, mlp

__all__ = [
    "eight_nd",
    "llm_foundry",
    "llm_foundry_full",
    "megatron",
    "megatron_causal",
    "megatron_core",
    "megatron_full",
    "megatron_selective",
    "nanogpt",
    "palm",
    "palm_full",
    "six_nd",
    "size_field",
    "torchtitan",
]


def size_field(model: Model) -> str:
    """Name the field that N stands for: with experts, the parameters that a token meets."""
    return "active_params" if model.experts else "params"


def _known(convention: str, model: Model, seq: int | None, *fields: str) -> tuple[int, ...]:
    """Return what a formula needs; ``params`` are those that a token meets.

    Raises
    ------
    UsageError
        The model lacks some; the message names them all.
    """
    names = [size_field(model) if name == "params" else name for name in fields]
    missing = model.missing(*(name for name in names if name != "seq"))
    if seq is None and "seq" in names:
        missing.append("seq (--seq)")
    if missing:
        raise UsageError(_lacks(convention, model, missing))
    return tuple(seq or 0 if name == "seq" else model.numbers(name)[0] for name in names)


def _lacks(convention: str, model: Model, missing: list[str]) -> str:
    size = size_field(model)
    sources = {size: lacking(model), "embedding_params": lacking_embedding(model)}
    told = []
    for name in missing:
        others = [other for other in sources.get(name, ()) if other not in missing]
        told.append(f"{name} (or, to derive it, {', '.join(others)})" if others else name)
    text = f"convention {convention} needs {', '.join(told)}, which the model does not say"
    if convention != "6nd" and not model.missing(size):
        return f"{text}; add that, or take --convention 6nd, which needs {size} only"
    return f"{text}; add that"


def six_nd(model: Model, seq: int | None) -> int:
    """6N: Kaplan et al. 2020 (arXiv 2001.08361), section 2.1; PaLM's MFU without attention.

    Without embeddings, as in Kaplan, where it is given how many they are.
    """
    (params,) = _known("6nd", model, seq, "params")
    is_given = model.is_given("embedding_params")
    return 6 * (params - (model.embedding_params or 0 if is_given else 0))


def eight_nd(model: Model, seq: int | None) -> int:
    """8N: Narayanan et al. 2021 (arXiv 2104.04473), section 5.1: one more forward."""
    return six_nd(model, seq) // 6 * 8


def palm(model: Model, seq: int | None) -> int:
    """6N + 12LHQs: Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B."""
    params, *_ = _known("palm", model, seq, "params", "layers", "heads", "head_dim", "seq")
    return 6 * params + _attention_in_full(model, seq)


def palm_full(model: Model, seq: int | None) -> int:
    """8N + 16LHQs: one more forward than appendix B of PaLM, whose backward is two."""
    return palm(model, seq) // 6 * 8


def torchtitan(model: Model, seq: int | None) -> int:
    """6(N - N_embedding) + 12LHQs: torchtitan/models/utils.py, ``get_*_nparams_and_flops``."""
    params, embedding, *_ = _known(
        "torchtitan",
        model,
        seq,
        "params",
        "embedding_params",
        "layers",
        "heads",
        "head_dim",
        "seq",
    )
    return 6 * (params - embedding) + _attention_in_full(model, seq)


def nanogpt(model: Model, seq: int | None) -> int:
    """6N + 12LHQs, N without position embedding: nanoGPT/model.py, ``estimate_mfu``."""
    params, *_ = _known("nanogpt", model, seq, "params", "layers", "heads", "head_dim", "seq")
    return 6 * (params - model.position_params) + _attention_in_full(model, seq)


def _attention_in_full(model: Model, seq: int | None) -> int:
    """12LHQs: no pair is left out for the mask; queries and values may differ in size (MLA)."""
    (layers,) = model.numbers("layers")
    return 6 * layers * model.attention_width * (seq or 0)


def _gpt(convention: str, model: Model, seq: int | None, *, layer: int, core: int) -> int:
    """Count ``layer`` Lh^2 + ``core`` Lhs + 6hV: what Megatron's formulas have in common."""
    if model.experts:
        raise UsageError(
            f"convention {convention} counts layers of GPT-3, and this model has experts; "
            "take megatron-core, palm or torchtitan"
        )
    layers, hidden, vocab, tokens = _known(
        convention, model, seq, "layers", "hidden", "vocab", "seq"
    )
    return layers * hidden * (layer * hidden + core * tokens) + 6 * hidden * vocab


def megatron(model: Model, seq: int | None) -> int:
    """72Lh^2(1 + s/6h + V/12hL): Korthikanti et al. 2022 (arXiv 2205.05198), appendix A."""
    return _gpt("megatron", model, seq, layer=72, core=12)


def megatron_selective(model: Model, seq: int | None) -> int:
    """72Lh^2(1 + s/3h + V/12hL): Korthikanti et al. 2022, appendix A, hardware FLOP.

    As published: it counts all of core attention twice, where one more forward is a third.
    """
    return _gpt("megatron", model, seq, layer=72, core=24)


def megatron_full(model: Model, seq: int | None) -> int:
    """96Lh^2(1 + s/6h + V/16hL): Narayanan et al. 2021 (arXiv 2104.04473), equation 3.

    One more forward of the layers; logits are not recomputed.
    """
    return _gpt("megatron", model, seq, layer=96, core=16)


def megatron_causal(model: Model, seq: int | None) -> int:
    """72Lh^2(1 + s/12h + V/12hL): the same with the masked half of the pairs left out."""
    return _gpt("megatron-causal", model, seq, layer=72, core=6)


def megatron_core(model: Model, seq: int | None) -> int:
    """Count every product: Megatron-LM, ``num_floating_point_operations`` in training.py.

    Half of the pairs, experts that are routed to, the head of the vocabulary as given (pad it
    as the job does); no router, no lookup. Norms of MLA's compressions count, as they do there.
    """
    needed = ["layers", "hidden", "heads", "head_dim", "vocab", "gated_mlp", "seq"]
    needed += [] if model.is_latent else ["kv_heads"]
    needed += ["experts_per_token", "moe_ffn"] if model.experts else []
    needed += ["ffn"] if model.dense_layers or not model.experts else []
    layers, hidden, _, _, vocab, _, tokens, *_ = _known("megatron-core", model, seq, *needed)
    moe = model.num_moe_layers
    products = layers * attention(model) + hidden * vocab
    if layers > moe:
        products += (layers - moe) * mlp(model, *model.numbers("ffn"))
    if moe:
        used, width = model.numbers("experts_per_token", "moe_ffn")
        products += moe * mlp(model, used * width + model.shared_ffn)
    return 6 * products + 3 * layers * model.attention_width * tokens


def llm_foundry(model: Model, seq: int | None) -> int:
    """3(2N + 4Lhs): llm-foundry, scripts/train/benchmarking/README.md."""
    params, layers, hidden, tokens = _known(
        "llm-foundry", model, seq, "params", "layers", "hidden", "seq"
    )
    return 3 * (2 * params + 4 * layers * hidden * tokens)


def llm_foundry_full(model: Model, seq: int | None) -> int:
    """4(2N + 4Lhs): llm-foundry, the same file, with activation checkpointing."""
    return llm_foundry(model, seq) // 3 * 4
