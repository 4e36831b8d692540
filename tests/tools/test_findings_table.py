"""The table of findings, and what it says where one is not as it should be."""

from __future__ import annotations

import pytest

from tools import findings_figures as figures
from tools import findings_table
from tools.findings_cases import Case, Scene
from tools.simulate_findings import Training


def printed(monkeypatch, capsys, nearly_steps):
    case = Case(
        "missing_steps",
        Scene("three steps", Training(ranks=2, steps=3, num_products=2)),
        Scene("as many as here", Training(ranks=2, steps=nearly_steps, num_products=2)),
        figures.steps_judged,
    )
    monkeypatch.setattr(findings_table, "CASES", (case,))
    status = findings_table.main()
    *_, line = capsys.readouterr().out.splitlines()
    return status, line


@pytest.mark.parametrize(("steps", "status", "end"), [(4, 0, "|"), (3, 1, "NOT SO")])
def test_what_is_printed(monkeypatch, capsys, steps, status, end):
    found, line = printed(monkeypatch, capsys, steps)
    assert found == status
    assert line.startswith(
        "| `missing_steps` | three steps: 2 steps, basis complete_steps | unknown | as many as"
    )
    assert line.endswith(end)
