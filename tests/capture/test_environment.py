from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import traceparse
from traceparse.capture.environment import Told, told, with_capture, without_capture

HOOK = str(Path(traceparse.__file__).parent / "capture" / "inject")
HOME = str(Path(traceparse.__file__).parents[1])
WHAT = Told(
    "there",
    (3, 5),
    step_on="a:b",
    ranks="node",
    stacks=True,
    memory=True,
    overwrite=True,
    with_host=True,
    count_flop=True,
    model_flop_per_step=1,
    params=2,
    tokens_per_step=3,
    samples_per_step=4,
)


def test_what_is_told_arrives() -> None:
    assert told(with_capture({}, WHAT)) == WHAT
    assert told({}) is None
    assert told({"TRACEPARSE_CAPTURE": ""}) is None


def test_the_environment_stays_and_the_hook_comes_first() -> None:
    before = {"PYTHONPATH": "/a" + os.pathsep + "/b", "RANK": "3"}
    after = with_capture(before, WHAT)
    assert after["PYTHONPATH"] == os.pathsep.join([HOOK, "/a", "/b"])
    assert after["RANK"] == "3"
    assert after["TRACEPARSE_HOME"] == HOME
    assert after["TRACEPARSE_PYTHON"] == sys.executable
    assert json.loads(after["TRACEPARSE_CAPTURE"])["steps"] == [3, 5]
    assert with_capture({}, WHAT)["PYTHONPATH"] == HOOK
    assert before["PYTHONPATH"] == "/a" + os.pathsep + "/b"


def test_a_process_of_our_own_captures_nothing_and_finds_us_last() -> None:
    inside = with_capture({"PYTHONPATH": "/a", "X": "y"}, WHAT)
    after = without_capture(inside)
    assert told(after) is None
    assert after["PYTHONPATH"] == os.pathsep.join(["/a", HOME])
    assert after["X"] == "y"
    assert without_capture({})["PYTHONPATH"] == HOME
