"""What jobs need of SLURM, on this machine: ``sbatch``, ``srun`` and ``scancel``, by its name.

A job has as many nodes as its ``#SBATCH`` lines ask for, all of them here. ``FAKE_SLURM`` names
a folder with a process a job.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

_FOLDER = Path(os.environ["FAKE_SLURM"])


def sbatch(*words: str) -> int:
    """Start a script in the background, or run it with ``--wait``."""
    *options, script = words
    text = Path(script).read_text("utf-8")
    nodes = re.search(r"^#SBATCH.*--nodes=(\d+)", text, re.MULTILINE)
    job = str(os.getpid())
    kept = _FOLDER / f"{job}.sh"  # who submits may remove theirs at once
    kept.write_text(text)
    with Path(f"slurm-{job}.out").open("wb") as out:
        process = subprocess.Popen(
            ["bash", str(kept)],
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, "SLURM_JOB_ID": job, "SLURM_NNODES": nodes[1] if nodes else "1"},
        )
    (_FOLDER / job).write_text(str(process.pid))
    sys.stdout.write(f"Submitted batch job {job}\n")
    sys.stdout.flush()
    if "--wait" not in options:
        return 0
    status = process.wait()
    with suppress(ProcessLookupError):  # what the script has left running ends with the job
        os.killpg(process.pid, signal.SIGKILL)
    return status


def srun(*words: str) -> int:
    """Run a command once a node, side by side."""
    command = list(words)
    output = None
    while command[0].startswith("--"):
        name, _, value = command.pop(0).partition("=")
        output = value if name == "--output" else output
    count = os.environ["SLURM_NNODES"]
    processes = []
    for index in range(int(count)):
        env = {"SLURM_PROCID": str(index), "SLURM_NTASKS": count}
        out = Path(output.replace("%N", f"n{index}")).open("wb") if output else None  # noqa: SIM115
        processes.append(
            subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **env})
        )
    return max(process.wait() for process in processes)


def scancel(*jobs: str) -> int:
    """End jobs with all that they started."""
    for job in jobs:
        os.killpg(int((_FOLDER / job).read_text()), signal.SIGTERM)
    return 0


if __name__ == "__main__":
    name, *words = sys.argv[1:]
    sys.exit({"sbatch": sbatch, "srun": srun, "scancel": scancel}[name](*words))
