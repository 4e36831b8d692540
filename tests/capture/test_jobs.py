"""Real jobs, in processes of their own: what ends them, and how they are run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

import traceparse
from tests.capture.loops import facts_beside, kept_names, names_in, read, step_names

pytestmark = pytest.mark.slow

HOME = str(Path(traceparse.__file__).parents[1])

HEAD = """
import atexit, os, signal, sys
import torch

def batch_step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()

def pair():
    model = torch.nn.Linear(3, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)
"""

LOOP = """
import traceparse
out = sys.argv[1]
def loop(steps, at):
    model, optimizer = pair()
    with traceparse.profile(out, steps=steps) as prof:
        for step in range(8):
            batch_step(model, optimizer)
            at(step)
            prof.step()
"""

#: Jobs that capture by themselves; each gets its folder as its argument.
ALONE = {
    "terminated": """
        loop(range(2, 7), lambda step: step == 4 and os.kill(os.getpid(), signal.SIGTERM))
    """,
    "own_handler": """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        loop(range(2, 7), lambda step: step == 4 and os.kill(os.getpid(), signal.SIGTERM))
    """,
    "forks": """
        def at(step):
            if step != 4:
                return
            for number in range(3):
                child = os.fork()
                if not child and number == 0:
                    sys.exit(11)
                if not child and number == 1:
                    os.kill(os.getpid(), signal.SIGTERM)
                if not child:
                    return  # trains on, and says its steps
                children.append(child)
        children, parent = [], os.getpid()
        try:
            loop(range(2, 7), at)
        except SystemExit:
            pass
        if os.getpid() != parent:
            # As multiprocessing leaves: by itself torch never does, forked while it records.
            atexit._run_exitfuncs()
            os._exit(11 if not children else 12)
        print([os.waitpid(child, 0)[1] for child in children], sorted(os.listdir(out)))
    """,
}


@dataclass(frozen=True)
class Done:
    folder: Path
    status: int
    out: str
    err: str

    @property
    def trace(self) -> Path:
        return self.folder / "rank0_trace.json.gz"


def run(folder: Path, command: list[str], environment: Mapping[str, str]) -> Done:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
        timeout=60,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdin=subprocess.DEVNULL,
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("USDT:")]
    return Done(folder, done.returncode, done.stdout, "\n".join(said))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    def one(name: str) -> Done:
        folder = tmp_path_factory.mktemp(name) / "out"
        script = folder.parent / "job.py"
        script.write_text(HEAD + LOOP + textwrap.dedent(ALONE[name]))
        return run(folder, [sys.executable, str(script), str(folder)], {"PYTHONPATH": HOME})

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(ALONE, pool.map(one, ALONE), strict=True))


def spans(first: int, last: int) -> list[str]:
    return [f"ProfilerStep#{step}" for step in range(first, last + 1)]


def test_a_job_that_is_terminated_has_a_whole_trace(alone: dict[str, Done]) -> None:
    done = alone["terminated"]
    assert done.status == -signal.SIGTERM, done.err
    assert names_in(done.folder) == kept_names([0])
    assert step_names(done.trace) == spans(2, 4)
    assert done.err.splitlines() == [
        f"traceparse: {done.trace}: the job is told to end (SIGTERM) in step 4: what is "
        "recorded until now is kept",
        f"traceparse: {done.trace}: steps 2-6 were asked for, but the loop ended in step 4 "
        "before its step() was called: the trace has that step cut short or empty",
    ]


def test_a_job_with_a_handler_of_its_own_ends_in_its_own_way(alone: dict[str, Done]) -> None:
    done = alone["own_handler"]
    assert done.status == 5, done.err
    assert step_names(done.trace) == spans(2, 4)
    assert "SIGTERM" not in done.err


def test_children_of_a_job_that_records_do_nothing_of_ours(alone: dict[str, Done]) -> None:
    """GIVEN one that exits, one that is terminated and one that trains on THEN one trace."""
    done = alone["forks"]
    assert done.status == 0, done.err
    statuses = [11 << 8, int(signal.SIGTERM), 12 << 8]
    assert done.out == f"{statuses} {kept_names([0])}\n"
    assert step_names(done.trace) == spans(2, 6)
    assert done.err == ""


TRAINS = """
model, optimizer = pair()
for step in range(int(os.environ.get("STEPS", 6))):
    batch_step(model, optimizer)
