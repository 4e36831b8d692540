from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils import checkpoint as checkpoints

from traceparse.capture import models
from traceparse.capture.models import Look, is_compiled
from traceparse.capture.said import Said


def looked(model: Any, *batches: Any, calls: Any = None) -> dict[str, Any]:
    """Return what is seen while a model is called with each batch."""
    look = Look(Said(), model)
    look.begin()
    for batch in batches:
        (calls or model)(batch)
    return look.end()


def test_a_plain_model_and_its_batches() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3, bias=False))
    assert looked(model, torch.ones(2, 5), torch.ones(3, 5)) == {
        "num_params": 5 * 4 + 4 + 4 * 3,
        "num_trainable_params": 5 * 4 + 4 + 4 * 3,
        "num_embedding_params": 0,
        "param_dtypes": {"float32": 36},
        "samples_per_rank_step": 5,
        "checkpointing": False,
        "compiled": False,
    }
    assert all(not module._forward_pre_hooks for module in model.modules())
    assert checkpoints.CheckpointFunction.__name__ == "CheckpointFunction"


class Words(nn.Module):  # type: ignore[misc]
    """A model of language whose two tables are one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 4)
        self.norm = nn.LayerNorm(4, dtype=torch.bfloat16)
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.embedding.weight
        self.norm.weight.requires_grad_(False)

    def forward(self, labels: Any, input_ids: Any = None) -> Any:
        return self.head(self.embedding(input_ids if input_ids is not None else labels))


def test_a_tied_embedding_counts_once_and_words_are_tokens() -> None:
    facts = looked(Words(), torch.zeros(2, 7, dtype=torch.int64))
    assert facts["num_params"] == 44 + 8
    assert facts["num_trainable_params"] == 44 + 4
    assert facts["num_embedding_params"] == 44
    assert facts["param_dtypes"] == {"float32": 44, "bfloat16": 8}
    assert (facts["samples_per_rank_step"], facts["tokens_per_rank_step"]) == (2, 14)


def test_words_that_are_named_come_before_others() -> None:
    model = Words()
    ids, labels = torch.zeros(3, 5, dtype=torch.int64), torch.zeros(9, 9, dtype=torch.int64)
    facts = looked(model, labels, calls=lambda batch: model(batch, input_ids=ids))
    assert (facts["samples_per_rank_step"], facts["tokens_per_rank_step"]) == (3, 15)


def test_an_evaluation_is_no_training() -> None:
    model = nn.Linear(5, 4)
    with torch.no_grad():
        facts = looked(model, torch.ones(2, 5))
    assert facts["num_params"] == 24
    assert "samples_per_rank_step" not in facts


def test_autocast_is_seen() -> None:
    model = nn.Linear(5, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert looked(model, torch.ones(2, 5))["autocast_dtype"] == "bfloat16"


def test_what_is_no_tensor_is_no_batch() -> None:
    class Odd(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, *_: Any, **__: Any) -> None: ...

    model = Odd()
    facts = looked(model, "words", calls=lambda _: model(3, [torch.ones(2)], x=torch.tensor(1)))
    assert "samples_per_rank_step" not in facts


def test_a_batch_that_cannot_be_asked_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(torch.Tensor):  # type: ignore[misc]
        @property
        def ndim(self) -> int:
            raise RuntimeError("a jagged one")

    model = nn.Identity()
    model.weight = nn.Parameter(torch.ones(3))
    facts = looked(model, torch.ones(2).as_subclass(Broken))
    assert facts["num_params"] == 3
    assert caplog.messages == [
        "traceparse: facts are missing (what the model is given), training goes on: "
        "RuntimeError: a jagged one"
    ]


@pytest.mark.usefixtures("alone")
def test_models_are_found_that_are_called() -> None:
    class Holder:
        def __init__(self) -> None:
            self.inside = nn.Sequential(nn.Linear(2, 2))

    trained, unused, big = Holder().inside, nn.Linear(9, 9), nn.Linear(3, 3)
    facts = looked(
        None, torch.ones(4, 2), calls=lambda it: (trained(it), big(torch.ones(7, 3)))
    )
    assert facts["num_params"] == 6 + 12
    assert facts["samples_per_rank_step"] == 7  # of the largest
    assert unused._forward_pre_hooks == {}


@pytest.mark.usefixtures("alone")
def test_of_models_that_are_not_called_those_that_learn_count() -> None:
    student, teacher = nn.Linear(2, 2), nn.Linear(9, 9)
    teacher.requires_grad_(False)
    assert looked(None)["num_params"] == 6
    student.requires_grad_(False)
    assert looked(None) == {}


@pytest.mark.usefixtures("alone")
def test_objects_that_answer_oddly_are_not_asked() -> None:
    class Odd:
        @property  # type: ignore[misc]
        def __class__(self) -> type:
            raise RuntimeError("a proxy of something that is gone")

    odd = [Odd()]
    assert looked(None) == {}
    assert len(odd) == 1


def test_a_hook_that_cannot_be_registered_leaves_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, bad = nn.Linear(2, 2), nn.Linear(2, 2)
    monkeypatch.setattr(models, "_roots", lambda: iter([good, bad]))

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("scripted modules have none")

    monkeypatch.setattr(bad, "register_forward_pre_hook", broken)
    look = Look(Said())
    with pytest.raises(RuntimeError):
        look.begin()
    look.end()
    assert good._forward_pre_hooks == {}


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints_are_seen(use_reentrant: bool) -> None:
    model = nn.Linear(4, 4)
    look = Look(Said(), model)
    look.begin()
    batch = torch.ones(2, 4, requires_grad=True)
    checkpoints.checkpoint(model, batch, use_reentrant=use_reentrant).sum().backward()
    assert look.end()["checkpointing"] is True
    assert model.weight.grad is not None
    assert checkpoints.checkpoint(model, batch, use_reentrant=use_reentrant).shape == (2, 4)


def test_models_that_checkpoint_by_themselves_are_known() -> None:
    class LikeTransformers(nn.Linear):  # type: ignore[misc]
        gradient_checkpointing = True

    assert looked(nn.Sequential(LikeTransformers(2, 2)))["checkpointing"] is True
    wrappers = pytest.importorskip(
        "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
    )
    wrapped = nn.Sequential(wrappers.checkpoint_wrapper(nn.Linear(2, 2)))
    assert looked(wrapped)["checkpointing"] is True


def test_a_compiled_model_gets_no_hook() -> None:
    model = nn.Linear(2, 2)
    model._compiled_call_impl = lambda *_: None
    assert is_compiled([nn.Sequential(model)])
    look = Look(Said(), model)
    look.begin()
    assert model._forward_pre_hooks == {}
    facts = look.end()
    assert (facts["compiled"], facts["num_params"]) == (True, 6)
    assert "checkpointing" not in facts  # nobody has watched
    assert "samples_per_rank_step" not in facts


def test_whatever_dynamo_has_compiled_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    for group, name in (("frames", "ok"), ("stats", "unique_graphs")):
        monkeypatch.setitem(counters, group, Counter())
        assert not is_compiled([])
        monkeypatch.setitem(counters, group, Counter({name: 1}))
        assert is_compiled([])
        monkeypatch.setitem(counters, group, Counter())


def test_a_model_that_will_be_compiled_is_one() -> None:
    assert is_compiled([torch.compile(nn.Linear(2, 2), backend="eager")])


@pytest.fixture
def group() -> Iterator[None]:
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=_store())
    yield
    torch.distributed.destroy_process_group()


def _store() -> Any:
    return torch.distributed.HashStore()


@pytest.mark.usefixtures("group")
def test_a_model_of_ddp_is_looked_at_from_outside() -> None:
    inner = nn.Linear(5, 4)
    model = nn.parallel.DistributedDataParallel(inner)
    facts = looked(model, torch.ones(2, 5))
    assert (facts["num_params"], facts["samples_per_rank_step"]) == (24, 2)


def test_parameters_that_are_spread_count_as_the_whole(
    fake_group: Callable[[], None],
) -> None:
    """GIVEN rank 3 of 8, which holds 2 of 16 rows."""
    fake_group()
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("replicate", "shard"))
    model = nn.Linear(6, 16, bias=False)
    fully_shard(model, mesh=mesh)
    assert model.weight.to_local().shape == (4, 6)
    # behind backward each rank has its part again
    facts = looked(model, torch.ones(2, 6), calls=lambda it: model(it).sum().backward())
    assert facts["num_params"] == 6 * 16
    assert facts["samples_per_rank_step"] == 2
    assert facts["meshes"] == [{"names": ["replicate", "shard"], "shape": [2, 4]}]


def test_parameters_that_fsdp_1_flattened_count_as_the_whole() -> None:
    param = torch.ones(3)
    param._unpadded_unsharded_size = torch.Size([4, 5])
    assert models._size(param) == 20
