"""From torch.profiler traces to an exact account of where a training job's time goes.

>>> import traceparse
>>> report = traceparse.analyze("traces/")           # doctest: +SKIP
>>> report.devices[0].window.exposed_comm_ns         # doctest: +SKIP

Everything here is loaded when it is first used, so that importing traceparse inside a
training job (for :func:`profile`) costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceparse.bridge.hta import to_hta
    from traceparse.capture import profile
    from traceparse.engine import analyze, compare, read, scaling
    from traceparse.errors import Note, TraceparseError
    from traceparse.run import Comparison, Report, Run, Scaling

__version__ = "0.1.0"
__all__ = [
    "Comparison",
    "Note",
    "Report",
    "Run",
    "Scaling",
    "TraceparseError",
    "analyze",
    "compare",
    "profile",
    "read",
    "scaling",
    "to_hta",
]

_HOME = {
    "Comparison": "traceparse.run",
    "Note": "traceparse.errors",
    "Report": "traceparse.run",
    "Run": "traceparse.run",
    "Scaling": "traceparse.run",
    "TraceparseError": "traceparse.errors",
    "analyze": "traceparse.engine",
    "compare": "traceparse.engine",
    "profile": "traceparse.capture",
    "read": "traceparse.engine",
    "scaling": "traceparse.engine",
    "to_hta": "traceparse.bridge.hta",
}


def __getattr__(name: str) -> object:
    """Load a public name from the room it lives in."""
    if name not in _HOME:
        raise AttributeError(f"module 'traceparse' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return [*__all__, "__version__"]
