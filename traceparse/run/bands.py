"""Is a number good? Bands with their sources: ``data/bands.toml``, validated."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

__all__ = ["Band", "bands", "bands_of"]

Judgement: TypeAlias = Literal["poor", "typical", "good", "excellent", "impossible"]
_Text: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class Band(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one number is judged: ``bands`` by rising values, and where all but one begin."""

    name: _Text
    bands: Annotated[tuple[Judgement, ...], msgspec.Meta(min_length=2)]
    limits: tuple[Annotated[float, msgspec.Meta(gt=0, lt=1)], ...]
    source: _Text
    ends_at_maximum: bool = False
    dtypes: tuple[_Text, ...] | None = None

    def __post_init__(self) -> None:
        """See that there is a limit for each band but the first, and that limits rise."""
        if len(self.limits) != len(self.bands) - 1 - self.ends_at_maximum:
            raise ValueError(f"{self.name}: give one limit for each band but the first")
        if any(high <= low for low, high in pairwise(self.limits)):
            raise ValueError(f"{self.name}: limits must rise")

    def limit(self, band: Judgement) -> float:
        """Return where a band begins."""
        return self.limits[self.bands.index(band) - 1]

    def judge(self, value: float, maximum: float | None) -> dict[str, Any]:
        """Say in which band a value is; ``maximum`` is the device's, as far as it is known."""
        limits = list(self.limits)
        if self.ends_at_maximum:  # nothing exceeds the peak, whatever was measured
            limits.append(1.0 if maximum is None else maximum)
        # of a device whose fastest products are slow, upper bands are out of reach
        limits = [min(limit, limits[-1]) for limit in limits]
        return {
            "value": value,
            "band": self.bands[bisect_right(limits, value)],
            "limits": dict(zip(self.bands[1:], limits, strict=True)),
            "source": self.source,
        }


class _File(msgspec.Struct, forbid_unknown_fields=True):
    band: Annotated[tuple[Band, ...], msgspec.Meta(min_length=1)]


@cache
def bands() -> Mapping[str, Band]:
    """Return all bands by the name of what they judge."""
    text = files("traceparse").joinpath("data", "bands.toml").read_bytes()
    return {band.name: band for band in msgspec.toml.decode(text, type=_File).band}


def bands_of(
    values: Mapping[str, float | None], *, reference_dtype: str | None, maximum: float | None
) -> dict[str, dict[str, Any]]:
    """Return field ``bands`` (an addition to the contract): no entry for what is not known.

    ``maximum`` is the share of the peak that the fastest matrix products reach.
    """
    return {
        name: band.judge(value, maximum)
        for name, band in bands().items()
        if (value := values.get(name)) is not None
        and (band.dtypes is None or reference_dtype in band.dtypes)
    }
