"""Settings of ``check`` in pyproject.toml: found upwards, and refused where they slip."""

from __future__ import annotations

import pytest

from traceparse.errors import InputError, UsageError
from traceparse.run.check import Settings, found_settings, read_settings

TABLE = "[tool.traceparse.check]\n"


def test_the_nearest_one_that_has_settings(tmp_path):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert found_settings(inner).fail_on == ()
    (tmp_path / "pyproject.toml").write_text(
        f'{TABLE}fail-on = ["mfu < 0.35"]\nsteps = "3-5"\n'
    )
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    assert found_settings(inner) == Settings(
        ("mfu < 0.35",), {"steps": "3-5"}, tmp_path / "pyproject.toml"
    )
    (inner / "pyproject.toml").write_text(f"{TABLE}price = 2\n")
    assert found_settings(inner).options == {"price": 2}


def test_every_key(tmp_path):
    path = tmp_path / "gate.toml"
    path.write_text(
        f"{TABLE}accelerator = 'ours.toml'\npeak = ['bf16=989']\nceiling = 'mamf'\n"
        "model-flop-per-step = 1e15\ntokens-per-step = 4096\nmodel = 'config.json'\n"
        "seq = 2048\nstrict = true\nrecompute = 'full'\nconvention = 'palm'\nparams = 8e9\n"
    )
    assert read_settings(path).options == {
        "accelerator": str(tmp_path / "ours.toml"),
        "peak": ["bf16=989"],
        "ceiling": "mamf",
        "model_flop_per_step": 1e15,
        "tokens_per_step": 4096,
        "model": str(tmp_path / "config.json"),
        "seq": 2048,
        "strict": True,
        "recompute": "full",
        "convention": "palm",
        "params": 8e9,
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{TABLE}fail_on = []", "[tool.traceparse.check] has no key 'fail_on'; keys are "),
        (f"{TABLE}fail-on = 'mfu < 1'", 'fail-on is a list of texts, such as ["mfu < 0.35"]'),
        (f"{TABLE}fail-on = [1]", 'fail-on is a list of texts, such as ["mfu < 0.35"]'),
        (f"{TABLE}price = true", "price is a number, not True"),
        (f"{TABLE}price = '2'", "price is a number, not '2'"),
        (f"{TABLE}strict = 1", "strict is true or false, not 1"),
        (f"{TABLE}peak = [1]", 'peak is a list such as ["bf16=989"], not [1]'),
        (f"{TABLE}steps = 3", 'steps is a text such as "3-5", not 3'),
        ("[tool.traceparse]\ncheck = 1", "tool.traceparse.check is no table; write [tool."),
        ("[tool", "is no TOML ("),
        ("a = '\udcff'", "is no TOML ("),
    ],
)  # fmt: skip
def test_what_slips_is_refused_with_the_name_of_the_file(tmp_path, text, why):
    path = tmp_path / "pyproject.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    for read in (lambda: read_settings(path), lambda: found_settings(tmp_path)):
        with pytest.raises(UsageError) as caught:
            read()
        assert str(caught.value).startswith(f"{path}: {why}")
        assert "\n" not in str(caught.value)


def test_a_file_that_is_named_is_there_and_has_them(tmp_path):
    path = tmp_path / "gate.toml"
    with pytest.raises(InputError, match=r"gate\.toml: cannot be read \(No such file"):
        read_settings(path)
    path.write_text("[tool.ruff]\n")
    with pytest.raises(
        UsageError, match=r"gate\.toml: has no table \[tool\.traceparse\.check\]"
    ):
        read_settings(path)
    path.write_text("#" * ((1 << 20) + 1))
    with pytest.raises(InputError, match=r"gate\.toml: is larger than 1,048,576 bytes"):
        read_settings(path)
