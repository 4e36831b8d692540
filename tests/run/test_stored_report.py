"""A stored report comes back as it was, and what is none is refused in a line."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.places import ROOT
from tests.run.conftest import Maker
from tests.simulated import made
from traceparse.engine import analyze
from traceparse.errors import InputError
from traceparse.report import json_text
from traceparse.run.stored_report import is_report, read_report

GOLDEN = ROOT / "fixtures" / "gloo-2rank" / "report.json"


def plain_report():
    make = Maker()
    step = make.step(1, make.times(compute=1_000), make.work("bf16", 1_000))
    empty = make.step(2, None)
    return make.report(make.digest(0, make.device(step, empty)), price=2.0)


def stored(path, document):
    path.write_text(json.dumps(document))
    return path


def test_it_comes_back_to_the_letter(tmp_path):
    made("ddp", 4, 1).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    for place, report in enumerate((plain_report(), analyze(tmp_path))):
        text = json_text.render(report)
        path = tmp_path / f"report{place}.json"
        path.write_text(text)
        assert is_report(path)
        assert json_text.render(read_report(path)) == text


def is_kept(before, after):
    """Is all there as it was, whatever was added since, which is unknown?"""
    if isinstance(before, dict):
        added = [after[name] for name in after if name not in before]
        return not any(added) and all(
            is_kept(value, after[name]) for name, value in before.items()
        )
    if isinstance(before, list):
        return len(before) == len(after) and all(map(is_kept, before, after))
    return bool(before == after)


def test_the_golden_report_comes_back():
    """Also where fields were added since: those are unknown, and the others as they were."""
    assert is_report(GOLDEN)
    again = json.loads(json_text.render(read_report(GOLDEN)))
    golden = json.loads(GOLDEN.read_text())
    golden.pop("argv", None)
    assert is_kept(golden, again)


def test_what_a_later_version_added_is_left_out(tmp_path):
    document = plain_report().to_dict() | {"weather": "fine"}
    document["devices"][0]["steps"][0]["mood"] = 3
    report = read_report(stored(tmp_path / "r.json", document))
    assert json_text.render(report) == json_text.render(plain_report())


def test_a_trace_is_no_report(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{\n "schemaVersion": 1,\n "traceEvents": []}')
    assert not is_report(path)
    assert not is_report(tmp_path / "gone")


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"schema_version": True},
        {"devices": {}},
        {"devices": [{"rank": 0, "steps": [{"span_ns": "1"}]}]},
        {"devices": [3]},
        {"run": None},
        {"notes": [{"code": 1}]},
        {"utilization": [1]},
        {"findings": "none"},
    ],
)
def test_what_is_none_is_refused(tmp_path, change):
    path = stored(tmp_path / "r.json", plain_report().to_dict() | change)
    with pytest.raises(InputError) as caught:
        read_report(path)
    assert str(caught.value).startswith(f"{path}: is no report.json that traceparse can read (")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"schema_version": 1}',
        "[" * 100_000,
        '{"schema_version": 1, "a": ' + "[" * 100_000,
        '{"schema_version": 1, "a": NaN}',
    ],
)
def test_any_text_is_refused(tmp_path, text):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"is no report\.json that traceparse can read"):
        read_report(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_report_with_anything_in_it_is_read_or_refused(tmp_path, data):
    document = plain_report().to_dict()
    place = data.draw(st.sampled_from(sorted(document)))
    document[place] = data.draw(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["rank", "steps", "code"]), inner, max_size=3)
            ),
            max_leaves=6,
        )
    )
    path = stored(tmp_path / "r.json", document)
    try:
        read_report(path).to_dict()
    except InputError as error:
        assert "\n" not in str(error)


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"gone: cannot be read \(No such file or directory\)"):
        read_report(tmp_path / "gone")


def test_what_is_too_large_is_not_read(tmp_path, monkeypatch):
    path = stored(tmp_path / "r.json", plain_report().to_dict())
    monkeypatch.setattr("traceparse.run.stored_report._LARGEST", 1 << 4)
    with pytest.raises(InputError, match=r"r\.json: is larger than 0 MiB, which no report is"):
        read_report(path)
