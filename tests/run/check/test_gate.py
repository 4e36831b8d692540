"""Conditions over a report: what holds, what does not, and what nobody can tell."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.run.conftest import Maker
from tests.simulated import made
from traceparse.engine import analyze
from traceparse.errors import Note, UsageError
from traceparse.run import findings
from traceparse.run.check import check
from traceparse.run.check.evaluate import CODES, judged
from traceparse.run.check.grammar import parse
from traceparse.run.check.lookup import LOSS_FIELDS

FINDINGS = [
    {"code": "straggler", "severity": "warning", "lost_ratio": 0.125, "title": "rank 3"},
    {"code": "launch_gaps", "severity": "error", "lost_ratio": 0.25, "title": "gaps"},
]
DOCUMENT = {
    "run": {"world_size": 2, "ranks": [0, 1], "accelerator": None, "backend": "nccl"},
    "utilization": {
        "mfu": 0.3,
        "hfu": None,
        "executed_flop": 4_000,
        "waterfall": [{"name": "idle", "ratio": 0.2}, {"name": "mfu", "ratio": 0.8}],
    },
    "scaling_loss": None,
    "clock": {"aligned": True, "offsets_ns": {"0": 0, "1": 700}},
    "devices": [
        {"rank": 0, "window": {"idle_ns": 4_000_000}},
        {"rank": 1, "window": {"idle_ns": 8_000_000}},
    ],
    "findings": FINDINGS,
    "cost": None,
    "files": [],
    "notes": [
        {"code": "peak_unknown", "message": "no trace says what it ran on"},
        {"code": "no_communication", "message": "nothing was recorded"},
    ],
}


def holds(text, document=DOCUMENT):
    return judged(parse(text), document).holds


@pytest.mark.parametrize(
    "text",
    [
        "mfu < 0.35",
        "mfu < 35%",
        "mfu == 0.3",
        "utilization.mfu >= 30%",
        "world_size > 1",
        "backend == 'nccl'",
        "clock.aligned",
        "clock.aligned == true",
        "clock.offsets_ns['1'] > 0.5 us",
        "devices[1].window.idle_ns == 8 ms",
        "max(devices.window.idle_ns) > 5 ms",
        "min(devices.window.idle_ns) < 5 ms",
        "mean(devices.window.idle_ns) == 6 ms",
        "sum(devices.window.idle_ns) == 12 ms",
        "count(devices) == world_size",
        "max(ranks) == 1",
        "count(findings[severity == 'error']) == 1",
        "count(findings[severity == 'info']) == 0",
        "max(findings[code != 'straggler'].lost_ratio) == 25%",
        "sum(files.bytes) == 0",
        "finding('straggler') and not finding('low_overlap')",
        "sum(utilization.waterfall[name == 'idle'].ratio) > 10%",
        "max(devices.window.idle_ns) - min(devices.window.idle_ns) > 3 ms",
        "devices[0].window.idle_ns / devices[1].window.idle_ns == 50%",
        "executed_flop / 2 s > 1 or executed_flop * 2 == 8000 FLOP",
        "hfu == null",
        "mfu != null",
        "cost == null and accelerator == null",
        "null == null",
    ],
)
def test_what_holds(text):
    assert holds(text) is True
    assert holds(f"not ({text})") is False


def test_of_findings_that_are_there_it_says_which():
    assert judged(parse("finding('straggler') or mfu > 9"), DOCUMENT).reasons == ("rank 3",)
    assert judged(parse("not finding('straggler')"), DOCUMENT).reasons == ()


def test_unknown_counts_where_it_decides():
    """Kleene's logic, row by row."""
    values = {"true": "mfu < 1", "false": "mfu > 1", "unknown": "hfu < 1"}
    for left, right, both, either in (
        ("true", "unknown", None, True),
        ("unknown", "true", None, True),
        ("false", "unknown", False, None),
        ("unknown", "false", False, None),
        ("unknown", "unknown", None, None),
        ("true", "false", False, True),
    ):
        assert holds(f"{values[left]} and {values[right]}") is both
        assert holds(f"{values[left]} or {values[right]}") is either
    assert holds("not hfu < 1") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hfu < 1", "utilization.hfu is unknown: peak_unknown: no trace says what it ran on"),
        ("comm_ratio > 10%", "scaling_loss is unknown: no_communication: nothing was recorded"),
        ("cost.usd > 3", "cost is unknown: no price was given: give --price"),
        ("devices[2].rank == 0", "devices[2] is unknown: there are 2, counted from 0"),
        ("clock.offsets_ns['9'] > 0", "clock.offsets_ns['9'] is unknown (null in the report)"),
        ("max(files.bytes) > 0", "max(files.bytes) is unknown: the list is empty"),
        ("mfu / (world_size - 2) > 1", "a division by zero"),
        ("max(findings.lost) > 0", "max(findings.lost) is unknown: 1 of 2 are null"),
        (
            "count(findings[lost > 0]) > 0",
            "findings[1]: lost is unknown (null in the report)",
        ),
    ],
)
def test_what_nobody_can_tell(text, reason):
    findings = [{**one, "lost": lost} for one, lost in zip(FINDINGS, (1, None), strict=True)]
    found = judged(parse(text), DOCUMENT | {"findings": findings})
    assert (found.holds, found.reasons) == (None, (reason,))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mffu < 1", "the report has no field 'mffu'; did you mean mfu?"),
        ("window < 1", "the report has no field 'window'; it has mfu, hfu, executed_flop, "),
        ("idle_ns < 1", "the report has no field 'idle_ns'; "),
        ("run.wold_size < 1", "run has no field 'wold_size'; did you mean world_size?"),
        ("devices.windw.idle_ns < 1", "devices has no field 'windw'; did you mean window?"),
        ("mfu.x < 1", "utilization.mfu is a value and has no field 'x'"),
        ("mfu[0] < 1", "utilization.mfu is no list, so it has no entries to choose from"),
        ("mfu < 5 ms", "a number and a time cannot be compared or added"),
        ("devices[0].window.idle_ns > 5%", "a time and a share cannot be compared or added"),
        ("backend > 1", "'nccl' and 1 cannot be compared by >: numbers can be with numbers, "),
        ("backend > 'a'", "'nccl' and 'a' cannot be compared by >"),
        ("clock.aligned == 1", "True and 1 cannot be compared by =="),
        ("backend + 1 > 2", "'nccl' is no number to calculate with"),
        ("devices.rank > 1", "a list (take max, min, mean, sum or count of it, or one entry "),
        ("clock == 1", "an object (name one of its fields) is no value to compare"),
        ("mfu", "mfu is no condition; compare it, such as mfu < 0.35"),
        ("mfu and clock.aligned", "mfu is no condition; compare it, such as mfu < 0.35"),
        ("max(mfu) < 1", "max(mfu): max is of a list, and that is none"),
        ("max(devices) < 1", "max(devices): name a field of the entries that is a number"),
        ("mfu < null", "null compares by == and != only"),
        ("count(findings[sever == 'x']) > 0", "findings[0]: the entry has no field 'sever'; "),
        ("finding('stragler')", "no finding has the code 'stragler'; did you mean straggler?"),
        ("finding('qqq')", "no finding has the code 'qqq'; there are capture_overhead, comm"),
        ("count(ranks[a > 0]) > 0", "entries of run.ranks have no fields to choose them by"),
    ],
)  # fmt: skip
def test_what_no_report_has_is_wrong_usage(text, why):
    with pytest.raises(UsageError) as caught:
        holds(text)
    assert str(caught.value).startswith(why)


