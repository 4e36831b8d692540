"""Every kind of damage in every layout it applies to: repaired, counted, or refused."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests import oracle
from tests.contract.seen import OF_COMMUNICATION, OF_WORK, device, partition_errors
from tools.damage import KINDS, LOSSES
from tools.damage_base import write
from tools.damage_clean import clean
from traceparse.engine import analyze, read
from traceparse.errors import StrictError, TraceparseError

INPUTS = [(kind, layout) for kind in KINDS for layout in kind.layouts]
# what hardly depends on the layout is tried in one of each family of writers
FAMILIES = ("k-old", "k-new", "py", "jd4", "c1", "list", "leg", "any")
REPAIRED_TEXT = [
    kind
    for kind in KINDS
    if kind.number in (2, 3, 4, 5, 7, 8, 9, 10, 11, 13, 14, 15, 21, 24, 36, 44, 46)
    and "any" not in kind.layouts
]
TABLES = {
    **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset"), "device_events"),
    **dict.fromkeys(("user_annotation", "Trace", "overhead"), "annotations"),
    "cpu_op": "ops",
    "cuda_runtime": "launches",
}


def named(given):
    kind, layout = given
    return f"{kind.number}-{kind.name}-{layout}"


def codes(report):
    return {note["code"] for note in report["notes"]} - {
        *OF_WORK,
        *OF_COMMUNICATION,
    }


@pytest.fixture(scope="module")
def codes_of_clean(tmp_path_factory):
    """Return what is noted of the undamaged trace of a layout anyway."""
    folder = tmp_path_factory.mktemp("clean")

    @cache
    def noted(layout):
        path = folder / f"{layout}.json"
        path.write_bytes(write(clean(layout), layout))
        return codes(analyze(path).to_dict())

    return noted


def meant(trace):
    """Spell events of the oldest profiler as later ones do: the oracle knows only those."""
    on_device = {"cat": "kernel", "pid": 0, "args": {"device": 0}}
    return [
        {**event, **on_device} if event.get("pid") == "CUDA functions" else event
        for event in trace.events.values()
    ]


def must_come_out(made):
    """Account for the undamaged traces by brute force: (rank, device) to its times."""
    found = {}
    for trace in made.kept:
        truth = oracle.analyze(meant(trace), trace.header)
        assert truth["skipped"] == {}
        for part in truth["devices"]:
            found[truth["rank"], part["device"]] = part
    return found


def came_out(report):
    return {(part["rank"], part["device"]): device(part) for part in report["devices"]}


def totals(report, field):
    found: Counter[str] = Counter()
    for file in report["files"]:
        found.update({reason: n for reason, n in file[field].items() if n})
    return dict(found)


def assert_refused(path, expect):
    with pytest.raises(TraceparseError) as caught:
        analyze(path)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert [words for words in expect.says if words not in text] == []
    assert path.name in text


@pytest.mark.parametrize("given", INPUTS, ids=named)
def test_what_can_be_saved_is_saved_and_counted(given, tmp_path, codes_of_clean):
    kind, layout = given
    made = kind.build(layout)
    path = made.place(tmp_path)
    expect = made.expect
    if expect.refused:
        assert_refused(path, expect)
        return
    report = analyze(path).to_dict()
    assert totals(report, "repaired") == expect.repaired
    lost = totals(report, "skipped")
    assert {reason: n for reason, n in lost.items() if reason in LOSSES} == expect.lost
    assert any(file["truncated"] for file in report["files"]) == expect.truncated
    usual, found = codes_of_clean(layout), codes(report)
    assert (found - usual, usual - found) == (expect.notes, expect.gone)
    said = " ".join(note["message"] for note in report["notes"])
    assert [words for words in expect.says if words not in said] == []
    assert tuple(report["run"]["missing_ranks"] or ()) == expect.missing_ranks
    assert came_out(report) == must_come_out(made)
    assert partition_errors({"devices": list(came_out(report).values())}) == []


@pytest.mark.parametrize("kind", REPAIRED_TEXT, ids=lambda kind: kind.name)
def test_names_come_out_as_they_were_meant(kind, tmp_path):
    for layout in families(kind):
        made = kind.build(layout)
        found = read(made.place(tmp_path / layout)).tables
        wanted = names_of(made.kept[0])
        assert {name: Counter(found[name]["name"].to_pylist()) for name in wanted} == wanted


def families(kind):
    return [layout for layout in kind.layouts if layout in FAMILIES]


def names_of(trace):
    wanted: dict[str, Counter[str]] = {name: Counter() for name in TABLES.values()}
    for event in meant(trace):
        legacy = "cpu_op" if event.get("pid") == "CPU functions" else None
        table = TABLES.get(event.get("cat", legacy))
        if event["ph"] == "X" and table:
            wanted[table][event["name"] or ""] += 1
    return wanted


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.number}-{kind.name}")
def test_strict_refuses_what_was_not_whole(kind, tmp_path):
    for layout in families(kind):
        made = kind.build(layout)
        path = made.place(tmp_path / layout)
        if made.expect.refused:
            assert_refused(path, made.expect)
        elif made.expect.strict:
            with pytest.raises(StrictError) as caught:
                analyze(path, strict=True)
            assert "without --strict" in str(caught.value)
            assert len(str(caught.value).splitlines()) == 1
        else:
            assert analyze(path, strict=made.expect.strict is False).files


def test_wide_ids_come_out_digit_by_digit(tmp_path):
    (kind,) = [kind for kind in KINDS if kind.name == "wide-ids"]
    for layout in kind.layouts:
        made = kind.build(layout)
        table = read(made.place(tmp_path / layout)).tables["device_events"]
        gemms = [row for row in table.to_pylist() if "gemm" in row["name"]]
        assert sorted(row["correlation"] for row in gemms) == [2**53 + n for n in (1, 2, 3)]
        assert {row["stream"] for row in gemms} == {2**63 + 4096}
