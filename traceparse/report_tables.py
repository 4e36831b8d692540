"""The tables of a report, as files: column, Arrow type, unit, meaning.

Each holds a field of ``report.json`` under its name, with rows for its entries; a field that
is one entry is one row of ``run``. Counts of FLOP and bytes that add up over a job are
doubles: they may exceed 64 bits.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from traceparse.tables import TABLES, TIMES_COLUMNS, Column, Table

__all__ = ["REPORT_TABLES"]

_INT, _REAL, _TEXT, _BOOL = pa.int64(), pa.float64(), pa.string(), pa.bool_()
_RANKS = pa.list_(pa.int64())
_COUNTS = pa.map_(pa.string(), pa.int64())


def _columns(*told: tuple[str, pa.DataType, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*each, "work") for each in told)


def _ns(*told: tuple[str, str]) -> tuple[Column, ...]:
    return _columns(*((name, _INT, "ns", meaning) for name, meaning in told))


def _ratios(*told: tuple[str, str]) -> tuple[Column, ...]:
    return _columns(*((name, _REAL, "ratio", meaning) for name, meaning in told))


_WHERE = _columns(
    ("rank", _INT, "", "rank of the file; null where unknown"),
    ("device", _TEXT, "", "device number as text, or cpu"),
)
_USE = _columns(
    ("executed_flop", _REAL, "FLOP", "of matrix operations that ran"),
    ("model_flop", _REAL, "FLOP", "that the model needs; null unknown"),
    ("recompute_flop", _REAL, "FLOP", "executed a second time; null unknown"),
    ("achieved_flop_per_s", _REAL, "FLOP/s", "of one device"),
    ("hfu", _REAL, "ratio", "executed, of the peak"),
    ("mfu", _REAL, "ratio", "needed by the model, of the peak"),
)
_COMMUNICATION = _ns(
    ("exposed_wait_ns", "of exposed comm: before the transfer of collectives"),
    ("pipeline_wait_ns", "the same in send and recv"),
    ("exposed_transfer_ns", "of exposed comm: within the transfer"),
    ("exposed_unsplit_ns", "of exposed comm: not seen on every rank"),
)
_HOST = _ns(
    ("host_idle_ns", "idle, and its causes add up to it"),
    ("host_data_loader_ns", "the host waited for data"),
    ("host_sync_ns", "the host waited for the device"),
    ("host_launch_ns", "the host was launching, too slowly"),
    ("host_unknown_ns", "the trace does not tell"),
)

_TABLES: Final = (
    Table(
        "run",
        "the whole run in one row: run, summary, utilization, scaling_loss, cost",
        (
            *_columns(
                ("world_size", _INT, "", "ranks of the job; null unknown"),
                ("ranks", _RANKS, "", "ranks that have a trace"),
                ("missing_ranks", _RANKS, "", "ranks that have none; null unknown"),
                ("backend", _TEXT, "", "what communicates"),
                ("accelerator", _TEXT, "", "id in the table of peaks, else the name"),
                ("reference_dtype", _TEXT, "", "data type whose peak MFU is of"),
                ("verdict", _TEXT, "", "the run in one line"),
                ("bound", _TEXT, "", "compute, memory, communication or host"),
                ("bound_ratio", _REAL, "ratio", "its share of the device-steps"),
                ("basis", _TEXT, "", "which device-steps the times add up"),
                ("num_device_steps", _INT, "", "how many these are"),
            ),
            *TIMES_COLUMNS,
            *_COMMUNICATION,
            *_HOST,
            *_USE,
            *_columns(
                ("mfu_source", _TEXT, "", "declared, counted or estimated"),
                ("step_ns", _INT, "ns", "mean device-step of scaling_loss"),
            ),
            *_ratios(
                ("exposed_transfer_ratio", "of a mean step"),
                ("exposed_wait_ratio", "of a mean step"),
                ("pipeline_wait_ratio", "of a mean step"),
                ("exposed_unsplit_ratio", "of a mean step"),
                ("contention_ratio", "of a mean step; null unknown"),
                ("comm_ratio", "transfer, wait, unsplit and contention"),
                ("load_balance", "mean compute over the most of a rank"),
                ("serialization", "most compute of a rank over the ideal step"),
                ("transfer", "ideal step over the step"),
                ("parallel_efficiency", "the product of the three"),
            ),
            *_columns(
                ("usd_per_step", _REAL, "USD", "of the whole job; null without a price"),
            ),
        ),
    ),
    Table(
        "devices",
        "one device, over its whole window, and its utilization over its complete steps",
        (
            *_WHERE,
            *TIMES_COLUMNS,
            *_columns(
                ("kernels_count", _INT, "", "kernels of the device"),
                ("kernels_time_ns", _INT, "ns", "sum of their durations"),
                ("unlinked_count", _INT, "", "kernels without a launch in the file"),
                ("unlinked_time_ns", _INT, "ns", "sum of their durations"),
                ("unattributed_count", _INT, "", "kernels that no operator is around"),
                ("unattributed_time_ns", _INT, "ns", "sum of their durations"),
            ),
            *_USE,
            *_HOST,
        ),
    ),
    Table(
        "steps",
        "one step on one device",
        (*TABLES["steps"].columns, *_COMMUNICATION, *_USE),
    ),
    Table(
        "waterfall",
        "one share of the peak, of the run or of one device; those of each add up to 1",
        (
            *_columns(
                ("rank", _INT, "", "rank of the file; null: the run, or unknown"),
                ("device", _TEXT, "", "device number as text, or cpu; null: the run"),
                ("name", _TEXT, "", "share, as report.json names it"),
                ("ratio", _REAL, "ratio", "of the device-steps at their peak"),
            ),
        ),
    ),
    Table(
        "bands",
        "how one number is judged",
        (
            *_columns(
                ("name", _TEXT, "", "the number, as report.json names it"),
                ("value", _REAL, "ratio", "what it is"),
                ("band", _TEXT, "", "poor, typical, good, excellent or impossible"),
                ("source", _TEXT, "", "where the bands are from"),
            ),
        ),
    ),
    Table(
        "collectives",
        "all collectives of one kind: group, collective, dtype and size",
        (
            *_columns(
                ("process_group", _TEXT, "", "its name; null where unknown"),
                ("ranks", _RANKS, "", "ranks of the group, as far as known"),
                ("collective", _TEXT, "", "which one; null: some communication"),
                ("dtype", _TEXT, "", "type of the elements, as torch names it"),
                ("message_bytes", _REAL, "byte", "size as nccl-tests count it"),
                ("group_size", _INT, "", "ranks of the group; null unknown"),
                ("count", _INT, "", "instances"),
                ("matched_ranks", _INT, "", "ranks seen, the least of all instances"),
                ("transfer_ns", _INT, "ns", "the shortest of each, summed; null not split"),
                ("wait_ns", _INT, "ns", "before the transfer, on all ranks"),
                ("exposed_ns", _INT, "ns", "outside of compute, on all ranks"),
                ("algbw_bytes_per_s", _REAL, "byte/s", "bytes over transfer"),
                ("busbw_bytes_per_s", _REAL, "byte/s", "times the factor of nccl-tests"),
                ("last_rank_counts", _COUNTS, "", "how often each rank came last"),
            ),
        ),
    ),
    Table(
        "clock",
        "how far the clock of one rank is from that of the lowest",
        (
            *_columns(
                ("rank", _INT, "", "whose clock"),
                ("offset_ns", _INT, "ns", "its clock less the lowest rank's"),
                ("drift_ppm", _REAL, "ppm", "how much faster it runs"),
            ),
        ),
    ),
    Table(
        "roofline",
        "all runs of one operator with the same shapes and data type",
        (
            *_columns(
                ("op", _TEXT, "", "its name"),
                ("shapes", _TEXT, "", "shapes of its inputs"),
                ("dtype", _TEXT, "", "data type the work is counted in"),
                ("count", _INT, "", "runs"),
                ("time_ns", _INT, "ns", "of all its kernels"),
                ("flop", _REAL, "FLOP", "of all runs"),
                ("bytes", _REAL, "byte", "the least that any code moves"),
                ("flop_per_s", _REAL, "FLOP/s", "reached"),
                ("bytes_per_s", _REAL, "byte/s", "reached, of the least"),
                ("bound", _TEXT, "", "compute, memory or latency; null unknown"),
                ("roof_ratio", _REAL, "ratio", "time at the roof over time"),
                ("lost_ns", _INT, "ns", "time above the roof"),
                ("recompute_count", _INT, "", "runs that repeat others"),
            ),
        ),
    ),
    Table(
        "top_kernels",
        "device events of one name, operator and shapes; in the last row, all others",
        (
            *_columns(
                ("name", _TEXT, "", "of the kernel; null: all others"),
                ("op", _TEXT, "", "operator that owns it"),
                ("shapes", _TEXT, "", "shapes of the operator's inputs"),
                ("kind", _TEXT, "", "compute, comm or copy"),
                ("is_counted", _BOOL, "", "its operator has a FLOP count"),
                ("count", _INT, "", "events"),
                ("time_ns", _INT, "ns", "sum of their durations"),
                ("ratio", _REAL, "ratio", "of the durations of all device events"),
                ("least_bytes", _REAL, "byte", "the least that any code moves"),
            ),
        ),
    ),
    Table(
        "copies",
        "copies of one direction and kind of memory",
        (
            *_columns(
                ("direction", _TEXT, "", "HtoD, DtoH, DtoD, PtoP, HtoH or memset"),
                ("memory", _TEXT, "", "of the host: pageable or pinned; device, unified"),
                ("count", _INT, "", "copies"),
                ("time_ns", _INT, "ns", "sum of their durations"),
                ("bytes", _REAL, "byte", "moved; null unknown"),
                ("exposed_ns", _INT, "ns", "outside of compute and comm; null unknown"),
            ),
        ),
    ),
    Table(
        "findings",
        "something found, errors first",
        (
            *_columns(
                ("code", _TEXT, "", "stable name, for programs"),
                ("severity", _TEXT, "", "error, warning or info"),
                ("title", _TEXT, "", "one line, for people"),
                ("evidence", _TEXT, "", "in numbers"),
                ("advice", _TEXT, "", "what to do"),
                ("lost_ratio", _REAL, "ratio", "of the device-steps that it would win back"),
                ("lost_usd", _REAL, "USD", "the same of a step; null without a price"),
            ),
        ),
    ),
    TABLES["files"],
    TABLES["notes"],
)

REPORT_TABLES: Final = {table.name: table for table in _TABLES}
