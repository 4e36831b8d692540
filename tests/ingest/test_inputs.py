"""What operators were given: texts as the trace has them, the same by both engines."""

from __future__ import annotations

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import traceparse
from tests.traces import BASE_NS, annotation, kernel, launch, op, write
from traceparse.ingest import is_built, native, read_trace, store, trace
from traceparse.ingest.scan import scan

COLUMNS = ("input_dims", "input_types", "concrete_inputs", "sequence_number", "forward_thread")
ENGINES = ["native", "msgspec"] if is_built() else ["msgspec"]
NOTHING = dict.fromkeys(COLUMNS)


@pytest.fixture(params=ENGINES, autouse=True)
def _engine(request, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_ENGINE", request.param)


def ops_of(path: Path, **options):
    return read_trace(path, **options).tables["ops"].select(COLUMNS).to_pylist()


def ops_with(folder: Path, *args: str | bytes):
    """Return what is kept of operators with these texts as arguments."""
    events = b",".join(
        b'{"ph":"X","cat":"cpu_op","name":"op","ts":1,"dur":1,"args":'
        + (text if isinstance(text, bytes) else text.encode())
        + b"}"
        for text in args
    )
    path = folder / "rank0.json"
    path.write_bytes(b'{"baseTimeNanoseconds":%d,"traceEvents":[%s]}' % (BASE_NS, events))
    return ops_of(path)


def test_texts_are_kept_as_they_are(tmp_path):
    args = (
        '{"Input Dims": [[32, 128], [], [[2,3],[4]]], "Input type" : ["c10::BFloat16","",""],\n'
        '"Concrete Inputs":[\n  "",\n  "\\u00e9 é [1, 2]"\n] , "Sequence number": 12,'
        ' "Fwd thread id":0}'
    )
    assert ops_with(tmp_path, args) == [
        {
            "input_dims": "[[32, 128], [], [[2,3],[4]]]",
            "input_types": '["c10::BFloat16","",""]',
            "concrete_inputs": '[\n  "",\n  "\\u00e9 é [1, 2]"\n]',
            "sequence_number": 12,
            "forward_thread": 0,
        }
    ]


def test_events_without_arguments_have_nulls(tmp_path):
    nulls = json.dumps(
        dict.fromkeys(
            ["Input Dims", "Input type", "Concrete Inputs", "Sequence number", "Fwd thread id"]
        )
    )
    assert ops_with(tmp_path, "{}", "null", nulls) == [NOTHING] * 3


def test_only_operators_and_collectives_have_them(tmp_path):
    inputs = {"Input Dims": [[1]], "Sequence number": 3}
    events = [kernel(1, 1, **inputs), {**launch(2, correlation=1), "args": inputs}, op(3, 1)]
    tables = read_trace(write(tmp_path / "rank0.json", events)).tables
    assert set(COLUMNS) <= set(tables["ops"].column_names)
    for name, table in tables.items():
        if name not in ("ops", "annotations"):
            assert not set(COLUMNS) & set(table.column_names)


def test_annotations_of_collectives_keep_what_they_were_given(tmp_path):
    inputs = {"Input Dims": [[3, 4]], "Input type": ["float"], "Concrete Inputs": [""]}
    long = {"Input Dims": [[1] * 4096], "Input type": ["float"]}
    events = [
        annotation(1, 1, "gloo:all_reduce", **inputs),
        annotation(2, 1, "mine", **inputs),
        annotation(3, 1, "mpi:broadcast", **{"Input dims": [5], "Input type": None}),
        annotation(4, 1, "nccl:all_to_all", **long),
        annotation(5, 1, "gloo:barrier"),
        annotation(0, 1, "gloo:never"),
        op(6, 1),
    ]
    table = read_trace(write(tmp_path / "rank0.json", events)).tables["annotations"]
    rows = table.select(["name", "input_dims", "input_types"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("gloo:all_reduce", "[[3, 4]]", '["float"]'),
        ("mine", None, None),
        ("mpi:broadcast", "[5]", None),
        ("nccl:all_to_all", None, '["float"]'),
        ("gloo:barrier", None, None),
    ]


@pytest.mark.parametrize(
    ("args", "dims"),
    [
        ('{"Input dims": [1]}', "[1]"),
        ('{"Input dims": [1], "Input Dims": [2]}', "[2]"),
        ('{"Input Dims": null, "Input dims": [1]}', "[1]"),
        ('{"Input Dims": [1], "Input Dims": [2]}', "[2]"),
        ('{"Input Dims": [1], "Input Dims": null}', None),
        ('{"Input\\u0020Dims": [1]}', "[1]"),
        ('{"Input Dims": [1], "Input\\u0020Dims": [2]}', "[2]"),
        ('{"Input Dims": 5}', "5"),
        ('{"Input Dims": -1.5e-3}', "-1.5e-3"),
        ('{"Input Dims": "nothing"}', '"nothing"'),
        ('{"Input Dims": "null"}', '"null"'),
        ('{"Input Dims": {"a": [1 , 2]} }', '{"a": [1 , 2]}'),
        ('{"Input Dims": ["\\ud83d\\ude00"]}', '["\\ud83d\\ude00"]'),
    ],
)
def test_whatever_stands_there_is_kept(tmp_path, args, dims):
    assert ops_with(tmp_path, args) == [{**NOTHING, "input_dims": dims}]


@pytest.mark.parametrize(
    "damage", ["[1,]", "[N/A]", "[01]", '["\\x"]', '["\ud800"]', '["a\nb"]', "[1", "nul", ""]
)
def test_damaged_arguments_spoil_no_other_event(tmp_path, damage):
    text = f'{{"Input Dims": {damage}, "Sequence number": 7}}'
    rows = ops_with(
        tmp_path, '{"Input Dims": [1]}', text.encode("utf-8", "surrogatepass"), "{}"
    )
    assert rows[0] == {**NOTHING, "input_dims": "[1]"}
    for row in rows[1:]:
        assert row["input_dims"] is None or json.loads(row["input_dims"]) is not None


def test_what_is_kept_beside_something_odd(tmp_path):
    odd = '{"Collective name": 5, "Input Dims": [[1,2.50]], "Input type": ["é"]'
    deep = f'"Concrete Inputs": {"[" * 900}{"]" * 900}'
    rows = ops_with(
        tmp_path,
        odd + ', "Sequence number": "8", "Fwd thread id": 2.0}',
        odd + f", {deep}}}",
        odd.replace("é", "\\ud800") + "}",
    )
    kept = {"input_dims": '[[1, "2.50"]]', "input_types": '["\\u00e9"]'}
    assert rows[0] == {**NOTHING, **kept, "sequence_number": 8}
    assert rows[1]["concrete_inputs"] is None or len(rows[1]["concrete_inputs"]) == 1800
    assert rows[2]["input_types"] in (None, '["\\ud800"]', '["?"]')


def test_texts_have_an_end(tmp_path):
    longest = json.dumps("x" * 4094)
    rows = ops_with(
        tmp_path,
        f'{{"Input Dims": {longest}, "Input type": "x{longest[1:]}}}',
        f'{{"Input Dims": "x{longest[1:]}, "Input dims": [1]}}',
        f'{{"Input Dims": "é{longest[3:]}}}',
        f'{{"Input Dims": "é{longest[2:]}}}',
    )
    assert [row["input_dims"] and len(row["input_dims"]) for row in rows] == [
        *(4096, None),
        *(4095, None),
    ]
    assert rows[0]["input_types"] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("18446744073709551615", 2**64 - 1),
        ("-1", None),
        ("18446744073709551616", None),
        ("1.0", 1),
        ("1.5", None),
        ("true", None),
        ('"12"', 12),
        ('"0x10"', 16),
        ('"many"', None),
        ("[3]", None),
        ("null", None),
    ],
)
@pytest.mark.parametrize("key", ["Sequence number", "Fwd thread id"])
def test_numbers_are_read_as_other_ids_are(tmp_path, key, text, expected):
    rows = ops_with(tmp_path, f'{{"{key}": {text}}}', f'{{"{key}": 4}}')
    column = "sequence_number" if key == "Sequence number" else "forward_thread"
    assert rows == [{**NOTHING, column: expected}, {**NOTHING, column: 4}]


