"""What can an accelerator do at most? The table of peaks, validated, each with its source.

Peaks are dense, with fp32 accumulation, of one device as torch sees it, at the vendor's boost
clock (``data/accelerators.toml`` says the rest). What the table does not hold is unknown: there
is no default accelerator. Which entry a device is, :mod:`traceparse.work.identify` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, get_args

import msgspec

from traceparse.errors import InputError, UsageError, one_line

__all__ = [
    "DTYPES",
    "Accelerator",
    "Confidence",
    "Dtype",
    "Formula",
    "Link",
    "Measured",
    "accelerators",
    "find",
    "find_one",
    "generic_names",
    "load_file",
    "parse_peak",
]

Dtype: TypeAlias = Literal[
    "fp64", "fp64_tensor", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"
]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
Confidence: TypeAlias = Literal["high", "medium", "low", "unresolved", "given"]

_TERA = 1e12
_GIGA = 1e9
_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(gt=0)]
_Rate: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]
_Rates: TypeAlias = dict[Dtype, _Rate]


class _Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all parts of an entry have in common: exact field names, and no changes."""


class Link(_Facts, frozen=True):
    """What joins devices, and how fast; busbw of nccl compares with one direction."""

    kind: _Text
    gb_per_s_per_direction: _Rate | None = None
    gb_per_s_bidirectional: _Rate | None = None

    def __post_init__(self) -> None:
        """See that both directions together are twice the one."""
        one, both = self.gb_per_s_per_direction, self.gb_per_s_bidirectional
        if (one is None) != (both is None) or (
            one and both and not math.isclose(2 * one, both)
        ):
            raise ValueError("gb_per_s_bidirectional must be twice gb_per_s_per_direction")


class Measured(_Facts, frozen=True):
    """A matrix product, as fast as it ever ran; ``is_ceiling``: for ``--ceiling mamf``."""

    dtype: Dtype
    tflop_per_s: _Rate
    source: _Text
    shape: str | None = None
    torch: str | None = None
    note: str | None = None
    is_ceiling: bool = True


class Formula(_Facts, frozen=True):
    """What the dense 16-bit peak follows from, together with the number of SMs."""

    clock_mhz: _Count
    flop_per_clock_per_sm: _Count


class Accelerator(_Facts, frozen=True):
    """One entry of ``data/accelerators.toml``, or of a file that ``--accelerator`` names."""

    id: _Text
    names: Annotated[list[_Text], msgspec.Meta(min_length=1)]
    dense_tflop_per_s: _Rates
    vendor: str | None = None
    arch: str | None = None
    pattern: _Text | None = None
    not_pattern: _Text | None = None
    compute_capability: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+$")] | None = None
    warp_size: _Count | None = None
    sm_count: _Count | None = None
    device_is: str = "device"
    memory_gb: list[_Count] = []
    hbm_gb_per_s: list[_Rate] = []
    link: Link | None = None
    fp16_accumulate_tflop_per_s: _Rates = {}
    formula: Formula | None = None
    measured: list[Measured] = []
    confidence: Confidence = "given"
    needs_user_override: bool = False
    sources: list[_Text] = []
    notes: list[_Text] = []

    def __post_init__(self) -> None:
        """See that patterns compile and that bandwidths go with sizes of memory."""
        for pattern in (self.pattern, self.not_pattern):
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise ValueError(f"pattern {pattern!r}: {error}") from error
        if len(self.hbm_gb_per_s) not in {0, 1, len(self.memory_gb)}:
            raise ValueError("hbm_gb_per_s must be one number, or one for each of memory_gb")

    @property
    def peak_flop_per_s(self) -> dict[Dtype, float]:
        """Dense peaks by dtype, in FLOP/s (int8: operations a second)."""
        return {dtype: rate * _TERA for dtype, rate in self.dense_tflop_per_s.items()}

    @property
    def mamf_flop_per_s(self) -> dict[Dtype, float]:
        """Maximum achieved matmul by dtype, in FLOP/s: the ceiling of ``--ceiling mamf``."""
        return {m.dtype: m.tflop_per_s * _TERA for m in self.measured if m.is_ceiling}

    def hbm_bytes_per_s(self, memory_gb: int | None = None) -> float | None:
        """Return the bandwidth of device memory, which may depend on how much there is."""
        rates = set(self.hbm_gb_per_s)
        if len(rates) > 1 and memory_gb in self.memory_gb:
            rates = {self.hbm_gb_per_s[self.memory_gb.index(memory_gb)]}
        return rates.pop() * _GIGA if len(rates) == 1 else None

    def is_called(self, name: str) -> bool:
        """Say whether the pattern of names fits."""
        return bool(
            self.pattern
            and re.search(self.pattern, name)
            and not (self.not_pattern and re.search(self.not_pattern, name))
        )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    accelerator: Annotated[list[Accelerator], msgspec.Meta(min_length=1)]
    generic_names: list[str] = []

    def __post_init__(self) -> None:
        """See that an identifier names one entry."""
        ids = [entry.id for entry in self.accelerator]
        if twice := sorted({found for found in ids if ids.count(found) > 1}):
            raise ValueError(f"the id {twice[0]!r} is given twice")


