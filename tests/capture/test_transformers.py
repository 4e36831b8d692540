from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # read when it is imported: nothing here asks for anything
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from tests.capture.loops import facts_beside, names_in
from tests.capture.recorded import run_python, within_steps
from traceparse.capture.transformers import ProfileCallback
from traceparse.errors import MissingExtraError, UsageError

BATCH, ACCUMULATED, LENGTH = 2, 3, 8
OPTIMIZER = "Optimizer.step#AdamW.step"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def model() -> Any:
    torch.manual_seed(0)
    sizes = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 32}
    config = LlamaConfig(**sizes, num_hidden_layers=2, num_attention_heads=2)
    return LlamaForCausalLM(config)


class Words(torch.utils.data.Dataset[Any]):  # type: ignore[misc]
    """Samples of equal length; one of them may not be readable."""

    def __init__(self, num_samples: int, *, broken: int | None = None) -> None:
        self.num_samples = num_samples
        self.broken = broken

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, index: int) -> dict[str, Any]:
        if index == self.broken:
            raise ZeroDivisionError
        words = (torch.arange(LENGTH) * 7 + index) % 32
        return {"input_ids": words, "labels": words}


def trainer(
    callback: ProfileCallback | None, folder: Path, *, data: Any = None, **options: Any
) -> Trainer:
    chosen = {"max_steps": 8, "gradient_accumulation_steps": ACCUMULATED, **options}
    arguments = TrainingArguments(
        output_dir=str(folder / "out"),
        per_device_train_batch_size=BATCH,
        train_sampling_strategy="sequential",
        use_cpu=True,
        dataloader_pin_memory=False,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        **chosen,
    )
    return Trainer(
        model(),
        arguments,
        train_dataset=data or Words(60),
        callbacks=[callback] if callback else [],
    )


def losses(each: Trainer) -> list[float]:
    return [entry["loss"] for entry in each.state.log_history if "loss" in entry]


def test_a_step_is_the_optimizers_with_all_batches_that_it_accumulates(tmp_path: Path) -> None:
    callback = ProfileCallback(tmp_path / "traces", steps=range(3, 6))
    trainer(callback, tmp_path).train()
    assert callback.path == tmp_path / "traces" / "rank0_trace.json.gz"
    steps = ("ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5")
    assert within_steps(callback.path, "aten::embedding") == dict.fromkeys(steps, ACCUMULATED)
    assert within_steps(callback.path, OPTIMIZER) == dict.fromkeys(steps, 1)
    facts = facts_beside(callback.path)
    assert facts["step_on"] == "optimizer"
    assert facts["steps"] == [3, 5]
    assert facts["num_params"] == sum(each.numel() for each in model().parameters())
    samples = BATCH * ACCUMULATED
    assert facts["samples_per_step"] == facts["samples_per_rank_step"] == samples
    assert facts["tokens_per_rank_step"] == samples * LENGTH


def test_losses_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    plain = trainer(None, tmp_path)
    captured = trainer(ProfileCallback(tmp_path / "traces", steps=range(2, 4)), tmp_path)
    for each in (plain, captured):
        each.train()
    assert names_in(tmp_path / "traces") == ["rank0_facts.json", "rank0_trace.json.gz"]
    assert losses(plain) == losses(captured)
    assert len(losses(plain)) == 8
    for one, other in zip(plain.model.parameters(), captured.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("end", ["close", "train"])
def test_what_was_recorded_when_training_fails_is_kept(
    tmp_path: Path, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    """GIVEN that step 4 fails THEN the trace is kept on request, or when training begins."""
    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 6), rank=7)
    failing = trainer(callback, tmp_path, data=Words(60, broken=28))
    with pytest.raises(ZeroDivisionError):
        failing.train()
    trace = tmp_path / "traces" / "rank7_trace.json.gz"
    assert not trace.exists()
    if end == "close":
        callback.close()
    else:
        with pytest.raises(ZeroDivisionError):
            failing.train()
    steps = {"ProfilerStep#2": 1, "ProfilerStep#3": 1, "ProfilerStep#4": 0}
    assert within_steps(trace, OPTIMIZER) == steps
    assert "the loop ended in step 4" in caplog.text
    assert ("there is a trace of rank 7 already" in caplog.text) is (end == "train")


