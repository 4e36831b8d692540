"""Hand-worked traces of one job on NVIDIA devices, without or with few steps."""

from __future__ import annotations

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

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"
RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::relu<float>>(int)"


@case
def three_streams() -> Case:
    """Run compute, a collective and a copy side by side on three streams, without steps.

    ::

        us         100   150   190 200     260     290   320 330
        stream 7    |== gemm ======|                      |==| relu
        stream 20         |== AllReduce ====|
        stream 21               |== HtoD ==========|

    window   100..330                       230
    compute  100..200, 320..330             110
    comm     150..260                       110
    copy     190..290                       100
    overlap  150..200                        50
    exposed_comm  200..260                   60
    exposed_copy  260..290                   30
    busy     110 + 60 + 30 =                200, idle 290..320 = 30
    kernels  gemm 100 + AllReduce 110 + relu 10 = 220
    """
    events = [
        launch(90, 1),
        launch(92, 2, name="cudaLaunchKernelExC"),
        launch(94, 3, name="cudaMemcpyAsync"),
        launch(96, 4),
        kernel(GEMM, 100, 200, 1),
        kernel(ALL_REDUCE, 150, 260, 2, stream=20),
        copy("Memcpy HtoD (Pinned -> Device)", 190, 290, 3),
        kernel(RELU, 320, 330, 4),
    ]
    window = times(
        start=100_000,
        end=330_000,
        span=230_000,
        busy=200_000,
        compute=110_000,
        comm=110_000,
        copy=100_000,
        overlap=50_000,
        exposed_comm=60_000,
        exposed_copy=30_000,
        idle=30_000,
    )
    return Case(framed(events), [device(0, window, kernels=(3, 220_000))])


@case
def two_devices() -> Case:
    """Use two devices; the first step launches nothing on the second one.

    ::

        us              10   30 40  50      70 75 80   90 95 100
        host             |== #1 ====|======= #2 ===============|
        device 0              |==| gemm     |== gemm ==|
        device 1                               |== AllReduce ==|
                                                  |= gemm =|

    device 0  window 30..90: 60, compute 10 + 20 = 30, idle 30
              #1 30..70: 40, compute 10, idle 30
              #2 70..100, open, its host span ends last: 30, compute 20, idle 10
    device 1  window 75..100: 25, compute 80..95 = 15, comm 25, overlap 15, exposed_comm 10
              #1 no interval: the AllReduce is launched at 50, where #2 has begun
              #2 begins with its compute, not with the collective: 80..100 = 20, open
                 compute 15, comm 20, overlap 15, exposed_comm 95..100 = 5
    """
    events = [
        step_span(1, 10, 50),
        step_span(2, 50, 100),
        launch(20, 1),
        launch(60, 2),
        launch(50, 3),
        launch(66, 4),
        kernel(GEMM, 30, 40, 1),
        kernel(GEMM, 70, 90, 2),
        kernel(ALL_REDUCE, 75, 100, 3, on=1, stream=20),
        kernel(GEMM, 80, 95, 4, on=1),
    ]
    first = [
        step(
            1,
            times(
                start=30_000, end=70_000, span=40_000, busy=10_000, compute=10_000, idle=30_000
            ),
        ),
        step(
            2,
            times(
                start=70_000, end=100_000, span=30_000, busy=20_000, compute=20_000, idle=10_000
            ),
            open_ended=True,
        ),
    ]
    second = [
        step(1, None),
        step(
            2,
            times(
                start=80_000,
                end=100_000,
                span=20_000,
                busy=20_000,
                compute=15_000,
                comm=20_000,
                overlap=15_000,
                exposed_comm=5_000,
                idle=0,
            ),
            open_ended=True,
        ),
    ]
    window_0 = times(
        start=30_000, end=90_000, span=60_000, busy=30_000, compute=30_000, idle=30_000
    )
    window_1 = times(
        start=75_000,
        end=100_000,
        span=25_000,
        busy=25_000,
        compute=15_000,
        comm=25_000,
        overlap=15_000,
        exposed_comm=10_000,
        idle=0,
    )
    devices = [
        device(0, window_0, steps=first, kernels=(2, 30_000)),
        device(1, window_1, steps=second, kernels=(2, 40_000)),
    ]
    info = {"backend": "nccl", "rank": 3, "world_size": 8}
    header = {"schemaVersion": 1, "traceName": "two.json", "distributedInfo": info}
    return Case(framed(events), devices, header, trailing=("traceName", "distributedInfo"))


