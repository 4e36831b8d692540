"""Work by step, device, data type and operator, worked out by hand."""

from __future__ import annotations

import pytest

from tests.rank.test_attribute import DIMS, FORWARD, engine, mm
from tests.traces import kernel, launch, op, step, write
from traceparse.ingest import read_trace
from traceparse.rank import DtypeWork, digest, signatures

SMALL, LARGE = 2 * 2 * 3 * 5, 2 * 4 * 4 * 4


def digested(tmp_path, events):
    return digest(read_trace(write(tmp_path / "rank0.json", events, baseTimeNanoseconds=0)))


def run(ts, correlation, *, at=None, name="gemm", device=0, **args):
    """Return an operator at a time, its launch, and its kernel of 5 us."""
    return [
        mm(ts, 5, **args),
        launch(ts + 1, correlation=correlation),
        kernel(at or 500 + 10 * correlation, 5, name, correlation=correlation, device=device),
    ]


def flop(work) -> dict[str, tuple[int, int]]:
    return {one.dtype: (one.flop, one.recompute_flop) for one in work.by_dtype}


def test_work_belongs_to_the_step_that_launched_it_and_time_to_where_it_runs(tmp_path):
    events = [
        step(1, 100, 100),
        step(2, 200, 100),
        *run(50, 9),  # before all steps
        *run(110, 1),
        *run(120, 2, dims=DIMS[1]),
        *run(199, 3),  # launched at 200, so by the second
        *run(210, 4),
    ]
    (device,) = digested(tmp_path, events).devices
    first, second = device.steps
    assert first.work is not None
    assert second.work is not None
    assert flop(first.work) == {"bf16": (SMALL + LARGE, 0)}
    assert flop(second.work) == {"bf16": (2 * SMALL, 0)}
    # 510, 520 | 530, 540 to the end of the last; the one at 590 is of none, and in it
    assert first.work.counted_ns == 10_000
    assert second.times is not None
    assert (second.times.start_ns, second.times.end_ns) == (530_000, 545_000)
    assert second.work.counted_ns == 10_000


def test_steps_of_one_instant_share_what_is_launched_then(tmp_path):
    events = [step(1, 100, 100), step(2, 150, 100), *run(110, 1), *run(160, 2), *run(210, 3)]
    (device,) = digested(tmp_path, events).devices
    works = [flop(cut.work) for cut in device.steps if cut.work]
    assert works == [{"bf16": (2 * SMALL, 0)}, {"bf16": (2 * SMALL, 0)}]


def test_a_step_without_interval_has_no_time_and_no_work(tmp_path):
    events = [step(1, 100, 100), step(2, 200, 100), *run(110, 1)]
    (device,) = digested(tmp_path, events).devices
    assert device.steps[1].times is None
    assert device.steps[1].work is not None
    assert (device.steps[1].work.counted_ns, device.steps[1].work.by_dtype) == (None, ())


def test_each_device_has_its_own(tmp_path):
    events = [*run(10, 1), *run(20, 2, device=1, dims=DIMS[1]), *run(30, 3, device=1)]
    events.append(kernel(900, 3, device=1, correlation=8))
    first, second = digested(tmp_path, events).devices
    assert [flop(cut.work) for device in (first, second) for cut in device.steps] == [
        {"bf16": (SMALL, 0)},
        {"bf16": (SMALL + LARGE, 0)},
    ]
    counts = [
        (device.kernels.unattributed_count, device.kernels.unattributed_time_ns)
        for device in (first, second)
    ]
    assert counts == [(0, 0), (1, 3000)]


@pytest.mark.parametrize(
    ("names", "dtype", "maybe"),
    [
        (["sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n"], "tf32", 0),
        (["cutlass_80_tensorop_s1688gemm_128x128"], "tf32", 0),
        (["volta_sgemm_128x64_nn"], "fp32", 0),
        (["void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"], "fp32", 0),
        (["splitKreduce", "ampere_sgemm_64x64_tn"], "fp32", 0),
        (["Cijk_Ailk_Bljk_SB_MT32x32x16"], "fp32", SMALL),
    ],
)
def test_whether_fp32_ran_as_tf32_is_told_by_kernels(tmp_path, names, dtype, maybe):
    product = mm(10, 9)
    product["args"]["Input type"] = ["float", "float"]
    events = [product]
    for n, name in enumerate(names, 1):
        events += [launch(10 + n, correlation=n), kernel(99 + n, 1, name, correlation=n)]
    found = digested(tmp_path, events)
    (cut,) = found.devices[0].steps
    assert cut.work is not None
    assert cut.work.by_dtype == (DtypeWork(dtype, SMALL, 0, SMALL, SMALL, maybe),)
    assert [row.is_maybe_tf32 for row in found.operators] == [maybe > 0]
    assert ("fp32=may be tf32" in found.conventions) is (maybe > 0)


