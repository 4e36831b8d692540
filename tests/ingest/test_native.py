from __future__ import annotations

import json
from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.traces import kernel, op, step, write
from traceparse.errors import UsageError
from traceparse.ingest import native, read_trace
from traceparse.ingest.collect import Collector, label_of
from traceparse.ingest.native import CLOSED, DOUBTFUL, MORE, NativeEngine, engine
from traceparse.ingest.numbers import MISSING, nanoseconds
from traceparse.ingest.split import outline

pytestmark = pytest.mark.skipif(
    engine() != "native", reason="the native engine was not built, for want of a compiler"
)
EVENTS = [kernel(100 + 10 * n, 5, f"k{n}", correlation=n) for n in range(7)]


def inside(events, **style) -> bytes:
    return json.dumps(events, **style).encode()[1:]


def taken(text: bytes):
    """Return how far a text was read and why, and how many events were taken."""
    collector = Collector()
    reader = NativeEngine(collector)
    found = reader.take(text)
    reader.flush()
    return found.status, found.at, collector.events


def only(event: str):
    """Say whether an event is taken at all."""
    return taken(f"{event}]".encode())[2] == 1


def times(text: str):
    """Return what the scanner makes of a time; ``None`` if it leaves it to Python."""
    collector = Collector()
    reader = NativeEngine(collector)
    if reader.take(f'{{"ph":"X","cat":"c","name":"n","ts":{text}}}]'.encode()).status == CLOSED:
        return int(reader._rows.starts[0]), not reader._rows.flags[0] & native._HAS_FRACTION
    return None


_LABELS = ["1", "12", "1.5", "-1", '"1"', '"12"', '"1\\""', "null", "true", '"a"', '"ab"', '""']


@given(st.lists(st.sampled_from(_LABELS), min_size=2, max_size=9), st.sampled_from([",", " ,"]))
def test_a_label_that_begins_like_the_one_before_is_another(labels, comma):
    """What a field had last is looked for first: it must be all that stands there."""
    events = (
        f'{{"ph":"X","cat":"cpu_op","name":"n","ts":1,"dur":1,"pid":{label}{comma}"tid":{label}}}'
        for label in labels
    )
    collector = Collector()
    reader = NativeEngine(collector)
    reader.take(",".join(events).encode() + b"]")
    reader.flush()
    ops = collector.finish(0)["ops"].table()
    expected = [label_of(json.loads(label)) for label in labels]
    assert ops["pid"].to_pylist() == ops["tid"].to_pylist() == expected


def test_a_number_that_the_one_before_begins_is_left_to_python():
    event = '{"ph":"X","cat":"c","name":"n","pid":%s}'
    assert taken(f"{event % 1},{event % '1e3'}]".encode())[2] == 1


@pytest.mark.parametrize("style", [{}, {"indent": 2}, {"separators": (",", ":")}])
def test_a_list_is_taken_up_to_the_bracket_that_closes_it(style):
    text = inside(EVENTS, **style)
    assert taken(text + b', "traceName": 1}') == (CLOSED, text.rindex(b"]"), 7)


@pytest.mark.parametrize("style", [{}, {"indent": 2}])
def test_a_text_that_breaks_off_is_taken_up_to_its_last_whole_event(style):
    text = inside(EVENTS, **style)
    for length in range(len(text) - 1):
        status, at, num = taken(text[:length])
        commas = outline(text[:length]).commas.tolist()
        assert (status, at, num) == (MORE, commas[-1] + 1 if commas else 0, len(commas))


@pytest.mark.parametrize(
    "event",
    [
        '{"ph": "X", "cat": "c", "name": "n"}',
        '{"name": "n", "cat": null, "ph": "i"}',
        '{ "ph" : "X" ,\n"cat":"c","name":"n","args":{}\t}',
        '{"ph": "X", "cat": "c", "name": "é \\u00e9 \\" \\\\ \\/", "args": null}',
        '{"ph": "X", "cat": "c", "name": "n", "new": {"a": [1, -2.5e-3, {}, [], true]}}',
        '{"ph": "X", "cat": "c", "name": "n", "pid": -1, "tid": "t", "args": {"device": 1.0}}',
        '{"ph": "X", "cat": "c", "name": "n", "args": {"correlation": 18446744073709551615}}',
        '{"ph": "X", "cat": "c", "name": "n", "ts": null, "dur": -1.5, "args": {"stream": -1}}',
    ],
)
def test_what_is_beyond_doubt_is_taken(event):
    json.loads(event)
    assert only(event)


