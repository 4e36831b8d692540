"""SQL over a run that was read: ``run.sql('SELECT ...')``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from traceparse.bridge.sql.database import answer, check, database
from traceparse.bridge.sql.statement import Statement, statement_of
from traceparse.errors import UsageError
from traceparse.report_tables import REPORT_TABLES
from traceparse.run import Report, Run
from traceparse.run.tabled import tables_of
from traceparse.tables import TABLES, ArrowTable, schema_of

__all__ = ["EXTRAS", "answer_of", "query", "require_sound"]

EXTRAS: Final = ("python_functions", "counters")  # tables that are read when asked for


def query(run: Run, text: str) -> ArrowTable:
    """Return what a query finds in the tables of a run and of its report.

    Raises
    ------
    UsageError
        The query cannot run, or names a table that was not read.
    MissingExtraError
        DuckDB is not installed.
    """
    statement = statement_of(text)
    for name in EXTRAS:
        if name in statement.names and name not in run.tables:
            raise UsageError(
                f"SQL: {name} was not read; read it with traceparse.read(..., "
                f"extras=[{name!r}])"
            )
    return answer_of(statement, run.tables, run.report)


def require_sound(statement: Statement) -> None:
    """Refuse a query that names what no table has, before any trace is read for it.

    Raises
    ------
    UsageError
        DuckDB cannot plan it.
    """
    with database(_filled({}), _filled_report({}), threads=1) as connection:
        check(connection, statement.body)


def answer_of(
    statement: Statement,
    tables: Mapping[str, ArrowTable],
    report: Report,
    *,
    threads: int | None = None,
) -> ArrowTable:
    """Run a statement on tables; those that it does not name are there, and have no rows."""
    wants_report = any(name in REPORT_TABLES for name in statement.names)
    of_report = _filled_report(tables_of(report) if wants_report else {})
    with database(_filled(tables), of_report, threads=threads) as connection:
        return answer(connection, statement.text)


def _filled(tables: Mapping[str, ArrowTable]) -> dict[str, ArrowTable]:
    return {
        name: tables[name] if name in tables else schema_of(name).empty_table()
        for name in TABLES
    }


def _filled_report(tables: Mapping[str, ArrowTable]) -> dict[str, ArrowTable]:
    return {
        name: tables[name] if name in tables else table.schema().empty_table()
        for name, table in REPORT_TABLES.items()
    }
