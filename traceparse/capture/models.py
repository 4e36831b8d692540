"""What does the job train: how many parameters, of which type, on how much data a step?"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from itertools import compress
from typing import TYPE_CHECKING, Any

from traceparse.capture.said import Said

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["Look", "is_compiled"]

_MOST_MESHES = 16


@dataclass
class _Seen:
    """What one model was given in the step."""

    model: nn.Module
    samples: int = 0
    tokens: int = 0
    autocast_dtype: str | None = None
    depth: int = 0  # of calls inside one another

    def facts(self) -> dict[str, Any]:
        return {
            "autocast_dtype": self.autocast_dtype,
            "samples_per_rank_step": self.samples or None,
            "tokens_per_rank_step": self.tokens or None,
        }


class Look:
    """A look at one step in which nothing is recorded.

    The models are those that are called in it: ``model``, or else whatever modules there are
    that no other module holds.
    """

    def __init__(self, said: Said, model: nn.Module | None = None) -> None:
        self._said = said
        self._given = model
        self._torch = import_module("torch")
        self._seen: dict[int, _Seen] = {}
        self._roots: list[nn.Module] = []
        self._hooks: list[Any] = []
        self._checkpoints = Checkpoints()

    def begin(self) -> None:
        """See from now on what the models are given."""
        self._roots = [self._given] if self._given is not None else list(_roots())
        if is_compiled(self._roots):
            return  # what is compiled may be compiled again because of a hook
        for each in self._roots:
            self._hooks += [
                each.register_forward_pre_hook(self._see, with_kwargs=True),
                each.register_forward_hook(self._see_end, always_call=True),
            ]
        self._checkpoints.watch()

    def end(self) -> dict[str, Any]:
        """Take the hooks away again, and return what was seen."""
        with ExitStack() as every:  # each, even where another fails
            every.callback(self._checkpoints.leave)
            for hook in self._hooks:
                every.callback(hook.remove)
        models = [seen.model for seen in self._seen.values()]
        # Without a hook, or called around it, all that could have been called.
        models = models or [each for each in self._roots if _is_trained(each)]
        if not models:
            return {}
        facts = _parameters(models)
        largest = max(models, key=lambda model: _parameters([model])["num_params"])
        seen = self._seen.get(id(largest))
        facts |= {
            **(seen.facts() if seen else {}),
            "checkpointing": self._is_checkpointing(models),
            "compiled": is_compiled(models),
            "meshes": _meshes(models) or None,
        }
        return {name: value for name, value in facts.items() if value is not None}

    def _is_checkpointing(self, models: Sequence[nn.Module]) -> bool | None:
        if self._checkpoints.seen or any(map(_is_checkpoint, _modules(models))):
            return True
        return False if self._checkpoints.is_watching else None

    def _see(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._torch.compiler.is_compiling():
            return  # then it is compiled as if this were not here
        with self._said.training_goes_on("facts are missing (what the model is given)"):
            seen = self._seen.setdefault(id(module), _Seen(module))
            seen.depth += 1
            if seen.depth == 1:  # it may call itself, as Lightning's strategies do
                _see_call(seen, args, kwargs)

    def _see_end(self, module: nn.Module, _args: object, _output: object) -> None:
        if self._torch.compiler.is_compiling():
            return  # as above
        if id(module) in self._seen:
            self._seen[id(module)].depth -= 1


def _see_call(seen: _Seen, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    torch = import_module("torch")
    if not torch.is_grad_enabled():
        return  # an evaluation, or a model that teaches
    inputs = [kwargs.get("input_ids"), *args, *kwargs.values()]
    batch = next((each for each in inputs if _is_batch(torch, each)), None)
    if batch is None:
        return
    seen.samples += batch.shape[0]
    # Numbers of words stand in two dimensions, sample and position.
    if batch.ndim == 2 and not batch.is_floating_point():
        seen.tokens += batch.numel()
    device = batch.device.type
    if torch.is_autocast_enabled(device):
        seen.autocast_dtype = _dtype_name(torch.get_autocast_dtype(device))


class Checkpoints:
    """Tells whether activations are checkpointed while it watches."""

    _REENTRANT, _OTHER = "CheckpointFunction", "_checkpoint_without_reentrant_generator"

    def __init__(self) -> None:
        self.seen = False
        self.is_watching = False  #: or has been
        self._module: Any = None
        self._originals: dict[str, Any] = {}

    def watch(self) -> None:
        """Note every checkpoint from now on."""
        self.is_watching = True
        self._module = checkpoint = import_module("torch.utils.checkpoint")
        names = (self._REENTRANT, self._OTHER)
        self._originals = {name: getattr(checkpoint, name) for name in names}
        reentrant, other = self._originals.values()

        def noted(function: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(function)
            def noting(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - torch's own
                self.seen = True
                return function(*args, **kwargs)

            return noting

        class Noting(reentrant):  # type: ignore[misc, valid-type]
            apply = staticmethod(noted(reentrant.apply))

        setattr(checkpoint, self._REENTRANT, Noting)
        setattr(checkpoint, self._OTHER, noted(other))

    def leave(self) -> None:
        """Put back what was there."""
        for name, original in self._originals.items():
            setattr(self._module, name, original)
        self._originals = {}


def _is_batch(torch: Any, value: object) -> bool:  # noqa: ANN401 - the module
    return isinstance(value, torch.Tensor) and value.ndim > 0


def _roots() -> Iterator[nn.Module]:
    """Yield modules with parameters that no other module holds."""
    module_type = import_module("torch").nn.Module
    # By type and not by isinstance, which asks the objects themselves, and some answer oddly.
    # Without a loop in Python, as there may be millions.
    objects = gc.get_objects()
    types = {each for each in set(map(type, objects)) if issubclass(each, module_type)}
    every: list[nn.Module] = [*compress(objects, map(types.__contains__, map(type, objects)))]
    del objects
    held = {id(child) for each in every for child in each.__dict__.get("_modules", {}).values()}
    for each in every:
        if id(each) not in held and next(each.parameters(), None) is not None:
            yield each


def _is_trained(model: nn.Module) -> bool:
    return any(param.requires_grad for param in model.parameters())


def _modules(models: Iterable[nn.Module]) -> Iterator[nn.Module]:
    for model in models:
        yield from model.modules()


def _parameters(models: Sequence[nn.Module]) -> dict[str, Any]:
    """Count parameters, each once; of one that is spread over ranks, the whole."""
    embedding_type = import_module("torch").nn.Embedding
    every = {id(each): each for model in models for each in model.parameters()}
    embedded = {
        id(module.weight): module.weight
        for module in _modules(models)
        if isinstance(module, embedding_type)
    }
    dtypes: Counter[str] = Counter()
    for each in every.values():
        dtypes[_dtype_name(each.dtype)] += _size(each)
    return {
        "num_params": sum(map(_size, every.values())),
        "num_trainable_params": sum(
            _size(each) for each in every.values() if each.requires_grad
        ),
        "num_embedding_params": sum(map(_size, embedded.values())),
        "param_dtypes": dict(dtypes),
    }


def _size(param: Tensor) -> int:
    # FSDP of torch 1 flattens parameters; what it holds here is a part of one.
    whole = getattr(param, "_unpadded_unsharded_size", None)
    return int(whole.numel() if whole is not None else param.numel())


def _dtype_name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


def _is_checkpoint(module: nn.Module) -> bool:
    wrappers = sys.modules.get("torch.distributed.algorithms._checkpoint.checkpoint_wrapper")
    if wrappers is not None and isinstance(module, wrappers.CheckpointWrapper):
        return True
    return getattr(module, "gradient_checkpointing", False) is True


def is_compiled(models: Sequence[nn.Module]) -> bool:
    """Did torch.compile make anything that runs?"""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        counters = dynamo.counters  # with fullgraph=True only the graphs are counted
        if counters["frames"]["ok"] or counters["stats"]["unique_graphs"]:
            return True
    return any(
        type(each).__name__ == "OptimizedModule" or getattr(each, "_compiled_call_impl", None)
        for each in _modules(models)
    )


def _meshes(models: Sequence[nn.Module]) -> list[dict[str, Any]]:
    """Return the meshes that parameters are spread over, each once."""
    found: dict[str, dict[str, Any]] = {}
    for model in models:
        for param in model.parameters():
            mesh = getattr(param, "device_mesh", None)
            if mesh is not None and len(found) < _MOST_MESHES:
                names = list(mesh.mesh_dim_names or ())
                one = {"names": names, "shape": list(mesh.mesh.shape)}
                found.setdefault(repr(one), one)
    return list(found.values())
