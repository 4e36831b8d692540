"""The report on one screen, as text."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.test_terminal import drawn, lines
from traceparse.report import screen

EVIDENCE = "; ".join(f"statement {n} of the evidence, with its number {n}%" for n in range(9))


@pytest.fixture
def found(used, make):
    """A run whose peak is known, with more findings than there is room for."""
    findings = [
        make.finding(
            "warning", title="late", evidence=EVIDENCE, advice="hurry", lost_ratio=0.3
        ),
        make.finding("warning", title="paid", lost_ratio=0.125, lost_usd=1.25),
        make.finding("info", title="small", evidence="little", lost_ratio=0.01),
        *(make.finding("info", title=f"other {n}") for n in range(3)),
    ]
    return replace(used, findings=findings)


def test_the_screen_at_100_columns(found):
    # no formatter touches this: it is the picture that people see
    expected = """\
compute 60.0%, exposed comm 20.0%

Where 100% of the peak goes  494.7 TFLOP/s a device, HFU 50.0%, MFU 37.5%
  idle                  5.0%  ░░
  exposed copy          5.0%  ▒▒
  exposed comm         10.0%  ▓▓▓▓
  other kernels        20.0%  ▒▒▒▒▒▒▒▒
  matmul inefficiency  10.0%  ▓▓▓▓
  recompute            12.5%  ▒▒▒▒▒
  MFU                  37.5%  ███████████████

What to do  with the share of the steps that each would win back at most; warnings first
  30.0%  late
         statement 0 of the evidence, with its number 0%; statement 1 of the evidence, with its number 1%; statement 2 of the evidence, with its number 2%; …
         so hurry
  12.5%  paid ($1.25 a step)
         120% of the peak
         so the device is another
   1.0%  small
         little
         so the device is another
      –  other 0
         120% of the peak
         so the device is another
… 2 more findings: --full

Ranks  the whole window of each device: ms, and % of its span
rank  device     span      █ compute  ▓ exposed comm  ▒ exposed copy      ░ idle
   0       0  2,152.3  1,690.0 78.5%     410.0 19.0%      52.3  2.4%     0    0%  ██████████████▓▓▓▓
   1       1    999.0    450.0 45.0%     450.0 45.0%         0    0%  99.0  9.9%  ████████▓▓▓▓▓▓▓▓░░

Cost  $10.00 a step (4 GPU-hours at $2.50), $0.050 a million tokens
Lost of it to exposed comm $2.25, idle $1.50

--full prints steps, operators and conventions; --out DIR writes them as a page, Markdown and tables
"""  # noqa: E501
    assert lines(screen.render, found) == expected.splitlines()


def test_errors_come_before_all_and_only_once(found, make):
    error = make.finding("error", title="impossible")
    text = drawn(screen.render, replace(found, findings=[error, *found.findings]))
    assert text.startswith("error: impossible: 120% of the peak\n")
    assert text.count("impossible") == 1


def test_a_run_of_many_ranks_fits_a_screen(found, make):
    fleet = make.fleet(512, utilization=found.utilization, findings=found.findings)
    printed = lines(screen.render, fleet, force_terminal=True)
    assert len(printed) <= 50
    assert "… 504 more rows in report.json; these are the first, and those" in " ".join(printed)


def test_without_a_waterfall_the_parts_of_the_time_are_drawn(report):
    printed = lines(screen.render, report)
    assert printed[2].startswith("Where the time goes  of the peak unknown: ")
    assert printed[3:7] == [
        "  compute       78.5%  ███████████████████████████████",
        "  exposed comm  19.0%  ▓▓▓▓▓▓▓▓",
        "  exposed copy   2.4%  ▒",
        "  idle             0%",
    ]


def test_a_run_without_devices_has_a_verdict_only(make):
    report = replace(make.report([]), summary=make.summary(make.times(), "nothing ran"))
    assert drawn(screen.render, report) == "nothing ran\n"
