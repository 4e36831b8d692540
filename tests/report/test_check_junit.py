"""JUnit XML of conditions: read again by a reader of XML, whatever is in it."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from tests.report.test_check_text import COMM, HFU, MFU, checked, compared, gate
from traceparse.report import check_junit


def test_a_case_a_condition():
    root = ET.fromstring(check_junit.render(checked(MFU, COMM, HFU)))
    assert (root.tag, root.attrib) == (
        "testsuites",
        {"name": "traceparse check", "tests": "3", "failures": "1", "errors": "1"},
    )
    (suite,) = root
    assert suite.attrib == {**root.attrib, "skipped": "0"}
    cases = suite.findall("testcase")
    assert [case.attrib for case in cases] == [
        {"classname": "traceparse.check", "name": name}
        for name in ("mfu < 35%", "comm_ratio > 0.1", "hfu < 0.5")
    ]
    failure = cases[0].find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "threshold", "message": "mfu is 0.3123, threshold 35%"}
    assert failure.text == "mfu < 35%\nmfu is 0.3123, threshold 35%"
    assert [child.tag for child in cases[1]] == ["system-out"]
    error = cases[2].find("error")
    assert error is not None
    assert error.attrib["type"] == "unknown"
    assert suite.findtext("system-out", "").startswith("failed: of 3 conditions")


def test_any_name_is_xml():
    hostile = "]]><\x00\x1b&'\"\ud800\ufffe"
    one = gate(
        "backend == 'x'",
        "fail",
        compared("backend", hostile, None, "==", "'x'", "x", holds=True),
    )
    root = ET.fromstring(check_junit.render(checked(one)))
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("backend is ']]><\\x00\\x1b&")