@case
def graph_launch() -> Case:
    """Replay graphs: many kernels of one correlation, and some kernels with no launch record.

    ::

        us        10  20  30 35 36 40   45 48 50 51 55 58 60 62 64 66  75 78    90 95 97 100
        host       |== #1 ====================|== #2 ====================================|
        launches      g1                   x  |x'         g2
        stream 7          |g1| |g1|=g1====|                  |u1|  |=g2=|g2|
        stream 20                      |== AllReduce g1 ==|
        stream 9                                     |x|                      |u2|
        stream 21                                                                |c|

    x is launched by a runtime call at 48, in #1; the driver call of the same correlation, at
    51, is later and does not count, or #2 would begin with x. u1 names a correlation without
    record, u2 none; nor has the copy c a record, but a copy is no kernel.

    #1  30..66: 36. compute 5 + 4 + 10 + x 3 + u1 2 = 24, comm 45..60 = 15,
        overlap 45..50 + x 3 = 8, exposed_comm 7, busy 31, idle 5
    #2  66..100, open, its host span ends last: 34. compute 12 + u2 5 = 17,
        copy 2, exposed, busy 19, idle 15
    window  30..97: 67. compute 41, comm 15, overlap 8, exposed_comm 7, copy 2,
        busy 50, idle 17
    kernels  g1 5 + 4 + 10 + 15, g2 9 + 3, x 3, u1 2, u2 5: 9 of 56; unlinked u1, u2: 2 of 7
    """
    events = [
        step_span(1, 10, 50),
        step_span(2, 50, 100),
        launch(20, 500, name="cudaGraphLaunch", dur=3),
        launch(60, 502, name="cudaGraphLaunch", dur=3),
        launch(51, 501, name="cuLaunchKernel", category="cuda_driver"),
        launch(48, 501),
        kernel(RELU, 30, 35, 500),
        kernel(RELU, 36, 40, 500),
        kernel(GEMM, 40, 50, 500),
        kernel(ALL_REDUCE, 45, 60, 500, stream=20),
        kernel(GEMM, 66, 75, 502),
        kernel(RELU, 75, 78, 502),
        kernel(RELU, 55, 58, 501, stream=9),
        kernel(RELU, 62, 64, 900),
        kernel(RELU, 90, 95, None, stream=9),
        copy("Memcpy DtoH (Device -> Pinned)", 95, 97, 901),
    ]
    first = times(
        start=30_000,
        end=66_000,
        span=36_000,
        busy=31_000,
        compute=24_000,
        comm=15_000,
        overlap=8_000,
        exposed_comm=7_000,
        idle=5_000,
    )
    second = times(
        start=66_000,
        end=100_000,
        span=34_000,
        busy=19_000,
        compute=17_000,
        copy=2_000,
        exposed_copy=2_000,
        idle=15_000,
    )
    window = times(
        start=30_000,
        end=97_000,
        span=67_000,
        busy=50_000,
        compute=41_000,
        comm=15_000,
        copy=2_000,
        overlap=8_000,
        exposed_comm=7_000,
        exposed_copy=2_000,
        idle=17_000,
    )
    steps = [step(1, first), step(2, second, open_ended=True)]
    found = device(0, window, steps=steps, kernels=(9, 56_000), unlinked=(2, 7_000))
    return Case(framed(events), [found])


@case
def skipped_times() -> Case:
    """Skip and count events without a usable time; length zero is a usable time.

    ::

        us        0   90   100   120   150
        kept          |     |=====|     |        zero length at 90 and 150
        skipped   |                               ts missing, ts 0, dur -5, dur missing, ts -10

    window   90..150: 60. compute 20, idle 40; kernels: 3 of 20; skipped: one for each reason
    """
    bare = kernel(GEMM, 130, 140, None)
    events = [
        kernel(GEMM, 100, 120, 1),
        kernel(RELU, 90, 90, 2),
        kernel(RELU, 150, 150, 3),
        {key: value for key, value in bare.items() if key != "ts"},
        {key: value for key, value in bare.items() if key != "dur"},
        {**bare, "ts": 0, "dur": 50},
        {**bare, "dur": -5},
        {**bare, "ts": -10},
        launch(80, 1),
        launch(81, 2),
        launch(82, 3),
    ]
    window = times(
        start=90_000, end=150_000, span=60_000, busy=20_000, compute=20_000, idle=40_000
    )
    skipped = {
        "duration_missing": 1,
        "duration_negative": 1,
        "time_missing": 1,
        "time_negative": 1,
        "time_zero": 1,
    }
    return Case(framed(events), [device(0, window, kernels=(3, 20_000))], skipped=skipped)


