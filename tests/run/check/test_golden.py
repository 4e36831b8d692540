"""What differs between two documents, and what does not count."""

from __future__ import annotations

import copy

import pytest

from tests.simulated import made
from traceparse.engine import analyze
from traceparse.run.check.golden import Difference, differences


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    made("ddp", 4, 1).place(folder)
    (folder / "truth.json").unlink()
    return analyze(folder).to_dict()


@pytest.fixture
def changed(document):
    return copy.deepcopy(document)


def test_a_report_is_what_it_was(document, changed):
    assert list(differences(document, changed)) == []


def test_a_number_beyond_the_tolerance(document, changed):
    before = document["utilization"]["mfu"]
    changed["utilization"]["mfu"] = before * 0.9
    (found,) = differences(document, changed)
    assert (found.path, found.before) == ("utilization.mfu", before)
    assert found.ratio == pytest.approx(-0.1)
    assert list(differences(document, changed, tolerance=0.11)) == []
    assert list(differences(document, changed, tolerance={"*.mfu": 0.11})) == []
    assert len(list(differences(document, changed, tolerance={"*_ns": 0.11}))) == 1
    assert list(differences(document, changed, ignore=["utilization.*"])) == []


def test_from_nothing_there_is_no_tolerance():
    assert list(differences({"a": 0}, {"a": 1}, tolerance=9.0)) == [Difference("a", 0, 1)]
    assert list(differences({"a": 0}, {"a": 0.0})) == []


def test_rows_are_matched_wherever_they_stand(document, changed):
    changed["devices"].reverse()
    changed["roofline"].reverse()
    assert list(differences(document, changed)) == []
    changed["devices"][0]["window"]["idle_ns"] += 1
    (found,) = differences(document, changed)
    assert found.path == "devices[3].window.idle_ns"


def test_rows_that_came_and_went(document, changed):
    gone = changed["roofline"].pop(0)
    changed["roofline"].append({**gone, "op": "aten::other"})
    found = list(differences(document, changed))
    assert [(one.path, one.after is None) for one in found] == [
        ("roofline[0]", True),
        ("roofline[]", False),
    ]
    assert found[0].before == {name: gone[name] for name in ("op", "shapes", "dtype")}


def test_what_cannot_be_told_apart_stays_in_its_place():
    same = {"name": "idle", "ratio": 0.5}
    before = {"waterfall": [same, {**same, "ratio": 0.25}]}
    after = {"waterfall": [{**same, "ratio": 0.25}, same]}
    assert [one.path for one in differences(before, after)] == [
        "waterfall[0].ratio",
        "waterfall[1].ratio",
    ]


def test_added_fields_are_free_and_missing_ones_are_not(document, changed):
    changed["weather"] = "fine"
    changed["devices"][0]["mood"] = 1
    assert list(differences(document, changed)) == []
    del changed["scaling_loss"]
    (found,) = differences(document, changed)
    assert (found.path, found.after) == ("scaling_loss", None)


def test_kinds_differ():
    assert list(differences({"a": None}, {"a": 0})) == [Difference("a", None, 0)]
    assert list(differences({"a": True}, {"a": 1})) == [Difference("a", True, 1)]
    assert list(differences({"a": [1, 2]}, {"a": [1]})) == [Difference("a[1]", 2, None)]


def test_texts_paths_and_notes_do_not_count(document, changed):
    changed["summary"]["verdict"] = "another"
    changed["files"][0]["path"] = "elsewhere"
    changed["notes"] = []
    changed["generator"]["version"] = "9"
    assert list(differences(document, changed)) == []
