"""SQL over the tables of a run: DuckDB on Arrow, and nothing else is read."""

from __future__ import annotations

from traceparse.bridge.sql.asked import Answer, select
from traceparse.bridge.sql.query import query
from traceparse.bridge.sql.statement import Statement, statement_of

__all__ = ["Answer", "Statement", "query", "select", "statement_of"]
