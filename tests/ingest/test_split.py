from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.ingest.split import KeySeams, LineSeams, find_seams, outline

_JSON = st.recursive(
    st.none()
    | st.integers()
    | st.sampled_from(["", '"', "\\", '\\"', "}, {", "],[", "a\\\\", "é", "\\\\\\"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from('a"\\'), inner, max_size=3)
    ),
    max_leaves=8,
)
_STYLES = st.sampled_from([{"separators": (",", ":")}, {}, {"indent": 2}, {"indent": "\t"}])


@given(st.lists(_JSON, max_size=5), _JSON, _STYLES, st.data())
def test_outline_finds_the_elements_of_any_array(elements, after, style, data):
    inside = json.dumps(elements, ensure_ascii=False, **style).encode()[1:]
    text = inside + b"," + json.dumps(after).encode()
    found = outline(text)
    assert found.end == len(inside) - 1
    starts = [0, *(comma + 1 for comma in found.commas)]
    ends = [*found.commas, found.end]
    if elements:
        pairs = zip(starts, ends, strict=True)
        assert [json.loads(text[a:b]) for a, b in pairs] == elements
    cut = data.draw(st.integers(0, len(inside) - 1))
    part = outline(text[:cut])
    assert part.end == -1
    assert part.commas.tolist() == [comma for comma in found.commas.tolist() if comma < cut]


@given(st.lists(_JSON, min_size=1, max_size=5), _STYLES, st.data())
def test_what_is_at_the_top_level(elements, style, data):
    text = json.dumps(elements, ensure_ascii=False, **style).encode()[1:]
    place = data.draw(st.integers(0, len(text) - 1))
    inside = text[:place].decode("utf-8", "surrogateescape")
    in_string = len(re.findall(r'(?<!\\)(?:\\\\)*"', inside)) % 2 == 1
    bare = re.sub(r'"(?:[^"\\]|\\.)*"?', "", inside, flags=re.DOTALL)
    depth = sum((c in "[{") - (c in "]}") for c in bare)
    assert outline(text).is_top_level(place) == (not in_string and depth == 0)


@pytest.mark.parametrize(
    ("head", "between", "close"),
    [
        pytest.param(b'\n  {\n    "ph": "X"', b"\n  },\n  {", 4, id="libkineto, indent"),
        pytest.param(b'\r\n {\r\n "ph"', b"\r\n },\r\n {", 4, id="libkineto on Windows"),
        pytest.param(b'\n{"ph": "X"', b"},\n{", 1, id="torch's Python writer"),
    ],
)
def test_seams_between_lines(head, between, close):
    seams = find_seams(head)
    assert isinstance(seams, LineSeams)
    assert (seams.between, seams.close) == (between, close)


@pytest.mark.parametrize("head", [b'{"ph": "X"}, {', b" ]", b"", b"\n"])
def test_seams_on_one_line(head):
    assert isinstance(find_seams(head), KeySeams)


@pytest.mark.parametrize(
    ("head", "seam"),
    [
        (b'{"bp": "e", "ph": "X"}', b'}, {"bp": "e"'),
        (b'{"ph": "X"}', b'}, {"args": {}'),
        (b'{torn"ph": "X"}', b'}, {"ph": "X"'),
        (b'{"a key.*": "X"}', b'}, {"ph": "X"'),
    ],
)
def test_seams_on_one_line_are_known_by_the_first_key(head, seam):
    found = find_seams(head).first(b'{"ph": 1' + seam)
    assert found is not None
    assert found.following == len(b'{"ph": 1}, ')
    assert find_seams(head).first(b'{"ph": 1}, {"other": "e"') is None


@pytest.mark.parametrize("torn", [b"{~", b"{}", b'{"', b'{"x"', b'{"ph": 1}'])
def test_a_first_event_that_is_torn_does_not_hide_the_layout(torn):
    seams = find_seams(b"\n  " + torn + b'\n    "ph": "X",\n    "name": "n"\n  },\n  {\n')
    assert isinstance(seams, LineSeams)
    assert seams.between.endswith(b"},\n  {")
    assert seams.close == (1 if torn.endswith(b"1}") else 4)


LINES = LineSeams(b"\n  },\n  {", 4)
ONE, TWO = b'{\n "name": "a "b" c"\n  }', b'{\n "name": "d"\n  }'


def test_seams_around_a_stray_quote_between_lines():
    text = b"\n  " + ONE + b",\n  " + TWO + b'\n  ],\n  "traceName": "]"}'
    seam = LINES.first(text)
    assert seam is not None
    assert (text[: seam.end].strip(), text[seam.following :][:1]) == (ONE, b"{")
    assert LINES.last(text) == seam
    (end,) = LINES.ends(text)
    assert text[: end.end].endswith(TWO)
    assert text[end.following :].startswith(b',\n  "traceName"')
    assert [piece.strip() for piece in LINES.pieces(text[: end.end])] == [ONE, TWO]


def test_seams_around_a_stray_quote_on_one_line():
    seams = KeySeams()
    one, two, three = b'{"ph": "a "b" }, {c"}', b'{"name":"d"}', b'{ "ts": 5}'
    text = one + b", " + two + b"," + three + b'], "traceName": "}]"}'
    first, last = seams.first(text), seams.last(text)
    assert first is not None
    assert last is not None
    assert text[: first.end] == one
    assert text[last.following :].startswith(three)
    ends = list(seams.ends(text))
    assert text[: ends[0].end].endswith(three)
    assert text[ends[0].following :].startswith(b', "traceName"')
    assert seams.pieces(text[: ends[0].end]) == [one, two, three]


@pytest.mark.parametrize("seams", [LINES, KeySeams()])
def test_no_seam(seams):
    text = b'{"args": [{}], "x": [{"a": 1}, {"b": 2}]'
    assert seams.first(text) is None
    assert seams.last(text) is None
    assert seams.pieces(text) == [text]
    assert list(LINES.ends(text)) == []
