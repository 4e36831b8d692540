"""The report as JSON text: the contract of ``report.json``."""

from __future__ import annotations

import json

from traceparse.run import Comparison, Report, Scaling
from traceparse.run.check import Checked

__all__ = ["render"]


def render(report: Report | Scaling | Comparison | Checked) -> str:
    """Return the report as one line-broken JSON document, in ASCII, ending with a line break.

    JSON has no NaN: a report that holds one is a bug, and raises ``ValueError``.
    """
    return json.dumps(report.to_dict(), indent=1, ensure_ascii=True, allow_nan=False) + "\n"
