"""What a profiler records of a model gives the count that its shapes give.

On the host, as far as its operators go: the rest of the positions is held against the schemas.
"""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from traceparse.work import Call, Work, work_of

ROWS, INTO, OUT = 6, 10, 12
PICTURES, CHANNELS, FILTERS, GROUPS = 2, 4, 6, 2
BATCH, HEADS, LENGTH, DEPTH = 2, 3, 8, 16


class Model(nn.Module):  # type: ignore[misc]
    """One of each: dense, convolutions both ways, attention, a batched product."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(INTO, OUT)
        self.down = nn.Conv2d(CHANNELS, FILTERS, (3, 2), (2, 1), (1, 0), groups=GROUPS)
        self.up = nn.ConvTranspose2d(FILTERS, CHANNELS, 3, 2, bias=False)

    def forward(self, rows, picture, query):
        attended = scaled_dot_product_attention(query, query, query, is_causal=True)
        batched = torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))
        whole = self.dense(rows).sum() + self.up(self.down(picture)).sum()
        return whole + attended.sum() + batched.sum()


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> list[Call]:
    """Record one step, and every operator of its trace."""
    model = Model()
    rows, picture = torch.ones(ROWS, INTO), torch.ones(PICTURES, CHANNELS, 9, 8)
    query = torch.ones(BATCH, HEADS, LENGTH, DEPTH, requires_grad=True)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        model(rows.requires_grad_(), picture.requires_grad_(), query).backward()
        torch.cat([torch.ones(2, 3), torch.ones(4, 3)])
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    profile.export_chrome_trace(str(path))
    events = json.loads(path.read_bytes())["traceEvents"]
    keys = ("Input Dims", "Input type", "Concrete Inputs")
    return [
        Call(event["name"], *(event["args"].get(key, []) for key in keys))
        for event in events
        if event.get("cat") == "cpu_op"
    ]


@pytest.fixture(scope="module")
def works(calls) -> dict[str, list[Work]]:
    """Count every operator that can be."""
    found: dict[str, list[Work]] = {}
    for call in calls:
        work = work_of(call)
        if work is not None:
            found.setdefault(call.name, []).append(work)
    return found


def test_a_list_of_tensors(calls):
    (call,) = [call for call in calls if call.name == "aten::cat"]
    assert call.shapes(0) == ((2, 3), (4, 3))
    assert call.type_of(0) == "TensorList"


def test_everything_is_known(works):
    assert [work.unknown for each in works.values() for work in each if work.unknown] == []
    assert {work.dtype for each in works.values() for work in each} == {"fp32"}


def test_dense(works):
    (work,) = works["aten::addmm"]
    assert work.flop == 2 * ROWS * INTO * OUT
    assert work.least_bytes == 4 * (ROWS * INTO + INTO * OUT + ROWS * OUT + OUT)
    assert [work.flop for work in works["aten::mm"]] == [2 * ROWS * INTO * OUT] * 2


def test_batched_product(works):
    (work,) = works["aten::baddbmm"]
    assert (work.flop, work.least_bytes) == (2 * 2 * 3 * 4 * 5, 4 * 2 * (12 + 20 + 15 + 15))


DOWN = 2 * PICTURES * (5 * 7) * (FILTERS * CHANNELS // GROUPS * 3 * 2)
UP = 2 * PICTURES * (5 * 7) * (FILTERS * CHANNELS * 3 * 3)


@pytest.mark.parametrize("name", ["aten::convolution", "aten::_convolution"])
def test_convolutions(works, name):
    down, up = works[name]
    assert (down.flop, up.flop) == (DOWN, UP)
    picture, between = PICTURES * CHANNELS * 9 * 8, PICTURES * FILTERS * 5 * 7
    weight = FILTERS * CHANNELS // GROUPS * 3 * 2
    assert down.least_bytes == 4 * (picture + weight + FILTERS + between)
    result = PICTURES * CHANNELS * 11 * 15
    assert up.least_bytes == 4 * (between + FILTERS * CHANNELS * 9 + result)


def test_convolution_of_the_backend(works):
    if "aten::mkldnn_convolution" not in works:
        pytest.skip("this build of torch has no oneDNN")
    assert [work.flop for work in works["aten::mkldnn_convolution"]] == [DOWN]


def test_convolutions_backward(works):
    flop = [work.flop for work in works["aten::convolution_backward"]]
    assert flop == [2 * UP, 2 * DOWN]


def test_attention(works):
    pairs = LENGTH * (LENGTH + 1) // 2
    (work,) = works["aten::_scaled_dot_product_flash_attention_for_cpu"]
    assert work.flop == 2 * BATCH * HEADS * pairs * 2 * DEPTH
    assert work.conventions == ("causal=half", "fp32=may be tf32")
    (back,) = works["aten::_scaled_dot_product_flash_attention_for_cpu_backward"]
    assert back.flop == 2 * BATCH * HEADS * pairs * 5 * DEPTH
    assert back.recompute_flop == work.flop // 2
