"""Where the stored traces are."""

from __future__ import annotations

import os
from pathlib import Path

from tools.bench_facts import shared_traces

ROOT = Path(__file__).resolve().parents[2]
HAND = ROOT / "fixtures" / "hand"
GLOO = ROOT / "fixtures" / "gloo-2rank"
SHARED = shared_traces()
ROWS = Path(
    os.environ.get(
        "TRACEPARSE_SHARED_ROWS", ROOT.parent / "shared" / "data" / "published_rows.json"
    )
)

_ENDINGS = (".json", ".json.gz", ".json.zst", ".tmp", ".bin")
STORED = sorted(p for p in (ROOT / "fixtures").rglob("*") if p.name.endswith(_ENDINGS))
PUBLIC = sorted(SHARED.rglob("*.json.gz"))
