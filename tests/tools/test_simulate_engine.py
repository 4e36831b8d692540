"""Jobs of a few kernels, worked out on paper: when the simulator lets what start and end."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tools.simulate_engine import run
from tools.simulate_events import Conditions
from tools.simulate_program import (
    POINT_TO_POINT,
    Call,
    Group,
    Launch,
    Pause,
    Program,
    Record,
    Span,
    Sync,
    Wait,
    Work,
)

LATENCY = Conditions(latency_ns=5)
BOTH = Group("0", "default_pg", (0, 1))


def call(number=0, transfer_ns=30, members=(0, 1), kind="allreduce"):
    return Call(number, BOTH, kind, "BFloat16", 8, 8, transfer_ns, members)


def compute(ns, stream=7):
    return Launch("cudaLaunchKernel", 10, (Work("compute", "gemm", stream, ns),))


def comm(found, stream=20):
    return Launch("cudaLaunchKernelExC", 10, (Work("comm", "nccl", stream, call=found),))


def wait(stream, other):
    return Record(other, other, 2), Wait(stream, other, 2)


def programs(*items_of_ranks):
    found = []
    for rank, items in enumerate(items_of_ranks):
        program = Program(rank)
        for item in items:
            program.add(item)
        found.append(program)
    return found


def intervals(ran):
    found = [(event.work.stream, event.start_ns, event.end_ns) for event in ran.device]
    return sorted(found, key=lambda interval: (interval[1], interval[0]))


def test_a_kernel_waits_for_its_launch_and_for_its_stream():
    # launched at 0 and 10, there at 5 and 15; the second waits until the first is done at 105
    (ran,) = run(programs([compute(100), compute(50)]), LATENCY)
    assert intervals(ran) == [(7, 5, 105), (7, 105, 155)]
    assert [(event.start_ns, event.end_ns) for event in ran.host] == [(0, 10), (10, 20)]


def test_streams_run_side_by_side_and_wait_where_they_are_told_to():
    # the wait is put down at 20..24, when stream 7 holds the first kernel (5..105)
    items = [compute(100), compute(40, 8), *wait(8, 7), compute(10, 8)]
    (ran,) = run(programs(items), LATENCY)
    assert intervals(ran) == [(7, 5, 105), (8, 15, 55), (8, 105, 115)]


def test_a_wait_is_for_what_is_there_when_it_is_put_down():
    items = [compute(100), *wait(8, 7), compute(100), compute(10, 8)]
    (ran,) = run(programs(items), LATENCY)
    assert intervals(ran) == [(7, 5, 105), (7, 105, 205), (8, 105, 115)]


def test_a_wait_is_for_an_event_as_it_was_recorded_last():
    # recorded at 10 of the first kernel (5..105), at 22 of the second too (105..205)
    items = [compute(100), Record(7, 1, 2), compute(100), Wait(8, 1, 2), compute(10, 8)]
    (ran,) = run(programs(items), LATENCY)
    assert intervals(ran) == [(7, 5, 105), (7, 105, 205), (8, 105, 115)]
    items[3:3] = [Record(7, 1, 2)]
    (ran,) = run(programs(items), LATENCY)
    assert intervals(ran) == [(7, 5, 105), (7, 105, 205), (8, 205, 215)]


def test_an_event_covers_what_its_stream_was_told_to_wait_for():
    # stream 8 has nothing of its own yet, but waits for stream 7 (5..105)
    items = [compute(100), *wait(8, 7), *wait(9, 8), compute(10, 9)]
    (ran,) = run(programs(items), LATENCY)
    assert intervals(ran) == [(7, 5, 105), (9, 105, 115)]


def test_the_host_waits_for_what_a_stream_was_told_to_wait_for():
    items = [compute(100), *wait(8, 7), Sync(8, 3)]
    (ran,) = run(programs(items), LATENCY)
    assert ran.host[-1].end_ns == 108


def test_a_collective_lasts_from_the_last_start_for_its_transfer_everywhere():
    # rank 0 starts at 5, rank 1 after a pause at 65: it ends at 65 + 30 on both
    first, second = run(programs([comm(call())], [Pause(60), comm(call())]), LATENCY)
    assert intervals(first) == [(20, 5, 95)]
    assert intervals(second) == [(20, 65, 95)]


def test_a_message_meets_its_two_members_alone():
    found = call(members=(1, 0), kind=POINT_TO_POINT)
    first, second = run(programs([comm(found)], [compute(50), comm(found)]), LATENCY)
    assert intervals(first) == [(20, 5, 45)]  # the other stream of rank 1 is free at 15
    assert intervals(second)[1] == (20, 15, 45)


def test_the_host_waits_for_a_stream_that_waits_for_another_rank():
    items = [comm(call()), Sync(20, 3), compute(10)]
    first, _ = run(programs(items, [Pause(60), comm(call())]), LATENCY)
    sync = next(event for event in first.host if event.name == "cudaStreamSynchronize")
    assert (sync.start_ns, sync.end_ns) == (10, 98)
    assert intervals(first)[-1] == (7, 103, 113)


def test_a_graph_is_one_launch_whose_parts_wait_for_one_another():
    works = (
        Work("compute", "a", 7, 10),
        Work("comm", "b", 20, call=call(members=(0,))),
        Work("compute", "c", 7, 10),
        Work("compute", "d", 7, 10),
    )
    graph = Launch("cudaGraphLaunch", 10, works, {1: 0, 3: 1}, is_graph=True)
    (ran,) = run(programs([graph]), LATENCY)
    assert intervals(ran) == [(7, 5, 15), (7, 15, 25), (20, 15, 45), (7, 45, 55)]
    assert len({event.launch.number for event in ran.device}) == 1


def test_contention_slows_a_kernel_for_as_long_as_a_collective_runs():
    # alone 5..15, slowed by 5/4 while comm runs 15..45: 24 of 90 done, the other 56 alone
    items = [compute(90), comm(call(members=(0,)))]
    contention = Conditions(latency_ns=5, contention=Fraction(5, 4))
    (ran,) = run(programs(items), contention)
    assert intervals(ran) == [(7, 5, 101), (20, 15, 45)]


def test_conditions_scale_what_they_are_of():
    items = [Pause(20), compute(100), comm(call())]
    slow = Conditions(
        compute={1: Fraction(3, 2)},
        host={0: Fraction(2)},
        link={1: Fraction(3)},
        network=Fraction(1, 2),
        latency_ns=0,
    )
    first, second = run(programs(items, items), slow)
    # hosts at 40 and 60, at 20 and 30; the transfer is 30 * 3 / 2
    assert intervals(first) == [(7, 40, 140), (20, 60, 105)]
    assert intervals(second) == [(7, 20, 170), (20, 30, 105)]


def test_spans_have_their_items_inside_and_ids_of_their_own():
    inner = Span("aten::mm", "cpu_op", "main", {}, flop=8, body=[compute(100)])
    outer = Span(
        "ProfilerStep#2", "user_annotation", "main", {}, step=2, body=[inner, Pause(4)]
    )
    (ran,) = run(programs([outer]), LATENCY)
    marker, op, launch = ran.host
    assert [event.number for event in ran.host] == [1, 2, 1]
    assert [(e.start_ns, e.end_ns) for e in ran.host] == [(0, 14), (0, 10), (0, 10)]
    assert (launch.op, launch.above, op.above) == (op, op, marker)
    assert ran.device[0].step == 2


def test_a_job_that_cannot_end_is_a_mistake_in_its_programs():
    with pytest.raises(AssertionError, match="rank 0 waits for what never comes"):
        run(programs([comm(call()), Sync(20, 1)], [Pause(1)]), LATENCY)
