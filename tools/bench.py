"""How fast is traceparse, and in how much memory, next to other tools?

``python tools/bench.py load [PATH] [--size MB] [--repeat 5] [--json FILE]`` times the loading
of one trace file, or of a large one made of it, prints a table and writes all samples as JSON.
``bench.py job`` and ``bench.py memory`` do so for the whole command, on many files and on large
ones.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_facts import BenchError, default_trace  # noqa: E402
from tools.bench_job import job, memory  # noqa: E402
from tools.bench_load import load  # noqa: E402
from tools.bench_make import larger_trace  # noqa: E402

__all__ = ["main", "write_json"]


def write_json(record: Mapping[str, Any], path: Path) -> None:
    """Write a record; if that fails, what was there before stays."""
    text = json.dumps(record, indent=1) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def _load(wanted: argparse.Namespace) -> dict[str, Any]:
    path = wanted.path or default_trace()
    if wanted.size:
        path = larger_trace(path, wanted.size, wanted.layout)
    return load(path, wanted.repeat)


def _job(wanted: argparse.Namespace) -> dict[str, Any]:
    path = wanted.path or default_trace()
    return job(path, files=wanted.files, megabytes=wanted.size, repeat=wanted.repeat)


def _memory(wanted: argparse.Namespace) -> dict[str, Any]:
    return memory(wanted.path or default_trace(), sizes=wanted.sizes, repeat=wanted.repeat)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.py", description=__doc__)
    benchmarks = parser.add_subparsers(dest="benchmark", required=True)
    command = _command(benchmarks, "load", "time the loading of one trace file", _load)
    command.add_argument(
        "--size", type=_at_least_one, metavar="MB", help="first make a trace so large of it"
    )
    command.add_argument(
        "--layout",
        default="k-old",
        help="the layout of that trace (default: k-old, libkineto's)",
    )
    command = _command(
        benchmarks, "job", "time the analysis of many files, and its start", _job
    )
    command.add_argument(
        "--files", type=_at_least_one, default=64, help="how many (default: 64)"
    )
    command.add_argument(
        "--size", type=_at_least_one, default=50, metavar="MB", help="of each (default: 50)"
    )
    command = _command(benchmarks, "memory", "measure the memory of an analysis", _memory)
    command.add_argument(
        "--sizes",
        type=_at_least_one,
        nargs="+",
        default=[500, 2000],
        metavar="MB",
        help="of the traces that are made (default: 500 2000)",
    )
    return parser


def _command(
    benchmarks: Any,  # noqa: ANN401 - argparse keeps the type of its subparsers to itself
    name: str,
    text: str,
    run: Callable[[argparse.Namespace], dict[str, Any]],
) -> argparse.ArgumentParser:
    """Add a benchmark with what all of them take."""
    command: argparse.ArgumentParser = benchmarks.add_parser(name, help=text)
    command.add_argument(
        "path", nargs="?", type=Path, help="a trace; by default the largest shared one"
    )
    command.add_argument(
        "--repeat", type=_at_least_one, default=5, help="how many runs (default: 5)"
    )
    command.add_argument(
        "--json",
        type=Path,
        default=ROOT / "bench-out" / f"{name}.json",
        help=f"where the samples go (default: bench-out/{name}.json)",
    )
    command.set_defaults(run=run)
    return command


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the arguments ask for and return the exit status."""
    wanted = _parser().parse_args(arguments)
    try:
        record = wanted.run(wanted)
    except (BenchError, CalledProcessError) as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 1
    write_json(record, wanted.json)
    print(f"wrote {wanted.json}", file=sys.stderr)
    statuses = [engine["status"] for engine in record.get("engines", {}).values()]
    return int(any(status.startswith("failed") for status in statuses))


if __name__ == "__main__":
    sys.exit(main())
