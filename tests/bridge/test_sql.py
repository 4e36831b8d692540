"""SQL on a run: what its tables say, and nothing that is not in them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.traces import all_reduce, job, kernel, launch, op, span, step, write
from traceparse.bridge.sql import database as of_database
from traceparse.bridge.sql import query, select, statement_of
from traceparse.engine import analyze, read
from traceparse.errors import MissingExtraError, TraceparseError, UsageError
from traceparse.report_tables import REPORT_TABLES
from traceparse.run.tabled import tables_of
from traceparse.tables import TABLES

ONE = "one SELECT, WITH, FROM, SHOW, DESCRIBE, SUMMARIZE or EXPLAIN"


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Two ranks of two steps, with a collective, Python's calls and a counter."""
    folder = tmp_path_factory.mktemp("traces")
    for rank in range(2):
        events = [
            *(step(1, 10, 90), op(12, 20), launch(15, correlation=1)),
            *(kernel(20, 40, correlation=1), step(2, 100, 90), launch(105, correlation=2)),
            *(all_reduce(110, 40 + rank, correlation=2), kernel(160, 7, "=1+1")),
            span("python_function", "f", 11, 3),
            {"ph": "C", "name": "memory", "pid": 1, "ts": 12, "args": {"used": 3}},
        ]
        write(folder / f"rank{rank}.json", events, distributedInfo=job(rank, 2))
    return folder


@pytest.fixture(scope="module")
def run(traces):
    return read(traces, extras=["python_functions", "counters"])


def test_every_table_of_the_schema_can_be_asked_by_its_name(run):
    of_report = tables_of(run.report)
    for name in TABLES:
        found = query(run, f"SELECT * FROM {name}")
        assert found.column_names == run.tables[name].column_names
        assert plain(found) == plain(run.tables[name]), name
    for name in REPORT_TABLES:
        found = query(run, f"SELECT * FROM report.{name}")
        assert plain(found) == plain(of_report[name]), name
        if name not in TABLES:
            assert query(run, f"SELECT * FROM {name}") == found


def plain(table):
    """Return rows; a dictionary's texts are texts."""
    return table.to_pylist()


def test_where_two_tables_are_called_the_same_the_run_s_is_meant(run):
    assert "transfer_ns" not in query(run, "FROM collectives").column_names
    assert "transfer_ns" in query(run, "FROM report.collectives").column_names


def test_sums_of_times_are_exact_whole_numbers(run):
    found = query(run, "SELECT sum(dur_ns) AS s, max(end_ns) AS m FROM kernels")
    kernels = run.tables["kernels"]
    last_ns = pc.max(kernels["end_ns"]).as_py()
    assert last_ns > 1 << 53
    assert found.to_pylist() == [{"s": sum(kernels["dur_ns"].to_pylist()), "m": last_ns}]
    assert found.schema.types == [pa.int64(), pa.int64()]


def test_sums_beyond_64_bits_are_exact_too(run):
    found = query(run, "SELECT sum(start_ns) AS s FROM kernels")
    exact = sum(run.tables["kernels"]["start_ns"].to_pylist())
    assert exact >= 1 << 63
    assert int(found["s"][0].as_py()) == exact


def test_columns_of_one_name_are_told_apart(run):
    found = query(run, "SELECT rank, rank, rank AS rank_2 FROM kernels LIMIT 1")
    assert found.column_names == ["rank", "rank_2", "rank_2_2"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT 1", set()),
        ("SELECT * FROM Kernels k JOIN report.steps s USING (step)", {"kernels", "steps"}),
        ('FROM ops WHERE name IN (SELECT name FROM "annotations")', {"ops", "annotations"}),
        ("WITH a AS (FROM launches) FROM a", {"a", "launches"}),
        ("DESCRIBE kernels", {"kernels"}),
        ("SHOW kernels", {"kernels"}),
        ("EXPLAIN SELECT * FROM ops", {"ops"}),
        ("explain analyze from ops;", {"ops"}),
        ("EXPLAIN (FORMAT json) FROM ops", {"ops"}),
        ("SUMMARIZE notes", {"notes"}),
        ("SELECT (SELECT max(rank) FROM files)", {"files"}),
    ],
)
def test_a_statement_names_its_tables(text, names):
    assert statement_of(text).names == names


@pytest.mark.parametrize(
    "text",
    [
        "SHOW TABLES",
        "DESCRIBE kernels",
        "SUMMARIZE kernels",
        "EXPLAIN FROM kernels",
        "EXPLAIN ANALYZE FROM kernels",
        "FROM range(3)",
        "FROM kernels SELECT unnest([1, 2])",
        "SELECT * FROM (PIVOT kernels ON rank IN (0, 1) USING sum(dur_ns) GROUP BY name)",
        "SELECT table_name FROM information_schema.tables",
        "SELECT getvariable('x')",
    ],
)
def test_what_only_reads_the_tables_runs(run, text):
    assert query(run, text).num_columns


