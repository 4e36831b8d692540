"""Names of collectives, groups and types from a stranger, on several ranks."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from tests.contract.test_hostile_names import HOSTILE, Page, assert_plain, trace_of
from tests.report.parsed import has_own_scripts_only
from traceparse.engine import analyze
from traceparse.report import html, json_text, terminal


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_they_are_shown_harmless(tmp_path, text):
    for rank in (0, 1):
        trace = json.loads(trace_of(text))
        trace["distributedInfo"]["rank"] = rank
        (tmp_path / f"{rank}.json").write_text(json.dumps(trace))
    report = analyze(tmp_path)
    assert report.collectives
    shown = io.StringIO()
    for draw in (terminal.render, terminal.render_notes):
        draw(report, Console(file=shown, width=80, force_terminal=True))
    assert "Across ranks" in shown.getvalue()
    assert_plain(shown.getvalue(), colors=True)
    page = html.render(report)
    assert_plain(page)
    assert 'id="across"' in page
    assert not Page(page).tags & {"img", "b"}
    assert has_own_scripts_only(page)
    assert json_text.render(report).isascii()
