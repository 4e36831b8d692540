"""Pages to open in a browser, each made once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import traceparse
from tests.report.made_hta import found
from tests.simulated import made
from tools.page_browser import Seen, opened, ready
from traceparse.report import html, json_text
from traceparse.run import Report

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def pages(tmp_path_factory) -> Callable[[str, Report], Path]:
    """Writes a report as page and JSON into a folder of its name, once."""
    root = tmp_path_factory.mktemp("pages")

    def write(name: str, report: Report) -> Path:
        path: Path = root / f"{name}.html"
        if not path.exists():
            path.write_text(html.render(report), encoding="utf-8")
            path.with_suffix(".json").write_text(json_text.render(report), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def demo(pages: Callable[[str, Report], Path]) -> Path:
    """The page of the demo's two ranks."""
    return pages("demo", traceparse.analyze(ROOT / "fixtures" / "gloo-2rank"))


@pytest.fixture(scope="session")
def simulated(pages: Callable[[str, Report], Path], tmp_path_factory) -> Path:
    """The page of eight ranks on H100, one of them slow, what that costs, and what HTA says."""
    folder = tmp_path_factory.mktemp("job")
    made("straggler_compute", 8, 1).place(folder)
    report = traceparse.analyze(folder, accelerator="h100-sxm", price=2.5)
    return pages("simulated", replace(report, hta=found()))


@pytest.fixture
def at(browser) -> Iterator[Callable[..., Any]]:
    """Opens a page, waits for its charts, and closes it at the end of the test."""
    contexts = []

    def open_page(path: Path, *, wait: bool = True, **settings: Any) -> tuple[Any, Seen]:
        context = opened(browser, path, **settings)
        page, seen = context.__enter__()
        contexts.append(context)
        return (ready(page) if wait else page), seen

    yield open_page
    for context in contexts:
        context.__exit__(None, None, None)
