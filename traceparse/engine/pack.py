"""The process beside a training job that keeps its trace: packs, reads back, gives the name.

It is told one request as JSON on standard input and answers with one verdict on standard
output. The job goes on meanwhile, and may end before: the verdict is in the facts as well.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from traceparse.errors import (
    CaptureError,
    EmptyTraceError,
    InputError,
    TraceparseError,
    one_line,
)
from traceparse.ingest import LOSSES, RankTrace, read_traces
from traceparse.packing import UNSAID, pack, write_facts
from traceparse.rank import digest
from traceparse.whole import whole, whole_new

__all__ = ["keep", "main"]

# Notes that the job's log has as well: what torch lost without a word.
_SAID = frozenset(
    {
        "device_events_missing",
        "header_damaged",
        "launches_without_device_event",
        "names_unknown",
    }
)


def main() -> None:
    """Do what standard input asks for, and say on standard output what became of it."""
    os.nice(10)  # the job comes first
    request = json.load(sys.stdin)
    try:
        verdict = keep(request)
    except (TraceparseError, OSError) as error:
        verdict = {"error": one_line(error)}
    with suppress(BrokenPipeError):  # a job that has gone reads no verdict
        # in a line of its own, as what the user has Python load may print as well
        sys.stdout.write(f"\n{json.dumps(verdict)}\n")
        sys.stdout.flush()


def keep(request: Mapping[str, Any]) -> dict[str, Any]:
    """Make the trace that is kept of a raw one, and return what is known of it.

    Raises
    ------
    CaptureError
        There is a trace of this rank already.
    InputError
        What was packed is no trace when read back.
    OSError
        Something cannot be written.
    """
    raw, target = Path(request["raw"]), Path(request["target"])
    facts = dict(request["facts"])
    naming = whole if request["overwrite"] else whole_new
    try:
        with naming(target) as packed:
            num_written = pack(
                raw,
                packed,
                facts,
                name=target.name.removesuffix(".gz"),
                with_host=request["with_host"],
            )
            try:
                verdict = _verdict(read_traces(packed, on_disk=True), num_written)
            except InputError as error:  # of a name that is gone when somebody reads this
                if isinstance(error, EmptyTraceError):
                    raw.unlink(missing_ok=True)
                raise type(error)(str(error).replace(str(packed), str(target))) from error
            verdict["trace_bytes"] = packed.stat().st_size
    except FileExistsError as error:
        raise CaptureError(
            f"{target}: another process kept a trace of this rank meanwhile; "
            "choose another directory for each job"
        ) from error
    facts |= {name: verdict[name] for name in ("num_events", "trace_bytes")}
    if verdict["said"] and request["job"] not in (os.getppid(), os.getpid()):
        facts[UNSAID] = verdict["said"]  # nobody is left to say it: whoever started the job may
    write_facts(target, facts)
    raw.unlink(missing_ok=True)  # last: it says that a packer is at work
    return {**verdict, "facts": facts}


def _verdict(traces: Sequence[RankTrace], num_written: int) -> dict[str, Any]:
    """Say what the reader found of what was written, and what it misses."""
    num_events = sum(trace.health.events for trace in traces)
    said = list(dict.fromkeys(text for trace in traces for text in _said(trace)))
    if num_events < num_written:
        said.insert(0, f"torch wrote {num_written:,} events, and {num_events:,} are read back")
    return {"num_events": num_events, "said": said}


def _said(trace: RankTrace) -> Iterator[str]:
    health = trace.health
    if health.truncated:
        yield "the file breaks off before its end"
    lost = {reason: health.skipped[reason] for reason in LOSSES & health.skipped.keys()}
    for what, counts in (("repaired", health.repaired), ("lost", lost)):
        if counts:
            reasons = ", ".join(f"{number:,} {reason}" for reason, number in counts.items())
            yield f"events that are {what} when read: {reasons}"
    for note in digest(trace).notes:
        if note.code in _SAID:
            yield note.message


if __name__ == "__main__":
    main()
