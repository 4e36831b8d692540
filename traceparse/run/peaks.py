"""Whose peak? What each device of a job can do at most, by the table or by the user's word.

What a trace says of its device is identified (:mod:`traceparse.work.identify`), never guessed:
of a device that is not known, FLOP/s are shown, HFU and MFU are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traceparse.errors import Note
from traceparse.rank import DeviceDigest, RankDigest
from traceparse.run.asked import Asked
from traceparse.work import Identified, identify
from traceparse.work.identify import HOW_TO_ADD

__all__ = ["CPU", "MATRIX_FP64", "PeakFinder", "Peaks", "about_ceiling", "accelerator_of"]

CPU = "cpu"
MATRIX_FP64 = "fp64_tensor"
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """What one device can do at most. Devices of which all of it is the same share one object.

    ``flop_per_s`` by dtype is what utilization is measured against; ``spec_flop_per_s`` is
    what nothing can exceed (the same, but for ``--ceiling mamf``), ``mamf_flop_per_s`` the
    fastest matrix products that anybody measured. ``name`` is what a trace calls the device.
    """

    id: str | None
    name: str
    source: str
    flop_per_s: Mapping[str, float]
    spec_flop_per_s: Mapping[str, float]
    mamf_flop_per_s: Mapping[str, float]
    bytes_per_s: float | None

    @property
    def words(self) -> str:
        """What to call it in a message."""
        return self.id or self.name or "a device without a name"


class PeakFinder:
    """Finds the peaks of one device after the other, and remembers what was doubtful."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._found: dict[tuple[object, ...], Peaks] = {}
        self._notes: dict[Note, None] = {}

    @property
    def notes(self) -> list[Note]:
        """What is doubtful, each text once, however many ranks it is true of."""
        return list(self._notes)

    def of(self, digest: RankDigest, device: DeviceDigest) -> Peaks:
        """Return what a device can do at most; no peak is there where that is not known."""
        told = _told(digest, device)
        given = self._given(device)
        identified = self._identified(told)
        name = next((text for entry in told if (text := _name(entry))), "")
        if device.device == CPU:
            name = CPU
            if self._asked.accelerator is None:
                identified = None
        if identified is None or identified.accelerator is None:
            if not given:
                self._say_unknown(name, told, identified)
        else:
            self._say_doubts(identified, given)
        return self._interned(self._peaks(name, identified, given))

    def _given(self, device: DeviceDigest) -> Mapping[str, float]:
        """Return the peaks that the user gave for such a device."""
        if not self._asked.is_host_peak or device.device == CPU:
            return self._asked.peak_flop_per_s
        self._note(
            "host_peak_unused",
            "--peak measured is the peak of this host's processor, and these traces are of "
            "accelerators, so it is not used for them",
        )
        return {}

    def _identified(self, told: Sequence[Mapping[str, Any]]) -> Identified | None:
        """Identify a device by all entries that may be it, if they agree."""
        known = self._asked.known
        found = [identify(entry, known) for entry in told]
        same = {(one.id, one.scale, one.hbm_bytes_per_s) for one in found}
        first = found[0] if len(same) == 1 else None
        named = self._asked.accelerator
        if named is None:
            return first
        if first is not None and first.id == named.id:
            return first
        if first is not None and first.id is not None:
            self._note(
                "accelerator_contradicted",
                f"the traces tell of {first.id}, but --accelerator names {named.id}: its peaks "
                f"are used",
            )
        return Identified(named, hbm_bytes_per_s=named.hbm_bytes_per_s())

    def _say_unknown(
        self, name: str, told: Sequence[Mapping[str, Any]], identified: Identified | None
    ) -> None:
        if name == CPU:
            self._note(
                "peak_unknown",
                "no table has the peak of a host, so HFU and MFU are unknown: give --peak "
                "measured where the job ran on this machine, else --peak fp32=TFLOPS",
            )
        elif identified is not None:
            for doubt in identified.doubts:
                self._note("peak_unknown", doubt)
        elif told:
            names = ", ".join(sorted({repr(_name(entry)) for entry in told})[:4])
            self._note(
                "peak_unknown",
                f"the traces name several devices ({names}) and do not tell which one ran; "
                f"{HOW_TO_ADD}",
            )
        else:
            self._note(
                "peak_unknown",
                f"the traces do not tell which device they are of; {HOW_TO_ADD}",
            )

    def _say_doubts(self, identified: Identified, given: Mapping[str, float]) -> None:
        entry = identified.accelerator
        assert entry is not None
        if entry.needs_user_override and identified.how is None:
            if not given:
                self._note(
                    "peak_unknown",
                    f"--accelerator {entry.id} names an entry without a peak that can be "
                    f"trusted (`traceparse accelerators {entry.id}` says why), which naming it "
                    f"does not change: give --peak bf16=TFLOPS too",
                )
            return
        for doubt in identified.doubts:
            # a peak that the user gave is what such a doubt asks for
            if not (given and doubt.endswith(HOW_TO_ADD)):
                self._note("accelerator_doubtful", f"{entry.id}: {doubt}")

    def _note(self, code: str, message: str) -> None:
        self._notes[Note(code, message)] = None

    def _peaks(
        self, name: str, identified: Identified | None, given: Mapping[str, float]
    ) -> Peaks:
        entry = identified and identified.accelerator
        table: dict[str, float] = {}
        mamf: dict[str, float] = {}
        if identified is not None:
            table |= {str(dtype): peak for dtype, peak in identified.peak_flop_per_s.items()}
            mamf |= {str(dtype): peak for dtype, peak in identified.mamf_flop_per_s.items()}
        if MATRIX_FP64 in table:  # only products are counted, and those run there
            table["fp64"] = max(table.get("fp64", 0), table[MATRIX_FP64])
        mamf = {dtype: rate for dtype, rate in mamf.items() if dtype not in given}
        spec = {**table, **given}
        used = {**spec, **mamf} if self._asked.ceiling == "mamf" else spec
        return Peaks(
            id=entry.id if entry else None,
            name=name or (entry.names[0] if entry else ""),
            source=self._source(identified, given),
            flop_per_s=used,
            spec_flop_per_s=spec,
            mamf_flop_per_s=mamf,
            bytes_per_s=identified.hbm_bytes_per_s if identified else None,
        )

    def _source(self, identified: Identified | None, given: Mapping[str, float]) -> str:
        said = []
        if identified is not None and identified.accelerator is not None:
            how = identified.how or "name, given by the user"
            certain = identified.confidence or identified.accelerator.confidence
            said.append(f"table of accelerators, found by {how} (confidence {certain})")
        if given:
            said.append(f"{', '.join(given)}: {self._asked.peak_source}")
        return "; ".join(said) or "unknown"

    def _interned(self, peaks: Peaks) -> Peaks:
        key = (
            *(peaks.id, peaks.name, peaks.source, peaks.bytes_per_s),
            *(tuple(sorted(peaks.flop_per_s.items())),),
            *(tuple(sorted(peaks.mamf_flop_per_s.items())),),
        )
        return self._found.setdefault(key, peaks)


