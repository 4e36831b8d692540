"""Which rows are shown of a run too large to show."""

from __future__ import annotations

from dataclasses import replace

from traceparse.report.choose import (
    choose_devices,
    largest_span,
    pick_devices,
    quantile_indices,
    steps_in_order,
)

MS = 1_000_000


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


def test_quantiles_are_places_that_exist():
    assert quantile_indices(1) == [0, 0, 0, 0, 0]
    assert quantile_indices(2) == [0, 0, 0, 1, 1]
    assert quantile_indices(5) == [0, 1, 2, 3, 4]
    assert quantile_indices(101) == [0, 25, 50, 75, 100]


def test_devices_that_fit_are_all_picked_for_no_reason(make):
    picked = pick_devices(make.fleet(8).devices, 8, named=[3])
    assert [(one.place, one.device.rank, one.why) for one in picked] == [
        (n, n, "") for n in range(8)
    ]


def test_else_those_that_are_named_quantiles_and_outliers(make):
    # GIVEN exposed comm that grows with the rank, and three ranks that idle, each more
    devices = list(make.fleet(101).devices)
    idlers = {40: 400 * MS, 60: 900 * MS, 70: 61 * MS}
    for rank, idle in idlers.items():
        busy = {"compute": 2_100 * MS, "comm": 3 * (50 + rank) * MS}
        devices[rank] = replace(devices[rank], window=make.times(**busy, idle=idle))
    picked = {one.place: one.why for one in pick_devices(devices, 32, named=[7])}
    assert picked[7] == "named by a finding"
    assert picked[0] == "least span, least compute"
    assert picked[25] == "first quartile of span, first quartile of compute"
    assert picked[60] == "most span, most idle"
    assert picked[100] == "most compute, most exposed comm"
    # AND one idler is no quantile of anything, but far from all others; the last is not far
    assert picked[40] == "outlier: idle"
    assert 70 not in picked
    assert list(picked) == sorted(picked)


def test_there_are_no_more_than_the_limit_and_the_named_come_first(make):
    picked = pick_devices(make.fleet(100).devices, 4, named=[90, 30, 31])
    assert len(picked) == 4
    assert {30, 31, 90} < {one.place for one in picked}
