"""What was chosen in counting work where one could choose: field ``run.conventions``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["conventions_of"]

# as the formulas write them, and as the contract names them
_NAMES: Final = {
    "attn_bwd": "attention_backward",
    "causal": "causal_attention",
    "embed": "embedding",
    "mask": "attention_mask",
    "moe": "expert_rows",
    "varlen": "variable_lengths",
}


def conventions_of(chosen: Iterable[str], model: str | None) -> dict[str, str]:
    """Gather choices such as ``causal=half`` by what was chosen; ``model`` is of model FLOP.

    Pairs of queries and keys that a rectangle leaves out at its top or bottom are not counted
    either: with that said apart, causal attention is ``half`` wherever it is.
    """
    found: dict[str, set[str]] = {}
    for choice in chosen:
        name, _, value = choice.partition("=")
        if name == "causal" and value != "half":
            found.setdefault("causal_corner", set()).add(value)
            value = "half"
        found.setdefault(_NAMES.get(name, name), set()).add(value)
    if model:
        found["model_flop"] = {model}
    return {name: ", ".join(sorted(values)) for name, values in sorted(found.items())}
