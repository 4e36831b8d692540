"""``traceparse compare``: jobs that differ by one rank, by one product, and by nothing."""

from __future__ import annotations

import json

import pytest

import traceparse
from tests.compared import GEMM, GEMM_SHAPES, OTHER_KERNEL, OtherGemm, placed
from tests.simulated import made
from tests.traces import write_rank
from traceparse.errors import InputError, StrictError, UsageError


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """Runs of one job: as it is, again with other chance, with a slow rank, another product."""
    folder = tmp_path_factory.mktemp("jobs")
    placed(folder / "base")
    placed(folder / "again", seed=2)
    placed(folder / "slow", seed=2, slow=(2,))
    placed(folder / "gemm", seed=2, writer=OtherGemm)
    return folder


def test_one_slow_rank_is_named(run, jobs):
    status, out, err = run(jobs / "base", jobs / "slow")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith(
        "Slower by 29.5%: a mean step takes 1.353 ms instead of 1.045 ms"
    )
    assert lines[1] == (
        "it is one rank: rank 2: slow compute; what it does itself changed by +0.312 ms (most "
        "of it compute), by 0.000 ms on the median of the others"
    )
    assert lines[2].startswith("what changed: exposed wait +0.159 ms, compute +0.078 ms, ")
    assert f"base: {jobs}/base: 4 devices, h100-sxm, 8 steps, MFU 39.9%" in lines
    assert "runs_not_repeated: " in err


def test_one_changed_product_is_named_with_its_shapes_and_kernels(run, jobs):
    status, out, _ = run(jobs / "base", jobs / "gemm")
    assert status == 0
    lines = out.splitlines()
    assert lines[0].startswith(
        "Slower by 11.5%: a mean step takes 1.166 ms instead of 1.045 ms"
    )
    assert lines[1] == "what changed: compute +0.121 ms"
    assert lines[2] == (
        f"it is one operator: {GEMM} {GEMM_SHAPES} bf16, +0.120 ms (other kernel)"
    )
    at = lines.index("Operators that changed, ms of a mean step")
    assert lines[at + 1 :] == [
        f"   +0.120  +11.5% {GEMM} {GEMM_SHAPES} bf16 (other kernel)",
        f"                  0.241 -> 0.362 ms; 4x a step; kernel "
        f"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN -> {OTHER_KERNEL}",
    ]


def test_nothing_is_no_difference(run, jobs):
    status, out, _ = run(jobs / "base", jobs / "again")
    assert status == 0
    assert out.startswith(
        "No difference: a mean step takes 1.045 ms on both sides (0.000 ms, 95% interval "
    )
    assert "Operators" not in out
    assert " yes\n" not in out
    assert run(jobs / "base", jobs / "base")[1].startswith(
        "No difference: a mean step takes 1.045 ms on both sides, term by term\n"
    )


def test_the_change_is_the_true_one(run, jobs):
    """Half of four products longer a step: of what they take in the base."""
    document = json.loads(run(jobs / "base", jobs / "gemm", "--json", "--quiet")[1])
    found = document["compare"]
    (row,) = [row for row in found["operators"] if row["shapes"] == GEMM_SHAPES]
    assert row["delta_ns"] == pytest.approx(row["base"]["time_ns"] / 2, rel=0.01)
    assert found["terms"]["compute"]["delta_ns"] == pytest.approx(row["delta_ns"], rel=0.01)
    assert sum(one["delta_ns"] for one in found["terms"].values()) == found["step_ns"]["delta"]


def test_no_difference_between_runs_that_only_chance_sets_apart(tmp_path):
    """Of ten pairs, where one in twenty may be called a difference."""
    base = placed(tmp_path / "base", steps=6)
    called = []
    for seed in range(2, 12):
        found = traceparse.compare(base, placed(tmp_path / f"{seed}", seed=seed, steps=6))
        called.append(found.verdict != "no difference")
    assert sum(called) <= 2


def test_what_a_step_costs_on_each_side(run, jobs):
    """Four devices at 3.6 USD an hour: 0.001 USD a second each, 4e-6 a millisecond together."""
    out = run(jobs / "base", jobs / "slow", "--price", "3.6")[1]
    assert "base: 4 devices, h100-sxm, 8 steps, MFU 39.9%, $4.18 a million steps" in out
    assert "slow: 4 devices, h100-sxm, 8 steps, MFU 30.8%, $5.41 a million steps" in out


