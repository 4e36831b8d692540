"""Which operators own the kernels of a trace? From its events to what is attributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from traceparse.ingest import CALL_MARKS, FRAME, Kept
from traceparse.rank.attribute import OP_COLUMNS, Attributed, Attribution
from traceparse.rank.link import UNLINKED, Linked, Links
from traceparse.rank.rows import rows_where
from traceparse.rank.signatures import Signatures
from traceparse.rank.threads import Threads
from traceparse.rank.tree import Is
from traceparse.rank.works import Work, keys_of

__all__ = ["Owners"]

_LAUNCH_COLUMNS = ("correlation", "external_id", "start_ns", "end_ns", "name", "pid", "tid")
_SPAN_COLUMNS = ("start_ns", "end_ns", "name", "category", "pid", "tid")


class Owners:
    """Takes launches, device events, those that were linked, and operators.

    Options are those of :class:`Attribution`; ``on_linked`` gets all device events that
    came from links, also those that have no correlation. ``has_shapes`` is whether any
    operator has: without, nobody can say what was worked.
    """

    def __init__(
        self,
        *,
        on_host: bool,
        is_complete: bool = False,
        with_records: bool = True,
        on_linked: Callable[[Linked], object] = lambda _: None,
    ) -> None:
        self._on_linked = on_linked
        self.has_shapes = False
        self.signatures = Signatures()
        self.links = Links()
        self._pairs = Links()  # of what has no correlation, by external id
        self.threads = Threads()
        self._attribution = Attribution(
            self.signatures,
            on_host=on_host,
            is_complete=is_complete,
            with_records=with_records,
        )

    def add_launches(self, launches: Kept) -> None:
        """Add all calls of the runtime or driver."""
        for part in launches.parts(*_LAUNCH_COLUMNS):
            threads = self.threads.of(part)
            for links, keys in zip((self.links, self._pairs), keys_of(part), strict=True):
                links.add_calls(keys, part, threads)

    def add_events(self, work: Work, **facts: npt.NDArray[Any]) -> None:
        """Add device events, with what is to come back with them."""
        self.links.add_events(work.keys, flags=work.hints, ident=work.idents, **facts)
        self._pairs.add_events(work.pairs, flags=work.hints, ident=work.idents, **facts)

    def add_linked(self, linked: Linked) -> None:
        """Add device events that came from links.

        What a graph replays was launched by operators when the graph was made; the one around
        the replay has no part in it.
        """
        launched = (linked.launched_ns != UNLINKED) & ~linked.is_graph
        events = linked.events[launched]
        self._on_linked(linked)
        self._attribution.add_events(
            linked.threads[launched],
            linked.launched_ns[launched],
            row=events["row"],
            ident=events["ident"],
            first=events["start"],
            end=events["end"],
            device=events["device"],
            kind=events["kind"],
            flags=events["flags"],
        )

    def add_spans(self, annotations: Kept) -> None:
        """Add what repeats a forward, if stacks were recorded, and marks of collectives."""
        done = 0
        for part in annotations.parts(*_SPAN_COLUMNS):
            is_frame = rows_where(part, "category", lambda texts: pc.equal(texts, FRAME))
            is_mark = rows_where(part, "name", _are_marks)
            for flag, are_such in ((Is.FRAME, is_frame), (Is.MARK, is_mark)):
                if are_such.any():
                    spans = part.filter(pa.array(are_such))
                    rows = done + np.flatnonzero(are_such)
                    threads = self.threads.of(spans)
                    self._attribution.add_spans(spans, threads, rows, flag)
            done += part.num_rows

    def add_ops(self, ops: Kept) -> None:
        """Add all operators, once, when all else was added: they may be around any launch."""
        for linked in self._pairs.parts():
            self.add_linked(linked)
        for part in ops.parts(*OP_COLUMNS, "pid", "tid"):
            dims = part["input_dims"]
            self.has_shapes = self.has_shapes or dims.null_count < len(dims)
            self._attribution.add_ops(part, self.threads.of(part))

    def parts(self) -> Iterator[Attributed]:
        """Attribute everything, when all was added."""
        yield from self._attribution.parts()


def _are_marks(names: pa.Array) -> pa.Array:
    return pc.match_substring_regex(names, rf"^(?:{'|'.join(CALL_MARKS)})")
