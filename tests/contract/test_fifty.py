"""The kinds of damage are all there, and the tool that shows them works."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.contract.places import ROOT
from tools import damage
from tools.damage import KINDS, LOSSES
from tools.layouts import LAYOUTS

REPAIRS = {
    *("not_utf8", "control_character", "bare_word", "blank_value", "trailing_comma"),
    *("backslash", "quote_in_string", "odd_type", "missing_quote", "duplicate_key"),
}
CODES = {
    *("events_repaired", "events_lost", "truncated", "header_damaged", "several_traces"),
    *("duplicate_rank", "repeated_capture", "missing_ranks", "rank_unknown"),
    *("external_id_is_correlation", "several_devices", "several_processes"),
    *("steps_missing", "steps_repeated", "steps_overlap", "time_resolution_us"),
    *("names_unknown", "events_unfinished", "profiler_overhead"),
    *("device_events_outside_window", "kernels_overlap_on_stream"),
    *("launches_without_device_event", "device_events_unlinked", "device_events_missing"),
}
GOOD = {"repaired", "skipped", "refused", "kept whole"}


@pytest.fixture(scope="module")
def expectations():
    return [kind.build(layout).expect for kind in KINDS for layout in kind.layouts[:1]]


def test_every_number_of_the_zoo_has_a_kind():
    assert {kind.number for kind in KINDS} == set(range(1, 51))


def test_kinds_have_names_and_titles_of_their_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert len({kind.title for kind in KINDS}) == len(KINDS)


def test_every_layout_is_damaged():
    assert {layout for kind in KINDS for layout in kind.layouts} == {*LAYOUTS, "any"}


def test_every_repair_and_loss_and_doubt_is_expected_somewhere(expectations):
    assert REPAIRS <= {reason for expect in expectations for reason in expect.repaired}
    assert {reason for expect in expectations for reason in expect.lost} == LOSSES
    assert CODES <= {code for expect in expectations for code in expect.notes}


def test_what_is_done_to_an_input_is_said(expectations):
    for expect in expectations:
        assert ("events_repaired" in expect.notes) == bool(expect.repaired)
        assert ("events_lost" in expect.notes) == bool(expect.lost)
        assert ("truncated" in expect.notes) == expect.truncated


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.number}-{kind.name}")
def test_the_tool_finds_what_is_right(kind, tmp_path):
    result = damage.outcome(kind, kind.layouts[-1], tmp_path)
    assert result.verdict in GOOD, result
    assert result.printed
    assert result.kept


def test_the_table_has_a_row_a_kind_and_counts(monkeypatch, capsys):
    few = tuple(kind for kind in KINDS if kind.number in (1, 13, 30, 50))
    monkeypatch.setattr(damage, "KINDS", few)
    damage.print_table()
    *rows, blank, counts = capsys.readouterr().out.splitlines()
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [7] * (2 + len(few))
    assert blank == ""
    assert re.fullmatch(
        r"4 kinds, \d+ forms, \d+ inputs: "
        r"\d+ kept whole, \d+ refused, \d+ repaired, \d+ skipped",
        counts,
    )


def test_all_files_can_be_written_for_inspection(tmp_path):
    tool = ROOT / "tools" / "damage.py"
    command = [sys.executable, str(tool), "--write", str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    folders = {path.name.partition("-")[0] for path in tmp_path.iterdir()}
    assert folders == {f"{number:02}" for number in range(51)}
    assert len(list(tmp_path.rglob("*.json*"))) > sum(len(kind.layouts) for kind in KINDS)
