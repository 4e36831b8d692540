"""Simulated jobs: that their files are real ones, and that their truth is consistent.

What the truth says is compared with the files by brute force, one array cell a nanosecond, and
by the slow reference analyzer of these tests; neither shares code with the simulator.
"""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from tests import oracle
from tests.contract.seen import TIMES, broken
from tests.simulated import made
from tools import simulate as command
from tools.simulate import SCENARIOS, simulate

ALL = sorted(SCENARIOS)
EXPOSED = ("exposed_transfer_ns", "exposed_wait_ns", "pipeline_wait_ns", "exposed_unsplit_ns")
UNSPLIT, PIPELINE, WAIT, TRANSFER, COMPUTE = range(1, 6)  # as they cover one another
SHORT = [name for name in ALL if name != "clock_drift"]  # that one lasts half a minute
WHOLE = [name for name in SHORT if name not in ("window_lag", "missing_rank", "missing_member")]


@pytest.fixture(params=ALL)
def job(request):
    return made(request.param, 4, 1)


def events_of(job, rank):
    document = json.loads(job.files[f"rank{rank}_trace.json"], parse_float=Decimal)
    base_ns = document.get("baseTimeNanoseconds", 0)
    spans = [event for event in document["traceEvents"] if event["ph"] == "X"]
    for event in spans:
        event["start"] = base_ns + int(event["ts"] * 1000)
        event["end"] = event["start"] + int(event["dur"] * 1000)
    return spans


def of_category(events, *categories):
    return [event for event in events if event["cat"] in categories]


def accounts(job):
    for device in job.truth["devices"]:
        yield device["window"]
        yield from (step for step in device["steps"] if "span_ns" in step)


# -- the account of time


def test_accounts_add_up(job):
    for entry in accounts(job):
        assert broken(entry) == []
        assert sum(entry[name] for name in EXPOSED) == entry["exposed_comm_ns"]


def test_reference_analyzer_finds_the_same_times(job):
    for device in job.truth["devices"]:
        data = job.files[f"rank{device['rank']}_trace.json"]
        found = oracle.analyze(*oracle.load(data))
        assert (found["rank"], found["world_size"]) == (device["rank"], 4)
        (other,) = found["devices"]
        assert other["device"] == device["device"]
        assert other["window"] == {name: device["window"][name] for name in TIMES}
        for step, reference in zip(device["steps"], other["steps"], strict=True):
            has_interval = "span_ns" in step
            times = {name: step[name] for name in TIMES} if has_interval else None
            named = {key: step[key] for key in ("step", "name", "open_ended")}
            assert reference == named | {"times": times}


@pytest.mark.parametrize("name", SHORT)
def test_exposure_by_brute_force(name):
    """Paint every nanosecond: what is least first, so that what comes later covers it."""
    job = made(name, 4, 1)
    splits = {
        (member["rank"], member["start_ns"], member["end_ns"]): instance
        for instance in job.truth["instances"]
        for member in instance["members"]
        if member["recorded"]
    }
    for device in job.truth["devices"]:
        events = events_of(job, device["rank"])
        origin, end = device["window"]["start_ns"], device["window"]["end_ns"]
        cells = np.zeros(end - origin, np.int8)
        painted = []
        for event in computing_or_communicating(events, device["device"]):
            key = device["rank"], event["start"], event["end"]
            painted += parts(event, splits.get(key))
        for color, start, stop in sorted(painted):
            cells[start - origin : stop - origin] = color
        for step in device["steps"]:
            if "span_ns" in step:
                inside = cells[step["start_ns"] - origin : step["end_ns"] - origin]
                counts = np.bincount(inside, minlength=6).tolist()
                found = [step[exposed] for exposed in reversed(EXPOSED)]
                assert counts[1:] == [*found, step["compute_ns"]], step["name"]


def computing_or_communicating(events, device):
    if device != "cpu":
        return of_category(events, "kernel")
    ops = of_category(events, "cpu_op")
    computing = [op for op in ops if not op["name"].startswith("c10d::")]
    return computing + [event for event in events if event["name"].startswith("gloo:")]


