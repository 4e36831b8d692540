"""Table ``instances``: rows worked out by hand, and the sums of field ``collectives``."""

from __future__ import annotations

from tests.simulated import made
from tests.traces import BASE_NS, all_reduce, job, kernel, write
from traceparse.engine import read
from traceparse.run.instances_table import instances_table
from traceparse.tables import schema_of


def test_an_instance_has_what_each_rank_had_in_it(tmp_path):
    for rank, start, dur in ((0, 100, 50), (1, 130, 20)):
        events = [all_reduce(start, dur), kernel(200, 1)]
        write(tmp_path / f"rank{rank}.json", events, distributedInfo=job(rank, 2))
    (row,) = read(tmp_path).tables["instances"].to_pylist()
    assert row == {
        "group": "0",
        "group_ranks": "0-1",
        "collective": "allreduce",
        "dtype": "Float",
        "bytes": 1024,
        "is_split": True,
        "transfer_ns": 20_000,
        "last_rank": 1,
        "ranks": [0, 1],
        "devices": ["0", "0"],
        "start_ns": [BASE_NS + 100_000, BASE_NS + 130_000],
        "end_ns": [BASE_NS + 150_000, BASE_NS + 150_000],
        "wait_ns": [30_000, 0],
    }


def test_what_one_rank_shows_alone_is_not_split(tmp_path):
    write(tmp_path / "a.json", [all_reduce(100, 50)], distributedInfo=job(0, 2))
    (row,) = read(tmp_path).tables["instances"].to_pylist()
    assert (row["is_split"], row["transfer_ns"], row["last_rank"]) == (False, None, None)
    assert (row["ranks"], row["wait_ns"]) == ([0], [None])


def test_no_communication_is_an_empty_table():
    assert instances_table(None).schema.equals(schema_of("instances"))
    assert not instances_table(None).num_rows


def test_rows_add_up_to_the_collectives_of_the_report(tmp_path):
    made("ddp", 4, 1).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    run = read(tmp_path)
    rows = run.tables["instances"].to_pylist()
    told = run.report.collectives
    assert told and len(rows) == sum(one["count"] for one in told)
    assert sum(row["transfer_ns"] or 0 for row in rows) == sum(
        one["transfer_ns"] or 0 for one in told
    )
    assert sum(sum(wait or 0 for wait in row["wait_ns"]) for row in rows) == sum(
        one["wait_ns"] or 0 for one in told
    )
    starts = [min(row["start_ns"]) for row in rows]
    assert starts == sorted(starts)
