from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceparse.work import accelerators, identify, load_file
from traceparse.work.device import read_device
from traceparse.work.identify import HOW_TO_ADD

GIB = 1 << 30
TABLE = {entry.id: entry for entry in accelerators()}


def device(name=None, cc=None, warp=None, sms=None, gib=None, **others):
    """An entry of deviceProperties; what is not given is not in it."""
    major, _, minor = (cc or "").partition(".")
    told = {
        "name": name,
        "computeMajor": int(major) if cc else None,
        "computeMinor": int(minor) if cc else None,
        "warpSize": warp,
        "numSms": sms,
        "totalGlobalMem": gib and int(gib * GIB),
    }
    return {key: value for key, value in told.items() if value is not None} | others


H100 = device("NVIDIA H100 80GB HBM3", "9.0", 32, 132, 79.2)


def test_every_name_of_the_table_is_its_own_entry():
    for entry in accelerators():
        for name in entry.names:
            found = identify(device(name, entry.compute_capability, sms=entry.sm_count))
            assert found.accelerator == entry, name
            assert (found.how, found.confidence) == ("name", entry.confidence)


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40", "l40"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA H20", "h20"),
        ("NVIDIA H20-3e", "h20"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 NVL", "h200-nvl"),
        ("NVIDIA GH200 480GB", "gh200-96"),
        ("NVIDIA GH200 144G HBM3e", "gh200-144"),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", "gb200"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA H800", "h800-sxm"),
        ("NVIDIA A100-PG509-200", "a100-sxm-40"),
        ("AMD Instinct MI300X VF", "mi300x"),
        ("AMD Instinct MI250", "mi250-gcd"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090-d"),
        ("NVIDIA GeForce RTX 3090 Ti", "rtx-3090-ti"),
    ],
)
def test_exact_names_are_told_apart(name, id_):
    assert identify({"name": name}).id == id_


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("NVIDIA A10-24Q", "a10"),
        ("A10G", "a10g"),
        ("NVIDIA L40S-48C", "l40s"),
        ("NVIDIA L40-48C", "l40"),
        ("NVIDIA L4-24C", "l4"),
        ("NVIDIA H20 Rev", "h20"),
        ("NVIDIA H200 141GB", "h200-sxm"),
        ("NVIDIA GB200 Rev", "gb200"),
        ("NVIDIA B200 Rev", "b200"),
        ("NVIDIA H100 80GB HBM3 Rev", "h100-sxm"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("NVIDIA A100-SXM-80GB", "a100-sxm-80"),
        ("GeForce RTX 4090", "rtx-4090"),
    ],
)
def test_patterns_are_told_apart_and_are_less_certain(name, id_):
    found = identify({"name": name})
    assert (found.id, found.how) == (id_, "pattern")
    assert found.confidence == "medium"


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 5090 Laptop GPU",
        "NVIDIA GeForce RTX 2080 Ti",
        "Quadro GP100",
        "ARTEMIS",
        "NVIDIA A100-SXM-64GB",  # 124 SMs
        "NVIDIA GH100 HBM3e",
        "H1OO",
        "H100" * 80,  # past belief
        "",
        "AMD Radeon Graphics",
    ],
)
def test_no_likeness_and_no_default(name):
    found = identify({"name": name})
    assert (found.accelerator, found.id, found.how, found.confidence) == (None,) * 4
    assert (found.peak_flop_per_s, found.mamf_flop_per_s) == ({}, {})
    assert found.hbm_bytes_per_s is None
    (reason,) = found.doubts
    assert reason.startswith("no accelerator in the table is this one: ")
    assert reason.endswith(HOW_TO_ADD)


def test_what_is_unknown_says_so_in_words():
    assert identify(device("Quadro GP100", "6.0", 32, 56, 15.9)).doubts == (
        "no accelerator in the table is this one: 'Quadro GP100', compute capability 6.0, warp "
        "size 32, 56 SMs, 17.1 GB; achieved FLOP/s are shown, HFU and MFU are not: describe it "
        "with --accelerator FILE.toml, or give its peak with --peak bf16=TFLOPS",
    )
    (nothing,) = identify({}).doubts
    assert nothing == (
        "no accelerator in the table is this one: a device that tells neither its name nor "
        f"its properties; {HOW_TO_ADD}"
    )


def test_the_whole_device_has_the_numbers_of_the_table():
    found = identify(H100)
    assert found.peak_flop_per_s == TABLE["h100-sxm"].peak_flop_per_s
    assert found.mamf_flop_per_s == {"bf16": 794.5e12, "fp8": 1402.6e12}
    assert (found.scale, found.is_partition, found.doubts) == (1.0, False, ())
    assert found.hbm_bytes_per_s == 3350e9


