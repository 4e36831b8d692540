"""Hand-worked traces of other writers and hardware: 2021 spelling, ROCm, MTIA, CPU only."""

from __future__ import annotations

from typing import Any

from tools.hand import (
    Case,
    case,
    copy,
    device,
    framed,
    host,
    kernel,
    launch,
    step,
    step_span,
    times,
)
from tools.hand_gpu import RELU
from tools.layouts import Event, Num

SPELLING_2021 = {
    "kernel": "Kernel",
    "gpu_memcpy": "Memcpy",
    "gpu_memset": "Memset",
    "cuda_runtime": "Runtime",
    "cpu_op": "Operator",
    "user_annotation": "Operator",
}


def _as_2021(event: Event) -> Event:
    """Respell an event as torch 1.8 to 1.11 did: capitals, thread ids in quotes, whole us."""
    category = SPELLING_2021[event["cat"]]
    on_gpu = category in ("Kernel", "Memcpy", "Memset")
    old: dict[str, Any] = dict(event) | {"cat": category}
    old["tid"] = f"stream {event['tid']}" if on_gpu else str(event["tid"])
    for key in ("ts", "dur"):
        old[key] = int(event[key].removesuffix(".000"))
    if category != "Operator":
        args = dict(event["args"])
        args["external id"] = args.pop("External id", 1)
        old["args"] = args
    return old


@case
def spelling_2021() -> Case:
    """Write as the first libkineto: other categories, whole microseconds, ids as text.

    ::

        us          1000  1020 1025 1030  1050 1060 1075 1085 1095 1100   1120 1150 1200
        host         |=========== #16 ================================|====== #17 =====|
        stream 7               | s |  |gemm =======|                     |gemm|
        stream 20                          |AllReduce ==|
        stream 21                                       |c ===|

    The memset s runs before the step's first compute: in the window, in no step.

    #16  1030..1120: 90. compute 30, comm 1050..1075 = 25, overlap 10, exposed_comm 15,
         copy 10, exposed, busy 55, idle 35
    #17  1120..1200: 80, open. compute 30, idle 50
    window  1020..1150: 130. compute 60, comm 25, overlap 10, exposed_comm 15,
         copy 5 + 10 = 15, exposed, busy 90, idle 40
    kernels  30 + 25 + 30 = 85
    """
    events = [
        step_span(16, 1000, 1100),
        step_span(17, 1100, 1200),
        host("aten::mm", 1005, 1018),
        launch(1010, 11),
        launch(1015, 12, name="cudaMemsetAsync"),
        launch(1018, 14),
        launch(1080, 13, name="cudaMemcpyAsync"),
        launch(1110, 15),
        kernel("volta_sgemm_128x64_nn", 1030, 1060, 11),
        copy("Memset (Device)", 1020, 1025, 12),
        copy("Memcpy DtoH (Device -> Pageable)", 1085, 1095, 13),
        kernel("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", 1050, 1075, 14, stream=20),
        kernel("volta_sgemm_128x64_nn", 1120, 1150, 15),
    ]
    first = times(
        start=1_030_000,
        end=1_120_000,
        span=90_000,
        busy=55_000,
        compute=30_000,
        comm=25_000,
        copy=10_000,
        overlap=10_000,
        exposed_comm=15_000,
        exposed_copy=10_000,
        idle=35_000,
    )
    second = times(
        start=1_120_000, end=1_200_000, span=80_000, busy=30_000, compute=30_000, idle=50_000
    )
    window = times(
        start=1_020_000,
        end=1_150_000,
        span=130_000,
        busy=90_000,
        compute=60_000,
        comm=25_000,
        copy=15_000,
        overlap=10_000,
        exposed_comm=15_000,
        exposed_copy=15_000,
        idle=40_000,
    )
    steps = [step(16, first), step(17, second, open_ended=True)]
    found = device(0, window, steps=steps, kernels=(3, 85_000))
    return Case([_as_2021(event) for event in events], [found])


