"""Overlays of real traces, read by readers that are not ours, and back by our own."""

from __future__ import annotations

import logging
import warnings
from collections import Counter

import pytest

import traceparse
from tests.bridge.perfetto import imported, load
from tests.contract.places import SHARED
from traceparse.bridge.overlay import overlay

JOB = SHARED / "param-dlrm"
KINDS = (
    *("b200-eager", "h100-transformer", "kineto-2021-resnet50-v100", "mi210-gpu-only"),
    *("mi300x-ddp-resnet18", "mtia-inference", "cpu-only-gloo-small-rank-34-of-300"),
    *("mi300x-sglang-qwen3-8b-decode-graph", "hta-ns-resolution-v100"),
)

pytestmark = pytest.mark.skipif(
    not JOB.exists(),
    reason=f"no traces at {SHARED}; say where they are in TRACEPARSE_SHARED_TRACES",
)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The overlay of eight ranks that train a DLRM."""
    return overlay(JOB, tmp_path_factory.mktemp("dlrm") / "overlay.json.gz")


def test_hta_loads_as_many_events_of_each_category_as_were_written(drawn, monkeypatch):
    parser = pytest.importorskip("hta.common.trace_parser")
    config = pytest.importorskip("hta.configs.parser_config")
    monkeypatch.setattr(logging.getLogger("hta"), "disabled", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it says of pandas is not ours
        _, frame, symbols = parser.parse_trace_dataframe(
            str(drawn.path), config.ParserConfig.get_default_cfg()
        )
    names = symbols.get_sym_table()
    loaded = Counter(names[number] for number in frame["cat"])
    events = load(drawn.path)["traceEvents"]
    assert loaded == Counter(event["cat"] for event in events if event["ph"] == "X")
    # and of what the traces have, as many as these have themselves
    tables = traceparse.read(JOB).tables
    assert loaded["cpu_op"] == tables["ops"].num_rows
    assert loaded["cuda_runtime"] == tables["launches"].num_rows
    assert loaded["kernel"] == tables["kernels"].num_rows
    copies = loaded["gpu_memcpy"] + loaded["gpu_memset"]
    assert copies + loaded["kernel"] == tables["device_events"].num_rows
    assert len(events) == sum(drawn.num_events.values())


def test_eight_ranks_are_tied_by_their_collectives(drawn):
    found = imported(drawn.path)
    assert not found.lost
    assert drawn.ranks == tuple(range(8))
    tied = [ends for (kind, _), ends in found.flows.items() if kind == "collective"]
    report = traceparse.analyze(JOB)
    assert len(tied) == sum(one["count"] for one in report.collectives or ()) == 8
    devices = {one["pid"]: one["rank"] for one in found.header["traceparse_overlay"]["devices"]}
    for ends in tied:
        assert {devices[one["pid"]] for one in ends} == set(range(8))
        assert devices[ends[0]["pid"]] == ends[0]["args"]["last_rank"]
        assert [one["at"] for one in ends] == sorted(one["at"] for one in ends)
    counts = Counter(str(ends[0]["args"]["last_rank"]) for ends in tied)
    told: Counter[str] = Counter()
    for one in report.collectives or ():
        told.update(one["last_rank_counts"])
    assert counts == told


def test_offsets_of_clocks_are_taken_off(drawn):
    found = imported(drawn.path)
    clock = traceparse.analyze(JOB).clock or {}
    told = found.header["traceparse_overlay"]["clock"]
    assert told["offsets_ns"] == clock["offsets_ns"] and told["aligned"]
    first = traceparse.read(JOB).tables["kernels"].to_pandas()
    base = found.header["baseTimeNanoseconds"]
    for device in found.header["traceparse_overlay"]["devices"]:
        rank = device["rank"]
        own = first[first["rank"] == rank].sort_values("start_ns")
        drawn_ns = sorted(
            one["ts"]
            for (pid, _), slices in found.slices.items()
            for one in slices
            if pid == device["pid"] and one["cat"] == "kernel"
        )
        offset = clock["offsets_ns"][str(rank)]
        assert drawn_ns == sorted((own["start_ns"] - base - offset).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_trace_reads_back_as_it_was(name, tmp_path):
    path = SHARED / f"{name}.json.gz"
    written = overlay(path, tmp_path / "overlay.json")
    found = imported(written.path)
    assert not found.lost
    report, again = traceparse.analyze(path), traceparse.analyze(written.path)
    told = {str(one.device): one for one in report.devices}
    back = {str(one.device): one for one in again.devices}
    assert told.keys() == back.keys()
    assert not written.left_out
    for key, device in told.items():
        other = back[key]
        for field in ("span_ns", "compute_ns", "comm_ns", "copy_ns", "overlap_ns", "idle_ns"):
            assert getattr(other.window, field) == getattr(device.window, field), field
        assert other.kernels == device.kernels
        assert [step.step for step in other.steps] == [step.step for step in device.steps]
        assert [step.executed_flop for step in other.steps] == [
            step.executed_flop for step in device.steps
        ]


def test_eight_ranks_read_back_with_the_times_of_each(drawn):
    pids = {
        str(one["pid"]): one["rank"]
        for one in load(drawn.path)["traceparse_overlay"]["devices"]
    }
    report, again = traceparse.analyze(JOB), traceparse.analyze(drawn.path)
    told = {device.rank: device for device in report.devices}
    assert {pids[str(device.device)] for device in again.devices} == set(range(8))
    for device in again.devices:
        own = told[pids[str(device.device)]]
        for field in ("span_ns", "compute_ns", "comm_ns", "copy_ns", "overlap_ns", "idle_ns"):
            assert getattr(device.window, field) == getattr(own.window, field), field
