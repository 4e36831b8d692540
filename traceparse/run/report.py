"""The report: the contract of ``report.json``, field for field.

Pure data. Whatever draws it lives in ``traceparse.report``; whatever computes it, in the
other modules of this room. What is unknown is ``None``, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from traceparse.errors import Note
from traceparse.ingest import FileHealth
from traceparse.rank import KernelCounts, Times
from traceparse.run.saving import FORMATS, save, shown_as_html

__all__ = ["DeviceReport", "Report", "RunInfo", "StepReport", "Summary"]

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Who took part: field ``run`` of the contract.

    ``facts`` (an addition to it) are what capture recorded of the job, as far as all ranks
    agree (:func:`traceparse.run.facts.facts_of`); ``None`` where no trace has any.
    """

    world_size: int | None
    ranks: tuple[int, ...]
    missing_ranks: tuple[int, ...] | None
    backend: str | None
    accelerator: Mapping[str, Any] | None = None
    reference_dtype: str | None = None
    conventions: Mapping[str, str] | None = None
    facts: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class StepReport:
    """One step on one device: STEP of the contract.

    ``times`` is ``None`` for a step that launched nothing on the device; in ``to_dict`` its
    fields stand beside the others, as the contract has them. ``contention_ns`` (an addition)
    is what its kernels took longer beside collectives than alone, as far as that is known.
    """

    step: int | None
    name: str | None
    open_ended: bool
    times: Times | None
    executed_flop: int | None = None
    model_flop: int | None = None
    recompute_flop: int | None = None
    achieved_flop_per_s: float | None = None
    hfu: float | None = None
    mfu: float | None = None
    communication_ns: Mapping[str, int] | None = None
    waterfall: Sequence[Mapping[str, Any]] | None = None
    contention_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One device of one rank: an entry of ``devices``; without accelerator it is ``"cpu"``.

    ``utilization`` is over its steps among those of the summary (an addition to the contract),
    as is ``host`` (another): what its host did while it idled, as :attr:`Report.host`.
    ``num_steps`` (another) counts the steps of its trace, also where only some are reported.
    """

    rank: int | None
    device: int | str
    window: Times
    steps: tuple[StepReport, ...]
    kernels: KernelCounts
    utilization: Mapping[str, Any] | None = None
    host: Mapping[str, int] | None = None
    num_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The run in one line and one sum: field ``summary`` (an addition to the contract).

    ``times`` adds up the device-steps named by ``basis``: ``complete_steps`` (steps that are
    not open-ended and present on every rank), ``all_steps`` where there is none, ``windows``
    where the traces have no step markers. Its ``start_ns`` and ``end_ns`` are those of the
    first and the last of them; ``span_ns`` is a sum of spans, not ``end_ns - start_ns``.
    ``communication_ns`` is what their exposed communication was, by the terms of
    ``scaling_loss``; ``None`` where waiting and transfer cannot be told apart.
    ``bound`` says which of ``compute``, ``memory``, ``communication`` and ``host`` costs most
    of them (``by``), and its share (``ratio``); both are ``None`` where that is not known. The
    verdict says so in a sentence, ``detail`` how long a mean step is and what it is spent on.
    """

    verdict: str
    basis: str
    num_device_steps: int
    times: Times
    compute_ratio: float | None
    exposed_comm_ratio: float | None
    exposed_copy_ratio: float | None
    idle_ratio: float | None
    communication_ns: Mapping[str, int] | None = None
    bound: Mapping[str, Any] | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Where the time of one job went. Attributes and units as in the report contract.

    ``cost`` (an addition to it) is ``None`` where no price was given; ``what_if`` (another) has
    how long a step would take under other conditions; ``bands`` (another) which numbers
    are good, by sources that are named; ``top_kernels`` (another) what took most of the time of
    all devices (:func:`traceparse.run.top_kernels.top_kernels`). ``host``
    (another) says what hosts did while devices idled: ``data_loader_ns``, ``sync_ns``,
    ``launch_ns`` and ``unknown_ns`` (:mod:`traceparse.rank.idle`) add up to ``idle_ns`` of the
    summary; ``None`` where that is not known. ``copies`` (another) are copies and memsets of
    whole files by direction and memory (:func:`traceparse.run.copies.copies`). ``hta``
    (another) is what HTA finds, where it was asked (:mod:`traceparse.bridge.hta.results`).

    Examples
    --------
    >>> report = traceparse.analyze("traces/")
    >>> times = report.devices[0].steps[0].times
    >>> times.compute_ns + times.exposed_comm_ns + times.exposed_copy_ns + times.idle_ns
    78310551
    >>> times.span_ns
    78310551

    The same names are those of ``report.json``:

    >>> report.to_dict()["devices"][0]["steps"][0]["span_ns"]
    78310551
    >>> [path.name for path in report.save("report/", formats=["html", "json"])]
    ['report.html', 'report.json']
    """

    generator: Mapping[str, str]
    run: RunInfo
    summary: Summary
    notes: tuple[Note, ...]
    files: tuple[FileHealth, ...]
    devices: tuple[DeviceReport, ...]
    utilization: Mapping[str, Any] | None = None
    collectives: Sequence[Mapping[str, Any]] | None = None
    clock: Mapping[str, Any] | None = None
    scaling_loss: Mapping[str, Any] | None = None
    what_if: Mapping[str, Any] | None = None
    roofline: Sequence[Mapping[str, Any]] | None = None
    top_kernels: Sequence[Mapping[str, Any]] | None = None
    host: Mapping[str, int] | None = None
    copies: Sequence[Mapping[str, Any]] | None = None
    findings: Sequence[Mapping[str, Any]] | None = None
    cost: Mapping[str, Any] | None = None
    bands: Mapping[str, Mapping[str, Any]] | None = None
    hta: Mapping[str, Any] | None = None
    schema_version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Return the report as ``report.json`` has it: plain dicts, lists, numbers, text."""
        plain: dict[str, Any] = {"schema_version": self.schema_version}
        plain.update(_plain(self))
        return plain

    def save(self, directory: str | Path, *, formats: Sequence[str] = FORMATS) -> list[Path]:
        """Write the report into a directory in some formats, and return the files' paths.

        Formats are the entry points of group ``traceparse.renderers``: functions from a report
        to the content of ``report.<format>``, or to several files by name. Files appear whole
        or not at all.

        Raises
        ------
        MissingExtraError
            No installed package renders one of the formats.
        """
        return save(self, directory, formats)

    def _repr_html_(self) -> str | None:
        """Show the report in a notebook."""
        return shown_as_html(self, "report")


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON is of any type
    if isinstance(value, StepReport):
        return _plain_step(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _plain_step(step: StepReport) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for field in fields(step):
        if field.name == "times":
            times = step.times
            plain.update(
                {part.name: times and getattr(times, part.name) for part in fields(Times)}
            )
        else:
            plain[field.name] = getattr(step, field.name)
    return plain