def parts(event, instance):
    start, stop = event["start"], event["end"]
    if "nccl" not in event["name"] and "gloo" not in event["name"]:
        return [(COMPUTE, start, stop)]
    if not instance["seen"]["split"]:
        return [(UNSPLIT, start, stop)]
    waiting = PIPELINE if instance["collective"] == "send/recv" else WAIT
    middle = stop - instance["seen"]["transfer_ns"]
    return [(waiting, start, middle), (TRANSFER, middle, stop)]


# -- the work


def test_work_by_search(job):
    for device in job.truth["devices"]:
        events = events_of(job, device["rank"])
        launches = {
            event["args"]["correlation"]: event for event in of_category(events, "cuda_runtime")
        }
        worked = {
            kernel["args"]["External id"]: launches[kernel["args"]["correlation"]]["start"]
            for kernel in of_category(events, "kernel")
            if "External id" in kernel["args"] and kernel["args"]["correlation"] in launches
        }
        engines = [e for e in events if e["name"].startswith("autograd::engine::evaluate")]
        sums: Counter[object] = Counter()
        for op in of_category(events, "cpu_op"):
            launched = worked.get(op["args"]["External id"])
            launched = op["start"] if device["device"] == "cpu" else launched
            if op["name"] in ("aten::mm", "aten::addmm") and launched is not None:
                (rows, inner), (_, columns) = [
                    d for d in op["args"]["Input Dims"] if len(d) == 2
                ]
                for marker in of_category(events, "user_annotation"):
                    is_step = marker["name"].startswith("ProfilerStep")
                    if is_step and marker["start"] <= launched < marker["end"]:
                        sums[marker["name"]] += 2 * rows * inner * columns
                        if is_repeated(op, engines):
                            sums[marker["name"], "again"] += 2 * rows * inner * columns
        for step in device["steps"]:
            assert step["executed_flop"] == sums[step["name"]]
            assert step["recompute_flop"] == sums[step["name"], "again"]


def is_repeated(op, engines):
    is_forward = op["args"].get("Fwd thread id") == 0
    return is_forward and any(e["start"] <= op["start"] < e["end"] for e in engines)


def test_only_checkpoints_repeat_work():
    repeating = {
        name
        for name in ALL
        for device in made(name, 4, 1).truth["devices"]
        for step in device["steps"]
        if step["recompute_flop"]
    }
    assert repeating == {"recompute"}


# -- the instances


def test_all_members_end_at_once_and_the_last_one_only_transfers(job):
    for instance in job.truth["instances"]:
        members = instance["members"]
        pair = [instance["source"], instance["destination"]]
        is_message = instance["collective"] == "send/recv"
        expected = sorted(pair) if is_message else instance["group_ranks"]
        assert sorted(member["rank"] for member in members) == expected
        waits = {member["rank"]: member["wait_ns"] for member in members}
        assert waits[instance["last_rank"]] == min(waits.values()) == 0
        for member in members:
            lasted = instance["true_end_ns"] - member["true_start_ns"]
            assert member["wait_ns"] + instance["transfer_ns"] == lasted
            ahead_ns = member["true_start_ns"] - member["true_launch_ns"]
            assert ahead_ns == 0 if job.truth["scenario"] == "gloo_cpu" else ahead_ns > 0


@pytest.mark.parametrize("name", WHOLE)
def test_files_tell_all_where_nothing_is_lost_and_clocks_are_steady(name):
    job = made(name, 4, 1)
    assert job.truth["clock"]["exact"]
    for instance in job.truth["instances"]:
        seen = instance["seen"]
        assert seen["split"]
        assert seen["transfer_ns"] == instance["transfer_ns"]
        assert seen["last_rank"] == instance["last_rank"]
        waits = {str(member["rank"]): member["wait_ns"] for member in instance["members"]}
        assert seen["wait_ns"] == waits


def test_kernels_of_a_stream_do_not_overlap(job):
    for device in job.truth["devices"]:
        events = of_category(events_of(job, device["rank"]), "kernel", "gpu_memcpy")
        spans = sorted((event["tid"], event["start"], event["end"]) for event in events)
        for one, other in pairwise(spans):
            assert one[0] != other[0] or one[2] <= other[1]


