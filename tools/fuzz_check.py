"""What must hold for any file at all: a report whose sums add up, or a line that says why not.

``check`` takes the bytes of a file and raises whatever is wrong. What the file is called, in
which blocks it is read and what is asked of it follow from the bytes, so that a stored file
alone reproduces what it once did.
"""

from __future__ import annotations

import io
import json
import os
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

import pyarrow as pa
from rich.console import Console

from tools.fuzz_mutate import MOST_BYTES, text_of
from traceparse import ordered
from traceparse.engine import analyze, read
from traceparse.errors import TraceparseError
from traceparse.ingest import is_built, read_traces, source, store, trace
from traceparse.ingest.routes import EXTRAS
from traceparse.ingest.scan import scan
from traceparse.rank import Times
from traceparse.report import html, json_text, terminal
from traceparse.run import Report

__all__ = ["Broken", "Outcome", "Plan", "check", "plan_of"]

T = TypeVar("T")

_CALLS = "collective_args"
_INPUTS = ["input_dims", "input_types", "concrete_inputs", "sequence_number", "forward_thread"]
_GOOD = Path(__file__).resolve().parent.parent / "fixtures" / "hand" / "two-devices" / "py.json"
_BLOCKS = (1 << 20, 1 << 20, 1 << 14, 1 << 10, 1 << 7, 61)
_RAW_BLOCKS = (1 << 18, 1 << 12, 1 << 6, 5, 3, 2, 1)  # of the file, before it is inflated
_LONGEST_MESSAGE = 2000
_FEW = 7  # rows
_MOST_BLOCKS = 400  # the shortest blocks are for the shortest files
_NAMES = (
    *("trace.json", "rank3_trace.json", "x.pt.trace.json.gz", "t.json.zst", "t.json.tmp"),
    *("worker7.json.gz.tmp", "rank1048577.json", "noending"),
)
_ENGINES = ("native", "native", "msgspec") if is_built() else ("msgspec",)
_ENCODINGS = ("utf-8", "utf-8", "ascii", "cp1252")


