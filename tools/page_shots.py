"""Screenshots of the page for whoever looks at it, and how large and how fast it is.

``python tools/page_shots.py DIR`` renders the demo's ranks, ``param-dlrm`` where its traces
are, 64 simulated ranks of which one is slow, and 512; opens each page in Chromium in light and
dark, as paper, and in a narrow window; and prints size, first paint and when charts are drawn.
``python tools/page_shots.py --readme`` renews the pictures of the README, of eight ranks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import traceparse  # noqa: E402
from tools.bench_facts import shared_traces  # noqa: E402
from tools.page_browser import chromium, opened, ready  # noqa: E402
from tools.simulate import simulate  # noqa: E402
from traceparse.report import html  # noqa: E402
from traceparse.report.charts import charts_of, to_png  # noqa: E402
from traceparse.run import Report, write_whole  # noqa: E402

__all__ = ["main", "show"]

_WIDE: Final = {"width": 1280, "height": 900}
_NARROW: Final = {"width": 400, "height": 800}
_README: Final = {"width": 1180, "height": 1000}
_PAPER: Final = {"width": 700, "height": 990}
_TIMES: Final = """
() => ({
  paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
  ready: performance.getEntriesByName("traceparse-ready")[0].startTime,
})
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """One page: its size, and when it was first painted and all drawn, in ms; the medians."""

    name: str
    size_bytes: int
    paint_ms: float
    ready_ms: float


def reports(wanted: Sequence[str]) -> Iterator[tuple[str, Report]]:
    """Yield the reports that are wanted, by name; all if none is named."""
    for name, make in MADE.items():
        if not wanted or name in wanted:
            report = make()
            if report is None:
                print(f"{name}: no traces in {shared_traces()}")
            else:
                yield name, report


def _demo() -> Report:
    return traceparse.analyze(ROOT / "fixtures" / "gloo-2rank")


def _dlrm() -> Report | None:
    folder = shared_traces() / "param-dlrm"
    return traceparse.analyze(folder, price=2.0) if folder.is_dir() else None


def _straggler() -> Report:
    return _simulated("straggler_compute", 64)


def _large() -> Report:
    return _simulated("straggler_link", 512, layers=2)


def _simulated(scenario: str, ranks: int, *, layers: int | None = None) -> Report:
    job = simulate(scenario, ranks=ranks, seed=1, layers=layers, with_truth=False)
    with tempfile.TemporaryDirectory() as folder:
        job.place(Path(folder))
        return traceparse.analyze(folder, accelerator="h100-sxm", price=2.5)


MADE: Final = {
    "demo": _demo,
    "param-dlrm": _dlrm,
    "straggler-64": _straggler,
    "ranks-512": _large,
}


def measure(browser: Any, name: str, path: Path, times: int) -> Measured:  # noqa: ANN401 - Playwright's
    """Open the page so many times, each in a context without anything cached."""
    found = []
    for _ in range(times):
        with opened(browser, path, viewport=_WIDE) as (page, seen):
            ready(page)
            found.append(page.evaluate(_TIMES))
            if said := seen.anything(page):
                raise RuntimeError(f"{path}: {said[0]}")
    paint, drawn = (sorted(one[key] for one in found)[times // 2] for key in ("paint", "ready"))
    return Measured(name, path.stat().st_size, paint, drawn)


def shoot(browser: Any, path: Path) -> None:  # noqa: ANN401 - Playwright's
    """Write the screenshots beside the page: the top of it, and all of it."""
    for kind, settings in (
        ("light", {"viewport": _WIDE}),
        ("dark", {"viewport": _WIDE, "color_scheme": "dark"}),
        ("narrow", {"viewport": _NARROW}),
        ("print", {"viewport": _PAPER}),
    ):
        with opened(browser, path, **settings) as (page, _):
            ready(page)
            if kind == "print":
                page.pdf(path=path.with_suffix(".pdf"))
                page.emulate_media(media="print")
            page.screenshot(path=path.with_name(f"{path.stem}-{kind}-top.png"))
            page.screenshot(path=path.with_name(f"{path.stem}-{kind}.png"), full_page=True)


def show(browser: Any, folder: Path, names: Sequence[str], *, times: int) -> None:  # noqa: ANN401 - as above
    """Make pages and screenshots, and print the table of sizes and times."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name, report in reports(names):
        path = folder.resolve() / f"{name}.html"
        path.write_text(html.render(report), encoding="utf-8")
        shoot(browser, path)
        rows.append(measure(browser, name, path, times))
    print(f"{'page':<14}{'size, MB':>10}{'first paint, ms':>18}{'charts drawn, ms':>18}")
    for row in rows:
        megabytes = row.size_bytes / 1e6
        print(f"{row.name:<14}{megabytes:>10.2f}{row.paint_ms:>18.0f}{row.ready_ms:>18.0f}")


def picture(browser: Any, folder: Path) -> None:  # noqa: ANN401 - as above
    """Write the pictures of the README: the top of a page, and the waterfall."""
    report = _simulated("straggler_compute", 8)
    (waterfall,) = (chart for chart in charts_of(report) if chart.key == "waterfall")
    write_whole(folder / "waterfall.png", to_png(waterfall))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "page.html")
        path.write_text(html.render(report), encoding="utf-8")
        with opened(browser, path, viewport=_README) as (page, _):
            ready(page)
            write_whole(folder / "page.png", page.screenshot())


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a browser for it."""
    parser = argparse.ArgumentParser(prog="page_shots.py", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where pages and screenshots go")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MADE)}")
    parser.add_argument("--times", type=int, default=5, help="measure so many times")
    parser.add_argument("--readme", action="store_true", help="renew the README's pictures")
    asked = parser.parse_args(arguments)
    if asked.readme == (asked.folder is not None):
        parser.error("give a folder, or --readme")
    if unknown := set(asked.names) - set(MADE):
        parser.error(f"no page is called {', '.join(sorted(unknown))}")
    with chromium() as browser:
        if asked.readme:
            picture(browser, ROOT / "traceparse" / "docs")
            return 0
        show(browser, asked.folder, asked.names, times=asked.times)
    return 0


if __name__ == "__main__":
    sys.exit(main())