@case
def rocm() -> Case:
    """Run on ROCm: a device number unlike deviceProperties; correlation 0 links nothing.

    ::

        us         100 110   120   140 150 160   190 195 200 205 210 215 220 230
        host        |===== #7 ==========================|
        stream 0              |gemm ========|
        stream 1                        |all_gather =|
        stream 1                                         |all_reduce|
        stream 0                                                     |copy ==|
        stream 0                                                         |relu ==|

    The all_gather has correlation 0, and so has some runtime call: both mean "none". The
    all_reduce has a name that says nothing: its metadata does.

    #7 and window  120..230: 110. compute 40 + 15 = 55, comm 40 + 10 = 50, overlap 10,
        exposed_comm 40, copy 10, exposed 210..215 = 5, busy 100, idle 10; the step is open
    kernels  40 + 40 + 10 + 15 = 105; unlinked: all_gather, 40
    """
    rccl = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
    hip: Any = {"name": "hipExtModuleLaunchKernel"}
    on: Any = {"on": 2, "kind": "Dispatch Kernel"}
    gather: Any = {"Collective name": "_allgather_base", "dtype": "BFloat16", "Group size": 8}
    reduce: Any = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
    events = [
        step_span(7, 100, 200),
        launch(110, 31, **hip),
        launch(130, 0, name="hipGetLastError"),
        launch(140, 32, **hip),
        launch(150, 33, name="hipMemcpyWithStream"),
        launch(160, 34, **hip),
        kernel("Cijk_Alik_Bljk_BBS_BH_MT256x192x64", 120, 160, 31, stream=0, **on),
        kernel(rccl, 150, 190, 0, stream=94069179512384, **on, **gather),
        kernel("void generic_kernel<8>(Work*)", 195, 205, 32, stream=1, **on, **reduce),
        copy("CopyDeviceToDevice", 210, 220, 33, on=2, stream=0),
        kernel(RELU, 215, 230, 34, stream=0, **on),
    ]
    account = times(
        start=120_000,
        end=230_000,
        span=110_000,
        busy=100_000,
        compute=55_000,
        comm=50_000,
        copy=10_000,
        overlap=10_000,
        exposed_comm=40_000,
        exposed_copy=5_000,
        idle=10_000,
    )
    steps = [step(7, account, open_ended=True)]
    found = device(2, account, steps=steps, kernels=(4, 105_000), unlinked=(1, 40_000))
    properties = [{"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 206141652992}]
    header = {
        "schemaVersion": 1,
        "deviceProperties": properties,
        "hip_runtime_version": 70226015,
        "roctracer_version": Num("4.1"),
        "traceName": "rocm.json",
    }
    return Case(framed(events), [found], header)


def _mtia(name: str, start: int, end: int, correlation: int | None, pid: int = 17) -> Event:
    event = kernel(name, start, end, correlation, on=pid)
    args = {
        key: event["args"][key] for key in ("stream", "correlation") if key in event["args"]
    }
    return {**event, "cat": "mtia_ccp_events", "args": args}


@case
def mtia() -> Case:
    """Run on MTIA: waits are no work, dma_request is a copy, the process row is the device.

    ::

        us              10   100   120  140   180   200   225 230 240   300 310   500 600
        17 event_wait    |===================================================...===|
        17 dma_request        |==========|
        17 pe_exe                   |==========|     |========|
        17 cb_init                                        |======|
        18 dma_request                                                   |==|

    device 17  window 100..240: 140. compute 120..180 + 200..240 = 100, copy 40,
               exposed 100..120 = 20, busy 120, idle 20
               kernels 60 + 30 + 15 = 105; unlinked: the second pe_exe (no correlation) and
               cb_init (its correlation has no record): 2 of 45
    device 18  window 300..310: 10, all of it copy, exposed; no kernel
    Times are relative to a base of 1767189312 s.
    """
    events = [
        launch(90, 1, category="mtia_runtime", name="mtia_memcpy"),
        launch(95, 2, category="mtia_runtime", name="mtia_launch"),
        launch(96, 4, category="mtia_runtime", name="mtia_memcpy"),
        _mtia("event_wait", 10, 500, 5),
        _mtia("dma_request", 100, 140, 1),
        _mtia("pe_exe", 120, 180, 2),
        _mtia("pe_exe", 200, 230, None),
        _mtia("cb_init", 225, 240, 3),
        _mtia("event_record", 600, 601, 6),
        _mtia("dma_request", 300, 310, 4, pid=18),
    ]
    window_17 = times(
        start=1_767_189_312_000_100_000,
        end=1_767_189_312_000_240_000,
        span=140_000,
        busy=120_000,
        compute=100_000,
        copy=40_000,
        exposed_copy=20_000,
        idle=20_000,
    )
    window_18 = times(
        start=1_767_189_312_000_300_000,
        end=1_767_189_312_000_310_000,
        span=10_000,
        busy=10_000,
        compute=0,
        copy=10_000,
        exposed_copy=10_000,
        idle=0,
    )
    devices = [
        device(17, window_17, kernels=(3, 105_000), unlinked=(2, 45_000)),
        device(18, window_18, kernels=(0, 0)),
    ]
    header = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 17, "name": "ARTEMIS"}, {"id": 18, "name": "ARTEMIS"}],
        "trace_id": "0",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_767_189_312_000_000_000,
        "traceName": "mtia.json",
    }
    return Case(framed(events), devices, header)