def test_fractions_are_no_ids(tmp_path):
    """Arrow takes 1.5 for 1 where all values are numbers."""
    events = [op(1, 1, "mm", **{"External id": 1.5}), op(2, 1, "mm", **{"External id": 2.0})]
    table = read_trace(write(tmp_path / "rank0.json", events)).tables["ops"]
    assert table["external_id"].to_pylist() == [None, 2]


_BLANKS = st.sampled_from(["", " ", "\n   ", "\t"])
_VALUES = st.sampled_from(
    [
        *(
            "[]",
            "[[]]",
            "[[1, 2], []]",
            "[[1, 2], [3]]",
            "[[1,2],[3]]",
            "1",
            "12",
            "1.2",
            "1e2",
        ),
        *('""', '"a"', '"ab"', "null", "true", "{}", '["\\ud800"]', '["é"]', '"x\\"y"', "-1"),
    ]
)
_KEYS = st.sampled_from(
    ["Input Dims", "Input dims", "Input type", "Concrete Inputs", "Sequence number", "device"]
)
_ARGS = st.lists(st.tuples(_KEYS, _BLANKS, _VALUES, _BLANKS), max_size=5).map(
    lambda pairs: "{" + ",".join(f'"{key}":{a}{value}{b}' for key, a, value, b in pairs) + "}"
)


