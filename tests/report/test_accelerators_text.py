"""The table of peaks, as text."""

# ruff: noqa: E501, RUF001 - lines and en dashes are what is tested

from __future__ import annotations

import io

import pytest
from rich.console import Console

from traceparse.report import accelerators_text
from traceparse.work import accelerators, find, load_file


def drawn(draw, entries, **options) -> list[str]:
    """What is printed, line by line."""
    file = io.StringIO()
    draw(entries, Console(file=file, **({"width": 100} | options)))
    return [line.rstrip() for line in file.getvalue().splitlines()]


def table(*names, **options):
    entries = [entry for name in names for entry in find(name)] or accelerators()
    return drawn(accelerators_text.render_table, entries, **options)


def explained(name):
    return drawn(accelerators_text.render_entries, find(name))


def test_a_line_for_each():
    assert table("h100-sxm", "h20", "mi308x", "l4") == [
        "Peaks in TFLOP/s: dense, with fp32 accumulation, of one device as torch sees it, at "
        "the vendor's boost clock",
        *(
            "id            GB       GB/s   bf16   fp16     fp8  fp32  confidence  names",
            "h100-sxm      80       3350  989.4  989.4  1978.9    67  high        "
            "NVIDIA H100 80GB HBM3, NVIDIA H100 64GB HBM3",
            "h20       96/141  4000/4800    148    148     296    44  high        "
            "NVIDIA H20, NVIDIA H20-3e",
            "mi308x*      192       5300      –      –       –     –  unresolved  "
            "AMD Instinct MI308X, AMD Instinct MI308X HF VF",
            "l4            24        300    121    121     242  30.3  high        NVIDIA L4",
        ),
        "* no default peak, as no source can be trusted",
        "– unsupported or unknown",
        "`traceparse accelerators ID` explains one, with its sources",
    ]


def test_all_are_listed():
    lines = table()
    for entry in accelerators():
        (line,) = [line for line in lines if line.split()[0] in {entry.id, f"{entry.id}*"}]
        assert line.endswith(", ".join(entry.names))
        assert f" {entry.confidence} " in line


def test_names_are_left_out_where_there_is_no_room():
    lines = table(width=80, force_terminal=True, color_system=None)
    assert max(map(len, lines)) <= 80
    assert not any("NVIDIA" in line for line in lines)
    assert sum(line.startswith("h100-sxm ") for line in lines) == 1


RTX_4090 = """\
rtx-4090: NVIDIA GeForce RTX 4090
  recognized by
    the names above, or the pattern RTX 4090(?! D) without Laptop
    compute capability 8.9, warp size 32, 128 SMs and 24 GB together
  memory: 24 GB, 1,008 GB/s
  link: none known
  peaks, dense, with fp32 accumulation, of one device as torch sees it, at the vendor's boost clock
    fp64            1.29 TFLOP/s
    fp32            82.6 TFLOP/s
    tf32            82.6 TFLOP/s
    bf16           165.2 TFLOP/s
    fp16           165.2 TFLOP/s
    fp8            330.3 TFLOP/s
    int8           660.6 TOP/s
  with fp16 accumulation (never used as a peak)
    fp16           330.3 TFLOP/s
    fp8            660.6 TFLOP/s
  16-bit peak checked against: 128 SMs x 2,520 MHz x 512 FLOP per clock and SM = 165.15 TFLOP/s
  confidence: high
  doubts
    unsupported or unknown: fp64_tensor, fp4
    1 of 3 sources from memory, not read again
  sources
    read: hmc-tech.com RTX 4090 vs RTX PRO 5000 table
    read: Lightning fabric/utilities/throughput.py _CUDA_FLOPS @7f0c343
    recalled: vendor datasheet/whitepaper
"""


def test_everything_about_one():
    text = "\n".join(explained("rtx-4090"))
    assert text.startswith(RTX_4090)
    assert text.removeprefix(RTX_4090).startswith("  notes\n    GeForce: fp16/bf16 tensor rate")


def test_doubts_and_the_measured():
    lines = explained("mi300x") + explained("pvc-max-1550-stack")
    for line in (
        "  link: infinity-fabric, 448 GB/s in each direction: compare busbw with that; vendors "
        "quote 896, both together",
        "    bf16           668.4 TFLOP/s (51.1% of the peak): 10240x15360x8192, torch "
        "2.5.1+6.3, ml-engineering",
        "    bf16             708 TFLOP/s (54.2% of the peak): TraceLens arch/MI300X.json; not "
        "the ceiling of --ceiling mamf",
        "  link: xe-link, bandwidth unknown",
        "  confidence: low",
        "    no default peak, as no source can be trusted: HFU and MFU stay unknown",
        "    a device is a stack (half card): figures of whole cards are twice these",
    ):
        assert line in lines


def test_several_are_apart():
    assert explained("mi250").count("") == 1


def test_an_entry_of_the_users_own(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        '[[accelerator]]\nid = "own"\nnames = ["A \\u001b[31mGPU"]\n'
        "dense_tflop_per_s = { bf16 = 100 }\n"
    )
    entries = load_file(path)
    assert drawn(accelerators_text.render_entries, entries) == [
        r"own: A \x1b[31mGPU",
        "  recognized by: the names above",
        "  memory: unknown",
        "  link: none known",
        "  peaks, dense, with fp32 accumulation, of one device as torch sees it, at the vendor's "
        "boost clock: bf16             100 TFLOP/s",
        "  confidence: given",
        "  doubts: unsupported or unknown: fp64, fp64_tensor, fp32, tf32, fp16, fp8, fp4, int8",
    ]
    assert drawn(accelerators_text.render_table, entries)[1:4] == [
        "id   GB  GB/s  bf16  fp16  fp8  fp32  confidence  names",
        r"own   –     –   100     –    –     –  given       A \x1b[31mGPU",
        "– unsupported or unknown",
    ]


def test_an_output_that_cannot_write_dashes():
    file = io.TextIOWrapper(io.BytesIO(), "ascii")
    accelerators_text.render_table(find("t4"), Console(file=file))
    file.seek(0)
    assert "t4  16   320     -    65    -   8.1  high" in file.read()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_number_source_and_note_is_shown(width):
    for entry in accelerators():
        text = " ".join(
            " ".join(
                drawn(
                    accelerators_text.render_entries,
                    [entry],
                    width=width,
                    force_terminal=True,
                    color_system=None,
                )
            ).split()
        )
        for part in (*entry.names, *entry.sources, *entry.notes, entry.confidence):
            assert part.replace(" ", "") in text.replace(" ", "")
        for rate in entry.dense_tflop_per_s.values():
            assert f"{rate:,.2f}".rstrip("0").rstrip(".") in text
