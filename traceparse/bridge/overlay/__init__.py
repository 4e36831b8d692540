"""A trace for Perfetto with what traceparse found drawn into it."""

from __future__ import annotations

from traceparse.bridge.overlay.written import DEFAULT_MAX_BYTES, Overlay, overlay

__all__ = ["DEFAULT_MAX_BYTES", "Overlay", "overlay"]
