"""The report in a terminal, as text."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from traceparse.errors import Note
from traceparse.report import screen, terminal
from traceparse.run import Report

SGR = re.compile(r"\x1b\[[0-9;]*m")


def drawn(draw, report: Report, width: int = 100, **options) -> str:
    """What is printed, without colors."""
    file = io.StringIO()
    draw(report, Console(file=file, width=width, **options))
    return SGR.sub("", file.getvalue())


def lines(draw, report: Report, width: int = 100, **options) -> list[str]:
    return [line.rstrip() for line in drawn(draw, report, width, **options).splitlines()]


def test_the_report_at_100_columns(report):
    # no formatter touches this: it is the picture that people see
    expected = """\
compute 60.0%, exposed comm 20.0%

Ranks  the whole window of each device: ms, and % of its span
rank  device     span      █ compute  ▓ exposed comm  ▒ exposed copy      ░ idle
   0       0  2,152.3  1,690.0 78.5%     410.0 19.0%      52.3  2.4%     0    0%  ██████████████▓▓▓▓
   1       1    999.0    450.0 45.0%     450.0 45.0%         0    0%  99.0  9.9%  ████████▓▓▓▓▓▓▓▓░░

Steps  each step on each device: ms, and % of its span
step  rank     span       █ compute  ▓ exposed comm  ▒ exposed copy       ░ idle
   3     0  1,000.0     600.0 60.0%     200.0 20.0%      50.0  5.0%  150.0 15.0%  ███████████▓▓▓▒░░░
   3     1    999.0     450.0 45.0%     450.0 45.0%         0    0%   99.0  9.9%  ████████▓▓▓▓▓▓▓▓░░
   4     0  1,282.7   1,000.0 78.0%     200.0 15.6%       2.3  0.2%   80.4  6.3%  ██████████████▓▓▓░
   4     1        –  no device work               –               –            –
  5*     0    100.0      90.0 90.0%      10.0 10.0%         0    0%      0    0%  ████████████████▓▓
  5*     1    100.0      90.0 90.0%      10.0 10.0%         0    0%      0    0%  ████████████████▓▓
