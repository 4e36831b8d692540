from __future__ import annotations

import pytest

from traceparse.cli.amounts import parse_bytes, parse_ranks
from traceparse.errors import UsageError


def test_ranks_are_numbers_and_ranges_in_any_order():
    assert parse_ranks("8-10, 0,1 ,9") == [0, 1, 8, 9, 10]
    for text in ("", "1,", "a", "3-1", "-1", "9" * 30, "0-1048576", "²"):
        with pytest.raises(UsageError) as caught:
            parse_ranks(text)
        assert str(caught.value) == (
            f"--ranks {text!r}: give ranks or ranges of them, such as 0,1,8-15"
        )


def test_sizes_are_decimal():
    sizes = {"200MB": 200_000_000, "1.5 gb": 1_500_000_000, "64k": 64_000, " 12 ": 12, "7B": 7}
    assert {text: parse_bytes("--max-bytes", text) for text in sizes} == sizes
    for text in ("", "MB", "-1", "1e9", "2 TB", "1.MB"):
        with pytest.raises(UsageError) as caught:
            parse_bytes("--max-bytes", text)
        assert str(caught.value) == f"--max-bytes {text!r}: give a size, such as 200MB"
