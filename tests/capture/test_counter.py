from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import traceparse.work
from traceparse.capture import counter
from traceparse.capture.counter import FlopCounter
from traceparse.errors import CaptureError


def counted(step: Callable[[], Any], *, checkpointing: bool = False) -> int:
    it = FlopCounter()
    it.begin()
    try:
        step()
    finally:
        it.stop()
    assert torch._C._len_torch_dispatch_stack() == 0
    return it.flop(checkpointing=checkpointing)


def by_torch(step: Callable[[], Any]) -> int:
    with FlopCounterMode(display=False) as it:
        step()
    return int(it.get_total_flops())


def refused(step: Callable[[], Any]) -> str:
    with pytest.raises(CaptureError) as caught:
        counted(step)
    return str(caught.value)


BATCH, INS, HIDDEN, OUTS = 7, 5, 11, 3


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(INS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, OUTS))


def test_a_step_of_linear_layers() -> None:
    """Forward, and twice that in backward, but for the inputs, which have no gradient."""
    model = mlp()

    def step() -> None:
        model(torch.ones(BATCH, INS)).sum().backward()

    first, second = 2 * BATCH * INS * HIDDEN, 2 * BATCH * HIDDEN * OUTS
    assert counted(step) == first * 2 + second * 3 == by_torch(step)


def test_results_stay_what_they_are() -> None:
    model = mlp()
    batch = torch.arange(float(BATCH * INS)).reshape(BATCH, INS)
    plain = model(batch)
    with_it: list[torch.Tensor] = []
    counted(lambda: with_it.append(model(batch)))
    assert torch.equal(plain, with_it[0])


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_what_is_recomputed_is_not_counted_twice(use_reentrant: bool) -> None:
    model = mlp()

    def step(*, recomputes: bool = True) -> None:
        batch = torch.ones(BATCH, INS, requires_grad=True)
        out = (
            checkpoint(model, batch, use_reentrant=use_reentrant)
            if recomputes
            else model(batch)
        )
        out.sum().backward()

    once = 3 * 2 * BATCH * (INS * HIDDEN + HIDDEN * OUTS)
    assert counted(lambda: step(recomputes=False)) == once
    assert counted(step, checkpointing=True) == once
    assert by_torch(step) > once


def test_gradients_of_gradients_are_counted() -> None:
    """GIVEN the penalty of a gradient WHEN nothing is checkpointed."""
    weight = torch.ones(3, 3, requires_grad=True)

    def step() -> None:
        batch = torch.ones(2, 3, requires_grad=True)
        (gradient,) = torch.autograd.grad(
            (batch @ weight).square().sum(), batch, create_graph=True
        )
        gradient.square().sum().backward()

    it = FlopCounter()
    it.begin()
    step()
    it.stop()
    assert it.flop(checkpointing=False) == by_torch(step)
    assert it.flop(checkpointing=True) < it.flop(checkpointing=False)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions(groups: int) -> None:
    model = nn.Conv2d(4, 6, 3, groups=groups, bias=False)

    def step() -> None:
        model(torch.ones(2, 4, 9, 8)).sum().backward()

    forward = 2 * 2 * 6 * (4 // groups) * 9 * 7 * 6
    assert counted(step) == 2 * forward  # and the weights; the inputs have no gradient


def test_attention_that_is_causal_counts_half() -> None:
    query = torch.ones(2, 3, 16, 8, requires_grad=True)

    def step(**options: bool) -> None:
        scaled_dot_product_attention(query, query, query, **options).sum().backward()

    whole = 2 * 2 * (2 * 3 * 16 * 16 * 8)
    assert counted(step) == whole + 2 * whole
    # 16 + 15 + ... + 1 of 16 x 16
    assert counted(lambda: step(is_causal=True)) == (whole + 2 * whole) * 136 // 256


def test_low_precision_counts_the_same() -> None:
    def step() -> None:
        one = torch.ones(4, 8, dtype=torch.bfloat16)
        torch.mm(one, one.T)

    assert counted(step) == 2 * 4 * 8 * 4


def test_autocast_counts_the_same() -> None:
    model = mlp()

    def step() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            model(torch.ones(BATCH, INS)).sum().backward()

    first, second = 2 * BATCH * INS * HIDDEN, 2 * BATCH * HIDDEN * OUTS
    assert counted(step) == first * 2 + second * 3


def test_a_part_of_a_tensor_that_is_spread_counts_once(fake_group: Callable[[], None]) -> None:
    fake_group()
    mesh = init_device_mesh("cpu", (8,))
    rows = distribute_tensor(torch.ones(16, 5), mesh, [Shard(0)], src_data_rank=None)
    whole = distribute_tensor(torch.ones(5, 3), mesh, src_data_rank=None)
    assert counted(lambda: rows @ whole) == 2 * (16 // 8) * 5 * 3


def test_a_step_without_products_cannot_be_counted() -> None:
    assert refused(lambda: torch.ones(3).sum()) == (
        "no matrix operation ran in the step that was counted"
    )


def test_an_operator_that_cannot_be_counted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_formula(_: Any) -> Any:
        return traceparse.work.Work(unknown="its shapes are not known")

    monkeypatch.setattr(traceparse.work, "work_of", no_formula)
    assert refused(lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2))) == (
        "aten::mm cannot be counted: its shapes are not known"
    )


