"""Which rows are shown of a run too large to show."""

from __future__ import annotations

from dataclasses import replace

from traceparse.report.choose import choose_devices, largest_span, steps_in_order


def test_all_devices_where_they_fit(make):
    devices = make.fleet(8).devices
    assert choose_devices(devices, 8) == list(devices)


def test_else_the_first_and_the_worst_in_their_order(make):
    # GIVEN exposed comm that grows with the rank, and one rank in the middle that idles
    devices = list(make.fleet(100).devices)
    idler = make.times(compute=1, idle=99)
    devices[50] = replace(devices[50], window=idler)
    chosen = [device.rank for device in choose_devices(devices, 16)]
    # THEN the first 8, the 4 with the most exposed comm, and the 4 that idle most
    assert chosen == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 50, 96, 97, 98, 99]


def test_a_device_with_an_empty_window_is_no_worst_one(make):
    devices = list(make.fleet(20).devices)
    devices[19] = replace(devices[19], window=make.times())
    assert 19 not in [device.rank for device in choose_devices(devices, 8)]


def test_the_ranks_of_a_step_stand_together(make, report):
    unmarked = make.device(2, 0, make.times(compute=1), [make.step(None)])
    rows = steps_in_order([*report.devices, unmarked])
    assert [(row.step.step, row.device.rank) for row in rows] == [
        (3, 0),
        (3, 1),
        (4, 0),
        (4, 1),
        (5, 0),
        (5, 1),
        (None, 2),
    ]


def test_the_largest_span_is_of_a_window_or_a_step(make):
    small, large = make.times(compute=10), make.times(compute=20)
    assert largest_span([]) == 0
    assert largest_span([make.device(0, 0, large, [make.step(1, small)])]) == 20
    assert largest_span([make.device(0, 0, small, [make.step(1, large), make.step(2)])]) == 20
