"""What ranks did together, in a terminal."""

# ruff: noqa: RUF001 - en dashes are what is tested

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console

from tests.report.made_across import clock, collective, loss, split, together, unsplit
from tests.report.test_terminal import drawn, lines
from traceparse.errors import Note
from traceparse.report import terminal
from traceparse.report.across import link_line
from traceparse.report.peak import cost_lines
from traceparse.report.terminal_across import render_across
from traceparse.report.terminal_peak import render_peak


def test_the_section_at_80_columns(report):
    # no formatter touches this: it is the picture that people see
    expected = """\

Across ranks  2 ranks on one clock: offsets up to 1.3 ms, residual 0.5 us
Scaling loss of a mean step of 900.0 ms: transfer 11.6%, waiting for the last rank 12.5%
Parallel efficiency 59.7% = load balance 75.0% x serialization 90.0% x transfer 88.4%
Waited for: rank 1, last in 4 of its 5 (80.0%; 7.3 ms of waiting); rank 0, last in 1 of its 5 (20.0%; 7.3 ms of waiting)

Collectives that cost most  ms, wait and exposed of all ranks; busbw in GB/s, or latency
collective ranks dtype    size count transfer  wait exposed   busbw
allreduce  0-1   bf16  16.8 MB     4   40.500 7.304  36.584   266.5
all_gather 0-1   fp16    192 B     4   40.500 7.304  36.584 40.5 ms
broadcast  0-1   –           –     4        –     –  36.584       –
"""  # noqa: E501
    assert lines(render_across, together(report), 80) == expected.splitlines()


@pytest.mark.parametrize("width", [40, 60, 68, 80, 100, 140])
def test_a_terminal_is_never_overrun_and_no_number_cut(report, width):
    rows = [
        collective(
            "reduce_scatter_of_a_very_long_name",
            ranks=list(range(0, 1024, 2)),
            message_bytes=999_949_999,
            count=99_999,
            transfer_ns=99_999_900_000,
            wait_ns=99_999_900_000,
            exposed_ns=99_999_900_000,
        ),
        *(collective(f"kind {n}") for n in range(9)),
    ]
    text = drawn(render_across, together(report, collectives=rows), width, force_terminal=True)
    for number in ("1.3 ms", "12.5%", "99,999.9", "999.9 MB", "512 ranks", "266.5"):
        assert number in text.replace("\n", " ")
    assert "… 2 more rows in report.json" in text.replace("\n", " ")
    if width >= 80:
        assert all(cell_len(line) <= width for line in text.splitlines())


def test_output_that_knows_ascii_only_gets_ascii_and_no_color_leaves_the_text(report):
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80)
    render_across(together(report), console)
    console.file.flush()
    assert "broadcast  0-1   -           -     4" in raw.getvalue().decode("ascii")
    plain = io.StringIO()
    console = Console(file=plain, width=80, force_terminal=True, color_system=None)
    render_across(together(report), console)
    assert plain.getvalue() == drawn(render_across, together(report), 80, force_terminal=True)


def test_it_follows_the_peak(used):
    printed = lines(terminal.render, together(used), 200)
    places = [
        next(place for place, line in enumerate(printed) if line.startswith(title))
        for title in ("Where 100%", "Cost", "Across ranks", "Collectives that cost most")
    ]
    assert places == sorted(places)


def test_without_communication_there_is_no_section(report):
    for nothing in (None, ()):
        assert lines(render_across, together(report, collectives=nothing)) == []
    assert lines(render_across, report) == []


def test_one_rank_cannot_tell_waiting_from_transfer(report):
    one = together(report, collectives=[unsplit()], scaling_loss=None)
    assert lines(render_across, replace(one, devices=one.devices[:1]), 200) == [
        "",
        "Across ranks  one rank only, and what others waited for is in their traces: waiting "
        "cannot be told from transfer",
    ]


