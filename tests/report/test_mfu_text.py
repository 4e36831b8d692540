"""The calculator's answer, as text and as JSON."""

# ruff: noqa: E501 - lines are what is tested

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from traceparse.report import mfu_json, mfu_text
from traceparse.work.calculator import Calculated
from traceparse.work.job import Answer, Job, answer
from traceparse.work.model import Model

LLAMA = Model(
    layers=32,
    heads=32,
    head_dim=128,
    params=8_030_261_248,
    derived=("head_dim = 128: hidden / heads",),
)


def said(**given: Any) -> Answer:
    known: dict[str, Any] = {
        "model_name": "llama.json",
        "model": LLAMA,
        "convention": "palm",
        "gpus": (64,),
        "device": "a100-sxm-80",
        "dtype": "bf16",
        "peak_flop_per_s": 312e12,
        "seq": 8192,
    }
    return answer(Job(**(known | given)))


def drawn(answered: Answer, draw=mfu_text.render, **options: Any) -> list[str]:
    file = io.StringIO()
    draw(answered, Console(file=file, **({"width": 100} | options)))
    return [line.rstrip() for line in file.getvalue().splitlines()]


LETTERS = (
    "N parameters, L layers, h hidden, H heads, Q head size, s sequence, V vocabulary; FLOP of "
    "forward and backward"
)


def test_a_run_is_a_line_a_figure():
    assert drawn(said(tokens_per_s=2973.0, per_gpu=True, usd_per_gpu_hour=2.0)) == [
        "llama.json on 64 x a100-sxm-80",
        "",
        "MFU         58.2% of the peak",
        "HFU         58.2%, nothing is recomputed",
        "achieved    181.6 TFLOP/s per GPU",
        "throughput  190,272 tokens/s, 2,973 tokens/s per GPU",
        "cost        93.43 GPU-hours per billion tokens, 0.1869 USD per million tokens",
        "peak        312 TFLOP/s per GPU, dense bf16",
        "a token     61.07 GFLOP at 8,192 a sequence, by convention palm: 6N + 12LHQs",
        "counted     causal=full, attn_bwd=2x, embed=in, moe=active",
        "N           8,030,261,248 parameters",
        "derived     head_dim = 128: hidden / heads",
        LETTERS,
    ]


def test_recomputation_is_told_apart_and_a_step_has_its_flop():
    lines = drawn(said(step_s=(3.0,), batch=64, recompute="full"))
    assert lines[2:8] == [
        "MFU         53.4% of the peak",
        "HFU         71.3%, with full recomputation",
        "achieved    222.3 TFLOP/s per GPU",
        "throughput  174,763 tokens/s, 2,731 tokens/s per GPU",
        "step        32.02 PFLOP of the model, 42.69 PFLOP with recomputation",
        "cost        101.7 GPU-hours per billion tokens",
    ]


def test_experts_leave_active_parameters():
    model = Model(params=10**12, active_params=37 * 10**9, experts=256)
    lines = drawn(said(model=model, convention="6nd", tokens_per_s=9.0, seq=None))
    assert "a token  222 GFLOP, by convention 6nd: 6N" in [
        line.replace("a token     ", "a token  ") for line in lines
    ]
    assert "N           37,000,000,000 active parameters" in lines


def test_what_cannot_be_is_an_error_above_all_figures():
    lines = drawn(said(tokens_per_s=6000.0, per_gpu=True))
    assert lines[:4] == [
        "llama.json on 64 x a100-sxm-80",
        "error: MFU 117.4% cannot be: wrong convention or wrong device, as 366.4 TFLOP/s per GPU exceed the peak, 312",
        "",
        "MFU         117.4% of the peak, which cannot be",
    ]


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": None}])
def test_several_runs_are_a_table_and_say_their_scaling(options):
    answered = said(
        gpus=(128, 64), step_s=(1.6, 3.0), batch=64, usd_per_gpu_hour=2.0, recompute="full"
    )
    lines = drawn(answered, width=130, **options)
    assert lines[:7] == [
        "llama.json on 64/128 x a100-sxm-80",
        "",
        "strong scaling, from 64 GPUs on",
        "GPUs  batch  step s  tokens/s/GPU  TFLOP/s/GPU    MFU    HFU  speedup  efficiency  GPU-h/Gtoken  USD/Mtoken  lost USD/Mtoken",
        "  64     64       3         2,731        222.3  53.4%  71.3%     1.00      100.0%         101.7      0.2035                0",
        " 128     64     1.6         2,560        208.4  50.1%  66.8%     1.88       93.8%         108.5       0.217          0.01356",
        "",
    ]
    assert lines[7] == "peak     312 TFLOP/s per GPU, dense bf16"


