"""Does the native scanner read outside its buffers, or take a text for what it is not?

``python tools/fuzz_native.py --seconds 600`` builds ``_scanner.c`` under AddressSanitizer and
UndefinedBehaviorSanitizer and gives it mutated events, from any place on and cut off anywhere.
What it takes is compared with what Python's JSON reader makes of it, decimals exact; the texts
that are kept as they are, with those that the other engine keeps. A finding ends it: the
sanitizer's report, or the text and the difference; the exit status is 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.fuzz_mutate import ON_BYTES, ON_JSON, read_seeds, text_of  # noqa: E402
from traceparse.ingest.decode import decode_args, decode_block, kept_text  # noqa: E402
from traceparse.ingest.native import Rows  # noqa: E402
from traceparse.ingest.numbers import MISSING  # noqa: E402

__all__ = ["Differs", "Tries", "kept", "kept_by_python", "main", "taken", "value_of"]

SOURCE = ROOT / "traceparse" / "ingest" / "_scanner.c"
_SEEDS = [ROOT / "fixtures" / name for name in ("hand", "gloo-2rank", "fuzz")]
_BUILT = "TRACEPARSE_FUZZ_SCANNER"  # in the environment of the process that fuzzes: where it is
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
_CAPACITY, _MOST_TEXTS, _MOST_BYTES = 64, 256, 1 << 14
_CLOSED = 1
_SAY_EVERY = 20_000


class Differs(Exception):  # noqa: N818 - it names what is wrong with the scanner, not an error
    """The scanner made something else of a text than it is."""


# -- what is right


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


_OF_CALLS = ("Collective name", "In msg nelems", "In msg size")


def _loads(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)


def _nanoseconds(value: int | Decimal | None) -> int:
    if value is None:
        return MISSING
    return int(Decimal(value).quantize(Decimal("0.001"), ROUND_HALF_EVEN).scaleb(3))


def _number(value: int | None) -> int | None:
    return value if value is not None and 0 <= value < 1 << 64 else None


def value_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the scanner has to say of an event."""
    args = event.get("args") or {}
    external = args.get("External id")
    return {
        "ts": _nanoseconds(event.get("ts")),
        "dur": _nanoseconds(event.get("dur")),
        "ph": event["ph"],
        "cat": event.get("cat"),
        "name": event["name"],
        "pid": event.get("pid"),
        "tid": event.get("tid"),
        "device": args.get("device"),
        "collective": args.get("Collective name"),
        "stream": _number(args.get("stream")),
        "correlation": _number(args.get("correlation")),
        "external": _number(args.get("external id") if external is None else external),
        "sequence": _number(args.get("Sequence number")),
        "forward": _number(args.get("Fwd thread id")),
        "unfinished": args.get("finished") is False,
        "call": any(args.get(key) is not None for key in _OF_CALLS),
    }


def kept_by_python(events: bytes) -> list[tuple[str | None, ...]]:
    """Return the texts that the other engine keeps of events as they are.

    Raises
    ------
    Differs
        It does not take them.
    """
    decoded = decode_block(events)
    if decoded is None:
        raise Differs("took what the other engine does not")
    args, repaired = decode_args(decoded)
    if repaired:
        raise Differs(f"took what the other engine repairs: {repaired}")
    return [
        (
            kept_text(each.input_dims, each.input_dims_old),
            kept_text(each.input_types),
            kept_text(each.concrete_inputs),
        )
        for each in args
    ]


# -- what the scanner says


class Tries:
    """Texts given to a scanner; ``num_taken`` of their events it took, and they are right."""

    def __init__(self, scanner_type: Callable[..., Any]) -> None:
        self.columns = Rows.empty(_CAPACITY)
        self.scanner = scanner_type(
            self.columns, _CAPACITY, _MOST_TEXTS, _MOST_BYTES, 0x1234567
        )
        self.num_taken = 0
        self.statuses: set[int] = set()

    def check(self, text: bytes, at: int) -> None:
        """Let it scan a text from a place on.

        Raises
        ------
        Differs
            It took what is no JSON, or made something else of it.
        """
        self.scanner.clear()
        status, row, end, _ = self.scanner.scan(text, at, 0)
        self.statuses.add(status)
        self.num_taken += row
        inside = text[at:end].rstrip().removesuffix(b",")
        try:
            events = _loads(b"[" + inside + b"]")
        except (ValueError, RecursionError) as error:
            raise Differs(f"took what is no JSON: {error}") from error
        found = [taken(self, place) for place in range(row)]
        if found != [value_of(event) for event in events]:
            raise Differs(f"took {found}\nof {events}")
        raws = [kept(self, place) for place in range(row)]
        if raws != kept_by_python(inside):
            raise Differs(f"kept {raws}\nof {events}")


