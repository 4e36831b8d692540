"""``traceparse sql``: what is printed, what is written, what is refused."""

from __future__ import annotations

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

from tests.traces import write_rank

KINDS = "SELECT kind, sum(dur_ns) AS ns FROM kernels GROUP BY kind ORDER BY kind"
ROWS = [{"kind": "comm", "ns": 8000}, {"kind": "compute", "ns": 12_000}]


@pytest.fixture
def sql(run):
    return lambda *words: run(*words, "--no-cache")


@pytest.fixture
def traces(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(2):
        write_rank(folder, rank, 3)
    return folder


def test_a_table_is_printed_and_notes_are_apart(sql, traces):
    status, printed, said = sql(traces, KINDS)
    assert status == 0
    assert [line.rstrip() for line in printed.splitlines()] == [
        "kind       ns",
        "comm     8000",
        "compute 12000",
    ]
    assert "missing_ranks: rank 2 missing" in said
    assert sql(traces, KINDS, "--quiet") == (0, printed, "")


def test_several_paths_and_then_the_query(sql, traces):
    paths = sorted(traces.iterdir())
    status, printed, _ = sql(*paths, "SELECT count(*) AS n FROM files", "--json")
    assert (status, json.loads(printed)) == (0, [{"n": 2}])


def test_json_and_csv_are_printed(sql, traces):
    for words in (["--json"], ["--format", "json"]):
        assert json.loads(sql(traces, KINDS, *words)[1]) == ROWS
    printed = sql(traces, KINDS, "--format", "csv")[1]
    assert list(csv.DictReader(io.StringIO(printed))) == [
        {name: str(value) for name, value in row.items()} for row in ROWS
    ]


@pytest.mark.parametrize("words", [["rows.parquet"], ["rows", "--format", "parquet"]])
def test_parquet_is_written(sql, traces, tmp_path, words):
    out = tmp_path / "made" / words[0]
    status, printed, said = sql(traces, KINDS, "--out", out, *words[1:])
    assert (status, printed) == (0, "")
    assert said.endswith(f"wrote {out}\n")
    assert pq.read_table(out).to_pylist() == ROWS
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_the_name_of_a_file_tells_its_format(sql, traces, tmp_path):
    assert sql(traces, KINDS, "--out", tmp_path / "rows.json")[0] == 0
    assert json.loads((tmp_path / "rows.json").read_text()) == ROWS
    assert sql(traces, KINDS, "--out", tmp_path / "rows.csv")[0] == 0
    assert (tmp_path / "rows.csv").read_text() == "kind,ns\ncomm,8000\ncompute,12000\n"


def test_what_is_told_reaches_the_report(sql, traces):
    text = "SELECT accelerator FROM run"
    printed = sql(traces, text, "--accelerator", "h100-sxm", "--json")[1]
    assert json.loads(printed) == [{"accelerator": "h100-sxm"}]


def test_rows_are_limited(sql, traces):
    printed = sql(traces, "FROM range(100)")[1].splitlines()
    assert len(printed) == 42
    assert printed[-1].startswith("… 60 more rows")
    assert len(sql(traces, "FROM range(100)", "--rows", "0")[1].splitlines()) == 101


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{traces}"], "give the traces, then the query: traceparse sql traces/ 'SELECT ...'"),
        (["{traces}", "SELEC"], 'SQL: syntax error at or near "SELEC"'),
        (["SELECT 1", "{traces}"], 'SQL: syntax error at or near "/"'),
        (["{traces}", "SELECT 1; SELECT 2"], "SQL: give one SELECT, WITH, FROM, SHOW,"),
        (["{traces}", "COPY (SELECT 1) TO 'x'"], "SQL: only one SELECT, WITH, FROM, SHOW,"),
        (["{traces}", "SELECT x FROM ops"], 'SQL: Referenced column "x" not found'),
        (["{traces}", "SELECT 1", "--format", "xml"], "--format 'xml': give one of table, csv"),
        (["{traces}", "SELECT 1", "--format", "parquet"], "--format parquet needs a file"),
        (["{traces}", "SELECT 1", "--json", "--format", "csv"], "--json and --format csv"),
        (["{traces}", "SELECT 1", "--out", "x.txt"], "--out x.txt: say which of csv, json,"),
        (["{traces}", "SELECT 1", "--out", "x", "--format", "table"], "--out x: say which of"),
    ],
)
def test_wrong_words_are_status_2_and_a_line(sql, traces, words, said):
    status, printed, errors = sql(*(word.format(traces=traces) for word in words))
    assert (status, printed, errors.count("\n")) == (2, "", 1)
    assert errors.startswith(f"traceparse: {said}")


def test_bad_input_is_status_1(sql, tmp_path):
    gone = tmp_path / "gone"
    assert sql(gone, "SELECT 1") == (
        1,
        "",
        f"traceparse: {gone}: no such file or folder; check the path\n",
    )


def test_what_cannot_be_written_is_status_1(sql, traces):
    status, _, said = sql(traces, KINDS, "--out", traces / "rank0.json" / "x.csv")
    assert status == 1
    assert "cannot be written to" in said
    assert said.count("\n") == 1