@pytest.mark.parametrize(
    "event",
    [
        "[1]",
        "5",
        "{}",
        '{"ph": "X", "cat": "c"}',
        '{"ph": "X", "name": "n"}',
        '{"ph": 5, "cat": "c", "name": "n"}',
        '{"ph": "X", "cat": "c", "name": null}',
        '{"ph": "X", "cat": "c", "name": "n",}',
        '{"ph": "X", "cat": "c", "name": "n" "ts": 1}',
        '{"ph": "X", "cat": "c", "name": "n", "a": [1,]}',
        '{"ph": "X", "cat": "c", "name": "n", "a": {"b"}}',
        '{"ph": "X", "cat": "c", "name": "n", "a": 01}',
        '{"ph": "X", "cat": "c", "name": "n", "a": 1.}',
        '{"ph": "X", "cat": "c", "name": "n", "a": -}',
        '{"ph": "X", "cat": "c", "name": "n", "a": 1e}',
        '{"ph": "X", "cat": "c", "name": "n", "a": nul}',
        '{"ph": "X", "cat": "c", "name": "n", "a": NaN}',
        '{"ph": "X", "cat": "c", "name": "n", "a": +1}',
        '{"ph": "X", "cat": "c", "name": "a\nb"}',
        '{"ph": "X", "cat": "c", "name": "\\x"}',
        '{"ph": "X", "cat": "c", "name": "\\u00g0"}',
        '{"ph": "X", "cat": "c", "name": "\\ud83d\\ude00"}',
        '{"ph": "X", "cat": "c", "name": "\ud800"}',
        '{"ph": "X", "cat": "c", "na\\u006de": "n", "name": "n"}',
        '{"ph": "X", "cat": "c", "name": "n", "pid": [1]}',
        '{"ph": "X", "cat": "c", "name": "n", "pid": 1e5}',
        '{"ph": "X", "cat": "c", "name": "n", "ts": "5"}',
        '{"ph": "X", "cat": "c", "name": "n", "ts": 1e5}',
        '{"ph": "X", "cat": "c", "name": "n", "ts": 4000000000000000}',
        '{"ph": "X", "cat": "c", "name": "n", "args": []}',
        '{"ph": "X", "cat": "c", "name": "n", "args": {"stream": "7"}}',
        '{"ph": "X", "cat": "c", "name": "n", "args": {"stream": 18446744073709551616}}',
        '{"ph": "X", "cat": "c", "name": "n", "args": {"correlation": 1.0}}',
        '{"ph": "X", "cat": "c", "name": "n", "args": {"correlation": true}}',
        '{"ph": "X", "cat": "c", "name": "n", "args": {"Collective name": 5}}',
        '{"ph": "X", "cat": "c", "name": "n", "a": ' + "[" * 61 + "]" * 61 + "}",
        '{"ph": "X", "cat": "c", "name": "n"};',
    ],
)
def test_what_is_not_is_left_to_python(event):
    good = inside(EVENTS[:2])[:-1] + b","
    text = event.encode("utf-8", "surrogatepass") + b","
    assert taken(good + text + good) == (DOUBTFUL, len(good), 2)


@pytest.mark.parametrize("wide", ["é", "€", "😀", "\ud7ff", "\ue000", "\U0010ffff"])
def test_characters_of_several_bytes(wide):
    name = f"a{wide}b" + "x" * 20
    text = f'{{"ph": "X", "cat": "c", "name": "{name}"}}]'.encode()
    assert taken(text)[2] == 1
    for broken in range(1, len(wide.encode())):
        assert taken(text.replace(wide.encode(), wide.encode()[:broken]))[2] == 0


