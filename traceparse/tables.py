"""Every table traceparse makes: column, Arrow type, unit, meaning.

The single source for the code that fills them, for ``traceparse schema`` and for the docs.
A column is filled by one stage of the way from bytes to report; a stage sees the columns of
the stages before it. Names and units are those of the report contract.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import TypeAlias

import pyarrow as pa

__all__ = [
    "STAGES",
    "TABLES",
    "TEXT",
    "TIMES_COLUMNS",
    "ArrowTable",
    "Column",
    "Table",
    "schema_of",
    "spare_pandas",
]

# pyarrow ships no types; the alias keeps signatures readable
ArrowTable: TypeAlias = pa.Table

TEXT = pa.dictionary(pa.int32(), pa.string())
STAGES = ("ingest", "rank", "work")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its Arrow type, its unit (empty for none), what it means, who fills it."""

    name: str
    type: pa.DataType
    unit: str
    meaning: str
    stage: str = "ingest"


@dataclass(frozen=True, slots=True)
class Table:
    """One table: what a row is, and its columns in order."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def schema(self, *, stage: str = STAGES[-1]) -> pa.Schema:
        """Return the Arrow schema of the table as it is after one of the :data:`STAGES`."""
        known = STAGES[: STAGES.index(stage) + 1]
        return pa.schema([(c.name, c.type) for c in self.columns if c.stage in known])


def schema_of(name: str, *, stage: str = STAGES[-1]) -> pa.Schema:
    """Return the schema of one of the :data:`TABLES`."""
    return TABLES[name].schema(stage=stage)


_START = Column(
    "start_ns", pa.int64(), "ns", "first instant, Unix time on the rank's own clock"
)
_END = Column("end_ns", pa.int64(), "ns", "first instant after it")
_NAME = Column("name", TEXT, "", "name as the trace has it")
_CATEGORY = Column("category", TEXT, "", "category as the trace has it, in today's spelling")
_PID = Column("pid", TEXT, "", "process id, as text: some rows of a trace have words there")
_TID = Column("tid", TEXT, "", "thread id, as text")
_CORRELATION = Column(
    "correlation", pa.uint64(), "", "ties a launch to its device events; null where absent or 0"
)
_EXTERNAL_ID = Column("external_id", pa.uint64(), "", "id of the operator that caused it")
_RANK = Column("rank", pa.int64(), "", "rank of the file; null where unknown", "rank")
_DEVICE = Column("device", pa.string(), "", "device number as text, or cpu", "rank")
_STEP = Column(
    "step", pa.int64(), "", "number of the step that launched it; null outside", "rank"
)
_AS_JSON = "as JSON, as the trace has it; null where not recorded, or longer than 4,096 bytes"

_DIMS = Column("input_dims", TEXT, "", f"sizes of the inputs, {_AS_JSON}")
_TYPES = Column("input_types", TEXT, "", f"types of the inputs, {_AS_JSON}")

_DEVICE_EVENTS = (
    _START,
    _END,
    _NAME,
    _CATEGORY,
    Column("device", TEXT, "", "device number as text; else the process row it is drawn on"),
    Column("stream", pa.uint64(), "", "stream number or handle; null where absent or -1"),
    _CORRELATION,
    _EXTERNAL_ID,
    Column("collective", TEXT, "", "collective that the kernel's own metadata names"),
    Column(
        "copied_bytes", pa.uint64(), "byte", "what a copy or memset moved; null where unknown"
    ),
    _RANK,
    _STEP,
    Column("kind", TEXT, "", "compute, comm or copy", "rank"),
    Column("dur_ns", pa.int64(), "ns", "end_ns - start_ns", "rank"),
    Column("op", TEXT, "", "operator that owns it", "work"),
    Column("shapes", TEXT, "", "shapes of the operator's inputs", "work"),
    Column("dtype", TEXT, "", "data type the work is counted in", "work"),
    Column("flop", pa.int64(), "FLOP", "work of the operator, on its first kernel", "work"),
    Column("bytes", pa.int64(), "byte", "its least traffic, on its first kernel", "work"),
)


def _ranked(*told: tuple[str, pa.DataType, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*each, "rank") for each in told)


TIMES_COLUMNS = tuple(
    Column(name, pa.int64(), "ns", meaning, "rank")
    for name, meaning in (
        ("start_ns", "first instant, Unix time on the rank's own clock; null without interval"),
        ("end_ns", "first instant after it"),
        ("span_ns", "end_ns - start_ns"),
        ("busy_ns", "some kernel or copy runs"),
        ("compute_ns", "some compute kernel runs"),
        ("comm_ns", "some collective or point-to-point kernel runs"),
        ("copy_ns", "some copy or memset runs"),
        ("overlap_ns", "comm and compute both run"),
        ("exposed_comm_ns", "comm runs and compute does not"),
        ("exposed_copy_ns", "copy runs, and neither compute nor comm"),
        ("idle_ns", "nothing runs"),
    )
)

_CALL_COLUMNS = _ranked(
    ("start_ns", pa.int64(), "ns", _START.meaning),
    ("end_ns", pa.int64(), "ns", _END.meaning),
    ("launched_ns", pa.int64(), "ns", "when the host launched it; null where unknown"),
    ("step", pa.int64(), "", _STEP.meaning),
    ("stream", pa.uint64(), "", "stream number or handle; null where absent or -1"),
    ("name", TEXT, "", _NAME.meaning),
    ("collective", TEXT, "", "which one, as torch names it; null: some communication"),
    ("dtype", TEXT, "", "type of the elements, as torch names it; null where unknown"),
    ("in_elements", pa.int64(), "", "elements this rank gives; null where unknown"),
    ("out_elements", pa.int64(), "", "elements this rank gets; null where unknown"),
    ("message_bytes", pa.int64(), "byte", "its size as nccl-tests count it; null unknown"),
    ("group", TEXT, "", "name of the process group; null where unknown"),
    ("group_ranks", TEXT, "", "all ranks of the group, as 0-3,8; null where unknown"),
    ("group_size", pa.int64(), "", "how many ranks the group has; null where unknown"),
    ("sequence", pa.uint64(), "", "the group's count of its calls; null where unknown"),
    ("comms_id", pa.uint64(), "", "id of the call, the same on all ranks; null unknown"),
    ("source", pa.int64(), "", "rank that a receive is from; null for all else"),
    ("destination", pa.int64(), "", "rank that a send is to; null for all else"),
    ("told_by", TEXT, "", "what told it: kernel, operator, span or name"),
    ("is_partial", pa.bool_(), "", "sizes may be those of one of several calls in it"),
)


def _by_name(*tables: Table) -> dict[str, Table]:
    return {table.name: table for table in tables}


TABLES = _by_name(
    Table("kernels", "one kernel on a device (category kernel only)", _DEVICE_EVENTS),
    Table("device_events", "one kernel, copy or memset on a device", _DEVICE_EVENTS),
    Table(
        "launches",
        "one call of the runtime or driver on the host",
        (_START, _END, _NAME, _CATEGORY, _PID, _TID, _CORRELATION, _EXTERNAL_ID, _RANK),
    ),
    Table(
        "ops",
        "one operator run on the host",
        (
            *(_START, _END, _NAME, _CATEGORY, _PID, _TID, _EXTERNAL_ID),
            *(_DIMS, _TYPES),
            Column("concrete_inputs", TEXT, "", f"values of inputs, {_AS_JSON}"),
            Column(
                "sequence_number",
                pa.uint64(),
                "",
                "autograd's count; a backward operator has that of its forward",
            ),
            Column(
                "forward_thread",
                pa.uint64(),
                "",
                "thread of a backward operator's forward, as autograd counts them; else 0",
            ),
            _RANK,
        ),
    ),
    Table(
        "annotations",
        "one named range on the host: steps, record_function, gloo collectives, Python's calls "
        "that recompute. Inputs are kept of collectives only",
        (_START, _END, _NAME, _CATEGORY, _PID, _TID, _DIMS, _TYPES, _RANK),
    ),
    Table(
        "collective_args",
        "one argument of a collective: a table of its own, as few events have any",
        (
            Column("of", TEXT, "", "the table that the event is in"),
            Column("row", pa.uint64(), "", "its place there, in the order of its file"),
            Column("key", TEXT, "", "name of the argument as the trace has it"),
            Column("value", TEXT, "", "its text, or its whole number as text"),
            _RANK,
        ),
    ),
    Table(
        "collectives",
        "one collective or point-to-point call on one device, in order of start",
        (_RANK, _DEVICE, *_CALL_COLUMNS),
    ),
    Table(
        "instances",
        "one collective or point-to-point message, all ranks of it: lists have an entry for "
        "each device that has a trace, in the same order",
        _ranked(
            ("group", pa.string(), "", "name of the process group; null where unknown"),
            ("group_ranks", pa.string(), "", "all ranks of the group, as 0-3,8; null unknown"),
            ("collective", pa.string(), "", "which one; send/recv; null: unknown"),
            ("dtype", pa.string(), "", "type of the elements; null where unknown"),
            ("bytes", pa.int64(), "byte", "its size as nccl-tests count it; null unknown"),
            ("is_split", pa.bool_(), "", "transfer and wait can be told apart"),
            ("transfer_ns", pa.int64(), "ns", "its shortest duration; null where not split"),
            ("last_rank", pa.int64(), "", "whom it waited for; null where not split"),
            ("ranks", pa.list_(pa.int64()), "", "ranks that show it; null where unknown"),
            ("devices", pa.list_(pa.string()), "", "the device of each, or cpu"),
            ("start_ns", pa.list_(pa.int64()), "ns", "first instant on each rank's own clock"),
            ("end_ns", pa.list_(pa.int64()), "ns", "first instant after it"),
            ("wait_ns", pa.list_(pa.int64()), "ns", "how long each waited; null: not split"),
        ),
    ),
    Table(
        "python_functions",
        "one Python call, read only when asked for",
        (_START, _END, _NAME, _CATEGORY, _PID, _TID, _RANK),
    ),
    Table(
        "counters",
        "one sample of a counter, read only when asked for",
        (
            _START,
            _NAME,
            _PID,
            Column("values", pa.string(), "", "the sample's args, JSON"),
            _RANK,
        ),
    ),
    Table(
        "steps",
        "one step on one device",
        (
            _RANK,
            _DEVICE,
            Column("step", pa.int64(), "", "number of the step; null without markers", "rank"),
            Column("name", pa.string(), "", "name of the marker; null without markers", "rank"),
            Column(
                "open_ended", pa.bool_(), "", "the last step, whose end nothing marks", "rank"
            ),
            *TIMES_COLUMNS,
        ),
    ),
    Table(
        "files",
        "one trace file, and what became of it",
        (
            *_ranked(("path", pa.string(), "", "as given or found")),
            _RANK,
            *_ranked(
                ("rank_source", pa.string(), "", "how the rank is known"),
                ("layout", pa.string(), "", "which writer's layout the file has"),
                ("bytes", pa.int64(), "byte", "size on disk"),
                ("events", pa.int64(), "", "elements of traceEvents"),
                ("skipped", pa.map_(pa.string(), pa.int64()), "", "not kept, by reason"),
                ("repaired", pa.map_(pa.string(), pa.int64()), "", "repaired, by reason"),
                ("truncated", pa.bool_(), "", "the end of the file is missing"),
                ("time_resolution_ns", pa.int64(), "ns", "1000 or 1; null unknown"),
                ("gpu_events", pa.int64(), "", "device events of an accelerator"),
                ("launches_without_gpu_event", pa.int64(), "", "launches that left no trace"),
                ("gpu_events_without_launch", pa.int64(), "", "not launched in the file"),
            ),
        ),
    ),
    Table(
        "notes",
        "something repaired, skipped, assumed or unknown",
        (
            *_ranked(
                ("code", pa.string(), "", "stable name, for programs"),
                ("message", pa.string(), "", "one line, for people"),
            ),
            _RANK,
            *_ranked(("file", pa.string(), "", "file it is about; null: the run")),
        ),
    ),
)


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def spare_pandas() -> None:
    """Keep Arrow from importing pandas for the first array it makes: 0.13 s and 40 MB.

    Arrow looks once whether pandas is there, to recognize its frames. Only for processes that
    run nothing but traceparse: in others, Arrow would no longer take a frame's NaN for null.
    ``Table.to_pandas`` still works; it looks again.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(finder)
