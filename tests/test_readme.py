"""What the README shows besides commands: its links lead somewhere, its examples do it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib

import msgspec
import pytest

import traceparse
from tests.blocks import blocks, without_blocks
from tests.contract.places import ROOT
from tests.traces import job, kernel, launch, op, write
from traceparse.rank.classify import Family
from traceparse.work import load_file

TEXT = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "traceparse" / "docs").glob("*.md"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
DEVICE = {"name": "ACME X1 96GB", "totalGlobalMem": 96 << 30, "numSms": 100}


def block(heading: str, language: str, number: int = 0) -> str:
    """Return one of the code blocks of a section."""
    section = TEXT.split(f"\n### {heading}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return blocks(section, language)[number]


def anchors(text: str) -> set[str]:
    """Return what headings are called in links, as GitHub has them."""
    titles = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text("utf-8")
    for link in LINK.findall(without_blocks(text)):
        path, _, anchor = link.partition("#")
        if path.startswith("http"):
            continue
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text("utf-8")), link


def test_an_accelerator_of_a_file_has_its_peaks(tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text(block("An accelerator", "toml"))
    (entry,) = load_file(file)
    assert (entry.id, entry.names) == ("acme-x1", ["ACME X1 96GB"])
    events = [
        op(1, 50, "aten::mm", **shapes([[4096, 4096], [4096, 4096]])),
        launch(10, correlation=1),
        kernel(100, 1000, correlation=1),
    ]
    path = write(tmp_path / "rank0.json", events, deviceProperties=[{"id": 0, **DEVICE}])
    report = traceparse.analyze(path, accelerator=str(file))
    assert report.utilization is not None
    assert report.utilization["hfu"] == pytest.approx(2 * 4096**3 / 480e12 / 1e-3)


def shapes(dims, kind="c10::BFloat16"):
    return {
        "Input Dims": dims,
        "Input type": [kind] * len(dims),
        "Concrete Inputs": [""] * len(dims),
    }


def test_a_formula_of_another_package_counts(tmp_path):
    """x is 2x4, gate and up are 4x(2x3), down is 3x4."""
    package = tmp_path / "site" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "flops.py").write_text(block("A formula", "python"))
    (points,) = tomllib.loads(block("A formula", "toml"))["project"]["entry-points"].items()
    about = tmp_path / "site" / "acme-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    lines = [f"[{points[0]}]", *(f"{name} = {value}" for name, value in points[1].items())]
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    events = [
        op(1, 50, "acme::gated_mlp", **shapes([[2, 4], [4, 6], [3, 4]])),
        launch(10, correlation=1),
        kernel(100, 10, correlation=1),
        op(60, 20, "acme::gated_mlp", **shapes([[2, 4], [5, 6], [3, 5]])),
        launch(61, correlation=2),
        kernel(120, 10, correlation=2),
    ]
    path = write(tmp_path / "rank0.json", events, distributedInfo=job(0))
    done = subprocess.run(
        [sys.executable, "-m", "traceparse", "analyze", str(path), "--json", "--no-cache"],
        env={**os.environ, "PYTHONPATH": f"{package.parent}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    assert report["utilization"]["executed_flop"] == 2 * (2 * 4 * 6 + 2 * 3 * 4)
    assert "do not fit each other" in done.stdout
    told = report["run"]["conventions"]["formulas"]
    assert told == "acme::gated_mlp by acme.flops:gated_mlp 1.0"


def test_a_kernel_family_is_of_the_form_of_the_table():
    (family,) = msgspec.toml.decode(
        block("A kernel family", "toml"), type=dict[str, list[Family]]
    )["family"]
    assert family.kind == "comm"
    assert re.search(rf"(?<![a-z])(?:{family.pattern})", "void acclDevKernel_AllReduce<half>")


def test_a_recording_by_torch_itself_is_three_whole_steps(tmp_path):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(64, 64)
    (tmp_path / "traces").mkdir()
    script = block("Plain torch, DDP, FSDP", "python").replace("traces/", f"{tmp_path}/traces/")
    known = {
        "loader": torch.ones(14, 8, 64),
        "rank": 3,
        "train": lambda batch: layer(batch).sum().backward(),
    }
    with pytest.warns(UserWarning, match="disabling CUDA"):  # this torch is of CPUs
        exec(script, known)
    report = traceparse.analyze(tmp_path / "traces")
    assert [device.rank for device in report.devices] == [3]
    assert report.summary.num_device_steps == 3
    assert report.utilization is not None
    assert report.utilization["executed_flop"] > 0
