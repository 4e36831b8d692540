from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.ingest.decode import decode_args
from traceparse.ingest.repair import loads_leniently, repair

WHOLE = (
    '{"ph": "X", "cat": "kernel", "name": "NAME", "pid": 1, "tid": "stream 7", "ts": 12.5,'
    ' "dur": 3, "args": {"device": 0, "correlation": 7, "Call stack": "STACK"}}'
)


def _repair(text: str | bytes):
    event, how = repair(text if isinstance(text, bytes) else text.encode())
    assert event is not None
    return event, dict(how)


def test_a_whole_event_is_not_repaired():
    event, how = _repair(WHOLE)
    assert (event.name, how) == ("NAME", {})


@pytest.mark.parametrize(
    "name",
    [
        'a "q" b',
        '{"device": "cpu"}',
        'ends with "',
        '"',
        'a", b',
        'a", "b": 1',
        'both \\"escaped\\" and "bare"',
    ],
)
def test_quotes_in_a_name(name):
    event, how = _repair(WHOLE.replace("NAME", name))
    assert event.name == name.replace('\\"', '"')
    assert how == {"quote_in_string": 1}
    assert decode_args([event])[0][0].correlation == 7


def test_quotes_in_an_argument():
    text = WHOLE.replace("STACK", 'f("x", \'y\'): "z"')
    assert _repair(text)[1] == {"quote_in_string": 1}
    last = '{"ph": "X", "args": {"a": "b"c", "stream": 5}}'
    assert decode_args([_repair(last)[0]])[0][0].stream == 5


def test_a_name_at_the_end_of_its_event():
    event, how = _repair('{"ph": "X", "ts": 1, "name": "a "b" c"}')
    assert (event.name, how) == ('a "b" c', {"quote_in_string": 1})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("NAME", "C:\\Users\\x", "backslash"),
        ("NAME", "\\u12", "backslash"),
        ("NAME", "a\tb", "control_character"),
        ("NAME", "a\nb", "control_character"),
        ('"dur": 3', '"dur": N/A', "bare_word"),
        ('"dur": 3', '"dur": inf', "bare_word"),
        ('"dur": 3', '"dur": -inf', "bare_word"),
        ('"dur": 3', '"dur": NaN', "bare_word"),
        ('"dur": 3', '"dur": -Infinity', "bare_word"),
        ('"device": 0', '"x": [1, inf, nan]', "bare_word"),
        ('"dur": 3', '"dur": ', "blank_value"),
        ('"device": 0', '"device": \n ', "blank_value"),
        ('"STACK"}', '"STACK",}', "trailing_comma"),
        ('"device": 0', '"x": [1, 2, ]', "trailing_comma"),
        ('"STACK"}}', '"STACK"},}', "trailing_comma"),
        ('"tid": "stream 7"', 'tid": "stream 7"', "missing_quote"),
        ("NAME", "C:\\dir\\", "backslash"),
        ('"ph": "X"', '"ph": "X", "ph": "X"', "duplicate_key"),
        ('"name": "NAME"', '"name": 5', "odd_type"),
        ('"cat": "kernel"', '"cat": ["kernel"]', "odd_type"),
    ],
)
def test_one_repair(old, new, reason):
    text = WHOLE.replace(old, new)
    if reason == "duplicate_key":  # on the fast path, where the last one counts unsaid
        text = text.replace('"name": "NAME"', '"name": 5')
        assert _repair(text)[1] == {"duplicate_key": 1}
        return
    event, how = _repair(text)
    assert how == {reason: 1}
    assert bytes(event.ts) == b"12.5"
    assert event.ph == "X"


def test_bytes_that_are_no_utf8():
    event, how = _repair(WHOLE.encode().replace(b"NAME", b"caf\xe9"))
    assert (event.name, how) == ("caf\ufffd", {"not_utf8": 1})


def test_troubles_come_together():
    text = WHOLE.replace("NAME", 'C:\\x "y"').replace('"dur": 3', '"dur": N/A')
    event, how = _repair(text.encode().replace(b"STACK", b"\xff"))
    assert event.name == 'C:/x "y"'
    assert how == {"not_utf8": 1, "backslash": 1, "quote_in_string": 1, "bare_word": 1}


def test_words_and_commas_inside_strings_are_left_alone():
    name = "a, nan, ,} : , inf"
    event, how = _repair(WHOLE.replace("NAME", name).replace('"dur": 3', '"dur": inf'))
    assert (event.name, how) == (name, {"bare_word": 1})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "[]",
        '{"ph" ~ "X"}',
        '{"ph": "X", "name": "a',
        "[" * 99999,
        '{"cat": "kernel", "name" ~ "k"3", "pid": 1}',
    ],
)
def test_what_is_no_event_is_none_and_nothing_was_repaired(text):
    assert repair(text.encode()) == (None, {})


@given(st.text(max_size=30).filter(lambda text: '", "' not in text), st.text(max_size=30))
def test_any_name_in_raw_quotes_comes_back(name, stack):
    """Names that torch 2.13 writes without escaping quotes are what they were."""
    raw = name.replace("\\", "/")
    text = WHOLE.replace("NAME", raw).replace('"STACK"', json.dumps(stack))
    event, _ = repair(text.encode())
    assert event is not None
    assert event.name == raw
    assert bytes(event.ts) == b"12.5"


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_none(data):
    event, how = repair(data)
    assert event is not None or not how


def test_numbers_keep_all_their_digits():
    assert loads_leniently('{"ts": 1712195495519689.047}', Counter()) == {
        "ts": "1712195495519689.047"
    }


@pytest.mark.parametrize(
    "filling",
    ['"name": "', '"', "\\", ', "a": "b"c"', ": , ", "{[", '"x": inf, ', "9" * 9 + " "],
)
def test_a_long_torn_event_takes_time_in_proportion(filling):
    text = '{"ph": "X", "name" ~ ' + filling * (400_000 // len(filling))
    assert repair(text.encode()) == (None, {})
    shorter = '{"ph": "X", "name" ~ ' + filling * (200_000 // len(filling))
    assert repair(shorter.encode())[0] is None
