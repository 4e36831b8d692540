"""What libkineto says beside times: of kernels, of collectives, of the job and its devices."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from tools.layouts import Num
from tools.simulate_events import DeviceEvent
from tools.simulate_job import Age, Job
from tools.simulate_program import Call, Group
from tools.simulate_record import Recording

__all__ = ["comm_args", "comms_id", "header", "kernel_args", "process_id", "trace_id"]

_H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85029158912,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}
_LONGEST_LIST = 30  # kTruncatLength of torch/csrc/profiler/util.cpp


def process_id(rank: int) -> int:
    """Return the id of the process that a rank is."""
    return 70_000 + rank


def kernel_args(event: DeviceEvent, gpu: int) -> dict[str, Any]:
    """Return what is said of a kernel or copy, whatever it does."""
    where = {"device": gpu, "context": 1, "stream": event.work.stream}
    if event.work.kind == "copy":
        pace = event.work.num_bytes / (event.end_ns - event.start_ns)
        size = {"bytes": event.work.num_bytes, "memory bandwidth (GB/s)": Num(f"{pace:.6f}")}
        return where | {"correlation": event.launch.number} | size
    is_comm = event.work.kind == "comm"
    args: dict[str, Any] = {"queued": 0} | where | {"correlation": event.launch.number}
    args |= {"registers per thread": 96 if is_comm else 168, "shared memory": 103808}
    args |= {"blocks per SM": Num("0.181818"), "warps per SM": Num("2.909091")}
    args |= {"grid": [24 if is_comm else 132, 1, 1], "block": [512 if is_comm else 384, 1, 1]}
    args |= {"est. achieved occupancy %": 0}
    return args | {"graph id": 3, "graph node id": 3 << 32} if event.in_graph else args


def comm_args(call: Call, seq: int, rank: int, age: Age) -> dict[str, Any]:
    """Return what both the operator and its kernel say of a collective or message."""
    name, peer = call.collective, {}
    if call.is_message:
        source, destination = call.members
        name = "send" if rank == source else "recv"
        peer = {"Dst Rank": destination} if rank == source else {"Src Rank": source}
    numbered = {}
    if age.has_seq:
        number = comms_id(call.group, seq, is_message=call.is_message)
        numbered = {"Seq": seq, "Comms Id": number}
    return {
        "Collective name": name,
        "In msg nelems": call.in_nelems,
        "Out msg nelems": call.out_nelems,
        "Group size": len(call.group.ranks),
        "dtype": call.dtype,
        "In split size": "[]",
        "Out split size": "[]",
        "Process Group Name": call.group.name,
        "Process Group Description": call.group.description,
        "Process Group Ranks": _listed(call.group.ranks),
        **peer,
        **numbered,
    }


def _listed(ranks: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, ranks[:_LONGEST_LIST]))
    return f"[{shown}, ...]" if len(ranks) > _LONGEST_LIST else f"[{shown}]"


def comms_id(group: Group, seq: int, *, is_message: bool) -> int:
    """Return 64 bits that all ranks of a group find for its ``seq``-th call."""
    ranks = group.ranks
    known = f"{group.name} {seq} {is_message} {ranks[0]} {ranks[-1]} {len(ranks)}"
    return int.from_bytes(sha256(known.encode()).digest()[:8])


def header(job: Job, recording: Recording, age: Age) -> dict[str, Any]:
    """Return the keys beside the events."""
    gpus = 0 if job.on_cpu else min(8, job.world_size)
    found: dict[str, Any] = {"schemaVersion": 1}
    found["deviceProperties"] = [{"id": gpu} | _H100 for gpu in range(gpus)]
    found["distributedInfo"] = _distributed(job, recording.rank, age)
    if gpus:
        found |= {"cupti_version": 28, "cuda_runtime_version": 12090}
        found["cuda_driver_version"] = 13000
    found |= {"record_shapes": 1, "trace_id": trace_id(job, recording.rank)}
    if age.has_nanoseconds:
        base_ns = recording.clock.base_ns
        found |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": base_ns}
    return found | {"traceName": f"rank{recording.rank}_trace.json"}


def _distributed(job: Job, rank: int, age: Age) -> dict[str, Any]:
    backend, backends = ("gloo", "cpu:gloo,cuda:gloo") if job.on_cpu else ("nccl", "cuda:nccl")
    info: dict[str, Any] = {"backend": backend, "rank": rank, "world_size": job.world_size}
    if not age.has_metadata:
        return info
    groups = [group for group in job.groups if rank in group.ranks]
    info["pg_count"] = len(groups)
    info["pg_config"] = [
        {
            "pg_name": group.name,
            "pg_desc": group.description,
            "backend_config": backends,
            "pg_size": len(group.ranks),
            "ranks": list(group.ranks),
        }
        for group in groups
    ]
    return info if job.on_cpu else info | {"nccl_version": "2.27.5"}


def trace_id(job: Job, rank: int) -> str:
    """Return what one file of a job is told from others by."""
    known = f"{job.world_size} {len(job.programs[0].items)} {rank}"
    return sha256(known.encode()).hexdigest()[:32].upper()