def test_other_types_are_what_the_operator_says(tmp_path):
    """Names that hold tf32 or sgemm by chance change nothing."""
    found = digested(tmp_path, run(10, 1, name="sm80_xmma_gemm_bf16_not_tf32_sgemm"))
    assert [row.dtype for row in found.operators] == ["bf16"]


def test_flop_of_sequences_of_unknown_lengths_are_bounded(tmp_path):
    dims = [[10, 2, 8], [10, 2, 8], [10, 2, 8], [4], [4]]
    concrete = [""] * 5 + ["6", "6", "0.", "False", "False", "", "", ""]
    packed = op(
        10,
        9,
        "aten::_flash_attention_forward",
        **{
            "Input Dims": [*dims, *[[]] * 8],
            "Input type": ["c10::Half"] * 3 + ["int", "int"] + ["Scalar"] * 8,
            "Concrete Inputs": concrete,
        },
    )
    events = [packed, launch(11, correlation=1), kernel(99, 1, correlation=1)]
    (cut,) = digested(tmp_path, events).devices[0].steps
    assert cut.work is not None
    (work,) = cut.work.by_dtype
    assert 0 < work.lowest_flop < work.highest_flop
    assert work.lowest_flop <= work.flop <= work.highest_flop


def test_without_shapes_nothing_is_known(tmp_path):
    events = [op(10, 9), launch(11, correlation=1), kernel(99, 1, correlation=1)]
    found = digested(tmp_path, events)
    assert found.devices[0].steps[0].work is None
    assert found.operators == ()


def test_operators_that_are_not_told_apart_still_count(tmp_path, monkeypatch):
    """A file may have any number of shapes; reports have not."""
    monkeypatch.setattr(signatures, "_MOST_KINDS", 2)
    events = []
    for n in range(1, 6):
        events += run(10 * n, n, dims=[[n, 3], [3, 5]])
    found = digested(tmp_path, events)
    assert [(row.shapes, row.count, row.flop) for row in found.operators] == [
        ("others", 3, 30 * (3 + 4 + 5)),
        ("1x3, 3x5", 1, 30),
        ("2x3, 3x5", 1, 60),
    ]


def test_the_shortest_kernel_took_some_time(tmp_path):
    events = [kernel(1, 0), kernel(2, 7), kernel(3, 4)]
    assert digested(tmp_path, events).shortest_kernel_ns == 4000
    assert digested(tmp_path, [kernel(1, 0)]).shortest_kernel_ns is None


def test_repeated_and_first_runs_are_rows_of_their_own(tmp_path):
    events = [
        *run(10, 1, **FORWARD),
        engine(40, 30),
        *run(45, 2, **FORWARD),
        *run(55, 3, dims=DIMS[1]),
    ]
    found = digested(tmp_path, events)
    rows = {(row.shapes, row.is_recompute): row.recompute_flop for row in found.operators}
    assert rows == {("2x3, 3x5", False): 0, ("2x3, 3x5", True): SMALL, ("4x4, 4x4", False): 0}


@pytest.mark.parametrize(
    ("dims", "text"),
    [
        ([[2, 3], [], [4]], "2x3, 4"),
        ([[[1, 2], [3]], []], "(1x2, 3)"),
        ([["x", [1]], 7, None, [None]], "(1), "),
        ([[10**30]], "10000000000000000000"),
        ([[1] * 200], "1x" * 79 + "1…"),
    ],
)
def test_shapes_for_people(dims, text):
    assert signatures.shapes_text(dims) == text


@pytest.mark.parametrize("text", [None, "{", '"[[1]]"', "[" * 3000, "7", "null"])
def test_inputs_that_are_no_list_say_nothing(text):
    assert signatures.read_inputs(text) == []