@pytest.mark.parametrize(
    "raw", [b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xff", b"\x80"]
)
@pytest.mark.parametrize("raw_end", [b"", b"\xf4\x90\x80\x80", b"\xed\xa0\x80"])
def test_bytes_that_are_no_utf8(raw, raw_end):
    text = b'{"ph": "X", "cat": "c", "name": "n", "a": "' + (raw_end or raw) + b'"}]'
    assert taken(text) == (DOUBTFUL, 0, 0)


BELOW = 4 * 10**15  # microseconds


@given(st.decimals(1 - BELOW, BELOW - 1, allow_nan=False, places=7), st.integers(0, 7))
@example(Decimal("0.0005"), 4)
@example(Decimal("0.0015"), 4)
@example(Decimal("-0.0025"), 4)
@example(Decimal("1.00051"), 5)
@example(Decimal("999999999999999.9995"), 4)
@example(Decimal("1712195495519689.047"), 3)
@example(Decimal("3999999999999999.9995"), 4)
def test_times_are_exact(number, places):
    text = f"{number.quantize(Decimal(1).scaleb(-places)):f}"
    exact = int(Decimal(text).quantize(Decimal("0.001"), ROUND_HALF_EVEN).scaleb(3))
    by_python = nanoseconds([text.encode()])
    assert times(text) == (exact, by_python.whole_us)
    assert int(by_python.values[0]) == exact


@pytest.mark.parametrize(
    "text", ["0", "-0", "7.0", "7.00", "7.5", "7.0000", "7.9996", "7.00049"]
)
def test_whether_times_are_whole(text):
    assert times(text) == (
        int(nanoseconds([text.encode()]).values[0]),
        nanoseconds([text.encode()]).whole_us,
    )


def test_no_time():
    assert times("null") == (MISSING, True)


@pytest.mark.parametrize("limit", ["_CAPACITY", "_MOST_TEXTS", "_MOST_BYTES"])
def test_what_it_holds_is_bounded(tmp_path, monkeypatch, limit):
    events = [
        kernel(n + 1, 1, f"k{n}" * (1 + n % 9), correlation=n, stream=n) for n in range(300)
    ]
    events += [op(n + 1, 1, f"op{n}") for n in range(99)] + [step(1, 0.5, 600)]
    path = write(tmp_path / "rank0.json", events)
    whole = read_trace(path)
    monkeypatch.setattr(native, limit, 64)
    assert read_trace(path).tables == whole.tables


def test_an_event_that_has_no_room_anywhere(tmp_path, monkeypatch):
    events = [kernel(1, 1, "a"), kernel(2, 1, "b" * 999), kernel(3, 1, "c")]
    path = write(tmp_path / "rank0.json", events)
    monkeypatch.setattr(native, "_MOST_BYTES", 128)
    assert read_trace(path).tables["device_events"]["name"].to_pylist() == ["a", "b" * 999, "c"]


def test_many_categories(tmp_path):
    events = [{**op(n + 1, 1), "cat": f"c{n}"} for n in range(5000)] + EVENTS
    trace = read_trace(write(tmp_path / "rank0.json", events))
    assert trace.health.skipped == {"other_category": 5000}
    assert trace.health.gpu_events == 7


def test_the_scanner_refuses_what_would_be_out_of_bounds():
    scanner_type = native._scanner_type()
    assert scanner_type is not None
    rows = native.Rows.empty(4)
    for columns, *limits in (
        (rows, 0, 16, 16, 1),
        (rows, 4, 15, 16, 1),
        (rows, 4, 16, 1 << 29, 1),
        (rows, 5, 16, 16, 1),
        (rows[1:], 4, 16, 16, 1),
    ):
        with pytest.raises(ValueError, match=r"bound|short|number"):
            scanner_type(columns, *limits)
    with pytest.raises((BufferError, TypeError)):
        scanner_type([b""] * len(rows), 4, 16, 16, 1)
    scanner = scanner_type(rows, 4, 16, 64, 1)
    for at, row in ((-1, 0), (3, 0), (0, -1), (0, 5)):
        with pytest.raises(ValueError, match="no such place"):
            scanner.scan(b"{}", at, row)
    with pytest.raises(TypeError):
        scanner.scan("{}", 0, 0)  # type: ignore[arg-type]
    for first in (-1, 1):
        with pytest.raises(ValueError, match="no such"):
            scanner.texts(first)
        with pytest.raises(ValueError, match="no such"):
            scanner.raws(first)
        with pytest.raises(ValueError, match="no such"):
            scanner.kinds(first)


def test_engines_are_chosen_by_the_environment(monkeypatch):
    monkeypatch.delenv("TRACEPARSE_ENGINE", raising=False)
    assert engine() == "native"
    monkeypatch.setenv("TRACEPARSE_ENGINE", "msgspec")
    assert engine() == "msgspec"
    monkeypatch.setenv("TRACEPARSE_ENGINE", "abacus")
    with pytest.raises(UsageError, match="no such engine; use native or msgspec"):
        engine()
    monkeypatch.setattr(native, "_scanner_type", lambda: None)
    monkeypatch.setenv("TRACEPARSE_ENGINE", "native")
    with pytest.raises(UsageError, match="for want of a C compiler"):
        engine()
    monkeypatch.delenv("TRACEPARSE_ENGINE")
    assert engine() == "msgspec"
