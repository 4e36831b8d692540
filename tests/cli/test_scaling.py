"""``traceparse scaling``: two simulated jobs, and whatever cannot be compared."""

from __future__ import annotations

import json

import pytest

import traceparse
from tests.simulated import made
from tests.traces import kernel, launch, step, write, write_rank
from traceparse.errors import InputError, StrictError, UsageError


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """The same work of each rank, on 4 ranks and on 8."""
    folder = tmp_path_factory.mktemp("jobs")
    for ranks in (4, 8):
        made("ddp", ranks, 1).place(folder / f"n{ranks}")
        (folder / f"n{ranks}" / "truth.json").unlink()
    return folder


def write_marked(folder, rank, world_size, *, us=6):
    """One complete step of a rank, without shapes, and what marks its end."""
    events = [step(1, 100, 10), launch(101, correlation=1), kernel(102, us, correlation=1)]
    events += [step(2, 110, 10), launch(111, correlation=2), kernel(112, us, correlation=2)]
    info = {"rank": rank, "world_size": world_size, "backend": "nccl"}
    folder.mkdir(exist_ok=True)
    return write(folder / f"rank{rank}.json", events, distributedInfo=info)


def test_two_simulated_jobs_are_weak_scaling_and_lose_what_is_true(run, jobs):
    status, out, err = run(jobs / "n8", jobs / "n4", "--json", "--no-cache")
    assert (status, err) == (0, "")
    found = json.loads(out)["scaling"]
    assert (found["mode"], found["mode_source"]) == ("weak", "counted")
    base, run = found["runs"]
    assert (base["world_size"], run["world_size"], run["work_ratio"]) == (4, 8, 1)
    small, large = (made("ddp", ranks, 1).truth["scaling_loss"] for ranks in (4, 8))
    assert run["efficiency"] == pytest.approx(small["step_ns"] / large["step_ns"], rel=1e-12)
    for term in ("exposed_transfer", "exposed_wait", "pipeline_wait", "exposed_unsplit"):
        ns = [one[f"{term}_ratio"] * one["step_ns"] for one in (small, large)]
        lost = (ns[1] - ns[0]) / large["step_ns"]
        assert run["terms"][term] == pytest.approx(lost, rel=1e-9, abs=1e-12)
    loss = 1 - run["efficiency"]
    assert sum(run["terms"].values()) == pytest.approx(loss, rel=0, abs=1e-12)
    assert max(run["terms"], key=run["terms"].__getitem__) == "exposed_transfer"


def test_strong_scaling_of_them_says_that_they_did_other_work(run, jobs):
    status, out, err = run(jobs / "n4", jobs / "n8" / "*.json", "--mode", "strong")
    assert status == 0
    assert out.startswith("From 4 to 8 devices: efficiency 49.6%, speedup 0.99\n")
    assert f"base point: {jobs}/n4 on 4 devices" in out
    assert "work_differs" in err
    assert "executes 200.0% of the FLOP that it would in strong scaling" in err
    assert "work_differs" not in out


def test_out_and_quiet(run, jobs, tmp_path):
    out = tmp_path / "out"
    words = jobs / "n4", jobs / "n8", "--out", out
    assert run(*words, "--quiet")[2] == ""
    _, shown, err = run(*words, "--json")
    assert err == f"wrote {out}/report.json\n"
    assert (out / "report.json").read_text() == shown


def test_a_folder_that_cannot_be_is_status_1_and_one_line(run, jobs, tmp_path):
    (tmp_path / "file").touch()
    out = tmp_path / "file" / "out"
    assert run(jobs / "n4", jobs / "n8", "--out", out) == (
        1,
        "",
        f"traceparse: {out}: cannot be written to (Not a directory); give --out another "
        f"folder\n",
    )


def test_python_says_the_same(run, jobs):
    paths = [str(jobs / "n4"), jobs / "n8"]
    curve = traceparse.scaling(paths, mode="weak", steps=[11, 12])
    assert isinstance(curve, traceparse.Scaling)
    assert (curve.mode, curve.mode_source) == ("weak", "given")
    assert [run.num_devices for run in curve.runs] == [4, 8]
    shown = run(*paths, "--mode", "weak", "--steps", "11-12", "--json")[1]
    assert json.loads(shown) == curve.to_dict()
    with pytest.raises(UsageError, match=r"^scaling needs two runs at least"):
        traceparse.scaling(str(jobs / "n4"))


def test_a_run_that_is_not_whole_is_named(run, tmp_path):
    write_marked(tmp_path / "n2", 0, 2)
    write_marked(tmp_path / "n1", 0, 1)
    runs = tmp_path / "n1", tmp_path / "n2"
    status, _, err = run(*runs)
    assert status == 0
    assert (
        f"missing_ranks: {tmp_path}/n2: rank 1 missing: 1 of 2 ranks are accounted for" in err
    )
    assert "mode_assumed: strong scaling is assumed" in err
    assert "work_not_compared" in err
    status, out, err = run(*runs, "--strict")
    assert (status, out) == (1, "")
    assert err.startswith(f"traceparse: {tmp_path}/n2: rank 1 missing")
    assert err.count("\n") == 1
    with pytest.raises(StrictError):
        traceparse.scaling(runs, strict=True)


def test_several_doubts_of_a_kind_are_one_note(tmp_path):
    write_marked(tmp_path / "n1", 0, 1)
    write_marked(tmp_path / "n2", 0, 2)
    for name in "ab":
        (tmp_path / "n2" / f"{name}.json").write_text('{"traceEvents": [{"ph": "X", "na')
    curve = traceparse.scaling([tmp_path / "n1", tmp_path / "n2"])
    (note,) = [note for note in curve.notes if note.code == "file_unusable"]
    assert note.message.startswith(f"{tmp_path}/n2/a.json: ")
    assert note.message.endswith(" (and 1 more like it: analyze this run alone)")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "scaling needs two runs at least, of different sizes; give the folder of each"),
        ("n1", "scaling needs two runs at least, of different sizes; give the folder of each"),
        ("n1 n2 --mode fair", "--mode 'fair': give one of strong, weak"),
        (
            "n1 n2 --cache here --no-cache",
            "--cache and --no-cache contradict each other; give one of them",
        ),
        (
            "n1 n2 --steps 5-3",
            "--steps '5-3': the range ends before it starts; write 3-5",
        ),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(run, words, message):
    assert run(*words.split()) == (2, "", f"traceparse: {message}\n")


def test_a_run_without_a_usable_trace_is_status_1_and_one_line(run, tmp_path):
    write_marked(tmp_path / "n1", 0, 1)
    empty = tmp_path / "empty"
    empty.mkdir()
    for bad in (empty, tmp_path / "gone"):
        status, out, err = run(tmp_path / "n1", bad)
        assert (status, out) == (1, "")
        assert err.startswith(f"traceparse: {bad}: no ")
        assert err.count("\n") == 1


def test_a_run_without_the_steps_is_named(run, tmp_path):
    write_marked(tmp_path / "n1", 0, 1)
    status, out, err = run(tmp_path / "n1", tmp_path / "n1", "--steps", "7")
    assert (status, out) == (1, "")
    assert err == (
        f"traceparse: {tmp_path}/n1: no trace has step 7: they have 1-2; change --steps\n"
    )


def test_files_of_one_run_are_no_runs(tmp_path):
    for rank in range(2):
        write_rank(tmp_path, rank, 2)
    with pytest.raises(InputError, match=r"on as many devices as .*, 2; give one run of each"):
        traceparse.scaling(sorted(tmp_path.glob("*.json")))
