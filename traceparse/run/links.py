"""Which rank's link is slow? Where all of its groups transfer longer than others do.

Transfer is the shortest duration among the ranks of an instance, so nobody's lateness is in
it. Comparable are collectives of one kind, data type, size and number of ranks: a group is slow
in those if its median transfer exceeds the median of the other groups'. A rank has a slow link
if it is slow in all groups that can be compared; several ranks that are together in all of them
cannot be told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from traceparse.intervals import Int64s
from traceparse.run.across import Across
from traceparse.run.gathered import NOTHING

__all__ = ["SlowGroup", "SlowLink", "slow_links"]

_SLOW: Final = 1.25  # times the others' transfer
_FEWEST = 2  # instances of a group, for its median


@dataclass(frozen=True, slots=True)
class SlowGroup:
    """The instances of one group and kind: a median transfer, and that of other groups."""

    kind: str
    members: tuple[int, ...]
    instances: Int64s
    median_ns: int
    usual_ns: int

    @property
    def is_slow(self) -> bool:
        """Whether it takes clearly longer."""
        return self.median_ns > _SLOW * self.usual_ns


@dataclass(frozen=True, slots=True)
class SlowLink:
    """Devices whose groups are all slow; several are in the same ones."""

    devices: tuple[int, ...]
    groups: tuple[SlowGroup, ...]


@dataclass(slots=True)
class _Seen:
    slow: list[SlowGroup] = field(default_factory=list)
    num_others: int = 0


def slow_links(together: Across) -> list[SlowLink]:
    """Find the devices that are slow in all of their groups."""
    seen: dict[int, _Seen] = defaultdict(_Seen)
    for group in _groups(together):
        for device in group.members:
            if group.is_slow:
                seen[device].slow.append(group)
            else:
                seen[device].num_others += 1
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for device, own in sorted(seen.items()):
        if own.slow and not own.num_others:
            alike[tuple(map(id, own.slow))].append(device)
    sets = [set(own) for own in alike]
    return [
        SlowLink(tuple(devices), tuple(seen[devices[0]].slow))
        for own, devices in alike.items()
        if not any(set(own) < other for other in sets)  # which another's explains
    ]


def _groups(together: Across) -> Iterator[SlowGroup]:
    """Yield all groups and kinds for which other groups can be compared."""
    instances, calls = together.instances, together.calls
    first = instances.first_call
    usable = instances.is_split & ~instances.is_peer
    usable &= instances.num_members == instances.num_ranks  # else somebody unseen was late
    usable &= (calls.message_bytes[first] != NOTHING) & ~calls.is_partial[first]
    rows = np.flatnonzero(usable)
    call = first[rows]
    kind = together.kinds[rows]
    of_kind: dict[tuple[int, ...], dict[int, list[int]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for key, group, row in zip(
        kind.tolist(), calls.groups[call].tolist(), rows.tolist(), strict=True
    ):
        of_kind[tuple(key)][group].append(row)
    starts = np.searchsorted(instances.part_instance, np.arange(first.size + 1))
    for (name, dtype, num_bytes, _), groups in of_kind.items():
        kept = {own: rows for own, rows in groups.items() if len(rows) >= _FEWEST}
        text = f"{calls.collective_texts[name]} of {num_bytes:,} bytes"
        text += f" in {calls.dtype_texts[dtype]}" if calls.dtype_texts[dtype] else ""
        yield from _compared(together, text, kept, starts)


def _compared(
    together: Across, kind: str, groups: Mapping[int, Iterable[int]], starts: Int64s
) -> Iterator[SlowGroup]:
    instances = together.instances
    rows_of = [np.array(rows, np.int64) for rows in groups.values()]
    medians = np.array([np.median(instances.transfer_ns[rows]) for rows in rows_of])
    if medians.size < 2:  # nothing to compare with
        return
    for place, rows in enumerate(rows_of):
        parts = slice(starts[rows[0]], starts[rows[0] + 1])
        yield SlowGroup(
            kind,
            tuple(instances.part_device[parts].tolist()),
            rows,
            int(medians[place]),
            int(np.median(np.delete(medians, place))),
        )
