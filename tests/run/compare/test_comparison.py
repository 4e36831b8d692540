"""What changed: terms that add up, verdicts, and what is said beside them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.run.compare.made import compared, report_of, steps_of
from tests.run.conftest import A100
from traceparse.errors import InputError, UsageError
from traceparse.run.compare import compare_of
from traceparse.run.sized import TERMS

STEADY = (1_000, 1_010, 990, 1_000, 1_005, 995)


def codes(found):
    return [note.code for note in found.notes]


def test_by_hand():
    base = report_of(
        [
            {
                "compute": 700,
                "split": (100, 50, 0, 0),
                "copy": 20,
                "idle": 30,
                "contention": 10,
                "overlap": 9,
            }
        ],
        [{"compute": 600, "split": (100, 150, 0, 0), "copy": 20, "idle": 30, "overlap": 5}],
    )
    new = report_of(
        [{"compute": 900, "split": (120, 10, 5, 3), "copy": 20, "idle": 30}],
        [{"compute": 600, "split": (120, 310, 5, 4), "copy": 20, "idle": 29}],
    )
    found = compared(base, new)
    assert found.step_ns == {
        "base": 900,
        "new": 1_088,  # (1,088 + 1,088) / 2
        "delta": 188,
        "ratio": 188 / 900,
        "interval": None,
        "significant": None,
    }
    deltas = {name: term["delta_ns"] for name, term in found.terms.items()}
    assert sum(deltas.values()) == 188
    assert deltas == {
        "compute": 105,  # contention leaves 690 and 600, and comes to 0
        "contention": -5,
        "exposed_transfer": 20,
        "exposed_wait": 60,
        "pipeline_wait": 5,
        "exposed_unsplit": 4,  # of 3.5; idle is -0.5
        "exposed_copy": 0,
        "idle": -1,
    }
    assert found.terms["exposed_wait"] == {
        "base_ns": 100,
        "new_ns": 160,
        "delta_ns": 60,
        "ratio": 60 / 900,
        "significant": None,
    }
    assert found.verdict == "unknown"
    assert codes(found).count("significance_unknown") == 2


TERM = st.integers(0, 10**9)
STEP = st.fixed_dictionaries(
    {
        "compute": st.integers(1, 10**9),
        "split": st.one_of(TERM, st.tuples(TERM, TERM, TERM, TERM)),
        "copy": TERM,
        "idle": TERM,
        "overlap": st.integers(0, 1),
        "contention": st.one_of(st.none(), st.integers(-100, 10**6)),
    }
)
RUN = st.integers(1, 2).flatmap(
    lambda ranks: st.integers(1, 5).flatmap(
        lambda steps: st.lists(
            st.lists(STEP, min_size=steps, max_size=steps), min_size=ranks, max_size=ranks
        )
    )
)


@settings(max_examples=40, deadline=None)
@given(st.lists(RUN, min_size=1, max_size=3), st.lists(RUN, min_size=1, max_size=3))
def test_terms_add_up_to_the_step_to_the_nanosecond(base, new):
    found = compared([report_of(*run) for run in base], [report_of(*run) for run in new])
    step = found.step_ns
    assert step["delta"] == step["new"] - step["base"]
    assert sum(term["delta_ns"] for term in found.terms.values()) == step["delta"]
    assert set(found.terms) in ({*TERMS}, {*TERMS} - {"contention"})
    for side, total in ((found.base, step["base"]), (found.new, step["new"])):
        assert sum(side.terms_ns.values()) == side.step_ns == total
    if step["interval"] is not None:
        assert step["interval"][0] <= step["delta"] <= step["interval"][1]
        assert step["significant"] is not None
    assert (found.verdict == "unknown") <= (step["interval"] is None)


def test_slower_faster_and_no_difference():
    base = report_of(steps_of(*STEADY))
    slower = report_of(steps_of(*(span + 100 for span in STEADY)))
    found = compared(base, slower)
    assert (found.verdict, found.step_ns["delta"]) == ("slower", 100)
    assert found.terms["compute"]["significant"] is True
    assert compared(slower, base).verdict == "faster"
    again = report_of(steps_of(*reversed(STEADY)))
    assert compared(base, again).verdict == "no difference"
    found = compared(base, report_of(steps_of(1_010, 990, 1_000, 1_010, 1_000, 1_000)))
    assert found.verdict == "no difference"
    assert found.step_ns["interval"][0] < 0 < found.step_ns["interval"][1]


def test_what_only_shifts_is_said_so():
    """Ten less of compute, ten more idle: the step is as long as it was."""
    base = report_of(steps_of(*STEADY, idle=50))
    new = report_of(steps_of(*STEADY, idle=150))
    found = compared(base, new)
    assert found.verdict == "shifted"
    assert found.step_ns["delta"] == 0
    assert {n: t["delta_ns"] for n, t in found.terms.items() if t["significant"]} == {
        "compute": -100,
        "idle": 100,
    }


def test_ranks_of_a_step_are_no_samples_of_their_own():
    """Eight ranks that move together, step by step, tell no more than one."""
    wobble = (1_000, 1_200, 900, 1_100, 1_000, 1_150)
    one = compared(report_of(steps_of(*wobble)), report_of(steps_of(*wobble[::-1])))
    eight = compared(
        report_of(*[steps_of(*wobble)] * 8), report_of(*[steps_of(*wobble[::-1])] * 8)
    )
    assert one.step_ns["interval"] == eight.step_ns["interval"]
    assert one.method == eight.method
    assert one.method["base_num_units"] == 6


def test_three_runs_a_side_are_the_units():
    """Runs differ by more than their steps do: then steps tell too much, and runs do not."""
    speeds = (1_000, 1_100, 1_050)
    runs = [report_of(steps_of(*(speed + at for at in range(6)))) for speed in speeds]
    others = [report_of(steps_of(*(speed + 30 + at for at in range(6)))) for speed in speeds]
    found = compared(runs, others)
    assert found.method["base_unit"] == found.method["new_unit"] == "run"
    assert found.method["base_num_units"] == 3
    assert (found.step_ns["delta"], found.verdict) == (30, "no difference")
    assert "runs_not_repeated" not in codes(found)
    assert (found.base.num_runs, found.base.num_steps) == (3, 18)
    # one of each, and their steps say otherwise
    alone = compared(runs[0], others[0])
    assert (alone.verdict, alone.step_ns["delta"]) == ("slower", 30)
    assert "runs_not_repeated" in codes(alone)
    assert compared(runs[:2], others[:2]).method["base_unit"] == "step"


def test_what_one_side_does_not_tell_no_side_does():
    base = report_of(steps_of(*STEADY, split=(100, 50, 0, 0)))
    unsplit = report_of([{"compute": 850, "split": 150}] * 6)
    found = compared(base, unsplit)
    assert found.terms["exposed_transfer"]["base_ns"] == 0
    assert found.terms["exposed_unsplit"]["base_ns"] == 150
    assert "communication_partly_unsplit" in codes(found)
    silent = report_of([{"compute": 1_000, "overlap": 5, "contention": None}] * 6)
    found = compared(report_of(steps_of(*STEADY)), silent)
    assert "contention" not in found.terms
    assert "contention_unknown" in codes(found)


def test_a_stored_report_of_before_tells_contention_where_nothing_overlaps():
    old = report_of([{"compute": 1_000, "contention": None}] * 6)
    assert "contention" in compared(old, old).terms


def test_other_sizes_devices_and_work_are_said_and_compared():
    base = report_of(*[steps_of(*STEADY)] * 2)
    found = compared(base, report_of(*[steps_of(*STEADY)] * 4, told=A100, flop=500))
    assert {"num_devices_differs", "accelerator_differs", "work_differs"} <= set(codes(found))
    messages = [note.message for note in found.notes]
    assert (
        "new0: ran on 4 devices, base0 on 2: steps are compared as they are; `traceparse "
        "scaling` says what growing costs" in messages
    )
    assert "new0: ran on a100-sxm-80, base0 on h100-sxm" in messages
    assert (
        "new0: a device-step executes 50.0% of the FLOP of base0: another batch, model, layout "
        "or recomputation" in messages
    )
    assert found.verdict == "no difference"
    assert "work_not_compared" in codes(compared(base, report_of(steps_of(*STEADY), flop=None)))


def test_runs_of_a_side_that_differ_are_said():
    pair = [report_of(steps_of(*STEADY)), report_of(*[steps_of(*STEADY)] * 2, told=A100)]
    found = compared(report_of(steps_of(*STEADY)), pair)
    notes = [note.message for note in found.notes if note.code == "runs_differ"]
    assert notes == [
        "new0 and 1 more: its runs have other numbers of devices (1, 2), and are taken for one "
        "job",
        "new0 and 1 more: its runs have other accelerators (h100-sxm, a100-sxm-80), and are "
        "taken for one job",
    ]


def test_what_cannot_be_compared():
    base = report_of(steps_of(*STEADY))
    with pytest.raises(UsageError, match=r"^compare needs two runs, BASE and NEW: the traces"):
        compare_of((["a"], []), ([base], []))
    with pytest.raises(InputError) as caught:
        compared(base, report_of(steps_of(1_000), marked=False))
    assert str(caught.value) == (
        "new0: no step markers, so its whole window would be compared with one step of base0; "
        "capture it with prof.step() after each step"
    )
    empty = replace(base, summary=replace(base.summary, num_device_steps=0))
    with pytest.raises(InputError, match=r"^new0: no step with any time in it; capture whole"):
        compared(base, empty)


def test_windows_are_compared_with_windows():
    found = compared(*[report_of(steps_of(span), marked=False) for span in (1_000, 1_200)])
    assert "steps_unmarked" in codes(found)
    assert (found.base.basis, found.step_ns["delta"]) == ("windows", 200)


def test_the_document():
    document = compared(report_of(steps_of(*STEADY)), report_of(steps_of(*STEADY))).to_dict()
    assert list(document) == ["schema_version", "generator", "notes", "compare"]
    assert set(document["compare"]) == {
        *("verdict", "base", "new", "terms", "step_ns", "rank", "ranks", "operators"),
        *("collectives", "method"),
    }
    assert set(document["compare"]["step_ns"]) == {
        *("base", "new", "delta", "ratio", "interval", "significant"),
    }
    for term in document["compare"]["terms"].values():
        assert set(term) == {"base_ns", "new_ns", "delta_ns", "ratio", "significant"}
    assert set(document["compare"]["base"]) == {
        *("paths", "num_runs", "world_size", "num_devices", "num_steps", "num_device_steps"),
        *("basis", "step_ns", "terms_ns", "executed_flop", "hfu", "mfu", "accelerator"),
        "usd_per_step",
    }
