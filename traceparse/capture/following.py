"""A capture whose steps nobody tells: it follows the optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from traceparse.capture.optimizers import OPTIMIZERS, Leader
from traceparse.capture.said import Said
from traceparse.capture.session import Session

__all__ = ["following_optimizers"]


@contextmanager
def following_optimizers(session: Session) -> Iterator[None]:
    """End a step of the session with each round of the optimizers, and the session at last."""
    leader = Leader()

    def stepped(optimizer: object) -> None:
        if leader.ends_step(optimizer):
            session.step()

    with Said().training_goes_on():
        OPTIMIZERS.listen(stepped)
    try:
        yield
    finally:
        OPTIMIZERS.forget(stepped)
        session.close()
