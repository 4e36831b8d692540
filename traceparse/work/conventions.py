"""How many FLOP does a token need? Everyone's formulas, under the names of who uses them.

Forward and backward, as whole numbers. The same run differs by several points of MFU between
these, so that no figure is worth anything without the name of its convention. N are parameters
(those that a token meets, of a model with experts), L layers, h hidden, H heads, Q head size,
s sequence, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from traceparse.errors import UsageError
from traceparse.work.model import Model
from traceparse.work.per_token import (
    eight_nd,
    llm_foundry,
    llm_foundry_full,
    megatron,
    megatron_causal,
    megatron_core,
    megatron_full,
    megatron_selective,
    nanogpt,
    palm,
    palm_full,
    six_nd,
    size_field,
    torchtitan,
)

__all__ = [
    "CONVENTIONS",
    "RECOMPUTE",
    "Convention",
    "Recompute",
    "convention_named",
    "counts_of",
    "default_convention",
    "doubts",
    "flop_per_token",
    "hardware_flop_per_token",
]

Recompute: TypeAlias = Literal["none", "selective", "full"]
RECOMPUTE: tuple[Recompute, ...] = get_args(Recompute)
_Formula: TypeAlias = Callable[[Model, int | None], int]

_ALIASES = {"palm-noattn": "6nd"}


@dataclass(frozen=True, slots=True)
class Convention:
    """A formula of model FLOP, and those of hardware FLOP that belong to it, if any do.

    ``counts`` says what is in it: attention with or without its mask, the embedding, the
    multiple of a forward that attention's backward counts for, and which experts.
    """

    name: str
    formula: str
    counts: str
    model: _Formula
    hardware: Mapping[Recompute, _Formula] = field(default_factory=dict)
    is_of_gpt: bool = False
    is_causal: bool = False


def flop_per_token(model: Model, convention: str, seq: int | None = None) -> int:
    """Return the FLOP that forward and backward of a token need, in a convention.

    Raises
    ------
    UsageError
        There is no such convention, it needs a field that the model lacks, or it counts
        another kind of model.
    """
    return convention_named(convention).model(model, seq)


def hardware_flop_per_token(
    model: Model, convention: str, seq: int | None = None, recompute: Recompute = "none"
) -> int:
    """Return the FLOP that run for a token, with what is recomputed in backward.

    Raises
    ------
    UsageError
        As :func:`flop_per_token`, or the convention does not define such a recomputation.
    """
    found = convention_named(convention)
    if recompute == "none":
        return found.model(model, seq)
    formula = found.hardware.get(recompute)
    if formula is None:
        defining = [each.name for each in CONVENTIONS.values() if recompute in each.hardware]
        raise UsageError(
            f"convention {found.name} does not define the FLOP of recompute {recompute}; "
            f"those that do are {', '.join(defining)}"
        )
    return formula(model, seq)


def convention_named(name: str) -> Convention:
    """Return the convention of a name or alias.

    Raises
    ------
    UsageError
        There is none.
    """
    found = CONVENTIONS.get(_ALIASES.get(name, name))
    if found is None:
        known = ", ".join([*CONVENTIONS, *_ALIASES])
        raise UsageError(f"no convention is called {name[:60]!r}; there are {known}")
    return found


def default_convention(model: Model) -> str:
    """Choose the one that most published figures are in, if the model says enough for it."""
    needed = (size_field(model), "layers", "heads", "head_dim")
    return "6nd" if model.missing(*needed) else "palm"


def doubts(model: Model, convention: str) -> tuple[str, ...]:
    """Say, in a line each, where a convention counts another model than this one."""
    found = convention_named(convention)
    lines = []
    if found.name == "llm-foundry" and not _is_as_wide_as_hidden(model):
        lines.append(
            f"{found.name} takes heads to add up to hidden, and this model's do not: "
            "palm counts those"
        )
    if found.is_of_gpt and (differing := _unlike_gpt(model)):
        better = "megatron-core or palm" if found.name.startswith("megatron") else "palm"
        lines.append(
            f"{found.name} counts the layers of GPT-3; this model has {', '.join(differing)}: "
            f"{better} counts those"
        )
    if found.is_causal and not model.is_causal:
        lines.append(f"{found.name} halves attention, and this model's is not causal")
    return tuple(lines)


def _unlike_gpt(model: Model) -> list[str]:
    lines = []
    if model.gated_mlp:
        lines.append("a gated MLP")
    if model.kv_heads is not None and model.kv_heads != (model.heads or model.kv_heads):
        lines.append("fewer key heads than query heads")
    if not _is_as_wide_as_hidden(model):
        lines.append("heads that do not add up to hidden")
    if not model.gated_mlp and model.ffn and model.hidden and model.ffn != 4 * model.hidden:
        lines.append("an MLP that is not 4 times as wide as hidden")
    return lines


def _is_as_wide_as_hidden(model: Model) -> bool:
    """Are all heads together as wide as hidden, as far as that is known?"""
    if model.missing("heads", "head_dim", "hidden"):
        return True
    (hidden,) = model.numbers("hidden")
    return model.attention_width == 2 * hidden


_IN_FULL = "causal=full, attn_bwd=2x"
_HALVED = "causal=half, attn_bwd=2x"

CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        each.name: each
        for each in (
            Convention(
                name="6nd",
                formula="6N",
                counts="attention=out, embed=in, moe=active",
                model=six_nd,
                hardware={"full": eight_nd},
            ),
            Convention(
                name="palm",
                formula="6N + 12LHQs",
                counts=f"{_IN_FULL}, embed=in, moe=active",
                model=palm,
                hardware={"full": palm_full},
            ),
            Convention(
                name="torchtitan",
                formula="6(N - N_embedding) + 12LHQs",
                counts=f"{_IN_FULL}, embed=out, moe=active",
                model=torchtitan,
            ),
            Convention(
                name="nanogpt",
                formula="6(N - N_position) + 12LHQs",
                counts=f"{_IN_FULL}, embed=in, moe=active",
                model=nanogpt,
            ),
            Convention(
                name="megatron",
                formula="72Lh^2(1 + s/6h + V/12hL)",
                counts=f"{_IN_FULL}, embed=out",
                model=megatron,
                hardware={"selective": megatron_selective, "full": megatron_full},
                is_of_gpt=True,
            ),
            Convention(
                name="megatron-causal",
                formula="72Lh^2(1 + s/12h + V/12hL)",
                counts=f"{_HALVED}, embed=out",
                model=megatron_causal,
                is_of_gpt=True,
                is_causal=True,
            ),
            Convention(
                name="megatron-core",
                formula="6(attention + MLP + shared and routed experts + hV) + 6LHQs",
                counts=f"{_HALVED}, embed=out, moe=active",
                model=megatron_core,
                is_causal=True,
            ),
            Convention(
                name="llm-foundry",
                formula="3(2N + 4Lhs)",
                counts=f"{_IN_FULL}, embed=in, moe=active",
                model=llm_foundry,
                hardware={"full": llm_foundry_full},
            ),
        )
    }
)


def counts_of(model: Model, convention: str) -> str:
    """Say what a convention counts of this model: its convention string."""
    found = convention_named(convention)
    if found.name == "6nd" and model.is_given("embedding_params"):
        return found.counts.replace("embed=in", "embed=out")
    return found.counts
