"""What is found in a run: rules over its report, each with its evidence, advice and share.

``impossible`` is about work that was faster than its device; :data:`RULES` about what costs.
"""

from __future__ import annotations

from traceparse.run.findings.finding import Finding, finding, in_order, priced
from traceparse.run.findings.impossible import impossible, most_reached
from traceparse.run.findings.rules import RULES, found_in
from traceparse.run.findings.view import View

__all__ = [
    "RULES",
    "Finding",
    "View",
    "finding",
    "found_in",
    "impossible",
    "in_order",
    "most_reached",
    "priced",
]
