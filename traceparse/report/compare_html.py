"""What changed between two runs, as one HTML page that needs nothing else."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from traceparse.report.compare_words import (
    collective_rows,
    operator_rows,
    reasons,
    side_lines,
    term_rows,
    verdict,
)
from traceparse.report.notes import note_lines
from traceparse.report.offline import environment, own, policy
from traceparse.run import Comparison

__all__ = ["render"]

_MOST_ROWS: Final = 100


def render(found: Comparison) -> str:
    """Return the page as text; nothing in it runs."""
    style = own("report.css")
    operators, more_operators = operator_rows(found, _MOST_ROWS)
    collectives, more_collectives = collective_rows(found, _MOST_ROWS)
    base, new = side_lines(found)
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            style=Markup(style),  # noqa: S704 - our own file, not trace text
            policy=policy(style),
            verdict=verdict(found),
            reasons=list(reasons(found)),
            base=base,
            new=new,
            terms=term_rows(found),
            tables=(
                ("Operators", "operators", "ms of a mean step", operators, more_operators),
                (
                    "Collectives",
                    "collectives",
                    "exposed ms of a mean step",
                    collectives,
                    more_collectives,
                ),
            ),
            notes=note_lines(found.notes),
            generator=f"{found.generator['name']} {found.generator['version']}",
            has_interval=found.step_ns["interval"] is not None,
        )
    )
