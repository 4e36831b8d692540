from __future__ import annotations

import json

import pytest

from tests.traces import kernel
from traceparse.ingest.apart import take_apart
from traceparse.ingest.repair import repair

ONE, TWO, THREE = (json.dumps(kernel(1, 1, name, dims=[[1], {}])) for name in "abc")
LISTS = json.dumps(kernel(1, 1, "d", shapes=[{"a": 1}, {"b": 2}, {"c": [{"d": 3}, {}]}]))


def _names(text: str | bytes):
    found = take_apart(text if isinstance(text, bytes) else text.encode())
    return "".join(event.name for event in found.events), found.num_lost


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(ONE, ("a", 0), id="one event"),
        pytest.param(f"{ONE}, {TWO},{THREE}", ("abc", 0), id="events that hang together"),
        pytest.param(f"{ONE}, {TWO} ,", ("ab", 0), id="a comma behind"),
        pytest.param(f'{ONE},{{"ph"~"X", "name": "x"}}', ("a", 1), id="a torn first key"),
        pytest.param(f'{ONE},}}"ph": "X", "ts": 1}}, {TWO}', ("ab", 1), id="another bracket"),
        pytest.param(f'{ONE},"ph": "X", "ts": 1}}, {TWO}', ("ab", 1), id="no bracket to open"),
        pytest.param(f"{ONE[:-1]}, {TWO}", ("b", 1), id="no bracket to close"),
        pytest.param(f"{LISTS[:-1]}, {TWO}", ("b", 1), id="nor to close lists of objects"),
        pytest.param(f'{ONE},{{"ph"~"", {LISTS[1:]}, {TWO}', ("ab", 2), id="two phases"),
        pytest.param(f'{ONE[:-1]},{{"ph"~1}},{{"ph"~2}}, {TWO}', ("b", 3), id="torn in a row"),
        pytest.param('{"ph": "X"}, "name": "x", "ts": 1}', ("", 1), id="closed too early"),
        pytest.param(f'{ONE},{{"name": "x"}},~{TWO}', ("ab", 1), id="no phase"),
        pytest.param("~", ("", 1), id="rubbish"),
        pytest.param("[" * 100_000 + f",{ONE}", ("a", 1), id="brackets without end"),
        pytest.param('{"ph": ' * 100_000 + f",{ONE}", ("", 100_001), id="objects without end"),
        pytest.param(f"{ONE},".encode() + b"\xff" + TWO.encode(), ("ab", 1), id="no UTF-8"),
    ],
)
def test_every_whole_event_is_kept_and_every_other_one_counted(text, expected):
    assert _names(text) == expected


def test_lists_of_objects_are_not_taken_for_events():
    assert _names(f"{LISTS}, {LISTS}~") == ("dd", 1)


@pytest.mark.parametrize("stray", ["}", " ]}", "}],"])
def test_brackets_too_many_cost_nothing(stray):
    found = take_apart(f"{ONE}{stray}, {TWO}{stray}".encode())
    assert [event.name for event in found.events] == ["a", "b"]
    assert (found.num_lost, found.ends_torn, found.repaired) == (0, False, {"stray_bracket": 2})


def test_what_is_repaired_beside_what_is_torn():
    quote = '{"ph": "X", "name": "a "b" c", "ts": N/A}'
    found = take_apart(f'{quote}, {{"ph"~1}},{quote.replace("N/A", "NaN")}'.encode())
    assert [event.name for event in found.events] == ['a "b" c'] * 2
    assert found.repaired == {"bare_word": 2, "quote_in_string": 2}
    assert (found.num_lost, found.ends_torn) == (1, False)


def test_the_end_is_torn():
    assert take_apart(f"{ONE}, {TWO[:-1]}".encode()).ends_torn
    assert not take_apart(f"{ONE[:-1]}, {TWO}".encode()).ends_torn


def test_looking_for_events_ends():
    """Each of these brackets opens what has to be read to the end to see that it is none."""
    text = b'{"ph": [1' * 20_000 + b",0" * 100_000
    found = take_apart(text)
    assert (found.events, found.num_lost) == ([], 20_000)


def test_nothing_of_what_is_no_event_is_made_one():
    assert repair(b'{"name": , "ts": 1}') == (None, {})
    assert take_apart(b'{"name": , "ts": 1}').num_lost == 1
