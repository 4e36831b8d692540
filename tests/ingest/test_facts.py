from __future__ import annotations

import json

import pytest

from traceparse.ingest.facts import read_facts

WHOLE = {
    "facts_version": 1,
    "rank": 0,
    "world_size": 8,
    "backend": "nccl",
    "steps": [10, 12],
    "step_on": "optimizer",
    "traceparse_version": "0.1.0",
    "python_version": "3.12.3",
    "torch_version": "2.13.0+cpu",
    "cuda_version": "13.0",
    "hip_version": "6.4",
    "nccl_version": "2.27.3",
    "driver_version": "580.65.06",
    "device_name": "NVIDIA H200",
    "num_sms": 132,
    "device_memory_bytes": 150_000_000_000,
    "sm_clock_hz": 1_980_000_000,
    "memory_clock_hz": 3_201_000_000,
    "power_limit_w": 700.0,
    "num_threads": 8,
    "num_params": 1_200_000,
    "num_trainable_params": 1_200_000,
    "num_embedding_params": 0,
    "param_dtypes": {"bfloat16": 1_100_000, "float32": 100_000},
    "autocast_dtype": "bfloat16",
    "checkpointing": True,
    "compiled": False,
    "tokens_per_step": 4_096,
    "samples_per_step": 8,
    "tokens_per_rank_step": 512,
    "samples_per_rank_step": 1,
    "params": 1_200_000,
    "model_flop_per_step": 10**18,
    "model_flop_per_rank_step": 10**17,
    "profiled_step_ns": 103_100_000,
    "unprofiled_step_ns": 100_000_000,
    "num_unprofiled_steps": 20,
    "capture_overhead_ratio": 0.031,
    "num_events": 12_345,
    "trace_bytes": 67_890,
}
GROUPS = [{"name": "0", "ranks": "0-7", "description": "default_pg"}]
MESHES = [{"names": ["dp", "tp"], "shape": [2, 4]}, {"names": None, "shape": [8]}]


def fact(key, value):
    return read_facts({key: value}).get(key)


def test_all_that_capture_writes_is_read():
    found = read_facts({**WHOLE, "groups": GROUPS, "meshes": MESHES, "learning_rate": 3})
    assert found == {**WHOLE, "groups": {"0": "0-7"}, "meshes": MESHES}
    assert read_facts(dict.fromkeys((*WHOLE, "groups", "meshes"))) == {}


def test_fractions_are_text_as_the_header_leaves_them():
    text = json.dumps(WHOLE)
    assert read_facts(json.loads(text, parse_float=str)) == WHOLE


@pytest.mark.parametrize("key", sorted(WHOLE))
@pytest.mark.parametrize(
    "odd",
    [[], {}, [[]], {"a": []}, object()],
    ids=["list", "dict", "lists", "lists in it", "object"],
)
def test_another_type_is_left_out(key, odd):
    assert fact(key, odd) is None


@pytest.mark.parametrize(
    ("key", "odd"),
    [
        *(("backend", odd) for odd in ("", "x" * 257, 5, True)),
        *(("rank", odd) for odd in (-1, 1 << 20, True)),
        *(("world_size", odd) for odd in (0, (1 << 20) + 1)),
        *(("compiled", odd) for odd in (0, 1, "true")),
        *(("power_limit_w", odd) for odd in (0, -1, 10**6, "NaN", True)),
        *(("capture_overhead_ratio", odd) for odd in (-1, -1.5, 10**6, "inf", "nan", "x")),
        *(("steps", odd) for odd in ([1], [2, 1], [-1, 1], [1, 2, 3], ["a", 1], "12")),
        *(("param_dtypes", odd) for odd in ({"a": 0}, {"a": 1, "b": "x"}, {"": 1})),
        ("param_dtypes", {str(n): 1 for n in range(65)}),
        *(("num_sms", odd) for odd in (0, 1.5, 10**30)),
        *(("model_flop_per_rank_step", odd) for odd in (-1, 10**30)),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_is_left_out(key, odd):
    assert fact(key, odd) is None


def test_overhead_may_be_below_nothing_and_work_nothing():
    assert fact("capture_overhead_ratio", "-0.012") == -0.012
    assert fact("capture_overhead_ratio", 0) == 0.0
    assert fact("model_flop_per_rank_step", 0) == 0
    assert fact("power_limit_w", 450) == 450.0


@pytest.mark.parametrize(
    "odd",
    [
        *(None, {}, {"shape": []}, {"shape": [0]}, {"shape": [1] * 17}, {"shape": "8"}),
        *({"shape": [8], "names": []}, {"shape": [8], "names": ["a", "b"]}),
        *({"shape": [8], "names": [3]}, {"shape": [8], "names": "dp"}),
    ],
    ids=str,
)
def test_meshes_that_say_nothing_are_left_out(odd):
    meshes = [odd, MESHES[0]]
    if odd != {"shape": [8], "names": []}:
        assert fact("meshes", meshes) == [MESHES[0]]
        assert fact("meshes", [odd]) is None
    assert len(fact("meshes", MESHES * 99)) == 64


@pytest.mark.parametrize(
    "ranks", [None, [0, 1], "", "1-0", "0,0", "0-", "0,1", " 0-7", "0-1048576", "x" * 99_999]
)
def test_groups_whose_ranks_are_odd_are_left_out(ranks):
    groups = [{"name": "a", "ranks": ranks}, {"name": "b", "ranks": "0,2-3"}, None]
    assert fact("groups", groups) == {"b": "0,2-3"}


def test_few_letters_cannot_claim_members_without_end():
    groups = [{"name": str(n), "ranks": "0-1048575"} for n in range(4096)]
    assert set(fact("groups", groups)) == {str(n) for n in range(8)}


def test_texts_that_have_no_utf8_get_one():
    assert fact("device_name", "x\ud800") == "x?"
