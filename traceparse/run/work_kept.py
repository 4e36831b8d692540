"""Which work did not change with the size of a job: that of all devices, or that of each?"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

from traceparse.run.sized import SizedRun

__all__ = ["MODES", "Mode", "is_same_work", "kept", "work_ratio"]

Mode: TypeAlias = Literal["strong", "weak"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_TOLERANCE = Fraction(1, 100)  # of work: batches do not always divide evenly


def work_ratio(run: SizedRun, base: SizedRun, mode: Mode) -> Fraction | None:
    """Return what share of the FLOP that it should in this mode a device-step executes.

    ``None`` where FLOP are unknown. Lower bounds of them do not tell that work differs either;
    but that they agree is no chance.
    """
    if run.flop is None or base.flop is None:
        return None
    growth = Fraction(run.num_devices, base.num_devices)
    ratio = run.flop / base.flop * (growth if mode == "strong" else 1)
    is_whole = run.is_flop_whole and base.is_flop_whole
    return ratio if is_whole or is_same_work(ratio) else None


def is_same_work(ratio: Fraction) -> bool:
    """Is that as good as all of it?"""
    return abs(ratio - 1) <= _TOLERANCE


def kept(run: SizedRun, base: SizedRun) -> Mode | None:
    """Return the mode by which two runs do the same work; ``None`` if unknown, or neither.

    Of sizes so close that both would do, the closer one.
    """
    ratios = {mode: work_ratio(run, base, mode) for mode in MODES}
    gaps = {
        mode: abs(ratio - 1)
        for mode, ratio in ratios.items()
        if ratio is not None and is_same_work(ratio)
    }
    return min(gaps, key=gaps.__getitem__, default=None)