def _told(digest: RankDigest, device: DeviceDigest) -> Sequence[Mapping[str, Any]]:
    """Return what the header says of a device: its own entry, else all that it may be."""
    if device.device == CPU:
        return ()
    entries = digest.header.devices
    own = [entry for entry in entries if str(entry.get("id")) == str(device.device)]
    return own or entries


def _name(entry: Mapping[str, Any]) -> str:
    name = entry.get("name")
    return " ".join(name.split())[:_LONGEST_NAME] if isinstance(name, str) else ""


def accelerator_of(found: Sequence[Peaks]) -> tuple[dict[str, Any] | None, list[Note]]:
    """Say which accelerator the whole job ran on, if it is one: ``run.accelerator``."""
    kinds = list({_kind(peaks): peaks for peaks in found}.values())
    if len(kinds) > 1:
        words = ", ".join(dict.fromkeys(peaks.words for peaks in kinds[:4]))
        message = (
            f"the job ran on several kinds of accelerators ({words}): each device is measured "
            f"against its own peaks"
        )
        return None, [Note("accelerators_differ", message)]
    if not kinds or (kinds[0].id is None and not kinds[0].flop_per_s):
        return None, []
    (peaks,) = kinds
    return {
        "id": peaks.id,
        "name": peaks.name,
        "source": peaks.source,
        "peak_flop_per_s": dict(peaks.flop_per_s),
        "hbm_bytes_per_s": peaks.bytes_per_s,
    }, []


def _kind(peaks: Peaks) -> tuple[object, ...]:
    return peaks.id, peaks.bytes_per_s, tuple(sorted(peaks.flop_per_s.items()))


def about_ceiling(found: Sequence[Peaks], asked: Asked) -> Iterator[Note]:
    """Say what ``--ceiling mamf`` makes of HFU and MFU, and whose maximum nobody measured."""
    if asked.ceiling != "mamf":
        return
    for peaks in dict.fromkeys(found):
        if not peaks.flop_per_s:
            continue
        dtypes = ", ".join(peaks.mamf_flop_per_s)
        message = (
            f"HFU and MFU are achievable ones: {dtypes} on {peaks.words} is measured against "
            f"the fastest matrix products that were measured, not against the data sheet"
            if dtypes
            else f"--ceiling mamf changes nothing for {peaks.words}: nobody has measured its "
            f"fastest matrix products"
        )
        yield Note("ceiling_mamf", message)