print("trained", sys.argv[1:])
"""

WORKERS = """
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, place):
        return torch.full((3,), float(place))

if __name__ == "__main__":
    model, optimizer = pair()
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(
            Data(), batch_size=2, num_workers=1, multiprocessing_context=context
        )
        for batch in loader:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
    heavy = {"pandas", "pyarrow", "traceparse.engine", "traceparse.ingest", "rich", "typer"}
    site = sys.modules["sitecustomize"].__file__
    print(sorted(heavy & set(sys.modules)), site, os.getcwd() in sys.path)
"""

NAMED = """
import loops

def train_step(model, optimizer):
    for _ in range(3):
        batch_step(model, optimizer)

made = pair()
for _ in range(6):
    train_step(*made)
    loops.step(batch_step, *made)
"""

CLI = [sys.executable, "-m", "traceparse", "capture", "--steps", "2-3", "--out"]


@dataclass(frozen=True)
class Job:
    code: str
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = (sys.executable, "job.py")
    environment: Mapping[str, str] | None = None


#: Jobs that know nothing of a capture.
COMMANDS = {
    "plain": Job(TRAINS, (), (sys.executable, "job.py", "--lr", "1 2")),
    "twice": Job(
        TRAINS, (), ("sh", "-c", f"{sys.executable} job.py; {sys.executable} job.py; exit 4")
    ),
    "workers": Job(WORKERS, environment={"PYTHONPATH": os.pathsep.join([HOME, "own"])}),
    "isolated": Job("", (), (sys.executable, "-I", "job.py")),
    "short": Job(TRAINS, environment={"STEPS": "2"}),
    "killed": Job(TRAINS + "os.kill(os.getpid(), signal.SIGKILL)\n", ("--quiet",)),
    "named_main": Job(NAMED, ("--step-on", "__main__:train_step")),
    "named_module": Job(NAMED, ("--step-on", "loops:step")),
    "named_none": Job(NAMED, ("--step-on", "__main__:no_such_function")),
}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    def one(name: str) -> Done:
        job = COMMANDS[name]
        folder = tmp_path_factory.mktemp(name) / "out"
        (folder.parent / "own").mkdir()
        # at once: processes that start together write between a line and its end
        own = "import os\nos.write(1, b'my own site\\n')\n"
        (folder.parent / "own" / "sitecustomize.py").write_text(own)
        (folder.parent / "loops.py").write_text("def step(it, *made):\n    it(*made)\n")
        (folder.parent / "job.py").write_text((HEAD if job.code else "") + job.code)
        command = [*CLI, str(folder), *job.options, "--", *job.command]
        return run(folder, command, {"PYTHONPATH": HOME, **(job.environment or {})})

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(COMMANDS, pool.map(one, COMMANDS), strict=True))


def now(folder: Path) -> str:
    return f"traceparse: {folder}: 1 trace; now: traceparse analyze {folder}"


def nothing(folder: Path) -> str:
    return (
        f"traceparse: {folder}: no trace was written: no process of the command ended step 2, "
        "as far as torch's optimizers tell; ask for earlier steps, or name the function that "
        "is a step with --step-on MODULE:FUNCTION"
    )


def test_a_job_that_knows_nothing_has_a_trace(commands: dict[str, Done]) -> None:
    done = commands["plain"]
    assert done.status == 0, done.err
    assert done.out == "trained ['--lr', '1 2']\n"
    assert done.err == now(done.folder)
    assert names_in(done.folder) == kept_names([0])
    assert step_names(done.trace) == spans(2, 3)
    told = facts_beside(done.trace)
    assert (told["step_on"], told["steps"]) == ("optimizer", [2, 3])
    assert (told["num_params"], told["samples_per_rank_step"]) == (8, 2)
    names = [event["name"] for event in read(done.trace)["traceEvents"]]
    assert names.count("Optimizer.step#SGD.step") == 2


def test_of_two_jobs_one_after_the_other_the_first_is_kept(commands: dict[str, Done]) -> None:
    done = commands["twice"]
    assert done.status == 4
    assert done.out == "trained []\n" * 2
    assert done.err.splitlines() == [
        f"traceparse: no trace was kept, training goes on: {done.trace}: there is a trace of "
        "rank 0 already; choose another directory, or pass overwrite=True to replace it",
        now(done.folder),
    ]
    assert names_in(done.folder) == kept_names([0])


def test_workers_and_what_is_of_the_user_are_not_disturbed(commands: dict[str, Done]) -> None:
    done = commands["workers"]
    assert done.status == 0, done.err
    *sites, seen = done.out.splitlines()
    assert set(sites) == {"my own site"}
    own = done.folder.parent / "own" / "sitecustomize.py"
    assert seen == f"[] {own} True"
    assert step_names(done.trace) == spans(2, 3)
    assert done.err == now(done.folder)


def test_a_python_that_is_isolated_leaves_no_trace_and_it_is_said(
    commands: dict[str, Done],
) -> None:
    done = commands["isolated"]
    assert (done.status, done.out, done.err) == (0, "", nothing(done.folder))


def test_a_job_that_ends_before_the_steps_says_so(commands: dict[str, Done]) -> None:
    done = commands["short"]
    assert done.status == 0
    early, empty, last = done.err.splitlines()
    assert early == (
        f"traceparse: {done.trace}: steps 2-3 were asked for, but the loop ended in step 2 "
        "before its step() was called: the trace has that step cut short or empty"
    )
    assert empty.startswith(
        f"traceparse: no trace was kept, training goes on: {done.trace}: the trace has no "
        "kernel, copy or operator, only "
    )
    assert last == nothing(done.folder)
    assert names_in(done.folder) == []


def test_a_job_that_is_killed_ends_the_command_by_the_same_signal(
    commands: dict[str, Done],
) -> None:
    """And the trace is kept all the same, by a process beside it."""
    done = commands["killed"]
    assert done.status == -signal.SIGKILL
    assert done.err == ""
    assert step_names(done.trace) == spans(2, 3)


@pytest.mark.parametrize(
    ("name", "step_on"),
    [
        ("named_main", "__main__:train_step"),
        ("named_module", "loops:step"),
    ],
)
def test_steps_end_where_a_function_returns(
    commands: dict[str, Done], name: str, step_on: str
) -> None:
    done = commands[name]
    assert done.status == 0, done.err
    assert done.err == now(done.folder)
    assert step_names(done.trace) == spans(2, 3)
    assert facts_beside(done.trace)["step_on"] == step_on
    events = read(done.trace)["traceEvents"]
    num = sum(event["name"] == "Optimizer.step#SGD.step" for event in events)
    assert num == 2 * 4


def test_a_function_that_there_is_not_is_said(commands: dict[str, Done]) -> None:
    done = commands["named_none"]
    assert done.status == 0
    assert done.err.splitlines() == [
        "traceparse: an optimizer has stepped, and __main__:no_such_function is not there yet: "
        "no step is counted before it is",
        nothing(done.folder),
    ]


def test_a_command_that_there_is_not_is_a_wrong_use(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(out, [*CLI, str(out), "--", "no_such_command"], {"PYTHONPATH": HOME})
    assert done.status == 2
    assert "'no_such_command': no such command; give it behind --" in done.err


def test_traces_that_are_there_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "rank0_trace.json.gz").touch()
    done = run(out, [*CLI, str(out), "--", "true"], {"PYTHONPATH": HOME})
    assert done.status == 1
    assert "there is a trace already; choose another --out, or give --overwrite" in done.err
