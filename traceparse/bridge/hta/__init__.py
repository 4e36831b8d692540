"""HTA's analyses over traces that traceparse reads, without HTA's parser."""

from __future__ import annotations

from traceparse.bridge.hta.installed import ANALYSES, Hta, installed
from traceparse.bridge.hta.results import with_hta
from traceparse.bridge.hta.trace import to_hta

__all__ = ["ANALYSES", "Hta", "installed", "to_hta", "with_hta"]
