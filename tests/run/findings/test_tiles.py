"""How much of a device a product can use: worked out by hand."""

from __future__ import annotations

import pytest

from traceparse.run.findings.tiles import Product, best_tiled, product_of


@pytest.mark.parametrize(
    ("op", "shapes", "product"),
    [
        ("aten::mm", "256x131072, 131072x512", Product(256, 512, 131072)),
        ("aten::addmm", "640, 888x2880, 2880x640", Product(888, 640, 2880, is_layer=True)),
        ("aten::addmm", "888x640, 888x2880, 2880x640", Product(888, 640, 2880, is_layer=True)),
        ("aten::bmm", "16x128x64, 16x64x32", Product(128, 32, 64, batch=16)),
        ("aten::baddbmm", "16x128x32, 16x128x64, 16x64x32", Product(128, 32, 64, batch=16)),
        ("aten::linear", "4x512x64, 128x64, 128", Product(2048, 128, 64, is_layer=True)),
        ("aten::_scaled_mm", "64x32, 32x16, 1, 1", Product(64, 16, 32)),
        ("aten::mm", "256x131072, 131073x512", None),
        ("aten::mm", "256x0, 0x512", None),
        ("aten::mm", "256x13", None),
        ("aten::mm", "2x3x4, 2x4x5", None),
        ("aten::mm", "[[1, 2], [2, 3]]", None),
        ("aten::mm", f"2x{'9' * 19}, {'9' * 19}x2", None),
        ("aten::bmm", "16x128x64, 8x64x32", None),
        ("aten::linear", "64", None),
        ("aten::convolution", "256x16, 16x512", None),
    ],
)
def test_products_are_read_from_shapes(op, shapes, product):
    assert product_of(op, shapes) == product


def test_tiles_and_waves():
    # 12 x 12 tiles of 128 on 132 SMs: two waves, of which 144 of 264 places are used
    square = best_tiled(Product(1536, 1536, 4096), num_sms=132)
    assert (square.tile, square.num_tiles, square.num_waves) == ((128, 128), 144, 2)
    assert square.ratio == pytest.approx(144 / 264)
    # 129 rows need two tiles of 128, or one of 256, which is half used: 4 of 132 SMs
    thin = best_tiled(Product(129, 512, 64), num_sms=132)
    assert thin.tile_ratio == pytest.approx(129 / 256)
    assert thin.ratio == pytest.approx(129 / 256 * 8 / 132)
    # all of 66 x 2 tiles at once
    assert best_tiled(Product(66 * 128, 256, 64), num_sms=132).ratio == 1
    # a batch fills what one product does not
    assert best_tiled(Product(128, 128, 64, batch=132), num_sms=132).ratio == 1


def test_sizes_that_are_no_multiple_of_16_bytes():
    assert Product(m=4096, n=50_257, k=768).unaligned(2) == ["N = 50,257"]
    assert Product(7, 24, 16).unaligned(1) == ["N = 24"]
    assert Product(7, 24, 16).unaligned(4) == []
    # in a weight's gradient it is columns that lie one after another: K may be odd
    assert Product(768, 768, 1001).unaligned(2) == []
    assert Product(768, 768, 1001, is_layer=True).unaligned(2) == ["K = 1,001"]


def test_the_smallest_size_bounds_the_intensity():
    product = Product(m=10**6, n=10**6, k=32)
    assert product.smallest == ("K", 32)
    moved = product.m * product.k + product.k * product.n + product.m * product.n
    flop = 2 * product.m * product.n * product.k
    assert 0.99 * 64 < flop / moved < 64
    assert Product(1, 64, 64).smallest == ("M", 1)
