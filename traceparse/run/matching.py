"""Which calls of different ranks are one and the same collective?

Those of one process group (disjoint groups reuse names, so its ranks belong to its key) with
the same ``Comms Id``, else the same ``Seq``, else in the same place of the order, as
:mod:`traceparse.run.lags` finds it. Point-to-point calls match by source, destination and
order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from traceparse.errors import Note
from traceparse.intervals import Int64s
from traceparse.run.gathered import NOTHING, Calls
from traceparse.run.lags import find_lag

__all__ = ["POINT_TO_POINT", "match"]

POINT_TO_POINT = ("send", "recv")
_BY_ID, _BY_SEQUENCE, _BY_ORDER, _BY_PEERS = range(4)


def match(calls: Calls, ranks: Sequence[int | None]) -> tuple[Int64s, list[Note]]:
    """Return the number of each call's instance, and what is doubtful about it.

    ``ranks`` are those of the devices. A call that matches nothing has an instance of its own;
    numbers have no order, and gaps.
    """
    is_peer = np.isin(calls.collectives, _numbers_of(calls.collective_texts, POINT_TO_POINT))
    how = np.full(calls.num, _BY_ORDER)
    how[calls.sequences != NOTHING] = _BY_SEQUENCE
    how[calls.comms_ids != 0] = _BY_ID
    how[is_peer] = _BY_PEERS  # each side counts messages of its own
    keys = np.zeros((calls.num, 4), np.int64)
    keys[:, 0], keys[:, 1] = how, calls.groups
    keys[:, 2] = np.where(how == _BY_ID, calls.comms_ids.view(np.int64), calls.sequences)
    notes: list[Note] = []
    for group in np.unique(calls.groups[how == _BY_ORDER]).tolist():
        rows = np.flatnonzero((calls.groups == group) & (how == _BY_ORDER))
        keys[rows, 2] = _order(calls, rows, ranks, notes)
    rows = np.flatnonzero(how == _BY_PEERS)
    if rows.size:
        keys[rows, 1:] = _peers(calls, rows, ranks)
    _, instances = np.unique(keys, axis=0, return_inverse=True)
    return instances.reshape(-1), notes


def _numbers_of(texts: Sequence[str | None], wanted: Sequence[str]) -> list[int]:
    return [number for number, text in enumerate(texts) if text in wanted]


def _order(
    calls: Calls, rows: Int64s, ranks: Sequence[int | None], notes: list[Note]
) -> Int64s:
    """Return each call's place in the order of its group, which is that of its longest rank."""
    kinds = _kinds(calls, rows)
    devices = calls.devices[rows]
    own = {device: np.flatnonzero(devices == device) for device in np.unique(devices).tolist()}
    first = max(own, key=lambda device: (own[device].size, -device))
    ends = calls.end_ns[rows]
    places = np.zeros(rows.size, np.int64)
    strangers, guessed = [], []
    for device, mine in own.items():
        if device == first:
            places[mine] = np.arange(mine.size)
            continue
        lag = find_lag(kinds[own[first]], kinds[mine], ends[own[first]], ends[mine])
        if lag is None:
            # no other call has such a place
            places[mine] = -1 - rows[mine]
            strangers.append(device)
            continue
        places[mine] = lag.calls + np.arange(mine.size)
        if lag.is_ambiguous:
            guessed.append(device)
    notes.extend(_about(calls, int(calls.groups[rows[0]]), strangers, guessed, ranks))
    return places


def _kinds(calls: Calls, rows: Int64s) -> npt.NDArray[np.int64]:
    """Give a number to what tells calls apart: collective, type and size, else the name."""
    is_named = calls.collectives[rows] == len(calls.collective_texts) - 1
    keys = np.column_stack(
        [
            calls.collectives[rows],
            calls.dtypes[rows],
            calls.message_bytes[rows],
            np.where(is_named, calls.names[rows], NOTHING),
        ]
    )
    _, kinds = np.unique(keys, axis=0, return_inverse=True)
    return kinds.reshape(-1)


def _about(
    calls: Calls,
    group: int,
    strangers: Sequence[int],
    guessed: Sequence[int],
    ranks: Sequence[int | None],
) -> Iterator[Note]:
    name, members, _ = calls.group_texts[group]
    which = f"process group {name} ({members})" if name else "calls without a process group"
    if strangers:
        yield Note(
            "collectives_mismatched",
            f"{which}: calls of {_listed(strangers, ranks)} are of other kinds or in another "
            f"order than those of the others, so they are not matched",
        )
    if guessed:
        yield Note(
            "collectives_ambiguous",
            f"{which}: several ways to lay calls of {_listed(guessed, ranks)} over those of "
            f"the others fit as well; the one whose clocks differ least is used",
        )


def _listed(devices: Sequence[int], ranks: Sequence[int | None]) -> str:
    known = sorted({rank for device in devices if (rank := ranks[device]) is not None})
    if not known:
        return f"{len(devices)} traces of unknown rank"
    more = f" and {len(known) - 4} more" if len(known) > 4 else ""
    return f"rank {', '.join(map(str, known[:4]))}{more}"


def _peers(calls: Calls, rows: Int64s, ranks: Sequence[int | None]) -> npt.NDArray[np.int64]:
    """Give numbers to point-to-point calls; those that tell no peer match nothing."""
    numbers = np.array([NOTHING if rank is None else rank for rank in ranks], np.int64)
    own = numbers[calls.devices[rows]]
    is_send = np.isin(calls.collectives[rows], _numbers_of(calls.collective_texts, ("send",)))
    source = np.where(is_send, own, calls.sources[rows])
    destination = np.where(is_send, calls.destinations[rows], own)
    keys = np.column_stack([source, destination, is_send])
    _, which = np.unique(keys, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")  # rows of a device are in order of start
    firsts = np.flatnonzero(np.diff(which[order], prepend=-1))
    nth = np.empty(rows.size, np.int64)
    nth[order] = np.arange(rows.size) - np.repeat(firsts, np.diff(np.append(firsts, rows.size)))
    unknown = (source < 0) | (destination < 0)
    nth[unknown] = -1 - rows[unknown]
    return np.column_stack([source, destination, nth])
