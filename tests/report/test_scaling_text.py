"""How a job scales, as text: what a terminal of 80 columns shows, and what a pipe gets."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from traceparse.errors import Note
from traceparse.report import json_text, scaling_text
from traceparse.run import ScaledRun, Scaling

TERMS = {
    "compute": 0.012,
    "contention": 0.0304,
    "exposed_transfer": 0.1081,
    "exposed_wait": 0.05,
    "pipeline_wait": 0.0,
    "exposed_unsplit": 0.0,
    "exposed_copy": -0.00001,
    "idle": -0.002,
}


def run(devices, step_ns, efficiency, path="", **fields: Any) -> ScaledRun:
    known: dict[str, Any] = {
        "path": path or f"n{devices}",
        "world_size": devices,
        "num_devices": devices,
        "step_ns": step_ns,
        "speedup": efficiency * devices,
        "efficiency": efficiency,
        "work_ratio": 1.0,
        "terms": dict.fromkeys(TERMS, 0.0),
    }
    return ScaledRun(**{**known, **fields})


def curve(*grown, mode="weak", source="counted", notes=()) -> Scaling:
    runs = run(1, 1_000_000_000, 1.0), *grown
    return Scaling({"name": "traceparse", "version": "1"}, mode, source, runs, tuple(notes))


def drawn(curve, draw=scaling_text.render, **options: Any) -> list[str]:
    file = io.StringIO()
    draw(curve, Console(file=file, **({"width": 80} | options)))
    return [line.rstrip() for line in file.getvalue().splitlines()]


MIDDLE = run(8, 1_052_631_579, 0.95, terms={**dict.fromkeys(TERMS, 0.0), "idle": 0.05})
LARGEST = run(1024, 1_247_349_383, 0.8017, terms=TERMS)


def test_a_verdict_the_largest_loss_the_base_point_and_two_tables():
    assert drawn(curve(MIDDLE, LARGEST)) == [
        "From 1 to 1,024 devices: efficiency 80.2%, speedup 820.94",
        "largest loss: exposed transfer, 10.8 of 19.8 % points",
        "weak scaling: the same work of each device, as the FLOP that were counted tell",
        "base point: n1 on 1 device, which is 100% by definition",
        "",
        "devices step ms speedup efficiency   work run",
        "      1 1,000.0    1.00     100.0% 100.0% n1",
        "      8 1,052.6    7.60      95.0% 100.0% n8",
        "  1,024 1,247.3  820.94      80.2% 100.0% n1024",
        "work: FLOP that a device-step executes, of those that weak scaling asks for",
        "",
        "Lost  % points of efficiency, against the base point scaled ideally",
        "devices lost compute contention transfer wait pipeline unsplit copy idle",
        "      8  5.0       0          0        0    0        0       0    0  5.0",
        "  1,024 19.8     1.2        3.0     10.8  5.0        0       0 -0.0 -0.2",
        "transfer, wait, pipeline (send and recv) and unsplit are exposed communication",
    ]


def test_80_columns_hold_it():
    lines = drawn(curve(MIDDLE, LARGEST), force_terminal=True, no_color=True, color_system=None)
    assert max(map(len, lines)) <= 80


def test_nothing_is_lost():
    terms = {**dict.fromkeys(TERMS, 0.0), "compute": -0.25}
    lines = drawn(curve(run(2, 800_000_000, 1.25, terms=terms), mode="strong", source="given"))
    assert lines[:3] == [
        "From 1 to 2 devices: efficiency 125.0%, speedup 2.50",
        "largest loss: none, as nothing takes longer than if it scaled ideally",
        "strong scaling: the same work of all devices together, as given",
    ]


def test_what_is_unknown_or_assumed_is_no_number():
    unknown = run(2, 1_000_000, 0.5, work_ratio=None, terms={"compute": 0.5})
    base = run(1, 1_000_000, 1.0, work_ratio=None, terms={"compute": 0.0})
    assumed = Scaling({}, "strong", "assumed", (base, unknown), ())
    lines = drawn(assumed)
    assert lines[2] == (
        "strong scaling: the same work of all devices together, which is assumed, as FLOP do "
        "not tell"
    )
    assert lines[7] == "      2   1.000    1.00      50.0%    \N{EN DASH} n2"
    assert lines[11:13] == ["devices lost compute", "      2 50.0    50.0"]


def test_names_are_shown_and_not_obeyed():
    path = "\x1b[2J[bold]n2\u202e"
    notes = [Note("work_differs", f"{path}: differs")]
    hostile = curve(run(2, 1_000_000, 1.0, path), notes=notes)
    assert "\\x1b[2J[bold]n2\\u202e" in drawn(hostile)[7]
    assert drawn(hostile, scaling_text.render_notes) == [
        "work_differs: \\x1b[2J[bold]n2\\u202e: differs"
    ]
    assert "\\u001b[2J[bold]n2\\u202e" in json_text.render(hostile)


def test_an_output_that_writes_ascii_only():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    unknown = curve(run(2, 1_000_000, 0.5, "größer", work_ratio=None))
    scaling_text.render(unknown, Console(file=file, width=80))
    file.seek(0)
    assert "50.0%      - gr\\xf6\\xdfer" in file.read()
