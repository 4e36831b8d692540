from __future__ import annotations

import json
import re

import pytest

from tests.traces import document, kernel
from traceparse.errors import EmptyTraceError, InputError, NotATraceError
from traceparse.ingest import document as document_module
from traceparse.ingest import envelope as envelope_module
from traceparse.ingest import window as window_module
from traceparse.ingest.document import Document
from traceparse.ingest.source import Source
from traceparse.ingest.window import Window

EVENTS = [kernel(100 + 10 * n, 5, f'k{n} }},{{ " \\ ]') for n in range(7)]
HEADER = {"distributedInfo": {"rank": 3}, "traceName": "a [b] {c}"}


def _read(path, text: str | bytes, block: int = 1 << 20):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with Source(path) as source:
        found = Document(Window(source, block))
        names = [event.name for batch in found.batches() for event in batch]
    return found, names


def _hold_at_most(monkeypatch, count: int) -> None:
    for module in (document_module, envelope_module, window_module):
        monkeypatch.setattr(module, "MOST", count)
    monkeypatch.setattr(document_module, "_PATIENCE", count)


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


_LAYOUTS = {
    "libkineto": lambda events: _kineto(events, after=',\n  "traceName": "t"'),
    "indented": lambda events: json.dumps({"traceEvents": events, "traceName": "t"}, indent=2),
    "compact": lambda events: json.dumps({"traceEvents": events, "traceName": "t"}),
    "tight": lambda events: json.dumps(
        {"traceEvents": events, "traceName": "t"}, separators=(",", ":")
    ),
    "python": lambda events: (
        '{\n"traceEvents": [\n'
        + ",\n".join(map(json.dumps, events))
        + '\n],"traceName": "t"}\n'
    ),
}
_BLOCKS = [64, 300, 1 << 20]


@pytest.mark.parametrize("block", _BLOCKS)
@pytest.mark.parametrize("spoiled", [0, 3, 6])
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_one_broken_event_costs_one_event(tmp_path, layout, spoiled, block):
    text = _LAYOUTS[layout]([kernel(100, 5, f"k{n}") for n in range(7)])
    broken = re.sub(f'"name":( ?)"k{spoiled}"', '"name" ~ "k"3"', text)
    found, names = _read(tmp_path / "t.json", broken, block)
    assert names == [f"k{n}" for n in range(7) if n != spoiled]
    assert (found.undecodable, found.truncated, found.damage) == (1, False, [])
    assert found.header["traceName"] == "t"


@pytest.mark.parametrize("block", _BLOCKS)
@pytest.mark.parametrize("spoiled", [0, 3, 6])
@pytest.mark.parametrize("layout", _LAYOUTS)
def test_quotes_in_a_name_cost_nothing(tmp_path, layout, spoiled, block):
    names = [f"k{n}" if n != spoiled else '{"device": "c, d"}' for n in range(7)]
    text = _LAYOUTS[layout]([kernel(100, 5, f"k{n}") for n in range(7)])
    raw = text.replace(f'"k{spoiled}"', f'"{names[spoiled]}"')
    found, read = _read(tmp_path / "t.json", raw, block)
    assert read == names
    assert (found.undecodable, found.repaired) == (0, {"quote_in_string": 1})
    assert found.header["traceName"] == "t"


def test_one_event_of_a_wrong_type_costs_none(tmp_path):
    found, names = _read(
        tmp_path / "t.json", '{"traceEvents": [{"name": 5}, {"name": "b"}, 7]}'
    )
    assert names == ["5", "b"]
    assert (found.undecodable, found.repaired) == (1, {"odd_type": 1})


def test_two_documents_in_one_file(tmp_path):
    one, two = _TEXTS["libkineto, trailer"], _TEXTS["compact"]
    path = tmp_path / "t.json"
    for block in (50, 1 << 20):
        path.write_text(one + two)
        with Source(path) as source:
            window = Window(source, block)
            for _ in range(2):
                found = Document(window)
                names = [event.name for batch in found.batches() for event in batch]
                assert names == [event["name"] for event in EVENTS]
                assert found.header["distributedInfo"] == {"rank": 3}
                assert (found.truncated, found.damage) == (False, [])
            assert (window.text, window.at_end) == (b"", True)


