"""Reduce the digests of a job once, in a process of its own: what ``bench.py reduce`` times.

``python tools/bench_reduce_child.py FOLDER RANKS RESULT`` reads digests as ``simulate.py mesh``
has kept them, makes the report and renders it, checks it against ``truth.json``, and writes
what all of it took to the file RESULT.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_child import peak_rss_bytes  # noqa: E402

__all__ = ["PARTS", "differences", "main", "reduce"]

# what is timed of making the report, by the module that calls it and its name there
PARTS: Mapping[str, tuple[str, str]] = {
    "gather": ("traceparse.run.across", "gather_calls"),
    "match": ("traceparse.run.across", "match"),
    "instances": ("traceparse.run.across", "instances_of"),
    "clock": ("traceparse.run.across", "align"),
    "across": ("traceparse.run.assemble", "across"),
    "stragglers": ("traceparse.run.measure", "stragglers"),
    "graph": ("traceparse.run.what_if", "replay_of"),
    "what_if": ("traceparse.run.measure", "what_if"),
    "measure": ("traceparse.run.assemble", "measure"),
    "top_kernels": ("traceparse.run.assemble", "top_kernels"),
    "findings": ("traceparse.run.assemble", "_judged"),
}
_KINDS = {"1": "mesh_tp", "3": "mesh_dp", None: "send/recv"}


class _Clock:
    """Seconds of the processor by what took them."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextmanager
    def time(self, name: str) -> Iterator[None]:
        begun = time.process_time()  # of what else the machine does, nothing is in it
        yield
        spent = time.process_time() - begun
        self.spent[f"{name}_s"] = self.spent.get(f"{name}_s", 0.0) + spent

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - whatever it is given
            with self.time(name):
                return function(*args, **kwargs)

        return call


def reduce(folder: Path, ranks: int) -> dict[str, float]:
    """Reduce the digests of a folder, and return seconds and bytes by what they are of.

    Raises
    ------
    ValueError
        The report is not true.
    """
    clock = _Clock()
    with clock.time("import"):
        cache_of = import_module("traceparse.engine.cache").Cache
        path_of = import_module("tools.simulate").digest_path
        assemble = import_module("traceparse.run.assemble").assemble
        for name, (module, attribute) in PARTS.items():
            home = import_module(module)
            setattr(home, attribute, clock.timed(name, getattr(home, attribute)))
    cache = cache_of(folder)
    with clock.time("load"):
        digests = [
            one
            for rank in range(ranks)
            for one in cache.get(path_of(folder, rank), Path(f"rank{rank}_trace.json")) or ()
        ]
    loaded = peak_rss_bytes()
    with clock.time("assemble"):
        report = assemble(digests)
    reduced = peak_rss_bytes()
    wrong = differences(json.loads((folder / "truth.json").read_text()), report)
    if wrong:
        raise ValueError(wrong[0])
    del digests
    return {
        **clock.spent,
        "loaded_rss_bytes": loaded,
        "reduced_rss_bytes": reduced,
        "calls": sum(row["count"] * row["group_size"] for row in report.collectives),
        **_rendered(report),
    }


def _rendered(report: Any) -> dict[str, float]:  # noqa: ANN401 - a report
    """Render a report in all ways, and say how long it took and how large each is."""
    clock = _Clock()
    sizes: dict[str, float] = {}
    console_of = import_module("rich.console").Console
    terminal = import_module("traceparse.report.terminal")

    def screen() -> str:
        file = io.StringIO()
        terminal.render(report, console_of(file=file, width=100))
        return file.getvalue()

    renderers: dict[str, Callable[[], str]] = {
        "terminal": screen,
        "html": lambda: import_module("traceparse.report.html").render(report),
        "json": lambda: import_module("traceparse.report.json_text").render(report),
    }
    for name, render in renderers.items():
        with clock.time(name), tempfile.TemporaryFile() as file:
            sizes[f"{name}_bytes"] = file.write(render().encode())
    return {**clock.spent, **sizes}


def differences(truth: Mapping[str, Any], report: Any) -> list[str]:  # noqa: ANN401 - a report
    """Say what of a report is not the truth of a mesh."""
    wrong = []
    if report.clock["offsets_ns"] != truth["offsets_ns"]:
        wrong.append("clocks are not found")
    found: dict[str, dict[str, int]] = {}
    for row in report.collectives:
        sums = found.setdefault(
            _KINDS.get(row["process_group"], "?"), {"count": 0, "transfer_ns": 0}
        )
        for name in sums:
            sums[name] += row[name] or 0
    if found != truth["collectives"]:
        wrong.append(f"collectives are {found} instead of {truth['collectives']}")
    straggler = truth["straggler"]
    title = f"rank {straggler['rank']} is waited for: {straggler['cause']}"
    blamed = [one["title"] for one in report.findings if one["code"] == "straggler"]
    # of two copies, one is last as often as the other by chance
    if blamed != [title] and len(truth["copies"]) > 2:
        wrong.append(f"stragglers are {blamed} instead of {title!r}")
    return wrong


def main(arguments: list[str]) -> int:
    """Reduce what the arguments name and return the exit status."""
    folder, ranks, answer = arguments
    try:
        found = reduce(Path(folder), int(ranks))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    Path(answer).write_text(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
