"""How much copies say to move: the same by both engines, whatever stands there."""

from __future__ import annotations

import json

import pytest

from tests.traces import kernel, span, write
from traceparse.ingest import is_built, read_trace
from traceparse.ingest.decode import copied_bytes

ENGINES = ["msgspec", *(["native"] if is_built() else [])]


def copied(category, **args):
    return span(category, "Memcpy HtoD (Pageable -> Device)", 1, 1, device=0, **args)


def read(path, engine, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_ENGINE", engine)
    trace = read_trace(path)
    column = trace.kept["device_events"].table()["copied_bytes"].to_pylist()
    return column, trace.health.repaired


@pytest.mark.parametrize("engine", ENGINES)
def test_copies_and_memsets_say_it_and_nothing_else_does(tmp_path, monkeypatch, engine):
    events = [
        copied("gpu_memcpy", bytes=4096),
        kernel(5, 1, bytes=7),
        copied("gpu_memset", bytes=0),
        copied("Memcpy", bytes=2**40),  # as in 2021
        copied("gpu_memcpy"),
    ]
    path = write(tmp_path / "rank0.json", events)
    assert read(path, engine, monkeypatch) == ([4096, None, 0, 2**40, None], {})


@pytest.mark.parametrize(
    "odd", ["-1", "1.5", "true", "null", '"12"', "[8]", "{}", "1e3", "9" * 30, str(2**62)]
)
def test_what_is_no_number_of_bytes_says_nothing(tmp_path, monkeypatch, odd):
    """And is no reason to repair the event: nothing else of it is odd."""
    text = json.dumps({"traceEvents": [copied("gpu_memcpy", bytes=1), kernel(5, 1)]})
    path = tmp_path / "rank0.json"
    path.write_text(text.replace('"bytes": 1', f'"bytes": {odd}'))
    for engine in ENGINES:
        assert read(path, engine, monkeypatch) == ([None, None], {})


def test_one_that_cannot_be_read_leaves_the_others():
    assert copied_bytes([b'{"bytes": 3}', b"{", b"", b"null", b'{"bytes": 4}']) == [
        3,
        None,
        None,
        None,
        4,
    ]