def test_a_damaged_trailer_before_another_document(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(_kineto(EVENTS, after=', "WARNING": ["a "b" c"]') + _TEXTS["libkineto"])
    with Source(path) as source:
        window = Window(source, 1 << 20)
        assert sum(map(len, Document(window).batches())) == len(EVENTS)
        assert window.text.startswith(b'{\n  "schemaVersion"')


def test_headers_among_events_are_counted(tmp_path):
    text = _kineto([kernel(100, 5, f"k{n}") for n in range(5)])
    torn = text[: text.index('"k2"')] + text
    found, names = _read(tmp_path / "t.json", torn)
    assert found.headers_inside == 1
    assert names == ["k0", "k1", "k1", "k2", "k3", "k4"]


def test_all_events_there_but_no_brackets(tmp_path):
    text = _kineto([*EVENTS, {**kernel(1, 1), "name": "Record Window End"}])
    whole = text[: text.rindex("}", 0, text.rindex("]")) + 1]
    found, names = _read(tmp_path / "t.json", whole)
    assert names[-1] == "Record Window End"
    assert (found.truncated, found.damage) == (False, [])
    assert found.repaired == {"missing_bracket": 1}


def test_a_broken_event_in_a_file_that_breaks_off(tmp_path):
    text = _kineto([kernel(100, 5, f"k{n}") for n in range(3)]).replace('"k1"', '"k"1"')
    found, names = _read(tmp_path / "t.json", text[: text.index('"k2"')], 64)
    assert names == ["k0", 'k"1']
    assert found.truncated


def test_a_damaged_header_costs_no_event(tmp_path):
    before = (
        '\n "user": "a"b",\n "traceparse": {"params": 5},\n "distributedInfo": {"rank": 3},'
    )
    text = _kineto(EVENTS, before=before)
    found, names = _read(tmp_path / "t.json", text)
    assert len(names) == len(EVENTS)
    assert found.header["distributedInfo"] == {"rank": 3}
    assert found.header["traceparse"] == {"params": 5}
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


@pytest.mark.parametrize("block", [16, 61, 1 << 20])
def test_what_is_no_json_is_said_alike_in_blocks_of_any_size(tmp_path, block):
    with pytest.raises(NotATraceError, match=r"begins with b'no JSON '"):
        _read(tmp_path / "t.json", " \n" * 50 + "no JSON at all", block)


def test_no_events_in_what_is_too_long_to_hold(tmp_path, monkeypatch):
    _hold_at_most(monkeypatch, 1000)
    with pytest.raises(InputError, match="no traceEvents in its first 0 MiB"):
        _read(tmp_path / "t.json", '{"a": "' + "x" * 5000, 100)


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("kind", ["compact", "libkineto"])
def test_an_event_that_is_too_long_to_hold_costs_one_event(tmp_path, monkeypatch, kind, broken):
    _hold_at_most(monkeypatch, 3000)
    events = [kernel(1, 1, "k0"), kernel(1, 1, "k1" + "x" * 9000), kernel(1, 1, "k2")]
    text = json.dumps(document(events)) if kind == "compact" else _kineto(events)
    found, names = _read(
        tmp_path / "t.json", text.replace('"k1', '"k"1') if broken else text, 200
    )
    assert names == ["k0", "k2"]
    assert (found.undecodable, found.truncated) == (1, False)


def test_events_that_are_laid_out_otherwise_are_found_all_the_same(tmp_path, monkeypatch):
    _hold_at_most(monkeypatch, 3000)
    events = [kernel(1, 1, f"k{n}") for n in range(60)]
    others = ", ".join(json.dumps({"x": 1, **event}) for event in events[1:])
    text = _kineto([*events[:1], kernel(1, 1, "last")])
    seam = text.index(",", text.index("}\n  }"))
    torn = others.replace('"k30"', '"k30')
    found, names = _read(tmp_path / "t.json", f"{text[:seam]}, {torn}{text[seam:]}", 200)
    assert names == [*(f"k{n}" for n in range(60) if n != 30), "last"]
    assert (found.undecodable, found.truncated) == (1, False)


def test_a_last_event_that_is_torn_does_not_take_the_trailer(tmp_path):
    text = _kineto(EVENTS, after=',\n  "distributedInfo": {"rank": 3}')
    torn = text.replace("}\n  ]", "~\n  ]")
    found, names = _read(tmp_path / "t.json", torn)
    assert names == [event["name"] for event in EVENTS[:-1]]
    assert found.header["distributedInfo"] == {"rank": 3}
    assert (found.undecodable, found.truncated, found.damage) == (1, False, [])


def test_what_is_whole_before_a_file_breaks_off_is_used(tmp_path):
    text = json.dumps(document(EVENTS))
    cut = text[: text.index('"ts": 160')]
    found, names = _read(tmp_path / "t.json", cut.replace('{"ph"', '{"ph"~', 3))
    assert names == [event["name"] for event in EVENTS[3:6]]
    assert (found.undecodable, found.truncated) == (3, True)


def test_an_event_without_end_ends_the_reading(tmp_path, monkeypatch):
    _hold_at_most(monkeypatch, 3000)
    text = json.dumps(document([kernel(1, 1, "k0"), kernel(1, 1, "k1" + "x" * 9000)]))
    found, names = _read(tmp_path / "t.json", text, 200)
    assert names == ["k0"]
    assert (found.undecodable, found.truncated) == (1, True)
    assert found.damage == ["an event of more than 0 MiB is not read, and none follows it"]
