from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.made_hta import BY, NOTHING, found, path, queue
from tests.report.test_terminal import lines
from traceparse.report import markdown, terminal
from traceparse.report.hta_text import computed_by, hta_lines


@pytest.fixture(autouse=True)
def _without_pictures(monkeypatch):
    monkeypatch.setattr(markdown, "why_no_charts", lambda: "not asked for")


def text_of(report, hta):
    text = markdown.render(replace(report, hta=hta))["report.md"]
    assert isinstance(text, str)
    return text


def test_a_line_for_each_critical_path_and_each_ranks_longest_queue():
    assert list(hta_lines(found())) == [
        "critical path of rank 0, step 12 (traceinsight 0.6.1): 2.0 ms: cpu bound 75.0%, "
        "gpu compute bound 25.0%",
        "critical path of rank 1, step 12 (traceinsight 0.6.1): 8.0 ms: gpu communication "
        "bound 87.5%, cpu bound 12.5%",
        "queue of rank 0, stream 7 (traceinsight 0.6.1): at most 25 launches waiting, 2.393 on "
        "average",
        "queue of rank 1, stream 7 (traceinsight 0.6.1): at most 1,840 launches waiting, 1,065 "
        "on average",
    ]


def test_the_longest_queue_of_a_rank_may_come_last():
    hta = {**NOTHING, "queue_length": [queue(3, 7), queue(3, 20, mean=0.75)]}
    (line,) = hta_lines(hta)
    assert line.startswith(
        "queue of rank 3, stream 20 (traceinsight 0.6.1): at most 1 launches"
    )


def test_a_path_outside_of_steps_names_none():
    (line,) = hta_lines({**NOTHING, "critical_path": [path(3, step=None)]})
    assert line.startswith("critical path of rank 3 (traceinsight 0.6.1): 2.0 ms")


def test_nothing_found_points_to_the_notes():
    assert list(hta_lines(NOTHING)) == ["nothing by traceinsight 0.6.1: notes say why"]


def test_who_computed_it_and_how():
    assert computed_by(BY).startswith("Computed by traceinsight 0.6.1 in whole microseconds")


def test_not_asked_is_not_mentioned(report):
    assert not [*hta_lines(None)]
    assert "HTA" not in text_of(report, None)


def test_the_whole_report_in_a_terminal_has_every_line(report):
    printed = lines(terminal.render, replace(report, hta=found()))
    assert printed[-4:] == [
        "HTA  critical path of rank 0, step 12 (traceinsight 0.6.1): 2.0 ms: cpu bound 75.0%, "
        "gpu compute bound 25.0%",
        *[*hta_lines(found())][1:],
    ]


def test_markdown_has_a_table_of_each(report):
    text = text_of(report, found())
    section = text[text.index("## HTA") :].split("\n\n")
    assert section[1] == f"{computed_by(BY)}."
    assert section[2].splitlines() == [
        "| rank | critical path is bound by | step | length (ms) |",
        "| --- | --- | ---: | ---: |",
        "| 0 | cpu bound 75.0%, gpu compute bound 25.0% | 12 | 2.000 |",
        "| 1 | gpu communication bound 87.5%, cpu bound 12.5% | 12 | 8.000 |",
    ]
    assert section[3].splitlines() == [
        "| rank | longest queue: stream | changes | mean | median | max |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| 0 | 7 | 450 | 2.393 | 1 | 25 |",
        "| 1 | 7 | 5,346 | 1,065 | 1,229 | 1,840 |",
    ]
    assert section[4] == "1 more queue in report.json."


def test_markdown_says_what_is_unknown(report):
    text = text_of(report, NOTHING)
    assert "Critical path: unknown, the notes say why." in text
    assert "Queue length: unknown, the notes say why." in text
    alone = replace(report, run=replace(report.run, ranks=()))
    nothing = path(0, step=None, duration_ns=0, bound_by_ns={})
    text = text_of(alone, {**NOTHING, "critical_path": [nothing]})
    assert "| unknown (0 to HTA) | \N{EN DASH} | \N{EN DASH} | 0 |" in text


def test_no_name_of_hta_is_markup(report, hostile_text):
    hta = found(
        distribution=hostile_text, critical_path=[path(0, bound_by_ns={hostile_text: 1})]
    )
    text = text_of(report, hta)
    assert "<script>" not in text
    assert not set(text) & {"\x1b", "\x9b", "\u202e", "\udcff"}
    (row,) = (
        line for line in text.splitlines() if line.startswith("| 0 |") and "script" in line
    )
    assert row.count(" | ") == 3