class Broken(Exception):  # noqa: N818 - it names what is wrong with a report, not an error
    """A report, or a refusal, that is not as it has to be."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a file is read, and what is asked of it."""

    name: str
    engine: str
    block: int
    raw_block: int
    compare: bool
    strict: bool
    all_tables: bool
    with_good_file: bool
    rank: int | None
    steps: Collection[int] | None
    width: int
    encoding: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a file: ``result``, or the class of the error; ``feature`` says more."""

    kind: str
    feature: frozenset[str]


def plan_of(data: bytes) -> Plan:
    """Draw the plan of a file from its bytes."""
    rng = Random(zlib.crc32(data))  # noqa: S311 - it has to be the same every time
    length = len(text_of(data)[0]) if len(data) < MOST_BYTES else len(data)
    strict, pair = rng.random() < 0.1, rng.random() < 0.2
    return Plan(
        name=rng.choice(_NAMES),
        block=max(rng.choice(_BLOCKS), length // _MOST_BLOCKS),
        raw_block=max(rng.choice(_RAW_BLOCKS), len(data) // _MOST_BLOCKS),
        compare=rng.random() < 0.4,
        strict=strict,
        all_tables=rng.random() < 0.3,
        with_good_file=pair,
        rank=None if pair else rng.choice((None, None, 0, 5)),
        steps=rng.choice((None, None, None, range(3, 5))),
        width=rng.choice((20, 80, 200)),
        encoding=rng.choice(_ENCODINGS),
        engine=rng.choice(_ENGINES),  # last, so that older findings are read as they were
    )


def check(data: bytes, folder: Path, plan: Plan | None = None) -> Outcome:
    """Read, analyze and draw a file, as tools do and as people do.

    Raises
    ------
    Broken
        A report breaks the contract, or a refusal is not one line.
    Exception
        Whatever else escapes, warnings too.
    """
    plan = plan or plan_of(data)
    path = folder / plan.name
    path.write_bytes(data)
    try:
        with (
            warnings.catch_warnings(),
            _engine_of(plan.engine),
            _blocks_of(plan.block, plan.raw_block),
        ):
            warnings.simplefilter("error")
            refusal = _refusal(lambda: _check_tables(path, plan))
            report, refused = _attempt(lambda: _check_report(path, plan))
        if plan.compare:
            _check_same(path, plan)
    finally:
        path.unlink()
    if report is None:
        return Outcome(type(refused).__name__, _template(refused, path) | refusal)
    return Outcome("result", _traits(report) | refusal)


@contextmanager
def _engine_of(name: str) -> Iterator[None]:
    """Let files be read with this engine."""
    with patch.dict(os.environ, {"TRACEPARSE_ENGINE": name}):
        yield


@contextmanager
def _blocks_of(size: int, raw_size: int) -> Iterator[None]:
    """Let files be read in blocks of other sizes than those that are fastest."""
    in_blocks = patch.object(trace, "scan", partial(scan, block=size))
    in_raw_blocks = patch.object(source, "_RAW_BLOCK", raw_size)
    with in_blocks, in_raw_blocks:
        yield


@contextmanager
def _little_memory() -> Iterator[None]:
    """Let a few rows be too many for memory."""
    in_store = patch.multiple(store, _MOST_HELD=0, _MOST_ROWS=_FEW)
    with in_store, patch.multiple(ordered, _RUN=_FEW, _LEAST=2):
        yield


def _attempt(call: Callable[[], T]) -> tuple[T | None, TraceparseError | None]:
    """Return what a call returns, or its refusal, which has to be well said."""
    try:
        return call(), None
    except TraceparseError as error:
        _check_refusal(error)
        return None, error


def _refusal(call: Callable[[], object]) -> frozenset[str]:
    _, error = _attempt(call)
    return frozenset() if error is None else frozenset({f"tables: {type(error).__name__}"})


def _require(what: str, *, holds: bool) -> None:
    if not holds:
        raise Broken(what)


def _check_refusal(error: TraceparseError) -> None:
    text = str(error)
    _require(f"the message is not one line of text: {text!r}", holds=text.isprintable())
    _require(f"the message says nothing: {text!r}", holds=len(text) > 20)
    _require(f"the message never ends: {text[:200]}", holds=len(text) < _LONGEST_MESSAGE)
    _require(f"exit status {error.exit_status}", holds=error.exit_status == 1)


# -- tables


def _check_tables(path: Path, plan: Plan) -> None:
    """Read with everything that can be asked for, and account for every event."""
    for found in read_traces(path, rank=plan.rank, extras=EXTRAS):
        tables = found.tables
        _check_calls(tables)
        rows = sum(tables[name].num_rows for name in tables if name != _CALLS)
        skipped = sum(found.health.skipped.values())
        events = found.health.events
        claim = f"{events} events are {rows} rows and {skipped} skipped"
        _require(claim, holds=events == rows + skipped)
        for table in tables.values():
            table.validate(full=True)
    if not plan.all_tables:
        return
    run = read([path], rank=plan.rank, extras=EXTRAS)
    for table in run.tables.values():
        table.validate(full=True)


def _check_calls(tables: Mapping[str, pa.Table]) -> None:
    """Demand that arguments of collectives are those of rows that are there."""
    for row in tables[_CALLS].to_pylist():
        _require(f"no such row: {row}", holds=row["row"] < tables[row["of"]].num_rows)


# -- reports


def _check_report(path: Path, plan: Plan) -> Report:
    paths = [path, _GOOD] if plan.with_good_file else [path]
    report = analyze(paths, rank=plan.rank, strict=plan.strict, steps=plan.steps)
    for device in report.devices:
        _check_times(device.window)
        for step in device.steps:
            if step.times:
                _check_times(step.times)
    _check_sums(report.summary.times)
    longest = max((note.message for note in report.notes), key=len)
    _require(f"a note never ends: {longest[:200]}", holds=len(longest) < _LONGEST_MESSAGE)
    _check_json(report)
    _check_terminal(report, plan)
    _check_page(report)
    return report


def _check_same(path: Path, plan: Plan) -> None:
    """Demand that neither blocks nor engines matter, unless an event is torn beyond repair."""
    said = _said(path)
    with _blocks_of(plan.block, _RAW_BLOCKS[0]):
        in_blocks = _said(path)
    same = _are_alike(in_blocks, said)
    _require(f"blocks of {plan.block} make a difference", holds=same)
    with _blocks_of(_BLOCKS[0], plan.raw_block):
        in_raw_blocks = _said(path)
    same = _are_alike(in_raw_blocks, said)
    _require(f"raw blocks of {plan.raw_block} make a difference", holds=same)
    with _little_memory():
        on_disk = _said(path)
    same = _are_alike(on_disk, said)
    _require("little memory makes a difference", holds=same)
    with _engine_of("msgspec"):
        otherwise = _said(path)
    same = _are_alike(otherwise, said)
    _require("the engines differ", holds=same)


def _are_alike(one: str, other: str) -> bool:
    """Say whether two reports, or refusals, say the same; of torn events they need not.

    A refusal need not count alike; and before damage, rubbish may have come out, or nothing.
    """
    torn = ("undecodable", " torn ", "data is damaged", "breaks off")
    return _plain(one) == _plain(other) or any(word in one + other for word in torn)


def _plain(said: str) -> str:
    return said if said.startswith("{") else re.sub(r"\d+", "#", said)


def _said(path: Path) -> str:
    try:
        return json_text.render(analyze([path])) + _said_of_inputs(path)
    except TraceparseError as error:
        return str(error)


def _said_of_inputs(path: Path) -> str:
    """Return what operators were given, which no report repeats letter by letter."""
    tables = (found.tables["ops"].select(_INPUTS) for found in read_traces(path))
    return "\n".join(str(table.to_pylist()) for table in tables)


def _check_times(times: Times) -> None:
    _check_sums(times)
    span = times.end_ns - times.start_ns
    _require(f"span is not end - start: {times}", holds=span == times.span_ns)


def _check_sums(times: Times) -> None:
    parts = times.compute_ns + times.exposed_comm_ns + times.exposed_copy_ns
    claims = {
        "parts add up": parts + times.idle_ns == times.span_ns,
        "busy + idle is span": times.busy_ns + times.idle_ns == times.span_ns,
        "overlap + exposed is comm": times.overlap_ns + times.exposed_comm_ns == times.comm_ns,
        "exposed copy is copy": times.exposed_copy_ns <= times.copy_ns,
        "nothing is negative": all(getattr(times, part.name) >= 0 for part in fields(times)),
    }
    wrong = [claim for claim, holds in claims.items() if not holds]
    _require(f"not so: {', '.join(wrong)}: {times}", holds=not wrong)


def _check_json(report: Report) -> None:
    text = json_text.render(report)
    found: Any = json.loads(text, parse_constant=_no_constant)
    _require("JSON in more than ASCII", holds=text.isascii())
    _require("JSON says something else than the report", holds=found == report.to_dict())


def _no_constant(word: str) -> None:
    raise Broken(f"{word} is no JSON")


def _check_terminal(report: Report, plan: Plan) -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=plan.encoding, errors="strict", newline="")
    console = Console(file=file, width=plan.width)
    terminal.render(report, console)
    terminal.render_notes(report, console)
    file.flush()
    text = raw.getvalue().decode(plan.encoding)
    lines = text.split("\n")
    odd = [line for line in lines if not line.isprintable()]
    _require(f"invisible characters in the terminal: {odd[:1]!r}", holds=not odd)


def _check_page(report: Report) -> None:
    page = html.render(report)
    page.encode("utf-8")
    scripts = _Scripts(page)
    is_own = scripts.num == scripts.num_allowed
    _require("a script in the page that is not its own", holds=is_own)


class _Scripts(HTMLParser):
    """How many scripts a page has that a browser would run, and how many its policy names."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.num = self.num_allowed = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "script" and found.get("type") != "application/json":
            self.num += 1
        if found.get("http-equiv") == "Content-Security-Policy":
            allowed = re.search(r"script-src ([^;]*)", found.get("content") or "")
            self.num_allowed += allowed[1].count("'sha256-") if allowed else 0


# -- what a file did, in a few words: files that do something new are worth mutating further


def _template(error: TraceparseError | None, path: Path) -> frozenset[str]:
    """Return a message without what differs from file to file."""
    text = str(error).replace(str(path), "")
    return frozenset({re.sub(r"\d+|'[^']*'|\"[^\"]*\"|\([^)]*\)", "#", text)})


def _traits(report: Report) -> frozenset[str]:
    codes = {note.code for note in report.notes}
    for file in report.files:
        codes |= {file.layout, *file.skipped, *file.repaired}
    devices = min(len(report.devices), 3)
    empty = any(step.times is None for device in report.devices for step in device.steps)
    return frozenset({*codes, f"{devices} devices", f"empty steps: {empty}"})
