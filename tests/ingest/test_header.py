from __future__ import annotations

from pathlib import Path

import pytest

from traceparse.ingest.header import read_header, who
from traceparse.work.device import read_device

NOTHING = read_header({})


def test_facts_of_a_whole_header():
    header = read_header(
        {
            "distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl"},
            "baseTimeNanoseconds": 1719853884000000000,
            "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}, {"id": 1}, "odd"],
        }
    )
    assert (header.rank, header.world_size, header.backend) == (3, 8, "nccl")
    assert header.base_ns == 1719853884000000000
    assert header.device_names == ("NVIDIA H100", "")


def test_numbers_may_be_text():
    header = read_header({"distributedInfo": {"rank": "3", "world_size": "8"}})
    assert (header.rank, header.world_size) == (3, 8)


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"distributedInfo": None, "deviceProperties": {}},
        {"distributedInfo": {"rank": -1, "world_size": 0, "backend": ""}},
        {"distributedInfo": {"rank": 2**40, "world_size": 2**40, "backend": 5}},
        {"baseTimeNanoseconds": 2**63},
    ],
)
def test_what_is_missing_or_past_belief_is_unknown(found):
    header = read_header(found)
    assert (header.rank, header.world_size, header.backend, header.base_ns) == (None,) * 4
    assert header.device_names == ()


def test_devices_say_what_is_made_something_of():
    whole = {
        "id": 0,
        "name": "NVIDIA H100",
        "totalGlobalMem": 85_000_000_000,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerMultiprocessor": 2048,
        "warpSize": 32,
        "numSms": 132,
    }
    header = read_header(
        {"deviceProperties": [{**whole, "maxThreadsPerBlock": 1024}, {"id": "17"}, 5, {}]}
    )
    assert header.devices == (whole, {"id": "17"}, {})
    assert set(read_by_work()) | {"id"} == set(whole)


def read_by_work() -> set[str]:
    """Return the keys that what is to be made of a device depends on."""
    asked = set()

    class Properties(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            asked.add(key)
            return default

        def __contains__(self, key: object) -> bool:
            asked.add(str(key))
            return False

    read_device(Properties())
    return asked


@pytest.mark.parametrize(
    "odd", [2**63, -(2**63), True, None, 1.5, [1], {"a": 1}, "x" * 201], ids=str
)
def test_properties_past_belief_are_left_out(odd):
    header = read_header({"deviceProperties": [{"name": odd, "numSms": odd, "id": 3}]})
    assert header.devices == ({"id": 3},)


def test_devices_have_an_end():
    properties = [{"id": n, "name": "x" * 200} for n in range(1000)]
    header = read_header({"deviceProperties": properties})
    assert header.devices == tuple(properties[:64])
    assert len(header.device_names) == 1000


def test_facts_are_what_profile_was_told():
    told = {"model_flop_per_step": 10**18, "params": 7, "tokens_per_step": 1, "num_threads": 8}
    header = read_header({"traceparse": {**told, "learning_rate": 3}})
    assert header.facts == told
    assert read_header({}).facts == {}


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        *((1, 1), (10**30 - 1, 10**30 - 1), (3.0, 3)),
        *(("1e15", 10**15), ("2.50e1", 25), ("0.5e1", 5)),  # the header's reader leaves texts
    ],
    ids=str,
)
def test_a_fact_is_a_whole_number_above_0(value, fact):
    assert read_header({"traceparse": {"params": value}}).facts == {"params": fact}


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, 10**30, True, None, [1], 1.25, "1.5", "many", "", "NaN", "sNaN"),
        *(float("inf"), float("nan"), "1e999999999", "1e-999999999", "-1e999999999"),
        pytest.param(10**4000, id="4000 digits"),
    ],
    ids=str,
)
def test_what_is_none_is_left_out(value):
    assert read_header({"traceparse": {"params": value}}).facts == {}


