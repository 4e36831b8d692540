"""A finding of the contract, their order, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias

__all__ = ["Finding", "Severity", "finding", "in_order", "priced"]

Severity: TypeAlias = Literal["error", "warning", "info"]
Finding: TypeAlias = Mapping[str, Any]

_ORDER = ("error", "warning", "info")


def finding(
    code: str,
    severity: Severity,
    title: str,
    evidence: str,
    advice: str,
    *,
    lost_ratio: float | None = None,
) -> dict[str, Any]:
    """Return an entry of field ``findings``; what it costs is said by :func:`priced`."""
    return {
        "code": code,
        "severity": severity,
        "title": title,
        "evidence": evidence,
        "advice": advice,
        "lost_ratio": lost_ratio,
        "lost_usd": None,
    }


def in_order(*found: Iterable[Finding]) -> list[Finding]:
    """Put findings together: the most severe first, then those that lose most."""
    return sorted(
        chain.from_iterable(found),
        key=lambda one: (_ORDER.index(one["severity"]), -(one["lost_ratio"] or 0)),
    )


def priced(found: Sequence[Finding], usd_per_step: float | None) -> list[Finding]:
    """Say of each finding what its share of a step costs, where a price was given."""
    if usd_per_step is None:
        return list(found)
    return [
        {**one, "lost_usd": ratio * usd_per_step}
        if (ratio := one["lost_ratio"]) is not None
        else one
        for one in found
    ]
