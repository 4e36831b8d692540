"""Reports made by hand, for everything that draws one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from traceparse.errors import Note
from traceparse.ingest import FileHealth
from traceparse.rank import KernelCounts, Times
from traceparse.run import DeviceReport, Report, RunInfo, StepReport, Summary

EPOCH = 1_700_000_000_000_000_000
MS = 1_000_000
NOT_COMPUTED = ("utilization", "collectives", "clock", "scaling_loss", "roofline", "findings")


class Factory:
    """Builds the pieces of a report; what is not given is small and healthy."""

    def times(self, start=EPOCH, *, compute=0, comm=0, overlap=0, copy=0, idle=0) -> Times:
        """A partition; ``copy`` is all exposed, ``comm`` all but ``overlap``."""
        busy = compute + comm - overlap + copy
        return Times(
            start_ns=start,
            end_ns=start + busy + idle,
            span_ns=busy + idle,
            busy_ns=busy,
            compute_ns=compute,
            comm_ns=comm,
            copy_ns=copy,
            overlap_ns=overlap,
            exposed_comm_ns=comm - overlap,
            exposed_copy_ns=copy,
            idle_ns=idle,
        )

    def step(self, number, times=None, *, open_ended=False) -> StepReport:
        name = None if number is None else f"ProfilerStep#{number}"
        return StepReport(step=number, name=name, open_ended=open_ended, times=times)

    def device(self, rank, device, window, steps=(), kernels=None) -> DeviceReport:
        counts = kernels or KernelCounts(
            count=1_234,
            time_ns=5 * MS,
            unlinked_count=7,
            unlinked_time_ns=MS,
            unattributed_count=9,
            unattributed_time_ns=2 * MS,
        )
        return DeviceReport(rank, device, window, tuple(steps), counts)

    def file(self, path="trace.json.gz", **fields: Any) -> FileHealth:
        known: dict[str, Any] = {
            "rank": 0,
            "rank_source": "distributedInfo",
            "layout": "K-new",
            "bytes": 12_345_678,
            "events": 4_321,
            "gpu_events": 1_234,
        }
        return FileHealth(path=path, **{**known, **fields})

    def summary(self, times, verdict="compute 60.0%, exposed comm 20.0%", **fields) -> Summary:
        span = times.span_ns
        known: dict[str, Any] = {
            "basis": "complete_steps",
            "num_device_steps": 4,
            "compute_ratio": times.compute_ns / span if span else None,
            "exposed_comm_ratio": times.exposed_comm_ns / span if span else None,
            "exposed_copy_ratio": times.exposed_copy_ns / span if span else None,
            "idle_ratio": times.idle_ns / span if span else None,
        }
        return Summary(verdict=verdict, times=times, **{**known, **fields})

    def report(self, devices, **fields: Any) -> Report:
        """A report of these devices, without notes unless given."""
        whole = devices[0].window if devices else self.times()
        ranks = tuple(sorted({d.rank for d in devices if d.rank is not None}))
        known: dict[str, Any] = {
            "generator": {"name": "traceparse", "version": "0.1.0"},
            "run": RunInfo(len(ranks), ranks, (), "nccl"),
            "summary": self.summary(whole),
            "notes": (),
            "files": (self.file(),),
        }
        return Report(devices=tuple(devices), **{**known, **fields})

    def fleet(self, ranks, steps=3, **fields: Any) -> Report:
        """A run of many ranks: each has a little more exposed comm than the one before."""
        devices = []
        for rank in range(ranks):
            parts = {"compute": 700 * MS, "comm": (50 + rank) * MS, "idle": 20 * MS}
            each = [self.times(EPOCH + n * 900 * MS, **parts) for n in range(steps)]
            window = self.times(**{name: steps * value for name, value in parts.items()})
            marked = [self.step(n, t, open_ended=n == steps - 1) for n, t in enumerate(each)]
            devices.append(self.device(rank, rank % 8, window, marked))
        return self.report(devices, **fields)


@pytest.fixture
def make() -> Factory:
    """The factory."""
    return Factory()


@pytest.fixture
def report(make: Factory) -> Report:
    """Two ranks, three steps; step 5 is open-ended, and rank 1 did nothing in step 4."""
    step3 = make.times(
        compute=600 * MS, comm=300 * MS, overlap=100 * MS, copy=50 * MS, idle=150 * MS
    )
    step4 = make.times(compute=1_000_000_400, comm=200 * MS, copy=2_345_678, idle=80_380_066)
    step5 = make.times(compute=90 * MS, comm=10 * MS)
    window = make.times(compute=1_690_000_400, comm=510 * MS, overlap=100 * MS, copy=52_345_678)
    late = make.times(compute=450 * MS, comm=500 * MS, overlap=50 * MS, copy=0, idle=99 * MS)
    devices = (
        make.device(
            0,
            0,
            window,
            [make.step(3, step3), make.step(4, step4), make.step(5, step5, open_ended=True)],
        ),
        make.device(
            1, 1, late, [make.step(3, late), make.step(4), make.step(5, step5, open_ended=True)]
        ),
    )
    notes = tuple(
        Note("not_computed", f"{name}: not computed by this version") for name in NOT_COMPUTED
    )
    return make.report(devices, notes=notes)


HOSTILE = (
    "<script>alert('x')</script> [red]loud[/red] \x1b[31mred\x1b[0m \x9b2J "
    '\u202egnp.exe " onload="x \' \n{{ 7*7 }} \udcff'
)


@pytest.fixture
def hostile_text() -> str:
    """Text that tries to be something else wherever it is shown."""
    return HOSTILE


@pytest.fixture
def hostile(make: Factory, report: Report) -> Report:
    """The same report where every text that a trace controls is hostile."""
    devices = (
        report.devices[0],
        replace(
            report.devices[1],
            rank=None,
            device="cpu",
            steps=tuple(replace(step, name=HOSTILE) for step in report.devices[1].steps),
        ),
        make.device(2, HOSTILE, report.devices[1].window),
    )
    health = make.file(
        HOSTILE,
        rank=None,
        rank_source=HOSTILE,
        layout=HOSTILE,
        skipped={"python_function": 2_142, "time_missing": 3, HOSTILE: 1},
        repaired={HOSTILE: 2},
        truncated=True,
    )
    return replace(
        report,
        run=RunInfo(None, (0,), None, HOSTILE),
        summary=replace(report.summary, verdict=HOSTILE, basis=HOSTILE),
        notes=(
            *report.notes,
            Note(HOSTILE, HOSTILE, file=HOSTILE),
            Note("not_computed", HOSTILE),
        ),
        files=(health,),
        devices=devices,
    )
