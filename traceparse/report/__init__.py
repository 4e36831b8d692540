"""A report as people and programs read it: terminal, JSON, HTML. It draws and computes nothing.

Each module renders one format, as a pure function of a :class:`traceparse.run.Report`; none
knows of paths. Import the module of the format that you need.
"""

from __future__ import annotations

__all__: list[str] = []