REFUSED = {
    "SELECT * FROM read_csv('/etc/passwd')": "read_csv() cannot be used: a query reads the "
    "tables of the run, and no file, network or other statement",
    "SELECT * FROM read_text('/etc/passwd')": "read_text() cannot be used",
    "SELECT * FROM glob('/etc/*')": "glob() cannot be used",
    "SELECT * FROM query('SELECT 1')": "query() cannot be used",
    "SELECT * FROM query_table('kernels')": "query_table() cannot be used",
    "SELECT * FROM arrow_scan(1, 2, 3)": "arrow_scan() cannot be used",
    "SELECT * FROM duckdb_secrets()": "duckdb_secrets() cannot be used",
    "SELECT * FROM duckdb_settings()": "duckdb_settings() cannot be used",
    "SELECT * FROM '/etc/passwd'": "Table with name /etc/passwd does not exist!",
    "SELECT * FROM 'https://example.com/x.parquet'": "Cannot access file "
    '"https://example.com/x.parquet" - file system operations are disabled',
    "SELECT getenv('HOME')": "Scalar Function with name getenv does not exist!",
    "COPY (SELECT 1) TO '{out}'": f"only {ONE} statement can run: the tables can be read only",
    "COPY kernels FROM '/etc/passwd'": f"only {ONE}",
    "EXPORT DATABASE '{out}'": f"only {ONE}",
    "ATTACH '{out}' AS other": f"only {ONE}",
    "INSTALL httpfs": f"only {ONE}",
    "LOAD httpfs": f"only {ONE}",
    "SET threads = 3": f"only {ONE}",
    "SET enable_external_access = true": f"only {ONE}",
    "PRAGMA version": f"only {ONE}",
    "CALL pragma_version()": f"only {ONE}",
    "CREATE TABLE x AS SELECT 1": f"only {ONE}",
    "DROP VIEW kernels": f"only {ONE}",
    "DELETE FROM report.steps": f"only {ONE}",
    "EXPLAIN COPY (SELECT 1) TO '{out}'": f"only {ONE}",
    "EXPLAIN ANALYZE DELETE FROM report.steps": f"only {ONE}",
    "WITH x AS (INSERT INTO report.notes FROM report.notes RETURNING 1) FROM x": "Cannot write",
    "SELECT 1; SELECT 2": f"give {ONE} statement; there are 2",
    "SELECT 1; COPY (SELECT 1) TO '{out}'": f"only {ONE}",
    "": f"give {ONE} statement; there are 0",
    "-- nothing": f"give {ONE} statement; there are 0",
    "SELEC 1": 'syntax error at or near "SELEC"',
    "SELECT nam FROM kernels": 'Referenced column "nam" not found in FROM clause! Candidate '
    'bindings: "name"',
    "FROM kernel": 'Table with name kernel does not exist! Did you mean "kernels"?',
    "SELECT name::INT FROM kernels": "Could not convert string 'gemm' to INT32",
    "SELECT $1": "Values were not provided for the following parameters: 1",
    "FROM local": "Table with name local does not exist!",
}


@pytest.mark.parametrize("text", REFUSED)
def test_all_else_is_refused_in_a_line(run, tmp_path, text):
    local = pa.table({"secret": [1]})
    out = tmp_path / "out"
    with pytest.raises(UsageError) as caught:
        query(run, text.format(out=out))
    said = str(caught.value)
    assert said.startswith(f"SQL: {REFUSED[text]}")
    assert "\n" not in said
    assert not out.exists()
    assert local.num_rows


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_blob('/dev/stdin')",
        "COPY (SELECT 1) TO '{out}'",
        "ATTACH '{out}' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 3",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "FROM local",
        "CREATE TABLE report.x AS SELECT 1",
        "INSERT INTO report.notes FROM report.notes",
    ],
)
def test_the_database_alone_refuses_it_as_well(tmp_path, text):
    """The second wall: if a statement got past its check, DuckDB is locked all the same."""
    local = pa.table({"secret": [1]})
    out = tmp_path / "out"
    tables = {"notes": local}
    with (
        of_database.database(tables, tables, threads=1) as connection,
        pytest.raises(UsageError, match="SQL: "),
    ):
        of_database.answer(connection, text.format(out=out))
    assert not out.exists()


