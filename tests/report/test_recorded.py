from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.test_terminal import lines
from traceparse.report import html, terminal
from traceparse.report.recorded import overhead_text, recorded_text

FACTS = {
    "torch_version": "2.13.0+cpu",
    "cuda_version": None,
    "num_params": 1_234_567,
    "num_embedding_params": 512_000,
    "param_dtypes": {"float32": 1_234_567},
    "checkpointing": True,
    "compiled": False,
    "tokens_per_step": 4_096,
    "capture_overhead_ratio": 0.0312,
}
WORDS = (
    "torch 2.13.0+cpu, 1.2 M parameters (0.5 M of embeddings), float32, activation "
    "checkpointing, not compiled, 4,096 tokens a step"
)


def told(report, **facts):
    return replace(report, run=replace(report.run, facts=facts))


def test_without_facts_nothing_is_said(report):
    assert (overhead_text(report), recorded_text(report)) == (None, None)
    silent = told(report, **dict.fromkeys(FACTS))
    assert (overhead_text(silent), recorded_text(silent)) == (None, None)
    assert "capture:" not in "\n".join(lines(terminal.render, silent))
    assert "capture:" not in html.render(silent)


@pytest.mark.parametrize(
    ("ratio", "how"),
    [
        (0.0312, "3.1% slower than"),
        (1.5, "150.0% slower than"),
        (0.0006, "0.1% slower than"),
        *((value, "no slower than") for value in (0.0004, 0.0, -0.0, -0.02)),
    ],
)
def test_the_cost_of_capture_in_words(report, ratio, how):
    found = told(report, capture_overhead_ratio=ratio)
    assert overhead_text(found) == f"profiled steps were {how} unprofiled ones"


def test_the_terminal_says_it_below_the_verdict(report):
    verdict, cost, recorded, *_ = lines(terminal.render, told(report, **FACTS), 200)
    assert verdict == "compute 60.0%, exposed comm 20.0%"
    assert cost == "Cost of capture: profiled steps were 3.1% slower than unprofiled ones"
    assert recorded == f"Recorded by capture: {WORDS}"


def test_the_page_says_it(report):
    page = html.render(told(report, **FACTS))
    cost = "profiled steps were 3.1% slower than unprofiled ones"
    assert f'<p class="muted">Cost of capture: {cost}.</p>' in page
    assert f'<p class="muted premise">Recorded by capture: {WORDS}.</p>' in page


def test_a_large_job(report):
    found = told(
        report,
        torch_version="2.12.0",
        cuda_version="13.0",
        hip_version="6.4",
        nccl_version="2.27.3",
        device_name="NVIDIA H200",
        num_params=405_000_000_000,
        param_dtypes={"bfloat16": 4, "float32": 1},
        autocast_dtype="bfloat16",
        checkpointing=False,
        compiled=True,
        meshes=[{"names": ["dp", "tp"], "shape": [2, 4]}, {"names": None, "shape": [1024, 8]}],
        samples_per_step=1,
        samples_per_rank_step=1,
        tokens_per_rank_step=8_192,
    )
    assert recorded_text(found) == (
        "torch 2.12.0, CUDA 13.0, ROCm 6.4, NCCL 2.27.3, NVIDIA H200, 405.0 B parameters, "
        "bfloat16 and float32, autocast to bfloat16, no activation checkpointing, compiled, "
        "mesh dp 2 x tp 4, mesh 1,024 x 8, 8,192 tokens a step on each rank, 1 sample a step"
    )


def test_hostile_texts_are_harmless(report):
    evil = "<script>\x1b[2J\u202e" + "x" * 250
    found = told(
        report,
        device_name=evil,
        torch_version=evil,
        autocast_dtype=evil,
        param_dtypes={evil: 1},
        meshes=[{"names": [evil], "shape": [1]}],
    )
    page = html.render(found)
    assert "<script>\\" not in page
    for text in (page, "\n".join(lines(terminal.render, found))):
        assert not set("\x1b\u202e") & set(text)
        assert "x" * 60 not in text
