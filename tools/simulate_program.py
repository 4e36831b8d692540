"""What the host of one rank does in a simulated job: operators, launches, waits, in order.

A program is a tree: a :class:`Span` is an operator or an annotation, a :class:`Launch` puts
work on a stream, a :class:`Record` marks how far a stream has to go, :class:`Wait` and
:class:`Sync` hold back a stream and the host. All durations are decided when the program is
written, so that running it again under other conditions changes those conditions and nothing
else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "BYTES",
    "COMPUTE_STREAM",
    "POINT_TO_POINT",
    "UNSEEN",
    "Call",
    "Group",
    "Item",
    "Kind",
    "Launch",
    "Pause",
    "Program",
    "Record",
    "Span",
    "Sync",
    "Thread",
    "Wait",
    "Work",
]

COMPUTE_STREAM = 7
POINT_TO_POINT = "p2p"
UNSEEN = ""  # the name of a call that no profiler records
BYTES = {"BFloat16": 2, "Float": 4}

Kind = Literal["compute", "comm", "copy"]
Thread = Literal["main", "autograd", "gloo"]


@dataclass(frozen=True, slots=True)
class Group:
    """A process group; disjoint groups may share a name, as meshes of groups do."""

    name: str
    description: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One collective, or one message, that all its members call: the instance of the truth.

    A message has ``collective`` :data:`POINT_TO_POINT`, its members are source and
    destination, and ``nth`` counts those of its pair.
    """

    number: int
    group: Group
    collective: str
    dtype: str
    in_nelems: int
    out_nelems: int
    transfer_ns: int
    members: tuple[int, ...]
    nth: int = 0

    @property
    def is_message(self) -> bool:
        """Whether it goes from one rank to one other."""
        return self.collective == POINT_TO_POINT

    @property
    def message_bytes(self) -> int:
        """Its size: the whole tensor, gathered or not yet scattered."""
        return BYTES[self.dtype] * max(self.in_nelems, self.out_nelems)


@dataclass(frozen=True, slots=True)
class Work:
    """Something that a stream is to do; that of a call lasts as long as its members need."""

    kind: Kind
    name: str
    stream: int
    ns: int = 0
    call: Call | None = None
    num_bytes: int = 0  # of a copy


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of the CUDA runtime that hands work to streams; a graph hands over much at once.

    Work in a graph waits for the one before it on its stream, and where ``after`` names a
    position in the graph, for that one too.
    """

    name: str
    ns: int
    works: tuple[Work, ...]
    after: Mapping[int, int] = field(default_factory=dict)
    is_graph: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """An event is recorded: that a stream has done all that it holds now."""

    stream: int
    event: int
    ns: int


@dataclass(frozen=True, slots=True)
class Wait:
    """From here on, a stream waits for an event as it was recorded last."""

    stream: int
    event: int
    ns: int


@dataclass(frozen=True, slots=True)
class Sync:
    """The host waits until a stream has done all that it holds now."""

    stream: int
    ns: int
    name: str = "cudaStreamSynchronize"


@dataclass(frozen=True, slots=True)
class Pause:
    """The host does something that the trace does not show."""

    ns: int


@dataclass(slots=True)
class Span:
    """An operator or annotation around other items; ``flop`` is the work it stands for."""

    name: str
    category: str
    thread: Thread
    args: Mapping[str, Any]
    step: int | None = None
    flop: int = 0
    is_recompute: bool = False
    call: Call | None = None
    seq: int = 0
    body: list[Item] = field(default_factory=list)


Item: TypeAlias = Span | Launch | Record | Wait | Sync | Pause


class Program:
    """Write down what one rank's host does, from the first item to the last."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.items: list[Item] = []
        self._open: list[list[Item]] = [self.items]
        self._sequence = 0
        self._events = 0

    def add(self, item: Item) -> None:
        """Let an item come next, inside whatever is open."""
        self._open[-1].append(item)

    @contextmanager
    def inside(self, span: Span) -> Iterator[None]:
        """Let what is added meanwhile come inside a span."""
        self.add(span)
        self._open.append(span.body)
        yield
        self._open.pop()

    def next_sequence(self) -> int:
        """Return a number that no operator of autograd has had yet."""
        self._sequence += 1
        return self._sequence

    def next_event(self) -> int:
        """Return a number that no event of CUDA has had yet."""
        self._events += 1
        return self._events
