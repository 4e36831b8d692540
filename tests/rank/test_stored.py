from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from tests.contract.places import HAND
from tests.traces import kernel, step, write
from traceparse.errors import Note
from traceparse.ingest import read_traces
from traceparse.rank import StoredError, digest, from_table, to_table

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
