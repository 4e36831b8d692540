"""Copies of all files by direction and memory, worked out by hand."""

from __future__ import annotations

from traceparse.rank import CopyWork


def work(direction, memory, time_ns, num_bytes: int | None = 8, exposed_ns: int | None = 1):
    return CopyWork(direction, memory, 2, time_ns, num_bytes, exposed_ns)


def test_files_add_up_and_what_one_does_not_know_nobody_does(make):
    device = make.device(make.step(1, make.times(compute=1)))
    report = make.report(
        make.digest(
            0, device, copies=(work("HtoD", "pinned", 30), work("memset", "device", 50))
        ),
        make.digest(
            1,
            device,
            world_size=2,
            copies=(
                work("HtoD", "pinned", 40, num_bytes=None),
                work("HtoD", "pageable", 5, exposed_ns=None),
            ),
        ),
    )
    assert [list(row.values()) for row in report.copies] == [
        ["HtoD", "pinned", 4, 70, None, 2],
        ["memset", "device", 2, 50, 8, 1],
        ["HtoD", "pageable", 2, 5, 8, None],
    ]
    assert make.report(make.digest(0, device)).copies == []
