"""Hand-worked traces about how numbers are written: nothing may pass through a double."""

from __future__ import annotations

from tools.hand import (
    Case,
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
from tools.layouts import Event, Num


def _at(event: Event, ts: str, dur: str) -> Event:
    return {**event, "ts": Num(ts), "dur": Num(dur)}


def _gemm(ts: str, dur: str, **more: int) -> Event:
    return _at(kernel(GEMM, 1, 2, 1, **more), ts, dur)


LAUNCH = launch(1, 1)


@case
def absolute_microseconds() -> Case:
    """Count whole microseconds since 1970, as torch did until 2.3.

    Two kernels, ...100 to ...150 and ...200 to ...225: span 125, compute 75, idle 50.
    """
    events = [
        LAUNCH,
        _gemm("1695835535000100", "50"),
        _gemm("1695835535000200", "25"),
    ]
    window = times(
        start=1_695_835_535_000_100_000,
        end=1_695_835_535_000_225_000,
        span=125_000,
        busy=75_000,
        compute=75_000,
        idle=50_000,
    )
    return Case(framed(events), [device(0, window, kernels=(2, 75_000))])


@case
def absolute_nanoseconds() -> Case:
    """Give absolute times three decimals: as doubles they would be 250 ns apart.

    In ns after 1712170318 s: gemm 1..1000, relu 500..1501, AllReduce 1250..2250.

    window 1..2250: 2249. compute 1500, comm 1000, overlap 1250..1501 = 251, exposed_comm 749,
    busy 2249, idle 0; kernels 999 + 1001 + 1000 = 3000
    """
    events = [
        LAUNCH,
        _gemm("1712170318000000.001", "0.999"),
        _at(kernel(RELU, 1, 2, 1, stream=9), "1712170318000000.500", "1.001"),
        _at(kernel(ALL_REDUCE, 1, 2, 1, stream=20), "1712170318000001.250", "1.000"),
    ]
    window = times(
        start=1_712_170_318_000_000_001,
        end=1_712_170_318_000_002_250,
        span=2_249,
        busy=2_249,
        compute=1_500,
        comm=1_000,
        overlap=251,
        exposed_comm=749,
        idle=0,
    )
    return Case(framed(events), [device(0, window, kernels=(3, 3_000))])


@case
def relative_to_base() -> Case:
    """Count from baseTimeNanoseconds, which comes after the events (torch 2.4 to 2.6).

    In ns after base + 5101149001 ms: gemm 776005..779146, copy 779000..779500,
    relu 780000..780020. The base is 1767189312000000000.

    window 776005..780020: 4015. compute 3141 + 20 = 3161, copy 500,
    exposed 779146..779500 = 354, busy 3515, idle 500; kernels 3141 + 20
    """
    events = [
        LAUNCH,
        _gemm("5101149001776.005", "3.141"),
        _at(copy("Memcpy HtoD (Pinned -> Device)", 1, 2, 1), "5101149001779.000", "0.500"),
        _at(kernel(RELU, 1, 2, 1), "5101149001780.000", "0.020"),
    ]
    window = times(
        start=1_772_290_461_001_776_005,
        end=1_772_290_461_001_780_020,
        span=4_015,
        busy=3_515,
        compute=3_161,
        copy=500,
        exposed_copy=354,
        idle=500,
    )
    header = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "traceName": "relative.json",
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_767_189_312_000_000_000,
    }
    after = ("traceName", "displayTimeUnit", "baseTimeNanoseconds")
    return Case(framed(events), [device(0, window, kernels=(2, 3_161))], header, trailing=after)


@case
def rounding() -> Case:
    """Round exponents and too many digits: half to even, start and length apart.

    ====================  =====================  ========  ======
    ts                    dur                    start ns  dur ns
    ====================  =====================  ========  ======
    1e2                   1.5e1                    100000   15000
    120.0005              0.0015                   120000       2  both are halves
    130.0015              1e-05                    130002       0
    140.00000000000001    9.324000000000005        140000    9324
    200.0006              10.0006                  200001   10001  together: 210001.2
    300.000499999...      2.001499999...           300000    2001  32 decimals: below the half
    4.0E+2                2.50E1                   400000   25000
    500                   0.0005                   500000       0  ends the window
    ====================  =====================  ========  ======

    window  100000..500000. compute 15000 + 2 + 9324 + 10001 + 2001 + 25000 = 61328, idle 338672
    """
    below_half = "0049999999999999999999999999999"
    events = [
        LAUNCH,
        _gemm("1e2", "1.5e1"),
        _gemm("120.0005", "0.0015"),
        _gemm("130.0015", "1e-05"),
        _gemm("140.00000000000001", "9.324000000000005"),
        _gemm("200.0006", "10.0006"),
        _gemm("300.0" + below_half, "2.001" + below_half[2:]),
        _gemm("4.0E+2", "2.50E1"),
        _gemm("500", "0.0005"),
    ]
    window = times(
        start=100_000,
        end=500_000,
        span=400_000,
        busy=61_328,
        compute=61_328,
        idle=338_672,
    )
    return Case(framed(events), [device(0, window, kernels=(8, 61_328))])


@case
def wide_ids() -> Case:
    """Link by ids that no double tells apart: 2^64 - 1 and 2^64 - 2, 2^53 and 2^53 + 1.

    ::

        us         10   20  25  30  40  45 48  50   60  65  70   85  90  95 100
        host        |===== #0 ==================|===== #1 ==================|
        launches         a   b                       c   d
        stream 7                |a =|   |b|                  |c ==|  |d |

    #0  30..70: 40. compute 10 + 3, idle 27
    #1  70..100: 30, open, its host span ends last. compute 15 + 5, idle 10
    window  30..95: 65. compute 33, idle 32; kernels 4 of 33
    """
    a, b = 18_446_744_073_709_551_615, 9_007_199_254_740_993
    c, d = 18_446_744_073_709_551_614, 9_007_199_254_740_992
    events = [
        step_span(0, 10, 50),
        step_span(1, 50, 100),
        launch(20, a),
        launch(25, b),
        launch(60, c),
        launch(65, d),
        kernel(GEMM, 30, 40, a, stream=18_446_744_073_709_551_613),
        kernel(GEMM, 45, 48, b),
        kernel(GEMM, 70, 85, c),
        kernel(GEMM, 90, 95, d),
    ]
    first = times(
        start=30_000, end=70_000, span=40_000, busy=13_000, compute=13_000, idle=27_000
    )
    second = times(
        start=70_000, end=100_000, span=30_000, busy=20_000, compute=20_000, idle=10_000
    )
    window = times(
        start=30_000, end=95_000, span=65_000, busy=33_000, compute=33_000, idle=32_000
    )
    steps = [step(0, first), step(1, second, open_ended=True)]
    return Case(framed(events), [device(0, window, steps=steps, kernels=(4, 33_000))])