def test_a_name_of_two_sections_is_ambiguous():
    document = DOCUMENT | {"run": {"mfu": 1}, "scaling_loss": {"world": 2}}
    with pytest.raises(UsageError) as caught:
        holds("mfu < 1", document)
    assert str(caught.value) == "mfu may be utilization.mfu or run.mfu; write which"


NUMBERS = st.integers(0, 99).map(str)
SUMS = st.recursive(
    NUMBERS,
    lambda parts: st.tuples(parts, st.sampled_from("+-*"), parts).map(
        lambda one: f"({one[0]} {one[1]} {one[2]})"
    ),
    max_leaves=5,
)
CONDITIONS = st.recursive(
    st.tuples(SUMS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), SUMS).map(" ".join),
    lambda parts: (
        parts.map(lambda one: f"not ({one})")
        | st.tuples(parts, st.sampled_from(["and", "or"]), parts).map(
            lambda one: f"({one[0]}) {one[1]} ({one[2]})"
        )
    ),
    max_leaves=6,
)


@given(CONDITIONS)
def test_what_python_makes_of_it(text):
    """The same words mean the same in Python, which is the oracle."""
    words = text.replace("(", " ").replace(")", " ").split()
    if len(words) + text.count("(") * 2 <= 200:
        assert holds(text) is eval(text)


