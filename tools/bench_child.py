"""One engine, one trace file, once, in a process of its own: what tools/bench.py times.

``python tools/bench_child.py ENGINE PATH RESULT`` writes what it measured to the file RESULT.
Only the standard library is imported before the clock starts, and only by the engine after.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

__all__ = ["ENGINES", "Engine", "measure", "opener", "peak_rss_bytes"]

Load: TypeAlias = Callable[[], Any]
Counts: TypeAlias = dict[str, int]
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Engine(NamedTuple):
    """One way to load a trace.

    ``prepare`` imports what the engine needs and returns the call to be timed; ``counts``
    says what that call gave: ``rows`` kept, and ``events`` in the file where it knows.
    """

    title: str
    modules: tuple[str, ...]
    prepare: Callable[[str], Load]
    counts: Callable[[Any], Counts]


def _traceparse(path: str, extras: frozenset[str] = frozenset()) -> Load:
    import_module("pandas")  # Arrow imports it with its first array, unless it is spared
    ingest = import_module("traceparse.ingest")

    def load() -> tuple[Any, Any]:
        trace = ingest.read_trace(path, extras=extras)
        return trace, trace.tables

    return load


def _traceparse_core(path: str) -> Load:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return _traceparse(path)


def _traceparse_msgspec(path: str) -> Load:
    os.environ["TRACEPARSE_ENGINE"] = "msgspec"
    return _traceparse(path)


def _traceparse_all(path: str) -> Load:
    return _traceparse(path, import_module("traceparse.ingest.routes").EXTRAS)


def _tables(loaded: Any) -> Counts:  # noqa: ANN401 - mypy does not see through import_module
    trace, tables = loaded
    rows = sum(table.num_rows for table in tables.values())
    return {"rows": rows, "events": trace.health.events}


def _analyze(path: str) -> Load:
    """Run the whole command; the modules that it loads late are loaded before the clock."""
    app = import_module("traceparse.cli").app
    for module in ("traceparse.engine.pipeline", "traceparse.report.json_text"):
        import_module(module)
    return lambda: app(
        ["analyze", path, "--json", "--quiet", "--no-cache"], standalone_mode=False
    )


def _orjson(path: str) -> Load:
    loads, opened = import_module("orjson").loads, opener(Path(path))

    def load() -> object:
        with opened() as file:
            return loads(file.read())

    return load


def _json(path: str) -> Load:
    opened = opener(Path(path))

    def load() -> object:
        with opened() as file:
            return json.load(file)

    return load


def opener(path: Path) -> Callable[[], Any]:
    """Return what opens a file to its decompressed bytes, told by its first ones."""
    with path.open("rb") as file:
        head = file.read(4)
    if head.startswith(_GZIP):
        gzip = import_module("gzip")
        return lambda: gzip.open(path, "rb")
    if head == _ZSTD:
        zstandard = import_module("zstandard")
        return lambda: zstandard.open(path, "rb")
    return lambda: path.open("rb")


def _document(document: Any) -> Counts:  # noqa: ANN401 - any JSON
    events = document["traceEvents"] if isinstance(document, dict) else document
    return {"rows": len(events), "events": len(events)}


def _hta(path: str) -> Load:
    """HTA's parser of one file, as it is configured by default.

    ``TraceAnalysis`` does more with the frame (links, iterations): that is not timed.
    """
    parser = import_module("hta.common.trace_parser")
    config = import_module("hta.configs.parser_config").ParserConfig.get_default_cfg()
    return lambda: parser.parse_trace_dataframe(path, config)


def _hta_bridge(path: str) -> Load:
    """Run the whole way to HTA's analyses, by our reader: what is to be had of the run, too."""
    traceparse, _ = import_module("traceparse"), _hta_analysis(path)
    return lambda: traceparse.to_hta(traceparse.read(path))


def _hta_frames(path: str) -> Load:
    """Read for HTA alone, given a run."""
    traceparse, _ = import_module("traceparse"), _hta_analysis(path)
    run = traceparse.read(path)
    return lambda: traceparse.to_hta(run)


def _hta_analysis(path: str) -> Load:
    """HTA's own loader of one file or a folder, to its ``TraceAnalysis``."""
    import_module("logging").disable()  # it logs each file
    analysis = import_module("hta.trace_analysis").TraceAnalysis
    if Path(path).is_dir():
        return lambda: analysis(trace_dir=path)
    return lambda: analysis(trace_files={0: path}, trace_dir="")


