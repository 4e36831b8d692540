"""``traceparse check`` as the installed program: status, output, errors, as text."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree as ET

import pytest

import traceparse
from tests.simulated import made
from tests.traces import write_rank
from traceparse import cli

SLOW = ("--fail-on", "mfu < 99%")
FINE = ("--fail-on", "mfu < 1%")


@pytest.fixture(autouse=True)
def nowhere(tmp_path, monkeypatch):
    """A folder that no pyproject.toml is above of."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def check(monkeypatch, capsys):
    def run(*words):
        line = ["traceparse", "check", *map(str, words), "--jobs", "1"]
        monkeypatch.setattr(sys, "argv", line)
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs") / "n4"
    made("ddp", 4, 1).place(folder)
    (folder / "truth.json").unlink()
    return folder


def test_pass_fail_and_what_cannot_be_told(check, job):
    status, out, err = check(job, "--no-cache", *FINE, "--fail-on", "comm_ratio > 10%")
    assert status == 0
    assert out.splitlines() == [
        "pass     mfu < 1%",
        "         mfu is 0.3985, threshold 1%",
        "pass     comm_ratio > 10%",
        "         comm_ratio is 0.05392 (5.4%), threshold 10%",
        "passed: of 2 conditions to fail on, none holds",
    ]
    assert err.startswith("model_flop_estimated: ")
    status, out, _ = check(job, *SLOW, "--fail-on", "cost.usd > 1", *FINE)
    assert status == 3
    assert out.splitlines()[2:] == [
        "fail     mfu < 99%",
        "         mfu is 0.3985, threshold 99%",
        "unknown  cost.usd > 1",
        "         cost is unknown: no price was given: give --price",
        "failed: of 3 conditions to fail on, 1 holds and 1 cannot be told, which fails too",
    ]


def test_a_finding_is_told_by_its_title(check, nowhere):
    made("straggler_compute", 4, 1).place(nowhere / "slow")
    slow = json.loads((nowhere / "slow" / "truth.json").read_text())["straggler"]["rank"]
    (nowhere / "slow" / "truth.json").unlink()
    status, out, _ = check(nowhere / "slow", "--fail-on", "finding('straggler')")
    assert status == 3
    assert out.splitlines()[:2] == [
        "fail     finding('straggler')",
        f"         rank {slow} is waited for: slow compute",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--fail-on", "mfu <"],
            "--fail-on 'mfu <': a number or a field is missing; finish the condition, such as "
            "mfu < 0.35 (at its end)",
        ),
        (
            ["--fail-on", "mffu < 0.35"],
            "--fail-on 'mffu < 0.35': the report has no field 'mffu'; did you mean mfu?",
        ),
        (
            [],
            "nothing to check: give --fail-on 'mfu < 0.35', or fail-on = [...] under "
            "[tool.traceparse.check] in pyproject.toml",
        ),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(check, job, words, message):
    assert check(job, *words, "--quiet") == (2, "", f"traceparse: {message}\n")


def test_what_cannot_be_understood_is_said_before_anything_is_read(check, nowhere):
    status, out, err = check(nowhere / "gone", "--fail-on", "mfu <")
    assert (status, out) == (2, "")
    assert err.startswith("traceparse: --fail-on 'mfu <'")
    status, _, err = check(nowhere / "gone", *FINE)
    assert status == 1
    assert err.startswith(f"traceparse: {nowhere}/gone: no ")


def test_json_is_the_result_and_nothing_else(check, job):
    status, out, err = check(job, *SLOW, *FINE, "--json", "--quiet")
    assert (status, err) == (3, "")
    document = json.loads(out)
    assert document["check"]["passed"] is False
    assert [gate["outcome"] for gate in document["check"]["gates"]] == ["fail", "pass"]
    assert document["check"]["gates"][0]["comparisons"][0]["right_value"] == 0.99


