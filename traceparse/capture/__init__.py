"""Runs inside the training job: record some steps, one trace file a rank.

Imports torch only when a capture starts, and nothing else that is heavy; nothing at all until
it is used, as every process of a captured command loads the hook in here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceparse.capture.profiler import profile

__all__ = ["profile"]


def __getattr__(name: str) -> object:
    """Load the public name from its module."""
    if name != "profile":
        raise AttributeError(f"module 'traceparse.capture' has no attribute {name!r}")
    return import_module("traceparse.capture.profiler").profile
