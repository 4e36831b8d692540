from __future__ import annotations

from pathlib import Path

import pytest

from traceparse.ingest.header import read_header, who

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


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34),
        ("rank0_trace.json.gz", 0),
        ("trace_8_rank_1.json", 1),
        ("worker7_step_12.1694128201553.pt.trace.json.gz", 7),
        ("Rank12.json", 12),
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
    assert (header.backend, header.device_names) == ("x?", ("y?",))