@given(st.lists(_ARGS, max_size=12))
def test_engines_agree(tmp_path_factory, args):
    """Also where the text that is expected is the beginning of the one that is there."""
    folder = tmp_path_factory.mktemp("engines")
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for name in ENGINES:
            patch.setenv("TRACEPARSE_ENGINE", name)
            found.append(ops_with(folder, *args, "{}"))
    assert found[0] == found[-1]
    assert len(found[0]) == len(args) + 1


@pytest.mark.parametrize("limit", ["_CAPACITY", "_MOST_TEXTS", "_MOST_BYTES"])
def test_what_the_scanner_holds_of_them_is_bounded(tmp_path, monkeypatch, limit):
    events = [
        op(n, 1, "mm", **{"Input Dims": [[n % 50]], "Input type": n}) for n in range(1, 300)
    ]
    path = write(tmp_path / "rank0.json", events)
    whole = ops_of(path)
    assert [row["input_types"] for row in whole] == [str(n) for n in range(1, 300)]
    monkeypatch.setattr(native, limit, 64)
    assert ops_of(path) == whole


def test_an_argument_that_has_no_room_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "_MOST_BYTES", 128)
    events = [
        op(n, 1, "mm", **{"Input type": "x" * size}) for n, size in ((1, 1), (2, 999), (3, 1))
    ]
    rows = ops_of(write(tmp_path / "rank0.json", events))
    assert [len(row["input_types"]) for row in rows] == [3, 1001, 3]


def test_their_letters_count_as_those_of_names_do(tmp_path, monkeypatch):
    """Texts that never repeat must not gather: what is much goes on, a part of the table."""
    monkeypatch.setattr(store, "_MOST_LETTERS", 50_000)
    monkeypatch.setattr(native, "_CAPACITY", 100)
    monkeypatch.setattr(trace, "scan", partial(scan, block=1 << 14))
    events = [op(n, 1, "mm", **{"Input Dims": [[n] * 100]}) for n in range(1, 2000)]
    path = write(tmp_path / "rank0.json", events)
    found = read_trace(path)
    assert len(list(found.kept["ops"].parts("input_dims"))) > 2
    assert [row["input_dims"] for row in ops_of(path)] == [
        str([[n] * 100]) for n in range(1, 2000)
    ]


def test_a_real_trace_says_what_it_was_given(tmp_path):
    weight = torch.ones(8, 2, requires_grad=True)
    with traceparse.profile(tmp_path, steps=range(1)) as prof:
        torch.mm(torch.ones(4, 8), weight).sum().backward()
        torch.cat([torch.ones(2, 3), torch.ones(1, 3)], dim=0)
        prof.step()
    assert prof.path is not None
    with gzip.open(prof.path) as file:
        events = json.load(file)["traceEvents"]
    told = [event.get("args", {}) for event in events if event.get("cat") == "cpu_op"]
    rows = ops_of(prof.path)
    assert len(rows) == len(told) > 5
    for row, args in zip(rows, told, strict=True):
        texts = (row["input_dims"], row["input_types"], row["concrete_inputs"])
        assert [json.loads(text) if text else None for text in texts] == [
            args.get(key) for key in ("Input Dims", "Input type", "Concrete Inputs")
        ]
        assert row["sequence_number"] == args.get("Sequence number")
        assert row["forward_thread"] == args.get("Fwd thread id")
    assert any(row["input_dims"] == "[[4, 8], [8, 2]]" for row in rows)
    # a backward operator names the thread and the number of its forward
    assert any(row["forward_thread"] for row in rows)
