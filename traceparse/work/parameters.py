"""How many parameters has a model of this shape, and what else follows from it?

Matrices follow from the shape alone. Norms and biases do not; they are less than a thousandth
of a model and have to be said (:class:`Small`), or are taken to be two RMS norms a layer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from traceparse.work.model import Model

__all__ = [
    "Small",
    "attention",
    "derive",
    "derive_heads",
    "lacking",
    "lacking_embedding",
    "mlp",
]


class Small(NamedTuple):
    """Parameters besides attention, MLP, experts, embedding and head.

    Those of each layer, those of each layer with experts, and those that there are once.
    """

    layer: int
    once: int
    moe_layer: int = 0


def attention(model: Model) -> int:
    """Count the parameters of one layer's attention: the projections, and norms of MLA.

    Latent attention is that of DeepSeek-V2 (arXiv 2405.04434, section 2.1 and appendix C): its
    queries too may go through a compressed form, and each compression ends with a norm.
    """
    hidden, heads, head_dim = model.numbers("hidden", "heads", "head_dim")
    value = model.v_head_dim or head_dim
    output = heads * value * hidden
    if not model.is_latent:
        (kv_heads,) = model.numbers("kv_heads")
        return hidden * (heads * head_dim + kv_heads * (head_dim + value)) + output
    rank, rope = model.numbers("kv_lora_rank", "rope_head_dim")
    queries = hidden * heads * head_dim
    if model.q_lora_rank is not None:
        queries = model.q_lora_rank * (hidden + heads * head_dim + 1)
    keys = rank * (hidden + heads * (head_dim - rope + value) + 1) + hidden * rope
    return queries + keys + output


def mlp(model: Model, width: int) -> int:
    """Count the matrices of an MLP of this inner width: three if gated (SwiGLU), else two."""
    (hidden,) = model.numbers("hidden")
    return (3 if model.gated_mlp else 2) * hidden * width


def lacking(model: Model) -> list[str]:
    """List what would have to be known for the parameters to be derived."""
    fields = ["layers", "hidden", "heads", "head_dim", "vocab", "gated_mlp", "tied_embedding"]
    if not model.experts or model.dense_layers:
        fields.append("ffn")
    if model.experts:
        fields += ["experts_per_token", "moe_ffn"]
    return model.missing(*fields)


def lacking_embedding(model: Model) -> list[str]:
    """List what would have to be known for the parameters of the embedding to be derived."""
    return model.missing("hidden", "vocab", "tied_embedding")


def derive(model: Model, small: Small | None = None) -> Model:
    """Fill in what follows from the rest, and say so in ``derived``.

    ``small`` comes from who knows the architecture, and knows that all of the shape is there.
    """
    model = derive_heads(model)
    knows_shape = small is not None or not lacking(model)
    if model.embedding_params is None and (knows_shape or not lacking_embedding(model)):
        model = _with_embedding(model)
    if model.params is None and knows_shape:
        if small is None:
            (hidden,) = model.numbers("hidden")
            small = Small(layer=2 * hidden, once=hidden)
        model = _known(model, "params", _count(model, small), "counted from the shape")
    needed = ("params", "layers", "hidden", "gated_mlp", "experts_per_token", "moe_ffn")
    if model.experts and model.active_params is None and not model.missing(*needed):
        model = _with_active(model)
    return model


def derive_heads(model: Model) -> Model:
    """Fill in heads and widths that follow from others, as far as they do."""
    hidden, heads = model.hidden, model.heads
    if model.head_dim is None and hidden and heads and hidden % heads == 0:
        model = _known(model, "head_dim", hidden // heads, "hidden / heads")
    if model.kv_heads is None and heads and not model.is_latent:
        model = _known(model, "kv_heads", heads, "as many as heads")
    if model.experts and model.moe_ffn is None and model.ffn is not None:
        model = _known(model, "moe_ffn", model.ffn, "as wide as ffn")
    return model


def _with_embedding(model: Model) -> Model:
    looked_up = model.position_params + (0 if model.tied_embedding else _matrix(model))
    words = "the embedding is the head as well" if model.tied_embedding else "vocab x hidden"
    parts = [words] if model.vocab else []
    parts += ["learned positions"] if model.position_params else []
    return _known(model, "embedding_params", looked_up, "; ".join(parts))


def _with_active(model: Model) -> Model:
    params, used, width = model.numbers("params", "experts_per_token", "moe_ffn")
    idle = model.num_moe_layers * (model.experts - used) * mlp(model, width)
    how = (
        f"without the {model.experts - used} of {model.experts} experts that a token passes by"
    )
    return _known(model, "active_params", params - idle, how)


def _count(model: Model, small: Small) -> int:
    (layers,) = model.numbers("layers")
    moe = model.num_moe_layers
    count = layers * (attention(model) + small.layer) + small.once + model.position_params
    count += _matrix(model) * (1 if model.tied_embedding else 2)
    if layers > moe:
        count += (layers - moe) * mlp(model, *model.numbers("ffn"))
    if moe:
        (hidden, width) = model.numbers("hidden", "moe_ffn")
        experts = model.experts * (mlp(model, width) + hidden)  # and a row of the router each
        count += moe * (experts + mlp(model, model.shared_ffn) + small.moe_layer)
    return count


def _matrix(model: Model) -> int:
    """Count the parameters of the embedding; what reads no words has none."""
    (hidden,) = model.numbers("hidden")
    return hidden * (model.vocab or 0)


def _known(model: Model, field: str, value: int, how: str) -> Model:
    text = f"{field} = {value:,}: {how}"
    return replace(model, **{field: value}, derived=(*model.derived, text))  # type: ignore[arg-type]
