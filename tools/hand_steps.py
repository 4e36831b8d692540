"""Hand-worked traces about steps: where one begins on the device, and the last one ends."""

from __future__ import annotations

from collections.abc import Sequence

from tools.hand import (
    Case,
    Expected,
    case,
    copy,
    device,
    framed,
    kernel,
    launch,
    step,
    step_span,
    times,
)
from tools.hand_gpu import ALL_REDUCE, GEMM, RELU
from tools.layouts import Event


def _two_steps(last_host_end: int) -> Sequence[Event]:
    return framed(
        [
            step_span(5, 100, 200),
            step_span(6, 200, 210),
            step_span(7, 210, last_host_end),
            launch(50, 1),
            launch(110, 2),
            launch(195, 3),
            launch(215, 4, name="cudaLaunchKernelExC"),
            launch(220, 5),
            launch(290, 6, name="cudaMemcpyAsync"),
            kernel(RELU, 120, 130, 1),
            kernel(GEMM, 150, 190, 2),
            kernel(GEMM, 240, 280, 3),
            kernel(ALL_REDUCE, 230, 260, 4, stream=20),
            kernel(GEMM, 270, 310, 5, stream=8),
            copy("Memcpy DtoH (Device -> Pageable)", 320, 330, 6),
        ]
    )


def _two_steps_device(last: Expected) -> Expected:
    first = times(
        start=150_000,
        end=270_000,
        span=120_000,
        busy=80_000,
        compute=70_000,
        comm=30_000,
        overlap=20_000,
        exposed_comm=10_000,
        idle=40_000,
    )
    window = times(
        start=120_000,
        end=330_000,
        span=210_000,
        busy=140_000,
        compute=120_000,
        comm=30_000,
        copy=10_000,
        overlap=20_000,
        exposed_comm=10_000,
        exposed_copy=10_000,
        idle=70_000,
    )
    return device(0, window, steps=[step(5, first), step(6, None), last], kernels=(5, 160_000))


@case
def steps_end_with_host() -> Case:
    """Let steps run into each other on the device; the last one ends with its host span.

    ::

        us       50  100 110 120 130 150 190 195 200 210 230 240 260 270 280 310 320 330  400
        host          |===== #5 =================|#6 |========= #7 ========================|
        launches  w       A               B          C D                    (E at 290)
        stream 7              |w|     |A ==|             |B =========|
        stream 20                                     |C ======|
        stream 8                                                   |D =======|
        stream 21                                                            |E ==|

    w is launched before any step: in the window, in no step. B is launched in #5 and still runs
    when #7 begins, with D, at 270. C is launched in #7 and runs ahead, in the interval of #5.
    #6 launches nothing: no interval, and #5 ends where #7 begins.

    #5  150..270: 120. compute 40 + 240..270 = 70, comm 230..260 = 30, overlap 240..260 = 20,
        exposed_comm 10, busy 80, idle 40
    #7  270..400: 130, open. compute 270..310 = 40, copy 10, exposed, busy 50, idle 80
    window  120..330: 210. compute 10 + 40 + 240..310 = 120, comm 30, overlap 20,
        exposed_comm 10, copy 10, exposed, busy 140, idle 70
    kernels  10 + 40 + 40 + 30 + 40 = 160
    """
    last = times(
        start=270_000,
        end=400_000,
        span=130_000,
        busy=50_000,
        compute=40_000,
        copy=10_000,
        exposed_copy=10_000,
        idle=80_000,
    )
    found = _two_steps_device(step(7, last, open_ended=True))
    return Case(_two_steps(400), [found])


@case
def steps_end_with_device() -> Case:
    """End the last host span of the same trace at 300, before the copy that it launched.

    #7  270..330: 60, open. compute 40, copy 10, exposed, busy 50, idle 10; the rest as before
    """
    last = times(
        start=270_000,
        end=330_000,
        span=60_000,
        busy=50_000,
        compute=40_000,
        copy=10_000,
        exposed_copy=10_000,
        idle=10_000,
    )
    found = _two_steps_device(step(7, last, open_ended=True))
    return Case(_two_steps(300), [found])


@case
def step_without_compute() -> Case:
    """Begin a step without compute with its first device event; a copy runs ahead.

    ::

        us        10 12 15   20  25  30   40 42 43 45  50   60   80  90
        host      |===== #0 ==============|===== #1 ================|
        stream 21             |m1 ====|          |m2 ==|
        stream 20                 |AllReduce =======|
        stream 7                                            |gemm|

    #0  20..60: 40. comm 25..45 = 20, exposed; copy 20..30 + 43..50 = 17, exposed 20..25 and
        45..50 = 10; busy 30, idle 10
    #1  60..90: 30, open. compute 20, busy 20, idle 10
    window  20..80: 60. compute 20, comm 20, copy 17, exposed 20 and 10, busy 50, idle 10
    kernels  AllReduce 20 + gemm 20 = 40
    """
    events = [
        step_span(0, 10, 40),
        step_span(1, 40, 90),
        launch(12, 1, name="cudaMemcpyAsync"),
        launch(15, 2),
        launch(42, 3, name="cudaMemcpyAsync"),
        launch(45, 4),
        copy("Memset (Device)", 20, 30, 1),
        kernel(ALL_REDUCE, 25, 45, 2, stream=20),
        copy("Memcpy HtoD (Pinned -> Device)", 43, 50, 3),
        kernel(GEMM, 60, 80, 4),
    ]
    first = times(
        start=20_000,
        end=60_000,
        span=40_000,
        busy=30_000,
        compute=0,
        comm=20_000,
        copy=17_000,
        exposed_comm=20_000,
        exposed_copy=10_000,
        idle=10_000,
    )
    second = times(
        start=60_000, end=90_000, span=30_000, busy=20_000, compute=20_000, idle=10_000
    )
    window = times(
        start=20_000,
        end=80_000,
        span=60_000,
        busy=50_000,
        compute=20_000,
        comm=20_000,
        copy=17_000,
        exposed_comm=20_000,
        exposed_copy=10_000,
        idle=10_000,
    )
    steps = [step(0, first), step(1, second, open_ended=True)]
    return Case(framed(events), [device(0, window, steps=steps, kernels=(2, 40_000))])
