"""What a job worked, against what its devices can do: utilization, roofline, findings, cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.errors import Note
from traceparse.rank import DeviceDigest, RankDigest, StepTimes, Times
from traceparse.run.across import Across
from traceparse.run.asked import Asked
from traceparse.run.bands import bands_of
from traceparse.run.basis import Basis
from traceparse.run.conventions import conventions_of
from traceparse.run.cost import cost_of
from traceparse.run.findings import impossible, in_order, most_reached
from traceparse.run.idle import host_of
from traceparse.run.model import fact_of, model_of, num_devices
from traceparse.run.peaks import PeakFinder, Peaks, about_ceiling, accelerator_of
from traceparse.run.report import DeviceReport, StepReport
from traceparse.run.roofline import rows_of
from traceparse.run.scaling_loss import scaling_loss
from traceparse.run.stragglers import Straggler, stragglers
from traceparse.run.tally import Split, Tally, add_up, tally_of
from traceparse.run.unknowns import about_attribution, about_model, about_use
from traceparse.run.utilization import Use, reference_dtype
from traceparse.run.what_if import losses_of, what_if

__all__ = ["Measured", "Part", "measure"]


@dataclass(frozen=True, slots=True)
class Part:
    """One device of one trace, and those of its steps that are reported on."""

    digest: RankDigest
    device: DeviceDigest
    steps: tuple[StepTimes, ...]

    @property
    def rank(self) -> int | None:
        """Whose trace it is."""
        return self.digest.health.rank


@dataclass(frozen=True, slots=True)
class Measured:
    """The fields of the report that follow from work and peaks.

    ``peaks`` are those of each part; ``stragglers`` are what their findings were made of.
    """

    accelerator: Mapping[str, Any] | None
    reference_dtype: str | None
    conventions: Mapping[str, str] | None
    devices: tuple[DeviceReport, ...]
    utilization: Mapping[str, Any]
    roofline: Sequence[Mapping[str, Any]] | None
    findings: Sequence[Mapping[str, Any]]
    cost: Mapping[str, Any] | None
    scaling_loss: Mapping[str, Any] | None
    what_if: Mapping[str, Any] | None
    communication_ns: Mapping[str, int] | None
    counted_ns: int | None
    most_reached: float | None
    bands: Mapping[str, Mapping[str, Any]]
    host: Mapping[str, int] | None
    notes: tuple[Note, ...]
    peaks: tuple[Peaks, ...]
    stragglers: tuple[Straggler, ...]


def measure(
    parts: Sequence[Part],
    basis: Basis,
    asked: Asked,
    *,
    world_size: int | None,
    together: Across | None = None,
) -> Measured:
    """Measure all parts of a job, and the job over the device-steps of its basis."""
    job = _Job(parts, basis, asked, world_size, together)
    use = job.use_of(add_up(tally for tally in job.chosen if tally.num_steps))
    uses = [job.use_of(tally) for tally in job.chosen]
    rows = rows_of(job.digests, job.peaks_by_digest())
    accelerator, about_kinds = accelerator_of(job.peaks)
    utilization = use.utilization()
    times = job.times_of(basis)
    waited_for = stragglers(together, times, [part.digest.operators for part in parts])
    loss = scaling_loss(job.chosen) if together else None
    again = what_if(
        [part.device for part in parts], times, together, waited_for, losses_of(times, loss)
    )
    return Measured(
        accelerator=accelerator,
        reference_dtype=job.reference,
        conventions=job.conventions(),
        devices=tuple(map(job.device_report, range(len(parts)), uses, basis.places)),
        utilization=utilization,
        roofline=[row.plain() for row in rows] if rows or job.tells_work else None,
        findings=in_order(
            impossible(use, [(p.rank, u) for p, u in zip(parts, uses, strict=True)], rows),
            (one.finding for one in again.stragglers),
        ),
        cost=job.cost(use.tally, utilization["waterfall"]),
        scaling_loss=loss,
        what_if=again.field,
        communication_ns=use.communication_ns,
        counted_ns=use.tally.counted_ns,
        most_reached=most_reached(use),
        bands=job.bands(use, loss),
        host=host_of(
            part.steps[place]
            for part, places in zip(parts, basis.places, strict=True)
            for place in places
        ),
        notes=(*job.notes(use, about_kinds), *again.notes),
        peaks=tuple(job.peaks),
        stragglers=tuple(again.stragglers),
    )


class _Job:
    """The parts of a job with all that they are measured by."""

    def __init__(
        self,
        parts: Sequence[Part],
        basis: Basis,
        asked: Asked,
        world_size: int | None,
        together: Across | None,
    ) -> None:
        self._parts, self._asked, self._world_size = parts, asked, world_size
        self._together = together
        self._finder = PeakFinder(asked)
        self.peaks = [self._finder.of(part.digest, part.device) for part in parts]
        split = together if together is not None and together.is_split else None
        self._tallies = [
            [tally_of(step, own, _split(split, place, step)) for step in part.steps]
            for place, (part, own) in enumerate(zip(parts, self.peaks, strict=True))
        ]
        self.chosen = [
            add_up(own[place] for place in places)
            for own, places in zip(self._tallies, basis.places, strict=True)
        ]
        self.digests = list({id(part.digest): part.digest for part in parts}.values())
        facts = [digest.header.facts for digest in self.digests]
        self._num_devices = num_devices(world_size, len(self.digests), len(parts))
        self._model, self._notes = model_of(
            asked, facts, self._num_devices, world_size=world_size
        )
        recorded = fact_of("tokens_per_step", facts, self._notes)
        self._tokens = asked.tokens_per_step or recorded
        told = [tally for tally in self.chosen if tally.works is not None]
        self.reference = reference_dtype(add_up(told))
        self._is_assumed = False
        given = list(asked.peak_flop_per_s)
        if self.reference is None and self._model.flop is not None and len(given) == 1:
            self.reference, self._is_assumed = given[0], True

    @property
    def tells_work(self) -> bool:
        """Does any trace tell what its operators worked?"""
        return any(tally.works is not None for own in self._tallies for tally in own)

    def use_of(self, tally: Tally) -> Use:
        return Use(tally, self._model, self.reference)

    def times_of(self, basis: Basis) -> list[list[Times]]:
        """Return the times of each device's steps that the job is judged by."""
        return [
            [times for place in places if (times := part.steps[place].times) is not None]
            for part, places in zip(self._parts, basis.places, strict=True)
        ]

    def peaks_by_digest(self) -> list[list[Peaks]]:
        owners: dict[int, list[Peaks]] = {}
        for part, own in zip(self._parts, self.peaks, strict=True):
            owners.setdefault(id(part.digest), []).append(own)
        return list(owners.values())

    def conventions(self) -> dict[str, str] | None:
        chosen = [choice for digest in self.digests for choice in digest.conventions]
        if not chosen and not self.tells_work and self._model.convention is None:
            return None
        return conventions_of(chosen, self._model.convention)

    def device_report(self, place: int, use: Use, steps: Sequence[int]) -> DeviceReport:
        """Return a device, measured over some of its steps."""
        part = self._parts[place]
        return DeviceReport(
            rank=part.rank,
            device=part.device.device,
            window=part.device.window,
            steps=tuple(map(self._step_report, part.steps, self._tallies[place])),
            kernels=part.device.kernels,
            utilization=use.utilization() if use.tally.num_steps else None,
            num_steps=sum(step.times is not None for step in part.device.steps),
            host=host_of(part.steps[at] for at in steps),
        )

    def _step_report(self, step: StepTimes, tally: Tally) -> StepReport:
        use = self.use_of(tally)
        return StepReport(
            step.step,
            step.name,
            step.open_ended,
            step.times,
            **use.figures(),
            communication_ns=use.communication_ns,
            waterfall=use.waterfall(),
            # of half nanoseconds, as medians may be
            contention_ns=None if step.times is None else (step.twice_contention_ns + 1) // 2,
        )

    def cost(
        self, tally: Tally, waterfall: Sequence[Mapping[str, Any]] | None
    ) -> dict[str, Any] | None:
        price = self._asked.usd_per_gpu_hour
        if price is None:
            return None
        return cost_of(
            tally,
            waterfall,
            usd_per_gpu_hour=price,
            devices=self._num_devices,
            tokens_per_step=self._tokens,
        )

    def bands(self, use: Use, loss: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
        """Judge MFU, as far as it is of the data sheet's peak, and what scaling costs."""
        tally = use.tally
        values = {name: value for name, value in (loss or {}).items() if name != "step_ns"}
        if self._together is not None and tally.span_ns:
            values["exposed_comm_ratio"] = tally.exposed_comm_ns / tally.span_ns
        if self._asked.ceiling == "spec" and use.mfu is not None:
            values["mfu"] = float(use.mfu)
        return bands_of(values, reference_dtype=self.reference, maximum=most_reached(use))

    def notes(self, use: Use, about_kinds: Sequence[Note]) -> Iterator[Note]:
        silent = [
            part.rank
            for part, tally in zip(self._parts, self.chosen, strict=True)
            if tally.works is None
        ]
        yield from self._finder.notes
        yield from about_kinds
        yield from about_ceiling(self.peaks, self._asked)
        yield from dict.fromkeys(self._notes)
        yield from about_use(use, silent)
        yield from about_model(
            use,
            is_marked=any(step.step is not None for part in self._parts for step in part.steps),
            world_size=self._world_size,
            is_assumed=self._is_assumed,
        )
        yield from about_attribution([part.device.kernels for part in self._parts])


def _split(split: Across | None, place: int, step: StepTimes) -> Split | None:
    """Say what a step's exposed communication was; ``None`` if that is not known of the run."""
    if split is None:
        return None
    return split.exposure_in(place, step) or (0, 0, 0, 0)
