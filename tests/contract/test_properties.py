"""Random small traces: the analyzer is the oracle, whatever the order, layout or origin."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle
from tests.contract.places import HAND
from tests.contract.seen import partition_errors, seen
from tools.layouts import CONTAINERS, LAYOUTS, Num, write_layout
from traceparse.engine import analyze
from traceparse.errors import TraceparseError

GPU_LAYOUTS = [name for name in LAYOUTS if name not in ("leg", "list")]
GEMM, NCCL = "sm90_xmma_gemm_bf16", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
CHECK = settings(max_examples=60)

# few instants and few ids, so that edges meet and launches share an id
instants = st.integers(1, 60)
lengths = st.integers(0, 25)
correlations = st.sampled_from([None, 0, 1, 2, 3, 2**64 - 1, 2**64 - 2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("random")


def spelled(nanoseconds):
    return Num(f"{nanoseconds // 1000}.{nanoseconds % 1000:03}")


def written(folder, events, header=None, layout="k-old", trailing=()):
    """Write events whose times are integers of nanoseconds; None leaves a time out."""
    texts = [
        {
            key: spelled(value) if key in ("ts", "dur") and value >= 0 else value
            for key, value in event.items()
            if value is not None
        }
        for event in events
    ]
    path = Path(folder) / "trace.json"
    header = {"schemaVersion": 1} if header is None else header
    path.write_bytes(write_layout(texts, header, layout, trailing=trailing))
    return path


def by_oracle(path):
    return oracle.analyze(*oracle.load(path.read_bytes()))


def span(category, name, start, dur, **args):
    where = {"pid": 7, "tid": 7, "ts": start, "dur": dur}
    return {"ph": "X", "cat": category, "name": name, **where, "args": args}


@st.composite
def device_events(draw):
    category, name = draw(
        st.sampled_from(
            [
                *[("kernel", GEMM)] * 3,
                *[("kernel", NCCL)] * 2,
                ("Kernel", "any_name"),
                ("gpu_memcpy", "Memcpy HtoD"),
                ("gpu_memset", "Memset (Device)"),
                ("gpu_user_annotation", "nccl:all_reduce"),
                ("cuda_sync", "Stream Sync"),
                ("overhead", "Activity Buffer Request"),
            ]
        )
    )
    args = {"device": draw(st.integers(0, 1)), "correlation": draw(correlations)}
    if draw(st.booleans()) and name == "any_name":
        args["Collective name"] = "allreduce"
    args = {key: value for key, value in args.items() if value is not None}
    return span(category, name, draw(instants), draw(lengths), **args)


@st.composite
def launches(draw):
    category = draw(st.sampled_from(["cuda_runtime", "cuda_driver", "Runtime"]))
    correlation = draw(correlations.filter(lambda value: value is not None))
    return span(category, "cudaLaunchKernel", draw(instants), 2, correlation=correlation)


@st.composite
def host_steps(draw):
    cuts = sorted(draw(st.sets(instants, max_size=6)))
    first = draw(st.integers(0, 1000))
    marks = pairwise(cuts)
    return [
        span("user_annotation", f"ProfilerStep#{first + index}", start, end - start)
        for index, (start, end) in enumerate(marks)
        if draw(st.integers(0, 4))
    ]


@st.composite
def bad_times(draw):
    event = dict(draw(device_events()))
    event["cat"] = "kernel"
    wrong = draw(st.sampled_from([("ts", None), ("dur", None), ("ts", 0), ("dur", -3)]))
    return event | dict([wrong])


@st.composite
def gpu_traces(draw):
    return [
        *draw(st.lists(device_events(), min_size=1, max_size=10)),
        span("kernel", GEMM, draw(instants), 5, device=0, correlation=1),
        *draw(st.lists(launches(), max_size=7)),
        *draw(host_steps()),
        *draw(st.lists(bad_times(), max_size=2)),
    ]


@st.composite
def host_events(draw):
    category, name = draw(
        st.sampled_from(
            [
                *[("cpu_op", "aten::mm")] * 3,
                ("Operator", "aten::add"),
                *[("user_annotation", "gloo:all_reduce")] * 2,
                ("cpu_op", "gloo:broadcast"),
                ("cpu_op", "mpi:send"),
                *[("cpu_op", "c10d::allreduce_")] * 2,
                *[("cpu_op", "record_param_comms")] * 2,
                ("user_annotation", "forward"),
                ("python_function", "train.py(3): step"),
            ]
        )
    )
    return span(category, name, draw(instants), draw(lengths))


@st.composite
def cpu_traces(draw):
    work = span("cpu_op", "aten::mm", draw(instants), 5)
    return [*draw(st.lists(host_events(), max_size=12)), work, *draw(host_steps())]


traces = st.one_of(gpu_traces(), cpu_traces())


@settings(max_examples=250)
@given(events=traces, layout=st.sampled_from(GPU_LAYOUTS))
def test_analyzer_is_the_oracle(folder, events, layout):
    path = written(folder, events, layout=layout)
    found = seen(path)
    assert found == by_oracle(path)
    assert partition_errors(found) == []


@CHECK
@given(events=traces, moved_by=st.integers(0, 10**13), base=st.integers(1, 10**18))
def test_moving_the_origin_moves_start_and_end_only(folder, events, moved_by, base):
    before = seen(written(folder, events))
    moved = [
        event | ({"ts": event["ts"] + moved_by} if event["ts"] else {}) for event in events
    ]
    assert shifted(before, moved_by) == seen(written(folder, moved))
    header = {"schemaVersion": 1, "baseTimeNanoseconds": base}
    after = {"baseTimeNanoseconds"}
    assert shifted(before, base) == seen(written(folder, events, header))
    assert shifted(before, base) == seen(written(folder, events, header, trailing=after))


def shifted(found, by_ns):
    if isinstance(found, dict):
        return {
            key: value + by_ns if key in ("start_ns", "end_ns") else shifted(value, by_ns)
            for key, value in found.items()
        }
    if isinstance(found, list):
        return [shifted(item, by_ns) for item in found]
    return found


@CHECK
@given(events=traces, shuffled=st.data())
def test_the_order_of_events_means_nothing(folder, events, shuffled):
    before = seen(written(folder, events))
    assert seen(written(folder, shuffled.draw(st.permutations(events)))) == before


@settings(max_examples=15)
@given(events=traces, container=st.sampled_from(sorted(CONTAINERS)))
def test_layout_and_compression_mean_nothing(folder, events, container):
    header = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "distributedInfo": {"backend": "nccl", "rank": 2, "world_size": 4},
        "baseTimeNanoseconds": 1_767_189_312_000_000_000,
        "traceName": "trace.json",
    }
    reports = []
    for layout in GPU_LAYOUTS:
        path = written(folder, events, header, layout)
        path.write_bytes(CONTAINERS[container](path.read_bytes()))
        reports.append(seen(path))
    assert all(report == reports[0] for report in reports)
    assert reports[0]["rank"] == 2
    plain = written(folder, events, {}, "list")
    assert shifted(seen(plain), 1_767_189_312_000_000_000)["devices"] == reports[0]["devices"]


@st.composite
def decimals(draw, signs=("", "+", "-")):
    whole = str(draw(st.integers(1, 10 ** draw(st.integers(1, 9)))))
    halves = st.sampled_from(
        ["0015", "0025", "001" + "4" + "9" * 34, "002" + "5" + "0" * 34 + "1"]
    )
    part = draw(st.one_of(st.text("0123456789", max_size=35), halves))
    text = whole + (f".{part}" if part else "")
    if draw(st.booleans()):
        power = draw(st.integers(0, 5))
        text += f"{draw(st.sampled_from('eE'))}{draw(st.sampled_from(signs))}{power}"
    return text


# an instant that rounds to 0 ns would be none, so starts are not made small
times = st.tuples(decimals(signs=("", "+")), decimals())


@settings(max_examples=150)
@given(numbers=st.lists(times, min_size=1, max_size=6))
def test_every_spelling_of_a_number_is_exact(folder, numbers):
    events = [
        {**span("kernel", GEMM, 1, 1, device=0), "ts": Num(ts), "dur": Num(dur)}
        for ts, dur in [*numbers, ("7.0005", "3")]
    ]
    path = folder / "numbers.json"
    path.write_bytes(write_layout(events, {}, "mon"))
    assert seen(path) == by_oracle(path)


def survives(path):
    try:
        return analyze(path, jobs=1)
    except TraceparseError as error:
        text = str(error)
        assert "\n" not in text, text
        assert path.name in text
        return None


@settings(max_examples=150)
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=100).map(lambda data: b'{"traceEvents": [' + data),
        st.binary(max_size=50).map(lambda data: b"\x1f\x8b\x08\x00" + data),
        st.binary(max_size=50).map(lambda data: b"\x28\xb5\x2f\xfd" + data),
    )
)
def test_any_bytes_give_a_report_or_one_line(folder, content):
    path = folder / "bytes.json"
    path.write_bytes(content)
    survives(path)


DAMAGED = [
    HAND / "two-devices" / name
    for name in ("k-old.json", "k-new.json", "py.json", "jd4.json", "c1.json", "k-old.json.gz")
]


@settings(max_examples=150)
@given(trace=st.sampled_from(DAMAGED), data=st.data())
def test_damage_gives_a_report_or_one_line(folder, trace, data):
    content = bytearray(trace.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    path = folder / "damaged.json"
    path.write_bytes(content)
    report = survives(path)
    if report is not None:
        devices = [
            {
                "window": found["window"],
                "steps": [
                    {"times": None if cut["span_ns"] is None else cut} for cut in found["steps"]
                ],
            }
            for found in report.to_dict()["devices"]
        ]
        assert partition_errors({"devices": devices}) == []


@settings(max_examples=100)
@given(trace=st.sampled_from(DAMAGED), data=st.data())
def test_a_prefix_is_read_as_far_as_it_goes(folder, trace, data):
    content = trace.read_bytes()
    whole = analyze(trace, jobs=1)
    length = data.draw(st.integers(0, len(content.rstrip(b"\n }")) - 1))
    path = folder / "prefix.json"
    path.write_bytes(content[:length])
    report = survives(path)
    if report is not None:
        (file,) = report.files
        assert file.truncated
        assert file.events <= whole.files[0].events
        assert [note.code for note in report.notes if note.code == "truncated"] == ["truncated"]