def test_what_is_lost_is_not_split():
    seen = [entry["seen"] for entry in made("missing_member", 8, 1).truth["instances"]]
    assert {bool(entry and entry["split"]) for entry in seen} == {True, False}
    total: Counter[str] = Counter()
    for device in made("missing_member", 8, 1).truth["devices"]:
        total.update({name: device["window"][name] for name in EXPOSED})
    assert min(total.values()) > 0  # there is some of every kind


def test_windows_begin_some_collectives_apart():
    truth = made("window_lag", 4, 1).truth
    lost = Counter(
        member["rank"]
        for instance in truth["instances"]
        for member in instance["members"]
        if not member["recorded"]
    )
    assert len(set(lost.values())) > 1 or len(lost) < 4
    assert max(lost.values()) == 2


def test_less_their_offsets_all_members_end_at_once(job):
    clock = job.truth["clock"]
    for instance in job.truth["instances"]:
        ends = [
            member["end_ns"] - clock["offsets_ns"][str(member["rank"])]
            for member in instance["members"]
            if member["recorded"]
        ]
        if clock["exact"]:
            assert len(set(ends)) <= 1
        else:  # at most so much in half a minute, of clocks that drift by 20 ppm either way
            assert max(ends) - min(ends) < 40e-6 * 30e9


def test_seconds_apart_and_from_different_quarters():
    job = made("clock_offset", 4, 1)
    offsets = job.truth["clock"]["offsets_ns"]
    assert offsets["0"] == 0
    assert max(map(abs, offsets.values())) > 10**8
    bases = {json.loads(data)["baseTimeNanoseconds"] for data in job.files.values()}
    assert len(bases) == 2


def test_clocks_that_drift_show_it_in_durations():
    truth = made("clock_drift", 4, 1).truth
    assert len(set(truth["clock"]["drift_ppm"].values())) == 4
    window = truth["devices"][0]["window"]
    assert window["span_ns"] > 10 * 10**9


# -- what would have been


def test_changes_help(job):
    what_if = job.truth["what_if"]
    assert what_if["network_free"] <= what_if["network_2x"] <= what_if["as_run"]
    assert (what_if["straggler_median"] is None) == (job.truth["straggler"] is None)
    if job.truth["straggler"]:
        assert what_if["straggler_median"] < 0.9 * what_if["as_run"]
    # with contention, more comm at once costs more; on CPUs there are no launches
    if job.truth["scenario"] not in ("contention", "gloo_cpu"):
        assert what_if["launch_gaps_gone"] <= what_if["as_run"]


@pytest.mark.parametrize("name", WHOLE)
def test_the_job_as_run_is_that_of_the_files(name):
    truth = made(name, 4, 1).truth
    assert truth["what_if"]["as_run"] == pytest.approx(truth["scaling_loss"]["step_ns"], 1e-12)


def test_stragglers_make_the_others_wait():
    for cause in ("compute", "host"):
        truth = made(f"straggler_{cause}", 8, 1).truth
        last = Counter(entry["last_rank"] for entry in truth["instances"])
        assert last.most_common(1)[0][0] == truth["straggler"]["rank"]
    truth = made("straggler_link", 8, 1).truth
    paces = [
        (
            truth["straggler"]["rank"] in entry["group_ranks"],
            entry["transfer_ns"] / entry["message_bytes"],
        )
        for entry in truth["instances"]
        if entry["collective"] == "allreduce"
    ]
    slow = min(pace for is_slow, pace in paces if is_slow)
    assert slow > 4 * max(pace for is_slow, pace in paces if not is_slow)


def test_contention_is_what_was_put_in():
    """Of every nanosecond under comm, a kernel at four fifths of its speed loses a fifth."""
    for device in made("contention", 4, 1).truth["devices"]:
        found, kernels = device["contention"], device["kernels"]["count"]
        lost = device["window"]["overlap_ns"] / 5
        assert found["contention_ns"] == pytest.approx(lost, abs=kernels)
        assert found["unknown_ns"] == 0
        assert sum(s["contention_ns"] for s in device["steps"]) == found["contention_ns"]
    clean = made("ddp", 4, 1).truth["devices"][0]["contention"]
    assert abs(clean["contention_ns"]) < 0.01 * clean["overlapped_ns"]  # the jitter


# -- the files