def test_a_nameless_mi300x_is_found_by_what_it_is_made_of():
    found = identify(device("", "9.4", 64, 304, 191.98))
    assert (found.id, found.how) == ("mi300x", "properties")
    assert found.confidence == "medium"
    assert found.peak_flop_per_s["bf16"] == pytest.approx(1307.4e12)
    assert found.doubts == (
        "found by its properties, those of mi300x: the name '' tells nothing",
    )


def test_amd_radeon_graphics_is_found_by_what_it_is_made_of():
    """MI210 and the half of an MI250 report the same, and can do the same."""
    found = identify(device("AMD Radeon Graphics", "9.0", 64, 104, 63.98))
    assert (found.id, found.how) == ("mi210", "properties")
    assert found.confidence == "medium"
    assert found.peak_flop_per_s["bf16"] == pytest.approx(181e12)
    assert found.hbm_bytes_per_s == 1638e9
    assert found.link is None  # 300 GB/s, or 400
    assert found.doubts == (
        "found by its properties, those of mi210 and mi250-gcd: the name "
        "'AMD Radeon Graphics' tells nothing",
        "only numbers in which these agree are used",
    )
    other = identify(device("AMD Radeon Graphics", "11.0", 32, 48, 24))
    assert other.accelerator is None


@pytest.mark.parametrize("name", ["", "AMD Radeon Graphics"])
def test_gfx90a_is_no_hopper(name):
    """Both report compute capability 9.0."""
    assert identify(device(name, "9.0", 64, 110, 63.98)).id == "mi250x-gcd"
    assert identify(device(name, "9.0", 32, 104, 63.98)).accelerator is None
    assert identify(device("", "9.0", 32, 78, 95.6)).id == "h20"


def test_one_name_of_two_devices_is_told_apart_by_its_units():
    name = "AMD Instinct MI250X / MI250"
    assert identify(device(name, "9.0", 64, 104, 63.98)).id == "mi250-gcd"
    assert identify(device(name, "9.0", 64, 110, 63.98)).id == "mi250x-gcd"
    assert identify({"name": name}).id == "mi250x-gcd"


def test_an_unheard_of_name_with_the_properties_of_one_is_little_certain():
    found = identify(device("NVIDIA PG506-230", "8.0", 32, 56, 23.5))
    assert (found.id, found.how, found.confidence) == ("a30", "properties", "low")
    assert found.doubts == (
        "found by its properties, those of a30: the name 'NVIDIA PG506-230' tells nothing",
    )


def test_several_that_fit_give_only_what_they_agree_in():
    found = identify(device("", "9.0", 32, 132, 79.2))
    peaks = found.peak_flop_per_s
    assert peaks["bf16"] == pytest.approx(989.4e12)
    assert "fp64" not in peaks  # H800 has next to none
    assert found.link is None  # and half the links
    assert found.hbm_bytes_per_s == 3350e9
    a100 = identify(device("", "8.0", 32, 108, 79.2))
    assert a100.peak_flop_per_s["bf16"] == pytest.approx(312e12)
    assert a100.hbm_bytes_per_s is None  # SXM 2039, PCIe 1935
    assert a100.mamf_flop_per_s == {}  # SXM 271, PCIe 253


def test_several_that_fit_and_differ_are_unknown():
    found = identify(device("", "7.0", 32, 80, 31.7))
    assert found.accelerator is None
    assert found.doubts == (
        "compute capability 7.0, warp size 32, 80 SMs, 34.0 GB fits v100-sxm2, v100-pcie and "
        f"v100s-pcie, whose peaks differ; {HOW_TO_ADD}",
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"warpSize": 64}, "which has warp size 32; this one has 64, so it is another"),
        ({"computeMajor": 8}, "has compute capability 9.0; this one has 8.0, so it is another"),
    ],
)
def test_a_name_that_is_contradicted_is_not_believed(changed, reason):
    found = identify(H100 | changed)
    assert found.accelerator is None
    assert reason in found.doubts[0]
    assert found.doubts[0].startswith(
        "a device called 'NVIDIA H100 80GB HBM3' would be h100-sxm, which has"
    )