def taken(tries: Tries, row: int) -> dict[str, Any]:
    """Return what the scanner said of an event."""
    texts = [_loads(text) for text in tries.scanner.texts(0)]
    columns = tries.columns
    ts, dur, stream, correlation, external, sequence, forward, kind, *ids = (
        int(column[row]) for column in columns[: columns._fields.index("dims")]
    )
    flags = int(columns.flags[row])
    phase, category = tries.scanner.kinds(0)[kind]
    named = ("ph", "cat", "name", "pid", "tid", "device", "collective")
    values = (None if text < 0 else texts[text] for text in (phase, category, *ids))
    return {
        "ts": ts,
        "dur": dur,
        **dict(zip(named, values, strict=True)),
        "stream": stream if flags & 1 else None,
        "correlation": correlation if flags & 2 else None,
        "external": external if flags & 4 else None,
        "sequence": sequence if flags & 64 else None,
        "forward": forward if flags & 128 else None,
        "unfinished": bool(flags & 16),
        "call": bool(flags & 32),
    }


def kept(tries: Tries, row: int) -> tuple[str | None, ...]:
    """Return the texts that the scanner keeps of an event as they are."""
    raws = tries.scanner.raws(0)
    columns = tries.columns
    ids = (int(each[row]) for each in (columns.dims, columns.types, columns.concretes))
    return tuple(None if text < 0 else raws[text].decode() for text in ids)


# -- texts to try


def _inside(data: bytes) -> bytes:
    text, _ = text_of(data)
    return text[text.find(b"[", text.find(b'"traceEvents"')) + 1 :]


def _mutated(pool: Sequence[bytes], rng: Random) -> tuple[bytes, int]:
    """Return a text and a place in it: mostly where it begins."""
    text = rng.choice(pool)
    begin = text.find(b"{", rng.randrange(len(text) + 1))
    text = text[max(begin, 0) :][: rng.choice((200, 2000, 20000))]
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        text = rng.choice((*ON_BYTES, *ON_JSON))(text, rng, rng.choice(pool))
    text = text[: rng.randrange(len(text) + 1)] if rng.random() < 0.3 else text
    return text, rng.randrange(len(text) + 1) if rng.random() < 0.1 else 0


def _fuzz(scanner_type: Callable[..., Any], seconds: float, seed: int) -> int:
    pool = [text for text in map(_inside, read_seeds(_SEEDS)) if b"{" in text]
    rng = Random(seed)  # noqa: S311 - to be repeated, not to be secret
    tries, num, ends = Tries(scanner_type), 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        text, at = _mutated(pool, rng)
        num += 1
        try:
            tries.check(text, at)
        except Differs as error:
            print(f"FOUND at {at} of {text!r}\n{error}")
            return 1
        if num % _SAY_EVERY == 0:
            print(f"fuzz-native: {num:,} texts", file=sys.stderr, flush=True)
    statuses = " ".join(map(str, sorted(tries.statuses)))
    print(f"{num:,} texts, {tries.num_taken:,} events taken, statuses {statuses}: 0 findings")
    return int(not tries.num_taken)


# -- under the sanitizers


def _scanner_type(path: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location("traceparse.ingest._scanner", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., Any] = module.Scanner
    return found


def _run_sanitized(arguments: Sequence[str]) -> int:
    """Build the scanner, and run this program with it."""
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        print(f"fuzz-native: no C compiler ({compiler})", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="fuzz-native-") as folder:
        built = Path(folder, "_scanner.so")
        include = f"-I{sysconfig.get_path('include')}"
        flags = (*_SANITIZERS, "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC")
        subprocess.run([compiler, *flags, include, str(SOURCE), "-o", str(built)], check=True)
        asan = subprocess.run(
            [compiler, "-print-file-name=libasan.so"],
            check=True,
            capture_output=True,
            text=True,
        )
        environment = {
            **os.environ,
            _BUILT: str(built),
            "LD_PRELOAD": asan.stdout.strip(),
            "ASAN_OPTIONS": "detect_leaks=0",  # Python itself leaks at its end
            "PYTHONMALLOC": "malloc",  # so that every text has bounds of its own
        }
        command = [sys.executable, "-P", str(Path(__file__).resolve()), *arguments]
        return subprocess.run(command, env=environment, check=False).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask for and return the exit status."""
    parser = argparse.ArgumentParser(prog="fuzz_native.py", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all chance")
    given = sys.argv[1:] if arguments is None else list(arguments)
    wanted = parser.parse_args(given)
    if built := os.environ.get(_BUILT):
        return _fuzz(_scanner_type(built), wanted.seconds, wanted.seed)
    return _run_sanitized(given)


if __name__ == "__main__":
    sys.exit(main())
