"""What traces do not tell, from the command line to the report."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from tests.traces import kernel, op, write
from traceparse.cli import app
from traceparse.cli.options import Told
from traceparse.engine import analyze
from traceparse.errors import UsageError
from traceparse.work.measured import Measured


@pytest.fixture
def trace(tmp_path) -> Path:
    return write(tmp_path / "rank0.json", [op(1, 10)])


def run(trace, *words):
    result = CliRunner().invoke(app, ["analyze", str(trace), "--jobs", "1", "--json", *words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return json.loads(result.stdout)


def test_every_option_reaches_the_report(trace):
    words = ["--accelerator", "a100-sxm-80", "--peak", "fp32=1.5", "--peak", "bf16=300"]
    words += ["--params", "1e9", "--tokens-per-step", "1e6", "--recompute", "full"]
    report = run(trace, *words, "--price", "2.5", "--ceiling", "mamf")
    accelerator = report["run"]["accelerator"]
    assert accelerator["id"] == "a100-sxm-80"
    assert accelerator["peak_flop_per_s"]["fp32"] == 1.5e12
    assert accelerator["peak_flop_per_s"]["bf16"] == 300e12
    use = report["utilization"]
    assert (use["model_flop"], use["mfu_source"]) == (6 * 10**15, "declared")
    assert report["cost"]["usd_per_gpu_hour"] == 2.5
    report = run(trace, "--model-flop-per-step", "1e12", "--peak", "fp32=1000")
    assert report["utilization"]["mfu"] == 1e12 / 1000e12 / 10e-6


def test_no_option_changes_what_is_digested(trace, tmp_path):
    cache = tmp_path / "kept"
    for words in ([], ["--peak", "fp32=1"], ["--accelerator", "h200-sxm", "--price", "1"]):
        run(trace, "--cache", str(cache), *words)
        assert len(list(cache.glob("*.parquet"))) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--peak", "bf16"],
            "--peak 'bf16': '' is no number of TFLOP/s above zero; write it such as bf16=989.4",
        ),
        (
            ["--peak", "fp32=1", "--peak", "fp32=2"],
            "--peak 'fp32=2': the peak of fp32 is given twice",
        ),
        (
            ["--peak", "measured", "--peak", "fp32=2"],
            "--peak measured stands alone: it measures all that matter",
        ),
        (
            ["--convention", "palm"],
            "--convention and --seq say how to read --model; give it too",
        ),
        (
            ["--model", "m.json", "--params", "1"],
            "--model, --model-flop-per-step and --params all say what the model needs; give "
            "one of them",
        ),
        (
            ["--model", "m.json"],
            "--model needs --tokens-per-step: its FLOP are those of a token",
        ),
        (["--params", "1e9"], "--params needs --tokens-per-step: a step of the model is 6ND"),
        (["--ceiling", "x"], "--ceiling 'x': there are spec and mamf"),
        (
            ["--price", "-1"],
            "--price -1.0: give USD per GPU-hour, such as 2.5",
        ),
        (
            ["--accelerator", "a100"],
            "--accelerator 'a100': that may be a100-sxm-40, a100-sxm-80, a100-pcie-40, "
            "a100-pcie-80; give the one that it is",
        ),
    ],
)
def test_bad_usage_is_status_2_in_words(trace, words, message):
    with pytest.raises(UsageError) as caught:
        run(trace, *words)
    assert str(caught.value) == message
    assert caught.value.exit_status == 2


def test_a_configuration_is_counted_by_a_convention(trace, tmp_path):
    config = tmp_path / "m.toml"
    config.write_text("params = 1_000\nlayers = 2\nheads = 3\nhead_dim = 5\nseq = 7\n")
    words = ["--model", str(config), "--tokens-per-step", "1e6"]
    report = run(trace, *words)
    # 6N + 12LHQs
    assert report["utilization"]["model_flop"] == (6_000 + 12 * 2 * 3 * 5 * 7) * 10**6
    assert report["run"]["conventions"]["model_flop"] == (
        "palm (causal=full, attn_bwd=2x, embed=in, moe=active)"
    )
    longer = run(trace, *words, "--seq", "70")
    assert longer["utilization"]["model_flop"] == (6_000 + 12 * 2 * 3 * 5 * 70) * 10**6
    without = run(trace, *words, "--convention", "6nd")
    assert without["utilization"]["model_flop"] == 6_000 * 10**6
    config.write_text("params = 1_000\nlayers = 2\nheads = 3\nhead_dim = 5\n")
    with pytest.raises(UsageError, match=r"needs seq \(--seq\), which the model does not say"):
        run(trace, *words)


@pytest.fixture
def threads(monkeypatch):
    """Stand in for what measures a peak."""
    asked: list[int | None] = []

    def measure_peak(num_threads):
        asked.append(num_threads)
        return Measured({"fp32": 5e10}, 1, "the fastest of 3 products")

    monkeypatch.setattr("traceparse.engine.measured.measure_peak", measure_peak)
    return asked


def test_the_peak_of_this_host_is_measured_and_said_to_be(trace, threads):
    report = run(trace, "--peak", "measured")
    assert threads == [None]
    assert report["run"]["accelerator"] == {
        "id": None,
        "name": "cpu",
        "source": "fp32: the fastest of 3 products; the traces do not tell with how many "
        "threads each rank ran",
        "peak_flop_per_s": {"fp32": 5e10},
        "hbm_bytes_per_s": None,
    }
    assert analyze(trace, peak="measured").to_dict() == report


def test_it_is_measured_with_the_threads_of_a_rank(tmp_path, threads):
    path = write(tmp_path / "rank0.json", [op(1, 10)], traceparse={"num_threads": 3})
    assert run(path, "--peak", "measured")["run"]["accelerator"]["source"] == (
        "fp32: the fastest of 3 products"
    )
    assert threads == [3]


def test_python_takes_no_other_word_for_a_peak(trace):
    with pytest.raises(UsageError, match="peak 'mesured': give FLOP/s by dtype, or measured"):
        analyze(trace, peak="mesured")  # type: ignore[arg-type]


def test_nothing_told_is_nothing_asked():
    given = {name: value for name, value in Told().arguments().items() if value is not None}
    assert given == {"ceiling": "spec"}


def test_nothing_is_measured_for_traces_of_accelerators(tmp_path, threads):
    path = write(tmp_path / "rank0.json", [kernel(1, 10)])
    report = run(path, "--peak", "measured")
    assert threads == []
    assert "host_peak_unused" in {note["code"] for note in report["notes"]}


def test_commands_that_read_traces_take_the_same_options():
    """Those of ``Told``, spliced in where the command has one argument for all."""
    click: Any = get_command(app)
    names = {field.name for field in fields(Told)}
    helps = []
    for command in ("analyze", "check", "compare"):
        known = {param.name: param for param in click.commands[command].params}
        assert names <= known.keys()
        assert "told" not in known
        helps.append([(known[name].opts, known[name].default) for name in sorted(names)])
    assert helps[0] == helps[1] == helps[2]
