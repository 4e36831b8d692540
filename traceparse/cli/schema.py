"""``traceparse schema``: every table and column."""

from __future__ import annotations

__all__ = ["schema"]


def schema() -> None:
    """Show every table and column: type, unit, meaning."""
    from traceparse.report import schema_text

    print(schema_text.render(), end="")
