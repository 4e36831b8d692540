"""Where 100 % of the peak goes, in a terminal."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.report.test_terminal import drawn, lines
from traceparse.errors import Note
from traceparse.report import terminal
from traceparse.report.peak import cost_lines
from traceparse.report.terminal_peak import render_findings, render_peak
from traceparse.report.words import term_of


def test_the_section_at_80_columns(used):
    # no formatter touches this: it is the picture that people see
    expected = """\

Where 100% of the peak goes  494.7 TFLOP/s a device, HFU 50.0%, MFU 37.5%
MFU estimated: executed less recomputed; counted with causal attention half
Peak of h100-sxm: 989.4 TFLOP/s in bf16; table of accelerators, found by name (confidence high)
  idle                  5.0%  ░░
  exposed copy          5.0%  ▒▒
  exposed comm         10.0%  ▓▓▓▓
  other kernels        20.0%  ▒▒▒▒▒▒▒▒
  matmul inefficiency  10.0%  ▓▓▓▓
  recompute            12.5%  ▒▒▒▒▒
  MFU                  37.5%  ███████████████

Ranks  each over its steps, in % of its peak
rank  TFLOP/s    HFU   idle  copy   comm  other  matmul  recomp.    MFU
   0    494.7  50.0%   5.0%  5.0%  10.0%  20.0%   10.0%    10.0%  40.0%
   1    494.7  45.0%  10.0%  5.0%  10.0%  20.0%   10.0%    10.0%  35.0%

Operators that lose most  the whole file: ms, TFLOP/s, and % of the roof
 lost  time  runs TFLOP/s  roof bound   dtype operator and shapes
190.0 500.0 1,234   612.3 61.9% compute bf16  aten::mm
                                              [[8192, 4096], [4096, 14336]]
 80.0 500.0 1,234   612.3 61.9% memory  bf16  aten::_scaled_dot_product_flash_at
                                              tention
                                              [[8192, 4096], [4096, 14336]]
    – 500.0 1,234   612.3     – –       bf16  op0
                                              [[8192, 4096], [4096, 14336]]
    – 500.0 1,234   612.3     – –       bf16  op1
                                              [[8192, 4096], [4096, 14336]]
    – 500.0 1,234   612.3     – –       bf16  op2
                                              [[8192, 4096], [4096, 14336]]
… 2 more rows in report.json

