"""The positions that formulas read are those of the schemas that torch has."""

from __future__ import annotations

import pytest
import torch

from traceparse.work import formulas
from traceparse.work.kernels import KERNELS

aten = torch.ops.aten
ATTENTION = [name for name in KERNELS if name.startswith("aten::")]


def _arguments(name: str) -> list[str]:
    operator = getattr(aten, name.removeprefix("aten::")).default
    return [argument.name for argument in operator._schema.arguments]


@pytest.mark.parametrize("name", [name for name in formulas() if name.startswith("aten::")])
def test_every_operator_exists(name):
    assert _arguments(name)


#: of each place, the names that schemas have for it
PLACES = {
    "query": {"query"},
    "causal": {"is_causal"},
    "mask": {"attn_bias", "attn_mask", "bias"},
    "mask_type": {"custom_mask_type"},
    "window": {"window_size_left"},
    "window_size": {"window_size"},
    "cumulative": {"cum_seq_q", "cu_seqlens_q"},
    "longest": {"max_q", "max_seqlen_q"},
    "keeps_lse": {"compute_log_sumexp"},
}
FOLLOWED = {
    "query": [{"key"}, {"value"}],
    "cumulative": [{"cum_seq_k", "cu_seqlens_k"}],
    "longest": [{"max_k", "max_seqlen_k"}],
    "window": [{"window_size_right"}],
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name):
    arguments, kernel = _arguments(name), KERNELS[name]
    for field, names in PLACES.items():
        place = getattr(kernel, field)
        if place is None:
            continue
        for more, wanted in enumerate([names, *FOLLOWED.get(field, [])]):
            assert arguments[place + more] in wanted, field
    for place in kernel.lengths:
        assert arguments[place] in {"seqused_k", "block_table", "seqlen_k"}
    assert kernel.is_backward == arguments[0].startswith("grad_out")


@pytest.mark.parametrize("name", ATTENTION)
def test_nothing_that_masks_is_left_out(name):
    arguments, kernel = _arguments(name), KERNELS[name]
    masks = {"attn_bias", "attn_mask", "bias"} & set(arguments)
    assert (kernel.mask is not None) == bool(masks)
    assert (kernel.window is not None) == ("window_size_left" in arguments)


def test_quantized_overloads():
    flash = aten._flash_attention_forward.quantized._schema.arguments
    sdpa = aten._scaled_dot_product_flash_attention.quantized._schema.arguments
    assert len(flash) >= 18 > len(aten._flash_attention_forward.default._schema.arguments)
    assert [flash[place].name for place in (8, 14, 15, 16)] == [
        *("is_causal", "window_size_left", "window_size_right", "seqused_k")
    ]
    assert (len(sdpa), sdpa[7].name) == (10, "is_causal")


@pytest.mark.parametrize("name", [name for name in formulas() if "conv" in name])
def test_convolutions(name):
    arguments, formula = _arguments(name), formulas()[name]
    if name == "aten::convolution_backward":
        assert [arguments[place] for place in (0, 1, 2, 7, 9, 10)] == [
            *("grad_output", "input", "weight", "transposed", "groups", "output_mask")
        ]
        return
    places = formula.keywords["places"]  # type: ignore[attr-defined]
    for field in ("stride", "padding", "dilation", "groups", "transposed", "output_padding"):
        if getattr(places, field) is not None:
            assert arguments[getattr(places, field)] == field
    assert {arguments[place] for place in places.also_read} == {"bias", "z"} & set(arguments)
    assert places.is_transposed == name.endswith("transpose")


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("_scaled_mm", {2: "scale_a", 3: "scale_b", 4: "bias", 6: "out_dtype"}),
        ("_scaled_mm_v2", {2: "scale_a", 5: "scale_b", 8: "bias", 9: "out_dtype"}),
        ("_grouped_mm", {2: "offs", 3: "bias", 4: "out_dtype"}),
        (
            "_scaled_grouped_mm",
            {2: "scale_a", 3: "scale_b", 4: "offs", 5: "bias", 7: "out_dtype"},
        ),
        (
            "_scaled_grouped_mm_v2",
            {2: "scale_a", 5: "scale_b", 8: "offs", 9: "bias", 10: "out_dtype"},
        ),
        ("addmm", {1: "mat1", 2: "mat2", 3: "beta"}),
        ("_addmm_activation", {1: "mat1", 2: "mat2", 3: "beta"}),
        ("baddbmm", {1: "batch1", 2: "batch2", 3: "beta"}),
        ("addbmm", {1: "batch1", 2: "batch2", 3: "beta"}),
    ],
)
def test_products(name, places):
    arguments = _arguments(name)
    assert {place: arguments[place] for place in places} == places
    keywords = getattr(formulas()[f"aten::{name}"], "keywords", {})
    said = [*keywords.get("scales", ()), *(keywords.get(k) for k in ("offsets", "bias"))]
    assert {place for place in said if place is not None} <= set(places)
    if "out_dtype" in keywords:
        assert places[keywords["out_dtype"]] == "out_dtype"


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "baddbmm"])
def test_overloads_with_a_type_of_result(name):
    plain = getattr(aten, name).default._schema.arguments
    typed = getattr(aten, name).dtype._schema.arguments
    place = 3 if "add" in name else 2
    assert typed[place].name == "out_dtype"
    assert len(typed) == len(plain) + 1
