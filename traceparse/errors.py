"""What can go wrong, and what is worth saying when it did not quite go wrong.

::

    TraceparseError            exit status 1
    ├── InputError             a path that is not there, or holds no trace
    │   ├── NotATraceError     the file is something else, and the message says what
    │   └── EmptyTraceError    a trace, but nothing in it that lasted
    ├── StrictError            ``--strict``: usable, but not whole
    ├── MissingExtraError      an optional package is not installed
    ├── CaptureError           the profiler could not be started or its trace not kept
    └── UsageError             wrong words on the command line: exit status 2

Every message is one line: the file, what is wrong, what could still be used, what to do.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "CaptureError",
    "EmptyTraceError",
    "InputError",
    "MissingExtraError",
    "NotATraceError",
    "Note",
    "StrictError",
    "TraceparseError",
    "UsageError",
    "one_line",
]


def one_line(error: Exception) -> str:
    """Return what another package says went wrong, to stand in a message of ours."""
    return " ".join(str(error).split())


class TraceparseError(Exception):
    """Anything traceparse says no to; ``str()`` of it is one line for people.

    Examples
    --------
    >>> try:
    ...     traceparse.scaling(["n4/"])
    ... except traceparse.TraceparseError as error:
    ...     print(error.exit_status, error)
    2 scaling needs two runs at least, of different sizes; give the folder of each
    """

    exit_status = 1


class InputError(TraceparseError):
    """A path that cannot be read, or holds nothing that can be analyzed."""


class NotATraceError(InputError):
    """A readable file that is not a profiler trace."""


class EmptyTraceError(InputError):
    """A profiler trace without any event that has a duration."""


class StrictError(TraceparseError):
    """An input that was incomplete or had to be repaired, while ``--strict`` asked for none."""


class MissingExtraError(TraceparseError):
    """A package that only an extra of traceparse brings is not installed."""


class CaptureError(TraceparseError):
    """Profiling could not be started, or its trace could not be kept."""


class UsageError(TraceparseError):
    """Arguments that contradict each other or cannot be understood."""

    exit_status = 2


@dataclass(frozen=True, slots=True)
class Note:
    """Something repaired, skipped, assumed or unknown, for the reader of every report.

    ``code`` is stable and for programs, ``message`` is for people; ``rank`` and ``file`` say
    where it applies, ``None`` meaning the whole run.

    Examples
    --------
    >>> note = traceparse.analyze("traces/").notes[0]
    >>> note.code, note.rank, note.file
    ('no_device_events', 0, 'traces/rank0_trace.json.gz')
    >>> print(note.message)
    no device events: the host's operators are accounted for, as device cpu
    """

    code: str
    message: str
    rank: int | None = None
    file: str | None = None
