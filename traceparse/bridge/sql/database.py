"""DuckDB with tables in it, and locked: no file, no network, no other statement, no setting.

The tables of a run stand in it by their names; those of its report in the schema ``report``,
which also need not be named where no table of the run is called the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from traceparse.errors import MissingExtraError, TraceparseError, UsageError, one_line
from traceparse.tables import ArrowTable
from traceparse.units import format_bytes

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["answer", "bare", "check", "database", "refused"]

_CONFIG: Final = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # no variable of Python's is a table
    "temp_directory": "",
}
_SHARE = 2  # of memory, one part in so many
_UNKNOWN_MEMORY = 2 << 30
_PATIENCE_S = 0.05
_WHOLE = pa.decimal128(38, 0)  # what DuckDB adds int64 up in


@contextmanager
def bare(*, threads: int = 1) -> Iterator[DuckDBPyConnection]:
    """Open DuckDB without tables, which reads and installs nothing of its own accord.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    try:
        import duckdb  # noqa: PLC0415 - of an extra
    except ImportError:
        raise MissingExtraError("SQL needs DuckDB: pip install 'traceparse[sql]'") from None
    config: dict[str, Any] = {
        **_CONFIG,
        "threads": str(min(threads, os.cpu_count() or 1)),
        "memory_limit": f"{_limit_bytes() // 1_000_000}MB",
    }
    with duckdb.connect(":memory:", config=config) as connection:
        yield connection


@contextmanager
def database(
    tables: Mapping[str, ArrowTable],
    report_tables: Mapping[str, ArrowTable],
    *,
    threads: int | None = None,
) -> Iterator[DuckDBPyConnection]:
    """Open DuckDB on tables of a run and of its report, and lock it.

    Raises
    ------
    MissingExtraError
        It is not installed.
    """
    with bare(threads=threads or os.cpu_count() or 1) as connection:
        for name, table in tables.items():
            connection.register(name, table)
        connection.execute("CREATE SCHEMA report")
        for name, table in report_tables.items():
            connection.register("_filled", table)
            connection.execute(f'CREATE TABLE report."{name}" AS SELECT * FROM _filled')  # noqa: S608 - a name of our own
            connection.unregister("_filled")
        connection.execute("SET search_path = 'main,report'")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        yield connection


def check(connection: DuckDBPyConnection, body: str) -> None:
    """Have DuckDB plan what is selected, which finds names that are none, without running it.

    Raises
    ------
    UsageError
        It cannot be planned.
    """
    with refused():
        connection.execute(f"EXPLAIN {body}").fetchall()


def answer(connection: DuckDBPyConnection, text: str) -> ArrowTable:
    """Run a query, and return its rows; columns are named apart, sums are int64 where they fit.

    Raises
    ------
    UsageError
        DuckDB refuses it.
    TraceparseError
        It takes more memory than it may.
    """
    with refused():
        found = _interruptible(connection, lambda: connection.sql(text).to_arrow_table())
    columns = [_narrowed(column) for column in found.columns]
    return pa.table(columns, names=_apart(found.column_names))


@contextmanager
def refused() -> Iterator[None]:
    """Make one line of what DuckDB says no to."""
    import duckdb  # noqa: PLC0415 - of an extra

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        limit = format_bytes(_limit_bytes())
        raise TraceparseError(
            f"SQL: the query takes more memory than the {limit} that it may, a part of this "
            f"machine's; aggregate, or select fewer rows"
        ) from error
    except duckdb.InternalException as error:
        raise TraceparseError(f"SQL: DuckDB failed: {_condensed(error)}") from error
    except duckdb.Error as error:
        raise UsageError(f"SQL: {_condensed(error)}") from error


def _interruptible(
    connection: DuckDBPyConnection, work: Callable[[], ArrowTable]
) -> ArrowTable:
    """Do it in another thread: what a signal raises in this one, DuckDB would swallow."""
    result: Future[ArrowTable] = Future()
    is_given_up = Event()

    def run() -> None:
        if is_given_up.is_set():
            return
        try:
            result.set_result(work())
        except Exception as error:  # noqa: BLE001 - raised where it is asked for
            result.set_exception(error)

    thread = Thread(target=run, name="traceparse-sql", daemon=True)
    try:
        thread.start()
        return result.result()
    except BaseException:
        is_given_up.set()
        while thread.is_alive():  # what is not begun yet, cannot be interrupted
            connection.interrupt()
            thread.join(_PATIENCE_S)
        raise


def _condensed(error: Exception) -> str:
    """Keep what is wrong and what may have been meant; leave out the query and where in it."""
    text, _, _ = str(error).partition("\n\nLINE ")
    return one_line(ValueError(text.partition("Error: ")[2] or text))


def _narrowed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type != _WHOLE:
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond 64 bits: exact all the same
        return column


def _apart(names: list[str]) -> list[str]:
    """Give names that are there before a number: ``name``, ``name_2``."""
    taken: dict[str, None] = {}
    for name in names:
        number, free = 1, name
        while free in taken:
            number += 1
            free = f"{name}_{number}"
        taken[free] = None
    return list(taken)


def _limit_bytes() -> int:
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not on every system
        return _UNKNOWN_MEMORY
    return there // _SHARE
