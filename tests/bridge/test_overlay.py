"""Overlays of traces made by hand and of simulated jobs: what is drawn, and where."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

import traceparse
from tests.bridge.perfetto import Imported, imported, load
from tests.simulated import made
from tests.traces import (
    ALL_REDUCE,
    BASE_NS,
    all_reduce,
    annotation,
    copy,
    document,
    job,
    kernel,
    launch,
    op,
    span,
    step,
    write,
)
from traceparse.bridge.overlay import overlay
from traceparse.errors import InputError, UsageError

MM: dict[str, Any] = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}


@pytest.fixture
def two_ranks(tmp_path):
    """Rank 0 waits for rank 1 from 130 to 150 us; a product of 128 FLOP before that."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank, arrives in ((0, 130), (1, 150)):
        events = [
            step(3, 90, 100),
            op(100, 5, **MM),
            launch(101, correlation=5),
            kernel(110, 10, correlation=5),
            launch(125, correlation=6),
            all_reduce(arrives, 170 - arrives, correlation=6),
        ]
        write(folder / f"rank{rank}.json", events, distributedInfo=job(rank, 2))
    return folder


def _pids(found: Imported) -> dict[Any, int]:
    devices = found.header["traceparse_overlay"]["devices"]
    return {(one["rank"], one["device"]): one["pid"] for one in devices}


def _parts(found: Imported, process: str) -> list[tuple[str, int, int]]:
    return [
        (one["name"], one["ts"], one["ts"] + one["dur"])
        for one in found.named("where the time went", process)
    ]


def test_two_ranks_are_drawn_as_worked_out_by_hand(two_ranks, tmp_path):
    written = overlay(two_ranks, tmp_path / "o.json")
    found = imported(written.path)
    assert not found.lost
    assert sum(found.phases.values()) == sum(written.num_events.values())
    assert (written.ranks, written.left_out, written.doubts) == ((0, 1), (), ())
    assert written.json_bytes == written.path.stat().st_size

    base = found.header["baseTimeNanoseconds"]
    at = {us: BASE_NS + us * 1000 - base for us in (110, 120, 130, 150, 170)}
    assert _parts(found, "rank 0 device 0") == [
        ("compute", at[110], at[120]),
        ("idle", at[120], at[130]),
        ("exposed wait", at[130], at[150]),
        ("exposed transfer", at[150], at[170]),
    ]
    assert _parts(found, "rank 1 device 0")[1:] == [
        ("idle", at[120], at[150]),
        ("exposed transfer", at[150], at[170]),
    ]
    (gemm, reduce) = found.named("stream 7", "rank 0 device 0")
    assert (gemm["ts"], gemm["dur"], gemm["cat"]) == (at[110], 10_000, "kernel")
    assert gemm["args"] == {
        "device": _pids(found)[0, "0"],
        "stream": 7,
        "correlation": 5,
        "kind": "compute",
        "op": "aten::mm",
        "shapes": "8x4, 4x2",
        "dtype": gemm["args"]["dtype"],
        "step": 3,
        "flop": 2 * 8 * 4 * 2,
        "least_bytes": gemm["args"]["least_bytes"],
    }
    assert reduce["args"]["Collective name"] == "allreduce"
    (span_,) = found.named("steps", "rank 1 device 0")
    assert (span_["name"], span_["args"]["step"]) == ("ProfilerStep#3", 3)


def test_a_collective_is_tied_from_the_rank_that_came_last(two_ranks, tmp_path):
    found = imported(overlay(two_ranks, tmp_path / "o.json").path)
    (tied,) = (ends for (kind, _), ends in found.flows.items() if kind == "collective")
    pids = _pids(found)
    assert [one["pid"] for one in tied] == [pids[1, "0"], pids[0, "0"]]
    assert tied[0]["at"] == tied[0]["ts"] == tied[1]["at"]
    common = {
        "instance": 0,
        "group": "0",
        "ranks": "0-1",
        "dtype": "Float",
        "bytes": 1024,
        "transfer_ns": 20_000,
        "last_rank": 1,
    }
    assert tied[0]["args"] == {**common, "wait_ns": 0}
    assert tied[1]["args"] == {**common, "wait_ns": 20_000}
    assert {one["name"] for one in tied} == {"allreduce"}


