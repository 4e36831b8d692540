from __future__ import annotations

import pytest

from traceparse.ingest.closing import goes_on, may_follow, rest_of_document


@pytest.mark.parametrize(
    ("text", "in_object", "in_list"),
    [
        (b"", True, True),
        (b",", True, False),
        (b' , "traceName": 1}', True, False),
        (b' , "schemaVersion": 1}', True, False),
        (b', "ph": "X"}]}', False, False),
        (b', "args" : {}}]}', False, False),
        (b', {"ph": "X"}]}', False, False),
        (b", 5", False, False),
        (b"}", True, True),
        (b'}\n{"schemaVersion": 1}', True, True),
        (b'}{"ph": "X"}', False, False),
        (b"[", False, True),
        (b'{"schemaVersion": 1}', False, True),
        (b'{"device": 0}}', False, False),
        (b"}}", False, False),
        (b"]", False, False),
    ],
)
def test_what_may_follow_the_events(text, in_object, in_list):
    assert may_follow(text, is_list=False) == in_object
    assert may_follow(text, is_list=True) == in_list


@pytest.mark.parametrize(
    "text", [b', {"x": 1}', b'{"ph": 1', b', "ts": 1', b' "dur": 1', b",{"]
)
def test_what_shows_that_more_events_follow(text):
    assert goes_on(text)


@pytest.mark.parametrize(
    "text", [b"", b"}", b', "traceName": 1}', b'} "tail of": 1', b"log line"]
)
def test_what_does_not_show_that_more_events_follow(text):
    assert not goes_on(text)


TORN = b'{"ph": "X", "args": {"dims": [1], "more": [{"a": 2}]}'


@pytest.mark.parametrize("after", [b', "traceName": "a]b"}', b' ,\n "a": [1, {"b": []}]}\n'])
def test_the_rest_of_a_document_behind_a_torn_event(after):
    text = TORN + b" ]" + after
    found = rest_of_document(text)
    assert found is not None
    assert (text[: found.end], text[found.following :]) == (TORN + b" ", after)


@pytest.mark.parametrize("text", [TORN, TORN + b"}]}", TORN + b'], "traceName": "a'])
def test_no_rest_of_a_document(text):
    assert rest_of_document(text) is None
