from __future__ import annotations

import pytest

from traceparse.cli.words import one_accelerator, parse_steps
from traceparse.errors import UsageError


@pytest.mark.parametrize(
    ("text", "steps"),
    [("3-5", range(3, 6)), ("4", range(4, 5)), (" 3 - 5 ", range(3, 6)), ("7-7", range(7, 8))],
)
def test_steps_are_one_number_or_a_range_with_both_ends(text, steps):
    assert parse_steps(text) == steps


@pytest.mark.parametrize("text", ["", "a", "-1", "3-", "3-5-7", "1.5", "3,5", "²", "9" * 30])
def test_other_steps_are_refused_in_words(text):
    with pytest.raises(UsageError) as caught:
        parse_steps(text)
    assert str(caught.value) == (
        f"--steps {text!r}: give one step, such as 4, or a range, such as 3-5"
    )


def test_a_range_that_ends_before_it_starts_is_refused_in_words():
    with pytest.raises(UsageError) as caught:
        parse_steps("5-3")
    assert str(caught.value) == "--steps '5-3': the range ends before it starts; write 3-5"


def test_a_file_of_several_accelerators_is_none_of_them(tmp_path):
    entry = (
        '[[accelerator]]\nid = "{0}"\nnames = ["{0}"]\ndense_tflop_per_s = {{ bf16 = 1.0 }}\n'
    )
    path = tmp_path / "two.toml"
    path.write_text(entry.format("a"))
    assert one_accelerator(str(path)).id == "a"
    path.write_text(entry.format("a") + entry.format("b"))
    with pytest.raises(UsageError, match=r"two\.toml': that may be a, b; give the one that it"):
        one_accelerator(str(path))
