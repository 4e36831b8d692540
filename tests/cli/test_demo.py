from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import traceparse
from traceparse.cli.demo import demo


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What demo asks of the other rooms, which have tests of their own."""
    made: list[Any] = []

    def run_demo(out: Path, *, ranks: int) -> Path:
        made.append(("train", out, ranks))
        return out / "traces"

    def analyze(paths: list[Path], **options: Any) -> str:
        made.append(("analyze", paths, options))
        return "the report"

    def show_report(report: str, **options: Any) -> None:
        made.append(("show", report, options))

    # In traceparse.cli the name of this module is the command's.
    demo_module = sys.modules["traceparse.cli.demo"]
    monkeypatch.setattr("traceparse.capture.launch.run_demo", run_demo)
    monkeypatch.setattr(traceparse, "analyze", analyze, raising=False)
    monkeypatch.setattr(demo_module, "show_report", show_report)
    return made


def test_demo_trains_analyzes_shows_and_saves(
    calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    demo(ranks=3, out=Path("there"), format=["html,json"], as_json=True)
    assert calls == [
        ("train", Path("there"), 3),
        ("analyze", [Path("there/traces")], {"peak": "measured", "price": None}),
        (
            "show",
            "the report",
            {
                "as_json": True,
                "quiet": False,
                "out": Path("there"),
                "formats": ("html", "json"),
                "full": False,
            },
        ),
    ]
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "training a small model on 3 CPU ranks\n")


def test_quiet_demo_says_nothing_of_its_own(
    calls: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    demo(quiet=True)
    options = {
        "as_json": False,
        "quiet": True,
        "out": Path("demo-out"),
        "formats": None,
        "full": False,
    }
    assert calls[-1] == ("show", "the report", options)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")
