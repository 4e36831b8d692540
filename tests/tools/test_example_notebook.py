"""The example notebook runs, and stands in the repository without what it printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
EXAMPLE = TOOLS / "example.ipynb"


def test_outputs_are_stripped():
    for cell in json.loads(EXAMPLE.read_text("utf-8"))["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what runs notebooks
def test_it_runs_and_shows_a_report_a_chart_and_tables():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": str(TOOLS)}}
    )
    client.execute()
    shown: list[dict[str, str]] = [
        output["data"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert any('class="traceparse"' in data.get("text/html", "") for data in shown)
    assert any(data.get("image/svg+xml", "").startswith("<svg") for data in shown)
    assert any("<td>device_events" in _plain(data) for data in shown)
    assert any("allreduce" in data.get("text/html", "") for data in shown)


def _plain(data: dict[str, str]) -> str:
    return data.get("text/html", "").replace("<th>", "<td>")
