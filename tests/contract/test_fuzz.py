"""Any bytes give a report whose sums add up, or one line that says why not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.contract.places import GLOO, HAND, ROOT
from tools.fuzz_check import check, plan_of
from tools.fuzz_mutate import Mutator, read_seeds

FOUND = sorted((ROOT / "fixtures" / "fuzz").glob("*.bin"))
SEEDS = read_seeds([HAND, GLOO])
MUTATOR = Mutator(SEEDS)


@settings(max_examples=120, derandomize=True)
@given(which=st.integers(0, len(SEEDS) - 1), chance=st.integers(0, 2**32))
def test_a_mutated_trace_gives_a_report_or_one_line(tmp_path_factory, which, chance):
    data = MUTATOR.mutate(SEEDS[which], Random(chance))
    assert check(data, tmp_path_factory.getbasetemp()).kind


@settings(max_examples=60, derandomize=True)
@given(data=st.binary(max_size=200))
@example(b"")
@example(b"\x1f\x8b\x08\0\0\0\0\0\0\xff")
@example(b"\x28\xb5\x2f\xfd")
@example(b'{"traceEvents": [')
def test_any_bytes_give_one_line(tmp_path_factory, data):
    plan = replace(plan_of(data), with_good_file=False)
    assert check(data, tmp_path_factory.getbasetemp(), plan).kind != "result"


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_what_was_found_once_stays_mended(tmp_path, path):
    assert check(path.read_bytes(), tmp_path).kind
