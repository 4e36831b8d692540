"""What activation checkpointing costs, from traces that torch makes here and now.

Of a network of two linear layers whose input needs a gradient, forward is two products and
backward four. A reentrant checkpoint repeats forward; the other kind stops where the last
tensor that backward needs is there, which is before the second product
(torch/utils/checkpoint.py, ``_StopRecomputationError``).
"""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from traceparse.ingest import read_trace
from traceparse.rank import digest

ROWS, SIZE = 32, 64
FORWARD = 2 * (2 * ROWS * SIZE * SIZE)


class Mixed(nn.Module):  # type: ignore[misc]
    """Attention by hand, whose products are batched, and end in one that nothing follows."""

    def forward(self, batch):
        scores = torch.bmm(batch, batch.transpose(1, 2)).softmax(-1)
        return torch.bmm(scores, batch)


def recorded(path, model, batch, reentrant):
    def step():
        if reentrant is None:
            out = model(batch)
        else:
            out = checkpoint(model, batch, use_reentrant=reentrant)
        out.sum().backward()

    step()
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        step()
    profile.export_chrome_trace(str(path))
    return digest(read_trace(path, rank=0))


def worked(found):
    ((step,),) = (device.steps for device in found.devices)
    (work,) = step.work.by_dtype
    assert (work.dtype, work.maybe_tf32_flop) == ("fp32", 0)
    assert sum(row.flop for row in found.operators) == work.flop
    assert sum(row.recompute_flop for row in found.operators) == work.recompute_flop
    assert 0 < step.work.counted_ns <= step.times.compute_ns
    return work


@pytest.mark.parametrize(
    ("reentrant", "times", "again"),
    [(None, 3.0, 0.0), (False, 3.5, 0.5), (True, 4.0, 1.0)],
    ids=["none", "non-reentrant", "reentrant"],
)
def test_two_linear_layers(tmp_path, reentrant, times, again):
    model = nn.Sequential(nn.Linear(SIZE, SIZE), nn.ReLU(), nn.Linear(SIZE, SIZE))
    batch = torch.randn(ROWS, SIZE, requires_grad=True)
    work = worked(recorded(tmp_path / "trace.json", model, batch, reentrant))
    assert (work.flop / FORWARD, work.recompute_flop / FORWARD) == (times, again)


@pytest.mark.parametrize(
    ("reentrant", "again"),
    [(None, 0.0), (False, 0.5), (True, 1.0)],
    ids=["none", "non-reentrant", "reentrant"],
)
def test_batched_products_have_no_other_calls_inside(tmp_path, reentrant, again):
    """So the one that is repeated looks like the one that is stopped, but for what follows."""
    batch = torch.randn(4, 16, 8, requires_grad=True)
    forward = 2 * (2 * 4 * 16 * 16 * 8)
    work = worked(recorded(tmp_path / "trace.json", Mixed(), batch, reentrant))
    assert (work.flop / forward, work.recompute_flop / forward) == (3.0 + again, again)
