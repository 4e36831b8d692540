"""Runs inside the training job: record some steps, one trace file a rank.

Imports torch only when a capture starts, and nothing else that is heavy.
"""

from __future__ import annotations

from traceparse.capture.profiler import profile

__all__ = ["profile"]
