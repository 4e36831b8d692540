"""What capture says in the job's log, and the rule that it never does more than say."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from traceparse.errors import TraceparseError

__all__ = ["Said", "in_words"]

_log = logging.getLogger("traceparse.capture")


class Said:
    """The job's log, in which everything is said once."""

    def __init__(self) -> None:
        self._texts: set[str] = set()

    def warn(self, text: str) -> None:
        """Say what was lost, or what else somebody should do something about."""
        self._say(logging.WARNING, text)

    def tell(self, text: str) -> None:
        """Say what went well."""
        self._say(logging.INFO, text)

    @contextmanager
    def training_goes_on(self, lost: str = "no trace was kept") -> Iterator[None]:
        """Run some of capture; whatever goes wrong in it ends here, with a warning."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, training is worth more
            self.warn(f"{lost}, training goes on: {in_words(error)}")

    def _say(self, level: int, text: str) -> None:
        if text not in self._texts:
            self._texts.add(text)
            with suppress(Exception):  # of the job's own handlers and filters
                _log.log(level, "traceparse: %s", text)


def in_words(error: Exception) -> str:
    """Say an error in one line."""
    if isinstance(error, TraceparseError):
        return str(error)
    first, *_ = f"{type(error).__name__}: {error}".splitlines()
    return first
