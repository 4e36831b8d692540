from __future__ import annotations

import json
import sys

import pytest

from tests.work import configs
from traceparse import cli

OWN = """
[[accelerator]]
id = "my-gpu"
names = ["My GPU"]
dense_tflop_per_s = { bf16 = 100.0, fp8 = 200.0 }
"""


@pytest.fixture
def mfu(monkeypatch, capsys):
    """Run the command as the installed program does: exit status, output, errors."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["traceparse", "mfu", *map(str, words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


@pytest.fixture
def llama(tmp_path):
    path = tmp_path / "llama.json"
    path.write_text(json.dumps(configs.LLAMA3_8B))
    return path


def of_8b(llama, *more):
    """torchtitan's run of Llama-3-8B on 64 A100."""
    words = ["--model", llama, "--tokens-per-s", 2973, "--per-gpu", "--seq", 8192]
    return [*words, "--gpus", 64, "--accelerator", "a100-sxm-80", *more]


def test_the_result_and_nothing_else(mfu, llama):
    status, out, err = mfu(*of_8b(llama))
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].endswith("llama.json on 64 x a100-sxm-80")
    assert "MFU         58.2% of the peak" in lines
    assert (
        "a token     61.07 GFLOP at 8,192 a sequence, by convention palm: 6N + 12LHQs" in lines
    )
    assert "derived     params = 8,030,261,248: counted from the shape" in lines


def test_json_and_nothing_else_another_convention_and_a_price(mfu, llama):
    status, out, err = mfu(
        *of_8b(llama, "--json", "--convention", "torchtitan", "--price", "2", "--batch", "64")
    )
    figures = json.loads(out)
    assert (status, err) == (0, "")
    assert figures["convention"] == "torchtitan"
    assert figures["mfu"] == pytest.approx(0.552, abs=5e-4)
    assert figures["usd_per_million_tokens"] == pytest.approx(0.18686, rel=1e-4)
    assert figures["model_flop_per_step"] == figures["flop_per_token"] * 64 * 8192


def test_notes_go_to_standard_error(mfu, llama):
    status, out, err = mfu(*of_8b(llama, "--convention", "megatron"))
    assert status == 0
    assert err.startswith(
        "note: megatron counts the layers of GPT-3; this model has a gated MLP"
    )
    assert "note:" not in out


def test_parameters_alone_are_enough_for_6nd_and_8nd(mfu):
    words = ["--params", "175e9", "--gpus", 1024, "--tokens-per-s", 102_400]
    words += ["--peak-tflops", 312, "--json", "--recompute", "full"]
    figures = json.loads(mfu(*words)[1])
    assert figures["convention"] == "6nd"
    assert figures["flop_per_token"] == 1_050_000_000_000
    assert figures["hfu"] == pytest.approx(8 * 175e9 * 100 / 312e12)
    assert figures["mfu"] == pytest.approx(6 * 175e9 * 100 / 312e12)


