from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.loops import names_in
from tests.capture.recorded import run_python, within_steps
from traceparse.capture import profile
from traceparse.capture.attached import Attached, Options
from traceparse.errors import UsageError


def test_options_are_those_of_profile() -> None:
    parameters = inspect.signature(profile).parameters
    assert set(parameters) - {"directory", "steps"} == set(Options.__annotations__)
    with pytest.raises(TypeError, match="stack"):
        Attached(Path(), range(1), {"stack": True})  # type: ignore[typeddict-unknown-key]


def test_what_is_wrong_is_said_before_the_training(tmp_path: Path) -> None:
    wrong: list[tuple[Any, Options]] = [([3, 5], {}), (range(1), {"params": 0})]
    for steps, options in wrong:
        with pytest.raises(UsageError):
            Attached(tmp_path, steps, options)


def test_what_is_known_gives_way_to_options_and_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    attached = Attached(tmp_path, range(1), {"rank": 3})
    attached.step()
    attached.end()  # nothing has begun
    attached.begin({"params": -1})
    attached.step()
    attached.end()
    assert "training goes on: params=-1" in caplog.text
    attached.begin({"rank": 2})
    torch.mm(torch.ones(4, 8), torch.ones(8, 2))
    attached.step()
    attached.end()
    assert attached.path == tmp_path / "rank3_trace.json.gz"


def test_a_fact_that_cannot_be_found_out_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Attached(tmp_path, range(1), {}).finding_out("the trainer"):
        int("some")
    assert "facts are missing (the trainer), training goes on" in caplog.text


NEVER_ENDED = """
import sys, torch
from pathlib import Path
from traceparse.capture.attached import Attached

attached = Attached(Path(sys.argv[1]), range(1, 4), {})
attached.begin({})
for _ in range(2):
    attached.step()
    torch.mm(torch.ones(4, 8), torch.ones(8, 2))
raise ZeroDivisionError
"""


@pytest.mark.slow
def test_a_capture_that_nobody_ends_is_kept_when_the_process_ends(tmp_path: Path) -> None:
    run = run_python("-c", NEVER_ENDED, str(tmp_path))
    assert run.stderr.splitlines()[-1].endswith("the trace has that step cut short or empty")
    assert "ZeroDivisionError" in run.stderr
    assert names_in(tmp_path) == ["rank0_facts.json", "rank0_trace.json.gz"]
    steps = {"ProfilerStep#1": 1, "ProfilerStep#2": 1}
    assert within_steps(tmp_path / "rank0_trace.json.gz", "aten::mm") == steps