@cache
def _table() -> _File:
    text = files("traceparse").joinpath("data", "accelerators.toml").read_bytes()
    return msgspec.toml.decode(text, type=_File)


def accelerators() -> tuple[Accelerator, ...]:
    """Return the accelerators that traceparse knows, validated, in the order of matching."""
    return tuple(_table().accelerator)


def generic_names() -> frozenset[str]:
    """Return the names that devices report and that say nothing."""
    return frozenset(_table().generic_names)


def load_file(path: Path) -> tuple[Accelerator, ...]:
    """Read the accelerators of a TOML file: what ``--accelerator FILE.toml`` names.

    Raises
    ------
    InputError
        The file cannot be read, is no TOML, or is not of the form of ``accelerators.toml``.
    """
    how = (
        "an entry is [[accelerator]] with id, names and dense_tflop_per_s, "
        'such as id = "my-gpu", names = ["My GPU"], dense_tflop_per_s = { bf16 = 100.0 }'
    )
    try:
        return tuple(msgspec.toml.decode(path.read_text("utf-8"), type=_File).accelerator)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"{path}: {reason}; give --accelerator a TOML file") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text, so no TOML; {how}") from error
    except (ValueError, RecursionError) as error:  # what msgspec and tomllib raise
        raise InputError(f"{path}: {one_line(error)}; {how}") from error


def parse_peak(text: str) -> tuple[Dtype, float]:
    """Read ``bf16=989`` as a dtype and its peak in FLOP/s: what ``--peak`` gives, in TFLOP/s.

    Raises
    ------
    UsageError
        The dtype is none of ours, or the number is none or not above zero.
    """
    name, _, number = (part.strip() for part in text.partition("="))
    dtype = next((dtype for dtype in DTYPES if dtype == name), None)
    if dtype is None:
        raise UsageError(
            f"--peak {text!r}: give a dtype and TFLOP/s, such as bf16=989; "
            f"dtypes are {', '.join(DTYPES)}"
        )
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", number) or not float(number):
        raise UsageError(
            f"--peak {text!r}: {number!r} is no number of TFLOP/s above zero; "
            f"write it such as {dtype}=989.4"
        )
    return dtype, float(number) * _TERA


def find(text: str, among: Iterable[Accelerator] | None = None) -> tuple[Accelerator, ...]:
    """Return the accelerators that a text names, in whatever case.

    Those that are called exactly so; if none is, those with a word in identifier or name that
    begins so (``H200`` is not GH200); if none has, those that contain it at all.

    Raises
    ------
    InputError
        There is none; the message names the nearest ones.
    """
    known = tuple(accelerators() if among is None else among)
    wanted = " ".join(text.split()).casefold()
    called = {
        entry.id: [word.casefold() for word in (entry.id, *entry.names)] for entry in known
    }
    part = re.escape(wanted)
    for pattern in (rf"^{part}$", rf"(?<![a-z0-9]){part}", part):
        found = tuple(
            entry
            for entry in known
            if any(re.search(pattern, word) for word in called[entry.id])
        )
        if found and wanted:
            return found
    raise InputError(f"no accelerator is called {text!r}; {_nearest(wanted, called)}")


def find_one(text: str) -> Accelerator:
    """Return the one accelerator that ``--accelerator`` names.

    Raises
    ------
    UsageError
        No accelerator is called so, or several are; the message names them.
    """
    try:
        found = find(text)
    except InputError as error:
        raise UsageError(f"--accelerator {text!r}: {error}") from error
    if len(found) > 1:
        ids = ", ".join(entry.id for entry in found)
        raise UsageError(f"--accelerator {text!r}: that may be {ids}; give the one that it is")
    return found[0]


def _nearest(wanted: str, called: dict[str, list[str]]) -> str:
    """Name the entries that are called most alike."""
    owners: dict[str, dict[str, None]] = {}
    for owner, names in called.items():
        for word in (part for name in names for part in (name, *re.split(r"[ -]", name))):
            owners.setdefault(word, {})[owner] = None
    alike = get_close_matches(wanted[:60], owners, n=5, cutoff=0.5)
    ids = list(dict.fromkeys(owner for word in alike for owner in owners[word]))[:5]
    if not ids:
        return "`traceparse accelerators` lists those that are known"
    return f"nearest are {', '.join(ids)}"
