from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.contract.places import HAND
from tests.traces import kernel, step, write
from traceparse.errors import Note
from traceparse.ingest import read_traces
from traceparse.rank import StoredError, digest, from_table, to_table
from traceparse.rank.times import CALLS, EXPOSED

TRACES = sorted(HAND.rglob("py.json"))


@pytest.fixture(scope="module")
def digests():
    return [digest(trace) for path in TRACES for trace in read_traces(path)]


def test_what_comes_out_is_what_went_in(digests):
    assert len(digests) > 8
    assert from_table(to_table(digests)) == digests
    assert from_table(to_table([])) == []


def test_what_a_trace_says_of_devices_and_job(tmp_path):
    devices = [{"id": 0, "name": "é", "numSms": 132, "totalGlobalMem": 2**63 - 1}, {}]
    facts = {"params": 2**63 - 1, "num_threads": 4}
    path = write(
        tmp_path / "rank0.json", [kernel(1, 5)], deviceProperties=devices, traceparse=facts
    )
    (found,) = [digest(trace) for trace in read_traces(path)]
    assert (found.header.devices, found.header.facts) == (tuple(devices), facts)
    assert from_table(to_table([found])) == [found]


def test_sums_beyond_64_bits_and_any_name(tmp_path):
    events = [kernel(1 + n, 4e15, f"k{n}") for n in range(9)]
    path = write(tmp_path / "rank0.json", [*events, step(1, 0.5, 30), step(2, 40, 9)])
    (found,) = [digest(trace) for trace in read_traces(path)]
    assert found.devices[0].kernels.time_ns > 1 << 64
    assert found.devices[0].steps[1].times is None
    odd = replace(found, notes=(Note("code", 'é "\0" ]}', None, "a\nb"),), process=None)
    assert from_table(to_table([odd, found])) == [odd, found]


def test_tables_of_others_are_refused(digests):
    table = to_table(digests)
    for other in (
        pa.table({"a": [1]}),
        table.drop_columns(["step"]),
        table.replace_schema_metadata(None),
        table.replace_schema_metadata({"traceparse.digests": "[{}]"}),
        table.replace_schema_metadata({"traceparse.digests": "[" * 10**5}),
        table.replace_schema_metadata({"traceparse.digests": "\xff"}),
        table.slice(1),
        table.slice(0, table.num_rows // 2),
    ):
        with pytest.raises(StoredError):
            from_table(other)


def many_calls(num):
    """Return a table of calls that differ as those of a step do."""
    rows = np.arange(num)
    columns = {
        **{
            name: pa.array(10**18 + rows * 1_234_567 + np.random.default_rng(3).integers(9999))
            for name in ("start_ns", "end_ns", "launched_ns")
        },
        "step": pa.array(rows // 1000),
        "in_elements": pa.array(rows % 7 * 12345),
        "sequence": pa.array(rows.astype(np.uint64)),
        "comms_id": pa.array(np.random.default_rng(1).integers(2**64, size=num, dtype="u8")),
        "is_partial": pa.array(rows % 2 == 0),
        "name": pa.array([f"ncclDevKernel_{row % 9}" for row in rows.tolist()]),
    }
    arrays = [
        columns[field.name].cast(field.type)
        if field.name in columns
        else pa.nulls(num, field.type)
        for field in CALLS
    ]
    return pa.Table.from_arrays(arrays, schema=CALLS)


def test_tables_of_devices_come_back_small_and_soon():
    (found,) = [digest(trace) for trace in read_traces(TRACES[0])]
    exposed = pa.table([np.arange(20_000) * 2, np.arange(20_000) * 2 + 1], schema=EXPOSED)
    device = replace(found.devices[0], calls=many_calls(20_000), exposed=exposed)
    many = replace(found, devices=(device,))
    table = to_table([many, found])
    assert table.nbytes < 3_000_000
    assert from_table(table) == [many, found]
    assert from_table(table) != [found, many]
    lasts = []
    for _ in range(5):
        began = time.perf_counter()
        from_table(to_table([many]))
        lasts.append(time.perf_counter() - began)
    assert min(lasts) < 0.2  # a few ms, but this machine has more to do


@pytest.mark.parametrize("damage", [b"", b"ARROW"])
def test_damaged_tables_of_devices_are_refused(damage):
    (found,) = [digest(trace) for trace in read_traces(TRACES[0])]
    device = replace(found.devices[0], calls=many_calls(9))
    table = to_table([replace(found, devices=(device,))])
    whole = table["calls"][0].as_py()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, EXPOSED) as stream:
        stream.write_table(EXPOSED.empty_table())
    for stored in (damage, whole[:-90], whole[: len(whole) // 2], bytes(sink.getvalue())):
        calls = pa.array([stored, *[None] * (table.num_rows - 1)], pa.large_binary())
        at = table.column_names.index("calls")
        with pytest.raises(StoredError):
            from_table(table.set_column(at, table.schema.field(at), calls))
