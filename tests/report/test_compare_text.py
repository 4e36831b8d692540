"""What changed between two runs, as text: what a terminal of 100 columns shows."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from tests.run.compare.made import collective, compared, kernel, report_of, steps_of
from traceparse.report import compare_text
from traceparse.report.compare_words import reasons, verdict

MS = 1_000_000
STEADY = tuple(at * MS for at in (100, 101, 99, 100, 102, 98))


def job(*extra_ms, **fields):
    ranks = [
        steps_of(*(at + ns * MS for at in STEADY), split=(10 * MS, ns * MS, 0, 0))
        for ns in extra_ms
    ]
    return report_of(*ranks, **fields)


def drawn(found, draw=compare_text.render, **options: Any) -> list[str]:
    file = io.StringIO()
    draw(found, Console(file=file, **({"width": 100} | options)))
    return [line.rstrip() for line in file.getvalue().splitlines()]


ROWS = {
    "top_kernels": [kernel("aten::mm", "2x2, 2x2", 24 * MS, name="cutlass", count=12)],
    "collectives": [collective("allreduce", 25 * MS, count=6)],
}
OTHER_ROWS = {
    "top_kernels": [kernel("aten::mm", "2x2, 2x2", 84 * MS, name="nvjet", count=12)],
    "collectives": [
        collective("allreduce", 25 * MS, count=6, exposed_ns=120 * MS, wait_ns=120 * MS)
    ],
}


def test_a_verdict_its_reasons_terms_operators_and_collectives():
    found = compared(job(0, 0, **ROWS), job(10, 10, **OTHER_ROWS))
    lines = drawn(found)
    interval = [bound / MS for bound in found.step_ns["interval"]]
    assert lines == [
        f"Slower by 10.0%: a mean step takes 110.0 ms instead of 100.0 ms (+10.0 ms, 95% "
        f"interval +{interval[0]:.1f} to +{interval[1]:.1f} ms)",
        "what changed: exposed wait +10.0 ms",
        "it is one operator: aten::mm 2x2, 2x2, +5.0 ms (other kernel)",
        "base: base0: 2 devices, h100-sxm, 6 steps, MFU 0.0%",
        "new:  new0: 2 devices, h100-sxm, 6 steps, MFU 0.0%",
        "",
        "term             base ms new ms change of step significant",
        "compute             90.0   90.0      0      0%          no",
        "exposed transfer    10.0   10.0      0      0%          no",
        "exposed wait           0   10.0  +10.0  +10.0%         yes",
        "step               100.0  110.0  +10.0  +10.0%         yes",
        "",
        "Operators that changed, ms of a mean step",
        "     +5.0   +5.0% aten::mm 2x2, 2x2 (other kernel)",
        "                  2.0 -> 7.0 ms; 1x a step; kernel cutlass -> nvjet",
        "",
        "Collectives that changed, exposed ms of a mean step",
        "    +10.0  +10.0% allreduce of 25.0 MB fp32 among ranks 0-1",
        "                  transfer 0.0 ms; wait 0.0 -> 10.0 ms; exposed 0.0 -> 10.0 ms; "
        "1x a step",
    ]


def test_no_difference_is_said_and_nothing_else_looked_for():
    again = job(
        0,
        0,
        **ROWS
        | {"top_kernels": [kernel("aten::mm", "2x2, 2x2", 30 * MS, name="cutlass", count=12)]},
    )
    lines = drawn(compared(job(0, 0, **ROWS), again))
    assert lines[0] == ("No difference: a mean step takes 100.0 ms on both sides, term by term")
    assert not [line for line in lines if "Operators" in line or "what changed" in line]


def test_what_appeared_is_said_also_where_it_makes_no_difference():
    more = [*ROWS["top_kernels"], kernel("aten::mul", "8", 12)]
    again = job(0, 0, **ROWS | {"top_kernels": more})
    lines = drawn(compared(job(0, 0, **ROWS), again))
    assert lines[-2:] == [
        "      0.0    0.0% aten::mul 8 (new)",
        "                  0.0 ms; 0.08333x a step",
    ]


def test_verdicts():
    base = job(0, 0)
    assert verdict(compared(job(10, 10), base)).startswith("Faster by 9.1%: a mean step takes ")
    few = report_of(steps_of(100 * MS, 101 * MS))
    assert verdict(compared(few, report_of(steps_of(110 * MS, 111 * MS)))) == (
        "A mean step takes 110.5 ms, before 100.5 ms (+10.0 ms); whether that is chance is "
        "unknown, as there are too few steps"
    )
    shifted = report_of(steps_of(*STEADY, idle=30 * MS))
    found = compared(report_of(steps_of(*STEADY, idle=5 * MS)), shifted)
    assert verdict(found).startswith("No difference in the whole: a mean step takes 100.0 ms, ")
    assert verdict(found).endswith("; but what it consists of changed")
    assert list(reasons(found)) == ["what changed: compute -25.0 ms, idle +25.0 ms"]


def test_one_rank_is_named():
    rank = {"rank": 3, "delta_ns": 5 * MS, "others_delta_ns": 0, "term": "idle", "cause": None}
    found = replace(compared(job(0, 0), job(10, 10)), rank=rank)
    assert drawn(found)[1] == (
        "it is one rank: rank 3; what it does itself changed by +5.0 ms (most of it idle), by "
        "0 ms on the median of the others"
    )
    link = {**rank, "delta_ns": None, "others_delta_ns": None, "term": None,
            "cause": "slow link"}  # fmt: skip
    assert drawn(replace(found, rank=link))[1] == "it is one rank: rank 3: slow link"


def test_100_columns_hold_it_and_a_narrow_terminal_wraps_between_words():
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::Threshold>(int)"
    rows = {"top_kernels": [kernel("aten::mm", "2x2, 2x2", 84 * MS, name=name, count=12)]}
    found = compared(job(0, 0, **ROWS), job(10, 10, **rows))
    plain = {"force_terminal": True, "no_color": True, "color_system": None}
    assert max(map(len, drawn(found, **plain))) <= 100
    narrow = drawn(found, **plain, width=60)
    assert max(map(len, narrow)) <= 64  # the table of numbers is as wide as it is
    # a name that is longer than a line is broken in it
    assert "".join("".join(narrow).split()) == "".join("".join(drawn(found)).split())


def test_names_are_shown_and_not_obeyed():
    hostile = "\x1b[2J[bold]\u202e"
    rows = {"top_kernels": [kernel(hostile, hostile, 84 * MS, name=hostile)]}
    found = compared(job(0, 0, **ROWS), job(10, 10, **rows))
    text = "\n".join(drawn(found))
    assert "\x1b" not in text
    assert "\\x1b[2J[bold]\\u202e" in text


def test_notes():
    lines = drawn(compared(job(0, 0), job(10, 10)), compare_text.render_notes)
    assert any(
        line.startswith("runs_not_repeated: base0 and new0: what two runs") for line in lines
    )
