"""Kernels that move data, and copies."""

from __future__ import annotations

import pytest

from traceparse.run.findings.memory import memory_bound_kernels, pageable_copies


@pytest.mark.parametrize(
    ("counted", "severity"), [(851, None), (850, "info"), (701, "info"), (700, "warning")]
)
def test_time_outside_of_products(seen, counted, severity):
    found = list(memory_bound_kernels(seen.view(compute=1_000, counted_ns=counted)))
    assert [one["severity"] for one in found] == ([severity] if severity else [])


def test_operators_are_named_and_what_they_have_instead(seen, h100):
    rows = [
        seen.kernel("aten::_foreach_add_", 300),
        seen.kernel("aten::native_layer_norm", 200, least_bytes=335_000),  # 100 ns of them
        seen.kernel("aten::mm", 900, is_counted=True),
        seen.kernel(None, 900),
        seen.kernel("nccl", 900, kind="comm"),
        seen.kernel("aten::native_layer_norm", 100, least_bytes=335_000),
    ]
    view = seen.view(compute=1_000, counted_ns=600, top_kernels=rows, accelerator=h100)
    (found,) = memory_bound_kernels(view)
    assert found["title"] == "kernels that move data take 40.0% of the device-steps"
    assert (
        "most of it aten::_foreach_add_ 50.0% of their time in 2 kernels, "
        "aten::native_layer_norm 50.0% of their time in 4 kernels"
    ) in found["evidence"]
    assert "torch.compile" in found["advice"]
    assert "fused=True in the optimizer" in found["advice"]
    assert "a fused norm" in found["advice"]
    # of 600 ns that are 40 % of the steps, 100 are above the bandwidth
    assert found["lost_ratio"] == pytest.approx(0.4 * 100 / 600)


def test_counted_kernels_near_the_bandwidth_are_among_them(seen, h100):
    near = seen.product("131072x64, 64x4096", reached=0.75, bound="memory", bytes=2_512_500)
    slow = seen.product("256x131072, 131072x512", reached=0.05, bound="memory")
    fields = {"counted_ns": 1_000, "accelerator": h100}
    (found,) = memory_bound_kernels(seen.view(compute=1_000, roofline=[near], **fields))
    assert found["lost_ratio"] == pytest.approx(0.25)
    assert "counted ones that memory bounds 100.0%" in found["evidence"]
    assert not list(memory_bound_kernels(seen.view(compute=1_000, roofline=[slow], **fields)))


def test_products_that_nobody_counted_do_not_move_data(seen):
    rows = [
        seen.kernel("aten::cudnn_convolution", 600),
        seen.kernel("aten::relu", 300),
        seen.kernel("aten::sum", 100, name="Cijk_Ailk_Bljk_BBS_BH"),
    ]
    (found,) = memory_bound_kernels(seen.view(compute=1_000, counted_ns=0, top_kernels=rows))
    assert found["title"] == "kernels that move data take 30.0% of the device-steps"
    assert "most of it aten::relu 100.0%" in found["evidence"]
    assert (
        "70.0% more is in kernels without a known operator, or of products"
        in (found["evidence"])
    )


def test_kernels_of_no_known_operator_are_nobodys(seen):
    kernels = {"time_ns": 1_000, "unattributed_time_ns": 700}
    view = seen.view(compute=1_000, counted_ns=100, kernels=kernels)
    (found,) = memory_bound_kernels(view)
    assert found["title"] == "kernels that move data take 20.0% of the device-steps"
    assert "70.0% more is in kernels without a known operator" in found["evidence"]
    assert found["lost_ratio"] is None
    kernels["unattributed_time_ns"] = 800
    view = seen.view(compute=1_000, counted_ns=100, kernels=kernels)
    assert not list(memory_bound_kernels(view))


def test_operators_of_a_host_may_be_too_small_to_do_anything(seen):
    assert not list(
        memory_bound_kernels(seen.view(compute=1_000, counted_ns=100, is_host=True))
    )


def copy(memory, exposed_ns, direction="HtoD", **fields):
    known = {"count": 3, "time_ns": 100, "bytes": 4_000_000}
    return {
        "direction": direction,
        "memory": memory,
        "exposed_ns": exposed_ns,
        **known,
        **fields,
    }


def test_copies_from_pageable_memory(seen):
    rows = [copy("pageable", 30), copy("pinned", 60), copy("pageable", 10, "DtoH", bytes=None)]
    (found,) = pageable_copies(seen.view(compute=800, copy=200, copies=rows))
    assert (found["severity"], found["lost_ratio"]) == ("warning", pytest.approx(0.08))
    assert found["evidence"].startswith(
        "3 x HtoD (4.0 MB), 3 x DtoH (\N{EN DASH}); exposed for"
    )
    assert "pin_memory=True" in found["advice"]
    assert not list(pageable_copies(seen.view(compute=980, copy=20, copies=rows)))


@pytest.mark.parametrize("rows", [None, [], [copy("pageable", 0)], [copy("pageable", None)]])
def test_copies_that_nobody_waits_for(seen, rows):
    assert not list(pageable_copies(seen.view(compute=800, copy=200, copies=rows)))
