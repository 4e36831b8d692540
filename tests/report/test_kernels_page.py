"""Kernels, why devices idled, and copies, on the page."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.report.parsed import Parsed
from traceparse.report import html
from traceparse.report.page_kernels import copy_table, host_of, kernel_table

MS = 1_000_000


def kernel(name: str | None = "gemm<128>", **fields: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "op": "aten::mm",
        "shapes": "64x64, 64x64",
        "kind": "compute",
        "is_counted": True,
        "count": 1_234,
        "time_ns": 250 * MS,
        "ratio": 0.25,
        "least_bytes": None,
    }
    return {"name": name, **known, **fields}


def test_kernels_are_listed_and_the_rest_is_not_one_of_them(report):
    rest = kernel(None, op=None, shapes=None, time_ns=MS, ratio=0.001)
    unknown = kernel("copy", op=None, shapes=None, kind="copy", is_counted=False)
    page = Parsed(html.render(replace(report, top_kernels=[kernel(), unknown, rest])))
    assert page.body("kernels-table") == [
        ["gemm<128>", "aten::mm 64x64, 64x64", "compute", "1,234", "250.0", "25.0%", "yes"],
        ["copy", "–", "copy", "1,234", "250.0", "25.0%", "no"],
    ]
    assert page.fields()["top_kernels.0.time_ns"] == ["250000000"]
    assert "report.json has 1 more row." in page.text
    assert "#kernels" in page.attributes("href")


def test_without_kernels_there_is_no_table():
    assert kernel_table(None) is None
    assert kernel_table([]) is None
    assert copy_table(None) is None


def test_causes_of_idle_time_add_up_to_it():
    host = {
        "idle_ns": 200 * MS,
        "data_loader_ns": 100 * MS,
        "sync_ns": 50 * MS,
        "launch_ns": 30 * MS,
        "unknown_ns": 20 * MS,
    }
    found = host_of(host)
    assert found is not None
    assert [(cause.name, cause.time.text, cause.share.text) for cause in found.causes] == [
        ("data loader", "100.0", "50.0%"),
        ("synchronizing calls", "50.0", "25.0%"),
        ("launching", "30.0", "15.0%"),
        ("not known", "20.0", "10.0%"),
    ]
    assert [(cause.x, cause.width) for cause in found.causes] == [
        *(("0.000%", "50.000%"), ("50.000%", "25.000%"), ("75.000%", "15.000%")),
        ("90.000%", "10.000%"),
    ]
    assert found.causes[1].time.field == "host.sync_ns"


def test_where_no_device_idled_there_is_nothing_to_explain():
    nothing = dict.fromkeys(("data_loader_ns", "sync_ns", "launch_ns", "unknown_ns"), 0)
    assert host_of({"idle_ns": 0, **nothing}) is None
    assert host_of(None) is None


def test_copies_are_listed_by_direction_and_memory():
    row = {"direction": "HtoD", "memory": "pageable", "count": 4, "time_ns": 12 * MS}
    odd = {"direction": None, "memory": None, "count": 1, "time_ns": MS}
    table = copy_table(
        [
            {**row, "bytes": 10**9, "exposed_ns": 3 * MS},
            {**odd, "bytes": None, "exposed_ns": None},
        ]
    )
    assert table is not None
    assert [[cell.text for cell in cells if hasattr(cell, "text")] for cells in table.rows] == [
        ["HtoD", "pageable", "4", "12.000", "1,000.0 MB", "3.000"],
        ["–", "–", "1", "1.000", "–", "–"],
    ]