def test_a_report_is_checked_and_every_comparison_told():
    report = Maker().report(Maker().digest(0, Maker().device(world())), price=2.0)
    checked = check(report, ["world_size == 1", "mfu < 99%", "comm_ratio > 1", "mfu < 99%"])
    assert [gate.outcome for gate in checked.gates] == ["fail", "unknown", "unknown"]
    assert not checked.is_passed
    document = checked.to_dict()
    assert list(document) == ["schema_version", "generator", "check", "notes"]
    assert document["check"]["passed"] is False
    first, second, _ = document["check"]["gates"]
    assert first["comparisons"] == (
        {
            "left": "world_size",
            "left_value": 1,
            "left_kind": "number",
            "operator": "==",
            "right": "1",
            "right_value": 1,
            "right_kind": None,
            "holds": True,
        },
    )
    assert second["comparisons"][0]["left_value"] is None
    assert second["reasons"][0].startswith("utilization.mfu is unknown: ")


def world():
    make = Maker()
    return make.step(1, make.times(compute=1_000), make.work("bf16", 1_000), told=False)


def test_the_names_of_a_loss_are_those_of_reports(tmp_path):
    made("ddp", 4, 1).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    report = analyze(tmp_path)
    assert report.scaling_loss is not None
    assert set(report.scaling_loss) == LOSS_FIELDS
    assert check(report, ["comm_ratio > 99%", "mfu < 1%", "finding('straggler')"]).is_passed


def test_notes_say_why_a_size_is_unknown():
    report = Maker().report(Maker().digest(0, Maker().device(world())))
    unsized = replace(
        report,
        run=replace(report.run, world_size=None),
        notes=(Note("world_size_unknown", "no trace says its world size"),),
    )
    (gate,) = check(unsized, ["world_size < 8"]).gates
    assert gate.reasons == (
        "run.world_size is unknown: world_size_unknown: no trace says its world size",
    )


def test_codes_are_those_that_findings_have():
    """Read off the code that finds: each code that a finding is made with is known."""
    folder = Path(findings.__file__).parent.parent
    sources = [*folder.glob("*.py"), *folder.glob("findings/*.py")]
    text = "\n".join(path.read_text() for path in sources)
    told = {
        *re.findall(r'[^_]finding\(\s*"(\w+)"', text),
        *re.findall(r'"code": "(\w+)"', text),
        *re.findall(r'code="(\w+)"', text),
    }
    assert {"straggler", "low_overlap"} < told
    assert told <= CODES
    assert all(f'"{code}"' in text for code in CODES)


def test_nothing_to_check_is_wrong_usage():
    report = Maker().report(Maker().digest(0, Maker().device(world())))
    with pytest.raises(
        UsageError, match=r"^nothing to check: give --fail-on 'mfu < 0\.35', or"
    ):
        check(report, [])
    with pytest.raises(UsageError, match=r"^1,001 conditions: more than 1,000"):
        check(report, ["mfu < 1"] * 1_001)
    with pytest.raises(UsageError, match=r"^--fail-on 'mffu < 1': the report has no field"):
        check(report, ["mffu < 1"])
