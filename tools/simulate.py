"""Simulate a training job on many ranks; write its traces, and what is true of them.

``python tools/simulate.py ddp --ranks 8 --seed 3 --out DIR`` writes ``rank0_trace.json`` and
so on, and ``truth.json``; ``--list`` names the scenarios. The analyzer has no part in it. For
a large job, ``--layers`` and ``--steps`` say how large, and ``--no-truth`` saves time.

``mesh`` is for jobs of up to 16,384 ranks (:mod:`tools.simulate_mesh`); with ``--digests`` it
writes what the analyzer would keep of each trace, in the form that it keeps it in.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.simulate_digests import digests_of  # noqa: E402
from tools.simulate_gloo import run_job  # noqa: E402
from tools.simulate_job import AGES  # noqa: E402
from tools.simulate_mesh import mesh_job  # noqa: E402
from tools.simulate_record import record  # noqa: E402
from tools.simulate_scenarios import SCENARIOS, build  # noqa: E402
from tools.simulate_truth import truth_of  # noqa: E402
from tools.simulate_write import trace_bytes  # noqa: E402
from traceparse.engine.cache import Cache  # noqa: E402

__all__ = ["MESH", "SCENARIOS", "Simulated", "digest_path", "main", "simulate"]

MESH = "mesh"
_RANKS = tuple(2**power for power in range(2, 15))
_MOST_AT_ONCE = 1 << 10  # whose every event is simulated


@dataclass(frozen=True, slots=True)
class Simulated:
    """The files of a job by their names, and the truth about them, empty if not asked for."""

    files: Mapping[str, bytes]
    truth: Mapping[str, Any]

    def place(self, folder: Path, *, compress: bool = False) -> None:
        """Write the traces into a folder, and the truth, if there is one, beside them."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files.items():
            if compress:
                (folder / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
            else:
                (folder / name).write_bytes(data)
        if self.truth:
            (folder / "truth.json").write_text(json.dumps(self.truth, indent=1) + "\n")


def simulate(
    scenario: str,
    *,
    ranks: int,
    seed: int,
    age: str | None = None,
    layers: int | None = None,
    steps: int | None = None,
    with_truth: bool = True,
) -> Simulated:
    """Run a scenario, of its own size where none is given.

    ``age`` lets it be written as a version of PyTorch of that year did.

    Raises
    ------
    ValueError
        If the job has times that such a version cannot write.
    """
    job = build(scenario, ranks=ranks, seed=seed, layers=layers, steps=steps)
    job = replace(job, age=age or job.age)
    if not AGES[job.age].has_nanoseconds and job.conditions.quantum_ns % 1_000:
        raise ValueError(f"{job.age} wrote whole microseconds, {scenario} has nanoseconds")
    ran = run_job(job)
    recordings = record(job, ran)
    files = {
        f"rank{recording.rank}_trace.json": trace_bytes(job, recording)
        for recording in recordings
    }
    if not with_truth:
        return Simulated(files, {})
    about = {"scenario": scenario, "seed": seed}
    return Simulated(files, about | truth_of(job, ran, recordings))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simulate.py", description=__doc__)
    parser.add_argument("scenario", nargs="?", choices=[*sorted(SCENARIOS), MESH])
    parser.add_argument("--ranks", type=int, default=8, choices=_RANKS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--layers", type=int, help="layers of the network, of each stage")
    parser.add_argument("--steps", type=int, help="steps to train")
    parser.add_argument("--no-truth", action="store_true", help="write traces alone")
    parser.add_argument("--age", choices=sorted(AGES), help="write as PyTorch did that year")
    parser.add_argument("--gzip", action="store_true", help="compress the traces")
    parser.add_argument("--out", type=Path, help="folder to write to")
    parser.add_argument("--digests", action="store_true", help="of mesh: write digests")
    parser.add_argument("--list", action="store_true", help="name the scenarios and end")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what the arguments ask for and return the exit status."""
    parser = _parser()
    wanted = parser.parse_args(arguments)
    if wanted.list:
        for name, function in SCENARIOS.items():
            print(f"{name:<20} {function.__doc__}")
        print(f"{MESH:<20} Cut layers, stages and batch, on up to {_RANKS[-1]:,} ranks.")
        return 0
    if wanted.scenario is None or wanted.out is None:
        parser.error("a scenario and --out are needed, or --list")
    if wanted.scenario == MESH:
        return _mesh(parser, wanted)
    if wanted.ranks > _MOST_AT_ONCE or wanted.digests:
        parser.error(f"more than {_MOST_AT_ONCE:,} ranks, and digests, are of {MESH} alone")
    try:
        made = simulate(
            wanted.scenario,
            ranks=wanted.ranks,
            seed=wanted.seed,
            age=wanted.age,
            layers=wanted.layers,
            steps=wanted.steps,
            with_truth=not wanted.no_truth,
        )
    except ValueError as error:
        parser.error(str(error))
    made.place(wanted.out, compress=wanted.gzip)
    truth = " and truth.json" if made.truth else ""
    print(f"wrote {len(made.files)} traces{truth} to {wanted.out}")
    return 0


def _mesh(parser: argparse.ArgumentParser, wanted: argparse.Namespace) -> int:
    """Write the traces or digests of a mesh, rank after rank, and its truth."""
    if wanted.age or wanted.gzip:
        parser.error(f"{MESH} has neither --age nor --gzip")
    sizes = {"layers": wanted.layers, "steps": wanted.steps}
    given = {name: size for name, size in sizes.items() if size is not None}
    try:
        made = mesh_job(ranks=wanted.ranks, seed=wanted.seed, **given)
    except ValueError as error:
        parser.error(str(error))
    wanted.out.mkdir(parents=True, exist_ok=True)
    if wanted.digests:
        kept = Cache(wanted.out)
        for one in digests_of(made):
            entry = digest_path(wanted.out, one.health.rank or 0)
            kept.put(entry, Path(one.health.path), [one])
        if kept.complaint:
            parser.error(kept.complaint)
    else:
        for name, data in made.traces():
            (wanted.out / name).write_bytes(data)
    truth = {"scenario": MESH, "seed": wanted.seed} | made.truth()
    (wanted.out / "truth.json").write_text(json.dumps(truth, indent=1) + "\n")
    what = "digests" if wanted.digests else "traces"
    print(f"wrote {wanted.ranks} {what} and truth.json to {wanted.out}")
    return 0


def digest_path(folder: Path, rank: int) -> Path:
    """Return where the digest of a rank is kept."""
    return folder / f"rank{rank}.parquet"


if __name__ == "__main__":
    sys.exit(main())
