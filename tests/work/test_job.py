# ruff: noqa: E501 - messages are what is tested

from __future__ import annotations

from typing import Any

import pytest

from traceparse.errors import UsageError
from traceparse.work.calculator import calculate
from traceparse.work.job import Job, answer
from traceparse.work.model import Model

GPT = Model(layers=105, hidden=20480, vocab=51200, gated_mlp=True)


def job(**given: Any) -> Job:
    known: dict[str, Any] = {
        "model_name": "gpt.toml",
        "model": GPT,
        "convention": "megatron",
        "gpus": (280,),
        "device": "a100-sxm-80",
        "dtype": "bf16",
        "peak_flop_per_s": 312e12,
        "seq": 2048,
    }
    return Job(**(known | given))


def test_one_run_is_calculated_and_not_compared():
    said = answer(job(batch=280, step_s=(37.83,)))
    assert said.runs == (
        calculate(
            GPT,
            convention="megatron",
            batch=280,
            seq=2048,
            gpus=280,
            step_s=37.83,
            peak_flop_per_s=312e12,
        ),
    )
    assert (said.gpus, said.batches, said.scaled, said.errors) == ((280,), (280,), (), ())


def test_several_runs_stand_in_order_of_gpus_each_with_its_batch():
    said = answer(job(gpus=(2240, 280), step_s=(39.15, 37.83), batch=280, mode="weak"))
    assert said.gpus == (280, 2240)
    assert said.batches == (280, 2240)
    assert [row.gpus for row in said.scaled] == [280, 2240]
    assert [round(run.mfu, 3) for run in said.runs] == [0.560, 0.542]


def test_without_a_batch_a_throughput_is_enough():
    said = answer(job(tokens_per_s=15_158.0))
    assert said.batches == (None,)
    assert said.runs[0].mfu == pytest.approx(0.560, abs=5e-4)


def test_what_cannot_be_is_an_error_of_its_run_and_what_differs_a_note():
    said = answer(job(gpus=(280, 560), step_s=(37.83, 9.0), batch=280))
    assert [note.message for note in said.errors] == [
        "MFU 117.8% on 560 GPUs cannot be: wrong convention or wrong device, as 367.5 TFLOP/s "
        "per GPU exceed the peak, 312"
    ]
    assert {note.code for note in said.errors} == {"impossible_mfu"}
    assert [(note.code, note.message) for note in said.notes] == [
        (
            "convention_differs",
            "megatron counts the layers of GPT-3; this model has a gated MLP: megatron-core or "
            "palm counts those",
        )
    ]


def test_more_than_any_matmul_is_an_error_too_and_names_both_figures():
    said = answer(job(batch=280, step_s=(30.0,), recompute="selective", mamf_flop_per_s=200e12))
    assert [note.message for note in said.errors] == [
        "MFU 70.7% (HFU 71.8%) cannot be: wrong convention or wrong device, as 224.1 TFLOP/s "
        "per GPU exceed the fastest matrix product that was measured on it, 200"
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gpus": (), "step_s": (1.0,)}, "the number of GPUs is missing; give --gpus"),
        (
            {"gpus": (8, 16), "step_s": (1.0,)},
            "2 of --gpus and 1 of --step-s; give as many of the one as of the other, in the same "
            "order, or one of --tokens-per-s",
        ),
        (
            {},
            "1 of --gpus and 0 of --step-s; give as many of the one as of the other, in the same "
            "order, or one of --tokens-per-s",
        ),
        (
            {"gpus": (8, 16), "tokens_per_s": 1.0},
            "--tokens-per-s goes with one of --gpus and without --step-s; to compare several "
            "numbers of GPUs give a --step-s for each",
        ),
        (
            {"step_s": (1.0,), "tokens_per_s": 1.0},
            "--tokens-per-s goes with one of --gpus and without --step-s; to compare several "
            "numbers of GPUs give a --step-s for each",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(given, message):
    with pytest.raises(UsageError) as caught:
        answer(job(**given))
    assert str(caught.value) == message
