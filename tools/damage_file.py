"""Damage to files: other formats, cut ends, several writers (rows 1, 15 to 19, 21, 22, 24)."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import zlib
from dataclasses import replace
from itertools import zip_longest

import zstandard

from tools.damage_base import (
    ANY,
    EVENTS,
    KINETO,
    LINED,
    OBJECTS,
    Damaged,
    Trace,
    damaged,
    end_of,
    kind,
    refused,
    write,
)
from tools.damage_clean import clean, rank_trace

__all__: list[str] = []

MANY_RANKS = "several ranks wrote"
LARGE = ("k-old", "k-new", "py", "jd4", "c1", "list")
TWO_STEPS = 34  # events of the clean trace
BLOCK = 4096
PAGE = 1500  # bytes that one writer gets to the disk before another does


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _pack(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def _squeeze(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


# -- 1: something else ------------------------------------------------------------------------


@kind(1, "an execution trace", ANY)
def execution_trace(_layout: str) -> Damaged:
    """Give what ``ExecutionTraceObserver`` writes beside the profiler's trace."""
    found = {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [{"id": 1, "name": "[p]"}]}
    return refused(_json(found), "execution trace")


@kind(1, "a memory timeline", ANY)
def memory_timeline(_layout: str) -> Damaged:
    """``export_memory_timeline`` to ``.raw.json.gz``."""
    return refused(
        _pack(_json([[-1, 0, 512, 0], [12, 1, 512, 1]])),
        "memory timeline",
        name="timeline.raw.json.gz",
    )


@kind(1, "a memory snapshot", ANY)
def memory_snapshot(_layout: str) -> Damaged:
    """Give a pickle, which is never opened."""
    found: dict[str, object] = {"segments": [], "device_traces": [[]]}
    return refused(pickle.dumps(found), "memory snapshot", name="snapshot.json")


@kind(1, "execution_details.json: a list of one object", ANY)
def execution_details(_layout: str) -> Damaged:
    """Shaped like the oldest traces, but with no event in it."""
    return refused(_json([{"rank": 0, "details": {"time": 1.5}}]), "not of trace events")


@kind(1, "a folder of nothing but other files", ANY)
def other_folder(_layout: str) -> Damaged:
    """Refuse all of them in one line."""
    return refused({"a.json": b'{"x": 1}', "b/c.json": b"[1, 2]"}, "no trace")


# -- 15, 16, 22: the end, or all of it, is missing --------------------------------------------


def _cut(layout: str, *, into: int, after: int = TWO_STEPS) -> tuple[bytes, Trace]:
    """Cut a file some bytes into the event after so many; return it and what is whole."""
    trace = clean(layout)
    end = end_of(trace, layout, after) + into
    return write(trace, layout)[:end], trace.first(after)


@kind(15, "killed while exporting: only .json.tmp is there", EVENTS)
def killed(layout: str) -> Damaged:
    """In the middle of an event, of which nothing is used."""
    data, kept = _cut(layout, into=60)
    files = {"rank0_trace.json.tmp": data}
    return _in_folder(
        damaged(files, kept, truncated=True, says=["breaks off", str(len(data))]), layout
    )


def _in_folder(found: Damaged, layout: str) -> Damaged:
    """Account for the rank in the name of a file, where the trace itself has none."""
    if layout != "list":
        return found
    notes, gone = found.expect.notes | {"rank_from_file_name"}, {"rank_unknown"}
    expect = replace(found.expect, notes=notes, gone=found.expect.gone | gone)
    kept = tuple(trace.head(distributedInfo={"rank": 0}) for trace in found.kept)
    return replace(found, expect=expect, kept=kept)


@kind(15, "killed between two events", EVENTS)
def killed_between(layout: str) -> Damaged:
    """Right after the brace of the last one."""
    data, kept = _cut(layout, into=0)
    return damaged(data, kept, truncated=True, says=["breaks off", str(len(data))])


@kind(15, "killed within a name", EVENTS)
def killed_in_name(layout: str) -> Damaged:
    """Leave out the quote that would close it."""
    data, kept = _cut(layout, into=0)
    rest = write(clean(layout), layout)[len(data) :]
    data += rest[: rest.index(b'"name"') + 12]
    return damaged(data, kept, truncated=True, says=["breaks off", str(len(data))])


@kind(15, "killed before the clock's base was written", OBJECTS)
def killed_before_base(layout: str) -> Damaged:
    """Write it behind the events, as torch 2.4 to 2.6: without it, times are no dates."""
    trace = clean(layout).behind("baseTimeNanoseconds", "distributedInfo")
    end = end_of(trace, layout, TWO_STEPS) + 25
    notes = ["time_relative", "rank_unknown", "world_size_unknown", "backend_unknown"]
    data = write(trace, layout)[:end]
    return damaged(data, trace.first(TWO_STEPS), truncated=True, notes=notes)


