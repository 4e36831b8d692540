"""One run of ``traceparse analyze`` in a process of its own, and what it took.

``python tools/hostile_child.py PATH OUT RESULT`` analyzes PATH, writes all reports into OUT and
what it measured to RESULT.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_child import peak_rss_bytes  # noqa: E402
from traceparse.cli import app  # noqa: E402
from traceparse.errors import TraceparseError  # noqa: E402

__all__ = ["main", "measure"]

_MOST_ADDRESSES = 12 << 30  # a backstop, lest the machine suffers


def measure(path: str, out: str) -> dict[str, Any]:
    """Analyze a file as the command line does, and say how it ended, how long it took."""
    begun = time.perf_counter()
    status, message = 0, ""
    try:
        app(["analyze", path, "--out", out, "--jobs", "1", "--no-cache"], standalone_mode=False)
    except TraceparseError as error:
        status, message = error.exit_status, str(error)
    seconds = time.perf_counter() - begun
    return {
        "status": status,
        "message": message,
        "seconds": seconds,
        "peak_rss_bytes": peak_rss_bytes(),
    }


def main() -> None:
    """Measure what the arguments say."""
    path, out, result = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
    Path(result).write_text(json.dumps(measure(path, out)))


if __name__ == "__main__":
    main()
