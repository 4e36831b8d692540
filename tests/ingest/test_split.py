from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.ingest.split import Separator, delimiter, outline, pieces

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


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(
            b'\n  {\n    "ph": "X"', Separator(b"\n  },\n  {", 4), id="libkineto, indent"
        ),
        pytest.param(
            b'\r\n {\r\n "ph"', Separator(b"\r\n },\r\n {", 4), id="libkineto on Windows"
        ),
        pytest.param(b'\n{"ph": "X"', Separator(b"},\n{", 1), id="torch's Python writer"),
        pytest.param(b'{"ph": "X"}, {', None, id="compact"),
        pytest.param(b" ]", None, id="no event"),
    ],
)
def test_delimiter(head, expected):
    assert delimiter(head) == expected


def test_pieces_around_a_stray_quote():
    separator = Separator(b"\n  },\n  {", 4)
    text = b'\n  {\n "name": "a "b" c"\n  },\n  {\n "name": "d"\n  }'
    bad, good = pieces(text, separator)
    assert json.loads(good) == {"name": "d"}
    with pytest.raises(json.JSONDecodeError):
        json.loads(bad)


def test_pieces_without_separator_are_the_elements():
    assert pieces(b'{"a": "},{"}, [1, 2] ,3', None) == [b'{"a": "},{"}', b" [1, 2] ", b"3"]


def test_end_of_array():
    separator = Separator(b"\n  },\n  {", 4)
    text = b'\n  {\n    "args": {"x": [{}]\n    }\n  }\n  ],\n  "traceName": "t"\n}'
    assert text[: separator.end_of_array(text)].endswith(b"\n    }\n  }")
    assert separator.end_of_array(text[:20]) == -1
