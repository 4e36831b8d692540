from __future__ import annotations

import math
import re
from importlib.resources import files

import pytest

from traceparse.errors import InputError, UsageError
from traceparse.work import accelerators, find, load_file, parse_peak
from traceparse.work.accelerators import DTYPES

TABLE = {entry.id: entry for entry in accelerators()}


def test_all_sixty_are_there_and_each_has_a_source_and_a_confidence():
    assert len(accelerators()) == len(TABLE) == 60
    for entry in accelerators():
        assert entry.sources
        assert all(
            re.match(r"(read|recalled|derived): .{9,}", source) for source in entry.sources
        )
        assert entry.confidence in {"high", "medium", "low", "unresolved"}
        assert entry.hbm_gb_per_s
        assert entry.memory_gb
        assert all(measured.source for measured in entry.measured)


def test_most_peaks_follow_from_a_published_rate():
    assert sum(entry.formula is not None for entry in accelerators()) == 44


@pytest.mark.parametrize(
    "entry", [entry for entry in accelerators() if entry.formula], ids=lambda entry: entry.id
)
def test_dense_16_bit_peak_is_what_clock_and_width_give(entry):
    """An oracle for the vendor's figure: sparse or doubled ones would be twice as much."""
    per_second = entry.formula.clock_mhz * 1e6 * entry.formula.flop_per_clock_per_sm
    assert entry.peak_flop_per_s["fp16"] == pytest.approx(
        per_second * entry.sm_count, rel=0.015
    )


@pytest.mark.parametrize("entry", accelerators(), ids=lambda entry: entry.id)
def test_no_narrower_type_is_quoted_sparse(entry):
    """8 bits are at most twice 16 bits: four times is sparse (or an accumulator of 16 bits)."""
    peaks = entry.peak_flop_per_s
    assert peaks.get("fp8", 0) <= 2.03 * peaks.get("bf16", math.inf) or entry.id == "gaudi3"
    assert peaks.get("tf32", 0) <= peaks.get("fp16", math.inf)
    assert all(peaks[m.dtype] > m.tflop_per_s * 1e12 for m in entry.measured)
    assert peaks.get("fp64_tensor", math.inf) >= peaks.get("fp64", 0)


# Trap: what somebody shipped; and what the dense peak with fp32 accumulation is
@pytest.mark.parametrize(
    ("name", "dtype", "wrong", "dense"),
    [
        ("h100-sxm", "bf16", 1979, 989.4),  # sparse
        ("h100-sxm", "bf16", 494.7, 989.4),  # tf32's
        ("h100-sxm", "fp64", 67, 34),  # tensor's
        ("h100-pcie", "bf16", 989.4, 756.5),
        ("h100-nvl", "bf16", 1671, 835.5),  # of a pair
        ("h200-sxm", "bf16", 1979, 989.4),
        ("h800-sxm", "bf16", 312, 989.4),  # fell back to an A100
        ("h20", "bf16", 585, 148),  # by SM count
        ("b200", "bf16", 4500, 2250),  # sparse
        ("gb200", "bf16", 2250, 2500),  # B200's
        ("b300", "int8", 4500, 150),
        ("a100-sxm-80", "bf16", 156, 312),  # halved twice
        ("a100-sxm-80", "fp64", 19.5, 9.7),
        ("a10", "bf16", 70, 125),
        ("a10g", "bf16", 125, 70),  # A10's
        ("l4", "bf16", 242, 121),
        ("l40", "bf16", 362, 181),
        ("l40s", "bf16", 121, 362),  # L4's
        ("rtx-a6000", "bf16", 309.7, 154.8),
        ("rtx-3090", "bf16", 35.6, 71.2),  # not the tensor cores'
        ("rtx-4090", "bf16", 330.3, 165.2),  # fp16 accumulation
        ("rtx-5090", "bf16", 838, 209.5),
        ("mi300x", "bf16", 2614.9, 1307.4),
        ("mi250x-gcd", "bf16", 383, 191.5),  # of the card
        ("mi355x", "fp8", 10066.3, 5033.2),
        ("gaudi3", "bf16", 1835, 1677),
    ],
)
def test_traps_that_others_fell_into(name, dtype, wrong, dense):
    peak = TABLE[name].peak_flop_per_s[dtype]
    assert peak == pytest.approx(dense * 1e12)
    assert peak != pytest.approx(wrong * 1e12, rel=0.01)