def test_what_could_not_be_split_says_why(report):
    bare = together(report, collectives=[unsplit()], scaling_loss=None)
    printed = lines(render_across, bare, 200)
    assert printed[1] == (
        "Across ranks  no collective was seen on several ranks, and on all of its group that "
        "have a file: waiting cannot be told from transfer"
    )
    assert printed[-1].split()[-4:] == ["–", "–", "36.584", "–"]
    notes = (Note("collectives_unmatched", "2 of them"), Note("collectives_disagree", "other"))
    assert lines(render_across, replace(bare, notes=notes))[1] == "Across ranks  other"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"offsets_ns": {"0": 0, "1": 0}, "residual_ns": 0}, "no offset, residual 0"),
        (
            {"offsets_ns": {"0": 0, "1": 2_140_000_000}, "drift_ppm": {"0": 0, "1": -22.04}},
            "offsets up to 2.1 s, drift up to 22.0 ppm, residual 0.5 us",
        ),
        ({"offsets_ns": {"0": 0, "1": -20}}, "offsets up to 20 ns, residual 0.5 us"),
    ],
)
def test_the_clock_in_words(report, fields, text):
    printed = lines(render_across, together(report, clock=clock(**fields)))
    assert printed[1] == f"Across ranks  2 ranks on one clock: {text}"


def test_clocks_that_are_not_aligned_are_named(make):
    fleet = together(make.fleet(4), clock=clock(aligned=False))
    assert lines(render_across, fleet)[1] == (
        "Across ranks  2 of 4 ranks on one clock: offsets up to 1.3 ms, residual 0.5 us; "
        "not rank 2-3"
    )
    unknown = clock(aligned=False, residual_ns=None, offsets_ns={"0": 0}, drift_ppm={"0": 0.0})
    for none in (unknown, None):
        assert lines(render_across, replace(fleet, clock=none))[1] == (
            "Across ranks  no common clock: no collective that ends on several ranks at once "
            "was matched"
        )


def test_scaling_loss_has_what_there_is(report):
    full = loss(
        pipeline_wait_ratio=0.2,
        exposed_unsplit_ratio=0.05,
        contention_ratio=0.01,
        comm_ratio=0.301,
        load_balance=None,
    )
    assert lines(render_across, together(report, scaling_loss=full), 200)[2:5] == [
        "Scaling loss of a mean step of 900.0 ms: transfer 11.6%, waiting for the last rank "
        "12.5%, pipeline wait 20.0%, not split 5.0%, contention 1.0%",
        "A free network and balanced ranks would win back 30.1% at most",
        "Parallel efficiency 59.7% = load balance – x serialization 90.0% x transfer 88.4%",
    ]
    without = lines(render_across, together(report, scaling_loss=None), 200)
    assert without[2].startswith("Waited for: ")


def test_who_is_waited_for_has_only_waiting_that_is_known(report):
    rows = [
        collective(last_rank_counts={"3": 2, "10": 2}, ranks=[3, 10]),
        collective(last_rank_counts={"3": 5}, ranks=[0, 3], wait_ns=1_000_000),
        collective(last_rank_counts={"7": 1, "9": 1, "0": 1}, ranks=[0, 7, 9], wait_ns=None),
        # peers wait for the pipeline, and not for whom was last
        collective("send/recv", last_rank_counts={"5": 99}, ranks=[5, 6]),
    ]
    (said,) = [
        line
        for line in lines(render_across, together(report, collectives=rows), 300)
        if line.startswith("Waited for")
    ]
    assert said == (
        "Waited for: rank 3, last in 7 of its 9 (77.8%; at least 1.0 ms of waiting); "
        "rank 10, last in 2 of its 4 (50.0%); rank 0, last in 1 of its 8 (12.5%); and 2 others"
    )
    peers = lines(render_across, together(report, collectives=rows[3:]), 300)
    assert not any(line.startswith("Waited for") for line in peers)


