from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from traceparse.rank import collective_names
from traceparse.rank.collective_names import (
    NO_COLLECTIVE,
    collective_named,
    collectives,
    dtype_named,
    dtype_of_input,
    dtypes,
    of_kernel_names,
)

IN, OUT = ("in", "out"), ("out", "in_times_n")
# name, another name, size, factor, whether ends coincide; all that there are
KNOWN = [
    ("allreduce", "all_reduce", IN, "2(n-1)/n", True),
    ("allreduce_coalesced", "all_reduce_coalesced", IN, "2(n-1)/n", True),
    ("allreduce_sparse", "sparse_all_reduce", IN, "none", True),
    ("all_gather", "allgather", OUT, "(n-1)/n", True),
    ("_allgather_base", "_all_gather_base", OUT, "(n-1)/n", True),
    ("allgather_into_tensor_coalesced", "allgather_coalesced", OUT, "(n-1)/n", True),
    ("reduce_scatter", "reducescatter", ("in", "out_times_n"), "(n-1)/n", True),
    ("_reduce_scatter_base", "reduce_scatter_tensor", ("in", "out_times_n"), "(n-1)/n", True),
    (
        "reduce_scatter_tensor_coalesced",
        "reduce_scatter_coalesced",
        ("in", "out_times_n"),
        "(n-1)/n",
        True,
    ),
    ("all_to_allv", "alltoallv", ("in",), "(n-1)/n", True),
    ("all_to_all", "alltoall_base", ("in",), "(n-1)/n", True),
    ("broadcast", "bcast", IN, "1", False),
    ("_broadcast_oop", "broadcast_oop", IN, "1", False),
    ("reduce", "REDUCE", IN, "1", False),
    ("_reduce_oop", "reduce_oop", IN, "1", False),
    ("gather", " Gather", OUT, "(n-1)/n", False),
    ("scatter", "scatter ", ("in", "out_times_n"), "(n-1)/n", False),
    ("send", "send 0->1", IN, "1", False),
    ("recv", "recv 0<-1", ("out", "in"), "1", False),
    ("barrier", "monitored_barrier", (), "none", True),
]


@pytest.mark.parametrize(("name", "other", "size", "busbw", "ends_coincide"), KNOWN)
def test_what_is_known_of_each(name, other, size, busbw, ends_coincide):
    found = collective_named(other)
    assert found is not None
    assert found is collective_named(name)
    assert (found.name, found.size, found.busbw) == (name, size, busbw)
    assert found.ends_coincide is ends_coincide
    assert len(found.source) > 20


def test_the_table_above_is_complete_and_no_name_is_two():
    assert [one.name for one in collectives()] == [row[0] for row in KNOWN]
    names = [name for one in collectives() for name in (one.name, *one.aliases)]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() for name in names)


@pytest.mark.parametrize("text", ["", " ", "coalesced", "wait", "x" * 9999, "allreduce2"])
def test_names_of_no_collective(text):
    assert collective_named(text) is None


NAMES = {
    "allreduce": [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
        "ncclSymDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(...)",
        "void multimem_one_shot_all_reduce_kernel<float, 4>",
        "two_shot_all_reduce_kernel_inplace",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(...)",
        "quickreduce::allreduce_prototype_twoshot<...>",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<>",
        "void tensorrt_llm::twoShotAllReduceKernel<__half, 8>",
        "oneccl_allreduce_pcie",
        "mscclpp::allreduce7<float>",
    ],
    "all_gather": [
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllGather_LLMC",
        "multimem_all_gather_kernel<16>",
        "oneccl_allgatherv",
    ],
    "reduce_scatter": [
        "ncclKernel_ReduceScatter_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(...)",
        "ncclReduceScatterRingLLKernel_sum_f32(ncclColl)",
    ],
    "broadcast": [
        "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)",
        "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    ],
    "reduce": [
        "ncclKernel_Reduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_Reduce_Sum_f32_RING_LL(...)",
        "ncclReduceRingLLKernel_sum_f32(ncclColl)",
    ],
    "all_to_all": ["ncclDevKernel_AlltoAll_LSA", "mscclKernel_AllToAll_LL"],
    "all_to_allv": ["oneccl_alltoallv_kernel"],
    "barrier": ["nvshmemi_barrier_on_stream_kernel", "void c10d::symm_mem::barrier_kernel()"],
    None: [
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic(ncclDevComm*, channelMasks, ncclWork*)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "void rcclGenericKernel<1>(...)",
        "mscclKernel_Sum_float_Simple_Ring(...)",
        "void deep_ep::intranode::dispatch<8, 768>(int4*)",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "sgemm",
        "",
    ],
}


@pytest.mark.parametrize("wanted", NAMES)
def test_kernels_without_metadata_are_told_by_name(wanted):
    places = of_kernel_names(pa.array(NAMES[wanted], pa.string())).tolist()
    found = {None if at == NO_COLLECTIVE else collectives()[at].name for at in places}
    assert found == {wanted}


def test_every_type_has_its_bytes():
    sizes = {one.name: one.bytes for one in dtypes()}
    assert len(sizes) == len(dtypes())
    assert {sizes[name] for name in ("Float", "Int", "ComplexHalf", "UInt32")} == {4}
    assert {sizes[name] for name in ("Half", "BFloat16", "Short")} == {2}
    assert {sizes[name] for name in ("Byte", "Char", "Bool", "Float8_e5m2")} == {1}
    for name, one in sizes.items():
        found = dtype_named(name)
        assert found is not None
        assert found.bytes == one
        assert [dtype_of_input(text) for text in found.inputs] == [found] * len(found.inputs)
    assert dtype_named("float") is dtype_of_input("Float") is dtype_named("") is None


@pytest.mark.parametrize(
    "change",
    [
        {"size": ["sideways"]},
        {"busbw": "n"},
        {"name": ""},
        {"source": ""},
        {"colour": "red"},
        {"ends_coincide": "often"},
    ],
)
def test_entries_are_validated(change):
    entry = msgspec.to_builtins(collectives()[0]) | change
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(entry, collective_names.Collective)
