"""What became of conditions as JUnit XML, which CI services show beside their tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from traceparse.report.check_text import found_lines, verdict
from traceparse.report.safe import visible
from traceparse.run.check import Checked, Gate

__all__ = ["render"]

_NAME = "traceparse check"


def render(checked: Checked) -> str:
    """Return one test suite with a case a condition.

    A condition that holds is a ``failure``, one that cannot be told an ``error``.
    """
    failed = sum(gate.outcome == "fail" for gate in checked.gates)
    unknown = sum(gate.outcome == "unknown" for gate in checked.gates)
    counts = {"tests": len(checked.gates), "failures": failed, "errors": unknown}
    numbers = {name: str(count) for name, count in counts.items()}
    suites = ET.Element("testsuites", {"name": _NAME, **numbers})
    suite = ET.SubElement(suites, "testsuite", {"name": _NAME, **numbers, "skipped": "0"})
    for gate in checked.gates:
        _case(suite, gate)
    output = ET.SubElement(suite, "system-out")
    output.text = visible(verdict(checked))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, gate: Gate) -> None:
    attributes = {"classname": "traceparse.check", "name": visible(gate.expression)}
    case = ET.SubElement(suite, "testcase", attributes)
    lines = [visible(line) for line in found_lines(gate)]
    if gate.outcome == "pass":
        ET.SubElement(case, "system-out").text = "\n".join(lines)
        return
    tag, kind = ("failure", "threshold") if gate.outcome == "fail" else ("error", "unknown")
    told = ET.SubElement(case, tag, {"type": kind, "message": "; ".join(lines)})
    told.text = "\n".join([visible(gate.expression), *lines])
