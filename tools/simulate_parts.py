"""The parts that training programs are written with: operators, collectives, messages, copies.

Names, arguments and nesting are those of PyTorch; what things cost is near to an H100's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

from tools.simulate_costs import Ledger
from tools.simulate_program import (
    COMPUTE_STREAM,
    POINT_TO_POINT,
    Call,
    Group,
    Launch,
    Pause,
    Program,
    Record,
    Span,
    Sync,
    Thread,
    Wait,
    Work,
)

__all__ = ["Writer", "product_args"]

_GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN"
_POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}>(int)"
_SCALAR: list[int] = []
_BF16 = "c10::BFloat16"
_NAMES = {
    "allreduce": ("c10d::allreduce_", "nccl:all_reduce", "AllReduce_Sum_bf16_RING_LL"),
    "_allgather_base": ("c10d::_allgather_base_", "nccl:_all_gather_base", "AllGather_RING_LL"),
    "_reduce_scatter_base": (
        "c10d::_reduce_scatter_base_",
        "nccl:_reduce_scatter_base",
        "ReduceScatter_Sum_bf16_RING_LL",
    ),
    "all_to_all": ("c10d::alltoall_base_", "nccl:all_to_all", "SendRecv"),
}
_OLD_NAMES = {
    "allreduce": "AllReduce_RING_LL_Sum_bfloat",
    "_allgather_base": "AllGather_RING_LL_Sum_int8_t",
    "_reduce_scatter_base": "ReduceScatter_RING_LL_Sum_bfloat",
    "all_to_all": "SendRecv_RING_SIMPLE_Sum_int8_t",
    POINT_TO_POINT: "SendRecv_RING_SIMPLE_Sum_int8_t",
}


class Writer(Program):
    """A program with words for what training does."""

    def __init__(self, rank: int, ledger: Ledger, *, old_names: bool = False) -> None:
        super().__init__(rank)
        self.ledger, self.costs, self.old_names = ledger, ledger.costs, old_names
        self.thread: Thread = "main"

    def pause(self, duration_ns: int) -> None:
        """Let the host do something else."""
        self.add(Pause(self.costs.host(duration_ns)))

    @contextmanager
    def span(
        self,
        name: str,
        category: str = "cpu_op",
        args: Mapping[str, Any] | None = None,
        *,
        step: int | None = None,
        flop: int = 0,
        is_recompute: bool = False,
        call: Call | None = None,
        seq: int = 0,
    ) -> Iterator[None]:
        """Let what follows be inside an operator or annotation, a little after its start."""
        span = Span(
            name,
            category,
            self.thread,
            args or {},
            step=step,
            flop=flop,
            is_recompute=is_recompute,
            call=call,
            seq=seq,
        )
        with self.inside(span):
            self.pause(900)
            yield
            self.pause(700)

    @contextmanager
    def on_thread(self, thread: Thread) -> Iterator[None]:
        """Let what follows be done by another thread, while this one waits."""
        before, self.thread = self.thread, thread
        yield
        self.thread = before

    def launch(self, work: Work, name: str = "cudaLaunchKernel") -> None:
        """Put one thing on its stream."""
        self.add(Launch(name, self.costs.host(2_500), (work,)))

    def wait(self, stream: int, other: int) -> None:
        """Let a stream wait for what another one holds now."""
        duration_ns = self.costs.host(600)
        event = self._record(other, duration_ns)
        self.add(Wait(stream, event, duration_ns))

    def record(self, stream: int) -> int:
        """Record an event of what a stream holds now, and return its number."""
        return self._record(stream, self.costs.host(600))

    def wait_for(self, stream: int, event: int) -> None:
        """Let a stream wait for an event that was recorded before."""
        self.add(Wait(stream, event, self.costs.host(600)))

    def _record(self, stream: int, duration_ns: int) -> int:
        event = self.next_event()
        self.add(Record(stream, event, duration_ns))
        return event

    # -- operators

    def product(
        self,
        name: str,
        *dims: Sequence[int],
        sequence: int | None = None,
        is_recompute: bool = False,
    ) -> None:
        """Multiply matrices: ``aten::mm`` of two, ``aten::addmm`` of a bias and two."""
        flop, shapes = product_args(*dims)
        args = _forward(sequence) | shapes
        with self.span(name, args=args, flop=flop, is_recompute=is_recompute):
            self.launch(self.product_work(flop))

    def product_work(self, flop: int) -> Work:
        """Return the kernel of a matrix product."""
        return Work("compute", _GEMM, COMPUTE_STREAM, self.costs.product(flop))

    def stopped_product(self, *dims: Sequence[int], sequence: int) -> None:
        """Begin ``aten::addmm`` and stop before it works: early stop of a checkpoint."""
        _, args = product_args(*dims)
        with self.span("aten::addmm", args=_forward(sequence) | args):
            pass

    def pointwise(
        self, name: str, functor: str, dims: Sequence[int], sequence: int | None = None
    ) -> None:
        """Do something to every element of a tensor of bfloat16."""
        args: dict[str, Any] = {"Concrete Inputs": [""], "Input type": [_BF16]}
        args["Input Dims"] = [list(dims)]
        with self.span(name, args=_forward(sequence) | args):
            self.launch(self.pointwise_work(functor, dims))

    def pointwise_work(self, functor: str, dims: Sequence[int]) -> Work:
        """Return the kernel of something that is done to every element."""
        duration_ns = self.costs.stream_through(4 * prod(dims))
        return Work("compute", _POINTWISE.format(functor), COMPUTE_STREAM, duration_ns)

    @contextmanager
    def backward_of(self, name: str, sequence: int) -> Iterator[None]:
        """Let what follows be done by autograd's engine for one forward operator."""
        with self.backward_by(f"{name}Backward0", sequence):
            yield

    @contextmanager
    def backward_by(self, node: str, sequence: int) -> Iterator[None]:
        """Let what follows be done by a node of autograd's graph."""
        args = {"Sequence number": sequence, "Fwd thread id": 1}
        shape = {"Input Dims": [_SCALAR], "Input type": [_BF16]}
        with (
            self.span(f"autograd::engine::evaluate_function: {node}", args=args),
            self.span(node, args=args | shape),
        ):
            yield

    def copy(self, name: str, num_bytes: int) -> None:
        """Copy between host and device, on the compute stream."""
        with self.span("aten::copy_", args={"Input Dims": [[num_bytes // 2]]}):
            duration_ns = self.costs.stream_through(num_bytes * 50)
            work = Work("copy", name, COMPUTE_STREAM, duration_ns, num_bytes=num_bytes)
            self.launch(work, "cudaMemcpyAsync")

    def item(self) -> None:
        """Bring a number to the host, which waits for it."""
        with (
            self.span("aten::item", args={"Input Dims": [[]]}),
            self.span("aten::_local_scalar_dense", args={"Input Dims": [[]]}),
        ):
            work = Work(
                "copy",
                "Memcpy DtoH (Device -> Pageable)",
                COMPUTE_STREAM,
                self.costs.stream_through(0),
                num_bytes=4,
            )
            self.launch(work, "cudaMemcpyAsync")
            self.add(Sync(COMPUTE_STREAM, self.costs.host(1_500)))

    # -- communication

    def comm_work(self, call: Call, stream: int) -> Work:
        """Return the kernel of a call."""
        if self.old_names:
            kernel = f"ncclKernel_{_OLD_NAMES[call.collective]}"
            return Work(
                "comm", f"{kernel}(ncclDevComm*, unsigned long, ncclWork*)", stream, call=call
            )
        part = "SendRecv" if call.is_message else _NAMES[call.collective][2]
        kernel = f"ncclDevKernel_{part}(ncclDevKernelArgsStorage<4096ul>)"
        return Work("comm", kernel, stream, call=call)

    def collective(self, group: Group, kind: str, shard: int, stream: int) -> None:
        """Call a collective; it waits for all computing so far, but nothing waits for it."""
        call, seq = self.ledger.collective(self.rank, group, kind, shard)
        outer, inner, _ = _NAMES[kind]
        self._call(call, seq, stream, outer, inner)

    def message(self, group: Group, pair: tuple[int, int], nelems: int, stream: int) -> None:
        """Send to, or receive from, the other one of a pair (source, destination)."""
        call, seq = self.ledger.message(self.rank, group, pair, nelems)
        source, destination = (group.ranks.index(rank) for rank in pair)
        if self.rank == pair[0]:
            self._call(call, seq, stream, "c10d::send", f"nccl:send {source}->{destination}")
        else:
            self._call(call, seq, stream, "c10d::recv_", f"nccl:recv {destination}<-{source}")

    def _call(self, call: Call, seq: int, stream: int, outer: str, inner: str) -> None:
        shape = {"Input Dims": [[call.in_nelems]], "Input type": [_BF16]}
        with (
            self.span(outer, args=shape),
            self.span("record_param_comms", call=call, seq=seq),
            self.span(inner, "user_annotation", args=shape),
        ):
            self.wait(stream, COMPUTE_STREAM)
            self.launch(self.comm_work(call, stream), "cudaLaunchKernelExC")


def _forward(sequence: int | None) -> dict[str, Any]:
    """Return what marks an operator that autograd will have to undo."""
    return {} if sequence is None else {"Sequence number": sequence, "Fwd thread id": 0}


def product_args(*dims: Sequence[int], dtype: str = _BF16) -> tuple[int, dict[str, Any]]:
    """Return the work of a product, 2MNK, and how its inputs are recorded."""
    (rows, inner), (again, columns) = dims[-2:]
    assert inner == again
    is_addmm = len(dims) == 3
    tail = ["Scalar"] * 2 if is_addmm else []
    args = {
        "Concrete Inputs": ["", "", "", "1", "1"] if is_addmm else ["", ""],
        "Input type": [dtype] * len(dims) + tail,
        "Input Strides": [[1] if len(d) == 1 else [d[1], 1] for d in dims]
        + [_SCALAR] * len(tail),
        "Input Dims": [list(d) for d in dims] + [_SCALAR] * len(tail),
    }
    return 2 * rows * inner * columns, args
