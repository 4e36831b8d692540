"""What came of all the files that were tried: counted by the child, added up by the parent."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Stats"]


@dataclass(slots=True)
class Stats:
    """How many files were tried, and what came of them.

    ``kinds`` counts results and refusals by class, ``escapes`` what escaped, by what and where;
    ``features`` is how many different things were seen to happen.
    """

    tried: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    escapes: Counter[str] = field(default_factory=Counter)
    features: int = 0
    slowest_s: float = 0.0
    peak_rss_bytes: int = 0

    def add(self, other: Stats) -> Stats:
        """Add what another process counted."""
        self.tried += other.tried
        self.kinds.update(other.kinds)
        self.escapes.update(other.escapes)
        self.features = max(self.features, other.features)
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.peak_rss_bytes = max(self.peak_rss_bytes, other.peak_rss_bytes)
        return self

    def write(self, path: Path) -> None:
        """Put the counts where the parent looks for them."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps({name: getattr(self, name) for name in self.__slots__}))
        temporary.replace(path)

    @classmethod
    def read(cls, path: Path) -> Stats:
        """Return what a process has written so far; zeros if it has not yet."""
        if not path.exists():
            return cls()
        found = json.loads(path.read_text())
        counters = {name: Counter(found[name]) for name in ("kinds", "escapes")}
        return cls(**{**found, **counters})

    def line(self, seconds: float) -> str:
        """Say how far it is, in one line."""
        results, rate = self.kinds["result"], self.tried / max(seconds, 1e-9)
        return (
            f"{seconds:.0f} s: {self.tried:,} mutations ({rate:.0f}/s), "
            f"{results:,} results, {self.kinds.total() - results:,} refusals, "
            f"{self.features:,} behaviors, {self.escapes.total():,} escapes, "
            f"peak {self.peak_rss_bytes / 1e6:.0f} MB, slowest {self.slowest_s:.2f} s"
        )

    def table(self) -> str:
        """Say what became of the files, a line for each kind."""
        lines = [f"  {kind:<16} {count:>10,}" for kind, count in self.kinds.most_common()]
        lines += [f"  ESCAPED {name}: {n:,} times" for name, n in self.escapes.most_common()]
        return "\n".join(lines)
