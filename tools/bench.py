"""How fast is traceparse, in how much memory, and next to other tools?

``python tools/bench.py load [PATH ...] [--size MB] [--repeat 5] [--json FILE]`` times the
loading of one trace file, or of a large one made of several, prints a table and what was
promised, and writes all samples as JSON. ``analyze``, ``cache``, ``memory``, ``scale`` and
``start`` do so for the whole command; ``all`` is what of each takes ten minutes together.
``across`` does so for simulated jobs of many ranks, which take minutes to simulate at first;
``reduce`` for what is done once all ranks are digested, of up to 16,384 (``--ranks 16384``).
``dask`` does so for a simulated job that Dask's workers read.
``hta`` times the way to HTA's ``TraceAnalysis``, by us and by HTA's own loader.
``capture`` times a training job with capture and without; it needs torch.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_across import across  # noqa: E402
from tools.bench_capture import capture  # noqa: E402
from tools.bench_child import ENGINES  # noqa: E402
from tools.bench_dask import dask  # noqa: E402
from tools.bench_facts import BenchError, default_traces, machine, versions  # noqa: E402
from tools.bench_hta import hta  # noqa: E402
from tools.bench_job import analyze, cache, start  # noqa: E402
from tools.bench_load import load  # noqa: E402
from tools.bench_make import larger_trace  # noqa: E402
from tools.bench_outcome import Outcome, record, text  # noqa: E402
from tools.bench_reduce import reduce  # noqa: E402
from tools.bench_scale import memory, scale  # noqa: E402
from traceparse.whole import whole  # noqa: E402

__all__ = ["SELECTION", "main", "write_json"]

SELECTION = (
    "load --size 200",
    "memory",
    "analyze --ranks 1 8 64",
    "cache",
    "scale",
    "start",
)


def write_json(record: Mapping[str, Any], path: Path) -> None:
    """Write a record; if that fails, what was there before stays."""
    text = json.dumps(record, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as temporary:
        temporary.write_text(text)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _load(wanted: argparse.Namespace) -> Outcome:
    """Load the one file there is as it is, unless a size is asked for."""
    path = wanted.paths[0]
    if wanted.size or len(wanted.paths) > 1:
        path = larger_trace(wanted.paths, wanted.size or 500, wanted.layout)
    return load(path, repeat=wanted.repeat, engines=wanted.engines)


def _by_name(
    benchmark: Callable[..., Outcome], *names: str
) -> Callable[[argparse.Namespace], Outcome]:
    """Return what calls a benchmark that needs no traces with the arguments of these names."""
    return lambda wanted: benchmark(
        repeat=wanted.repeat, **{name: getattr(wanted, name) for name in names}
    )


def _with(
    benchmark: Callable[..., Outcome], *names: str
) -> Callable[[argparse.Namespace], Outcome]:
    """Return what calls a benchmark with the arguments of these names."""
    return lambda wanted: benchmark(
        wanted.paths,
        repeat=wanted.repeat,
        **{name: getattr(wanted, name) for name in names},
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.py", description=__doc__)
    commands = parser.add_subparsers(dest="benchmark", required=True)
    command = _command(commands, "load", "time the loading of one trace file", _load)
    command.add_argument(
        "--size",
        type=_at_least_one,
        metavar="MB",
        help="first make a trace so large (default: 500, or one PATH as it is)",
    )
    command.add_argument(
        "--layout", default="k-old", help="of that trace (default: k-old, libkineto's)"
    )
    command.add_argument(
        "--engines", nargs="+", default=(), choices=ENGINES, help="which (default: all)"
    )
    command = _command(
        commands,
        "analyze",
        "time the analysis of jobs, with one process and with all",
        _with(analyze, "ranks", "megabytes"),
    )
    _add_many(command, "--ranks", [1, 2, 4, 8, 16, 32, 64], "of the jobs")
    _add_megabytes(command)
    command = _command(
        commands,
        "cache",
        "time the first analysis and the second",
        _with(cache, "ranks", "megabytes"),
    )
    command.add_argument(
        "--ranks", type=_at_least_one, default=64, help="of the job (default: 64)"
    )
    _add_megabytes(command)
    command = _command(
        commands, "memory", "measure the memory of an analysis", _with(memory, "sizes")
    )
    _add_many(command, "--sizes", [500, 2000], "in MB")
    command = _command(
        commands,
        "scale",
        "time the analysis against size and ranks",
        _with(scale, "sizes", "ranks", "megabytes"),
    )
    _add_many(command, "--sizes", [50, 200, 800], "in MB")
    _add_many(command, "--ranks", [1, 8, 64], "of the jobs")
    _add_megabytes(command)
    _command(commands, "start", "time what comes before any trace", _with(start))
    command = _command(
        commands,
        "across",
        "time the analysis of simulated jobs against their ranks",
        _by_name(across, "ranks", "gathered", "layers"),
        has_paths=False,
    )
    _add_many(command, "--ranks", [8, 16, 32, 64], "of the jobs")
    command.add_argument(
        "--gathered",
        type=_at_least_one,
        default=1024,
        metavar="RANKS",
        help="of the job that comes from the cache (default: 1024)",
    )
    command.add_argument(
        "--layers",
        type=_at_least_one,
        default=363,
        help="of the network (default: 363, 2,000 kernels a step)",
    )
    command = _command(
        commands, "hta", "time the way to HTA's analyses", _with(hta, "megabytes")
    )
    command.add_argument(
        "--size",
        type=_at_least_one,
        metavar="MB",
        dest="megabytes",
        help="make a trace so large of the PATHs first (default: the first as it is)",
    )
    command = _command(
        commands,
        "dask",
        "time the analysis of a simulated job by local processes and by Dask's workers",
        _by_name(dask, "ranks", "layers"),
        has_paths=False,
    )
    for name, default, what in (
        ("--ranks", 256, "of the job"),
        ("--layers", 8, "of the network"),
    ):
        command.add_argument(
            name, type=_at_least_one, default=default, help=f"{what} (default: {default})"
        )
    command = _command(
        commands,
        "reduce",
        "time what is done across the digests of all ranks against how many they are",
        _by_name(reduce, "ranks"),
        has_paths=False,
    )
    _add_many(command, "--ranks", [64, 256, 1024], "of the jobs, a multiple of 32")
    command.set_defaults(repeat=1)
    command = _command(
        commands,
        "capture",
        "time a training job with capture and without",
        _by_name(capture, "num_steps", "recorded", "hidden"),
        has_paths=False,
    )
    for name, default, what in (
        ("--num-steps", 300, "how many steps the job trains"),
        ("--recorded", 3, "how many of them are recorded"),
        ("--hidden", 128, "how wide its network is"),
    ):
        command.add_argument(
            name, type=_at_least_one, default=default, help=f"{what} (default: {default})"
        )
    command = commands.add_parser("all", help="the first six, in about ten minutes")
    _add_paths(command)
    return parser


def _add_many(
    command: argparse.ArgumentParser, name: str, default: list[int], what: str
) -> None:
    command.add_argument(
        name,
        type=_at_least_one,
        nargs="+",
        default=default,
        help=f"{what} (default: {' '.join(map(str, default))})",
    )


def _add_megabytes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--size",
        type=_at_least_one,
        default=50,
        metavar="MB",
        dest="megabytes",
        help="of each rank's trace (default: 50)",
    )


def _add_paths(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="traces to make the large ones of; by default three shared or stored ones",
    )


def _command(
    commands: Any,  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], Outcome],
    *,
    has_paths: bool = True,
) -> argparse.ArgumentParser:
    """Add a benchmark with what all of them take."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=text)
    if has_paths:
        _add_paths(command)
    command.add_argument(
        "--repeat", type=_at_least_one, default=5, help="how many rounds (default: 5)"
    )
    command.add_argument(
        "--json",
        type=Path,
        default=ROOT / "bench-out" / f"{name}.json",
        help=f"where the samples go (default: bench-out/{name}.json)",
    )
    command.set_defaults(run=run)
    return command


def _all(paths: Sequence[str]) -> int:
    """Run the selection, one after the other, and return the worst exit status."""
    statuses = []
    for words in SELECTION:
        name, *options = words.split()
        print(f"bench.py {words}", file=sys.stderr)
        statuses.append(main([name, *paths, *options]))  # before options that take several
        print()
    return max(statuses)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the arguments ask for and return the exit status."""
    wanted = _parser().parse_args(arguments)
    if wanted.benchmark == "all":
        return _all([str(path) for path in wanted.paths])
    if "paths" in wanted:
        wanted.paths = wanted.paths or default_traces()
    busy_before = os.getloadavg()[0]
    try:
        outcome = wanted.run(wanted)
    except BenchError as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 1
    where = {
        "machine": {**machine(), "load_average": [busy_before, os.getloadavg()[0]]},
        "versions": versions(),
        "repeat": wanted.repeat,
    }
    print(text(outcome, where), flush=True)
    write_json(record(outcome, where), wanted.json)
    print(f"wrote {wanted.json}", file=sys.stderr)
    return int(outcome.has_failed)


if __name__ == "__main__":
    sys.exit(main())
