"""What the page on clusters shows, run as far as one machine without them can.

The scripts are those of the page, made smaller. SLURM's commands are stand-ins
(:mod:`tests.fake_slurm`); dask-jobqueue and dask-kubernetes are what they are, without a
Kubernetes, whose containers' commands run as processes here.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tomllib
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import dask
import dask_kubernetes.operator
import pytest
import yaml
from dask_kubernetes.operator.controller.controller import (
    build_scheduler_service_spec,
    build_worker_deployment_spec,
)
from distributed import Security
from kubernetes.client import ApiClient

from tests.blocks import blocks
from tests.contract.places import ROOT
from tests.traces import write_rank
from tools.newcomer import TRAIN
from traceparse.engine import analyze
from traceparse.errors import UsageError

PAGE = (ROOT / "traceparse" / "docs" / "clusters.md").read_text("utf-8")
WRAPPERS = {
    "python": "",
    "dask": "-m dask",
    "torchrun": "-m torch.distributed.run",
    "traceparse": "-m traceparse",
    **{name: f"-m tests.fake_slurm {name}" for name in ("sbatch", "srun", "scancel")},
}
SMALLER = {
    "--nodes=4": "--nodes=2",
    "--nproc-per-node=8": "--nproc-per-node=1",
    "--nworkers 8": "--nworkers 1",
    "head=$(hostname)": "head=127.0.0.1",
    "cores=8": "cores=1",
    "processes=8": "processes=1",
    "16GB": "1GB",
    "jobs=4": "jobs=1",
    '--out "$run-report"': '--out "$run-report" --format json',  # charts take their time
    "/run-report": "/run-report --format json",
}
_PAUSE_S = 60


def block(language: str, *, which: int = 0) -> str:
    return blocks(PAGE, language)[which]


def smaller(text: str, folder: Path, also: dict[str, str] | None = None) -> str:
    changes = {
        "/shared": str(folder),
        "report/": f"{folder}/report/",
        **SMALLER,
        **(also or {}),
    }
    for before, after in changes.items():
        text = text.replace(before, after)
    return text


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to run scripts in, with the commands that they call."""
    commands = tmp_path / "commands"
    commands.mkdir()
    for name, words in WRAPPERS.items():
        path = commands / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        path.chmod(0o755)
    (tmp_path / "slurm").mkdir()
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("FAKE_SLURM", str(tmp_path / "slurm"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(here):
    folder = here / "run"
    folder.mkdir()
    for rank in range(3):
        write_rank(folder, rank, 3)
    return folder


def same(report: Path, run: Path) -> bool:
    """Say whether a stored report is what one process makes of the traces."""
    stored = json.loads(report.read_text("utf-8"))
    return bool(stored == json.loads(json.dumps(analyze(run).to_dict())))


def batch(here: Path, also: dict[str, str] | None = None) -> tuple[int, str]:
    """Run the batch script of the page; return its status and what it said."""
    (here / "job.sh").write_text(smaller(block("bash"), here, also))
    (here / "train.py").write_text(TRAIN)
    done = subprocess.run(["sbatch", "--wait", "job.sh"], check=False, timeout=_PAUSE_S)
    (said,) = here.glob("slurm-*.out")
    return done.returncode, said.read_text("utf-8")


@pytest.mark.slow
def test_the_batch_script_trains_and_analyzes(here):
    """GIVEN two nodes WHEN the script runs THEN there is a report, and it ends."""
    status, said = batch(here)
    assert status == 0, said
    (run,) = (path for path in here.glob("run-*") if not path.name.endswith("-report"))
    assert len(list(run.glob("rank*_trace.json.gz"))) == 2
    assert same(here / f"{run.name}-report" / "report.json", run)
    logs = [path.read_text("utf-8") for path in sorted(run.glob("workers-*.log"))]
    assert len(logs) == 2
    assert any("Registered to" in log for log in logs)
    assert said.rstrip().endswith("End scheduler")


@pytest.mark.slow
def test_a_batch_script_whose_analysis_fails_ends_as_well(here):
    training = re.search(r"traceparse capture.*?train\.py\n", block("bash"), re.DOTALL)
    assert training is not None
    nothing = 'mkdir "$run"; echo nothing > "$run/rank0.json"\n'
    status, said = batch(here, {smaller(training[0], here): nothing})
    assert status == 1
    assert "rank0.json: " in said
    assert "End scheduler" in said


@pytest.mark.slow
def test_jobqueue_gives_what_one_process_gives(run, here):
    (here / "script.py").write_text(smaller(block("python"), here))
    done = subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert same(here / "report" / "report.json", run)
    (job,) = here.glob("slurm-*.out")
    assert "Start worker at" in job.read_text("utf-8")


@contextmanager
def processes(*commands: tuple[list[str], dict[str, str]]):
    """Run commands beside a test, and end them with it."""
    with ExitStack() as stack:
        started = []
        for command, env in commands:
            process = subprocess.Popen(
                command,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **env},
                start_new_session=True,
            )
            stack.callback(process.wait)
            stack.callback(end, process)
            started.append(process)
        yield started


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process with its children: a worker that is still starting heeds no SIGTERM."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def service_and_job() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(block("yaml")))


@pytest.mark.parametrize("kind", ["Service", "Job"])
def test_kubernetes_knows_every_field(kind):
    """What the client's types do not have would not come back."""
    (given,) = [each for each in service_and_job() if each["kind"] == kind]
    client = ApiClient()
    understood = client.deserialize(json.dumps(given), f"V1{kind}", "application/json")
    assert client.sanitize_for_serialization(understood) == given


def test_pods_find_the_first_one():
    """By the name that Kubernetes gives it, JOB-0.SUBDOMAIN, of a headless service."""
    service, job = service_and_job()
    pod = job["spec"]["template"]["spec"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert service["spec"]["clusterIP"] == "None"
    assert pod["subdomain"] == service["metadata"]["name"]
    (words,) = pod["containers"][0]["args"]
    assert f"address={job['metadata']['name']}-0.{pod['subdomain']}:8786" in words
    assert {"name": "shared"}.items() <= pod["volumes"][0].items()


@pytest.mark.slow
def test_the_pods_of_a_job_make_the_report_and_end(run, here):
    """Each pod a process: the first one's report is that of one process, and all end well."""
    _, job = service_and_job()
    container = job["spec"]["template"]["spec"]["containers"][0]
    port = {
        "traceparse-0.traceparse:8786": f"127.0.0.1:{(one := free_port())}",
        "8786": f"{one}",
    }
    command = [*container["command"], smaller(container["args"][0], here, port)]
    index = "JOB_COMPLETION_INDEX"
    with processes((command, {index: "0"}), (command, {index: "1"})) as pods:
        assert [pod.wait(_PAUSE_S) for pod in pods] == [0, 0]
    assert same(here / "run-report" / "report.json", run)


def test_the_image_has_what_commands_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    image = block("dockerfile")
    extras = re.search(r"/src\[(.*?)\]", image)
    python = re.search(r"^FROM python:(3\.\d+)$", image, re.MULTILINE)
    assert extras is not None
    assert set(extras[1].split(",")) <= project["optional-dependencies"].keys()
    assert python is not None
    assert f"Programming Language :: Python :: {python[1]}" in project["classifiers"]


@pytest.fixture
def spec(monkeypatch):
    """What the page gives to the operator."""
    given = []
    monkeypatch.setattr(
        dask_kubernetes.operator,
        "KubeCluster",
        lambda *, custom_cluster_spec: given.append(custom_cluster_spec),
    )
    exec(compile(block("python", which=1), "clusters.md", "exec"), {})
    return given[0]


def test_the_operator_names_the_service_as_the_page_does(spec):
    name, own = spec["metadata"]["name"], spec["spec"]["scheduler"]["service"]
    service = build_scheduler_service_spec(name, own, {}, {})
    assert f"svc/{service['metadata']['name']} 8786`" in PAGE
    assert 8786 in [port["port"] for port in service["spec"]["ports"]]


@pytest.mark.slow
def test_what_the_operator_starts_makes_the_report(spec, run):
    """GIVEN the commands of its pods WHEN they run here THEN scheduler and worker do."""
    scheduler = spec["spec"]["scheduler"]["spec"]["containers"][0]["args"]
    port, page = free_port(), free_port()
    deployment = build_worker_deployment_spec(
        "default", "", spec["metadata"]["name"], "uuid", spec["spec"]["worker"]["spec"], {}, {}
    )
    pod = deployment["spec"]["template"]["spec"]["containers"][0]
    names = {each["name"]: each["value"] for each in pod["env"]}
    assert names["DASK_SCHEDULER_ADDRESS"].startswith("tcp://traceparse-scheduler.")
    worker = [
        word.replace("$(DASK_WORKER_NAME)", names["DASK_WORKER_NAME"]).replace("8788", ":0")
        for word in pod["args"]
    ]
    with processes(
        ([*scheduler, "--port", f"{port}", "--dashboard-address", f":{page}"], {}),
        (worker, {**names, "DASK_SCHEDULER_ADDRESS": f"tcp://127.0.0.1:{port}"}),
    ):
        assert analyze(run, engine=f"dask://127.0.0.1:{port}") == analyze(run)
        with urlopen(f"http://127.0.0.1:{page}/health") as health:  # what probes look at
            assert health.status == 200


@pytest.mark.slow
def test_tls_keeps_out_who_has_no_certificate(run, here):
    """GIVEN the words of the page WHEN scheduler and worker have them THEN so must who asks."""
    made = Security.temporary()
    (here / "cert.pem").write_text(made.tls_ca_file)
    (here / "key.pem").write_text(made.tls_scheduler_key)
    words = ["--tls-ca-file", "cert.pem", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]
    assert all(f"`{word}`" in PAGE for word in words if word.startswith("--"))
    engine = f"dask://tls://127.0.0.1:{(port := free_port())}"
    tls = "distributed.comm.tls"
    settings = {
        f"{tls}.ca-file": "cert.pem",
        f"{tls}.client.cert": "cert.pem",
        f"{tls}.client.key": "key.pem",
    }
    scheduler = ["dask", "scheduler", "--protocol", "tls", "--host", "127.0.0.1", *words]
    worker = ["dask", "worker", f"tls://127.0.0.1:{port}", "--no-nanny", "--no-dashboard"]
    with processes(
        ([*scheduler, "--port", f"{port}", "--no-dashboard"], {}), ([*worker, *words], {})
    ):
        with dask.config.set(settings):
            assert analyze(run, engine=engine) == analyze(run)
        with pytest.raises(UsageError) as caught:
            analyze(run, engine=engine)
    assert str(caught.value).startswith(f"--engine {engine}: Dask's settings name no certific")
