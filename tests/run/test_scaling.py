"""What growing costs: numbers worked out by hand, sums that are exact, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.run.conftest import A100, H100, Maker
from traceparse.errors import InputError, UsageError
from traceparse.run import scaling_of
from traceparse.run.scaling import Scaling
from traceparse.run.sized import TERMS

SPLIT = ("exposed_transfer", "exposed_wait", "pipeline_wait", "exposed_unsplit")


def report_of(
    devices,
    *,
    compute=0,
    split=(0, 0, 0, 0),
    copy=0,
    idle=0,
    overlap=0,
    contention_ratio=None,
    flop=1_000,
    number=1,
    told=H100,
    unattributed=0,
    **fields,
):
    """A report of one step on one of so many devices; ``split=N`` for comm of unknown kind."""
    make = Maker()
    comm = split if isinstance(split, int) else sum(split)
    step = make.step(
        number,
        make.times(compute=compute, comm=comm, copy=copy, idle=idle),
        make.work("bf16", flop),
        told=bool(flop),
    )
    device = make.device(step, unattributed=unattributed)
    report = make.report(make.digest(0, device, world_size=devices, told=(told,)), **fields)
    known = None if isinstance(split, int) else dict(zip(SPLIT, split, strict=True))
    times = replace(report.summary.times, overlap_ns=overlap)
    return replace(
        report,
        summary=replace(report.summary, times=times, communication_ns=known),
        scaling_loss={"contention_ratio": contention_ratio},
    )


BASE = {"compute": 800, "split": (100, 50, 0, 0), "copy": 20, "idle": 30}


def curve_of(*reports, mode=None) -> Scaling:
    return scaling_of([f"n{place}" for place in range(len(reports))], reports, mode)


def codes(curve):
    return [note.code for note in curve.notes]


def test_strong_scaling_by_hand():
    # 1,000 ns on 2 devices, 600 on 4, where 500 would be ideal
    grown = {"compute": 420, "split": (90, 60, 0, 0), "copy": 10, "idle": 20}
    curve = curve_of(report_of(2, **BASE), report_of(4, **grown, flop=500))
    assert (curve.mode, curve.mode_source, codes(curve)) == ("strong", "counted", [])
    base, run = curve.runs
    assert (base.efficiency, base.speedup, base.work_ratio) == (1, 1, 1)
    assert set(base.terms.values()) == {0}
    assert (run.step_ns, run.world_size, run.num_devices, run.work_ratio) == (600, 4, 4, 1)
    assert run.speedup == 1_000 / 600
    assert run.efficiency == 1_000 * 2 / (600 * 4)
    assert run.terms == {
        "compute": 20 / 600,
        "contention": 0,
        "exposed_transfer": 40 / 600,
        "exposed_wait": 35 / 600,
        "pipeline_wait": 0,
        "exposed_unsplit": 0,
        "exposed_copy": 0,
        "idle": 5 / 600,
    }


def test_weak_scaling_by_hand():
    # 1,000 ns on 2 devices, 1,250 on 4, which have as much to do each
    grown = {"compute": 810, "split": (220, 100, 13, 7), "copy": 20, "idle": 80}
    curve = curve_of(report_of(2, **BASE), report_of(4, **grown))
    assert (curve.mode, curve.mode_source) == ("weak", "counted")
    run = curve.runs[1]
    assert (run.efficiency, run.speedup, run.work_ratio) == (0.8, 1.6, 1)
    assert run.terms == {
        "compute": 10 / 1_250,
        "contention": 0,
        "exposed_transfer": 120 / 1_250,
        "exposed_wait": 50 / 1_250,
        "pipeline_wait": 13 / 1_250,
        "exposed_unsplit": 7 / 1_250,
        "exposed_copy": 0,
        "idle": 50 / 1_250,
    }
    assert sum(run.terms.values()) == pytest.approx(0.2, abs=1e-12)
    (note,) = curve.notes
    assert note.code == "communication_partly_unsplit"
    assert note.message.startswith("n1: not all exposed communication can be told apart, so")


def test_contention_leaves_compute_once_it_is_known():
    known = {"overlap": 300, "contention_ratio": 0.125}
    curve = curve_of(
        report_of(1, **BASE), report_of(2, **{**BASE, "compute": 1_400}, **known), mode="weak"
    )
    assert codes(curve) == []
    terms = curve.runs[1].terms
    assert terms["contention"] == 0.125
    assert terms["compute"] == (1_400 - 200 - 800) / 1_600
    assert tuple(terms) == TERMS


def test_contention_that_one_run_does_not_tell_stays_in_compute():
    unknown = report_of(2, **BASE, overlap=300)
    curve = curve_of(report_of(1, **BASE), unknown, mode="weak")
    assert codes(curve) == ["contention_unknown"]
    assert tuple(curve.runs[1].terms) == tuple(term for term in TERMS if term != "contention")


def test_one_device_that_never_communicates_leaves_the_others_split():
    alone = report_of(None, compute=900, split=0)
    curve = curve_of(alone, report_of(2, **BASE))
    assert codes(curve) == []
    assert curve.runs[0].world_size is None
    assert curve.runs[0].num_devices == 1
    assert curve.runs[1].terms["exposed_wait"] == 50 / 1_000


def test_what_one_run_cannot_split_no_run_does():
    curve = curve_of(report_of(1, compute=900, split=100), report_of(2, **BASE))
    assert codes(curve) == ["communication_unsplit"]
    terms = curve.runs[1].terms
    assert (terms["exposed_transfer"], terms["exposed_wait"]) == (0, 0)
    assert terms["exposed_unsplit"] == (150 - 100) / 1_000


WHOLE = st.integers(0, 10**10)
RUN = st.fixed_dictionaries(
    {
        "devices": st.integers(1, 2**14),
        "compute": st.integers(1, 10**10),
        "split": st.one_of(WHOLE, st.tuples(WHOLE, WHOLE, WHOLE, WHOLE)),
        "copy": WHOLE,
        "idle": WHOLE,
        "overlap": st.integers(0, 1),
        "contention_ratio": st.one_of(st.none(), st.floats(-1, 1)),
    }
)


@given(
    st.lists(RUN, min_size=2, max_size=4, unique_by=lambda run: run["devices"]),
    st.sampled_from(["strong", "weak", None]),
)
def test_terms_add_up_to_the_loss(runs, mode):
    curve = curve_of(*(report_of(run.pop("devices"), **run) for run in runs), mode=mode)
    for run in curve.runs:
        scale = max(1, run.efficiency)  # of a loss far below nothing, floats hold 16 digits
        loss = 1 - run.efficiency
        assert sum(run.terms.values()) == pytest.approx(loss, rel=0, abs=1e-12 * scale)
    sizes = [run.num_devices for run in curve.runs]
    assert sizes == sorted(sizes)
    assert curve.runs[0].efficiency == curve.runs[0].speedup == 1


@pytest.mark.parametrize(
    ("flop", "mode", "source"),
    [
        ([1_000, 1_000, 1_000], "weak", "counted"),
        ([1_000, 501, 250], "strong", "counted"),
        ([1_000, 995, None], "weak", "counted"),
        ([1_000, 1_000, 250], "strong", "assumed"),  # they contradict each other
        ([1_000, 700, 700], "strong", "assumed"),
        ([1_000, None, None], "strong", "assumed"),
        ([None, 1_000, 1_000], "strong", "assumed"),
    ],
)
def test_the_mode_that_flop_tell(flop, mode, source):
    reports = [report_of(n, **BASE, flop=one) for n, one in zip((1, 2, 4), flop, strict=True)]
    curve = curve_of(*reports)
    assert (curve.mode, curve.mode_source) == (mode, source)
    assert ("mode_assumed" in codes(curve)) == (source == "assumed")


def test_work_that_differs_is_said():
    reports = report_of(1, **BASE), report_of(2, **BASE, flop=600)
    curve = curve_of(*reports, mode="weak")
    assert curve.runs[1].work_ratio == 0.6
    (note,) = curve.notes
    assert note.code == "work_differs"
    assert note.message == (
        "n1: a device-step executes 60.0% of the FLOP that it would in weak scaling from n0: "
        "another batch, model, layout or recomputation, so efficiency compares different work"
    )


def test_work_that_is_known_from_below_does_not_differ():
    reports = report_of(1, **BASE), report_of(2, **BASE, flop=600, unattributed=500)
    curve = curve_of(*reports, mode="weak")
    assert curve.runs[1].work_ratio is None
    assert codes(curve) == ["work_not_compared"]


def test_another_accelerator_is_said():
    curve = curve_of(report_of(1, **BASE), report_of(2, **BASE, told=A100))
    assert codes(curve) == ["accelerator_differs"]
    assert curve.notes[0].message == "n1: ran on a100-sxm-80, n0 on h100-sxm"


def test_a_size_that_no_trace_tells_is_counted():
    unknown = report_of(None, compute=900, split=(100, 0, 0, 0))
    unknown = replace(
        unknown,
        summary=replace(unknown.summary, times=replace(unknown.summary.times, comm_ns=100)),
    )
    curve = curve_of(unknown, report_of(2, **BASE))
    assert codes(curve) == ["num_devices_counted"]
    assert curve.notes[0].message == (
        "n0: no world size is known, so it is taken to have run on the 1 device that it has "
        "traces of"
    )


def test_several_devices_of_a_rank_count():
    make = Maker()
    step = make.step(1, make.times(compute=1_000), make.work("bf16", 1_000))
    both = make.device(step), make.device(step, device=1)
    curve = curve_of(report_of(1, **BASE), make.report(make.digest(0, *both, world_size=1)))
    assert codes(curve) == ["num_devices_counted"]
    assert (curve.runs[1].world_size, curve.runs[1].num_devices) == (1, 2)


def test_whole_windows_are_compared_with_windows_only():
    unmarked = [report_of(n, **BASE, number=None) for n in (1, 2)]
    assert codes(curve_of(*unmarked)) == ["steps_unmarked"]
    with pytest.raises(InputError) as caught:
        curve_of(unmarked[0], report_of(2, **BASE))
    assert str(caught.value) == (
        "n0: no step markers, so its whole window would be compared with one step of n1; "
        "capture it with prof.step() after each step"
    )


def test_runs_of_one_size_are_refused():
    with pytest.raises(InputError) as caught:
        curve_of(report_of(8, **BASE), report_of(8, **BASE))
    assert str(caught.value) == (
        "n1: on as many devices as n0, 8; give one run of each size: its folder, or a glob in "
        "quotes"
    )


def test_a_run_without_time_is_refused():
    with pytest.raises(InputError, match=r"^n1: no step with any time in it; capture whole"):
        curve_of(report_of(1, **BASE), report_of(2, flop=None))


def test_what_cannot_be_scaling_is_wrong_usage():
    with pytest.raises(UsageError, match=r"^scaling needs two runs at least, of different"):
        curve_of(report_of(1, **BASE))
    with pytest.raises(UsageError, match=r"^--mode 'fair': give one of strong, weak$"):
        curve_of(report_of(1, **BASE), report_of(2, **BASE), mode="fair")


def test_the_document():
    document = curve_of(report_of(1, **BASE), report_of(2, **BASE, overlap=3)).to_dict()
    assert list(document) == ["schema_version", "generator", "scaling", "notes"]
    assert document["schema_version"] == 1
    assert document["generator"]["name"] == "traceparse"
    assert list(document["scaling"]) == ["mode", "mode_source", "runs"]
    assert set(document["scaling"]["runs"][0]) == {
        *("path", "world_size", "num_devices", "step_ns", "speedup", "efficiency", "terms"),
        "work_ratio",
    }
    assert [set(note) for note in document["notes"]] == [{"code", "message", "rank", "file"}]
