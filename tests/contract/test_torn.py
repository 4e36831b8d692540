"""Damage in one event costs no other, wherever it is, in any layout and blocks of any size."""

from __future__ import annotations

import json
from random import Random

import pytest

from tests.traces import kernel
from tools.layouts import LAYOUTS
from traceparse.ingest import is_built
from traceparse.ingest.scan import scan
from traceparse.ingest.source import Source

JUNK = (
    *(b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"~", b"\n", b"\xff", b""),
    *(b'"x"', b"N/A", b"},{", b"],", b"}]"),
)
NAMES = ("a", "b [x], {y}", "void f<int, {lambda}>(x)[2]")
HEADER, TRAILER = {"schemaVersion": 1}, {"traceName": "x"}


def _event(number, rng):
    args = {"dims": [[1, 2], [3]], "External id": number}
    if rng.random() < 0.3:
        args["shapes"] = [{"a": 1}, {"b": "x"}]
    name = f"k{number} {rng.choice(NAMES)}"
    return kernel(100 + 10 * number, 5, name, correlation=number + 1, **args)


def _compact(events, before, after):
    return json.dumps({**before, "traceEvents": events, **after}, separators=(",", ":"))


WRITERS = {
    **LAYOUTS,
    "keys in order": lambda *given: json.dumps(json.loads(_compact(*given)), sort_keys=True),
    "an unusual first key": lambda events, *around: _compact(
        [{"bp": "e", **event} for event in events], *around
    ),
}


def _spans(text, events):
    """Find where each event stands in the text."""
    spans, place = [], 0
    for event in events:
        name = text.index(json.dumps(event["name"]), place)
        begins = [at for at in range(place, name) if text[at] == "{"]
        ends = {at: json.JSONDecoder().raw_decode(text, at)[1] for at in begins}
        begin = max(at for at in begins if ends[at] > name)
        spans.append((begin, ends[begin]))
        place = ends[begin]
    return spans


def _hurt(data, span, rng):
    """Put junk in an event, mostly where it begins and ends, in place of up to two bytes."""
    first, last = span[0], span[1] - 1
    at = rng.choice(
        [rng.randint(first, last), first + rng.randrange(12), last - rng.randrange(3)]
    )
    until = min(at + rng.choice([0, 1, 1, 2]), last + 1)
    return data[:at] + rng.choice(JUNK) + data[until:]


def _read(path, block):
    kept, num_lost = [], 0
    with Source(path) as source:
        for found in scan(source, frozenset(), block=block):
            names = found.tables(0)["device_events"].table()["name"].to_pylist()
            kept += [name.partition(" ")[0] for name in names]
            num_lost += sum(found.skipped.values()) + found.truncated
    return kept, num_lost


@pytest.mark.parametrize("which", ["native", "msgspec"] if is_built() else ["msgspec"])
@pytest.mark.parametrize("block", [64, 300, 1 << 20])
@pytest.mark.parametrize("writer", WRITERS)
def test_damage_in_one_event_costs_no_other_and_is_counted(
    tmp_path, monkeypatch, writer, block, which
):
    monkeypatch.setenv("TRACEPARSE_ENGINE", which)
    rng = Random(f"{writer} {block} {which}")
    path = tmp_path / "t.json"
    for _ in range(60):
        events = [_event(number, rng) for number in range(rng.choice([3, 5]))]
        text = WRITERS[writer](events, HEADER, TRAILER)
        hurt = rng.randrange(len(events))
        data = _hurt(text.encode(), _spans(text, events)[hurt], rng)
        path.write_bytes(data)
        kept, num_lost = _read(path, block)
        others = [f"k{number}" for number in range(len(events)) if number != hurt]
        assert [name for name in kept if name in others] == others, data
        assert len(kept) + num_lost >= len(events), data