def test_files_are_laid_out_as_by_libkineto(job):
    for data in job.files.values():
        document = json.loads(data)
        head = (
            b' {\n    "schemaVersion": 1,'
            if data[:1] == b" "
            else b'\n{\n  "schemaVersion": 1,'
        )
        assert data.startswith(head)
        assert data.count(b"\n  },\n  {\n") == len(document["traceEvents"]) - 1
        last = document["traceEvents"][-1]
        assert (last["name"], last["pid"]) == ("Record Window End", "")


def test_every_device_event_has_its_launch_but_those_launched_before(job):
    for rank in job.truth["ranks"]:
        events = events_of(job, rank)
        launches = {e["args"]["correlation"]: e for e in of_category(events, "cuda_runtime")}
        unlinked = 0
        for kernel in of_category(events, "kernel", "gpu_memcpy"):
            launch = launches.get(kernel["args"]["correlation"])
            unlinked += launch is None
            if launch is not None:
                assert launch["start"] < kernel["start"]
        assert unlinked == 0 or job.truth["scenario"] == "window_lag"


def test_ages_say_less_the_older_they_are():
    keys = {}
    for age in ("2026", "2024", "2022"):
        job = simulate("missing_metadata", ranks=4, seed=0, age=age)
        op = next(e for e in events_of(job, 1) if e["name"] == "record_param_comms")
        kernel = next(e for e in events_of(job, 1) if "ncclKernel" in e["name"])
        keys[age] = op["args"].keys(), kernel["args"].keys()
    for place in (0, 1):
        assert keys["2026"][place] - keys["2024"][place] == {"Seq", "Comms Id"}
        assert "Collective name" in keys["2024"][place]
        assert not {"Collective name", "Group size"} & keys["2022"][place]


def test_groups_of_one_name_are_told_apart_by_ranks_and_ids():
    job = made("tp_pp", 8, 1)
    calls = {
        (args["Process Group Name"], args["Process Group Ranks"], args["Seq"], args["Comms Id"])
        for rank in job.truth["ranks"]
        for args in (event["args"] for event in of_category(events_of(job, rank), "kernel"))
        if args.get("Collective name") == "allreduce"
    }
    groups = Counter(name for name, _ in {call[:2] for call in calls})
    assert groups == {"1": 4, "3": 4}
    ids = [call[3] for call in calls]
    assert len(set(ids)) == len(ids)
    assert max(ids) > 2**63  # they need all of 64 bits


def test_a_seed_decides_all():
    one, again = (simulate("tp_pp", ranks=4, seed=7) for _ in range(2))
    assert (one.files, one.truth) == (again.files, again.truth)
    assert simulate("tp_pp", ranks=4, seed=8).files != one.files


# -- the command


def test_command_writes_traces_and_truth(tmp_path, capsys):
    words = ["recompute", "--ranks", "4", "--seed", "1", "--gzip", "--out", str(tmp_path)]
    assert command.main(words) == 0
    assert "wrote 4 traces and truth.json" in capsys.readouterr().out
    names = [f"rank{rank}_trace.json.gz" for rank in range(4)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [*names, "truth.json"]
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert truth == made("recompute", 4, 1).truth
    read = oracle.unpack((tmp_path / names[2]).read_bytes())
    assert read == made("recompute", 4, 1).files["rank2_trace.json"]


def test_command_takes_a_size(tmp_path, capsys):
    words = ["ddp", "--ranks", "4", "--layers", "2", "--steps", "6", "--no-truth"]
    assert command.main([*words, "--out", str(tmp_path)]) == 0
    assert "wrote 4 traces to" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 4
    events = json.loads((tmp_path / "rank0_trace.json").read_text())["traceEvents"]
    names = Counter(event["name"] for event in events if event.get("cat") == "cpu_op")
    assert (names["aten::addmm"], names["aten::mm"]) == (2 * 6, 4 * 6)


def test_command_lists_scenarios(capsys):
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*SCENARIOS, command.MESH]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ddp"], "a scenario and --out are needed, or --list"),
        (["ddp", "--age", "2022", "--out", "x"], "2022 wrote whole microseconds"),
        (["none", "--out", "x"], "invalid choice"),
    ],
)
def test_command_says_what_it_needs(words, says, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
