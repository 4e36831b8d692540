"""What does a newcomer pay? ``pip install .`` in an empty environment, then each extra.

``python tools/newcomer.py [TRACES] [--pip OPTION ...]`` makes an environment a row, installs
what is committed and changed here into it, measures what that added, and runs the command that
the extra is for; without the extra the same command has to say that it is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.bench_facts import shared_traces  # noqa: E402
from tools.bench_runs import ended  # noqa: E402
from tools.bench_table import Column, Figures, fixed, table  # noqa: E402

__all__ = ["COMMANDS", "TRAIN", "Installed", "NewcomerError", "extras", "main", "megabytes"]

# A training job that takes no time: 14 steps
TRAIN = """\
import torch

layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for batch in torch.ones(14, 8, 64):
    optimizer.zero_grad()
    layer(batch).sum().backward()
    optimizer.step()
"""
_COLUMNS = (
    Column("packages", "num_packages", fixed(0)),
    Column("MB", "megabytes", fixed(0)),
    Column("install s", "install_s", fixed(0)),
    Column("first run s", "first_s", fixed(2)),
    Column("then s", "then_s", fixed(2)),
    Column("peak RSS MB", "peak_megabytes", fixed(0)),
)
Words: TypeAlias = Callable[[Path, Path], list[str]]
# What each extra is for, given traces and a folder to write into
COMMANDS: Mapping[str, Words] = {
    "": lambda traces, _: ["analyze", str(traces), "--no-cache"],
    "report": lambda traces, out: [
        *("analyze", str(traces), "--no-cache", "--format", "html,md", "--out", str(out)),
    ],
    "sql": lambda traces, _: ["sql", str(traces), "SELECT count(*) AS num FROM kernels"],
    "hta": lambda traces, _: ["analyze", str(traces), "--no-cache", "--hta"],
    "dask": lambda traces, _: [
        *("analyze", str(traces), "--no-cache", "--engine", "dask", "--jobs", "2"),
    ],
    "capture": lambda _, out: [
        *("capture", "--out", str(out), "--overwrite", "--", "python", "train.py"),
    ],
}
# What says that an extra is missing, where that is another command: to train needs torch anyway
WITHOUT: Mapping[str, Words] = {"capture": lambda _, out: ["demo", "--out", str(out)]}


class NewcomerError(Exception):
    """Something does not do what the README says, in one line."""


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment of its own: its Python, and what traceparse and its packages weigh."""

    folder: Path

    @property
    def python(self) -> Path:
        """Where its Python is."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where its packages are."""
        return next(self.folder.glob("lib/python*/site-packages"))

    def names(self) -> frozenset[str]:
        """Return the names of what is installed."""
        found = distributions(path=[str(self.packages)])
        return frozenset(one.metadata["Name"].lower() for one in found)

    def run(self, words: Iterable[str], folder: Path) -> tuple[int, str, float, float]:
        """Run traceparse: its exit status, what it said, its seconds, its peak in MB."""
        with tempfile.TemporaryFile() as said:
            begun = time.perf_counter()
            child = subprocess.Popen(
                [self.folder / "bin" / "traceparse", *words],
                cwd=folder,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={
                    **_environment(),
                    "PATH": f"{self.folder / 'bin'}:{os.environ.get('PATH', '')}",
                },
            )
            took = ended(child, begun)
            said.seek(0)
            text = said.read().decode(errors="replace")
        return child.returncode, text, took["process_s"], took["peak_rss_bytes"] / 1e6


def megabytes(folder: Path) -> float:
    """Return what all files of a folder take on disk, in MB of 10^6 bytes."""
    files = (path.lstat() for path in folder.rglob("*") if not path.is_dir())
    return sum(one.st_blocks * 512 for one in files) / 1e6


def extras(pyproject: str) -> list[str]:
    """Return the names of the extras that are not made of others."""
    found = tomllib.loads(pyproject)["project"]["optional-dependencies"]
    own = f"{tomllib.loads(pyproject)['project']['name']}["
    return [name for name, needs in found.items() if not any(own in one for one in needs)]


