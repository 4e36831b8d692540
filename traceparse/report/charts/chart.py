"""One chart: an Altair object, its title, and what one sees in it, for who cannot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from altair import TopLevelMixin

__all__ = ["MOST_ROWS", "WIDTH", "Chart"]

WIDTH: Final = 700  # of what is drawn between the axes, in pixels
MOST_ROWS: Final = 2_000  # of data in one chart


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of a report; ``spoken`` says in a sentence what one sees.

    ``title`` and ``spoken`` may have names from traces in them, made visible but not escaped.
    """

    key: str
    title: str
    spoken: str
    chart: TopLevelMixin

    def _repr_svg_(self) -> str:
        """Show the picture in a notebook, with no network; ``chart`` is to work with."""
        from traceparse.report.charts import to_svg  # noqa: PLC0415 - it imports this module

        return to_svg(self)
