from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from traceparse.errors import EmptyTraceError, NotATraceError
from traceparse.ingest import sniff

PATH = Path("a/trace.json")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
        (b"\xff\xd8\xff\xe0", "a JPEG picture"),
        (b"%PDF-1.7", "a PDF document"),
        (b"PK\x03\x04", "a zip archive: unpack it first"),
        (pickle.dumps({}), "a Python pickle (a CUDA memory snapshot?)"),
        (b" <!DOCTYPE html>", "an HTML or XML page"),
        (b"\xff\xfe{\x00", "text in UTF-16"),
        (b"hello", "not JSON (it begins with b'hello')"),
    ],
)
def test_what_does_not_begin_like_json(head, said):
    error = sniff.binary(PATH, head)
    assert isinstance(error, NotATraceError)
    assert str(error).startswith(f"{PATH}: this is {said}")
    assert str(error).endswith("give the trace file that torch.profiler exported")


@pytest.mark.parametrize("head", [b"{", b"[", b" \n{"])
def test_what_begins_like_json(head):
    assert sniff.binary(PATH, head) is None


@pytest.mark.parametrize(
    ("found", "kind", "said"),
    [
        ({"schema": "1.1.1-chakra.0.0.4", "nodes": []}, NotATraceError, "an execution trace"),
        ({"schema": "1.0.1", "nodes": []}, NotATraceError, "an execution trace"),
        ({"segments": [], "device_traces": []}, NotATraceError, "a CUDA memory snapshot"),
        ({"schema_version": 1, "generator": {}}, NotATraceError, "a traceparse report"),
        ({"a": 1, "b": 2}, NotATraceError, "JSON without traceEvents (it has 'a', 'b')"),
        ({}, NotATraceError, "JSON without traceEvents (it has no keys at all)"),
        ([{"a": 1}], NotATraceError, "a JSON list, but not of trace events"),
        ({"traceEvents": {}}, EmptyTraceError, "metadata only, no duration events"),
    ],
)
def test_json_that_is_no_trace(found, kind, said):
    error = sniff.document(PATH, found)
    assert isinstance(error, kind)
    assert said.removeprefix("an ").removeprefix("a ") in str(error)


def test_lists():
    assert sniff.listing(PATH, b'{"ph"') is None
    assert sniff.listing(PATH, b"]") is None
    assert sniff.listing(PATH, b'~{"ph": "X", "ts": 1}') is None
    assert "a memory timeline?" in str(sniff.listing(PATH, b"[1, 2]"))


@pytest.mark.parametrize(
    ("damage", "size", "said"),
    [
        (None, 0, "the file is empty (0 bytes; was the disk full during export?)"),
        (None, 3, "the file holds nothing but blanks"),
        ("it breaks off", 3, "it breaks off before any event, so nothing can be used"),
    ],
)
def test_nothing_there(damage, size, said):
    assert said in str(sniff.empty(PATH, damage, size))


def test_every_answer_is_one_line_that_names_the_file():
    odd = sniff.document(PATH, {"a\nb\x1b[31m": 1})
    assert "\n" not in str(odd)
    assert "\x1b" not in str(odd)
    assert str(odd).startswith(f"{PATH}: ")