def test_launches_lead_to_kernels(two_ranks, tmp_path):
    found = imported(overlay(two_ranks, tmp_path / "o.json").path)
    led = [ends for (kind, _), ends in found.flows.items() if kind == "ac2g"]
    assert Counter((one["name"], other["name"]) for one, other in led) == {
        ("cudaLaunchKernel", "gemm"): 2,
        ("cudaLaunchKernel", ALL_REDUCE): 2,
    }
    for one, other in led:
        # those of rank 1 are other numbers than those of rank 0
        assert one["args"]["correlation"] == other["args"]["correlation"]
        assert found.processes[one["pid"]] == (
            found.processes[other["pid"]].replace("device 0", "host")
        )
    assert len({one["args"]["correlation"] for one, _ in led}) == 4


def test_what_overlaps_on_a_stream_gets_a_second_lane(tmp_path):
    events = [kernel(100, 10, "a"), kernel(105, 10, "b"), kernel(110, 2, "c"), copy(120, 0)]
    path = write(tmp_path / "rank0.json", events, distributedInfo=job(0))
    found = imported(overlay(path, tmp_path / "o.json").path)
    assert not found.lost
    assert [one["name"] for one in found.named("stream 7")] == ["a", "c", "Memcpy HtoD"]
    assert [one["name"] for one in found.named("stream 7 (2)")] == ["b"]


def test_host_slices_nest_and_those_that_cross_get_a_lane(tmp_path):
    events = [
        kernel(100, 10),
        op(10, 20, "outer"),
        op(10, 20, "same"),
        launch(29, correlation=1),
        op(29, 5, "crosses"),
    ]
    path = write(tmp_path / "rank0.json", events, distributedInfo=job(0))
    found = imported(overlay(path, tmp_path / "o.json").path)
    assert not found.lost
    assert [(one["name"], one["depth"]) for one in found.named("thread 1")] == [
        ("outer", 0),
        ("same", 1),
        ("cudaLaunchKernel", 2),
    ]
    assert [one["name"] for one in found.named("thread 1 (2)")] == ["crosses"]


def test_names_from_a_trace_stay_text(tmp_path):
    evil = '"}]}\n,{"ph":"X","name":"\u2028\x00\x1b[31m\\</script>'
    events = [kernel(100, 10, evil), op(10, 5, evil), annotation(5, 90, evil)]
    path = write(tmp_path / "rank0.json", events, distributedInfo=job(0))
    found = imported(overlay(path, tmp_path / "o.json").path)
    names = [one["name"] for slices in found.slices.values() for one in slices]
    assert names.count(evil) == 3
    assert b"\x00" not in (tmp_path / "o.json").read_bytes()


def test_times_are_written_to_the_nanosecond(tmp_path):
    text = json.dumps(document([], distributedInfo=job(0)))
    event = (
        '{"ph":"X","cat":"kernel","name":"k","ts":%s,"dur":%s,"args":{"device":0,"stream":1}}'
    )
    events = ",".join(event % times for times in (("0.001", "0.7"), ("12345678.9", "1.003")))
    (tmp_path / "rank0.json").write_text(text[: text.index("[]")] + f"[{events}]}}")
    path = overlay(tmp_path / "rank0.json", tmp_path / "o.json").path
    raw = path.read_text()
    base = json.loads(raw)["baseTimeNanoseconds"]
    assert base == BASE_NS
    assert '"ts":0.001,"ph":"X","name":"k"' in raw
    assert '"ts":12345678.900,"ph":"X","name":"k"' in raw
    assert '"dur":0.700' in raw and '"dur":1.003' in raw


