"""Traces worked out on paper, in every layout: analyzer, oracle and paper agree."""

from __future__ import annotations

import json

import pytest

from tests import oracle
from tests.contract.places import HAND
from tests.contract.seen import partition_errors, seen
from tools.make_fixtures import hand_files

TRACES = sorted(
    path
    for path in HAND.glob("*/*")
    if path.name.endswith((".json", ".json.gz", ".json.zst")) and path.name != "expected.json"
)
CASES = sorted({path.parent for path in TRACES})


def expected(case):
    return json.loads((case / "expected.json").read_text())


def test_there_are_cases_in_every_layout():
    layouts = {path.name.partition(".")[0] for path in TRACES}
    assert {"k-old", "k-new", "py", "mon", "jd1", "jd2", "jd4", "jd8"} <= layouts
    assert {"c1", "c2", "leg", "list", "k-2021"} <= layouts
    assert len(CASES) >= 19


@pytest.mark.parametrize("trace", TRACES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_analyzer_agrees_with_paper(trace):
    found = seen(trace)
    assert found == expected(trace.parent)
    assert partition_errors(found) == []


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_oracle_agrees_with_paper(case):
    for trace in case.glob("*.json*"):
        if trace.name != "expected.json":
            found = oracle.analyze(*oracle.load(trace.read_bytes()))
            assert found == expected(case), trace


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_paper_adds_up(case):
    assert partition_errors(expected(case)) == []


def test_stored_files_are_those_the_tool_makes():
    made = dict(hand_files())
    stored = {str(path.relative_to(HAND)): path for path in HAND.glob("*/*")}
    assert set(stored) == set(made)
    for name, data in made.items():
        # compressed bytes may differ between versions of zlib, what is in them may not
        assert oracle.unpack(stored[name].read_bytes()) == oracle.unpack(data), name
