"""Which accelerator is this device? By its name, or by what it is made of; never by likeness.

Exact name over all entries, then patterns of names in the table's order, then compute
capability, warp size, SM count and memory together: gfx90a reports compute capability 9.0 as
Hopper does, and only the warp size tells them apart. Whatever contradicts itself is unknown:
achieved FLOP/s can be shown for it, HFU and MFU cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import msgspec

from traceparse.units import format_number_of
from traceparse.work.accelerators import (
    Accelerator,
    Confidence,
    Dtype,
    Link,
    accelerators,
    generic_names,
)
from traceparse.work.device import Device, read_device

__all__ = ["HOW_TO_ADD", "How", "Identified", "identify"]

How: TypeAlias = Literal["name", "pattern", "properties"]
_Memory: TypeAlias = Literal["fits", "smaller", "larger", "unknown"]

HOW_TO_ADD = (
    "achieved FLOP/s are shown, HFU and MFU are not: describe it with --accelerator FILE.toml, "
    "or give its peak with --peak bf16=TFLOPS"
)

_GIB = 1 << 30
# Vendors name decimal or binary gigabytes, and ECC takes up to 1/16 of them away
_LEAST, _MOST = 0.90, 1.02
_ALIKE = 1.001  # peaks differ as much between roundings of one data sheet
_SLICES = (
    8  # of memory, with their share of its bandwidth: NVIDIA MIG User Guide, "Terminology"
)
_SURE: tuple[Confidence, ...] = ("unresolved", "low", "medium", "high", "given")


@dataclass(frozen=True, slots=True)
class Identified:
    """What a device is and can do, how that was found, and what is doubtful about it.

    ``accelerator`` is ``None`` where that is unknown, and ``doubts`` says why. ``scale`` is the
    share of it that a partition has; the numbers below are those of the partition.
    """

    accelerator: Accelerator | None
    how: How | None = None
    confidence: Confidence | None = None
    scale: float = 1.0
    hbm_bytes_per_s: float | None = None
    doubts: tuple[str, ...] = ()

    @property
    def id(self) -> str | None:
        """Identifier of the accelerator in the table."""
        return None if self.accelerator is None else self.accelerator.id

    @property
    def link(self) -> Link | None:
        """What joins such devices; a partition has no share of it that is known."""
        return None if self.accelerator is None or self.is_partition else self.accelerator.link

    @property
    def is_partition(self) -> bool:
        """Are the peaks partition-scaled?"""
        return self.scale != 1.0

    @property
    def peak_flop_per_s(self) -> dict[Dtype, float]:
        """Dense peaks by dtype, in FLOP/s; none where only the user can know them."""
        if self.accelerator is None or self.accelerator.needs_user_override:
            return {}
        peaks = self.accelerator.peak_flop_per_s
        return {dtype: peak * self.scale for dtype, peak in peaks.items()}

    @property
    def mamf_flop_per_s(self) -> dict[Dtype, float]:
        """Maximum achieved matmul by dtype, in FLOP/s; nobody measured partitions."""
        if self.accelerator is None or self.is_partition or not self.peak_flop_per_s:
            return {}
        return self.accelerator.mamf_flop_per_s


@dataclass(frozen=True, slots=True)
class _Found:
    """An entry, before it is compared with the size of the device."""

    accelerator: Accelerator
    how: How
    at_most: Confidence = "given"
    doubts: list[str] = field(default_factory=list)


def identify(
    properties: Mapping[str, object], known: Iterable[Accelerator] | None = None
) -> Identified:
    """Say which accelerator an entry of Kineto's ``deviceProperties`` is.

    Whatever is missing or odd in the entry counts as not told. ``known`` is the table, or what
    the user gave and then the table.
    """
    device = read_device(properties)
    entries = tuple(accelerators() if known is None else known)
    found = _by_name(device, entries) or _by_properties(device, entries)
    if isinstance(found, str):
        return _unknown(found)
    if odd := _contradiction(found.accelerator, device):
        return _unknown(odd)
    return _doubted(_compared(found, device))


def _unknown(reason: str) -> Identified:
    return Identified(None, doubts=(f"{reason}; {HOW_TO_ADD}",))


def _by_name(device: Device, known: Sequence[Accelerator]) -> _Found | None:
    if not device.name or device.name in generic_names():
        return None
    exact = [entry for entry in known if device.name in entry.names]
    if exact:  # AMD prints one name for MI250X and MI250
        fitting = [entry for entry in exact if entry.sm_count in {None, device.num_sms}]
        return _Found((fitting or exact)[0], "name")
    called = (entry for entry in known if entry.is_called(device.name))
    return next((_Found(entry, "pattern", "medium") for entry in called), None)


def _by_properties(device: Device, known: Sequence[Accelerator]) -> _Found | str:
    """Find what is made of the same; or say why not."""
    alike = [entry for entry in known if _is_made_alike(entry, device)]
    if not alike:
        words = device.words or "a device that tells neither its name nor its properties"
        return f"no accelerator in the table is this one: {words}"
    ids = _listed([entry.id for entry in alike])
    agreed = _agreed(alike, device)
    if not agreed.dense_tflop_per_s and not agreed.needs_user_override:
        return f"{device.words} fits {ids}, whose peaks differ"
    doubts = [
        f"found by its properties, those of {ids}: the name {device.name!r} tells nothing"
    ]
    if len(alike) > 1:
        doubts.append("only numbers in which these agree are used")
    is_nameless = not device.name or device.name in generic_names()
    return _Found(agreed, "properties", "medium" if is_nameless else "low", doubts)


def _is_made_alike(entry: Accelerator, device: Device) -> bool:
    told = (device.compute_capability, device.warp_size, device.num_sms)
    return (
        None not in told
        and told == (entry.compute_capability, entry.warp_size, entry.sm_count)
        and _memory(entry, device) == "fits"
    )


def _agreed(alike: Sequence[Accelerator], device: Device) -> Accelerator:
    """Reduce the first of several accelerators to the numbers that hold for all of them."""
    first = alike[0]
    if len(alike) == 1:
        return first
    peaks = {
        dtype: peak
        for dtype, peak in first.dense_tflop_per_s.items()
        if all(_is_near(peak, entry.dense_tflop_per_s.get(dtype)) for entry in alike)
    }
    bandwidths = {entry.hbm_bytes_per_s(_size(entry, device)) for entry in alike}
    bandwidth = bandwidths.pop() if len(bandwidths) == 1 else None
    return msgspec.structs.replace(
        first,
        dense_tflop_per_s=peaks,
        hbm_gb_per_s=[bandwidth / 1e9] if bandwidth else [],
        link=first.link if all(entry.link == first.link for entry in alike) else None,
        measured=[m for m in first.measured if all(m in entry.measured for entry in alike)],
        confidence=min((entry.confidence for entry in alike), key=_SURE.index),
        needs_user_override=any(entry.needs_user_override for entry in alike),
    )


def _is_near(one: float, other: float | None) -> bool:
    return other is not None and max(one, other) <= _ALIKE * min(one, other)


def _contradiction(entry: Accelerator, device: Device) -> str | None:
    """Say what a device tells that its entry denies, if it does."""
    told = (
        ("compute capability", device.compute_capability, entry.compute_capability),
        ("warp size", device.warp_size, entry.warp_size),
    )
    for what, said, known in told:
        if said is not None and known is not None and said != known:
            return (
                f"a device called {device.name!r} would be {entry.id}, which has {what} "
                f"{known}; this one has {said}, so it is another"
            )
    return None


def _compared(found: _Found, device: Device) -> Identified:
    """Compare numbers of SMs and memory: the whole device, a partition, or doubtful."""
    entry, memory = found.accelerator, _memory(found.accelerator, device)
    whole = Identified(
        entry,
        found.how,
        min(entry.confidence, found.at_most, key=_SURE.index),
        hbm_bytes_per_s=entry.hbm_bytes_per_s(_size(entry, device)),
        doubts=tuple(found.doubts),
    )
    if entry.sm_count is None or device.num_sms == entry.sm_count:
        return whole if memory in {"fits", "unknown"} else _other_memory(whole, device)
    if device.num_sms is None:
        is_whole = memory in {"fits", "unknown"} and not device.is_part
        return whole if is_whole else _unfit(entry, device)
    if memory == "smaller" and device.num_sms < entry.sm_count:
        return _partition(whole, entry.sm_count, device)
    if memory == "fits":
        return _other_sms(whole, device)
    return _unfit(entry, device)


def _unfit(entry: Accelerator, device: Device) -> Identified:
    return _unknown(
        f"{device.words} is called as {entry.id}, but is of another size "
        f"({_sizes_text(entry, device)}, {entry.sm_count} SMs)"
    )


def _other_memory(whole: Identified, device: Device) -> Identified:
    assert whole.accelerator is not None
    said = (
        f"it has {_gigabytes(device)} of memory, {whole.accelerator.id} has "
        f"{_sizes_text(whole.accelerator, device)}: how fast its memory is, is not known"
    )
    return replace(whole, hbm_bytes_per_s=None, doubts=(*whole.doubts, said))


def _other_sms(whole: Identified, device: Device) -> Identified:
    """Warn, and do not scale: H20 has 78 of 132 SMs and a quarter of what they would do."""
    assert whole.accelerator is not None
    said = (
        f"it has {device.num_sms} SMs, {whole.accelerator.id} has "
        f"{whole.accelerator.sm_count}, with the same memory: peaks are not scaled, and may "
        "be wrong"
    )
    lower = min(whole.confidence or "low", "low", key=_SURE.index)
    return replace(whole, confidence=lower, doubts=(*whole.doubts, said))


def _partition(whole: Identified, sm_count: int, device: Device) -> Identified:
    """Scale to a part of the device (MIG, CPX, DPX) by its number of SMs."""
    assert whole.accelerator is not None
    assert device.num_sms is not None
    entry = whole.accelerator
    share = _bandwidth_share(entry, device)
    full = entry.hbm_bytes_per_s(max(_sizes(entry, device)))
    said = [
        f"partition-scaled: it has {device.num_sms} of the {format_number_of(sm_count, 'SM')} "
        f"and {_gigabytes(device)} of the {_sizes_text(entry, device)} of {entry.id}"
    ]
    if share is None:
        said.append("how much of the memory's bandwidth a partition has, is not known")
    return replace(
        whole,
        scale=device.num_sms / sm_count,
        hbm_bytes_per_s=full * share if full and share else None,
        doubts=(*whole.doubts, *said),
    )


def _bandwidth_share(entry: Accelerator, device: Device) -> float | None:
    """How much of the bandwidth does a partition have? MIG deals it out with memory slices."""
    if entry.vendor != "nvidia" or device.memory_bytes is None:
        return None
    slices = round(_SLICES * device.memory_bytes / (max(_sizes(entry, device)) * _GIB))
    return max(slices, 1) / _SLICES


def _sizes(entry: Accelerator, device: Device) -> list[int]:
    """Return the sizes of memory that a device of this name may have had as a whole."""
    named = {int(number) for number in re.findall(r"([0-9]{1,4})GB\b", device.name)}
    return [size for size in entry.memory_gb if size in named] or entry.memory_gb


def _size(entry: Accelerator, device: Device) -> int | None:
    """Return the vendor's name for the size of memory that the device has, if it fits one."""
    sizes = _sizes(entry, device)
    if device.memory_bytes is None:
        return sizes[0] if len(sizes) == 1 else None
    gib = device.memory_bytes / _GIB
    fitting = [size for size in sizes if _LEAST * size <= gib <= _MOST * size]
    return min(fitting, key=lambda size: abs(size - gib), default=None)


def _memory(entry: Accelerator, device: Device) -> _Memory:
    if device.memory_bytes is None or not entry.memory_gb:
        return "unknown"
    if _size(entry, device) is not None:
        return "fits"
    is_less = device.memory_bytes / _GIB < max(_sizes(entry, device))
    return "smaller" if is_less else "larger"


def _doubted(identified: Identified) -> Identified:
    """Add what is doubtful of the entry itself."""
    entry = identified.accelerator
    if entry is None:
        return identified
    said = []
    if entry.needs_user_override:
        said.append(
            f"no peak of {entry.id} can be trusted by default (`traceparse accelerators "
            f"{entry.id}` says why); {HOW_TO_ADD}"
        )
    elif entry.confidence == "low":
        said.append(f"the peaks of {entry.id} are little certain")
    return replace(identified, doubts=(*identified.doubts, *said))


def _gigabytes(device: Device) -> str:
    return (
        "unknown size" if device.memory_bytes is None else f"{device.memory_bytes / 1e9:.1f} GB"
    )


def _sizes_text(entry: Accelerator, device: Device) -> str:
    return f"{_listed([str(size) for size in _sizes(entry, device)], 'or')} GB"


def _listed(words: Sequence[str], last: str = "and") -> str:
    return f" {last} ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