def test_a_file_may_say_the_sequence_and_an_option_says_otherwise(mfu, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("params = 1000000\nlayers = 2\nheads = 3\nhead_dim = 4\nseq = 100\n")
    words = ["--model", path, "--gpus", 1, "--tokens-per-s", 1, "--peak-tflops", 1, "--json"]
    assert json.loads(mfu(*words)[1])["flop_per_token"] == 6_000_000 + 12 * 2 * 3 * 4 * 100
    more = json.loads(mfu(*words, "--seq", 200)[1])
    assert more["flop_per_token"] == 6_000_000 + 12 * 2 * 3 * 4 * 200


def test_pairs_are_scaling_strong_unless_it_says_weak(mfu, llama):
    words = ["--model", llama, "--seq", 8192, "--batch", 64, "--accelerator", "a100-sxm-80"]
    words += ["--gpus", 64, "--step-s", 3.0, "--gpus", 128, "--step-s", 1.6]
    status, out, err = mfu(*words)
    assert (status, err) == (0, "")
    assert "strong scaling, from 64 GPUs on" in out
    assert "93.8%" in out
    strong = json.loads(mfu(*words, "--json")[1])["scaling"]
    weak = json.loads(mfu(*words, "--json", "--mode", "weak")[1])["scaling"]
    assert [run["batch"] for run in strong["runs"]] == [64, 64]
    assert [run["batch"] for run in weak["runs"]] == [64, 128]
    assert weak["runs"][1]["efficiency"] == 3.0 / 1.6


def test_the_peak_is_that_of_the_dtype(mfu, tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    words = ["--params", 1000, "--gpus", 1, "--tokens-per-s", 1, "--json", "--accelerator"]
    assert json.loads(mfu(*words, "h100-sxm")[1])["peak_flop_per_s"] == 989.4e12
    assert json.loads(mfu(*words, "A100-PCIE-40GB")[1])["peak_flop_per_s"] == 312e12
    assert (
        json.loads(mfu(*words, "h100-sxm", "--dtype", "fp8")[1])["peak_flop_per_s"] == 1978.9e12
    )
    assert json.loads(mfu(*words, path, "--dtype", "fp8")[1])["peak_flop_per_s"] == 200e12


def test_more_than_was_ever_measured_is_an_error_line_and_no_boast(mfu, llama):
    # 87 % of an A100's peak is the fastest matrix product that was measured on it
    status, out, _ = mfu(*of_8b(llama), "--convention", "6nd", "--tokens-per-s", 5700)
    assert status == 0
    assert out.splitlines()[1] == (
        "error: MFU 88.0% cannot be: wrong convention or wrong device, as 274.6 TFLOP/s per "
        "GPU exceed the fastest matrix product that was measured on it, 271.2"
    )
    # of a peak that was given, nothing is known but the peak
    words = ["--params", "8.03e9", "--gpus", 1, "--tokens-per-s", 5700, "--peak-tflops", 312]
    assert "error" not in mfu(*words)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "give --model CONFIG or --params N, and not both"),
        ("--model a.json --params 3", "give --model CONFIG or --params N, and not both"),
        ("--params 7.5", "--params 7.5: give a whole number of parameters, such as 8.03e9"),
        ("--params nan", "--params nan: give a whole number of parameters, such as 8.03e9"),
        ("--params 0", "--params 0.0: give a whole number of parameters, such as 8.03e9"),
        ("--params 7", "give --accelerator NAME or --peak-tflops P, and not both"),
        (
            "--params 7 --accelerator h20 --peak-tflops 148",
            "give --accelerator NAME or --peak-tflops P, and not both",
        ),
        (
            "--params 7 --accelerator h100",
            "--accelerator 'h100': that may be h100-nvl, h100-pcie, h100-sxm, h100-96-custom; "
            "give the one that it is",
        ),
        (
            "--params 7 --accelerator h1000",
            "--accelerator 'h1000': no accelerator is called 'h1000'; nearest are h100-nvl, "
            "h100-pcie, h100-sxm, h100-96-custom, v100-sxm2",
        ),
        (
            "--params 7 --accelerator t4",
            "--accelerator 't4': t4 has no known peak of bf16, but of fp64, fp32, fp16, int8; "
            "give another --dtype, or --peak-tflops",
        ),
        (
            "--params 7 --accelerator mi308x",
            "--accelerator 'mi308x': mi308x has no known peak of bf16; give --peak-tflops",
        ),
        (
            "--params 7 --accelerator h20 --dtype bfloat16",
            "--dtype 'bfloat16': give one of fp64, fp64_tensor, fp32, tf32, bf16, fp16, fp8, "
            "fp4, int8",
        ),
        (
            "--params 7 --peak-tflops -1 --gpus 1 --tokens-per-s 1",
            "peak_flop_per_s is -1000000000000.0; give a number above 0, and below 10^24",
        ),
        (
            "--params 7 --accelerator h20 --recompute some",
            "--recompute 'some': give one of none, selective, full",
        ),
        (
            "--params 7 --accelerator h20 --mode weak --gpus 8",
            "--mode weak compares runs; give several --gpus, each with --step-s",
        ),
        (
            "--params 7 --accelerator h20 --mode fair --gpus 8 --gpus 9",
            "--mode 'fair': give one of strong, weak",
        ),
        (
            "--params 7 --accelerator h20 --per-gpu --gpus 8 --step-s 3",
            "--per-gpu says of --tokens-per-s that it is one GPU's; give that",
        ),
        (
            "--params 7 --accelerator h20 --tokens-per-s 3",
            "the number of GPUs is missing; give --gpus",
        ),
        (
            "--params 7 --accelerator h20 --step-s 3 --gpus 8",
            "the seconds of a step need a batch and a seq; give --batch and --seq",
        ),
        (
            "--params 7 --accelerator h20 --tokens-per-s 3 --gpus 8 --recompute selective",
            "convention 6nd does not define the FLOP of recompute selective; those that do are "
            "megatron",
        ),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(mfu, words, message):
    assert mfu(*words.split()) == (2, "", f"traceparse: {message}\n")


def test_a_bad_file_is_status_1_and_one_line(mfu, tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("layers = 0")
    words = ["--gpus", 1, "--tokens-per-s", 1, "--accelerator"]
    assert mfu("--model", path, *words, "h20") == (
        1,
        "",
        f"traceparse: {path}: layers is 0; write a whole number from 1 to 10^16\n",
    )
    gone = tmp_path / "gone.toml"
    assert mfu("--params", 7, *words, gone) == (
        1,
        "",
        f"traceparse: {gone}: no such file or directory; give --accelerator a TOML file\n",
    )
