"""What is doubtful of what ranks did together: its notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from traceparse.errors import Note
from traceparse.rank import DeviceDigest
from traceparse.run.clock import Clock
from traceparse.run.gathered import Calls
from traceparse.run.instances import Instances
from traceparse.units import format_number_of, format_percent, parse_ranges, rank_ranges

__all__ = ["about_contention", "about_instances", "about_offsets", "about_strangers"]

_FAR_NS = 1_000_000_000  # hosts that keep time at all agree within milliseconds


def about_instances(instances: Instances) -> Iterator[Note]:
    """Say what of collectives could not be matched or split."""
    split = instances.is_split
    several = instances.num_ranks >= 2
    if not split.any():
        why = (
            "no collective was seen on all ranks of its group that have a file; are the traces "
            "of one job, and of the same time?"
            if several.any() or (instances.num_expected > 1).any()
            else "it takes traces of two ranks at least that communicate with each other"
        )
        yield Note(
            "communication_unsplit",
            f"waiting and transfer cannot be told apart, so there is no loss to communication: "
            f"{why}",
        )
    partial = split & (instances.num_members > instances.num_expected)
    if partial.any():
        yield Note(
            "transfer_upper_bound",
            f"{_num(partial)} with ranks that have no file: the last to come may be one of "
            f"these, so transfer is an upper bound, and waiting a lower one",
        )
    odd = several & ~instances.is_alike
    if odd.any():
        yield Note(
            "collectives_disagree",
            f"{_num(odd)} of different kinds or sizes on different ranks, so waiting and "
            f"transfer cannot be told apart there",
        )
    lone = (instances.num_ranks < instances.num_expected) & ~odd
    if lone.any():
        yield Note(
            "collectives_unmatched",
            f"{_num(lone)} not seen on all ranks of the group that have a file, so waiting and "
            f"transfer cannot be told apart there",
        )


def _num(are_such: npt.NDArray[np.bool_]) -> str:
    return format_number_of(int(are_such.sum()), "collective")


def about_strangers(calls: Calls, ranks: Sequence[int | None]) -> Iterator[Note]:
    """Say whose calls are in groups that it is not of, so that it may be another's trace."""
    members = [
        frozenset(parse_ranges(text)) if text else None for _, text, _ in calls.group_texts
    ]
    pairs = np.unique(np.column_stack([calls.devices, calls.groups]), axis=0)
    strangers = {
        rank
        for device, group in pairs.tolist()
        if (rank := ranks[device]) is not None
        and (own := members[group]) is not None
        and rank not in own
    }
    if strangers:
        told = rank_ranges(sorted(strangers))
        yield Note(
            "rank_not_in_group",
            f"traces of rank {told} have collectives of process groups that do not have that "
            f"rank: are files of different ranks swapped?",
        )


def about_offsets(clock: Clock, ranks: Sequence[int | None]) -> Iterator[Note]:
    """Say whose clocks are so far off that nobody would compare their times by hand."""
    far = [
        (abs(line.offset_ns), rank)
        for line, rank in zip(clock.lines, ranks, strict=True)
        if line is not None and rank is not None and abs(line.offset_ns) > _FAR_NS
    ]
    if far:
        most, rank = max(far)
        yield Note(
            "clocks_apart",
            f"clocks of {format_number_of(len(far), 'rank')} are over a second off, the most "
            f"that of rank {rank}, by {most / _FAR_NS:,.0f} s: across ranks they are aligned, "
            f"times of each rank are its own",
        )


def about_contention(devices: Sequence[DeviceDigest]) -> Iterator[Note]:
    """Say of how much overlapped compute nobody knows what it took longer."""
    overlapped = sum(device.overlapped_ns for device in devices)
    unknown = sum(device.never_alone_ns for device in devices)
    if unknown:
        yield Note(
            "contention_unknown",
            f"{format_percent(unknown, overlapped)} of the time of compute kernels that "
            f"collectives overlap is of kernels that never ran alone, so contention adds "
            f"nothing for them",
        )