@pytest.mark.parametrize(
    ("count", "text"),
    [(999, "999 B"), (1_000, "1.0 kB"), (999_960, "1.0 MB"), (5 * 10**12, "5,000.0 GB")],
)
def test_sizes_are_in_their_own_unit(report, count, text):
    rows = [collective(message_bytes=count, busbw_bytes_per_s=0.0512e9)]
    assert f" {text} " in lines(render_across, together(report, collectives=rows))[-1]


def test_small_messages_have_latency_and_larger_ones_bandwidth(report):
    rows = [
        collective(message_bytes=count, busbw_bytes_per_s=0.0512e9, transfer_ns=104_000)
        for count in (2**20, 2**20 - 1, 0, None)
    ] + [unsplit(message_bytes=64)]
    printed = lines(render_across, together(report, collectives=rows), 100)[-5:]
    assert [line.split()[-1] for line in printed] == ["0.051", "us", "0.051", "0.051", "–"]
    assert printed[1].endswith(" 26.0 us")


@pytest.mark.parametrize(
    ("busbw", "words"),
    [
        (225e9, "50.0% of that; between nodes it is their network that counts"),
        (495e9, "110.0% of that: it may be more where the network itself reduces (NVLS,"),
        (None, None),
        (0, None),
    ],
)
def test_the_fastest_bandwidth_is_compared_with_the_link(report, busbw, words):
    rows = [
        collective(busbw_bytes_per_s=busbw),
        collective(busbw_bytes_per_s=999e9, message_bytes=8),  # of latency, not of the link
    ]
    found = together(report, collectives=rows)
    used = replace(found, run=replace(found.run, accelerator={"id": "h100-sxm"}))
    line = "nvlink4 of h100-sxm has 450 GB/s in each direction, the fastest busbw is "
    said = link_line(used)
    assert (said or "").startswith(line + words if words else "")
    assert (said is None) == (words is None)
    assert link_line(found) is None
    unknown = replace(found, run=replace(found.run, accelerator={"id": None}))
    assert link_line(unknown) is None


def test_a_waterfall_has_the_parts_of_exposed_comm_that_there_are(used, make):
    whole = replace(used, utilization=split(make.use()))
    printed = lines(render_peak, whole, 80)
    assert printed[6:8] == [
        "  exposed wait          8.0%  ▒▒▒",
        "  exposed transfer      2.0%  ▓",
    ]
    text = "\n".join(printed)
    assert "pipeline wait" not in text
    assert "not split" not in text
    rest = lines(render_peak, replace(used, utilization=split(make.use(), rest=0.01)), 80)
    assert "  exposed comm (not split)   1.0%" in rest


def test_ranks_fit_80_columns_with_every_term(used, make):
    uses = (split(make.use(), pipeline=0.01), split(make.use(mfu=0.3), rest=0.01))
    devices = tuple(
        replace(device, utilization=use) for device, use in zip(used.devices, uses, strict=True)
    )
    printed = lines(render_peak, replace(used, devices=devices), 80)
    place = printed.index("Ranks  each over its steps, in % of its peak")
    assert printed[place + 1 : place + 4] == [
        "rank TFLOP/s  HFU idle copy wait pipe transf. unsplit other matmul recomp.  MFU",
        "   0   494.7 50.0  5.0  5.0  7.0  1.0     2.0       0  20.0   10.0    12.5 37.5",
        "   1   494.7 42.5 12.5  5.0  7.0    0     2.0     1.0  20.0   10.0    12.5 30.0",
    ]


def test_cost_of_what_was_not_split_is_called_so(used):
    lost = {"exposed_wait": 2.0, "exposed_transfer": 1.0, "exposed_comm": 0.5}
    assert list(cost_lines({**used.cost, "lost_usd_per_step": lost}))[1] == (
        "Lost of it to exposed wait $2.00, exposed transfer $1.00, "
        "exposed comm (not split) $0.500"
    )
