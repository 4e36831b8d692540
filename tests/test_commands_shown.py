"""Every command that the README and the pages of commands show runs, and says what it should.

They speak of the jobs of :mod:`tests.examples`. A word that stands for something else is
changed by ``WORDS``; what cannot run here is in ``NOT_HERE``, with the reason.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import pytest

from tests.blocks import blocks
from tests.contract.places import ROOT
from tests.examples import lay_out
from tools.newcomer import TRAIN

PAGES = [ROOT / "README.md", *sorted((ROOT / "traceparse" / "docs").glob("*.md"))]
SHELLS = ("", "sh", "console", "bash")
WORDS = {
    "n64/": "n16/",  # a size that is simulated in no time
    "n512/": "n4/",
    "[H100]": "h100",  # brackets: may be left out
    "traces": "recorded",  # where to record: what is there is not touched
    "python": sys.executable,
}
# the start of a line, and why it cannot run in a test
NOT_HERE = {
    "traceparse capture --out traces --steps 10-12 -- torchrun": "eight ranks on one host; "
    "tests/capture/test_jobs.py runs torchrun with two",
    "traceparse analyze /shared/run --engine dask://HOST:8786": "a scheduler on another host; "
    "tests/engine/test_dask_engine.py starts one on this",
    'traceparse capture --out "$run"': "a SLURM job; tests/engine/test_clusters.py runs it",
    'traceparse analyze "$run"': "the same",
    "traceparse demo": "trains for half a minute; tests/cli/test_demo.py runs it, smaller",
}
MAY_FAIL = {"check": (0, 3)}  # whether a limit is crossed is the job's
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}


def shown() -> list[str]:
    """Return the lines with a command of ours, each once, in the order of the pages."""
    lines = [
        line.removeprefix("$ ")
        for page in PAGES
        for block in blocks(page.read_text("utf-8"), *SHELLS)
        for line in block.splitlines()
    ]
    usage = re.compile(r"\[OPTIONS\]|\bRUN RUN\b")
    ours = [line for line in lines if line.startswith("traceparse ") and not usage.search(line)]
    return list(dict.fromkeys(ours))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    lay_out(folder)
    (folder / "train.py").write_text(TRAIN)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def test_commands_are_shown_and_what_cannot_run_is_among_them():
    assert len(shown()) > 40
    for start in NOT_HERE:
        assert any(line.startswith(start) for line in shown()), start


@pytest.mark.slow
@pytest.mark.parametrize("line", shown())
def test_a_command_that_is_shown_runs(jobs, line):
    for start, why in NOT_HERE.items():
        if line.startswith(start):
            pytest.skip(why)
    command, _, then = line.partition(" | ")
    _, *words = (WORDS.get(word, word) for word in shlex.split(command, comments=True))
    shutil.rmtree(jobs / "recorded", ignore_errors=True)  # another line's
    done = subprocess.run(
        [sys.executable, "-m", "traceparse", *words],
        cwd=jobs,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in MAY_FAIL.get(words[0], (0,)), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout or "--out" in words or "-o" in words
    if then.startswith("jq ."):
        assert then.split()[1].removeprefix(".") in json.loads(done.stdout)
