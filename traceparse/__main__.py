"""``python -m traceparse``."""

from __future__ import annotations

from traceparse.cli import main

if __name__ == "__main__":
    main()
