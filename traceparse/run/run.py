"""A job, read: its tables, for people who want to ask their own questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import pyarrow as pa

from traceparse.errors import Note
from traceparse.ingest import FileHealth
from traceparse.rank import Times
from traceparse.run.bridged import queried
from traceparse.run.report import Report
from traceparse.run.saving import shown_as_html
from traceparse.tables import TABLES, ArrowTable, schema_of

__all__ = ["Run", "Tables", "gather"]


class Tables(dict[str, ArrowTable]):
    """Tables by their names; in a notebook they say how large they are and what is in them."""

    def _repr_html_(self) -> str | None:
        """Show the tables in a notebook."""
        return shown_as_html(self, "tables")


@dataclass(frozen=True, slots=True)
class Run:
    """All traces of one job.

    ``tables`` maps the names of :mod:`traceparse.tables` to Arrow tables over all ranks;
    ``report`` is what :func:`traceparse.analyze` says about the same files.

    Examples
    --------
    >>> run = traceparse.read("traces/")
    >>> run.ranks, [note.code for note in run.notes]
    ((0, 1), ['no_device_events', 'no_device_events', 'peak_unknown'])
    >>> run.tables["steps"].to_pandas()[["rank", "step", "span_ns", "idle_ns"]].head(2)
       rank  step   span_ns  idle_ns
    0     0    10  78310551  5158519
    1     0    11  69396078  4573375
    """

    tables: Mapping[str, ArrowTable]
    report: Report

    def _repr_html_(self) -> str | None:
        """Show the run in a notebook: its report, and which tables there are."""
        return shown_as_html(self, "run")

    def sql(self, query: str) -> ArrowTable:
        """Return what a query finds in the tables of the run, and in those of its report.

        One statement that selects, in DuckDB's SQL; it reads these tables and nothing else.
        Tables of the report (``traceparse schema``) are in the schema ``report``, which need
        not be named where no table of the run is called the same.

        Raises
        ------
        UsageError
            The query cannot run; the message is DuckDB's.
        MissingExtraError
            DuckDB is not installed.

        Examples
        --------
        >>> run = traceparse.read("n8/")
        >>> run.sql(
        ...     "SELECT op, count(*) AS count, sum(dur_ns) AS ns FROM kernels "
        ...     "WHERE rank = 0 GROUP BY op ORDER BY ns DESC LIMIT 2"
        ... ).to_pandas()
                    op  count       ns
        0     aten::mm     32  1925904
        1  aten::addmm     16   966036
        >>> run.sql("SELECT name FROM waterfall ORDER BY ratio DESC LIMIT 1").to_pylist()
        [{'name': 'mfu'}]
        """
        return queried(self, query)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that have a trace."""
        return self.report.run.ranks

    @property
    def notes(self) -> tuple[Note, ...]:
        """What was repaired, skipped, assumed or is unknown."""
        return self.report.notes


def gather(parts: Sequence[Mapping[str, ArrowTable]], report: Report) -> Run:
    """Put the tables of all ranks under one another, and the report's own beside them."""
    tables = Tables(
        {
            name: pa.concat_tables(
                [part[name] for part in parts if name in part]
            ).unify_dictionaries()
            for name in TABLES
            if any(name in part for part in parts)
        }
    )
    tables["steps"] = _rows("steps", _steps(report))
    tables["files"] = _rows("files", [_file(health) for health in report.files])
    tables["notes"] = _rows("notes", [asdict(note) for note in report.notes])
    return Run(tables, report)


def _rows(name: str, rows: list[dict[str, Any]]) -> ArrowTable:
    return pa.Table.from_pylist(rows, schema=schema_of(name))


def _steps(report: Report) -> list[dict[str, Any]]:
    names = [field.name for field in fields(Times)]
    return [
        {
            "rank": device.rank,
            "device": str(device.device),
            "step": step.step,
            "name": step.name,
            "open_ended": step.open_ended,
            **{name: getattr(step.times, name, None) for name in names},
        }
        for device in report.devices
        for step in device.steps
    ]


def _file(health: FileHealth) -> dict[str, Any]:
    row = {field.name: getattr(health, field.name) for field in fields(health)}
    return {
        **row,
        "skipped": list(health.skipped.items()),
        "repaired": list(health.repaired.items()),
    }