@pytest.mark.parametrize(
    ("properties", "id_", "sms", "bandwidth"),
    [
        (
            device("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "9.0", 32, 16, 9.75),
            "h100-sxm",
            16 / 132,
            3350e9 / 8,
        ),
        (
            device("NVIDIA H100 80GB HBM3 MIG 3g.40gb", "9.0", 32, 60, 39.5),
            "h100-sxm",
            60 / 132,
            3350e9 / 2,
        ),
        (
            device("NVIDIA A100-SXM4-80GB MIG 2g.20gb", "8.0", 32, 28, 19.5),
            "a100-sxm-80",
            28 / 108,
            2039e9 / 4,
        ),
        (
            device("NVIDIA A30 MIG 1g.6gb", "8.0", 32, 14, 5.8),
            "a30",
            14 / 56,
            933e9 / 4,
        ),
        (  # 40 GB are half of one that says 80 GB, and all of another
            device("NVIDIA A800-SXM4-80GB MIG 3g.40gb", "8.0", 32, 42, 39.5),
            "a800-sxm",
            42 / 108,
            2039e9 / 2,
        ),
        (device("AMD Instinct MI300X", "9.4", 64, 38, 23.98), "mi300x", 38 / 304, None),
    ],
)
def test_partitions_are_scaled_by_their_share(properties, id_, sms, bandwidth):
    found = identify(properties)
    assert found.id == id_
    assert found.is_partition
    assert found.scale == pytest.approx(sms)
    whole = TABLE[id_].peak_flop_per_s
    assert found.peak_flop_per_s == {
        dtype: pytest.approx(peak * sms) for dtype, peak in whole.items()
    }
    assert found.hbm_bytes_per_s == (bandwidth and pytest.approx(bandwidth))
    assert found.mamf_flop_per_s == {}
    assert found.doubts[0].startswith("partition-scaled: it has ")


def test_partitions_say_what_they_are():
    assert identify(device("AMD Instinct MI300X", "9.4", 64, 38, 23.98)).doubts == (
        "partition-scaled: it has 38 of the 304 SMs and 25.7 GB of the 192 GB of mi300x",
        "how much of the memory's bandwidth a partition has, is not known",
    )


@pytest.mark.parametrize("sms", [78, 98, 144])
def test_fewer_units_with_the_same_memory_are_not_scaled(sms):
    """H20 is a GH100 with 78 SMs and a cap: scaling would give 585 for its 148."""
    found = identify(H100 | {"numSms": sms})
    assert found.peak_flop_per_s == TABLE["h100-sxm"].peak_flop_per_s
    assert (found.scale, found.confidence) == (1.0, "low")
    assert found.doubts == (
        f"it has {sms} SMs, h100-sxm has 132, with the same memory: peaks are not scaled, and "
        "may be wrong",
    )


def test_h20_keeps_its_own_peak():
    found = identify(device("NVIDIA H20", "9.0", 32, 78, 95.6))
    assert found.peak_flop_per_s["bf16"] == pytest.approx(148e12)
    assert (found.hbm_bytes_per_s, found.doubts) == (4000e9, ())
    assert identify(device("NVIDIA H20-3e", gib=140)).hbm_bytes_per_s == 4800e9


def test_other_memory_leaves_the_peak_and_no_bandwidth():
    found = identify(device("NVIDIA H100 64GB HBM3", "9.0", 32, 132, 63.4))
    assert found.peak_flop_per_s["bf16"] == pytest.approx(989.4e12)
    assert found.hbm_bytes_per_s is None
    assert found.doubts == (
        "it has 68.1 GB of memory, h100-sxm has 80 GB: how fast its memory is, is not known",
    )


@pytest.mark.parametrize(
    "properties",
    [
        device("NVIDIA H100 80GB HBM3", sms=60),  # a partition, or capped?
        device("NVIDIA H100 80GB HBM3", gib=40),
        device("NVIDIA H100 80GB HBM3", gib=160),
        device("NVIDIA H100 80GB HBM3", sms=60, gib=160),
        device("NVIDIA H100 80GB HBM3", sms=160, gib=40),
        device("NVIDIA H100 80GB HBM3 MIG 1g.10gb"),
    ],
)
def test_a_size_that_neither_the_whole_nor_a_part_has_is_unknown(properties):
    found = identify(properties)
    assert found.accelerator is None
    assert "is called as h100-sxm, but is of another size (80 GB, 132 SMs)" in found.doubts[0]


def test_devices_without_properties_in_the_table_go_by_name():
    found = identify(device("GAUDI2", sms=24, gib=96))
    assert (found.id, found.doubts) == ("gaudi2", ())


@pytest.mark.parametrize(
    ("properties", "id_"),
    [
        (device("AMD Instinct MI308X", "9.4", 64, 80, 191.98), "mi308x"),
        (device("", "9.4", 64, 80, 191.98), "mi308x"),
        (device("NVIDIA H100", "9.0", 32, 132, 95.07), "h100-96-custom"),
        (device("Intel(R) Data Center GPU Max 1550"), "pvc-max-1550-stack"),
    ],
)
def test_what_only_the_user_can_know_has_no_default_peak(properties, id_):
    found = identify(properties)
    assert found.id == id_
    assert (found.peak_flop_per_s, found.mamf_flop_per_s) == ({}, {})
    assert found.doubts[-1] == (
        f"no peak of {id_} can be trusted by default (`traceparse accelerators {id_}` says "
        f"why); {HOW_TO_ADD}"
    )


def test_low_confidence_is_said():
    found = identify({"name": "NVIDIA GeForce RTX 4090 D"})
    assert found.doubts == ("the peaks of rtx-4090-d are little certain",)


def test_bf16_on_v100_is_unknown():
    found = identify(device("Tesla V100-SXM2-32GB", "7.0", 32, 80, 31.7))
    assert found.peak_flop_per_s["fp16"] == pytest.approx(125e12)
    assert "bf16" not in found.peak_flop_per_s


@pytest.mark.parametrize("odd", [None, True, -1, 0, 1.5, "x", "9" * 5000, [], {}, 10**30])
def test_odd_properties_are_not_told(odd):
    keys = ("name", "computeMajor", "computeMinor", "warpSize", "numSms", "totalGlobalMem")
    told = read_device(dict.fromkeys(keys, odd))
    assert (told.warp_size, told.num_sms, told.memory_bytes) == (None, None, None)
    assert told.compute_capability is None
    identify(dict.fromkeys(keys, odd))
    assert identify(dict.fromkeys(keys, odd) | {"name": "Tesla T4"}).id == "t4"


KEYS = ("name", "computeMajor", "computeMinor", "warpSize", "numSms", "totalGlobalMem")
NAMES = st.sampled_from([name for entry in accelerators() for name in entry.names])
ANYTHING = st.one_of(st.none(), st.integers(), st.floats(), st.text(), NAMES, st.booleans())
LIKELY = st.one_of(st.sampled_from([7, 9, 32, 64, 78, 104, 132]), st.integers(0, 300 * GIB))


@given(st.dictionaries(st.sampled_from(KEYS), st.one_of(ANYTHING, LIKELY)))
def test_whatever_a_device_says_the_peak_is_that_of_the_table_or_a_part_of_it(properties):
    found = identify(properties)
    assert 0 < found.scale <= 1
    assert (found.accelerator is None) == (found.how is None) == (found.confidence is None)
    assert found.doubts or found.how in {"name", "pattern"}
    for dtype, peak in found.peak_flop_per_s.items():
        assert peak == found.scale * TABLE[found.id or ""].peak_flop_per_s[dtype]


@given(st.sampled_from(accelerators()), st.integers(1, 400), st.integers(1, 400 * GIB))
def test_a_device_is_scaled_only_if_units_and_memory_are_fewer(entry, sms, memory):
    name = {"name": entry.names[0], "totalGlobalMem": memory, "numSms": sms}
    found = identify(name)
    if found.is_partition:
        assert entry.sm_count is not None
        assert sms < entry.sm_count
        assert memory < max(entry.memory_gb) * GIB
        assert found.scale == sms / entry.sm_count


def test_numbers_may_be_text_and_names_have_spaces():
    told = {key: str(value) for key, value in H100.items()}
    assert identify(told | {"name": "  NVIDIA H100  80GB HBM3\t"}) == identify(H100)


def test_the_python_exporter_writes_the_number_of_units_elsewhere():
    """torch 2.13: numSms is missing, and maxThreadsPerMultiprocessor holds it."""
    nameless = device("", "9.4", 64, None, 191.98)
    assert identify(nameless | {"maxThreadsPerMultiprocessor": 304}).id == "mi300x"
    assert identify(nameless | {"maxThreadsPerMultiprocessor": 2048}).accelerator is None
    told = read_device({"numSms": 78, "maxThreadsPerMultiprocessor": 132})
    assert told.num_sms == 78


def test_an_entry_of_the_users_own_comes_first(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        '[[accelerator]]\nid = "own"\nnames = ["NVIDIA H100 80GB HBM3", "Quadro GP100"]\n'
        "dense_tflop_per_s = { bf16 = 900 }\n"
    )
    known = (*load_file(path), *accelerators())
    for properties in (H100, {"name": "NVIDIA H100 80GB HBM3"}):
        found = identify(properties, known)
        assert (found.id, found.confidence) == ("own", "given")
    assert identify({"name": "Quadro GP100"}, known).peak_flop_per_s == {"bf16": 900e12}
    assert identify({"name": "NVIDIA H20"}, known).id == "h20"


def test_links_are_those_of_the_whole_device():
    link = identify(H100).link
    assert link is not None
    assert link.gb_per_s_per_direction == 450
    assert identify(H100 | {"numSms": 60, "totalGlobalMem": 40 * GIB}).link is None
    assert identify({}).link is None


def test_what_is_found_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        identify(H100).scale = 2.0  # type: ignore[misc]
