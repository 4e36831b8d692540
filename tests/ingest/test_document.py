from __future__ import annotations

import json

import pytest

from tests.traces import document, kernel
from traceparse.errors import EmptyTraceError, InputError, NotATraceError
from traceparse.ingest import document as document_module
from traceparse.ingest.document import Document
from traceparse.ingest.source import Source

EVENTS = [kernel(100 + 10 * n, 5, f'k{n} }},{{ " \\ ]') for n in range(7)]
HEADER = {"distributedInfo": {"rank": 3}, "traceName": "a [b] {c}"}


def _read(path, text: str | bytes, block: int = 1 << 20):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with Source(path) as source:
        found = Document(source, block=block)
        names = [event.name for batch in found.batches() for event in batch]
    return found, names


def _kineto(events, before="", after="", outer="  ") -> str:
    """Write events as libkineto does, keys on one line, a brace on its own."""
    body = ",\n".join(
        f'  {{\n    "ph": "X", "cat": "kernel", "name": {json.dumps(e["name"])},\n'
        f'    "ts": {e["ts"]}, "dur": {e["dur"]}, "args": {json.dumps(e["args"])}\n  }}'
        for e in events
    )
    head = f'\n{{\n  "schemaVersion": 1,{before}\n  "traceEvents": [\n'
    return f"{head}{body}\n{outer}]{after}\n}}\n"


_TEXTS = {
    "compact": json.dumps(document(EVENTS, **HEADER)),
    "tight": json.dumps(document(EVENTS, **HEADER), separators=(",", ":")),
    "indented": json.dumps(document(EVENTS, **HEADER), indent=4),
    "events first": json.dumps({"traceEvents": EVENTS, **HEADER}),
    "events first, indented": json.dumps({"traceEvents": EVENTS, **HEADER}, indent=2),
    "libkineto": _kineto(EVENTS, before='\n  "distributedInfo": {"rank": 3},'),
    "libkineto 2021": _kineto(EVENTS, '"distributedInfo": {"rank": 3},', outer=""),
    "libkineto, trailer": _kineto(EVENTS, after=',\n  "distributedInfo": {"rank": 3}'),
    "byte order mark": "\ufeff" + json.dumps(document(EVENTS, **HEADER)),
    "windows": _kineto(EVENTS, '\n "distributedInfo": {"rank": 3},').replace("\n", "\r\n"),
    "a list after the events": json.dumps(
        {"traceEvents": EVENTS, "devices": [{"a": 1}, {"b": 2}] * 9, **HEADER}, indent=1
    ),
}


@pytest.mark.parametrize("block", [16, 61, 200, 1 << 20])
@pytest.mark.parametrize("kind", _TEXTS)
def test_every_layout_at_every_block_size(tmp_path, kind, block):
    found, names = _read(tmp_path / "t.json", _TEXTS[kind], block)
    assert names == [event["name"] for event in EVENTS]
    assert found.header["distributedInfo"] == {"rank": 3}
    assert (found.truncated, found.damage, found.undecodable) == (False, [], 0)


@pytest.mark.parametrize("block", [16, 1 << 20])
def test_a_top_level_list(tmp_path, block):
    found, names = _read(tmp_path / "t.json", " " * 40 + json.dumps(EVENTS), block)
    assert names == [event["name"] for event in EVENTS]
    assert (found.layout, found.header, found.truncated) == ("list", {}, False)


@pytest.mark.parametrize(
    ("kind", "layout"),
    [
        ("compact", "compact"),
        ("indented", "indented"),
        ("libkineto", "libkineto"),
        ("windows", "libkineto"),
    ],
)
def test_layout_is_named(tmp_path, kind, layout):
    assert _read(tmp_path / "t.json", _TEXTS[kind])[0].layout == layout


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        (
            ' {\n    "schemaVersion": 1,\n  "traceEvents": [\n  {\n    "ph": "X",\n',
            "libkineto-2026",
        ),
        (
            '{\n"schemaVersion": 1,\n"traceEvents": [\n{"ph": "X"},\n{"ph": "X"}',
            "python-export",
        ),
    ],
)
def test_layout_of_recent_writers_is_named(tmp_path, text, layout):
    assert _read(tmp_path / "t.json", text)[0].layout == layout


def test_a_nested_key_of_the_same_name_is_no_event(tmp_path):
    text = json.dumps(
        {"other": {"traceEvents": [{"name": "no"}]}, "traceEvents": [{"name": "yes"}]}
    )
    assert _read(tmp_path / "t.json", text)[1] == ["yes"]


@pytest.mark.parametrize("kind", ["compact", "indented", "libkineto"])
def test_a_file_may_break_off_anywhere(tmp_path, kind):
    """Every prefix gives the events that are whole in it, or an error that says so."""
    text = _TEXTS[kind].encode()
    first = text.index(b'"traceEvents": [') + 16
    for cut in range(first, len(text) - 2, 7):
        found, names = _read(tmp_path / "t.json", text[:cut], 64)
        assert names == [event["name"] for event in EVENTS][: len(names)]
        assert found.truncated
        assert len(found.damage) == 1
        if names != [event["name"] for event in EVENTS]:
            assert found.damage[0] == f"it breaks off after byte {cut}"
    for cut in range(2, first - 1, 3):
        with pytest.raises(EmptyTraceError, match="breaks off before any event"):
            _read(tmp_path / "t.json", text[:cut])


