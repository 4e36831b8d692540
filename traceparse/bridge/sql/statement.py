"""What a query says before anything is read: whether it may run, and which tables it names.

DuckDB's own parser tells, as a tree: one statement that selects, and of the functions that
make tables only those that make them of nothing but their arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from traceparse.bridge.sql.database import bare, refused
from traceparse.errors import UsageError

__all__ = ["Statement", "statement_of"]

# of DuckDB's functions that make tables, those that read no file and run no other statement
_FUNCTIONS: Final = frozenset(
    {
        *("duckdb_columns", "duckdb_functions", "duckdb_tables", "duckdb_types"),
        *("generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row"),
        "unnest",
    }
)
_EXPLAIN: Final = re.compile(r"\s*explain\s+(?:analyze\s+)?(?:\([^()]*\)\s*)?", re.IGNORECASE)
_ONE: Final = "one SELECT, WITH, FROM, SHOW, DESCRIBE, SUMMARIZE or EXPLAIN"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement that may run: its text, what it selects, and the tables it names.

    ``body`` is the text without ``EXPLAIN``. ``names`` are in small letters, and may be of
    tables that the query itself defines.
    """

    text: str
    body: str
    names: frozenset[str]


def statement_of(text: str) -> Statement:
    """Read a query.

    Raises
    ------
    UsageError
        It is no SQL, not one statement, or one that does more than select from the tables.
    MissingExtraError
        DuckDB is not installed.
    """
    body = _EXPLAIN.sub("", text, count=1) if _EXPLAIN.match(text) else text
    tree = _tree(body)
    if tree.get("error"):
        if tree.get("error_type") == "parser":
            raise UsageError(f"SQL: {tree.get('error_message')}")
        raise UsageError(f"SQL: only {_ONE} statement can run: the tables can be read only")
    if len(tree["statements"]) != 1:
        raise UsageError(f"SQL: give {_ONE} statement; there are {len(tree['statements'])}")
    nodes = list(_nodes(tree))
    _require_harmless(nodes)
    return Statement(text, body, frozenset(_names(nodes)))


def _tree(text: str) -> dict[str, Any]:
    with bare() as connection, refused():
        (found,) = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()[0]
    try:
        tree: dict[str, Any] = json.loads(found)
    except RecursionError:
        raise UsageError("SQL: the query is nested too deeply") from None
    return tree


def _nodes(tree: object) -> Iterator[Mapping[str, Any]]:
    """Yield all that a tree has of names and values, in any depth."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _require_harmless(nodes: list[Mapping[str, Any]]) -> None:
    for node in nodes:
        if node.get("type") != "TABLE_FUNCTION":
            continue
        name = str(node["function"].get("function_name", "")).lower()
        if name not in _FUNCTIONS:
            raise UsageError(
                f"SQL: {name}() cannot be used: a query reads the tables of the run, and no "
                f"file, network or other statement"
            )


def _names(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    for node in nodes:
        name = str(node.get("table_name", "")).strip('"').lower()
        if name and node.get("type") in {"BASE_TABLE", "SHOW_REF"}:
            yield name
