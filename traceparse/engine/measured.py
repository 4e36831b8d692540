"""The peak of the machine that the analysis runs on, for traces of its own processor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceparse.rank import RankDigest
from traceparse.run import Asked
from traceparse.run.model import fact_of
from traceparse.run.peaks import CPU
from traceparse.work.measured import measure_peak

__all__ = ["measured"]


def measured(asked: Asked, digests: Sequence[RankDigest]) -> Asked:
    """Measure with as many threads as each rank had, which only the traces can tell.

    Where no trace is of the host's own work, there is nothing to measure for.
    """
    asked = replace(asked, is_host_peak=True)
    if not any(device.device == CPU for digest in digests for device in digest.devices):
        return asked
    facts = [digest.header.facts for digest in digests]
    recorded = fact_of("num_threads", facts, [])
    found = measure_peak(None if recorded is None else int(recorded))
    source = found.words
    if recorded is None:
        source += "; the traces do not tell with how many threads each rank ran"
    return replace(asked, peak_flop_per_s=found.flop_per_s, peak_source=source)