def test_compressed_if_its_name_says_so(two_ranks, tmp_path):
    plain = overlay(two_ranks, tmp_path / "o.json").path
    packed = overlay(two_ranks, tmp_path / "o.json.gz").path
    assert packed.read_bytes()[:2] == b"\x1f\x8b"
    assert load(packed) == load(plain)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["o.json", "o.json.gz", "traces"]


# -- simulated jobs


@pytest.fixture(scope="module")
def ddp(tmp_path_factory):
    """A simulated job of four ranks, its report and its overlay as Perfetto reads it."""
    folder = tmp_path_factory.mktemp("ddp")
    made("ddp", 4, 1).place(folder)
    (folder / "truth.json").unlink()
    out = tmp_path_factory.mktemp("out") / "o.json"
    written = overlay(folder, out)
    return folder, traceparse.analyze(folder), written, imported(out)


def test_the_partition_fills_windows_and_adds_up_to_the_report(ddp):
    _, report, _, found = ddp
    for device in report.devices:
        slices = found.named(
            "where the time went", f"rank {device.rank} device {device.device}"
        )
        ends = [one["ts"] + one["dur"] for one in slices]
        assert [one["ts"] for one in slices[1:]] == ends[:-1]
        assert ends[-1] - slices[0]["ts"] == device.window.span_ns
        sums = _sums(slices)
        assert sums["compute"] == device.window.compute_ns
        assert sums["exposed copy"] == device.window.exposed_copy_ns
        assert sums["idle"] == device.window.idle_ns
        own = found.named("steps", f"rank {device.rank} device {device.device}")
        for shown, told in zip(own, device.steps, strict=True):
            first, last = shown["ts"], shown["ts"] + shown["dur"]
            inside = [one for one in slices if first <= one["ts"] < last]
            assert shown["dur"] == told.times.span_ns
            split = _sums(inside)
            assert split["compute"] == told.times.compute_ns
            for name, ns in told.communication_ns.items():
                assert split[name.replace("_", " ")] == ns, name