@pytest.mark.parametrize("told", [None, [], "params", 5, {}], ids=str)
def test_what_is_no_object_tells_nothing(told):
    assert read_header({"traceparse": told}).facts == {}


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("rank0_trace.json.gz", 0),
        ("trace_8_rank_1.json", 1),
        ("worker7_step_12.1694128201553.pt.trace.json.gz", 7),
        ("Rank12.json", 12),
        ("dp0_pp0_tp1_dcp0_ep1_rank1.1719853884123456789.pt.trace.json.gz", 1),  # vLLM's
        ("rank7.1719853884123456789.pt.trace.json.gz", 7),
        ("profile_5.json", 5),  # Accelerate's
        ("profile_5_2.json", None),
        ("my_profile_5.json", None),
        # a host and a process, as torch's handler for TensorBoard names them
        ("gpu-worker-3_4321.1719853884123456789.pt.trace.json", None),
        ("worker3_4321.1719853884123456789.pt.trace.json.gz", None),
        ("frank3.json", None),
        ("host_851.1752215573993169006.pt.trace.json", None),
        ("rank123456789.json", None),
        ("trace.json", None),
    ],
)
def test_rank_in_a_file_name(name, rank):
    assert who(NOTHING, Path("rank99") / name, None)[0] == rank


def test_inside_comes_before_the_name_and_the_name_before_being_told():
    inside = read_header({"distributedInfo": {"rank": 3}})
    assert who(inside, Path("rank1.json"), 2) == (3, "distributedInfo")
    assert who(NOTHING, Path("rank1.json"), 2) == (1, "file name")
    assert who(NOTHING, Path("trace.json"), 2) == (2, "given")
    assert who(NOTHING, Path("trace.json"), None) == (None, None)


def test_texts_that_have_no_utf8_get_one():
    header = read_header(
        {"distributedInfo": {"backend": "x\ud800"}, "deviceProperties": [{"name": "y\ud801"}]}
    )
    assert header.devices == ({"name": "y?"},)
    assert (header.backend, header.device_names) == ("x?", ("y?",))


def groups_of(*told):
    found = [{"pg_name": name, "ranks": ranks} for name, ranks in told]
    return read_header({"distributedInfo": {"pg_config": found}}).groups


def test_groups_have_all_their_ranks():
    told = [
        ("0", list(range(10_000))),
        ("dp", [16, 0, 8]),
        ("on demand", "[0, 1]"),
        (7, [3]),  # a number, as nightlies of 2.3 had
    ]
    assert groups_of(*told) == {"0": "0-9999", "dp": "0,8,16", "on demand": "0-1", "7": "3"}


@pytest.mark.parametrize(
    "ranks",
    [
        *(None, [], "", "[]", "[0, 1, ..., 9]", "[0, 1, ...]", "[0 1]", "[0,,1]", "[-1]"),
        *([0, 0], [True], [1.0], ["1"], [-1], [1 << 20], 3, {"0": 1}, "[99999999]"),
    ],
)
def test_groups_whose_ranks_are_odd_are_left_out(ranks):
    assert groups_of(("a", ranks), ("b", [1])) == {"b": "1"}


def test_names_of_groups_that_say_nothing():
    told = [("", [1]), (None, [1]), (True, [1]), ("x" * 257, [1]), (1 << 64, [1])]
    assert groups_of(*told) == {}
    assert groups_of(("a", [1]), ("a", [1]), ("b", [2]), ("b", [3]), ("b", [2])) == {"a": "1"}
    odd: object
    for odd in (None, {}, "x", [None, [], "a", {}]):
        assert read_header({"distributedInfo": {"pg_config": odd}}).groups == {}


def test_groups_have_an_end():
    assert len(groups_of(*((str(n), [n]) for n in range(9999)))) == 4096
    wide = list(range(0, 200_000, 2))
    found = groups_of(*((str(n), wide) for n in range(9)), ("last", [1]))
    assert set(found) == {"0", "last"}
