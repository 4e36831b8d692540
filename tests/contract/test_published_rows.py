"""What papers and frameworks publish of their runs comes out, through the command line too."""

from __future__ import annotations

import json

import pytest

from tests.contract.places import ROWS
from tests.work import configs
from traceparse.work.calculator import calculate
from traceparse.work.conventions import Recompute
from traceparse.work.model import Model
from traceparse.work.model_file import load_model
from traceparse.work.scaling import scale

TABLE = json.loads(ROWS.read_text()) if ROWS.is_file() else {"rows": []}
CHECKS = [(row, check) for row in TABLE["rows"] for check in row["checks"]]

pytestmark = pytest.mark.skipif(
    not CHECKS,
    reason=f"no published rows at {ROWS}; say where they are in TRACEPARSE_SHARED_ROWS",
)

# A formula's name, as a convention and what is recomputed
FORMULAS: dict[str, tuple[str, Recompute]] = {
    "palm": ("palm", "none"),
    "palm_noattn": ("palm-noattn", "none"),
    "titan_noemb": ("torchtitan", "none"),
    "korth_model": ("megatron", "none"),
    "korth_model_causal": ("megatron-causal", "none"),
    "korth_hw_selective": ("megatron", "selective"),
    "narayanan_hw_full": ("megatron", "full"),
    "foundry_model": ("llm-foundry", "none"),
    "foundry_hw": ("llm-foundry", "full"),
}
FIELDS = {
    "N": "params",
    "N_embed": "embedding_params",
    "L": "layers",
    "h": "hidden",
    "H": "heads",
    "Q": "head_dim",
    "V": "vocab",
}
OF_A_RUN = [(row, check) for row, check in CHECKS if check["formula"] in FORMULAS]
OTHERS = {
    metric: [(row, check) for row, check in CHECKS if check["metric"] == metric]
    for metric in ("pct_of_peak", "params_B", "days", "usd", "weak_eff_pct")
}


def rows(checks):
    """Parametrize a test with some checks, each named for its row."""
    return pytest.mark.parametrize(
        ("row", "check"),
        checks,
        ids=[f"{row['id']}-{check['metric']}" for row, check in checks],
    )


def shape(inputs):
    return {ours: int(inputs[theirs]) for theirs, ours in FIELDS.items() if theirs in inputs}


def speed(inputs):
    """How fast it was, in the words that the calculator and the command line share."""
    given = {name: inputs[name] for name in ("step_s", "tokens_per_s") if name in inputs}
    if "tokens_per_s_per_gpu" in inputs:
        given = {"tokens_per_s": inputs["tokens_per_s_per_gpu"], "per_gpu": True}
    if "batch" in inputs:
        given["batch"] = inputs["batch"]
    return given


def within(percent, check):
    """Within the row's own tolerance, and the same as who collected the rows has found."""
    assert percent == pytest.approx(check["published_pct"], abs=check["tol_pp"])
    assert percent == pytest.approx(check["recomputed"], abs=6e-5)


def test_each_check_of_each_row_is_made_here():
    llama = [c for r, c in CHECKS if r["id"] == "llama3-405b-16384"]
    assert len(OF_A_RUN) + sum(map(len, OTHERS.values())) + len(llama) == len(CHECKS)
    assert {*TABLE["formulas_per_token"]} == {*FORMULAS}


@rows(OF_A_RUN)
def test_mfu_and_hfu_of_a_row(row, check):
    convention, recompute = FORMULAS[check["formula"]]
    inputs = row["inputs"]
    run = calculate(
        Model(**shape(inputs)),
        convention=convention,
        recompute=recompute,
        seq=inputs["s"],
        gpus=inputs["gpus"],
        peak_flop_per_s=inputs["peak"],
        **speed(inputs),
    )
    within(100 * (run.hfu if check["metric"] == "hfu" else run.mfu), check)


@rows(OF_A_RUN)
def test_mfu_and_hfu_of_a_row_through_the_command_line(row, check, traceparse, tmp_path):
    convention, recompute = FORMULAS[check["formula"]]
    inputs = row["inputs"]
    path = tmp_path / "model.toml"
    sizes = shape(inputs).items()
    path.write_text("".join(f"{name} = {value}\n" for name, value in sizes))
    words = ["--model", path, "--convention", convention, "--recompute", recompute]
    words += ["--seq", inputs["s"], "--gpus", inputs["gpus"]]
    words += ["--peak-tflops", inputs["peak"] / 1e12]
    for name, value in speed(inputs).items():
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, value]
    status, out, err = traceparse("mfu", *words, "--json")
    assert (status, err) == (0, "")
    figures = json.loads(out)
    within(100 * figures["hfu" if check["metric"] == "hfu" else "mfu"], check)


