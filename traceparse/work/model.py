"""What of a transformer decides how much work a token is: its sizes, as far as they are known.

:func:`traceparse.work.parameters.derive` fills in what follows from the rest, and
:func:`traceparse.work.model_file.load_model` reads all of it from a file.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The sizes of a transformer; ``None`` is unknown.

    ``head_dim`` is the size of a query and a key, ``v_head_dim`` that of a value where it
    differs (multi-head latent attention). Latent attention is what has a ``kv_lora_rank``;
    ``rope_head_dim`` is then the part of ``head_dim`` that all heads share. ``ffn`` is the
    inner width of a dense layer, ``moe_ffn`` that of one routed expert, ``shared_ffn`` that of
    all shared experts of a layer together; the first ``dense_layers`` have no experts.
    ``embedding_params`` are those that are only looked up: a tied matrix is none of them, as
    the head multiplies by it. ``position_params`` are those of learned positions, and are
    among them. ``active_params`` are those that a token meets, of a model with experts.
    """

    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    seq: int | None = None
    params: int | None = None
    embedding_params: int | None = None
    position_params: int = 0
    active_params: int | None = None
    gated_mlp: bool | None = None
    tied_embedding: bool | None = None
    is_causal: bool = True
    experts: int = 0
    experts_per_token: int | None = None
    moe_ffn: int | None = None
    shared_ffn: int = 0
    dense_layers: int = 0
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    rope_head_dim: int | None = None
    derived: tuple[str, ...] = ()

    @property
    def is_latent(self) -> bool:
        """Does attention go through a compressed key and value (MLA)?"""
        return self.kv_lora_rank is not None

    def is_given(self, field: str) -> bool:
        """Say whether a field is known without having been derived from others."""
        known = getattr(self, field) is not None
        return known and not any(text.startswith(f"{field} = ") for text in self.derived)

    def missing(self, *fields: str) -> list[str]:
        """List those of the fields that are not known."""
        return [field for field in fields if getattr(self, field) is None]

    def numbers(self, *fields: str) -> tuple[int, ...]:
        """Return fields that the caller has seen to be known."""
        values = [getattr(self, field) for field in fields]
        assert not self.missing(*fields), fields
        return tuple(map(int, values))

    @property
    def num_moe_layers(self) -> int:
        """How many layers have experts?"""
        (layers,) = self.numbers("layers")
        return layers - self.dense_layers if self.experts else 0

    @property
    def attention_width(self) -> int:
        """Return what all heads together take of queries and of values: twice H times Q."""
        heads, head_dim = self.numbers("heads", "head_dim")
        return heads * (head_dim + (self.v_head_dim or head_dim))