def test_a_table_without_a_price_has_no_dollars():
    lines = drawn(said(gpus=(64, 128), step_s=(3.0, 3.1), batch=64, mode="weak"))
    assert lines[2:5] == [
        "weak scaling, from 64 GPUs on",
        "GPUs  batch  step s  tokens/s/GPU  TFLOP/s/GPU    MFU  speedup  efficiency  GPU-h/Gtoken",
        "  64     64       3         2,731        166.8  53.4%     1.00      100.0%         101.7",
    ]


def test_a_name_of_a_file_is_shown_and_does_nothing(hostile_text):
    (line, *_) = drawn(said(model_name=hostile_text, tokens_per_s=1.0))
    assert "\x1b" not in line
    assert "[red]loud[/red] \\x1b[31mred" in line
    assert "\\u202egnp.exe" in line


def test_an_output_that_writes_ascii_gets_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    mfu_text.render(said(model_name="modèle.json", tokens_per_s=1.0), Console(file=file))
    file.flush()
    assert b"mod\\xe8le.json on 64 x" in file.buffer.getvalue()


def test_notes_are_apart():
    answered = said(
        model=Model(layers=1, hidden=8, vocab=9, gated_mlp=True),
        convention="megatron",
        tokens_per_s=1.0,
    )
    assert drawn(answered, mfu_text.render_notes, width=200) == [
        "note: megatron counts the layers of GPT-3; this model has a gated MLP: megatron-core or palm counts those"
    ]
    assert not any("note" in line for line in drawn(answered))


# Report contract, section 6
FIELDS = [
    "convention",
    "flop_per_token",
    "model_flop_per_step",
    "hardware_flop_per_step",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "achieved_flop_per_s_per_gpu",
    "mfu",
    "hfu",
    "peak_flop_per_s",
    "gpu_hours_per_billion_tokens",
    "usd_per_million_tokens",
]


def test_json_has_the_names_of_the_contract_first():
    text = mfu_json.render(said(tokens_per_s=2973.0, per_gpu=True))
    figures = json.loads(text)
    assert text.endswith("}\n")
    assert list(figures)[: len(FIELDS)] == FIELDS == list(Calculated.__dataclass_fields__)
    assert figures["model_flop_per_step"] is figures["usd_per_million_tokens"] is None
    assert {name: figures[name] for name in list(figures)[len(FIELDS) :]} == {
        "counts": "causal=full, attn_bwd=2x, embed=in, moe=active",
        "recompute": "none",
        "derived": ["head_dim = 128: hidden / heads"],
        "notes": [],
        "scaling": None,
    }


def test_json_of_several_runs_is_that_of_the_fewest_gpus_with_all_of_them():
    answered = said(gpus=(128, 64), step_s=(1.6, 3.0), batch=64)
    figures = json.loads(mfu_json.render(answered))
    assert figures["tokens_per_s"] == answered.runs[0].tokens_per_s == 64 * 8192 / 3
    assert figures["scaling"]["mode"] == "strong"
    few, many = figures["scaling"]["runs"]
    assert (few["gpus"], few["batch"], few["step_s"]) == (64, 64, 3.0)
    assert (few["speedup"], few["efficiency"], few["mfu"]) == (1.0, 1.0, figures["mfu"])
    assert (many["gpus"], many["efficiency"]) == (128, 3.0 / 1.6 / 2)
    assert many["mfu"] == answered.runs[1].mfu


def test_json_says_what_cannot_be():
    (note,) = json.loads(mfu_json.render(said(tokens_per_s=1e9)))["notes"]
    assert note["code"] == "impossible_mfu"
    assert note["message"].startswith(
        "MFU 305,821.7% cannot be: wrong convention or wrong device, as 954,164 TFLOP/s"
    )