@pytest.mark.parametrize(
    ("num_samples", "steps", "options", "expected"),
    [
        (30, range(2, 5), {}, 6),  # of 5 whole steps
        (29, range(2, 4), {}, 6),  # the last one, the fifth, has 5 samples
        (29, range(2, 5), {}, None),
        (28, range(2, 5), {"gradient_accumulation_steps": 1}, 2),
        (29, range(2, 5), {"gradient_accumulation_steps": 1}, 2),
        (29, torch.profiler.schedule(wait=2, warmup=1, active=1), {}, None),
        (30, torch.profiler.schedule(wait=2, warmup=1, active=1), {}, 6),
    ],
)
def test_samples_are_told_where_all_recorded_steps_have_equally_many(
    tmp_path: Path, num_samples: int, steps: Any, options: Any, expected: int | None
) -> None:
    callback = ProfileCallback(tmp_path, steps=steps)
    each = trainer(callback, tmp_path, data=Words(num_samples), **options)
    loader = each.get_train_dataloader()
    assert callback._samples(each.args, each.state, loader) == expected
    each.state.global_step = 3  # goes on from a checkpoint: which steps are last is not known
    rest = num_samples % (expected or 6)
    assert callback._samples(each.args, each.state, loader) == (None if rest else expected)


def test_samples_of_data_without_end_are_not_told(tmp_path: Path) -> None:
    class Endless(torch.utils.data.IterableDataset[Any]):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return (Words(60)[index % 60] for index in range(1 << 20))

    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 4))
    trainer(callback, tmp_path, data=Endless()).train()
    facts = facts_beside(callback.path)
    assert "samples_per_step" not in facts
    assert facts["samples_per_rank_step"] == BATCH * ACCUMULATED


def test_ranks_that_are_not_asked_for_record_nothing(tmp_path: Path) -> None:
    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 4), ranks="1-3")
    trainer(callback, tmp_path).train()
    assert callback.path is None
    assert names_in(tmp_path / "traces") == []


def test_a_capture_that_cannot_keep_anything_does_not_reach_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    callback = ProfileCallback(tmp_path / "file", steps=range(2, 4))
    each = trainer(callback, tmp_path)
    each.train()
    assert callback.path is None
    assert len(losses(each)) == 8
    assert "training goes on" in caplog.text


def test_wrong_steps_are_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs one contiguous range"):
        ProfileCallback(tmp_path, steps=[3, 5])


def test_without_transformers_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "traceparse.capture.transformers")
    with pytest.raises(MissingExtraError) as caught:
        import_module("traceparse.capture.transformers")
    assert str(caught.value) == (
        "traceparse.capture.transformers needs transformers: pip install transformers"
    )


FAILING_RANKS = """
import sys, torch
from pathlib import Path
from tests.capture.test_transformers import Words, trainer
from traceparse.capture.transformers import ProfileCallback

torch.set_num_threads(1)
folder = Path(sys.argv[1])
callback = ProfileCallback(folder, steps=range(1, 5))
trainer(callback, folder, data=Words(120, broken=int(sys.argv[2])), ddp_backend="gloo").train()
"""


@pytest.mark.slow
def test_ranks_of_a_job_that_fails_leave_a_trace_each(tmp_path: Path) -> None:
    """GIVEN that one rank fails in step 3 THEN steps 1 and 2 of both are whole."""
    script = tmp_path / "train.py"
    script.write_text(FAILING_RANKS)
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    run = run_python(*torchrun, str(script), str(tmp_path), "44")
    assert "ZeroDivisionError" in run.stderr
    for rank in range(2):
        trace = tmp_path / f"rank{rank}_trace.json.gz"
        steps = {"ProfilerStep#1": 1, "ProfilerStep#2": 1, "ProfilerStep#3": 0}
        assert within_steps(trace, OPTIMIZER) == steps
        facts = facts_beside(trace)
        assert (facts["rank"], facts["world_size"], facts["backend"]) == (rank, 2, "gloo")
        assert facts["samples_per_step"] == 2 * BATCH * ACCUMULATED