def _sums(slices: list[dict[str, Any]]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for one in slices:
        sums[one["name"]] += one["dur"]
        assert one["args"] == {f"{one['name']} ns": one["dur"]}
    return sums


def test_counters_add_up_to_the_flop_and_busy_time_of_each_step(ddp):
    _, report, _, found = ddp
    pids = _pids(found)
    for device in report.devices:
        pid = pids[device.rank, str(device.device)]
        flop, busy = (
            found.counters[pid, name] for name in ("achieved TFLOP/s", "busy share of the time")
        )
        own = found.named("steps", f"rank {device.rank} device {device.device}")
        for shown, told in zip(own, device.steps, strict=True):
            last = shown["ts"] + shown["dur"]
            counted = [
                (value, following - start)
                for (start, value), (following, _) in pairwise(flop)
                if shown["ts"] <= start < last
            ]
            assert sum(round(value * ns * 1000) for value, ns in counted) == told.executed_flop
        total = sum(
            round(value * (following - start))
            for (start, value), (following, _) in pairwise(busy)
        )
        assert total == device.window.busy_ns


def test_hfu_and_link_bandwidth_are_those_of_the_report(ddp):
    _, report, _, found = ddp
    pids = _pids(found)
    device = report.devices[0]
    pid = pids[device.rank, str(device.device)]
    hfu = found.counters[pid, "HFU share of the peak"]
    (first, *_) = found.named("steps", f"rank {device.rank} device {device.device}")
    ns = sum(
        value * (following - start)
        for (start, value), (following, _) in pairwise(hfu)
        if first["ts"] <= start < first["ts"] + first["dur"]
    )
    assert ns / first["dur"] == pytest.approx(device.steps[0].hfu, rel=1e-9)
    rates = [value for _, value in found.counters[pid, "collectives GB/s while transferring"]]
    # a mean over what transfers in a bin: the fastest collective is the fastest bin
    fastest = max(
        one["args"]["bytes"] / one["args"]["transfer_ns"]
        for one in found.named("collectives")
        if one["args"].get("transfer_ns")
    )
    assert max(rates) == pytest.approx(fastest, rel=1e-4)
    assert min(rates) == 0


def test_our_own_reader_sees_the_same_times(ddp, tmp_path):
    folder, report, written, found = ddp
    back = {str(one.device): one for one in traceparse.analyze(written.path).devices}
    pids = _pids(found)
    for device in report.devices:
        again = back[str(pids[device.rank, str(device.device)])]
        for name in ("compute_ns", "comm_ns", "copy_ns", "idle_ns", "exposed_comm_ns"):
            assert getattr(again.window, name) == getattr(device.window, name), name
        assert again.kernels == device.kernels
    # and of one rank alone, steps and work as well
    one = overlay(folder, tmp_path / "one.json", ranks=[2])
    (device,) = traceparse.analyze(one.path).devices
    told = report.devices[2]
    assert (device.rank, device.device) == (2, told.device)
    assert [own.executed_flop for own in device.steps] == [s.executed_flop for s in told.steps]
    assert [own.times for own in device.steps if own.times] and all(
        own.times.compute_ns == step.times.compute_ns
        for own, step in zip(device.steps, told.steps, strict=True)
        if own.times and step.times
    )


def test_a_straggler_is_marked_where_others_wait_for_it(tmp_path):
    made("straggler_compute", 8, 1).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    out = tmp_path.parent / f"{tmp_path.name}.json"
    found = imported(overlay(tmp_path, out).path)
    report = traceparse.analyze(tmp_path)
    (finding,) = (one for one in report.findings or () if one["code"] == "straggler")
    marks = [one for one in found.instants if one["cat"] == "traceparse"]
    (whole,) = (
        one
        for one in marks
        if found.threads[one["pid"], one["tid"]] == "of the whole run"
        and one["name"] == finding["title"]
    )
    assert whole["args"]["evidence"] == finding["evidence"]
    own = [one for one in marks if found.threads[one["pid"], one["tid"]] == "findings"]
    assert {found.processes[one["pid"]] for one in own} == {
        f"rank {_rank(finding)} device {report.devices[_rank(finding)].device}"
    }
    starts = {one["ts"] for one in found.named("collectives", found.processes[own[0]["pid"]])}
    assert own and {one["ts"] for one in own} <= starts
    assert all(one["args"]["exposed_wait_of_others_ns"] > 0 for one in own)


def _rank(finding: Mapping[str, Any]) -> int:
    return int(finding["title"].split()[1])


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["clock_offset", "window_lag", "moe", "tp_pp", "graphs"])
def test_nothing_that_is_drawn_is_lost_by_a_reader(scenario, tmp_path):
    made(scenario, 4, 2).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    out = tmp_path.parent / f"{tmp_path.name}.json"
    found = imported(overlay(tmp_path, out).path)
    assert not found.lost
    assert any(kind == "collective" for kind, _ in found.flows)


def test_clocks_that_drift_are_set_right_and_durations_are_told_as_recorded(tmp_path):
    made("clock_drift", 4, 1).place(tmp_path)
    (tmp_path / "truth.json").unlink()
    out = tmp_path.parent / f"{tmp_path.name}.json"
    found = imported(overlay(tmp_path, out).path)
    assert not found.lost
    for device in traceparse.analyze(tmp_path).devices:
        process = f"rank {device.rank} device {device.device}"
        slices = found.named("where the time went", process)
        told = sum(sum(one["args"].values()) for one in slices)
        assert told == device.window.span_ns
    ends: dict[int, list[int]] = {}
    for one in found.named("collectives"):
        ends.setdefault(one["args"]["instance"], []).append(one["ts"] + one["dur"])
    assert max(max(own) - min(own) for own in ends.values()) < 10_000


