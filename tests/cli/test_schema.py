from __future__ import annotations

from typer.testing import CliRunner

from traceparse.cli import app
from traceparse.report_tables import REPORT_TABLES
from traceparse.tables import TABLES


def test_every_table_and_column_is_shown():
    shown = CliRunner().invoke(app, ["schema"]).stdout
    blocks = {block.partition(":")[0]: block for block in shown.split("\n\n")}
    files = {f"tables/{name}.parquet": table for name, table in REPORT_TABLES.items()}
    *tables, last = blocks
    assert tables == [*TABLES, *files]
    assert last.startswith("In SQL (`traceparse sql`), tables of a run have these names")
    for name, table in {**TABLES, **files}.items():
        for column in table.columns:
            (line,) = [
                line for line in blocks[name].splitlines() if line.split()[0] == column.name
            ]
            assert line.endswith(column.meaning)
            assert f" {column.unit} " in line
