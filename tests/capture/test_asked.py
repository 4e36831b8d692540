from __future__ import annotations

from pathlib import Path

import pytest

from traceparse.capture.asked import asked_for
from traceparse.errors import UsageError


def test_what_is_not_told_is_no_fact() -> None:
    asked = asked_for("here", steps=range(3), facts={"params": 7, "tokens_per_step": None})
    assert asked.facts == {"step_on": "step()", "params": 7}
    assert asked.directory == Path("here")
    assert (asked.stacks, asked.memory, asked.overwrite, asked.with_host) == (False,) * 4


def test_options_are_taken_over() -> None:
    asked = asked_for("x", steps=[1], rank=3, step_on="optimizer", stacks=True, facts={})
    assert (asked.rank, asked.stacks, asked.facts) == (3, True, {"step_on": "optimizer"})


def test_a_rank_below_0_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^rank=-2: ranks count from 0$"):
        asked_for("x", steps=range(1), rank=-2, facts={})