# -- windows and sizes


@pytest.mark.parametrize("max_bytes", [500_000, 300_000, 200_000, 120_000, 60_000])
def test_no_file_is_larger_than_asked_for(ddp, max_bytes, tmp_path):
    folder, report, _, _ = ddp
    written = overlay(folder, tmp_path / "o.json", max_bytes=max_bytes)
    assert written.path.stat().st_size == written.json_bytes <= max_bytes
    found = imported(written.path)
    assert not found.lost
    assert written.left_out
    assert found.header["traceparse_overlay"]["left_out"] == list(written.left_out)
    # however much is left out, parts of the time add up to what the report says of a step
    drawn = found.named("steps", f"rank 0 device {report.devices[0].device}")
    slices = found.named("where the time went", f"rank 0 device {report.devices[0].device}")
    steps = {one.step: one for one in report.devices[0].steps}
    for shown in drawn:
        sums: Counter[str] = Counter()
        for one in slices:
            if shown["ts"] <= one["ts"] < shown["ts"] + shown["dur"]:
                sums.update(one["args"])
        times = steps[shown["args"]["step"]].times
        assert (sums["compute ns"], sums["idle ns"]) == (times.compute_ns, times.idle_ns)
        assert sum(sums.values()) == times.span_ns


def test_what_cannot_fit_is_refused_in_words(ddp, tmp_path):
    with pytest.raises(UsageError, match=r"--max-bytes 5000: a step of these ranks takes more"):
        overlay(ddp[0], tmp_path / "o.json", max_bytes=5000)
    assert not list(tmp_path.iterdir())


def test_some_steps_of_some_ranks(ddp, tmp_path):
    folder, report, _, _ = ddp
    number = report.devices[0].steps[1].step
    out = tmp_path / "o.json"
    found = imported(overlay(folder, out, steps=range(number, number + 1), ranks=[0, 3]).path)
    assert {one["rank"] for one in found.header["traceparse_overlay"]["devices"]} == {0, 3}
    assert {one["args"]["step"] for one in found.named("steps")} == {number}
    assert not found.lost
    device = report.devices[3]
    slices = found.named("where the time went", f"rank 3 device {device.device}")
    assert sum(one["dur"] for one in slices) == device.steps[1].times.span_ns
    # who waits for whom takes all ranks, also those that are not drawn
    lasts = {one["args"]["last_rank"] for one in found.named("collectives")}
    assert 1 in lasts
    with pytest.raises(InputError, match="no trace has rank 7: they have 0-3; change --ranks"):
        overlay(folder, out, ranks=[1, 7])


def test_python_functions_are_the_first_to_go(tmp_path):
    calls = [span("python_function", f"f{n}", 10 + n, 1) for n in range(1000)]
    events = [step(1, 5, 1500), op(8, 1400), kernel(100, 10), *calls]
    path = write(tmp_path / "rank0.json", events, distributedInfo=job(0))
    whole = overlay(path, tmp_path / "o.json")
    assert whole.json_bytes > 80_000
    assert whole.left_out == ()
    names = Counter(one["cat"] for one in imported(whole.path).named("thread 1"))
    assert names == {"user_annotation": 1, "cpu_op": 1, "python_function": 1000}
    less = overlay(path, tmp_path / "o.json", max_bytes=60_000)
    assert less.left_out == ("Python functions",)
    names = Counter(one["cat"] for one in imported(less.path).named("thread 1"))
    assert names == {"user_annotation": 1, "cpu_op": 1}


def test_a_host_is_drawn_where_there_is_no_device(tmp_path):
    gloo = {"Input Dims": [[[4]]], "Input type": ["TensorList"]}
    events = [step(1, 5, 500), op(8, 40), annotation(60, 20, "gloo:all_reduce", **gloo)]
    path = write(tmp_path / "rank0.json", events, distributedInfo=job(0))
    written = overlay(path, tmp_path / "o.json")
    found = imported(written.path)
    assert [one["name"] for one in found.named("where the time went")][:3] == [
        "compute",
        "idle",
        "exposed unsplit",
    ]
    (call,) = found.named("collectives")
    assert (call["name"], call["dur"]) == ("allreduce", 20_000)
    report, again = traceparse.analyze(path), traceparse.analyze(written.path)
    assert again.devices[0].window == report.devices[0].window


