"""How fast is traceparse, and in how much memory, next to other tools?

``python tools/bench.py load [PATH] [--size MB] [--repeat 5] [--json FILE]`` times the loading
of one trace file, or of a large one made of it, prints a table and writes all samples as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_facts import BenchError, default_trace  # noqa: E402
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.py", description=__doc__)
    benchmarks = parser.add_subparsers(dest="benchmark", required=True)
    command = benchmarks.add_parser("load", help="time the loading of one trace file")
    command.add_argument(
        "path", nargs="?", type=Path, help="a trace; by default the largest shared one"
    )
    command.add_argument(
        "--repeat", type=_at_least_one, default=5, help="runs an engine (default: 5)"
    )
    command.add_argument(
        "--size", type=_at_least_one, metavar="MB", help="first make a trace so large of it"
    )
    command.add_argument(
        "--layout",
        default="k-old",
        help="the layout of that trace (default: k-old, libkineto's)",
    )
    command.add_argument(
        "--json",
        type=Path,
        default=ROOT / "bench-out" / "load.json",
        help="where the samples go (default: bench-out/load.json)",
    )
    command.set_defaults(run=_load)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the arguments ask for and return the exit status."""
    wanted = _parser().parse_args(arguments)
    try:
        record = wanted.run(wanted)
    except BenchError as error:
        print(f"bench.py: {error}", file=sys.stderr)
        return 1
    write_json(record, wanted.json)
    print(f"wrote {wanted.json}", file=sys.stderr)
    statuses = [engine["status"] for engine in record["engines"].values()]
    return int(any(status.startswith("failed") for status in statuses))


if __name__ == "__main__":
    sys.exit(main())
