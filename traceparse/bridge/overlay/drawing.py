"""Drawing a job: its processes and tracks, then rank after rank what its trace has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from traceparse.bridge.overlay.collectives import draw_collectives
from traceparse.bridge.overlay.device import draw_events
from traceparse.bridge.overlay.file import header
from traceparse.bridge.overlay.findings import draw_findings
from traceparse.bridge.overlay.header import fields
from traceparse.bridge.overlay.host import draw_host, draw_launches
from traceparse.bridge.overlay.job import Device, Drawn, Job
from traceparse.bridge.overlay.lines import Names
from traceparse.bridge.overlay.partition import sets_of
from traceparse.bridge.overlay.plan import COUNTERS, PYTHON, Plan, choices, host_layer
from traceparse.bridge.overlay.rates import draw_counters
from traceparse.bridge.overlay.rows import Ids, Rows
from traceparse.bridge.overlay.steps import Marked, StepPlaces
from traceparse.bridge.overlay.time import draw_partition, draw_steps
from traceparse.engine import Explored, Progress
from traceparse.errors import InputError
from traceparse.ingest import FRAME
from traceparse.rank import RankDigest, public_tables
from traceparse.run import DeviceReport
from traceparse.run.measure import Part

__all__ = ["Drawing"]

_MOST_BINS: Final = 1000  # of a device
_LEAST_BINS: Final = 8
_SAMPLE_BYTES: Final = 480  # of all counters, in a bin
_HEADROOM: Final = 4096  # bytes for what the header says of what was left out


class Drawing:
    """One attempt at drawing a job: what is drawn is put aside, until it is known what fits."""

    def __init__(
        self,
        found: Explored,
        chosen: Sequence[Sequence[int]],
        steps: range | None,
        max_bytes: int,
        *,
        has_details: bool,
    ) -> None:
        self._found, self._chosen = found, chosen
        parts = found.assembled.parts
        devices = [parts[place].device for places in chosen for place in places]
        of_job = StepPlaces(
            step.step
            for device in devices
            for step in device.steps
            if step.step is not None and step.times
        )
        open_ended = {
            step.step for device in devices for step in device.steps if step.open_ended
        }
        complete = [n for n, step in enumerate(of_job.numbers, 1) if step not in open_ended]
        asked = None if steps is None else of_job.window(steps)
        if asked and asked.last < asked.first:
            raise InputError(
                "no rank that is to be drawn has any of these steps; change --steps or --ranks"
            )
        has_python = any(parts[places[0]].digest.health.skipped.get(FRAME) for places in chosen)
        ordered = choices(of_job, asked, max(complete, default=0), has_python=has_python)
        plan = Plan(ordered, max_bytes, has_details=has_details)
        self.job = Job(found.assembled, of_job, Names(), plan)
        self.num_bins = min(
            max(max_bytes // 10 // (_SAMPLE_BYTES * len(devices)), _LEAST_BINS), _MOST_BINS
        )

    def draw(self, progress: Progress | None) -> bool:
        """Put all aside; say whether any of it may be written."""
        job, plan = self.job, self.job.plan
        job.ranks = [self._rank(number, places) for number, places in enumerate(self._chosen)]
        plan.reserve(len(header(fields(job, 0, self.num_bins))) + _HEADROOM)
        draw_findings(job)
        draw_collectives(job)
        for rank in job.ranks:
            for device in rank.devices:
                draw_steps(job, device)
        digests = [rank.devices[0].part.digest for rank in job.ranks]
        if progress:
            progress.start(len(digests), sum(one.health.bytes for one in digests))
        for rank, digest in zip(job.ranks, digests, strict=True):
            if plan.choice is None:
                return False
            self._draw_rank(rank, digest, progress)
            if progress:
                progress.file_done()
        job.put_names()
        return plan.choice is not None

    def _rank(self, number: int, places: Sequence[int]) -> Drawn:
        names = self.job.names
        devices = tuple(self._device(place) for place in places)
        part = devices[0].part
        process = part.digest.process
        host = names.process(
            f"{_called(part)} host", f"process {process}" if process else "host"
        )
        return Drawn(number, devices, host)

    def _device(self, place: int) -> Device:
        names = self.job.names
        part = self._found.assembled.parts[place]
        report: DeviceReport = self._found.assembled.report.devices[place]
        accelerator = self._found.assembled.measured.peaks[place].name
        pid = names.process(
            f"{_called(part)} device {part.device.device}",
            ", ".join(
                filter(None, (_called(part), f"device {part.device.device}", accelerator))
            ),
        )
        return Device(
            place=place,
            part=part,
            report=report,
            pid=pid,
            number=part.device.device if len(self._chosen) == 1 else pid,
            steps=names.thread(pid, "steps"),
            partition=names.thread(pid, "where the time went"),
            findings=names.thread(pid, "findings"),
            collectives=[names.thread(pid, "collectives")],
            marked=tuple(
                Marked(step.step, step.times.start_ns, step.times.end_ns)
                for step in part.device.steps
                if step.times and step.step is not None
            ),
        )

    def _draw_rank(self, rank: Drawn, digest: RankDigest, progress: Progress | None) -> None:
        job = self.job
        is_python_drawn = job.plan.wants_layer(host_layer(PYTHON))
        trace = self._found.trace(
            digest,
            extras=("python_functions",) if is_python_drawn else (),
            on_bytes=progress.advance if progress else None,
        )
        sets = sets_of(trace)
        tables = public_tables(trace)
        ids = Ids(rank.place, is_alone=len(job.ranks) == 1)
        table = Rows(tables["device_events"])
        drawn = []
        for device in rank.devices:
            draw_partition(job, device, sets[device.name])
            drawn.append((device, draw_events(job, device, table, ids), table))
            if job.plan.wants_layer(COUNTERS):
                draw_counters(job, device, sets[device.name], table, self.num_bins)
        host, tids = draw_host(job, rank, trace, tables, ids)
        draw_launches(job, rank, host, tids, drawn)


def _called(part: Part) -> str:
    """Return what to call whose trace it is."""
    return part.digest.health.path if part.rank is None else f"rank {part.rank}"
