"""The assertion for tests of jobs: it holds, or says what was found and what to do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.simulated import made
from traceparse.engine import analyze
from traceparse.errors import InputError, UsageError
from traceparse.run import Report
from traceparse.testing import assert_report


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs") / "n4"
    made("ddp", 4, 1).place(folder)
    (folder / "truth.json").unlink()
    return folder


@pytest.fixture
def golden(job, tmp_path, monkeypatch):
    """A golden report, written as one does."""
    path = tmp_path / "goldens" / "n4.json"
    monkeypatch.setenv("TRACEPARSE_UPDATE_GOLDEN", "1")
    assert_report(job, golden=path)
    monkeypatch.delenv("TRACEPARSE_UPDATE_GOLDEN")
    return path


def test_it_holds_and_returns_the_report(job):
    report = assert_report(job, fail_on=["mfu < 1%", "finding('straggler')"], steps=[11, 12])
    assert isinstance(report, Report)
    assert len(report.devices[0].steps) == 2
    assert assert_report(report, fail_on="mfu < 1%") is report


def test_it_says_what_was_found_and_what_to_do(job):
    with pytest.raises(AssertionError) as caught:
        assert_report(job, fail_on=["mfu < 99%", "mfu < 1%", "cost.usd > 1"])
    assert str(caught.value).splitlines() == [
        f"{job}:",
        "  mfu < 99%   holds",
        "    mfu is 0.3985, threshold 99%",
        "  cost.usd > 1   cannot be told",
        "    cost is unknown: no price was given: give --price",
        f"  to do: see where the time went, `traceparse analyze {job}`; where that is as it "
        f"should be, change fail_on",
    ]


def test_a_golden_report(job, golden):
    assert json.loads(golden.read_text())["schema_version"] == 1
    assert_report(job, golden=golden)
    assert_report(golden, fail_on=["mfu < 1%"], golden=golden)


def test_what_differs_from_it_is_listed(job, golden):
    document = json.loads(golden.read_text())
    mfu = document["utilization"]["mfu"]
    document["utilization"]["mfu"] = 2 * mfu
    golden.write_text(json.dumps(document))
    with pytest.raises(AssertionError) as caught:
        assert_report(job, golden=golden)
    assert str(caught.value).splitlines() == [
        f"{job}:",
        f"  1 fields differ from {golden}:",
        f"    utilization.mfu: was {2 * mfu}, is {mfu} (-50.0%)",
        "  to do: where that is as it should be, TRACEPARSE_UPDATE_GOLDEN=1 in the environment "
        "writes it; or give tolerance=, ignore=",
    ]
    assert_report(job, golden=golden, tolerance=0.5)
    assert_report(job, golden=golden, ignore=["utilization.mfu"])


def test_of_many_differences_the_first_are_listed(job, golden):
    report = analyze(job, steps=[11])
    with pytest.raises(AssertionError) as caught:
        assert_report(report, golden=golden)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the report:"
    assert len(lines) == 24
    assert lines[-2].startswith("    and ")


def test_a_golden_report_that_is_not_there(job, tmp_path):
    with pytest.raises(AssertionError, match="is not there to compare with; TRACEPARSE_"):
        assert_report(job, golden=tmp_path / "gone.json")


def test_what_cannot_be_asserted(job, golden, tmp_path):
    with pytest.raises(UsageError, match=r"^nothing to assert: give fail_on="):
        assert_report(job)
    with pytest.raises(UsageError, match=r"^--fail-on 'mfu <': "):
        assert_report(tmp_path / "gone", fail_on=["mfu <"])
    with pytest.raises(UsageError, match=r"is a stored report, which no option of reading"):
        assert_report(golden, fail_on=["mfu < 1%"], steps=[11])
    golden.write_text("{}")
    with pytest.raises(InputError, match=r"is no report\.json that traceparse can read"):
        assert_report(job, golden=golden)


def test_it_needs_no_pytest(job):
    code = (
        "import sys\nsys.modules['pytest'] = None\n"
        "from traceparse.testing import assert_report\n"
        f"assert_report({str(job)!r}, fail_on=['mfu < 1%'])\n"
        "try:\n"
        f"    assert_report({str(job)!r}, fail_on=['mfu < 99%'])\n"
        "except AssertionError as error:\n"
        "    assert 'threshold 99%' in str(error)\n"
        "else:\n"
        "    raise SystemExit('it holds')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