@rows(OTHERS["pct_of_peak"])
def test_what_narayanan_reaches_of_the_peak_is_hfu_with_all_recomputed(row, check):
    """From its equation 3 to the time of a step, and from there back to its table."""
    b, s, l, h, v = (row["inputs"][name] for name in ("batch", "s", "L", "h", "V"))  # noqa: E741
    gpus = row["inputs"]["gpus"]
    flop = 96 * b * s * l * h**2 * (1 + s / (6 * h) + v / (16 * l * h))
    run = calculate(
        Model(**shape(row["inputs"])),
        convention="megatron",
        recompute="full",
        batch=b,
        seq=s,
        gpus=gpus,
        step_s=flop / (gpus * row["inputs"]["achieved_tflops_per_gpu"] * 1e12),
        peak_flop_per_s=row["inputs"]["peak"],
    )
    within(100 * run.hfu, check)


@rows(OTHERS["params_B"])
def test_parameters_of_narayanans_models(row, check, tmp_path):
    inputs = row["inputs"]
    path = tmp_path / "config.json"
    gpt = {"model_type": "gpt2", "n_layer": inputs["L"], "n_embd": inputs["h"]}
    gpt |= {"n_head": inputs["H"], "n_positions": inputs["s"], "vocab_size": inputs["V"]}
    path.write_text(json.dumps(gpt))
    params = load_model(path).params
    assert params is not None
    assert params / 1e9 == pytest.approx(check["published"], rel=check["tol_rel"])
    assert params / 1e9 == pytest.approx(check["recomputed"], rel=5e-5)


@rows(OTHERS["days"])
def test_days_of_a_training(row, check):
    """8 TP / (n X), as GPU-hours of its tokens on its GPUs."""
    inputs = row["inputs"]
    achieved = inputs["achieved_tflops_per_gpu"] * 1e12
    run = calculate(
        Model(params=int(inputs["N"])),
        convention="6nd",
        recompute="full",
        gpus=inputs["gpus"],
        tokens_per_s=inputs["gpus"] * achieved / (8 * inputs["N"]),
        peak_flop_per_s=312e12,
    )
    assert run.achieved_flop_per_s_per_gpu == pytest.approx(achieved)
    hours = run.gpu_hours_per_billion_tokens * inputs["tokens"] / 1e9
    days = hours / inputs["gpus"] / 24
    assert days == pytest.approx(check["published"], rel=check["tol_rel"])
    assert days == pytest.approx(check["recomputed"], rel=1e-5)


@rows(OTHERS["usd"])
def test_dollars_of_a_training(row, check):
    """Of 14.8e12 tokens, which DeepSeek-V3 was trained on in its GPU-hours."""
    hours, tokens = row["inputs"]["gpu_hours"], 14.8e12
    run = calculate(
        Model(params=37_000_000_000),
        convention="6nd",
        gpus=2048,
        tokens_per_s=tokens / (hours / 2048 * 3600),
        peak_flop_per_s=1e15,
        usd_per_gpu_hour=row["inputs"]["usd_per_gpu_hour"],
    )
    assert run.gpu_hours_per_billion_tokens * tokens / 1e9 == pytest.approx(hours)
    usd = run.usd_per_million_tokens
    assert usd is not None
    assert usd * tokens / 1e6 == pytest.approx(check["published"], rel=check["tol_rel"])


@rows(OTHERS["weak_eff_pct"])
def test_weak_scaling_of_pods(row, check):
    """A step on ``n`` pods that is as much slower as their speedup falls short of ``n``."""
    n, speedup = row["inputs"]["n"], row["inputs"]["speedup"]
    _, pods = scale([(1, 1.0), (n, n / speedup)], "weak")
    assert pods.speedup == pytest.approx(speedup)
    within(100 * pods.efficiency, check)


@rows([(row, check) for row, check in CHECKS if row["id"] == "llama3-405b-16384"])
def test_llama_3_405b_by_the_flop_that_it_reached(row, check, tmp_path):
    """From PaLM's formula, with its published 405.85e9 parameters, to tokens, and back."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(configs.LLAMA3_405B))
    flop = 6 * 405_853_388_800 + 12 * 126 * 16384 * 8192
    run = calculate(
        load_model(path),
        convention="palm",
        seq=8192,
        gpus=row["inputs"]["gpus"],
        tokens_per_s=row["inputs"]["achieved_tflops_per_gpu"] * 1e12 / flop,
        per_gpu=True,
        peak_flop_per_s=row["inputs"]["peak"],
    )
    within(100 * run.mfu, check)
