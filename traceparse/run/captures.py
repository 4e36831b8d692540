"""Which traces count, where ranks have several? Those of one capture of the job, one a rank.

A profiler that records again and again leaves several captures: of a job whose ranks are
compared, all traces must be of the same one. It is told by the folder (``iteration_10``, as
torchtitan and a repeating capture write), else by the numbers of the steps, else by the time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import TypeVar

from traceparse.errors import Note
from traceparse.rank import RankDigest
from traceparse.units import number_ranges, rank_ranges

__all__ = ["one_a_rank"]

K = TypeVar("K", bound=Hashable)

_MOST_NAMED = 4  # files, or captures, that one note names
_FOLDER = re.compile(r"iteration_\d{1,12}", re.ASCII)
_NO_FOLDER = "other folders"


@dataclass(frozen=True, slots=True)
class _Capture:
    """Traces that were recorded together, on as many ranks as were."""

    name: str
    digests: tuple[RankDigest, ...]

    @property
    def whole_ranks(self) -> int:
        """On how many ranks it is not torn."""
        return len({_rank_of(one) for one in self.digests if not one.health.truncated})

    @property
    def newest_ns(self) -> int:
        """When its last event ended."""
        return max(map(_last_instant, self.digests))

    @property
    def worth(self) -> tuple[int, int, str]:
        """On more ranks before newer."""
        return self.whole_ranks, self.newest_ns, self.name


def one_a_rank(
    digests: Sequence[RankDigest], steps: Collection[int] | None = None
) -> tuple[list[RankDigest], list[Note]]:
    """Keep one trace a rank, all of one capture; of several, a whole one before a torn one.

    Of several captures it is the newest that is whole on the most ranks, of those that have
    any of the ``steps`` asked for. Ranks that are not in it are left out: beside the others
    they would show another time.
    """
    known = [digest for digest in digests if _rank_of(digest) is not None]
    notes: list[Note] = []
    for tell_apart in (_by_folder, _by_steps):
        captures = tell_apart(known)
        if len(captures) > 1:
            best = _best(captures, steps)
            notes.append(_about_captures(captures, best, steps))
            known = list(best.digests)
    favored = _at_one_time(known)
    used = []
    for group in (*_grouped(known, _rank_of).values(), *_processes(digests)):
        own = [digest for digest in group if id(digest) in favored]
        used.append(max(own or group, key=_worth))
        if len(group) > 1:
            notes.append(_about_rivals(group, used[-1]))
    return used, notes


def _rank_of(digest: RankDigest) -> int | None:
    """Whose trace is it?"""
    return digest.health.rank


def _by_folder(digests: Sequence[RankDigest]) -> list[_Capture]:
    found = _grouped(digests, _folder)
    if _NO_FOLDER in found and not _has_rivals(digests):
        return []
    captures = [_Capture(name, tuple(group)) for name, group in found.items()]
    return sorted(captures, key=lambda one: one.newest_ns)


def _folder(digest: RankDigest) -> str:
    folder = PurePath(digest.health.path).parent.name
    return folder if _FOLDER.fullmatch(folder) else _NO_FOLDER


def _by_steps(digests: Sequence[RankDigest]) -> list[_Capture]:
    """Tell captures apart whose steps do not overlap, if any rank is in several of them."""
    spans = [_steps_of(digest) for digest in digests]
    known = [span for span in spans if span]
    if not _has_rivals(digests) or len(known) < len(spans):
        return []
    return [
        _Capture(f"steps {number_ranges([range(first, last)])}", tuple(group))
        for (first, last), group in _overlapping(digests, known)
    ]


def _steps_of(digest: RankDigest) -> tuple[int, int] | None:
    found = [s.step for device in digest.devices for s in device.steps if s.step is not None]
    return (min(found), max(found) + 1) if found else None


def _at_one_time(digests: Sequence[RankDigest]) -> set[int]:
    """Return which traces were recorded at one time on all ranks, if that tells them apart.

    Clocks of machines may differ by more than a capture lasts, and then it does not.
    """
    spans = [(_first_instant(digest), _last_instant(digest)) for digest in digests]
    captures = [_Capture("", tuple(group)) for _, group in _overlapping(digests, spans)]
    if not captures or not _has_rivals(digests):
        return set()
    best = max(captures, key=lambda one: one.worth)
    is_everywhere = len(set(map(_rank_of, best.digests))) == len(set(map(_rank_of, digests)))
    return set(map(id, best.digests)) if is_everywhere else set()


def _overlapping(
    digests: Sequence[RankDigest], spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], list[RankDigest]]]:
    """Group traces whose spans overlap, directly or by way of others; in order."""
    order = sorted(range(len(spans)), key=lambda at: spans[at])
    group: list[RankDigest] = []
    begin = end = 0
    for at in order:
        start, stop = spans[at]
        if group and start >= end:
            yield (begin, end), group
            group = []
        if not group:
            begin, end = start, stop
        group.append(digests[at])
        end = max(end, stop)
    if group:
        yield (begin, end), group


def _has_rivals(digests: Sequence[RankDigest]) -> bool:
    return len(set(map(_rank_of, digests))) < len(digests)


def _grouped(
    digests: Iterable[RankDigest], key: Callable[[RankDigest], K]
) -> dict[K, list[RankDigest]]:
    found: dict[K, list[RankDigest]] = defaultdict(list)
    for digest in digests:
        found[key(digest)].append(digest)
    return dict(found)


def _best(captures: Sequence[_Capture], steps: Collection[int] | None) -> _Capture:
    asked = [one for one in captures if _has_steps(one, steps)]
    return max(asked or captures, key=lambda one: one.worth)


def _has_steps(capture: _Capture, steps: Collection[int] | None) -> bool:
    return steps is None or any(
        step.step in steps
        for digest in capture.digests
        for device in digest.devices
        for step in device.steps
        if step.step is not None
    )


def _about_captures(
    captures: Sequence[_Capture], best: _Capture, steps: Collection[int] | None
) -> Note:
    ranks = {_rank_of(digest) for capture in captures for digest in capture.digests}
    absent = sorted(
        rank for rank in ranks - set(map(_rank_of, best.digests)) if rank is not None
    )
    asked = "" if steps is None else " with the steps asked for"
    without = f"; rank {rank_ranges(absent)} is not in it, and is left out" if absent else ""
    return Note(
        "repeated_capture",
        f"there are traces of {len(captures)} captures "
        f"({_some([one.name for one in captures])}): only {best.name} is used, the newest"
        f"{asked} that is whole on the most ranks ({best.whole_ranks} of {len(ranks)})"
        f"{without}; to see another one, give its files",
    )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _processes(digests: Sequence[RankDigest]) -> Iterator[list[RankDigest]]:
    """Group traces of unknown rank that cannot both count.

    Those of processes with one number are such if they were captured one after the other: the
    same number on two machines is chance, and those run side by side.
    """
    unknown = [digest for digest in digests if _rank_of(digest) is None]
    for process, group in _grouped(unknown, lambda one: one.process).items():
        in_order = sorted(group, key=_first_instant)
        apart = all(
            _last_instant(one) <= _first_instant(other) for one, other in pairwise(in_order)
        )
        if process is not None and apart:
            yield group
        else:
            yield from ([digest] for digest in group)


def _worth(digest: RankDigest) -> tuple[bool, int, str]:
    return not digest.health.truncated, _last_instant(digest), digest.health.path


def _last_instant(digest: RankDigest) -> int:
    return max(device.window.end_ns for device in digest.devices)


def _first_instant(digest: RankDigest) -> int:
    return min(device.window.start_ns for device in digest.devices)


def _about_rivals(group: list[RankDigest], best: RankDigest) -> Note:
    rank = _rank_of(best)
    paths = _some([claimant.health.path for claimant in group])
    kept = f"only the newest whole one, {best.health.path}, is used"
    if best is not max(group, key=_worth):
        kept = f"only {best.health.path} is used, the newest that is whole on all ranks"
    ids = {claimant.header.trace_id for claimant in group}
    if len({claimant.process for claimant in group}) == 1 and (rank is None or len(ids) > 1):
        who = f"process {best.process}" if rank is None else f"rank {rank}"
        return Note(
            "repeated_capture",
            f"{who} was captured {len(group)} times ({paths}): {kept}; capture with repeat=1, "
            f"or give one capture's files",
            rank,
        )
    return Note(
        "duplicate_rank",
        f"{len(group)} traces say that they are rank {rank} ({paths}): {kept}; give one job's "
        f"folder at a time",
        rank,
    )
