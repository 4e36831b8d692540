"""To other tools: a trace for Perfetto; HTA and SQL to come. Draws on what the run knows."""

from __future__ import annotations
