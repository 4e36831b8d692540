"""Reports made by hand, for everything that draws one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.report.made_across import collective
from traceparse.errors import Note
from traceparse.ingest import FileHealth
from traceparse.rank import KernelCounts, Times
from traceparse.run import DeviceReport, Report, RunInfo, StepReport, Summary

EPOCH = 1_700_000_000_000_000_000
MS = 1_000_000
BROWSER_REQUIRED = "TRACEPARSE_BROWSER_REQUIRED"


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

    def use(self, *, mfu=0.375, recompute=0.125, matmul=0.1, **fields: Any) -> dict[str, Any]:
        """Utilization whose waterfall adds up to one; idle takes what is left."""
        hfu = mfu + recompute
        waterfall = {
            "idle": 1 - 0.05 - 0.1 - 0.2 - matmul - hfu,
            "exposed_copy": 0.05,
            "exposed_comm": 0.1,
            "other_kernels": 0.2,
            "matmul_inefficiency": matmul,
            "recompute": recompute,
            "mfu": mfu,
        }
        known: dict[str, Any] = {
            "executed_flop": 1_234 * 10**12,
            "model_flop": 925 * 10**12,
            "recompute_flop": 309 * 10**12,
            "achieved_flop_per_s": 494.7e12,
            "hfu": hfu,
            "mfu": mfu,
            "mfu_source": "estimated",
            "waterfall": [{"name": name, "ratio": part} for name, part in waterfall.items()],
        }
        return {**known, **fields}

    def row(self, op="aten::mm", **fields: Any) -> dict[str, Any]:
        """A row of the roofline."""
        known: dict[str, Any] = {
            "shapes": "[[8192, 4096], [4096, 14336]]",
            "dtype": "bf16",
            "count": 1_234,
            "time_ns": 500 * MS,
            "flop": 10**15,
            "bytes": 10**12,
            "flop_per_s": 612.3e12,
            "bytes_per_s": 2e12,
            "bound": "compute",
            "roof_ratio": 0.619,
            "lost_ns": 190 * MS,
            "recompute_count": 0,
            "recompute_time_ns": 0,
        }
        return {"op": op, **known, **fields}

    def finding(self, severity="error", **fields: Any) -> dict[str, Any]:
        known: dict[str, Any] = {
            "code": "faster_than_peak",
            "title": "too fast",
            "evidence": "120% of the peak",
            "advice": "the device is another",
            "lost_ratio": None,
            "lost_usd": None,
        }
        return {"severity": severity, **known, **fields}

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


@pytest.fixture(autouse=True)
def _ordinary_terminal(monkeypatch):
    """The same terminal whoever runs the tests."""
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "LINES", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


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
    return make.report(devices)


@pytest.fixture
def used(make: Factory, report: Report) -> Report:
    """The same report with all that is said of its peak."""
    accelerator = {
        "id": "h100-sxm",
        "name": "NVIDIA H100 80GB HBM3",
        "source": "table of accelerators, found by name (confidence high)",
        "peak_flop_per_s": {"bf16": 989.4e12},
        "hbm_bytes_per_s": 3.35e12,
    }
    uses = (make.use(mfu=0.4, recompute=0.1), make.use(mfu=0.35, recompute=0.1))
    rows = [
        make.row(),
        make.row("aten::_scaled_dot_product_flash_attention", bound="memory", lost_ns=80 * MS),
        *(make.row(f"op{n}", bound=None, roof_ratio=None, lost_ns=None) for n in range(5)),
    ]
    lost = {"idle": 1.5, "exposed_comm": 2.25, "recompute": 0.0}
    return replace(
        report,
        run=replace(
            report.run,
            accelerator=accelerator,
            reference_dtype="bf16",
            conventions={"causal_attention": "half"},
        ),
        devices=tuple(
            replace(device, utilization=use)
            for device, use in zip(report.devices, uses, strict=True)
        ),
        utilization=make.use(),
        roofline=rows,
        findings=(),
        cost={
            "usd_per_gpu_hour": 2.5,
            "gpu_hours_per_step": 4.0,
            "usd_per_step": 10.0,
            "usd_per_million_tokens": 0.05,
            "lost_usd_per_step": lost,
        },
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, one for all tests; where there is none they are skipped, unless they must not.

    Playwright's synchronous driver can be started only once at a time.
    """
    from tools.page_browser import chromium, chromium_path  # noqa: PLC0415 - only if asked for

    if chromium_path() is None:
        reason = "no Chromium (Debian: apt-get install chromium)"
        if os.environ.get(BROWSER_REQUIRED):
            pytest.fail(f"{BROWSER_REQUIRED} is set: {reason}")
        pytest.skip(reason)
    with chromium() as found:
        yield found


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
    accelerator = {
        "id": None,
        "name": HOSTILE,
        "source": HOSTILE,
        "peak_flop_per_s": {"bf16": 1e12},
        "hbm_bytes_per_s": None,
    }
    used = tuple(replace(device, utilization=make.use()) for device in devices)
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
        run=RunInfo(None, (0,), None, HOSTILE, accelerator, "bf16", {HOSTILE: HOSTILE}),
        utilization=make.use(),
        roofline=[make.row(HOSTILE, shapes=HOSTILE, dtype=HOSTILE)],
        collectives=[collective(HOSTILE, process_group=HOSTILE, dtype=HOSTILE)],
        findings=[
            make.finding(severity, title=HOSTILE, evidence=HOSTILE, advice=HOSTILE)
            for severity in ("error", "warning")
        ],
        summary=replace(report.summary, verdict=HOSTILE, basis=HOSTILE),
        notes=(Note(HOSTILE, HOSTILE, file=HOSTILE),),
        files=(health,),
        devices=used,
    )
