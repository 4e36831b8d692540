"""FLOP that the model needs on this rank: counted once, on a step that is not recorded.

By the formulas that count traces (:mod:`traceparse.work`), so that both agree; what torch's own
``FlopCounterMode`` gets wrong or leaves out is right here. Recomputation is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from traceparse.capture.said import in_words
from traceparse.errors import CaptureError

__all__ = ["FlopCounter"]

_TYPES = {  # torch's types, as its profiler writes them
    "float64": "double",
    "float32": "float",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e4m3fnuz": "c10::Float8_e4m3fnuz",
    "float8_e5m2": "c10::Float8_e5m2",
    "float8_e5m2fnuz": "c10::Float8_e5m2fnuz",
    "int64": "long int",
    "int32": "int",
    "int8": "signed char",
    "uint8": "unsigned char",
}


class FlopCounter:
    """Counts what runs between :meth:`begin` and :meth:`stop`, on all threads of autograd.

    Every operator of that step goes through Python, which makes it slow on a host-bound job;
    its results stay what they are.
    """

    def __init__(self) -> None:
        self._flop = 0
        self._repeated_flop = 0  # in backward, while gradients are recorded
        self._unknown: dict[str, str] = {}
        self._mode: Any = None

    def begin(self) -> None:
        """Count from now on.

        Raises
        ------
        CaptureError
            Something in the job is compiled, and would be compiled again without the counter's
            operators, or run without being compiled.
        """
        _refuse_compiled()
        self._mode = _mode(self)
        self._mode.__enter__()

    def stop(self) -> None:
        """Count no more."""
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)

    def flop(self, *, checkpointing: bool) -> int:
        """Return the FLOP of forward and backward in what was counted.

        Raises
        ------
        CaptureError
            Some operator cannot be counted, or none was.
        """
        _refuse_compiled()  # in this very step
        if self._unknown:
            name, reason = next(iter(self._unknown.items()))
            raise CaptureError(f"{name} cannot be counted: {reason}")
        # Without checkpoints, gradients of gradients are taken there.
        flop = self._flop + (0 if checkpointing else self._repeated_flop)
        if not flop:
            raise CaptureError("no matrix operation ran in the step that was counted")
        return flop

    def count(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:  # noqa: ANN401
        """Count one call of an operator of torch, or of an operator that runs functions."""
        schema = getattr(function, "_schema", None)
        if schema is None:
            self._unknown[str(function)] = "it runs functions, and what they call is not seen"
            return
        try:
            self._count(schema, args, kwargs)
        except Exception as error:  # noqa: BLE001 - inside the job's step: the count is lost
            self._unknown[str(function)] = in_words(error)

    def is_made_of_others(self, function: Any) -> bool:  # noqa: ANN401 - torch's own
        """Say whether an operator without a formula calls others, as some below autograd do."""
        try:
            return _is_composite(function)
        except Exception as error:  # noqa: BLE001 - inside the job's step: the count is lost
            self._unknown[str(function)] = in_words(error)
            return False

    def _count(self, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:  # noqa: ANN401
        from traceparse.work import work_of

        torch = import_module("torch")
        call = _call(torch, schema, args, kwargs)
        work = call and work_of(call)
        if not work:
            return
        if work.flop is None or work.recompute_flop is None:
            self._unknown[schema.name] = work.unknown or "its FLOP are not known"
            return
        flop = work.flop - work.recompute_flop
        in_backward = torch._C._current_graph_task_id() != -1
        if in_backward and torch.is_grad_enabled():
            self._repeated_flop += flop
        else:
            self._flop += flop


def _is_composite(function: Any) -> bool:  # noqa: ANN401 - torch's own
    from traceparse.work import formulas

    has_kernel = import_module("torch")._C._dispatch_has_kernel_for_dispatch_key
    name = str(getattr(getattr(function, "_schema", None), "name", ""))
    return (
        name.startswith("aten::")
        and name not in formulas()
        and has_kernel(function.name(), "CompositeImplicitAutograd")
    )


def _refuse_compiled() -> None:
    from traceparse.capture.models import is_compiled

    if is_compiled(()):
        raise CaptureError("torch.compile is used, and what it compiles is not counted")


def _mode(counter: FlopCounter) -> Any:  # noqa: ANN401 - a class of torch's
    torch = import_module("torch")
    modes = import_module("torch.utils._python_dispatch")
    plain = (torch.Tensor, torch.nn.Parameter)

    class Counting(modes.TorchDispatchMode):  # type: ignore[misc, name-defined]
        supports_higher_order_operators = True  # without, they fail

        @classmethod
        def ignore_compile_internals(cls):  # type: ignore[no-untyped-def]  # noqa: ANN206
            return True  # without, what is compiled in this very step would fail or not be

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]  # noqa: ANN204, ANN401
            # Where only shapes are asked for, as for a tensor that is spread over ranks.
            if any(each.__name__ == "FakeTensor" for each in types):
                return func(*args, **(kwargs or {}))
            # What it is made of comes back here, of one that is spread the part of this rank.
            if any(each not in plain for each in types):
                return NotImplemented
            if counter.is_made_of_others(func):
                with self:
                    return func.decompose(*args, **(kwargs or {}))
            result = func(*args, **(kwargs or {}))
            counter.count(func, args, kwargs or {})
            return result

    return Counting()


def _call(torch: Any, schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return the call as the profiler would have recorded it; ``None`` if it has no formula."""
    from traceparse.work import Call, formulas

    if schema.name not in formulas():
        return None
    values = [
        args[place] if place < len(args) else kwargs.get(argument.name, argument.default_value)
        for place, argument in enumerate(schema.arguments)
    ]
    return Call(
        schema.name,
        [_dims(torch, value) for value in values],
        [_type(torch, value) for value in values],
        [_concrete(torch, value) for value in values],
    )


def _is_tensors(torch: Any, value: object) -> bool:  # noqa: ANN401
    return isinstance(value, list | tuple) and any(isinstance(x, torch.Tensor) for x in value)


def _dims(torch: Any, value: Any) -> list[Any]:  # noqa: ANN401
    if isinstance(value, torch.Tensor):
        return [int(size) for size in value.shape]
    return [_dims(torch, each) for each in value] if _is_tensors(torch, value) else []


def _type(torch: Any, value: Any) -> str:  # noqa: ANN401
    if not isinstance(value, torch.Tensor):
        return ""
    name = str(value.dtype).removeprefix("torch.")
    return _TYPES.get(name, name)


def _concrete(torch: Any, value: Any) -> str:  # noqa: ANN401
    if value is None or isinstance(value, torch.Tensor) or _is_tensors(torch, value):
        return ""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)