@kind(16, "disk full: the file stops at a block's end", EVENTS)
def disk_full(layout: str) -> Damaged:
    """Leave whole blocks, as an export does that returns without an error."""
    trace = clean(layout)
    short = BLOCK - (end_of(trace, layout, TWO_STEPS) + 30) % BLOCK
    trace = trace.args("op1", pad="")
    filled = trace.args("op1", pad="x" * (short + BLOCK - _grown(trace, layout)))
    end = end_of(filled, layout, TWO_STEPS) + 30
    assert end % BLOCK == 0
    data = write(filled, layout)[:end]
    return damaged(data, filled.first(TWO_STEPS), truncated=True, says=["breaks off", str(end)])


def _grown(trace: Trace, layout: str) -> int:
    """Return by how much the first two steps are longer than in the clean trace."""
    whole = end_of(clean(layout), layout, TWO_STEPS)
    return end_of(trace, layout, TWO_STEPS) - whole


@kind(16, "disk full: an empty file", ANY)
def disk_full_at_once(_layout: str) -> Damaged:
    """Nothing at all was written."""
    return refused(b"", "empty", "disk full", name="trace.json.tmp")


@kind(16, "disk full: a gzip file that holds nothing", ANY)
def disk_full_gzip(_layout: str) -> Damaged:
    """Pack nothing: the temporary file could not be written."""
    return refused(_pack(b""), "nothing", name="trace.json.gz")


@kind(16, "disk full: zeros where the end should be", (*LINED, "list"))
def zeros_at_end(layout: str) -> Damaged:
    """Keep the length of a file and lose what was in it, as some file systems do."""
    data, kept = _cut(layout, into=40)
    return damaged(data + bytes(4096), kept, truncated=True)


@kind(22, "second save: an empty file", ANY)
def saved_twice(_layout: str) -> Damaged:
    """``Trace is already saved`` was raised, after the file had been opened."""
    return refused(b"", "empty", name="trace.json")


# -- 17, 18: compressed files -----------------------------------------------------------------


@kind(17, "a gzip file that breaks off", EVENTS)
def gzip_cut(layout: str) -> Damaged:
    """Keep what was compressed before, to the last byte."""
    data, kept = _cut(layout, into=60)
    stream = zlib.compressobj(wbits=31)
    cut = stream.compress(data) + stream.flush(zlib.Z_SYNC_FLUSH)
    return damaged({"trace.json.gz": cut}, kept, truncated=True, says=["breaks off"])


@kind(17, "a zstd file that breaks off", ("k-old", "py", "c1"))
def zstd_cut(layout: str) -> Damaged:
    """As with gzip."""
    data, kept = _cut(layout, into=60)
    stream = zstandard.ZstdCompressor().compressobj()
    cut = stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    return damaged({"trace.json.zst": cut}, kept, truncated=True, says=["breaks off"])


@kind(17, "a gzip file with a damaged block", ("k-old", "k-new", "c1"))
def gzip_damaged(layout: str) -> Damaged:
    """Keep what was inflated before the damage."""
    data, kept = _cut(layout, into=60)
    stream = zlib.compressobj(wbits=31)
    cut = stream.compress(data) + stream.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 64
    return damaged({"trace.json.gz": cut}, kept, truncated=True, says=["compressed data"])


@kind(18, "a trace in many gzip members", EVENTS)
def members(layout: str) -> Damaged:
    """738 were seen; they are one file."""
    data = write(clean(layout), layout)
    files = {"t.json.gz": b"".join(_pack(data[i : i + 199]) for i in range(0, len(data), 199))}
    return damaged(files, clean(layout))


@kind(18, "whole traces of two ranks, one after another in one gzip file", OBJECTS)
def traces_in_members(layout: str) -> Damaged:
    """Append instead of writing: each is a trace of its own."""
    both = [rank_trace(0, 2), rank_trace(1, 2, start=250_000)]
    files = {"trace.json.gz": b"".join(_pack(write(trace, layout)) for trace in both)}
    return damaged(files, both, notes=["several_traces"], strict=None)


@kind(18, "whole traces of two ranks, one after another in one plain file", OBJECTS)
def traces_in_file(layout: str) -> Damaged:
    """Do the same without gzip."""
    both = [rank_trace(0, 2), rank_trace(1, 2, start=250_000)]
    files = {"trace.json": b"".join(write(trace, layout) for trace in both)}
    return damaged(files, both, notes=["several_traces"], strict=None)


@kind(18, "gzip members of two ranks in turn", KINETO)
def members_in_turn(layout: str) -> Damaged:
    """Two processes appended to one file, block by block."""
    blocks = [_pack(piece) for piece in _in_turn(layout)]
    return refused({"trace.json.gz": b"".join(blocks)}, MANY_RANKS)


# -- 19: many writers -------------------------------------------------------------------------


