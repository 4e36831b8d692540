"""What became of conditions, as text: what was found, what the threshold was."""

from __future__ import annotations

import io

from rich.console import Console

from traceparse.errors import Note
from traceparse.report import check_text
from traceparse.run.check import Checked, Compared, Gate


def compared(left, value, kind, sign, right, limit, *, holds, right_kind=None):
    return Compared(left, value, kind, sign, right, limit, right_kind, holds)


def gate(expression, outcome, *comparisons, reasons=()):
    return Gate(expression, outcome, comparisons, reasons)


def checked(*gates, notes=()):
    return Checked({"name": "traceparse", "version": "1"}, gates, tuple(notes))


def drawn(of, draw=check_text.render, **options):
    file = io.StringIO()
    draw(of, Console(file=file, **({"width": 100} | options)))
    return file.getvalue().splitlines()


MFU = gate(
    "mfu < 35%", "fail", compared("mfu", 0.31234, "number", "<", "35%", 0.35, holds=True)
)
COMM = gate(
    "comm_ratio > 0.1",
    "pass",
    compared("comm_ratio", 0.05, "ratio", ">", "0.1", 0.1, holds=False),
)
HFU = gate(
    "hfu < 0.5",
    "unknown",
    compared("hfu", None, None, "<", "0.5", 0.5, holds=None),
    reasons=("utilization.hfu is unknown: peak_unknown: give --accelerator",),
)


def test_what_passed_comes_first_and_the_verdict_last():
    assert drawn(checked(MFU, HFU, COMM)) == [
        "pass     comm_ratio > 0.1",
        "         comm_ratio is 0.05 (5.0%), threshold 0.1",
        "fail     mfu < 35%",
        "         mfu is 0.3123, threshold 35%",
        "unknown  hfu < 0.5",
        "         utilization.hfu is unknown: peak_unknown: give --accelerator",
        "failed: of 3 conditions to fail on, 1 holds and 1 cannot be told, which fails too",
    ]
    assert drawn(checked(COMM))[-1] == "passed: of 1 condition to fail on, none holds"
    assert drawn(checked(HFU))[-1] == (
        "failed: of 1 condition to fail on, 1 cannot be told, which fails too"
    )
    assert drawn(checked(MFU, MFU))[-1] == "failed: of 2 conditions to fail on, 2 hold"


def test_values_are_in_the_units_of_people():
    for value, kind, text in (
        (1_234_567, "ns", "1.235 ms"),
        (0.5, "ns", "0 ms"),
        (12_000_000, "bytes", "12.0 MB"),
        (3.2e14, "flop_per_s", "320.0 TFLOP/s"),
        (4.5e10, "bytes_per_s", "45,000.0 MB/s"),
        (2.5, "usd", "$2.50"),
        (0.25, "ratio", "0.25 (25.0%)"),
        (1_024, "number", "1,024"),
        (10**15, "flop", "1,000,000,000,000,000"),
        (0.123456, None, "0.1235"),
        (True, None, "true"),
        ("nccl", None, "'nccl'"),
        (None, None, "null"),
    ):
        one = gate("x", "fail", compared("a", value, kind, "!=", "1", 1, holds=True))
        assert drawn(checked(one))[1] == f"         a is {text}, threshold 1"


def test_two_fields_and_no_field():
    both = compared("hfu", 0.5, "number", "<", "mfu", 0.6, holds=True, right_kind="number")
    turned = compared("5 ms", 5_000_000, "ns", "<", "a", 7_000_000, holds=True, right_kind="ns")
    none = compared("1", 1, None, "<", "2", 2, holds=True)
    lines = drawn(checked(gate("x", "fail", both, turned, none)))
    assert lines[1:4] == [
        "         hfu is 0.5, mfu is 0.6",
        "         a is 7.000 ms, threshold 5 ms",
        "         1 and 2",
    ]


def test_names_are_shown_and_not_obeyed():
    hostile = "\x1b[2J[bold]\u202e"
    one = gate("backend == 'x'", "fail", compared("backend", hostile, None, "==", "'x'", "x",
               holds=True))  # fmt: skip
    text = "\n".join(drawn(checked(one)))
    assert "\x1b" not in text and "[bold]" in text
    note = Note("file_unusable", f"{hostile} is torn")
    (line,) = drawn(checked(one, notes=[note]), check_text.render_notes)
    assert line == "file_unusable: \\x1b[2J[bold]\\u202e is torn"


def test_a_narrow_terminal_wraps_between_words():
    options = {"force_terminal": True, "no_color": True, "color_system": None}
    lines = drawn(checked(HFU), **options, width=40)
    assert max(map(len, lines)) <= 40
    assert "\x1b" not in "".join(lines)
    assert " ".join(lines).split() == " ".join(drawn(checked(HFU))).split()