@pytest.mark.parametrize("block", [64, 1 << 20])
@pytest.mark.parametrize("spoiled", [0, 3, 6])
def test_one_broken_event_costs_one_event(tmp_path, spoiled, block):
    text = _kineto([kernel(100, 5, f"k{n}") for n in range(7)], after=',\n  "traceName": "t"')
    broken = text.replace(f'"k{spoiled}"', f'"k{spoiled} "quoted" name"')
    found, names = _read(tmp_path / "t.json", broken, block)
    assert names == [f"k{n}" for n in range(7) if n != spoiled]
    assert (found.undecodable, found.truncated) == (1, False)
    assert found.header["traceName"] == "t"


def test_one_event_of_a_wrong_type_costs_none(tmp_path):
    found, names = _read(
        tmp_path / "t.json", '{"traceEvents": [{"name": 5}, {"name": "b"}, 7]}'
    )
    assert names == ["5", "b"]
    assert found.undecodable == 1


def test_a_broken_event_in_a_file_that_breaks_off(tmp_path):
    text = _kineto([kernel(100, 5, f"k{n}") for n in range(3)]).replace('"k1"', '"k"1"')
    found, names = _read(tmp_path / "t.json", text[: text.index('"k2"')], 64)
    assert names == ["k0"]
    assert found.truncated


def test_a_damaged_header_costs_no_event(tmp_path):
    text = _kineto(EVENTS, before='\n "user": "a"b",\n "distributedInfo": {"rank": 3},')
    found, names = _read(tmp_path / "t.json", text)
    assert len(names) == len(EVENTS)
    assert found.header["distributedInfo"] == {"rank": 3}
    assert found.damage == ["its header is damaged; what could be read of it is used"]


def test_a_damaged_trailer_costs_no_fact_but_its_own(tmp_path):
    after = (
        ', "WARNING": ["a "b" c"], "baseTimeNanoseconds": 12, "distributedInfo": {"rank": nope}'
    )
    found, names = _read(tmp_path / "t.json", _kineto(EVENTS, after=after))
    assert len(names) == len(EVENTS)
    assert found.header["baseTimeNanoseconds"] == 12
    assert "distributedInfo" not in found.header
    assert found.damage == [
        "what follows its events is damaged; what could be read of it is used"
    ]


def test_a_trailer_that_breaks_off(tmp_path):
    text = _TEXTS["libkineto, trailer"]
    found, names = _read(tmp_path / "t.json", text[: text.rindex('{"rank"')])
    assert len(names) == len(EVENTS)
    assert (found.truncated, found.damage) == (True, ["it breaks off after the events"])


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (b"", EmptyTraceError, r"the file is empty \(0 bytes"),
        (b" \n ", EmptyTraceError, "nothing but blanks"),
        (b"[[1, 2], [3]]", NotATraceError, "a memory timeline"),
        (b'{"a": 1}', NotATraceError, r"JSON without traceEvents \(it has 'a'\)"),
        (b'{"traceEvents": null}', EmptyTraceError, "metadata only"),
        (b'{"a": 1} x}', InputError, "not valid JSON"),
        (b'{"a": ' + b"[" * 99999 + b"]" * 99999 + b"}", InputError, "not valid JSON"),
    ],
)
def test_what_holds_no_events_is_said(tmp_path, text, error, said):
    with pytest.raises(error, match=said):
        _read(tmp_path / "t.json", text)


def test_no_events_in_what_is_too_long_to_hold(tmp_path, monkeypatch):
    monkeypatch.setattr(document_module, "_MOST", 1000)
    with pytest.raises(InputError, match="no traceEvents in its first 0 MiB"):
        _read(tmp_path / "t.json", '{"a": "' + "x" * 5000, 100)


@pytest.mark.parametrize("kind", ["compact", "libkineto"])
def test_an_event_that_is_too_long_to_hold_ends_the_reading(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(document_module, "_MOST", 3000)
    events = [kernel(1, 1, "k0"), kernel(1, 1, "k1" + "x" * 9000), kernel(1, 1, "k2")]
    text = json.dumps(document(events)) if kind == "compact" else _kineto(events)
    found, names = _read(tmp_path / "t.json", text, 200)
    assert names == ["k0"]
    assert found.truncated
    assert "no event ends within" in found.damage[0]


def test_a_long_broken_event_ends_the_reading_too(tmp_path, monkeypatch):
    monkeypatch.setattr(document_module, "_MOST", 3000)
    events = [kernel(1, 1, "k0"), kernel(1, 1, "k1" + "x" * 9000), kernel(1, 1, "k2")]
    text = _kineto(events).replace('"k1x', '"k"1x')
    found, names = _read(tmp_path / "t.json", text, 200)
    assert names == ["k0"]
    assert found.truncated
