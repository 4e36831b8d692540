"""Why a device was idle: small traces worked out by hand, and a search over all instants."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import annotation, copy, kernel, op, span, step, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import IdleTimes, digest, from_table, idle, to_table

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def call(ts, last, name="cudaStreamSynchronize", *, correlation=0, tid=1):
    return span("cuda_runtime", name, ts, last, correlation=correlation, tid=tid)


def told(tmp_path, events):
    """Return the four parts of each step in us; they are all of its idle time."""
    (device,) = digest(read_trace(write(tmp_path / "rank0.json", events))).devices
    found = []
    for one in device.steps:
        assert one.times is not None
        assert one.idle is not None
        assert sum(one.idle) == one.times.idle_ns
        found.append(tuple(part / 1000 for part in one.idle))
    return found


def after(ts, launched, last=10):
    """Return a first kernel until 110, launched early, and one that a launch of 2 us made."""
    return [
        call(50, 1, "cudaLaunchKernel", correlation=1),
        kernel(100, 10, correlation=1),
        call(launched, 2, "cudaLaunchKernel", correlation=2),
        kernel(ts, last, correlation=2),
    ]


def test_until_the_launch_returns_the_host_was_late(tmp_path):
    """Idle from 110 to 140: launched from 130 to 132, and 8 us more on the way."""
    assert told(tmp_path, after(140, 130)) == [(0, 0, 22, 8)]


def test_what_was_launched_before_the_gap_waited_for_nobody_knows_what(tmp_path):
    assert told(tmp_path, after(140, 90)) == [(0, 0, 0, 30)]


def test_what_waited_for_the_device_is_a_sync(tmp_path):
    """The host waits from 60 to 113 and launches at 130: it would have long before."""
    assert told(tmp_path, [*after(140, 130), call(60, 53)]) == [(0, 20, 2, 8)]


def test_a_wait_is_blamed_for_no_more_than_it_took(tmp_path):
    """The host waits from 105 to 112: without, it would have launched at 123."""
    assert told(tmp_path, [*after(140, 130), call(105, 7)]) == [(0, 7, 15, 8)]


def test_a_wait_before_an_earlier_launch_is_over(tmp_path):
    assert told(tmp_path, [*after(140, 130), call(20, 29)]) == [(0, 0, 22, 8)]


def test_a_wait_on_a_thread_that_launches_nothing_holds_up_nothing(tmp_path):
    assert told(tmp_path, [*after(140, 130), call(60, 53, tid=9)]) == [(0, 0, 22, 8)]


@pytest.mark.parametrize(
    "name",
    [
        LOADER,
        "[pl][profile][_TrainingEpochLoop].train_dataloader_next",
        "next batch",
        "get_batch",
    ],
)
def test_fetching_data_comes_before_all_else(tmp_path, name):
    """Idle from 110; the host fetches from 112 to 125, and launches at 130."""
    events = [*after(140, 130), call(60, 53), annotation(112, 13, name)]
    assert told(tmp_path, events) == [(13, 7, 2, 8)]


def test_waiting_while_fetching_data_is_fetching_data(tmp_path):
    events = [*after(140, 130), annotation(111, 15, LOADER), call(112, 13)]
    assert told(tmp_path, events) == [(15, 0, 5 + 2, 8)]


def test_an_operator_fetches_data_in_old_traces(tmp_path):
    assert told(tmp_path, [*after(140, 130), op(100, 15, LOADER)]) == [(5, 0, 17, 8)]


def test_fetching_data_in_the_background_holds_up_nothing(tmp_path):
    events = [*after(140, 130), annotation(100, 40, LOADER, tid=9)]
    assert told(tmp_path, events) == [(0, 0, 22, 8)]


def test_a_copy_that_lasts_until_it_is_done_waits(tmp_path):
    """cudaMemcpyAsync from pageable memory; the second one goes on, as it should."""
    events = [
        call(100, 25, "cudaMemcpyAsync", correlation=1),
        copy(110, 10, correlation=1),  # until 120
        call(135, 1, "cudaMemcpyAsync", correlation=2),
        copy(140, 10, correlation=2),  # until 150
        call(170, 1, "cudaLaunchKernel", correlation=3),
        kernel(171, 10, correlation=3),
    ]
    # 120-135 behind the first, 135-136 launch, 4 on the way; 150-171 the host was late
    assert told(tmp_path, events) == [(0, 15, 1 + 21, 4)]


def test_nobody_knows_of_what_has_no_launch_or_no_end(tmp_path):
    """From 110 to 140 before a kernel without launch, from 150 to the end of the step."""
    events = [
        step(1, 40, 160),
        call(50, 1, "cudaLaunchKernel", correlation=1),
        kernel(100, 10, correlation=1),
        kernel(140, 10),
    ]
    assert told(tmp_path, events) == [(0, 0, 0, 30 + 50)]


def test_the_earliest_launch_of_those_that_end_a_gap_counts(tmp_path):
    other = [call(120, 1, "cudaLaunchKernel", correlation=3)]
    other.append(kernel(140, 5, correlation=3, stream=9))
    assert told(tmp_path, [*after(140, 130), *other]) == [(0, 0, 11, 19)]


def test_a_graph_is_launched_too(tmp_path):
    events = after(140, 130)
    events[2]["name"] = "cudaGraphLaunch"
    assert told(tmp_path, events) == [(0, 0, 22, 8)]


def test_without_correlation_an_external_id_links(tmp_path):
    events = after(140, 130)
    for event in events:
        event["args"]["External id"] = event["args"].pop("correlation")
    assert told(tmp_path, events) == [(0, 0, 22, 8)]


def test_steps_have_their_own_gaps(tmp_path):
    """The second begins at 140; its host span ends at 180, behind all work at 150."""
    events = [*after(140, 130), step(1, 40, 80), step(2, 120, 60), annotation(115, 5, LOADER)]
    assert told(tmp_path, events) == [(5, 0, 17, 8), (0, 0, 0, 30)]


def test_devices_have_their_own_gaps(tmp_path):
    events = [*after(140, 130), kernel(100, 10, device=1), kernel(120, 10, device=1)]
    found = digest(read_trace(write(tmp_path / "rank0.json", events))).devices
    assert [one.steps[0].idle for one in found] == [
        IdleTimes(0, 0, 22_000, 8000),
        IdleTimes(0, 0, 0, 10_000),
    ]


def test_of_the_host_itself_only_fetching_data_is_known(tmp_path):
    events = [op(100, 10), op(140, 10), annotation(120, 15, LOADER, tid=3), call(110, 20)]
    assert told(tmp_path, events) == [(15, 0, 0, 15)]


@pytest.mark.parametrize("what", ["gaps", "calls", "loads"])
def test_of_more_than_anybody_has_nothing_is_told(tmp_path, monkeypatch, what):
    monkeypatch.setattr(idle, "MOST_GAPS", 3)
    many = {
        "gaps": [kernel(500 + 10 * n, 5) for n in range(4)],
        "calls": [call(500 + 10 * n, 5) for n in range(4)],
        "loads": [annotation(500 + 10 * n, 5, LOADER) for n in range(4)],
    }
    found = digest(read_trace(write(tmp_path / "rank0.json", [*after(140, 130), *many[what]])))
    assert [one.steps[0].idle for one in found.devices] == [None]
    assert [note.code for note in found.notes].count("idle_untold") == 1
    assert from_table(to_table([found])) == [found]


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cudaStreamSynchronize", True),
        ("cudaDeviceSynchronize", True),
        ("cudaEventSynchronize", True),
        ("cuCtxSynchronize", True),
        ("hipDeviceSynchronize", True),
        ("hipMemcpyWithStream", True),
        ("cudaMemcpy", True),
        ("zeCommandQueueSynchronize", True),
        ("urQueueFinish", True),
        ("cudaMemcpyAsync", False),
        ("cudaLaunchKernel", False),
        ("cudaStreamWaitEvent", False),
        ("cudaEventQuery", False),
    ],
)
def test_calls_that_wait(name, waits):
    assert idle.are_syncs(pa.array([name])).to_pylist() == [waits]


acts = st.lists(
    st.tuples(
        st.sampled_from(["launch", "launch", "unlinked", "sync", "load", "pause"]),
        st.integers(1, 9),  # how long it takes the host
        st.integers(0, 12),  # until the kernel starts, from the begin of the launch
        st.integers(1, 9),  # how long that takes
    ),
    min_size=1,
    max_size=14,
)


def played(acts):
    """Return what the host did one after the other, as events and as spans in us."""
    events, at = [], 100
    spans: dict[str, list[tuple[int, ...]]] = {name: [] for name in ("work", "sync", "load")}
    for number, (what, last, delay, takes) in enumerate(acts, 1):
        if what in ("launch", "unlinked"):
            is_linked = what == "launch"
            events.append(kernel(at + delay, takes, correlation=number * is_linked))
            launched = (at, at + last) if is_linked else ()
            if is_linked:
                events.append(call(at, last, "cudaLaunchKernel", correlation=number))
            spans["work"].append((at + delay, at + delay + takes, *launched))
        elif what == "sync":
            events.append(call(at, last))
            spans["sync"].append((at, at + last))
        elif what == "load":
            events.append(annotation(at, last, LOADER))
            spans["load"].append((at, at + last))
        at += last
    return events, spans


def searched(spans, first, end):
    """Say of every idle instant what it was, by the words of the definition."""
    found: Counter[str] = Counter()
    blamed: Counter[int] = Counter()
    works = spans["work"]
    calls = [one[2] for one in works if one[2:]]

    def is_in(name, at):
        return any(begin <= at < until for begin, until, *_ in spans[name])

    for at in range(first, end):
        if is_in("work", at):
            continue
        ends_at = min((one[0] for one in works if one[0] > at), default=end)
        enders = [one[2:] for one in works if one[0] == ends_at and one[2:]]
        launched = min((one[0] for one in enders), default=at)
        if at < launched and is_in("load", at):
            found["load"] += 1
        elif at < launched:
            before = max((one for one in calls if one < launched), default=0)
            waited = sum(
                is_in("sync", t) and not is_in("load", t) for t in range(before, launched)
            )
            blamed[ends_at] += 1
            found["sync" if blamed[ends_at] <= waited else "launch"] += 1
        else:
            is_called = at < min((one[1] for one in enders), default=at)
            found["launch" if is_called else "unknown"] += 1
    return tuple(found[name] for name in ("load", "sync", "launch", "unknown"))


@settings(max_examples=300)
@given(acts, st.integers(2, 9), st.integers(95, 140))
def test_it_agrees_with_a_search(tmp_path_factory, acts, rows, cut):
    events, spans = played(acts)
    if not spans["work"]:
        return
    folder = tmp_path_factory.mktemp("any")
    steps = [step(1, 90, cut - 90), step(2, cut, 160)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", rows)
        patch.setattr(ordered, "_LEAST", 1)
        for marked in ([], steps):
            path = write(folder / "rank0.json", [*events, *marked], baseTimeNanoseconds=0)
            (device,) = digest(read_trace(path)).devices
            for one in device.steps:
                if one.times is None:
                    assert one.idle is None
                    continue
                assert one.idle is not None
                edges = (one.times.start_ns // 1000, one.times.end_ns // 1000)
                assert tuple(part / 1000 for part in one.idle) == searched(spans, *edges)
                assert sum(one.idle) == one.times.idle_ns
