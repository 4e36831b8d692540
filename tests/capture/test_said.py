from __future__ import annotations

import logging

import pytest

from traceparse.capture.said import Said, in_words
from traceparse.errors import CaptureError


def test_everything_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    said = Said()
    for _ in range(2):
        said.warn("this")
        said.tell("that")
    assert caplog.record_tuples == [
        ("traceparse.capture", logging.WARNING, "traceparse: this"),
        ("traceparse.capture", logging.INFO, "traceparse: that"),
    ]


def fail(error: Exception) -> None:
    raise error


def test_what_goes_wrong_ends_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    said = Said()
    with said.training_goes_on("it is lost"):
        fail(ZeroDivisionError("by 0\nand so on"))
    with said.training_goes_on():
        fail(CaptureError("words: of ours"))
    assert caplog.messages == [
        "traceparse: it is lost, training goes on: ZeroDivisionError: by 0",
        "traceparse: no trace was kept, training goes on: words: of ours",
    ]


def test_who_interrupts_is_heard() -> None:
    with pytest.raises(KeyboardInterrupt), Said().training_goes_on():
        raise KeyboardInterrupt


def test_a_log_that_fails_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_record: logging.LogRecord) -> bool:
        raise RuntimeError("a filter of the job")

    monkeypatch.setattr(logging.getLogger("traceparse.capture"), "filters", [broken])
    Said().warn("this")


def test_an_error_without_words_has_a_name() -> None:
    assert in_words(MemoryError()) == "MemoryError: "
