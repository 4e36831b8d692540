"""Why was the last rank last? Judged from what was measured; mixed evidence is no cause.

What explains the wait for a rank is compared with that wait: how much longer its kernels take
than the median of the other ranks' in the same runs, and how much longer its device idles than
the median one. Half of the wait is enough to explain it, if the other explains less than a
quarter:

* *slow compute*: its kernels take more than 5 % longer (chips of one kind differ by as much),
  and that explains it; other work than the others have does not count as slower;
* *late host*: its device idles for that long, with kernels less than 10 % slower: nothing had
  been launched;
* *place in the pipeline*: it is waited for in send and recv, and computes more than the others
  with kernels no slower. Waiting there without either is the pipeline's bubble.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from traceparse.run.slower import Slower

__all__ = ["FAR", "SPREAD", "Cause", "Evidence", "cause_of"]

Cause: TypeAlias = Literal[
    "slow compute", "late host", "slow link", "place in the pipeline", "cause unclear"
]

SPREAD: Final = 0.05  # between chips of one kind
FAR: Final = 0.1  # beyond doubt slower; a chip that idles clocks down, so others may seem so
_EXPLAINS = 0.5
_DISTURBS = 0.25


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a rank that others wait for.

    ``wait_ns`` is how long the device that waits longest does so for it in the steps that
    count, ``whole_wait_ns`` in the whole file: directly, not through other groups.
    ``more_compute_ns`` and ``more_idle_ns`` are, in those steps, against the median of the
    other devices. ``late_launch_ns`` is by how much its calls are launched after the median of
    the others has come, ``queued_ns`` for how long they have been when they start.
    """

    wait_ns: int
    whole_wait_ns: int
    more_compute_ns: float
    more_idle_ns: float
    idle_ns: int
    usual_idle_ns: int
    slower: Slower | None
    late_launch_ns: int | None
    queued_ns: int | None
    is_peers: bool
    is_host: bool

    @property
    def kernels_ratio(self) -> float | None:
        """Which part of the wait slower kernels explain; ``None``: none can be compared."""
        if self.slower is None:
            return None
        return _ratio(self.slower.excess_ns, self.whole_wait_ns)

    @property
    def compute_ratio(self) -> float:
        """Which part of the wait more compute time explains, whatever work it was."""
        return _ratio(self.more_compute_ns, self.wait_ns)

    @property
    def idle_ratio(self) -> float:
        """Which part of the wait more idle time explains."""
        return _ratio(self.more_idle_ns, self.wait_ns)


def cause_of(evidence: Evidence) -> Cause | None:
    """Judge; where nothing is explained well, the cause is unclear; ``None`` for a bubble."""
    if _is_slow(evidence) and evidence.idle_ratio < _DISTURBS:
        return "slow compute"
    if _is_starved(evidence):
        return "late host"
    if evidence.is_peers and not _is_odd(evidence):
        return "place in the pipeline" if evidence.compute_ratio >= _DISTURBS else None
    return "cause unclear"


def _is_slow(evidence: Evidence) -> bool:
    """Say whether its kernels are slower, those that cannot be compared in like measure."""
    slower, kernels = evidence.slower, evidence.kernels_ratio
    if slower is None or kernels is None or slower.factor <= 1 + SPREAD:
        return False
    return max(kernels, min(evidence.compute_ratio, 2 * kernels)) >= _EXPLAINS


def _is_starved(evidence: Evidence) -> bool:
    """Say whether its device had nothing to do, and its work was no slower."""
    if evidence.is_host or evidence.idle_ratio < _EXPLAINS:
        return False
    if evidence.slower is not None and evidence.slower.factor > 1 + FAR:
        return False
    return max(evidence.kernels_ratio or 0, evidence.compute_ratio) < _DISTURBS


def _is_odd(evidence: Evidence) -> bool:
    is_slower = evidence.slower is not None and evidence.slower.factor > 1 + SPREAD
    return is_slower or evidence.idle_ratio >= _DISTURBS


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
