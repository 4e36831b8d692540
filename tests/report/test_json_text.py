"""The report as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from traceparse.report import json_text


def test_the_text_is_the_report(report):
    assert json.loads(json_text.render(report)) == report.to_dict()


def test_a_step_has_its_times_beside_its_name(report):
    steps = json.loads(json_text.render(report))["devices"][0]["steps"]
    assert steps[1]["step"] == 4
    assert steps[1]["span_ns"] == 1_282_726_144
    assert json.loads(json_text.render(report))["devices"][1]["steps"][1]["span_ns"] is None


def test_it_is_ascii_and_ends_with_a_line_break(hostile, hostile_text):
    text = json_text.render(hostile)
    assert text.isascii()
    assert text.endswith("}\n")
    assert not any(char < " " and char != "\n" for char in text)
    assert json.loads(text)["run"]["backend"] == hostile_text


def test_a_number_that_is_none_is_a_bug_and_not_written(report):
    broken = replace(report, summary=replace(report.summary, idle_ratio=float("nan")))
    with pytest.raises(ValueError, match="JSON compliant"):
        json_text.render(broken)
