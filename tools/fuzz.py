"""Does anything but a report or one line of refusal ever come out, whatever goes in?

``python tools/fuzz.py --seconds 600`` mutates the stored traces, whole and damaged ones
(tools/damage.py), for so long: guided by the code that is reached, where atheris is installed,
else at random. Every file is read, analyzed and
drawn, and the sums of its report are checked (tools/fuzz_check.py). What escapes (an exception
that is no TraceparseError, a warning, 10 seconds, 1 GB, a dead process) is kept in
``fuzz-out/``, and the exit status is 1.

``python tools/fuzz.py --replay FILE ...`` tries stored files again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.damage import KINDS  # noqa: E402
from tools.fuzz_atheris import has_atheris  # noqa: E402
from tools.fuzz_child import OVER_MEMORY, Job, TooSlow, time_limit  # noqa: E402
from tools.fuzz_stats import Stats  # noqa: E402

__all__ = ["Watch", "main", "replay"]

CHILD = ROOT / "tools" / "fuzz_child.py"
_FIXTURES = [ROOT / "fixtures" / name for name in ("hand", "gloo-2rank", "fuzz")]
_LIMIT_S = 10.0
_HUNG_AFTER_S = 3 * _LIMIT_S
_SAY_EVERY_S = 10.0
_MOST_DEATHS = 20
_LAST_WORDS = 40


class Watch:
    """Keeps fuzzing processes alive until the time is up, and adds up what they count."""

    def __init__(self, wanted: argparse.Namespace, folder: Path) -> None:
        self.totals = Stats()
        self.deaths = 0
        self._wanted = wanted
        self._folder = folder
        self._begun = time.monotonic()
        self._said = self._begun
        self._at_work: set[Path] = set()
        self._interrupted = False

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return time.monotonic() - self._begun

    def run(self) -> None:
        """Fuzz until the time is up, or processes die without having tried anything."""
        jobs = self._wanted.jobs
        with ThreadPoolExecutor(jobs) as pool:
            try:
                list(pool.map(self._run_lane, range(jobs)))
            except KeyboardInterrupt:
                self._interrupted = True
                raise

    def _run_lane(self, lane: int) -> None:
        """Run one process after another."""
        number = lane
        while self.seconds < self._wanted.seconds - 0.5 and self.deaths < _MOST_DEATHS:
            stats = self._run_child(number)
            self.totals.add(stats)
            number += self._wanted.jobs
            if self._interrupted or not stats.tried:
                return

    def _run_child(self, number: int) -> Stats:
        """Run one process to its end; what it was trying when it died is kept."""
        work = self._folder / f"child-{number}"
        work.mkdir()
        job = Job(
            work=str(work),
            findings=str(self._wanted.out),
            seeds=[str(folder) for folder in (*_FIXTURES, self._folder / "damaged")],
            corpus=self._wanted.corpus and str(self._wanted.corpus),
            seconds=self._wanted.seconds - self.seconds,
            seed=self._wanted.seed + number,
            limit_s=_LIMIT_S,
            engine=self._wanted.engine,
        )
        with (work / "log").open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-P", str(CHILD), json.dumps(asdict(job))],
                stdout=log,
                stderr=log,
                cwd=work,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"},
            )
            self._at_work.add(work)
            try:
                self._wait(child, work)
            finally:
                self._at_work.remove(work)
                child.kill()
                child.wait()
        if child.returncode not in (0, OVER_MEMORY) and not self._interrupted:
            self._bury(child.returncode, work)
        return Stats.read(work / "stats.json")

    def _wait(self, child: subprocess.Popen[bytes], work: Path) -> None:
        while child.poll() is None and not self._interrupted:
            time.sleep(0.2)
            if time.monotonic() - self._said > _SAY_EVERY_S:
                self._said = time.monotonic()
                now = Stats().add(self.totals)
                for folder in list(self._at_work):
                    now.add(Stats.read(folder / "stats.json"))
                _say(now.line(self.seconds))
            if _age_s(work) > _HUNG_AFTER_S:
                return

    def _bury(self, status: int, work: Path) -> None:
        """Keep the file that a process died of, or hung on, and its last words."""
        self.deaths += 1
        log = _last_words(work / "log")
        for path in (work / "input").glob("*"):
            name = f"died-{status}-{zlib.crc32(path.read_bytes()):08x}"
            self.totals.escapes[name] += 1
            self._wanted.out.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, self._wanted.out / f"{name}.bin")
            (self._wanted.out / f"{name}.txt").write_text(log)
        _say(f"a fuzzing process ended with status {status}:\n{log}")


def _write_damaged(folder: Path) -> None:
    """Write traces with every known kind of damage, to go on from; but not the large ones."""
    for kind in KINDS:
        for layout in kind.layouts:
            if "large" not in kind.name:
                kind.make(folder / f"{kind.number}-{kind.name}" / layout, layout)


def _last_words(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join([line for line in lines if not line.startswith("INFO: ")][-_LAST_WORDS:])


def _age_s(work: Path) -> float:
    """Return for how long the file that is being tried has been there."""
    try:
        return max(time.time() - path.stat().st_mtime for path in (work / "input").glob("*"))
    except (ValueError, OSError):  # none just now
        return 0.0


def _say(text: str) -> None:
    print(f"fuzz: {text}", file=sys.stderr, flush=True)


def fuzz(wanted: argparse.Namespace) -> int:
    """Fuzz for the time that is wanted, and say what came of it."""
    _say(f"{wanted.engine}, {wanted.seconds:g} s, {wanted.jobs} at once, seed {wanted.seed}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        _write_damaged(Path(folder, "damaged"))
        watch = Watch(wanted, Path(folder))
        watch.run()
    print(watch.totals.line(watch.seconds))
    print(watch.totals.table())
    if watch.deaths:
        print(f"{watch.deaths} fuzzing processes died; see above")
    if not watch.totals.tried:
        print("nothing was tried")
    return int(bool(watch.totals.escapes or watch.deaths or not watch.totals.tried))


def replay(paths: Sequence[Path]) -> int:
    """Try files again, with their tracebacks."""
    from tools.fuzz_check import check  # noqa: PLC0415 - slow to import, and only this needs it

    status = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for path in paths:
            begun = time.perf_counter()
            try:
                with time_limit(_LIMIT_S):
                    outcome = check(path.read_bytes(), Path(folder))
            except (Exception, TooSlow):  # noqa: BLE001 - to be shown, whatever it is
                status = 1
                print(f"{path}: ESCAPED\n{traceback.format_exc()}")
            else:
                words = ", ".join(sorted(outcome.feature))
                print(f"{path}: {time.perf_counter() - begun:.2f} s: {outcome.kind}: {words}")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz.py", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: 60)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all chance")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)"
    )
    parser.add_argument("--corpus", type=Path, help="a folder of files to mutate besides")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "fuzz-out", help="for findings (default: fuzz-out)"
    )
    parser.add_argument(
        "--engine",
        choices=["atheris", "random"],
        default="atheris" if has_atheris() else "random",
        help="what chooses (default: atheris where it is installed)",
    )
    parser.add_argument(
        "--replay", type=Path, nargs="+", metavar="FILE", help="try these again"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask for and return the exit status."""
    wanted = _parser().parse_args(arguments)
    if wanted.replay:
        return replay(wanted.replay)
    wanted.out = wanted.out.resolve()
    wanted.corpus = wanted.corpus and wanted.corpus.resolve()
    return fuzz(wanted)


if __name__ == "__main__":
    sys.exit(main())
