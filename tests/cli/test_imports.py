from __future__ import annotations

import subprocess
import sys

import pytest

from tests.traces import write_rank


def test_no_module_makes_an_arrow_array_when_it_is_imported():
    """The first one would import pandas: 0.13 s that `spare_pandas` could no longer spare."""
    code = (
        "import sys, traceparse.engine, traceparse.report.terminal, traceparse.report.html\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def _not_loaded(code: str, modules: set[str]) -> None:
    """Run code, and see that it has loaded none of these."""
    end = f"import sys\nassert not {modules!r} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", f"{code}\n{end}"], check=True, capture_output=True)


def test_processes_load_what_they_need_and_no_more():
    _not_loaded(
        "import traceparse.engine.nursery",
        {"jinja2", "pandas", "rich", "traceparse.run", "typer", "pyarrow.parquet"},
    )


def test_who_counts_operators_does_not_load_the_calculator():
    _not_loaded(
        "import traceparse.work", {"traceparse.work.calculator", "traceparse.work.conventions"}
    )


@pytest.mark.slow
def test_what_was_digested_before_is_shown_without_what_digests(tmp_path):
    for rank in range(2):
        write_rank(tmp_path, rank, 2)
    words = ["traceparse", "analyze", str(tmp_path), "--jobs", "2", "--cache", str(tmp_path)]
    code = f"import sys\nfrom traceparse.cli.commands import app\nsys.argv = {words!r}\n"
    run = code + "app(standalone_mode=False)"
    subprocess.run([sys.executable, "-c", run], check=True, capture_output=True)
    _not_loaded(run, {"jinja2", "multiprocessing", "pandas", "pyarrow.dataset"})
