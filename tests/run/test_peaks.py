"""Whose peak each device is measured against, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.run.conftest import A100, H100, V100, renamed
from traceparse.errors import InputError, UsageError
from traceparse.run import ask, assemble
from traceparse.work.identify import HOW_TO_ADD

TERA = 1e12
USUAL = {"model_flop_estimated", "no_communication", "replay_impossible"}


def said(report) -> dict[str, list[str]]:
    """The notes of a report by code, without those that are there always."""
    found: dict[str, list[str]] = {}
    for note in report.notes:
        if note.code not in USUAL:
            found.setdefault(note.code, []).append(note.message)
    return found


def job(make, told, *, device=0, dtype="bf16", flop=0, **asked):
    step = make.step(1, make.times(compute=100), make.work(dtype, flop), counted=50)
    digest = make.digest(0, make.device(step, device=device), told=told)
    return make.report(digest, **asked)


def test_a_device_that_the_table_knows(make):
    report = job(make, (H100,))
    accelerator = report.run.accelerator
    assert set(accelerator) == {"id", "name", "source", "peak_flop_per_s", "hbm_bytes_per_s"}
    assert (accelerator["id"], accelerator["name"]) == ("h100-sxm", H100["name"])
    assert accelerator["source"] == "table of accelerators, found by name (confidence high)"
    assert accelerator["peak_flop_per_s"]["bf16"] == 989.4 * TERA
    assert accelerator["hbm_bytes_per_s"] == 3350e9
    assert "peak_unknown" not in said(report)


def test_the_entry_of_a_device_is_found_by_its_id(make):
    told = ({**A100, "id": 0}, {**H100, "id": "1"})
    assert job(make, told, device=1).run.accelerator["id"] == "h100-sxm"
    assert job(make, told, device=0).run.accelerator["id"] == "a100-sxm-80"


def test_entries_without_their_id_are_used_where_they_agree(make):
    alike = ({**H100, "id": 4}, {**H100, "id": 5})
    assert job(make, alike).run.accelerator["id"] == "h100-sxm"
    report = job(make, ({**H100, "id": 4}, {**A100, "id": 5}))
    assert report.run.accelerator is None
    assert said(report)["peak_unknown"] == [
        "the traces name several devices ('NVIDIA A100-SXM4-80GB', 'NVIDIA H100 80GB HBM3') "
        f"and do not tell which one ran; {HOW_TO_ADD}"
    ]


def test_an_unknown_device_has_flop_per_s_and_neither_hfu_nor_mfu(make):
    report = job(make, ({"name": "Frobnicator 9"},), flop=1_000_000)
    assert report.run.accelerator is None
    use = report.utilization
    assert use["achieved_flop_per_s"] == 1_000_000 / 100e-9
    assert (use["hfu"], use["mfu"], use["waterfall"]) == (None, None, None)
    assert said(report) == {
        "peak_unknown": [
            f"no accelerator in the table is this one: 'Frobnicator 9'; {HOW_TO_ADD}"
        ]
    }


def test_a_trace_that_tells_no_device_is_said_once(make):
    digest = make.digest(
        0, make.device(make.step(1, make.times(compute=1))), world_size=2, told=()
    )
    report = make.report(digest, renamed(digest, 1))
    assert said(report)["peak_unknown"] == [
        f"the traces do not tell which device they are of; {HOW_TO_ADD}"
    ]


def test_a_host_has_no_peak_but_one_that_is_given(make):
    report = job(make, (H100,), device="cpu", dtype="fp32", flop=1_000)
    assert report.utilization["hfu"] is None
    assert said(report) == {
        "peak_unknown": [
            "no table has the peak of a host, so HFU and MFU are unknown: give --peak "
            "measured where the job ran on this machine, else --peak fp32=TFLOPS"
        ]
    }
    report = job(
        make,
        (),
        device="cpu",
        dtype="fp32",
        flop=1_000,
        peak={"fp32": 1e11},
        peak_source="measured here",
    )
    assert report.utilization["hfu"] == 0.1
    assert said(report) == {}
    assert report.run.accelerator == {
        "id": None,
        "name": "cpu",
        "source": "fp32: measured here",
        "peak_flop_per_s": {"fp32": 1e11},
        "hbm_bytes_per_s": None,
    }


def test_a_given_peak_overrides_the_table(make):
    report = job(make, (H100,), flop=1_000_000, peak={"bf16": 500 * TERA})
    accelerator = report.run.accelerator
    assert accelerator["peak_flop_per_s"]["bf16"] == 500 * TERA
    assert accelerator["peak_flop_per_s"]["fp16"] == 989.4 * TERA
    assert accelerator["source"].endswith("(confidence high); bf16: given by the user")
    assert report.utilization["hfu"] == 1_000_000 / (500_000 * 100)


def test_a_given_peak_is_enough_for_a_device_that_is_not_known(make):
    report = job(make, ({"name": "new"},), flop=1_000_000, peak={"bf16": 100 * TERA})
    assert report.utilization["hfu"] == 0.1
    assert said(report) == {}
    assert report.run.accelerator["name"] == "new"


def test_an_accelerator_is_named_by_its_id_or_its_whole_name(make):
    for name in ("a100-sxm-80", "NVIDIA  a100-SXM4-80gb"):
        assert job(make, (), accelerator=name).run.accelerator["id"] == "a100-sxm-80"
    with pytest.raises(UsageError) as caught:
        ask(accelerator="h100")
    assert str(caught.value) == (
        "--accelerator 'h100': that may be h100-nvl, h100-pcie, h100-sxm, h100-96-custom; "
        "give the one that it is"
    )
    with pytest.raises(UsageError, match=r"^--accelerator 'h1000': no accelerator is called"):
        ask(accelerator="h1000")


def test_the_users_word_counts_before_the_traces_and_is_said_to(make):
    report = job(make, (A100,), accelerator="h100-sxm")
    assert report.run.accelerator["id"] == "h100-sxm"
    assert report.run.accelerator["source"] == (
        "table of accelerators, found by name, given by the user (confidence high)"
    )
    assert said(report)["accelerator_contradicted"] == [
        "the traces tell of a100-sxm-80, but --accelerator names h100-sxm: its peaks are used"
    ]
    assert "accelerator_contradicted" not in said(job(make, (H100,), accelerator="h100-sxm"))


def test_naming_an_entry_that_cannot_be_trusted_unlocks_nothing(make):
    report = job(make, (), flop=1_000_000, accelerator="mi308x")
    assert report.utilization["hfu"] is None
    assert said(report)["peak_unknown"] == [
        "--accelerator mi308x names an entry without a peak that can be trusted (`traceparse "
        "accelerators mi308x` says why), which naming it does not change: give --peak "
        "bf16=TFLOPS too"
    ]
    report = job(make, (), flop=1_000_000, accelerator="mi308x", peak={"bf16": 100 * TERA})
    assert report.utilization["hfu"] == 0.1
    assert said(report) == {}
    told = ({"name": "AMD Instinct MI308X"},)
    assert "no peak of mi308x" in said(job(make, told))["accelerator_doubtful"][0]
    assert said(job(make, told, peak={"bf16": 100 * TERA})).get("accelerator_doubtful") is None


def test_a_file_is_looked_at_before_the_table(make, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[accelerator]]\nid = "mine"\nnames = ["NVIDIA H100 80GB HBM3"]\n'
        "dense_tflop_per_s = { bf16 = 123.0 }\n"
    )
    for given in (path, str(path)):
        accelerator = job(make, (H100,), accelerator=given).run.accelerator
        assert (accelerator["id"], accelerator["hbm_bytes_per_s"]) == ("mine", None)
        assert accelerator["peak_flop_per_s"] == {"bf16": 123 * TERA}
    assert job(make, (A100,), accelerator=path).run.accelerator["id"] == "a100-sxm-80"
    with pytest.raises(InputError, match=r"nothing\.toml: no such file"):
        ask(accelerator=tmp_path / "nothing.toml")


def test_a_data_type_without_a_peak_is_named_with_its_share(make):
    step = make.step(
        1,
        make.times(compute=100),
        make.work("bf16", 300),
        make.work("fp16", 700),
        counted=100,
    )
    report = make.report(make.digest(0, make.device(step), told=(V100,)))
    use = report.utilization
    assert (use["executed_flop"], use["hfu"], use["mfu"]) == (1_000, None, None)
    assert [row["utilization_ratio"] for row in use["by_dtype"]] == [700 / 125e3 / 100, None]
    assert said(report)["peak_missing"] == [
        "v100-sxm2 has no peak for bf16, in which 30.0% of the FLOP ran: HFU and MFU are "
        "unknown; give --peak bf16=TFLOPS if there is one"
    ]


def test_ranks_on_different_devices_are_each_measured_by_their_own(make):
    def rank(number, told):
        step = make.step(
            1, make.times(compute=1_000), make.work("bf16", 312_000), counted=1_000
        )
        return make.digest(number, make.device(step), world_size=2, told=(told,))

    report = make.report(rank(0, H100), rank(1, A100))
    assert report.run.accelerator is None
    assert said(report)["accelerators_differ"] == [
        "the job ran on several kinds of accelerators (h100-sxm, a100-sxm-80): each device is "
        "measured against its own peaks"
    ]
    at_h100, at_a100 = 312_000 / 989_400 / 1_000, 0.001
    hfus = [device.utilization["hfu"] for device in report.devices]
    assert hfus == pytest.approx([at_h100, at_a100], rel=1e-12)
    assert report.utilization["hfu"] == pytest.approx((at_h100 + at_a100) / 2, rel=1e-12)
    (row,) = report.utilization["by_dtype"]
    assert row["peak_flop_per_s"] is None


def test_the_measured_ceiling_replaces_the_data_sheet_where_there_is_one(make):
    report = job(make, (H100,), flop=7_945_000, ceiling="mamf")
    assert report.utilization["hfu"] == 7_945_000 / (794_500 * 100)
    assert report.run.accelerator["peak_flop_per_s"]["fp16"] == 989.4 * TERA
    (message,) = said(report)["ceiling_mamf"]
    assert message.startswith("HFU and MFU are achievable ones: bf16, fp8 on h100-sxm is")
    (message,) = said(job(make, (V100,), ceiling="mamf"))["ceiling_mamf"]
    assert message.startswith("--ceiling mamf changes nothing for v100-sxm2")


def test_products_in_fp64_are_measured_against_matrix_units(make):
    report = job(make, (H100,), dtype="fp64", flop=670_000)
    assert report.utilization["hfu"] == 670_000 / (67_000 * 100)
    assert report.run.accelerator["peak_flop_per_s"]["fp64"] == 67 * TERA
    assert set(said(report)) == {"fp64_on_matrix_units"}
    report = job(make, (V100,), dtype="fp64", flop=78_000)
    assert (report.utilization["hfu"], said(report)) == (0.1, {})
    given = job(make, (H100,), dtype="fp64", flop=3_400, peak={"fp64": 34 * TERA})
    assert (given.utilization["hfu"], said(given)) == (0.001, {})


def test_what_has_no_peak_at_all_has_no_ceiling(make):
    assert "ceiling_mamf" not in said(job(make, (), ceiling="mamf"))


def test_the_peak_of_the_host_is_for_the_host(make):
    asked = replace(ask(peak={"fp32": 1e11, "bf16": 1e11}), is_host_peak=True)
    step = make.step(1, make.times(compute=100), make.work("bf16", 98_940 * 100), counted=50)
    digest = make.digest(0, make.device(step))
    report = assemble([digest], asked=asked)
    assert report.utilization
    assert report.utilization["hfu"] == 0.1
    assert said(report)["host_peak_unused"][0].startswith("--peak measured is the peak of")