def test_files_and_a_folder(run, jobs, tmp_path):
    words = jobs / "base", jobs / "slow"
    _, shown, err = run(*words, "--json", "--out", tmp_path / "out")
    assert err == f"wrote {tmp_path}/out/report.html\nwrote {tmp_path}/out/report.json\n"
    assert (tmp_path / "out" / "report.json").read_text() == shown
    assert "it is one rank: rank 2" in (tmp_path / "out" / "report.html").read_text().lower()
    _, _, err = run(*words, "--out", tmp_path / "page.html")
    assert f"wrote {tmp_path}/page.html\n" in err
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    (tmp_path / "file").touch()
    status, out, err = run(*words, "--out", tmp_path / "file" / "x.html")
    assert (status, out) == (1, "")
    assert err.endswith("; give --out another folder\n")


def test_stored_reports_say_the_same(run, jobs, tmp_path):
    for name in ("base", "slow"):
        traceparse.analyze(jobs / name).save(tmp_path / name, formats=["json"])
    stored = [tmp_path / name / "report.json" for name in ("base", "slow")]
    found = json.loads(run(*stored, "--json")[1])["compare"]
    direct = json.loads(run(jobs / "base", jobs / "slow", "--json")[1])["compare"]
    for side in ("base", "new"):
        del found[side]["paths"], direct[side]["paths"]
    assert found == direct
    status, _, err = run(*stored, "--steps", "6")
    assert (status, err) == (
        2,
        f"traceparse: {stored[0]}: is a stored report, whose steps are chosen; give its traces "
        f"for --steps\n",
    )


def test_groups_of_runs(run, tmp_path):
    """Three runs a side: the second group has a slow rank in each of them."""
    base = [placed(tmp_path / f"base{n}", seed=n, steps=4) for n in range(3)]
    new = [placed(tmp_path / f"new{n}", seed=9 + n, steps=4, slow=(1,)) for n in range(3)]
    more = [word for at in (1, 2) for word in ("--base", base[at], "--new", new[at])]
    status, out, err = run(base[0], new[0], *more)
    assert status == 0
    assert out.startswith("Slower by ")
    assert "it is one rank: rank 1: slow compute" in out
    assert f"base: {tmp_path}/base0 and 2 more runs: 4 devices" in out
    assert "runs_not_repeated" not in err
    found = traceparse.compare(base, new)
    assert isinstance(found, traceparse.Comparison)
    assert found.method["base_unit"] == "run"
    assert traceparse.compare(base, base).verdict == "no difference"


def test_steps_are_chosen(jobs):
    found = traceparse.compare(jobs / "base", jobs / "again", steps=range(6, 8))
    assert found.base.num_steps == 2
    assert found.verdict == "unknown"
    assert "rows_of_whole_traces" in [note.code for note in found.notes]


def test_another_size_is_compared_and_said(run, jobs, tmp_path):
    made("ddp", 8, 1).place(tmp_path / "n8")
    (tmp_path / "n8" / "truth.json").unlink()
    status, _, err = run(jobs / "base", tmp_path / "n8")
    assert status == 0
    assert f"{tmp_path}/n8: ran on 8 devices, {jobs}/base on 4: steps are compared as" in err
    assert "significance_unknown: " in err  # it has three steps


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "",
            "compare needs two runs, BASE and NEW: the traces of each, a file, a folder or a "
            "quoted glob",
        ),
        (
            "a",
            "compare takes two runs, BASE and NEW, not 1; put a glob in quotes, and more runs "
            "behind --base and --new",
        ),
        (
            "a b c",
            "compare takes two runs, BASE and NEW, not 3; put a glob in quotes, and more "
            "runs behind --base and --new",
        ),
        (
            "--base a",
            "compare needs two runs, BASE and NEW: the traces of each, a file, a folder "
            "or a quoted glob",
        ),
        ("a b --steps x", "--steps 'x': give one step, such as 4, or a range, such as 3-5"),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(run, words, message):
    assert run(*words.split()) == (2, "", f"traceparse: {message}\n")


def test_what_cannot_be_used_is_status_1_and_one_line(run, jobs, tmp_path):
    status, out, err = run(jobs / "base", tmp_path / "gone")
    assert (status, out) == (1, "")
    assert err.startswith(f"traceparse: {tmp_path}/gone: no ")
    assert err.count("\n") == 1
    write_rank(tmp_path, 0, 2)
    status, out, err = run(tmp_path, tmp_path, "--strict")
    assert (status, out) == (1, "")
    assert err.startswith(f"traceparse: {tmp_path}: ") or "rank 1 missing" in err
    with pytest.raises(StrictError):
        traceparse.compare(tmp_path, tmp_path, strict=True)
    with pytest.raises(InputError):
        traceparse.compare(jobs / "base", tmp_path / "gone")
    with pytest.raises(UsageError):
        traceparse.compare([], jobs / "base")