def _two_ranks(layout: str) -> list[bytes]:
    """Return the files of two ranks, the second one a little longer from its start."""
    longer = rank_trace(1, 2, start=999)
    for number in (1, 2, 3):
        longer = longer.args(f"op{number}", Call_stack="model.py(7): forward; " * number)
    return [write(rank_trace(0, 2), layout), write(longer, layout)]


def _in_turn(layout: str) -> list[bytes]:
    """Return the files of two ranks in pieces, taking turns."""
    texts = _two_ranks(layout)
    pieces = [[text[i : i + PAGE] for i in range(0, len(text), PAGE)] for text in texts]
    return [piece for pair in zip_longest(*pieces, fillvalue=b"") for piece in pair if piece]


@kind(19, "two ranks appended to one file at the same time", OBJECTS)
def written_in_turn(layout: str) -> Damaged:
    """Both are there, in pieces of a page."""
    return refused(b"".join(_in_turn(layout)), MANY_RANKS)


@kind(19, "two ranks wrote over one another", OBJECTS)
def written_over(layout: str) -> Damaged:
    """Each at its own place in the file: pages of either, whoever came last."""
    texts = _two_ranks(layout)
    pages = range(0, max(map(len, texts)), PAGE)
    found = b"".join(texts[(at // PAGE) % 2][at : at + PAGE] for at in pages)
    return refused(found, MANY_RANKS)


@kind(19, "a rank wrote a shorter file over a longer one", OBJECTS)
def written_short_over_long(layout: str) -> Damaged:
    """Behind the end of the one, which is whole, the rest of the other shows."""
    short, long = _two_ranks(layout)
    return damaged(
        short + long[len(short) :],
        rank_trace(0, 2),
        notes=["trailing_data", "missing_ranks"],
        says=["did another rank write into the file?"],
        missing_ranks=(1,),
        strict=True,
    )


# -- 21, 24: endings, marks, sizes ------------------------------------------------------------


@kind(21, "a gzip file named .json", ("k-old", "c1", "list"))
def gzip_named_json(layout: str) -> Damaged:
    """Content decides."""
    return damaged({"trace.json": _pack(write(clean(layout), layout))}, clean(layout))


@kind(21, "a plain file named .json.gz", ("k-new", "c1", "list"))
def plain_named_gzip(layout: str) -> Damaged:
    """Content decides."""
    return damaged({"trace.json.gz": write(clean(layout), layout)}, clean(layout))


@kind(21, "a zstd file named .json.gz", ("k-new", "c1", "list"))
def zstd_named_gzip(layout: str) -> Damaged:
    """Content decides."""
    return damaged({"trace.json.gz": _squeeze(write(clean(layout), layout))}, clean(layout))


@kind(21, "a byte order mark", (*EVENTS, "leg"))
def byte_order_mark(layout: str) -> Damaged:
    """As editors on Windows leave it."""
    return damaged(b"\xef\xbb\xbf" + write(clean(layout), layout), clean(layout))


@kind(21, "lines that end as on Windows", EVENTS)
def windows_lines(layout: str) -> Damaged:
    """Copy as text."""
    return damaged(write(clean(layout), layout).replace(b"\n", b"\r\n"), clean(layout))


@kind(21, "lines that end as on Windows, with a broken name among them", LINED)
def windows_lines_and_quotes(layout: str) -> Damaged:
    """Break a name as well: the lines still tell where events end."""
    trace = clean(layout).edit("gemm2", name='a "b" c')
    data = write(trace, layout).replace(rb"a \"b\" c", b'a "b" c').replace(b"\n", b"\r\n")
    return damaged(data, trace, repaired={"quote_in_string": 1})


@kind(21, "text in UTF-16", ANY)
def utf16(_layout: str) -> Damaged:
    """As PowerShell redirects it."""
    text = write(clean("k-new"), "k-new").decode()
    return refused(text.encode("utf-16"), "UTF-16")


def _large(trace: Trace) -> Trace:
    """Add operators until the file is larger than several blocks that are read at once."""
    more = {
        f"filler{number}": {
            **trace.events["python1"],
            "name": f"layer{number % 97}.py(3): f",
            "args": {"stack": "x" * 400},
        }
        for number in range(6_000)
    }
    return trace.add(**more)


@kind(24, "more than fits the memory of one read", LARGE)
def large(layout: str) -> Damaged:
    """Fill block after block, with frames of Python for the most part."""
    trace = _large(clean(layout))
    return damaged(write(trace, layout), trace)


@kind(24, "a large file with damage in every part of it", LARGE)
def large_with_damage(layout: str) -> Damaged:
    """One event in a thousand: the others of its block are as safe as ever."""
    trace = _large(clean(layout))
    data = io.BytesIO()
    parts = write(trace, layout).split(b"layer13.py(3): f")
    for count, part in enumerate(parts):
        data.write(part if not count else b'layer "13".py' + part)
    return damaged(data.getvalue(), trace, repaired={"quote_in_string": len(parts) - 1})