@case
def never_device_time() -> Case:
    """Draw on device rows, or around everything, what is no work of the device.

    ::

        us                     50   99 100   110 120   130 131   200   300
        kernels                        |======|   |=====|
        gpu_user_annotation         |====================|               x2
        cuda_sync, cuda_event   |==================================|
        overhead               |==========================================|
        nccl:all_reduce             |=====================|        on the host: enqueue only

    One gpu_user_annotation is called ProfilerStep#9: it is no step either.

    window   100..130: 30. compute 20, idle 10; no steps; kernels: 2 of 20
    """
    on_gpu = {"pid": 0, "tid": 7}
    hidden = {"pid": -1, "tid": 0}
    events = [
        kernel(GEMM, 100, 110, 1),
        kernel(GEMM, 120, 130, 2),
        host("ProfilerStep#9", 99, 131, category="gpu_user_annotation") | on_gpu,
        host("nccl:all_reduce", 99, 131, category="gpu_user_annotation") | on_gpu,
        host("nccl:all_reduce", 99, 131, category="user_annotation"),
        host("Stream Sync", 50, 200, category="cuda_sync") | on_gpu,
        host("cudaEventRecord", 55, 56, category="cuda_event") | on_gpu,
        host("Activity Buffer Request", 60, 300, category="overhead") | hidden,
        host("train.py(12): step", 40, 310, category="python_function"),
        host("aten::mm", 41, 309),
        launch(90, 1),
        launch(91, 2),
        {"ph": "s", "id": 1, "pid": 4242, "tid": 4242, "ts": 90, "cat": "ac2g", "name": "ac2g"},
        {
            "ph": "f",
            "id": 1,
            "pid": 0,
            "tid": 7,
            "ts": 100,
            "cat": "ac2g",
            "name": "ac2g",
            "bp": "e",
        },
    ]
    window = times(
        start=100_000, end=130_000, span=30_000, busy=20_000, compute=20_000, idle=10_000
    )
    return Case(framed(events), [device(0, window, kernels=(2, 20_000))])


COMM_NAMES = (
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
    "void rcclGenericKernel<ncclFuncAllReduce>(ncclDevComm*)",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
    "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16>(int)",
    "void (anonymous namespace)::one_shot_all_reduce_kernel<float, 16, 8>(float**)",
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<float, 16, 8>(float**)",
    "void vllm::cross_device_reduce_1stage<__half, 8>(vllm::RankData*)",
    "void quickreduce::allreduce_prototype_twoshot<float>(int)",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>()",
    "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
    "nvshmem_barrier_all_kernel",
    "mscclKernel_Sum_half_Simple(ncclDevComm*)",
    "void mscclpp::allreduceAllPairs<float>(float*)",
    "oneccl_allreduce_medium<float>",
    "hccl::broadcast",
)
NOT_COMM_NAMES = (
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float)",
    "void paper::pincclip_kernel<float>(float*)",
    "void cross_entropy_reduce_kernel(float*)",
)


@case
def collectives_by_name() -> Case:
    """Know collectives by their names alone, and three names that only look alike.

    Kernel k of 20 runs from 100 + 20 k to 110 + 20 k us, none beside another. "pincclip" has a
    letter before "nccl", so it is none.

    window   100..490: 390. comm 17 x 10 = 170, exposed; compute 3 x 10 = 30; busy 200, idle 190
    kernels  20 of 200
    """
    names = [*COMM_NAMES, *NOT_COMM_NAMES]
    events = [
        kernel(name, 100 + 20 * index, 110 + 20 * index, index + 1)
        for index, name in enumerate(names)
    ]
    launches = [launch(50 + index, index + 1) for index in range(len(names))]
    window = times(
        start=100_000,
        end=490_000,
        span=390_000,
        busy=200_000,
        compute=30_000,
        comm=170_000,
        exposed_comm=170_000,
        idle=190_000,
    )
    return Case(framed([*events, *launches]), [device(0, window, kernels=(20, 200_000))])
