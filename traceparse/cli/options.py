"""What every command that reads traces takes of what traces do not tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_type_hints

import typer

from traceparse.errors import UsageError

__all__ = [
    "Accelerator",
    "Ceiling",
    "Convention",
    "Format",
    "Full",
    "Model",
    "ModelFlop",
    "Params",
    "Peak",
    "Price",
    "Recompute",
    "Seq",
    "Tokens",
    "Told",
    "telling",
]

_PANEL = "What the traces do not tell"
_MEASURED = "measured"


def _option(metavar: str, words: str) -> Any:  # noqa: ANN401 - typer's own
    return typer.Option(metavar=metavar, help=words, rich_help_panel=_PANEL)


Accelerator: TypeAlias = Annotated[
    str | None,
    _option("NAME|FILE.toml", "What the job ran on: a name of the table, or more entries."),
]
Peak: TypeAlias = Annotated[
    list[str] | None,
    _option("DTYPE=TFLOPS", "A peak that overrides the table; or `measured`, of this host."),
]
Ceiling: TypeAlias = Annotated[
    str, _option("spec|mamf", "Measure against the data sheet, or the fastest measured matmul.")
]
ModelFlop: TypeAlias = Annotated[
    float | None, _option("F", "FLOP the model needs for a step of the whole job.")
]
Params: TypeAlias = Annotated[
    float | None, _option("N", "Parameters of the model: a step is 6ND.")
]
Tokens: TypeAlias = Annotated[float | None, _option("D", "Tokens of a step of the whole job.")]
Recompute: TypeAlias = Annotated[
    str | None, _option("full", "A step executes 8ND, where no trace tells what it did.")
]
Model: TypeAlias = Annotated[
    Path | None, _option("CONFIG", "Configuration of the model, to count its FLOP from.")
]
Convention: TypeAlias = Annotated[
    str | None, _option("NAME", "Convention of that count, as `traceparse mfu` has them.")
]
Seq: TypeAlias = Annotated[
    int | None, _option("T", "Sequence length, where the configuration has another or none.")
]
Price: TypeAlias = Annotated[float | None, _option("USD", "USD per GPU-hour.")]


Format: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME,NAME",
        help="What --out writes: html, json, md, parquet (all of them by default), csv.",
    ),
]
Full: TypeAlias = Annotated[
    bool, typer.Option("--full", help="Print all there is, not only what fits a screen.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was given on the command line, as words and numbers."""

    accelerator: str | None = None
    peak: list[str] | None = None
    ceiling: str = "spec"
    model_flop_per_step: float | None = None
    params: float | None = None
    tokens_per_step: float | None = None
    recompute: str | None = None
    model: Path | None = None
    convention: str | None = None
    seq: int | None = None
    price: float | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of :func:`traceparse.analyze`.

        Raises
        ------
        UsageError
            Words contradict each other or cannot be understood.
        InputError
            The model's configuration cannot be used.
        """
        flop, convention = self._model_flop()
        return {
            "accelerator": self.accelerator,
            "peak": self._peak(),
            "ceiling": self.ceiling,
            "model_flop_per_step": flop,
            "convention": convention,
            "params": self.params,
            "tokens_per_step": self.tokens_per_step,
            "recompute": self.recompute,
            "price": self.price,
        }

    def _peak(self) -> dict[str, float] | str | None:
        given = self.peak or []
        if _MEASURED in given:
            if len(given) > 1:
                raise UsageError("--peak measured stands alone: it measures all that matter")
            return _MEASURED
        from traceparse.work import parse_peak

        peaks: dict[str, float] = {}
        for text in given:
            dtype, rate = parse_peak(text)
            if dtype in peaks:
                raise UsageError(f"--peak {text!r}: the peak of {dtype} is given twice")
            peaks[dtype] = rate
        return peaks or None

    def _model_flop(self) -> tuple[float | None, str | None]:
        if self.model is None:
            if self.convention is not None or self.seq is not None:
                raise UsageError("--convention and --seq say how to read --model; give it too")
            return self.model_flop_per_step, None
        if self.model_flop_per_step is not None or self.params is not None:
            raise UsageError(
                "--model, --model-flop-per-step and --params all say what the model needs; "
                "give one of them"
            )
        if self.tokens_per_step is None:
            raise UsageError("--model needs --tokens-per-step: its FLOP are those of a token")
        from traceparse.work.conventions import (
            counts_of,
            default_convention,
            flop_per_token,
        )
        from traceparse.work.model_file import load_model

        model = load_model(self.model)
        convention = self.convention or default_convention(model)
        each = flop_per_token(model, convention, self.seq or model.seq)
        words = f"{convention} ({counts_of(model, convention)})"
        return float(each * self.tokens_per_step), words


_Result = TypeVar("_Result")
_OPTIONS: Final[Mapping[str, Any]] = {
    "accelerator": Accelerator,
    "peak": Peak,
    "ceiling": Ceiling,
    "model_flop_per_step": ModelFlop,
    "params": Params,
    "tokens_per_step": Tokens,
    "recompute": Recompute,
    "model": Model,
    "convention": Convention,
    "seq": Seq,
    "price": Price,
}


def telling(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Give a command all of these options, in the place of its one argument ``told``."""
    hints = get_type_hints(command, include_extras=True)
    own = signature(command).parameters.values()
    plain = Told()
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=getattr(plain, name), annotation=kind)
        for name, kind in _OPTIONS.items()
    ]
    parameters = [
        option
        for one in own
        for option in (
            options if one.name == "told" else [one.replace(annotation=hints[one.name])]
        )
    ]

    @wraps(command)
    def told_all(**given: Any) -> _Result:  # noqa: ANN401 - of each command's own types
        told = Told(**{name: given.pop(name) for name in _OPTIONS})
        return command(told=told, **given)

    wrapped: Any = told_all  # what typer reads of a command
    wrapped.__signature__ = Signature(parameters)
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    return told_all