@pytest.mark.parametrize("name", ["v100-sxm2", "v100-pcie", "v100s-pcie", "t4"])
def test_types_that_the_tensor_cores_lack_have_no_peak(name):
    assert "bf16" not in TABLE[name].peak_flop_per_s
    assert "fp16" in TABLE[name].peak_flop_per_s


def test_half_rates_are_kept_apart():
    assert TABLE["rtx-4090"].fp16_accumulate_tflop_per_s == {"fp16": 330.3, "fp8": 660.6}


def test_the_ceiling_is_a_mean_of_measurements_of_one_kind():
    assert TABLE["h100-sxm"].mamf_flop_per_s == {"bf16": 794.5e12, "fp8": 1402.6e12}
    assert TABLE["mi300x"].mamf_flop_per_s == {"bf16": 668.4e12}  # TraceLens says 708
    assert [m.tflop_per_s for m in TABLE["mi300x"].measured] == [668.4, 708.0, 1273.0]


def test_a_link_counts_one_direction():
    link = TABLE["h800-sxm"].link
    assert link is not None
    assert (link.gb_per_s_per_direction, link.gb_per_s_bidirectional) == (200, 400)
    assert TABLE["l4"].link is None


@pytest.mark.parametrize(
    ("name", "memory", "bandwidth"),
    [
        ("h100-sxm", None, 3350e9),
        ("v100-sxm2", 16, 900e9),
        ("h20", 96, 4000e9),
        ("h20", 141, 4800e9),
        ("h20", None, None),  # one of two
        ("a800-pcie", 40, 1555e9),
    ],
)
def test_bandwidth_may_depend_on_the_size_of_memory(name, memory, bandwidth):
    assert TABLE[name].hbm_bytes_per_s(memory) == bandwidth