def test_what_fails_in_counting_stops_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a size that is a symbol")

    monkeypatch.setattr(counter, "_dims", broken)
    done: list[torch.Tensor] = []
    text = refused(lambda: done.append(torch.mm(torch.ones(2, 2), torch.ones(2, 2))))
    assert text == "aten.mm.default cannot be counted: RuntimeError: a size that is a symbol"
    assert len(done) == 1


def test_where_something_is_compiled_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(counters, "frames", Counter(ok=1))
    with pytest.raises(CaptureError) as caught:
        FlopCounter().begin()
    assert str(caught.value) == "torch.compile is used, and what it compiles is not counted"


@pytest.mark.slow
@pytest.mark.parametrize("fullgraph", [False, True])
def test_what_is_compiled_meanwhile_is_compiled_all_the_same(fullgraph: bool) -> None:
    torch._dynamo.reset()
    weight = torch.ones(3, 3)

    @torch.compile(backend="eager", fullgraph=fullgraph)  # type: ignore[untyped-decorator]
    def step(batch: torch.Tensor) -> torch.Tensor:
        return batch @ weight

    assert refused(lambda: step(torch.ones(2, 3))) == (
        "torch.compile is used, and what it compiles is not counted"
    )
    assert counters["stats"]["unique_graphs"] == 1


def test_operators_below_autograd_are_counted_by_what_they_call() -> None:
    model = nn.Linear(4, 3)

    def step() -> None:
        with torch.inference_mode():
            model(torch.ones(2, 4))

    ragged = torch.nested.nested_tensor(
        [torch.ones(2, 4), torch.ones(5, 4)], layout=torch.jagged
    )
    assert counted(step) == 2 * 2 * 4 * 3
    assert counted(lambda: model(ragged)) == 2 * 7 * 4 * 3


def test_an_operator_that_runs_functions_runs_and_cannot_be_counted() -> None:
    class Runs(torch._ops.HigherOrderOperator):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("runs_for_traceparse")

        def __call__(self, it: torch.Tensor) -> Any:
            return super().__call__(it)

    runs = Runs()
    runs.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(lambda it: it @ it)
    runs.fallthrough(torch._C.DispatchKey.AutogradCPU)
    done: list[torch.Tensor] = []
    text = refused(lambda: done.append(runs(torch.ones(2, 2))))
    assert text == (
        "runs_for_traceparse cannot be counted: "
        "it runs functions, and what they call is not seen"
    )
    assert len(done) == 1


def test_to_stop_twice_is_to_stop_once() -> None:
    it = FlopCounter()
    it.stop()
    it.begin()
    it.stop()
    it.stop()


def test_arguments_are_written_as_the_profiler_writes_them() -> None:
    tensors = [torch.ones(2, dtype=torch.bfloat16), torch.ones(3)]
    values = [tensors[0], tensors, [1, 2], None, True, 0.5]
    assert [counter._dims(torch, value) for value in values] == [
        [2],
        [[2], [3]],
        [],
        [],
        [],
        [],
    ]
    assert [counter._type(torch, value) for value in values] == [
        "c10::BFloat16",
        *("", "", "", "", ""),
    ]
    assert [counter._concrete(torch, value) for value in values] == [
        *("", "", "[1, 2]", "", "True", "0.5")
    ]
