"""Which HTA is installed, and what it can do here.

HTA is one project under two names on PyPI: ``HolisticTraceAnalysis`` up to 0.5.0, and
``traceinsight`` since. Both own the package ``hta``.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from traceparse.errors import MissingExtraError, UsageError

__all__ = ["ANALYSES", "Hta", "installed", "quiet"]

NAMES: Final = ("traceinsight", "HolisticTraceAnalysis")
ANALYSES: Final = (
    *("temporal_breakdown", "comm_comp_overlap", "gpu_kernel_breakdown"),
    *("idle_time_breakdown", "cuda_kernel_launch_stats", "queue_length", "memory_bandwidth"),
    *("critical_path", "call_graph"),
)
_STACKS: Final = ("critical_path", "call_graph")  # what pandas 3 broke
_FIRST_FOR_PANDAS_3: Final = (0, 6)
_NUMBERS: Final = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Hta:
    """The HTA that is installed.

    ``unavailable`` says of each of its analyses that it cannot do here, why.
    """

    distribution: str
    version: str
    unavailable: Mapping[str, str]

    @property
    def available(self) -> tuple[str, ...]:
        """The analyses that it can do."""
        return tuple(name for name in ANALYSES if name not in self.unavailable)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Its version, to be compared."""
        return _numbers(self.version)


def installed() -> Hta:
    """Return which HTA is there.

    Raises
    ------
    MissingExtraError
        None is.
    UsageError
        Both are, so that nobody knows whose files ``hta`` is made of.
    """
    found = dict(_versions())
    if len(found) > 1:
        both = " and ".join(f"{name} {version}" for name, version in found.items())
        raise UsageError(
            f"{both} are both installed, and each owns the package hta: pip uninstall both, "
            f"then pip install 'traceparse[hta]'"
        )
    if not found or find_spec("hta") is None:
        raise MissingExtraError("HTA is not installed: pip install 'traceparse[hta]'")
    ((name, version),) = found.items()
    return Hta(name, version, MappingProxyType(_unavailable(name, version)))


def _versions() -> Iterator[tuple[str, str]]:
    for name in NAMES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _unavailable(name: str, version: str) -> dict[str, str]:
    pandas = metadata.version("pandas")
    if _numbers(version) >= _FIRST_FOR_PANDAS_3 or _numbers(pandas) < (3,):
        return {}
    reason = (
        f"{name} {version} needs pandas < 3 for it, and this is pandas {pandas}: "
        f"pip uninstall {name}, then pip install 'traceparse[hta]'"
    )
    return dict.fromkeys(_STACKS, reason)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBERS.findall(version)[:3])


@contextmanager
def quiet() -> Iterator[None]:
    """Keep HTA from telling what it does: it logs each file, and pandas warns of its ways."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