def test_ids_and_names_lead_to_their_own_entry():
    for entry in accelerators():
        assert find(entry.id) == (entry,)
        for name in entry.names:
            assert entry in find(name.upper())


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("H100", ["h100-nvl", "h100-pcie", "h100-sxm", "h100-96-custom"]),
        ("h200", ["h200-nvl", "h200-sxm"]),  # not GH200
        ("a10", ["a10"]),
        ("l40", ["l40"]),
        ("tpu v5", ["tpu-v5e", "tpu-v5p"]),
        (" nvidia  b200 ", ["b200"]),
        ("250x", ["mi250x-gcd", "mi250-gcd"]),
    ],
)
def test_find_by_part_of_a_name(text, ids):
    assert [entry.id for entry in find(text)] == ids


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mi300", None),
        (
            "h1000",
            "no accelerator is called 'h1000'; nearest are h100-nvl, h100-pcie, h100-",
        ),
        ("rtx 2080", "no accelerator is called 'rtx 2080'; nearest are rtx-"),
        ("???", "no accelerator is called '???'; `traceparse accelerators` lists those"),
        ("", "no accelerator is called ''; `traceparse accelerators` lists those"),
    ],
)
def test_what_is_not_found_names_the_nearest(text, message):
    if message is None:
        assert [entry.id for entry in find(text)] == ["mi300a", "mi300x"]
        return
    with pytest.raises(InputError) as caught:
        find(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


OWN = """
[[accelerator]]
id = "my-gpu"
names = ["My GPU"]
dense_tflop_per_s = { bf16 = 100 }
"""


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    (entry,) = load_file(path)
    assert entry.peak_flop_per_s == {"bf16": 100e12}
    assert entry.confidence == "given"
    assert entry.hbm_bytes_per_s() is None
    assert not entry.is_called("My GPU of another kind")


def test_the_table_itself_is_such_a_file(tmp_path):
    path = tmp_path / "copy.toml"
    path.write_bytes(files("traceparse").joinpath("data", "accelerators.toml").read_bytes())
    assert load_file(path) == accelerators()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Object missing required field `accelerator`"),
        ("accelerator = []", "Expected `array` of length >= 1 - at `$.accelerator`"),
        ("accelerator = [", "Invalid"),
        (OWN.replace('names = ["My GPU"]', ""), "missing required field `names`"),
        (OWN.replace("bf16", "bfloat16"), "Invalid enum value 'bfloat16'"),
        (OWN.replace("100", "0"), "Expected `float` > 0"),
        (OWN.replace("100", "inf"), "Expected `float` < 1000000000"),
        (OWN.replace("100", "nan"), "Expected `float`"),
        (OWN.replace("100", '"100"'), "Expected `float`, got `str`"),
        (OWN + "sms = 4", "unknown field `sms`"),
        (OWN + "compute_capability = '9'", "Expected `str` matching regex"),
        (OWN + "pattern = '('", "pattern '(': missing ), unterminated subpattern"),
        (OWN + "not_pattern = '['", "pattern '[': unterminated character set"),
        (OWN + "memory_gb = [1, 2, 3]\nhbm_gb_per_s = [1, 2]", "one for each of memory_gb"),
        (
            OWN
            + "link = { kind = 'x', gb_per_s_per_direction = 2, gb_per_s_bidirectional = 2 }",
            "twice",
        ),
        (OWN + "link = { kind = 'x', gb_per_s_per_direction = 2 }", "twice"),
        (OWN + OWN, "the id 'my-gpu' is given twice"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path, text, reason):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_file(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert reason in message
    assert message.endswith("dense_tflop_per_s = { bf16 = 100.0 }")
    assert "\n" not in message


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError) as caught:
        load_file(tmp_path / "gone.toml")
    assert str(caught.value) == (
        f"{tmp_path}/gone.toml: no such file or directory; give --accelerator a TOML file"
    )
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(
        InputError, match=r"bytes\.toml: not UTF-8 text, so no TOML; an entry is"
    ):
        load_file(tmp_path / "bytes.toml")


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 5000])
def test_a_value_past_belief_in_a_file_is_one_line(tmp_path, value):
    path = tmp_path / "deep.toml"
    path.write_text(f"generic_names = {value}")
    with pytest.raises(InputError) as caught:
        load_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "peak"),
    [
        ("bf16=989", ("bf16", 989e12)),
        (" fp8 = 1978.9 ", ("fp8", 1978.9e12)),
        ("fp64_tensor=67.0", ("fp64_tensor", 67e12)),
    ],
)
def test_a_peak_is_a_dtype_and_a_number(text, peak):
    assert parse_peak(text) == peak


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "bfloat16=989",
            "--peak 'bfloat16=989': give a dtype and TFLOP/s, such as bf16=989; dtypes are "
            "fp64, fp64_tensor, fp32, tf32, bf16, fp16, fp8, fp4, int8",
        ),
        (
            "989",
            "--peak '989': give a dtype and TFLOP/s, such as bf16=989; dtypes are "
            "fp64, fp64_tensor, fp32, tf32, bf16, fp16, fp8, fp4, int8",
        ),
        (
            "bf16=1e15",
            "--peak 'bf16=1e15': '1e15' is no number of TFLOP/s above zero; "
            "write it such as bf16=989.4",
        ),
        ("bf16=0.0", None),
        ("bf16=-3", None),
        ("bf16=nan", None),
        ("bf16=", None),
        ("bf16=9=9", None),
    ],
)
def test_what_is_no_peak(text, message):
    with pytest.raises(UsageError) as caught:
        parse_peak(text)
    assert (
        "above zero" in str(caught.value) if message is None else str(caught.value) == message
    )


def test_dtypes_are_those_of_the_table():
    assert {dtype for entry in accelerators() for dtype in entry.peak_flop_per_s} == set(DTYPES)


def test_entries_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        TABLE["h100-sxm"].sm_count = 1  # type: ignore[misc]
