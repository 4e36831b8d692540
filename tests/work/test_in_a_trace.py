"""What a profiler records of a model gives the count that its shapes give.

On the host, as far as its operators go: the rest of the positions is held against the schemas.
"""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn.functional import ScalingType, scaled_dot_product_attention, scaled_mm

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


def recorded(path, run) -> list[Call]:
    """Profile a function, and return every operator of the trace."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        run()
    profile.export_chrome_trace(str(path))
    events = json.loads(path.read_bytes())["traceEvents"]
    keys = ("Input Dims", "Input type", "Concrete Inputs")
    return [
        Call(event["name"], *(event["args"].get(key, []) for key in keys))
        for event in events
        if event.get("cat") == "cpu_op"
    ]


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> list[Call]:
    """Record one step of the model."""
    model = Model()
    rows, picture = torch.ones(ROWS, INTO), torch.ones(PICTURES, CHANNELS, 9, 8)
    query = torch.ones(BATCH, HEADS, LENGTH, DEPTH, requires_grad=True)

    def step():
        model(rows.requires_grad_(), picture.requires_grad_(), query).backward()
        torch.cat([torch.ones(2, 3), torch.ones(4, 3)])

    return recorded(tmp_path_factory.mktemp("trace") / "trace.json", step)


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


def _narrow(rows, columns):
    return torch.ones(rows, columns).to(torch.float8_e4m3fn)


def _scaled_twice():
    one, whole = torch.tensor(1.0), ScalingType.TensorWise
    matrices = _narrow(32, 16), _narrow(8, 16).t()
    torch._scaled_mm(*matrices, one, one, out_dtype=torch.bfloat16)
    scaled_mm(*matrices, one, whole, one, whole, output_dtype=torch.bfloat16)


def _grouped_three_ways():
    ends = torch.tensor([16, 32], dtype=torch.int32)
    rows, filters = torch.ones(32, 16).bfloat16(), torch.ones(2, 16, 8).bfloat16()
    torch._grouped_mm(rows, filters, offs=ends)
    torch._grouped_mm(rows.t(), rows, offs=ends)
    torch._grouped_mm(filters, filters.transpose(1, 2))


def _added_into_a_tensor():
    ones = torch.ones(4, 4)
    torch.addmm(ones, ones, ones, beta=0.5, out=torch.empty(4, 4))


@pytest.mark.parametrize(
    ("name", "run", "counts"),
    [
        (
            "aten::_int_mm",
            lambda: torch._int_mm(torch.ones(32, 16).char(), torch.ones(16, 8).char()),
            [(2 * 32 * 16 * 8, "int8", 32 * 16 + 16 * 8 + 4 * 32 * 8)],
        ),
        # a scale that is one number has no shape; in a list, it counts as a byte
        (
            "aten::_scaled_mm",
            _scaled_twice,
            [(2 * 32 * 16 * 8, "fp8", 32 * 16 + 16 * 8 + 2 * 32 * 8)],
        ),
        (
            "aten::_scaled_mm_v2",
            _scaled_twice,
            [(2 * 32 * 16 * 8, "fp8", 32 * 16 + 16 * 8 + 2 * 32 * 8 + 2)],
        ),
        (
            "aten::_grouped_mm",
            _grouped_three_ways,
            [
                (2 * 32 * 16 * 8, "bf16", 2 * (32 * 16 + 2 * 16 * 8 + 32 * 8)),
                (2 * 16 * 32 * 16, "bf16", 2 * (2 * 32 * 16 + 2 * 16 * 16)),
                (2 * 2 * 16 * 8 * 16, "bf16", 2 * 2 * (2 * 16 * 8 + 16 * 16)),
            ],
        ),
        (
            "aten::_addmm_activation",
            lambda: torch._addmm_activation(
                torch.ones(8), torch.ones(4, 16), torch.ones(16, 8), beta=0
            ),
            [(2 * 4 * 16 * 8, "fp32", 4 * (4 * 16 + 16 * 8 + 4 * 8))],
        ),
        ("aten::addmm", _added_into_a_tensor, [(2 * 4 * 4 * 4, "fp32", 4 * 4 * 16)]),
    ],
)
def test_other_products(tmp_path, name, run, counts):
    works = [
        work_of(call) for call in recorded(tmp_path / "trace.json", run) if call.name == name
    ]
    assert [work and (work.flop, work.dtype, work.least_bytes) for work in works] == counts