def test_a_table_that_was_not_read_is_not_taken_for_an_empty_one(traces):
    with pytest.raises(UsageError, match=r"counters was not read; read it with traceparse\."):
        query(read(traces), "SELECT * FROM counters")


def test_traces_are_read_for_what_a_query_names(traces, run, monkeypatch):
    # what was skipped of a file is said of what the report is made of
    others = read(traces)
    for name in TABLES:
        found = select(traces, f"SELECT * FROM {name}")
        same = others if name in {"files", "notes"} else run
        assert plain(found.table) == plain(same.tables[name]), name
        assert found.report == analyze(traces)
    monkeypatch.setattr("traceparse.bridge.sql.asked.read_traces", None)
    assert select(traces, "SELECT count(*) AS n FROM steps").table.to_pylist() == [{"n": 4}]
    with pytest.raises(TypeError):
        select(traces, "SELECT count(*) FROM kernels")


def test_what_is_told_of_a_job_is_in_its_report(traces):
    found = select(traces, "SELECT accelerator, world_size FROM run", accelerator="h100-sxm")
    assert found.table.to_pylist() == [{"accelerator": "h100-sxm", "world_size": 2}]
    one = select(traces, "SELECT DISTINCT step FROM steps", steps=[2]).table
    assert one.to_pylist() == [{"step": 2}]


def test_a_wrong_query_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(UsageError, match='Candidate bindings: "name"'):
        select(tmp_path / "absent", "SELECT nam FROM kernels")


def test_progress_is_told_of_both_readings(traces):
    begun, read_bytes, done = [], [], []

    class Told:
        def start(self, num_files, num_bytes):
            begun.append((num_files, num_bytes))

        def advance(self, num_bytes):
            read_bytes.append(num_bytes)

        def file_done(self):
            done.append(True)

    select(traces, "SELECT 1 FROM kernels", progress=Told())
    size = sum(path.stat().st_size for path in Path(traces).iterdir())
    assert begun == [(2, size), (2, size)]
    assert len(done) == 4
    assert sum(read_bytes) == 2 * size


def test_too_much_memory_is_a_line(monkeypatch):
    monkeypatch.setattr(of_database, "_limit_bytes", lambda: 64_000_000)
    with (
        of_database.database({}, {}, threads=1) as connection,
        pytest.raises(TraceparseError, match=r"takes more memory than the 64\.0 MB") as caught,
    ):
        of_database.answer(connection, "SELECT list(range) FROM range(100000000)")
    assert caught.value.exit_status == 1


def test_memory_is_bounded_where_the_system_does_not_tell_how_much_there_is(monkeypatch):
    def unknown(_):
        raise ValueError

    monkeypatch.setattr(os, "sysconf", unknown)
    with of_database.database({}, {}, threads=1) as connection:
        (row,) = of_database.answer(
            connection, "SELECT current_setting('memory_limit') AS limit"
        ).to_pylist()
    assert row == {"limit": "1.9 GiB"}  # 2,147 MB, cut


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"SELECT {'+'.join('1' * 5000)}", "Max expression depth limit of 1000 exceeded"),
        ("SELECT '\udcff'", "Python Conversion Failure: cannot encode"),
    ],
)
def test_odd_queries_are_refused_too(text, said):
    with pytest.raises(UsageError) as caught:
        statement_of(text)
    assert str(caught.value).startswith(f"SQL: {said}")


def test_a_tree_too_deep_for_python_is_refused_as_well(monkeypatch):
    def too_deep(_):
        raise RecursionError

    monkeypatch.setattr("traceparse.bridge.sql.statement.json.loads", too_deep)
    with pytest.raises(UsageError, match="the query is nested too deeply"):
        statement_of("SELECT 1")


def test_without_duckdb_one_line_says_what_to_install(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtraError, match=r"^SQL needs DuckDB: pip install 'trace"):
        query(run, "SELECT 1")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_an_endless_query(traces, number, status):
    endless = "SELECT sum(a.range * b.range) FROM range(1000000) a, range(1000000) b"
    code = (
        "import signal, sys, traceparse.bridge.sql.database as d\n"
        # a job of a shell's background ignores it, and so do its children
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run = d._interruptible\n"
        "def told(*words):\n"
        "    print('running', flush=True)\n"
        "    return run(*words)\n"
        "d._interruptible = told\n"
        "from traceparse.cli import main\n"
        f"sys.argv = ['traceparse', 'sql', {str(traces)!r}, {endless!r}, '-q', '--no-cache']\n"
        "main()"
    )
    ended = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    with ended:
        try:
            assert ended.stdout
            assert ended.stdout.readline() == "running\n"
            os.kill(ended.pid, number)
            assert ended.wait(timeout=120) == status
        finally:
            ended.kill()
