"""The peak of the machine that the analysis runs on, for traces of its own processor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module

from traceparse.rank import RankDigest
from traceparse.run import Asked
from traceparse.run.model import fact_of
from traceparse.run.peaks import CPU

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
    there = os.cpu_count() or 1
    num_threads = there if recorded is None else min(int(recorded), there)
    # it loads what makes threads: not for who measures nothing
    found = import_module("traceparse.work.measured").measure_peak(num_threads)
    source = found.words
    if recorded is None:
        source += "; the traces do not tell with how many threads each rank ran"
    return replace(asked, peak_flop_per_s=found.peak_flop_per_s, peak_source=source)
