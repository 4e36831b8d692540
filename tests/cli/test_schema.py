from __future__ import annotations

from typer.testing import CliRunner

from traceparse.cli import app
from traceparse.tables import TABLES


def test_every_table_and_column_is_shown():
    shown = CliRunner().invoke(app, ["schema"]).stdout
    blocks = {block.partition(":")[0]: block for block in shown.split("\n\n")}
    assert list(blocks) == list(TABLES)
    for table in TABLES.values():
        for column in table.columns:
            (line,) = [
                line
                for line in blocks[table.name].splitlines()
                if line.split()[0] == column.name
            ]
            assert line.endswith(column.meaning)
            assert f" {column.unit} " in line