@case
def cpu_only_gloo() -> Case:
    """Use no accelerator: operators compute on any thread, gloo communicates on its own.

    ::

        us       100 110 115 130 135 140 155 160 190 192 197 200 205 210 220 230 290 300 330
        main      |=== #3 ==================================|======= #4 ============|
        main          |linear =======|                              |mul|
        main              |addmm =|
        autograd              |mm ===========|
        main                                      |c |      c10d and record_param_comms
        gloo                             |all_reduce|           |all_reduce| |broadcast ==|

    "forward", an annotation over it all, counts as nothing.

    #3  110..210, where #4's first operator starts: 100. compute 110..160 = 50,
        comm 155..190 + 205..210 = 40, overlap 5, exposed_comm 35, busy 85, idle 15
    #4  210..330, open, its last work ends last: 120. compute 10, comm 20 + 40 = 60,
        overlap 10, exposed_comm 50, busy 60, idle 60
    window  110..330: 220. compute 60, comm 100, overlap 15, exposed_comm 85, busy 145, idle 75
    """
    notes: Any = {"category": "user_annotation"}
    events = [
        step_span(3, 100, 200),
        step_span(4, 200, 300),
        host("forward", 101, 299, **notes),
        host("aten::linear", 110, 140),
        host("aten::addmm", 115, 135),
        host("aten::mm", 130, 160, thread=4300),
        host("c10d::allreduce_", 192, 197),
        host("record_param_comms", 193, 196),
        host("gloo:all_reduce", 155, 190, thread=4400, **notes),
        host("gloo:all_reduce", 205, 230, thread=4400, **notes),
        host("aten::mul", 210, 220),
        host("c10d::broadcast_", 280, 330),
        host("gloo:broadcast", 290, 330, thread=4400, **notes),
    ]
    first = times(
        start=110_000,
        end=210_000,
        span=100_000,
        busy=85_000,
        compute=50_000,
        comm=40_000,
        overlap=5_000,
        exposed_comm=35_000,
        idle=15_000,
    )
    second = times(
        start=210_000,
        end=330_000,
        span=120_000,
        busy=60_000,
        compute=10_000,
        comm=60_000,
        overlap=10_000,
        exposed_comm=50_000,
        idle=60_000,
    )
    window = times(
        start=110_000,
        end=330_000,
        span=220_000,
        busy=145_000,
        compute=60_000,
        comm=100_000,
        overlap=15_000,
        exposed_comm=85_000,
        idle=75_000,
    )
    steps = [step(3, first), step(4, second, open_ended=True)]
    info = {"backend": "gloo", "rank": 1, "world_size": 2}
    header = {"schemaVersion": 1, "distributedInfo": info, "traceName": "gloo.json"}
    return Case(framed(events), [device("cpu", window, steps=steps)], header)


def _function(name: str, ts: str, dur: str, thread: int) -> Event:
    where = {"tid": thread, "pid": "CPU functions", "args": {}}
    return {"name": name, "ph": "X", "ts": Num(ts), "dur": Num(dur), **where}


@case
def legacy_list() -> Case:
    """List functions on the CPU without categories, as a torch without kineto.

    ::

        us        59.064   61.187  64.632   68.388   70.5    75.0   80.5   85.25
        thread 1   |linear ==================|                |relu ========|
        thread 1            |addmm ==|
        thread 2                                      |mm ===========|

    9.324000000000005 us is 9324 ns.

    window  59.064..85.25: 26186. compute 9324 + 70500..85250 = 14750: 24074, idle 2112
    """
    arrow = {"name": "aten::mm", "ph": "s", "ts": Num("70.5"), "tid": 2, "pid": "CPU functions"}
    events = [
        _function("aten::linear", "59.064", "9.324000000000005", 1),
        _function("aten::addmm", "61.187", "3.4450000000000074", 1),
        _function("aten::mm", "70.5", "10", 2),
        {**arrow, "id": 0, "cat": "cpu_to_cuda", "args": {}},
        _function("aten::relu", "75.0", "10.25", 1),
    ]
    window = times(
        start=59_064, end=85_250, span=26_186, busy=24_074, compute=24_074, idle=2_112
    )
    return Case(events, [device("cpu", window)], header={}, only=("leg",))
