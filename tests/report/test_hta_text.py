from __future__ import annotations

from dataclasses import replace
from typing import Any

from traceparse.report import markdown
from traceparse.report.hta_text import hta_lines

BY: dict[str, Any] = {"distribution": "traceinsight", "version": "0.6.1"}
FOUND: dict[str, Any] = {
    **BY,
    "critical_path": [
        {
            "rank": 3,
            "step": 12,
            "num_edges": 40,
            "duration_ns": 2_000_000,
            "bound_by_ns": {"gpu_compute_bound": 500_000, "cpu_bound": 1_500_000, "none": 0},
        }
    ],
    "queue_length": [
        {"rank": 3, "stream": 7, "num_changes": 9, "mean": 2.5, "median": 1.0, "max": 25},
        {"rank": 3, "stream": 20, "num_changes": 9, "mean": 0.5, "median": 0.5, "max": 1},
    ],
}


def test_a_line_for_each_critical_path_and_each_ranks_longest_queue():
    assert list(hta_lines(FOUND)) == [
        "critical path of rank 3, step 12 (traceinsight 0.6.1): 2.0 ms: cpu bound 75.0%, "
        "gpu compute bound 25.0%",
        "queue of rank 3, stream 7 (traceinsight 0.6.1): at most 25 launches waiting, 2.5 on "
        "average",
    ]


def test_a_path_outside_of_steps_names_none():
    (path,) = FOUND["critical_path"]
    found = {**FOUND, "critical_path": [{**path, "step": None}], "queue_length": None}
    (line,) = hta_lines(found)
    assert line.startswith("critical path of rank 3 (traceinsight 0.6.1): 2.0 ms")


def test_nothing_found_points_to_the_notes():
    nothing = {**BY, "critical_path": None, "queue_length": None}
    assert list(hta_lines(nothing)) == ["nothing by traceinsight 0.6.1: notes say why"]


def test_not_asked_is_not_mentioned(report):
    assert not [*hta_lines(None)]
    assert "HTA" not in markdown.render(report)["report.md"]


def test_markdown_has_them(report):
    text = markdown.render(replace(report, hta=FOUND))["report.md"]
    assert "## HTA" in text
    assert "at most 25 launches waiting" in text
