"""What the user gives, and what is refused in words."""

from __future__ import annotations

from fractions import Fraction

import pytest

from traceparse.errors import UsageError
from traceparse.run import Asked, ask
from traceparse.run.conventions import conventions_of


def test_nothing_asked_is_nothing_assumed():
    assert ask() == Asked()


def test_params_and_tokens_are_six_nd_and_with_recomputation_eight():
    asked = ask(params=8e9, tokens_per_step=4e6, recompute="full")
    assert asked.model_flop_per_step == Fraction(6 * 8 * 4 * 10**15)
    assert asked.hardware_flop_per_step == Fraction(8 * 8 * 4 * 10**15)
    assert asked.convention == "6nd"
    assert ask(params=8e9, tokens_per_step=4e6).hardware_flop_per_step is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"params": 1, "tokens_per_step": 1, "model_flop_per_step": 1},
            "--params and --model-flop-per-step (or --model) both say what the model needs; "
            "give one of them",
        ),
        ({"params": 1}, "--params needs --tokens-per-step: a step of the model is 6ND"),
        (
            {"recompute": "full"},
            "--recompute full needs --params and --tokens-per-step: it means 8ND",
        ),
        (
            {"params": 1, "tokens_per_step": 1, "recompute": "some"},
            "--recompute 'some': only full is a rule, 8ND instead of 6ND",
        ),
        ({"params": 0}, "--params 0: give a number above zero, such as 8e9"),
        (
            {"model_flop_per_step": float("inf")},
            "--model-flop-per-step inf: give a number above zero, such as 8e9",
        ),
        (
            {"tokens_per_step": 1e31},
            "--tokens-per-step 1e+31: give a number above zero, such as 8e9",
        ),
        ({"ceiling": "sky"}, "--ceiling 'sky': there are spec and mamf"),
        ({"price": 0}, "--price 0: give USD per GPU-hour, such as 2.5"),
        ({"price": float("nan")}, "--price nan: give USD per GPU-hour, such as 2.5"),
        (
            {"peak": {"bf17": 1e12}},
            "peak of 'bf17': dtypes are fp64, fp64_tensor, fp32, tf32, bf16, fp16, fp8, fp4, "
            "int8",
        ),
        (
            {"peak": {"bf16": 989}},
            "peak of bf16: 989 is no peak in FLOP/s; write 989 TFLOP/s as 989e12",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(given, message):
    with pytest.raises(UsageError) as caught:
        ask(**given)
    assert str(caught.value) == message


def test_conventions_have_the_names_of_the_contract():
    chosen = ["causal=half", "causal=top-left", "attn_bwd=2.5x", "moe=padded", "mine", "a=b"]
    assert conventions_of([*chosen, *chosen], "palm") == {
        "a": "b",
        "attention_backward": "2.5x",
        "causal_attention": "half",
        "causal_corner": "top-left",
        "expert_rows": "padded",
        "mine": "",
        "model_flop": "palm",
    }
    assert conventions_of(["varlen=self", "varlen=equal lengths"], None) == {
        "variable_lengths": "equal lengths, self"
    }