"""  # noqa: E501
    printed = lines(terminal.render, report)
    assert printed[: expected.count("\n")] == expected.splitlines()
    assert printed[expected.count("\n") :] == [
        "* open-ended: no step follows, so it ends at the later of the last device event that "
        "belongs to it and its host span's end"
    ]


def test_80_columns_have_the_same_numbers_and_no_bars(report):
    printed = lines(terminal.render, report, 80)
    assert (
        "   4     0  1,282.7   1,000.0 78.0%   200.0 15.6%     2.3  0.2%   80.4  6.3%"
        in printed
    )
    assert "█" not in "".join(printed)
    assert max(map(len, printed[:-1])) <= 80


@pytest.mark.parametrize("width", [20, 40, 60, 72, 79, 80, 90, 100, 120, 200])
@pytest.mark.parametrize("terminal_output", [True, False])
def test_no_number_is_cut_at_any_width(report, width, terminal_output):
    text = drawn(terminal.render, report, width, force_terminal=terminal_output)
    for number in ("2,152.3", "78.5%", "1,282.7", "15.6%", "6.3%", "no device work"):
        assert number in text
    assert "1,282…" not in text


@pytest.mark.parametrize("width", [70, 80, 100, 140])
def test_a_terminal_is_never_overrun(report, hostile, make, width):
    for drawing in (terminal.render, terminal.render_notes, screen.render):
        for one in (report, make.fleet(40)):
            printed = drawn(drawing, one, width, force_terminal=True).splitlines()
            assert all(cell_len(line) <= width for line in printed)
    for drawing in (terminal.render, screen.render):
        printed = drawn(drawing, hostile, 100, force_terminal=True).splitlines()
        assert all(cell_len(line) <= 100 for line in printed)


def test_narrow_terminals_get_percent_only(report):
    printed = lines(terminal.render, report, 60)
    assert "rank device    span compute exposed comm exposed copy  idle" in printed
    assert "   0      0 2,152.3   78.5%        19.0%         2.4%    0%" in printed


def test_percent_of_a_row_adds_up(report):
    for line in lines(terminal.render, report):
        shares = [float(share) for share in re.findall(r"([\d.]+)%", line)]
        if len(shares) == 4:
            assert sum(shares) == pytest.approx(100, abs=0.2)


def test_bars_are_as_long_as_their_room_and_add_up(report):
    for line in lines(terminal.render, report):
        bar = re.search(r"[█▓▒░]{2,}$", line)
        if bar:
            assert len(bar[0]) == 18
    widest = lines(terminal.render, report, 200)
    assert any(line.endswith("█" * 29 + "▓" * 3) for line in widest)


@pytest.mark.parametrize("draw", [terminal.render, screen.render], ids=["whole", "screen"])
def test_no_color_leaves_the_text_alone(draw, report, monkeypatch):
    colored, plain = io.StringIO(), io.StringIO()
    draw(report, Console(file=colored, width=100, force_terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    draw(report, Console(file=plain, width=100, force_terminal=True))
    assert "\x1b[94m" in colored.getvalue()
    assert "\x1b[94m" not in plain.getvalue()
    assert SGR.sub("", plain.getvalue()) == SGR.sub("", colored.getvalue())


def test_an_output_that_knows_ascii_only_gets_ascii(hostile):
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=100)
    terminal.render(hostile, console)
    terminal.render_notes(hostile, console)
    console.file.flush()
    text = raw.getvalue().decode("ascii")
    assert "##############===." in text
    assert "   4     -        -  no device work" in text


@pytest.mark.parametrize(
    "draw",
    [terminal.render, terminal.render_notes, screen.render],
    ids=["whole", "notes", "screen"],
)
@pytest.mark.parametrize("terminal_output", [True, False])
def test_hostile_names_are_only_text(draw, hostile, terminal_output):
    text = drawn(draw, hostile, 400, force_terminal=terminal_output)
    assert "[red]loud[/red]" in text
    assert r"\x1b[31mred\x1b[0m \x9b2J \u202egnp.exe" in text
    assert r"\udcff" in text
    assert not set(text) & {"\x1b", "\x9b", "\u202e", "\udcff", "\r"}


def test_device_and_rank_are_said_as_they_are(hostile):
    assert re.search(r"^   – +cpu +999\.0", drawn(terminal.render, hostile, 120), re.MULTILINE)


def test_several_devices_of_a_rank_are_told_apart_in_steps(make):
    step = make.step(3, make.times(compute=7_000_000))
    devices = [make.device(0, n, make.times(compute=7_000_000), [step]) for n in (0, 1)]
    printed = lines(terminal.render, make.report(devices))
    assert printed[8].startswith("step  rank  device   span")
    assert printed[10].startswith("   3     0       1  7.000  7.000 100.0%")


def test_steps_are_not_listed_where_there_are_no_markers(make):
    times = make.times(compute=20)
    report = make.report([make.device(0, 0, times, [make.step(None, times)])])
    text = drawn(terminal.render, report)
    assert "Steps" not in text
    assert "0.000020" in text


def test_without_devices_there_is_the_verdict_alone(make):
    report = replace(make.report([]), summary=make.summary(make.times(), "nothing ran"))
    assert drawn(terminal.render, report) == "nothing ran\n"


def test_a_dumb_terminal_is_one_of_80_columns(report, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    dumb = drawn(terminal.render, report, 120, force_terminal=True)
    assert (
        "   4     0  1,282.7   1,000.0 78.0%   200.0 15.6%     2.3  0.2%   80.4  6.3%" in dumb
    )


def test_an_empty_span_has_no_shares(make):
    report = make.report([make.device(0, 0, make.times())])
    assert "   0       0     0        0 –             0 –" in drawn(terminal.render, report)


def test_a_large_run_is_summarized_honestly(make):
    printed = lines(terminal.render, make.fleet(24))
    ranks, steps = printed[: printed.index("", 2)], printed[printed.index("", 2) :]
    assert len([line for line in ranks if re.match(r" +\d", line)]) == 16
    assert ranks[-1].startswith("… 8 more rows in report.json; these are the first, and those")
    assert len([line for line in steps if re.match(r" +\d", line)]) == 16
    assert steps[-1] == "… 56 more rows in report.json"
    assert not any("open-ended" in line for line in steps)


def test_a_piped_line_stays_whole(make):
    verdict = "compute " * 40
    report = replace(make.report([]), summary=make.summary(make.times(), verdict))
    assert drawn(terminal.render, report, 80) == verdict + "\n"
    assert drawn(terminal.render, report, 80, force_terminal=True).count("\n") == 4


def test_nothing_to_note_prints_nothing(make):
    assert drawn(terminal.render_notes, make.fleet(2)) == ""


def test_notes_are_one_line_each(make, report):
    files = [make.file(f"{n}.json", repaired={"quote": n}) for n in [0, *range(2, 12)]]
    notes = (Note("world", "2 of 4 ranks have a trace"),)
    printed = lines(terminal.render_notes, replace(report, notes=notes, files=tuple(files)))
    assert printed == [
        "world: 2 of 4 ranks have a trace",
        *(f"file_health: {n}.json: repaired {n} events ({n} quote)" for n in range(2, 10)),
        "… 2 more such files in report.json",
    ]


def test_on_a_terminal_a_note_may_be_cut_and_in_a_pipe_never(make):
    report = replace(make.fleet(1), notes=(Note("world", "rank " * 40),))
    cut = drawn(
        lambda *what: terminal.render_notes(*what, whole=False),
        report,
        60,
        force_terminal=True,
    )
    assert cut == "world: " + ("rank " * 11)[:52] + "…\n"
    for options in ({"force_terminal": True, "width": 300}, {"width": 60}):
        assert drawn(terminal.render_notes, report, **options).count("rank") == 40


def test_a_file_of_which_a_note_said_it_is_not_repeated(make, report):
    note = Note("truncated", "breaks off at byte 7", rank=0, file="0.json")
    files = (make.file("0.json", truncated=True), make.file("1.json", truncated=True))
    printed = lines(terminal.render_notes, replace(report, notes=(note,), files=files))
    assert printed == [
        "truncated: 0.json: breaks off at byte 7",
        "file_health: 1.json: truncated",
    ]
