"""Table ``instances``: every collective once, with what each of its ranks had in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from traceparse.intervals import Int64s
from traceparse.run.across import PEERS, Across
from traceparse.run.gathered import NOTHING
from traceparse.tables import ArrowTable, schema_of

__all__ = ["instances_table"]


def instances_table(together: Across | None) -> ArrowTable:
    """Return a row an instance, in order of its first start; none where nobody communicated."""
    schema = schema_of("instances")
    if together is None:
        return schema.empty_table()
    columns = {**_kinds(together), **_parts(together)}
    table = pa.table([columns[name] for name in schema.names], schema=schema)
    started = np.full(table.num_rows, np.iinfo(np.int64).max)
    instances = together.instances
    np.minimum.at(started, instances.part_instance, instances.part_start_ns)
    return table.take(pa.array(np.argsort(started, kind="stable")))


def _kinds(together: Across) -> dict[str, pa.Array]:
    """Return what an instance is, and what is known of it as a whole."""
    calls, instances = together.calls, together.instances
    first, is_split = instances.first_call, instances.is_split
    groups = [calls.group_texts[group] for group in calls.groups[first].tolist()]
    named = [calls.collective_texts[one] for one in calls.collectives[first].tolist()]
    peers = instances.is_peer.tolist()
    sizes = calls.message_bytes[first]
    last = np.array([NOTHING if rank is None else rank for rank in together.ranks], np.int64)
    last_rank = last[instances.last_device()]
    return {
        "group": pa.array([name for name, _, _ in groups], pa.string()),
        "group_ranks": pa.array([ranks for _, ranks, _ in groups], pa.string()),
        "collective": pa.array(
            [PEERS if peer else name for peer, name in zip(peers, named, strict=True)],
            pa.string(),
        ),
        "dtype": pa.array(
            [calls.dtype_texts[one] for one in calls.dtypes[first].tolist()], pa.string()
        ),
        "bytes": pa.array(sizes, mask=sizes == NOTHING),
        "is_split": pa.array(is_split),
        "transfer_ns": pa.array(instances.transfer_ns, mask=~is_split),
        "last_rank": pa.array(last_rank, mask=~is_split | (last_rank == NOTHING)),
    }


def _parts(together: Across) -> dict[str, pa.Array]:
    """Return the columns that have an entry for each device in an instance."""
    instances = together.instances
    devices = instances.part_device.tolist()
    offsets = np.searchsorted(
        instances.part_instance, np.arange(instances.first_call.size + 1)
    ).astype(np.int32)

    def listed(values: list[Any] | Int64s, kind: pa.DataType, **how: Any) -> pa.Array:  # noqa: ANN401 - Arrow's
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, kind, **how))

    is_split = instances.is_split[instances.part_instance]
    return {
        "ranks": listed([together.ranks[device] for device in devices], pa.int64()),
        "devices": listed(
            [str(together.devices[device].device) for device in devices], pa.string()
        ),
        "start_ns": listed(instances.part_start_ns, pa.int64()),
        "end_ns": listed(instances.part_end_ns, pa.int64()),
        "wait_ns": listed(instances.part_wait_ns, pa.int64(), mask=~is_split),
    }
