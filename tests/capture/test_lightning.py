from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.loops import facts_beside, names_in
from tests.capture.recorded import LOOPBACK, within_steps
from traceparse.capture.lightning import ProfileCallback
from traceparse.errors import MissingExtraError, UsageError


@pytest.fixture(autouse=True)
def no_job_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")  # so that what Lightning sets is taken away again
        monkeypatch.delenv(name)
    for name, value in LOOPBACK.items():
        monkeypatch.setenv(name, value)


# What Lightning says of trainings as small as these, and what torch says to Lightning.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .*_dataloader. does not have many workers"),
    pytest.mark.filterwarnings("ignore:You defined a .validation_step. but have no"),
]

ACCUMULATED = 2
OPTIMIZER = "Optimizer.step#SGD.step"


def trainer(package: str, callback: Any, folder: Path, **options: Any) -> Any:
    quiet = dict.fromkeys(
        ("enable_progress_bar", "enable_model_summary", "enable_checkpointing", "logger"), False
    )
    with_defaults = {"accumulate_grad_batches": ACCUMULATED, "max_steps": 8, **options}
    return import_module(package).Trainer(
        accelerator="cpu",
        callbacks=[callback] if callback else [],
        default_root_dir=folder,
        **quiet,
        **with_defaults,
    )


def module(package: str = "lightning.pytorch", *, fail_at: int | None = None) -> Any:
    torch.manual_seed(0)

    class Module(import_module(package).LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(4, 1)
            self.losses: list[float] = []

        def forward(self, inputs: Any) -> Any:
            return self.net(inputs)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch_idx == fail_at:
                raise ZeroDivisionError
            loss = self(batch).square().mean()
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch: Any, _batch_idx: int) -> None:
            self(batch)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Module()


def loader() -> Any:
    return torch.utils.data.DataLoader(torch.arange(160.0).reshape(40, 4) / 160, batch_size=2)


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_a_step_is_the_optimizers_with_all_batches_that_it_accumulates(
    tmp_path: Path, package: str
) -> None:
    callback = ProfileCallback(tmp_path / "traces", steps=range(3, 6))
    model = module(package)
    trainer(package, callback, tmp_path).fit(model, loader(), loader())
    assert callback.path == tmp_path / "traces" / "rank0_trace.json.gz"
    steps = ("ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5")
    assert within_steps(callback.path, "aten::linear") == dict.fromkeys(steps, ACCUMULATED)
    assert within_steps(callback.path, OPTIMIZER) == dict.fromkeys(steps, 1)
    facts = facts_beside(callback.path)
    assert facts["step_on"] == "optimizer"
    assert facts["steps"] == [3, 5]
    assert facts["num_params"] == 5
    assert facts["samples_per_rank_step"] == 2 * ACCUMULATED


def test_losses_are_the_same_to_the_last_bit(tmp_path: Path) -> None:
    losses = []
    for callback in (None, ProfileCallback(tmp_path / "traces", steps=range(2, 4))):
        model = module()
        trainer("lightning.pytorch", callback, tmp_path).fit(model, loader())
        losses.append(model.losses)
    assert names_in(tmp_path / "traces") == ["rank0_facts.json", "rank0_trace.json.gz"]
    assert losses[0] == losses[1]
    assert len(set(losses[1])) == 8 * ACCUMULATED


def test_the_last_step_of_an_epoch_may_have_fewer_batches(tmp_path: Path) -> None:
    """GIVEN 7 batches an epoch, two a step THEN step 3 has one, before it is validated."""
    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 5))
    options = {"limit_train_batches": 7, "limit_val_batches": 1}
    trainer("lightning.pytorch", callback, tmp_path, **options).fit(
        module(), loader(), loader()
    )
    steps = {"ProfilerStep#2": 2, "ProfilerStep#3": 1, "ProfilerStep#4": 2}
    assert within_steps(callback.path, "aten::square") == steps
    steps["ProfilerStep#4"] += 1  # the validation
    assert within_steps(callback.path, "aten::linear") == steps


def test_several_optimizers_of_one_batch_end_one_step(tmp_path: Path) -> None:
    class Both(type(module())):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch: Any, _batch_idx: int) -> None:
            first, second = self.optimizers()
            for optimizer in (first, second, second):
                optimizer.zero_grad()
                self.manual_backward(self(batch).square().mean())
                optimizer.step()

        def configure_optimizers(self) -> Any:
            return [torch.optim.SGD([each], lr=0.1) for each in self.parameters()]

    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 4))
    options = {"accumulate_grad_batches": 1, "max_steps": 15}
    trainer("lightning.pytorch", callback, tmp_path, **options).fit(Both(), loader())
    steps = ("ProfilerStep#2", "ProfilerStep#3")
    assert within_steps(callback.path, OPTIMIZER) == dict.fromkeys(steps, 3)


def test_what_was_recorded_when_training_fails_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 6), rank=7)
    fit = trainer("lightning.pytorch", callback, tmp_path).fit
    with pytest.raises(ZeroDivisionError):
        fit(module(fail_at=4 * ACCUMULATED + 1), loader())
    assert callback.path == tmp_path / "traces" / "rank7_trace.json.gz"
    steps = {"ProfilerStep#2": 2, "ProfilerStep#3": 2, "ProfilerStep#4": 1}
    assert within_steps(callback.path, "aten::square") == steps
    assert "the loop ended in step 4" in caplog.text


def test_ranks_that_are_not_asked_for_record_nothing(tmp_path: Path) -> None:
    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 4), ranks="1-3")
    trainer("lightning.pytorch", callback, tmp_path).fit(module(), loader())
    assert callback.path is None
    assert names_in(tmp_path / "traces") == []


def test_a_capture_that_cannot_keep_anything_does_not_reach_training(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    callback = ProfileCallback(tmp_path / "file", steps=range(2, 4))
    model = module()
    trainer("lightning.pytorch", callback, tmp_path).fit(model, loader())
    assert callback.path is None
    assert len(model.losses) == 8 * ACCUMULATED
    assert "training goes on" in caplog.text


def test_it_can_be_sent_to_the_processes_that_train(tmp_path: Path) -> None:
    callback = pickle.loads(pickle.dumps(ProfileCallback(tmp_path, ranks="0")))
    assert callback.path is None


def test_wrong_steps_are_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs one contiguous range"):
        ProfileCallback(tmp_path, steps=[3, 5])


def test_without_lightning_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("lightning.pytorch", "pytorch_lightning"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "traceparse.capture.lightning")
    with pytest.raises(MissingExtraError) as caught:
        import_module("traceparse.capture.lightning")
    assert str(caught.value) == (
        "traceparse.capture.lightning needs lightning: pip install lightning"
    )


def test_a_module_that_ddp_calls_and_that_calls_itself_is_seen_once(tmp_path: Path) -> None:
    """GIVEN a step that DDP runs as its module's forward, in which that is called again."""
    callback = ProfileCallback(tmp_path / "traces", steps=range(2, 4))
    options = {"strategy": "ddp", "devices": 1, "max_steps": 5}
    try:
        trainer("lightning.pytorch", callback, tmp_path, **options).fit(module(), loader())
    finally:
        torch.distributed.destroy_process_group()
    facts = facts_beside(callback.path)
    assert (facts["world_size"], facts["backend"]) == (1, "gloo")
    assert facts["samples_per_rank_step"] == 2 * ACCUMULATED