Cost  $10.00 a step (4 GPU-hours at $2.50), $0.050 a million tokens
Lost of it to exposed comm $2.25, idle $1.50
"""
    assert lines(render_peak, used, 80) == expected.splitlines()


@pytest.mark.parametrize("width", [40, 60, 70, 80, 100, 140])
def test_a_terminal_is_never_overrun_and_no_number_cut(used, make, width):
    text = drawn(render_peak, used, width, force_terminal=True)
    for number in ("494.7", "37.5%", "12.5%", "190.0", "61.9%", "$10.00"):
        assert number in text
    if width >= 70:
        bad = replace(used, findings=[make.finding(), make.finding("warning")])
        for one in (used, bad, make.fleet(3)):
            printed = drawn(terminal.render, one, width, force_terminal=True).splitlines()
            assert all(cell_len(line) <= width for line in printed)


def test_an_output_that_knows_ascii_only_gets_ascii(used):
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80)
    render_peak(used, console)
    console.file.flush()
    text = raw.getvalue().decode("ascii")
    assert "  MFU                  37.5%  ###############" in text
    assert "    - 500.0 1,234   612.3     - -" in text


def test_no_color_leaves_the_text_alone(used):
    plain = io.StringIO()
    render_peak(used, Console(file=plain, width=80, force_terminal=True, color_system=None))
    assert plain.getvalue() == drawn(render_peak, used, 80, force_terminal=True)


def test_the_section_comes_last_and_errors_first(used, make):
    findings = [
        make.finding(title="too fast", evidence="120%"),
        make.finding(title="this too", evidence="130%"),
        make.finding("warning", title="odd", advice="look"),
    ]
    printed = lines(terminal.render, replace(used, findings=findings), 200)
    assert printed[:4] == [
        "error: too fast: 120%",
        "error: this too: 130%",
        "  so the device is another",
        "compute 60.0%, exposed comm 20.0%",
    ]
    below = printed.index("warning: odd: 120% of the peak")
    assert printed[below + 1] == "  so look"
    assert (
        printed.index(
            "Operators that lose most  the whole file: ms, TFLOP/s, and % of the roof"
        )
        > below
    )


def test_errors_are_red(used, make):
    colored = io.StringIO()
    console = Console(file=colored, width=80, force_terminal=True)
    render_findings(replace(used, findings=[make.finding()]), console, "error")
    assert "\x1b[1;31m" in colored.getvalue()


def test_what_is_not_known_at_all_is_one_line_that_says_why(used, make):
    nothing = dict.fromkeys(make.use())
    notes = (
        Note("peak_unknown", "which device?"),
        Note("flop_unknown", "no shapes"),
        Note("model_flop_unknown", "no model FLOP"),
    )
    bare = replace(used, utilization=nothing, roofline=None, cost=None, notes=notes)
    assert lines(render_peak, bare) == ["", "Where 100% of the peak goes  unknown: no shapes"]
    assert lines(render_peak, replace(bare, notes=())) == [
        "",
        "Where 100% of the peak goes  unknown: the notes say why",
    ]
    assert lines(render_peak, replace(bare, utilization=None)) == []


def test_flop_without_a_peak_have_their_rate_and_a_reason(used, make):
    use = {**make.use(), "hfu": None, "mfu": None, "waterfall": None}
    rows = [make.row(lost_ns=None, roof_ratio=None, bound=None)]
    report = replace(
        used,
        run=replace(used.run, accelerator=None),
        devices=(),
        utilization=use,
        roofline=rows,
        cost=None,
        notes=(Note("peak_unknown", "which device?"),),
    )
    assert lines(render_peak, report)[:6] == [
        "",
        "Where 100% of the peak goes  494.7 TFLOP/s a device, HFU –, MFU –",
        "Counted with causal attention half",
        "no waterfall: which device?",
        "",
        "Operators that take most  the whole file: ms, TFLOP/s, and % of the roof",
    ]


def test_who_counted_model_flop_is_said(used, make):
    def premise(source, convention):
        run = replace(used.run, conventions={"model_flop": convention}, accelerator=None)
        report = replace(used, run=run, utilization=make.use(mfu_source=source))
        return lines(render_peak, report)[2]

    assert premise("declared", "palm") == "MFU from declared model FLOP: palm"
    assert premise("declared", "given") == "MFU from declared model FLOP"
    assert premise("counted", "counted") == "MFU from model FLOP that capture recorded"


def test_what_figures_lack_is_said_beside_them(used):
    notes = (Note("kernels_unattributed", "half of the time belongs to no operator"),)
    assert lines(render_peak, replace(used, notes=notes))[4] == notes[0].message


def test_shares_beyond_all_are_drawn_within_the_room(used, make):
    use = make.use(mfu=1.7, recompute=-0.2, matmul=-0.6)
    printed = lines(render_peak, replace(used, utilization=use), 80)
    (mfu,) = [line for line in printed if line.startswith("  MFU")]
    assert mfu.endswith("170.0%  " + "█" * 40)
    assert "  recompute            -20.0%" in printed


def test_one_rank_needs_no_table_of_ranks_and_many_are_chosen_from(used, make):
    one = replace(used, devices=used.devices[:1])
    assert not any(line.startswith("Ranks") for line in lines(render_peak, one))
    fleet = make.fleet(30)
    devices = tuple(replace(device, utilization=make.use()) for device in fleet.devices)
    printed = lines(render_peak, replace(used, devices=devices))
    assert "… 22 more rows in report.json" in printed


def test_devices_of_one_rank_are_told_apart(used):
    first = used.devices[0]
    devices = (first, replace(first, device=1))
    printed = lines(render_peak, replace(used, devices=devices), 100)
    assert any(line.startswith("rank  device  TFLOP/s") for line in printed)


def test_a_term_that_is_new_is_drawn_plainly():
    assert (term_of("cosmic_rays").name, term_of("cosmic_rays").key) == (
        "cosmic rays",
        "other",
    )


def test_nothing_lost_is_not_listed(used):
    cost = {**used.cost, "lost_usd_per_step": {"idle": 0.0}, "usd_per_million_tokens": None}
    assert list(cost_lines(cost)) == ["$10.00 a step (4 GPU-hours at $2.50)"]