def install(source: Path, folder: Path, extra: str, options: Sequence[str]) -> Figures:
    """Make an environment with traceparse and an extra; return seconds, MB, packages."""
    venv.create(folder, with_pip=True)
    made = Installed(folder)
    before, known = megabytes(made.packages), made.names()
    begun = time.perf_counter()
    wanted = f"{source}[{extra}]" if extra else str(source)
    done = subprocess.run(
        [made.python, "-m", "pip", "install", "--quiet", *options, wanted],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NewcomerError(f"pip install {wanted}: {done.stderr.strip().splitlines()[-1]}")
    return {
        "install_s": time.perf_counter() - begun,
        "megabytes": megabytes(made.packages) - before,
        "num_packages": len(made.names() - known),
    }


def figures(made: Installed, extra: str, traces: Path, scratch: Path) -> Figures:
    """Run what an extra is for twice, and return seconds and MB.

    Raises
    ------
    NewcomerError
        It fails.
    """
    words = COMMANDS[extra](traces, scratch / "out")
    took, peaks = [], []
    for _ in range(2):
        shutil.rmtree(scratch / "out", ignore_errors=True)
        status, said, seconds, peak = made.run(words, scratch)
        if status:
            raise NewcomerError(f"traceparse {' '.join(words)}: status {status}: {said[-500:]}")
        took.append(seconds)
        peaks.append(peak)
    if extra == "report" and not list((scratch / "out").rglob("*.png")):
        raise NewcomerError("with the extra report there are no charts")
    return {"first_s": took[0], "then_s": took[1], "peak_megabytes": max(peaks)}


def require_said(made: Installed, extra: str, traces: Path, scratch: Path) -> str:
    """Return what a command says where its extra is missing: a line with how to install it.

    Raises
    ------
    NewcomerError
        It does not.
    """
    words = {**COMMANDS, **WITHOUT}[extra](traces, scratch / "without")
    _, said, _, _ = made.run(words, scratch)
    lines = [line for line in said.splitlines() if f"traceparse[{extra}]" in line]
    if not lines or "Traceback" in said:
        raise NewcomerError(f"traceparse {words[0]} without {extra} says: {said[-500:]}")
    return lines[0]


def _environment() -> dict[str, str]:
    """Return the environment of a newcomer: nothing of this one's Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def _source(folder: Path) -> Path:
    """Copy what git has or would add, as pip builds inside of what it is given."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file() and name.split("/")[0] not in ("fixtures", "tests"):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    return folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and what is said without each extra; return the exit status."""
    parser = argparse.ArgumentParser(prog="newcomer.py", description=__doc__)
    parser.add_argument(
        "traces", nargs="?", type=Path, default=shared_traces() / "param-dlrm", metavar="TRACES"
    )
    parser.add_argument("--pip", nargs="*", default=[], help="options for pip install")
    wanted = parser.parse_args(arguments)
    traces = wanted.traces.resolve()
    rows: dict[str, tuple[str, Figures]] = {}
    said = []
    with tempfile.TemporaryDirectory(prefix="traceparse-newcomer-") as place:
        work = Path(place)
        source, scratch = _source(work / "source"), work / "scratch"
        scratch.mkdir()
        (scratch / "train.py").write_text(TRAIN)
        base = Installed(work / "base")
        try:
            for extra in ["", *extras((source / "pyproject.toml").read_text("utf-8"))]:
                title = f".[{extra}]" if extra else "."
                print(f"pip install {title}", file=sys.stderr)
                made = Installed(work / extra) if extra else base
                row = install(source, made.folder, extra, wanted.pip)
                row |= figures(made, extra, traces, scratch)
                if extra:
                    said.append(
                        f"without {extra}: {require_said(base, extra, traces, scratch)}"
                    )
                    shutil.rmtree(made.folder)
                rows[title] = ("ok", row)
        except NewcomerError as error:
            print(f"newcomer.py: {error}", file=sys.stderr)
            return 1
    print(table("pip install", _COLUMNS, rows))
    print(
        "MB: of site-packages, all that pip added; packages: traceparse and all of them.\n"
        "The commands, run twice, the second time with all of their files in memory:"
    )
    for extra, words in COMMANDS.items():
        print(f"  {extra or '.'}: traceparse {' '.join(words(traces, Path('OUT')))}")
    print("\n".join(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