def _frames(analysis: Any) -> Counts:  # noqa: ANN401 - a TraceAnalysis
    return {"rows": sum(map(len, analysis.t.traces.values()))}


def _tracelens(path: str) -> Load:
    loader = import_module("TraceLens.util").DataLoader
    return lambda: loader.load_data(path)


def _tensorboard(path: str) -> Load:
    """Parse as torch's TensorBoard plugin does, which has no loader apart from its analysis."""
    profile = import_module("torch_tb_profiler.profiler.data").RunProfileData
    return lambda: profile.parse("worker0", "1", path, tempfile.gettempdir())


def _profile(profile: Any) -> Counts:  # noqa: ANN401 - a RunProfileData
    return {"rows": len(profile.events)}


def _frame(parsed: Any) -> Counts:  # noqa: ANN401 - (metadata, DataFrame, symbols)
    return {"rows": len(parsed[1])}


def _nothing(_: object) -> Counts:
    return {}


_OURS = ("traceparse", "msgspec", "pyarrow")
ENGINES = {
    "traceparse": Engine("traceparse read_trace", _OURS, _traceparse, _tables),
    "traceparse-core": Engine("... held to one core", _OURS, _traceparse_core, _tables),
    "traceparse-msgspec": Engine(
        "... with the msgspec engine", _OURS, _traceparse_msgspec, _tables
    ),
    "traceparse-all": Engine("traceparse, all tables", _OURS, _traceparse_all, _tables),
    "analyze": Engine("traceparse analyze", (*_OURS, "typer", "rich"), _analyze, _nothing),
    "json": Engine("json.load", (), _json, _document),
    "orjson": Engine("orjson.loads", ("orjson",), _orjson, _document),
    "tracelens": Engine("TraceLens DataLoader", ("TraceLens",), _tracelens, _document),
    "tensorboard": Engine(
        "torch-tb-profiler RunProfileData", ("torch_tb_profiler",), _tensorboard, _profile
    ),
    "hta": Engine("HTA parse_trace_dataframe", ("hta", "pandas"), _hta, _frame),
    "hta-bridge": Engine("traceparse to_hta", (*_OURS, "hta"), _hta_bridge, _frames),
    "hta-frames": Engine("traceparse to_hta of a run", (*_OURS, "hta"), _hta_frames, _frames),
    "hta-analysis": Engine("HTA TraceAnalysis", ("hta", "pandas"), _hta_analysis, _frames),
}


def measure(engine: Engine, path: str) -> dict[str, float]:
    """Import what the engine needs, load the file once, and say what both took."""
    begun = time.perf_counter()
    load = engine.prepare(path)
    imported, cpu_before = time.perf_counter(), time.process_time()
    base = peak_rss_bytes()
    loaded = load()
    load_s, cpu_s = time.perf_counter() - imported, time.process_time() - cpu_before
    return {
        "import_s": imported - begun,
        "load_s": load_s,
        "cpu_s": cpu_s,
        "imported_rss_bytes": base,
        "peak_rss_bytes": peak_rss_bytes(),
        **_mapped(),
        **engine.counts(loaded),
    }


def peak_rss_bytes() -> int:
    """Return the most memory that this program had.

    ``ru_maxrss`` counts from before exec, so that on Linux a child is never smaller than the
    process that started it; ``VmHWM`` counts from exec.
    """
    peak = _memory().get("VmHWM")
    if peak is not None:
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _mapped() -> Counts:
    """Return how much of the memory is files mapped into it: shared libraries, mostly.

    How much of a library counts depends on how the page cache holds it, not on the program:
    freshly installed ones were seen to count twice as much as the same ones read from disk.
    """
    mapped = _memory().get("RssFile")
    return {} if mapped is None else {"mapped_bytes": mapped}


def _memory() -> Counts:
    """Return what Linux says of this process's memory, in bytes; nothing on other systems."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return {}
    fields = (line.split() for line in status.splitlines())
    return {words[0][:-1]: int(words[1]) * 1024 for words in fields if words[-1] == "kB"}


def main() -> None:
    """Measure what the arguments say."""
    name, path, result = sys.argv[1:]
    Path(result).write_text(json.dumps(measure(ENGINES[name], path)))


if __name__ == "__main__":
    main()