def test_junit_is_written_also_when_it_fails(check, job, nowhere):
    status, _, err = check(job, *SLOW, "--junit", nowhere / "junit.xml")
    assert status == 3
    assert err.endswith(f"wrote {nowhere}/junit.xml\n")
    root = ET.parse(nowhere / "junit.xml").getroot()
    assert root.attrib["failures"] == "1"
    status, out, err = check(job, *SLOW, "--junit", nowhere / "junit.xml" / "x.xml")
    assert (status, out) == (1, "")
    assert err.startswith(f"traceparse: {nowhere}/junit.xml/x.xml: cannot be written to (")
    assert err.endswith("); give --junit another file\n")
    assert err.count("\n") == 1


def test_thresholds_of_the_project_hold_beside_those_of_the_line(check, job, nowhere):
    (nowhere / "pyproject.toml").write_text(
        '[tool.traceparse.check]\nfail-on = ["mfu < 0.9", "cost.usd_per_hour < 9"]\n'
        'price = 2.5\nsteps = "11-12"\n'
    )
    status, out, _ = check(job, *FINE, "--quiet")
    assert status == 2  # no such field, now that there is a price
    (nowhere / "pyproject.toml").write_text(
        '[tool.traceparse.check]\nfail-on = ["mfu < 0.9", "count(devices[0].steps) != 2"]\n'
        'price = 2.5\nsteps = "11-12"\n'
    )
    status, out, _ = check(job, *FINE, "--fail-on", "cost == null")
    assert status == 3
    assert [line for line in out.splitlines() if not line.startswith(" ")] == [
        "pass     count(devices[0].steps) != 2",
        "pass     mfu < 1%",
        "pass     cost == null",
        "fail     mfu < 0.9",
        "failed: of 4 conditions to fail on, 1 holds",
    ]
    status, out, _ = check(job, "--steps", "11", "--fail-on", "count(devices[0].steps) == 1")
    assert "fail     count(devices[0].steps) == 1" in out  # the line comes first
    (nowhere / "other.toml").write_text('[tool.traceparse.check]\nfail-on = ["mfu < 0.01"]\n')
    assert check(job, "--config", nowhere / "other.toml")[0] == 0


def test_a_slip_in_the_project_is_named(check, job, nowhere):
    (nowhere / "pyproject.toml").write_text(
        '[tool.traceparse.check]\nfail_on = ["mfu < 0.9"]\n'
    )
    status, out, err = check(job, *FINE)
    assert (status, out) == (2, "")
    assert err.startswith(
        f"traceparse: {nowhere}/pyproject.toml: [tool.traceparse.check] has no key 'fail_on'; "
    )


def test_a_stored_report_says_the_same(check, job, nowhere):
    (path,) = traceparse.analyze(job).save(nowhere / "out", formats=["json"])
    words = (*SLOW, "--fail-on", "comm_ratio > 1%", "--json")
    assert check(path, *words) == check(job, *words)
    status, out, err = check(path, *FINE, "--steps", "11")
    assert (status, out) == (2, "")
    assert err == (
        f"traceparse: {path}: is a stored report, which no option of reading traces changes "
        f"any more; leave them out, or give the traces\n"
    )
    assert check(path, job, *FINE)[2] == (
        f"traceparse: {path}: is a stored report, which stands alone; give it or traces, not "
        f"both\n"
    )
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 7'))
    status, out, err = check(path, *FINE)
    assert (status, out) == (1, "")
    assert err.startswith(
        f"traceparse: {path}: is no report.json that traceparse can read (schema_version is 7, "
    )
    assert err.count("\n") == 1


def test_strict_refuses_what_is_not_whole(check, nowhere):
    write_rank(nowhere, 0, 2)
    assert check(nowhere, "--fail-on", "world_size > 9")[0] == 0
    status, out, err = check(nowhere, "--fail-on", "world_size > 9", "--strict")
    assert (status, out) == (1, "")
    assert "rank 1 missing" in err
