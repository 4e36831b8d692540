"""``check``: conditions over the fields of a report, in a small language of their own.

Nothing of an expression is ever run: it is read into a tree (:mod:`.grammar`), which is judged
by looking up fields and comparing (:mod:`.evaluate`).
"""

from __future__ import annotations

from traceparse.run.check.evaluate import Compared
from traceparse.run.check.gate import Checked, Gate, check, require_conditions
from traceparse.run.check.settings import Settings, found_settings, read_settings

__all__ = [
    "Checked",
    "Compared",
    "Gate",
    "Settings",
    "check",
    "found_settings",
    "read_settings",
    "require_conditions",
]