# -- what cannot be written


def test_a_trace_is_never_replaced_by_its_overlay(two_ranks):
    before = (two_ranks / "rank0.json").read_bytes()
    with pytest.raises(UsageError, match=r"rank0\.json: that is one of the traces"):
        overlay(two_ranks, two_ranks / "rank0.json")
    assert (two_ranks / "rank0.json").read_bytes() == before


def test_a_file_among_the_traces_is_written_with_a_warning(two_ranks):
    written = overlay(two_ranks, two_ranks / "o.json")
    (doubt,) = written.doubts
    assert doubt.startswith("the file lies in a folder of traces")


def test_where_nothing_can_be_written_nothing_is_read(two_ranks, tmp_path):
    with pytest.raises(InputError, match="that is a folder; give -o a file in it"):
        overlay(tmp_path / "absent", two_ranks)
    with pytest.raises(InputError, match="there is no folder"):
        overlay(tmp_path / "absent", tmp_path / "no" / "o.json")


def test_ranks_that_never_met_are_not_compared(tmp_path):
    for rank in range(2):
        write(tmp_path / f"rank{rank}.json", [kernel(100, 10)], distributedInfo=job(rank, 2))
    written = overlay(tmp_path, tmp_path.parent / f"{tmp_path.name}.json")
    assert [one[:31] for one in written.doubts] == ["clocks of ranks are not aligned"]
    assert load(written.path)["traceparse_overlay"]["clock"]["aligned"] is False


def test_a_device_without_a_collective_beside_those_that_have_one(two_ranks, tmp_path):
    write(two_ranks / "rank2.json", [kernel(100, 10)], distributedInfo=job(2, 3))
    found = imported(overlay(two_ranks, tmp_path / "o.json").path)
    assert not found.lost
    assert not found.named("collectives", "rank 2 device 0")


# -- where traces come from


def test_what_was_digested_before_is_drawn_as_well(two_ranks, tmp_path):
    cache = tmp_path / "cache"
    first = overlay(two_ranks, tmp_path / "1.json", cache=cache)
    assert list(cache.rglob("*.*"))
    again = overlay(two_ranks, tmp_path / "2.json", cache=cache)
    assert load(again.path) == load(first.path)


def test_several_traces_in_one_file_are_drawn_each(two_ranks, tmp_path):
    texts = [(two_ranks / f"rank{rank}.json").read_text() for rank in range(2)]
    both = tmp_path / "both.json"
    both.write_text("\n".join(texts))
    written = overlay(both, tmp_path / "o.json")
    assert written.ranks == (0, 1)
    whole = overlay(two_ranks, tmp_path / "w.json")
    assert load(written.path)["traceEvents"] == load(whole.path)["traceEvents"]


def test_a_file_that_changes_while_it_is_read_is_refused(two_ranks, tmp_path):
    path = two_ranks / "rank1.json"

    class Meanwhile:
        """Writes the file again once all were digested."""

        def __init__(self) -> None:
            self.num_files = 0

        def start(self, num_files: int, num_bytes: int) -> None: ...

        def advance(self, num_bytes: int) -> None: ...

        def file_done(self) -> None:
            self.num_files += 1
            if self.num_files == 2:
                write(path, [kernel(1, 1)], distributedInfo=job(1, 2))

    with pytest.raises(
        InputError, match=r"rank1\.json: the file has changed while it was read"
    ):
        overlay(two_ranks, tmp_path / "o.json", progress=Meanwhile())
    assert not (tmp_path / "o.json").exists()
