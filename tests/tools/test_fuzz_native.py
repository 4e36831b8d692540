"""The fuzzer of the native scanner: it knows right from wrong, and runs under sanitizers."""

from __future__ import annotations

import json
import shutil
from random import Random
from typing import Any

import pytest

from tests.traces import kernel, op, step
from tools import fuzz_native
from tools.fuzz_native import Differs, Tries
from traceparse.ingest import native

SCANNER: Any = native._scanner_type()
INPUTS = {"Input Dims": [[2, 3], []], "Input type": ["float", ""], "Concrete Inputs": ["", "1"]}
EVENTS = [
    kernel(1.5, 2, "k", correlation=7, **{"External id": 3, "finished": False}),
    op(3, 0.001, "é", **{"external id": 4}),
    op(4, 1, "mm", **INPUTS, **{"Sequence number": 5, "Fwd thread id": 0}),
    op(5, 1, "mm", **INPUTS, **{"Sequence number": -1, "Input dims": [7]}),
    op(6, 1, "mm", **{"Input Dims": None, "Input dims": 5, "Input type": "a" * 5000}),
    step(1, 0, 9),
    {"ph": "i", "name": "n", "ts": None},
]
TEXT = json.dumps(EVENTS).encode()[1:]

needs_scanner = pytest.mark.skipif(
    SCANNER is None, reason="the native engine was not built, for want of a compiler"
)


@needs_scanner
def test_what_the_scanner_takes_is_right():
    tries = Tries(SCANNER)
    tries.check(TEXT, 0)
    assert (tries.num_taken, tries.statuses) == (7, {1})
    tries.check(TEXT[: TEXT.index(b'"i"')], 0)
    assert (tries.num_taken, tries.statuses) == (13, {0, 1})


@needs_scanner
def test_mutated_texts_are_taken_for_what_they_are():
    pool, rng = [TEXT], Random(5)
    tries = Tries(SCANNER)
    for _ in range(2000):
        tries.check(*fuzz_native._mutated(pool, rng))
    assert tries.num_taken > 500
    assert {0, 1, 2} <= tries.statuses


class Wrong:
    """A scanner that says of every text what another one is."""

    def __init__(self, *given):
        self.right = SCANNER(*given)

    def scan(self, text, at, row):
        return self.right.scan(text.replace(b"1.5", b"1.6"), at, row)

    def __getattr__(self, name):
        return getattr(self.right, name)


class Altered(Wrong):
    """A scanner that keeps another text than the one that is there."""

    scan = property(lambda self: self.right.scan)

    def raws(self, first):
        return [raw.replace(b"[2, 3]", b"[2, 4]") for raw in self.right.raws(first)]


class Lenient(Wrong):
    """A scanner that takes what is no JSON."""

    def scan(self, text, at, row):
        return self.right.scan(text.replace(b"NaN", b"1.5"), at, row)


@needs_scanner
def test_what_is_wrong_is_found():
    with pytest.raises(Differs, match=r"(?s)took .*1600.*of .*1\.5"):
        Tries(Wrong).check(TEXT, 0)
    with pytest.raises(Differs, match=r"(?s)kept .*\[\[2, 4\], \[\]\].*of .*\[2, 3\]"):
        Tries(Altered).check(TEXT, 0)
    with pytest.raises(Differs, match="took what is no JSON: NaN"):
        Tries(Lenient).check(TEXT.replace(b"1.5", b"NaN"), 0)


@needs_scanner
def test_a_finding_ends_it(monkeypatch, capsys):
    monkeypatch.setattr(fuzz_native, "_mutated", lambda *_: (TEXT, 0))
    assert fuzz_native._fuzz(Wrong, 30, 1) == 1
    assert capsys.readouterr().out.startswith("FOUND at 0 of b'{")


@needs_scanner
def test_trying_nothing_is_no_success(capsys):
    assert fuzz_native._fuzz(SCANNER, 0, 1) == 1
    assert capsys.readouterr().out.startswith("0 texts, 0 events taken")


@needs_scanner
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_it_runs_under_the_sanitizers(capfd):
    assert fuzz_native.main(["--seconds", "1", "--seed", "1"]) == 0
    assert "0 findings" in capfd.readouterr().out


def test_without_a_compiler_it_says_so(monkeypatch, capsys):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert fuzz_native.main(["--seconds", "1"]) == 1
    assert capsys.readouterr().err == "fuzz-native: no C compiler (no-such-compiler)\n"
