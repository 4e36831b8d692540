from __future__ import annotations

import re

import pytest

from tests.traces import copy, kernel, write
from traceparse.ingest import read_trace, scan, store
from traceparse.ingest.source import Source
from traceparse.rank.classify import COMM, COMPUTE, COPY, KINDS, families, kinds_of


def _kinds(tmp_path, events) -> list[str]:
    trace = read_trace(write(tmp_path / "rank0.json", events))
    return [KINDS[kind] for kind in kinds_of(trace.tables["device_events"])]


@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("nccl", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"),
        ("nccl", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
        ("nccl", "ncclAllReduceRingLLKernel_sum_f32"),
        ("nccl", "ncclSymDevKernel_AllReduce_RSxLD_AGxST"),
        ("nccl", "ncclDevKernel_Generic_4(ncclDevComm*, channelMasks, ncclWork*)"),
        ("rccl", "void rcclGenericKernel<1>(ncclDevComm*)"),
        (
            "symmetric-memory",
            "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>",
        ),
        ("symmetric-memory", "two_shot_all_reduce_kernel_inplace<c10::BFloat16, 8>"),
        ("custom-all-reduce", "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>"),
        ("custom-all-reduce", "void aiter::cross_device_reduce_2stage_write_mode<half, 8>"),
        ("quick-reduce", "void quickreduce::allreduce_prototype_twoshot<half>"),
        ("fused-all-reduce", "allreduce_fusion_kernel_oneshot_lamport<bf16, 8>"),
        ("fused-all-reduce", "void oneShotAllReduceKernel<half>"),
        ("deep-ep", "void deep_ep::internode_ll::dispatch<true, 7168>"),
        ("nvshmem", "nvshmemi_transfer_quiet"),
        ("msccl", "mscclKernel_Sum_half_Simple"),
        ("msccl", "mscclpp::allgather5"),
        ("one-ccl", "oneccl_allreduce_small"),
        ("hccl", "hccl::all_reduce"),
        ("userbuffers", "userbuffers_fp16_sum_inplace_gpu_rr_rs"),
    ],
)
def test_every_family_of_collectives_is_told_by_name(tmp_path, family, name):
    (entry,) = [entry for entry in families() if entry.name == family]
    assert re.search(rf"(?<![a-z])(?:{entry.pattern})", name, re.IGNORECASE)
    assert _kinds(tmp_path, [kernel(1, 1, name)]) == ["comm"]


def test_every_family_is_tested_above():
    tested = {mark.args[1][i][0] for mark in _marks() for i in range(len(mark.args[1]))}
    assert tested == {entry.name for entry in families() if entry.kind == "comm"}


def _marks():
    return test_every_family_of_collectives_is_told_by_name.pytestmark


@pytest.mark.parametrize(
    "name",
    [
        "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn",
        "void at::native::reduce_kernel<512, 1>",
        "triton_poi_fused_inccl_add",  # a letter before: not the family
        "allreducefusion",
        "",
    ],
)
def test_other_kernels_compute(tmp_path, name):
    assert _kinds(tmp_path, [kernel(1, 1, name)]) == ["compute"]


def test_metadata_comes_before_the_name_and_copies_stay_copies(tmp_path):
    told = {"Collective name": "all_gather"}
    events = [kernel(1, 1, "opaque", **told), kernel(2, 1, "opaque"), copy(3, 1)]
    events[2]["args"].update(told)
    assert _kinds(tmp_path, events) == ["comm", "compute", "copy"]


def test_names_without_end_are_classified_in_time(tmp_path):
    far = "multimem_" * 20_000  # quadratic for a backtracking search
    assert _kinds(tmp_path, [kernel(1, 1, far), kernel(2, 1, far + "all_reduce")]) == [
        "compute",
        "comm",
    ]


def test_every_chunk_of_a_column_is_classified_by_its_own_dictionary(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACEPARSE_ENGINE", "msgspec")  # which hands on every block
    monkeypatch.setattr(store, "_MOST_TEXTS", 2)
    names = [f"{kind}{n}" for n in range(9) for kind in ("nccl", "gemm")]
    path = write(tmp_path / "rank0.json", [kernel(1, 1, name) for name in names])
    with Source(path) as source:
        (found,) = scan.scan(source, frozenset(), block=200)
    events = found.tables(0)["device_events"].table()
    assert events["name"].num_chunks > 3
    assert kinds_of(events).tolist() == [COMM, COMPUTE] * 9
    assert events["name"].to_pylist() == names


def test_kinds_are_indices():
    assert [KINDS[kind] for kind in (COMPUTE, COMM, COPY)] == ["compute", "comm", "copy"]


def test_every_family_has_a_source_and_a_pattern_that_compiles():
    for entry in families():
        re.compile(entry.pattern)
        assert len(entry.source) > 10
    assert len({entry.name for entry in families()}) == len(families())
