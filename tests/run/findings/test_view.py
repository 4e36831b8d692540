"""What rules see of a run."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("op", "name", "is_product"),
    [
        ("aten::cudnn_convolution", "implicit_convolve_sgemm", True),
        ("aten::mm", "nvjet_tst_128x256", True),
        ("aten::baddbmm", "kernel", True),
        ("aten::linear", "kernel", True),
        ("aten::_scaled_mm", "kernel", True),
        ("aten::scaled_dot_product_attention", "kernel", True),
        ("vllm::unified_attention", "kernel", True),
        ("custom::op", "void cutlass::Kernel2<...>", True),
        ("custom::op", "triton_tem_fused_mm_3", True),
        ("custom::op", "triton_poi_fused_addmm_gelu_0", False),
        ("aten::add", "vectorized_elementwise_kernel", False),
        ("aten::_convert_weight_to_int4pack", "kernel", False),
        ("aten::linspace", "linspace_cuda_out", False),
        ("aten::_linalg_norm", "kernel", False),
        ("fbgemm::split_embedding_codegen_lookup", "fbgemm_gpu::split_embedding", False),
        ("aten::comm", "commit", False),
    ],
)
def test_what_multiplies_is_told_by_its_name(seen, op, name, is_product):
    view = seen.view(top_kernels=[seen.kernel(op, 100, name=name)])
    assert bool(view.uncounted_products_ns) is is_product
    assert bool(view.uncounted_kernels()) is not is_product


def test_time_of_files_becomes_a_share_of_steps(seen):
    """Kernels of 4,000 ns in the files, 900 ns of compute in the steps."""
    rows = [seen.kernel("aten::mm", 1_000), seen.kernel("aten::add", 3_000)]
    view = seen.view(compute=900, idle=100, counted_ns=0, top_kernels=rows)
    assert view.uncounted_products_ns == 225
    assert view.other_ratio == pytest.approx(0.675)
    assert view.of_counted(5) is None
    counted = seen.view(counted_ns=450, roofline=[seen.product("8x8", reached=0.5)])
    assert counted.of_counted(500) == pytest.approx(0.25)


def test_what_is_unknown_is_no_number(seen):
    view = seen.view()
    assert view.other_ratio is None
    assert view.counted_ratio is None
    assert view.won_ratio("network_free") is None
    assert view.term("idle") is None
    assert (view.peak("bf16"), view.bytes_per_s) == (None, None)
    assert view.host_ratio("launch_ns") == 0
    assert seen.view(compute=0).ratio(5) == 0
    changes = {"changes": [{"change": "network_free", "won_ratio": None}]}
    assert seen.view(what_if=changes).won_ratio("network_free") is None
