"""A model from a file: a Hugging Face ``config.json``, or a TOML or JSON in our own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from traceparse.errors import InputError, one_line
from traceparse.work.huggingface import is_huggingface, model_of_config
from traceparse.work.model import Model
from traceparse.work.parameters import derive
from traceparse.work.sizes import Sizes

__all__ = ["load_model"]

_LARGEST = 4_000_000  # bytes: a configuration with 21,000 labels has 1 MB
_KNOWN = tuple(field.name for field in fields(Model) if field.name != "derived")
_FLAGS = ("gated_mlp", "tied_embedding", "is_causal")
_MAY_BE_0 = ("embedding_params", "position_params", "experts", "shared_ffn", "dense_layers")


def load_model(path: Path) -> Model:
    """Read a model's sizes; what the file does not say and follows from it is derived.

    Raises
    ------
    InputError
        The file cannot be read, is neither JSON nor TOML, holds a number that is no size, a
        key that is not known (in our own words), or an architecture whose shape is not known.
    """
    config = _read(path)
    sizes = Sizes(path, config)
    model = model_of_config(sizes) if is_huggingface(config) else derive(_own(sizes))
    if contradiction := _contradiction(model):
        raise InputError(f"{path}: {contradiction}; correct one of them")
    return model


def _read(path: Path) -> Mapping[str, Any]:
    endings = {".json": msgspec.json.decode, ".toml": msgspec.toml.decode}
    decode = endings.get(path.suffix.lower())
    if decode is None:
        raise InputError(
            f"{path}: neither .json nor .toml; give a Hugging Face config.json, or a file that "
            "says layers, hidden, heads, ffn, vocab, gated_mlp and tied_embedding, or params"
        )
    try:
        if not path.is_file():
            what = "no file" if path.exists() else "no such file"
            raise InputError(f"{path}: {what}; give the file itself, such as config.json")
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise InputError(
                f"{path}: over {_LARGEST:,} bytes, so no configuration; give the model's own"
            )
        config = decode(text)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{path}: {reason}; give a file that can be read") from error
    except (ValueError, RecursionError) as error:  # also what msgspec and tomllib raise
        kind = path.suffix[1:].upper()
        raise InputError(f"{path}: no {kind}: {one_line(error)}; correct it") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: no table of names and values; see `traceparse mfu --help`")
    return config


def _own(sizes: Sizes) -> Model:
    if unknown := [name for name in sizes.config if name not in _KNOWN]:
        raise InputError(
            f"{sizes.path}: {unknown[0][:60]!r} is no field of a model (a config.json of "
            f"Hugging Face has a model_type); known are {', '.join(_KNOWN)}"
        )
    given: dict[str, Any] = {}
    for name in sizes.config:
        if name in _FLAGS:
            given[name] = sizes.flag(name)
        else:
            given[name] = sizes.whole(name, least=0 if name in _MAY_BE_0 else 1)
    return Model(**given)


def _contradiction(model: Model) -> str | None:
    """Say which fields cannot both be right."""
    ordered = (
        ("dense_layers", "layers"),
        ("experts_per_token", "experts"),
        ("rope_head_dim", "head_dim"),
        ("position_params", "embedding_params"),
        ("embedding_params", "params"),
        ("active_params", "params"),
        ("kv_heads", "heads"),
    )
    for lower, upper in ordered:
        less, more = getattr(model, lower), getattr(model, upper)
        if less is not None and more is not None and less > more:
            return f"{lower} is {less:,}, which is more than {upper}, {more:,}"
    if model.heads and model.kv_heads and model.heads % model.kv_heads:
        return f"heads is {model.heads:,}, no multiple of kv_heads, {model.kv_heads:,}"
    if model.is_latent and model.rope_head_dim is None:
        return "kv_lora_rank is given and rope_head_dim is not"
    return None
