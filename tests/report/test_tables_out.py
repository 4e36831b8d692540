"""Tables of a report: those of the schema, equal to report.json, and safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from tests.report.made_across import split, together
from traceparse.report.tables_out import render_csv, render_parquet, tables_of
from traceparse.report_tables import REPORT_TABLES


@pytest.fixture
def full(used):
    return replace(together(used), utilization=split(used.utilization))


def csv_of(report, name):
    return list(csv.DictReader(io.StringIO(render_csv(report)[f"tables/{name}.csv"])))


def test_every_table_is_written_with_its_schema(full, make):
    for report in (full, make.report([])):
        files = render_parquet(report)
        assert list(files) == [f"tables/{name}.parquet" for name in REPORT_TABLES]
        for name, table in REPORT_TABLES.items():
            read = pq.read_table(io.BytesIO(files[f"tables/{name}.parquet"]))
            assert read.schema.names == [column.name for column in table.columns]
            assert read.schema.types == [column.type for column in table.columns]


def test_rows_are_the_entries_of_the_report(full):
    plain, tables = full.to_dict(), tables_of(full)
    for name in ("roofline", "findings", "collectives"):
        rows = tables[name].to_pylist()
        assert len(rows) == len(plain[name])
        for row, entry in zip(rows, plain[name], strict=True):
            for column, value in row.items():
                expected = entry[column]
                if isinstance(expected, dict):
                    expected = list(expected.items())
                assert value == expected
    assert [row["path"] for row in tables["files"].to_pylist()] == ["trace.json.gz"]
    assert len(tables["notes"]) == len(plain["notes"])


def test_the_run_is_one_row(full):
    (row,) = tables_of(full)["run"].to_pylist()
    assert row["verdict"] == full.summary.verdict
    assert row["span_ns"] == full.summary.times.span_ns
    assert row["mfu"] == full.utilization["mfu"]
    assert row["load_balance"] == full.scaling_loss["load_balance"]
    assert row["accelerator"] == "h100-sxm"
    assert row["ranks"] == [0, 1]
    assert row["usd_per_step"] == 10.0


def test_devices_and_steps_have_their_times_and_use(full):
    tables = tables_of(full)
    devices = tables["devices"].to_pylist()
    assert [row["rank"] for row in devices] == [0, 1]
    assert [row["mfu"] for row in devices] == [0.4, 0.35]
    assert devices[0]["idle_ns"] == full.devices[0].window.idle_ns
    assert (devices[0]["kernels_count"], devices[0]["unlinked_count"]) == (1_234, 7)
    steps = {(row["rank"], row["step"]): row for row in tables["steps"].to_pylist()}
    assert len(steps) == 6
    assert steps[0, 3]["compute_ns"] == full.devices[0].steps[0].times.compute_ns
    assert steps[0, 3]["exposed_wait_ns"] == 150_000_000
    assert steps[1, 4]["span_ns"] is None  # it did no device work


def test_waterfalls_are_of_the_run_and_of_each_device(full):
    rows = tables_of(full)["waterfall"].to_pylist()
    for place, use in [
        ((None, None), full.utilization),
        *(((one.rank, str(one.device)), one.utilization) for one in full.devices),
    ]:
        own = [row for row in rows if (row["rank"], row["device"]) == place]
        assert [(row["name"], row["ratio"]) for row in own] == [
            (share["name"], share["ratio"]) for share in use["waterfall"]
        ]


def test_clocks_are_one_row_a_rank(full):
    assert tables_of(full)["clock"].to_pylist() == [
        {"rank": 0, "offset_ns": 0, "drift_ppm": 0.0},
        {"rank": 1, "offset_ns": -1_300_000, "drift_ppm": 0.0},
    ]


def test_flop_beyond_64_bits_are_kept_and_times_beyond_them_are_unknown(full, make):
    rows = [make.row(flop=2**70, time_ns=2**63, count=2**63 - 1)]
    (row,) = tables_of(replace(full, roofline=rows))["roofline"].to_pylist()
    assert (row["flop"], row["time_ns"], row["count"]) == (float(2**70), None, 2**63 - 1)


def test_parquet_has_names_as_they_are_but_for_what_is_no_text(hostile, hostile_text):
    (row,) = tables_of(hostile)["roofline"].to_pylist()
    assert row["op"] == hostile_text.replace("\udcff", "\\udcff")


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "=HYPERLINK(1)"])
def test_no_name_is_a_formula_in_a_spreadsheet(name, full, make):
    (row,) = csv_of(replace(full, roofline=[make.row(name, lost_ns=-5)]), "roofline")
    assert row["op"] == f"'{name}"
    assert row["lost_ns"] == "-5"  # a number is none


def test_csv_says_the_same_and_leaves_unknown_empty(full):
    rows = csv_of(full, "collectives")
    assert rows[0]["ranks"] == "0-1"
    assert rows[0]["last_rank_counts"] == '{"1": 4}'
    assert rows[2]["busbw_bytes_per_s"] == ""
    assert float(rows[0]["busbw_bytes_per_s"]) == 266.5e9


def test_csv_shows_what_is_invisible(hostile):
    text = "".join(render_csv(hostile).values())
    assert "\x1b" not in text
    assert "\u202e" not in text
    (row,) = csv_of(hostile, "roofline")
    assert row["op"].startswith("<script>alert('x')</script> [red]loud[/red] \\x1b[31mred")


def test_what_is_judged_and_what_took_most_are_tables(full):
    judged = {"mfu": {"value": 0.4, "band": "good", "limits": {"good": 0.35}, "source": "page"}}
    host = {"idle_ns": 6, "data_loader_ns": 1, "sync_ns": 2, "launch_ns": 3, "unknown_ns": 0}
    kernel = {
        "name": "gemm",
        "op": "aten::mm",
        "shapes": "2x2",
        "kind": "compute",
        "is_counted": True,
        "count": 3,
        "time_ns": 5,
        "ratio": 0.5,
        "least_bytes": 48,
    }
    summary = replace(full.summary, bound={"by": "host", "ratio": 0.25})
    tables = tables_of(
        replace(full, bands=judged, host=host, top_kernels=[kernel], summary=summary)
    )
    assert tables["bands"].to_pylist() == [
        {"name": "mfu", "value": 0.4, "band": "good", "source": "page"}
    ]
    assert tables["top_kernels"].to_pylist() == [kernel]
    (run,) = tables["run"].to_pylist()
    assert (run["bound"], run["bound_ratio"]) == ("host", 0.25)
    assert (run["host_idle_ns"], run["host_sync_ns"]) == (6, 2)
