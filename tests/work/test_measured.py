from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from traceparse.errors import TraceparseError, UsageError
from traceparse.work import measured
from traceparse.work.measured import measure_peak, rates_of

RATES = {"fp32": {256: 1.5e11, 512: 2e11}, "fp64": {256: 9e10}}
TOLD = {"rates": RATES, "library": "numpy 9 with someblas 1"}


class Machine:
    """A CPU that reaches a rate by size, on a clock of its own; preparing takes time too."""

    def __init__(self, rate: Callable[[int, int], float], *, prepare_s: float = 0.0) -> None:
        self.now = 100.0
        self.done: list[int] = []
        self._rate, self._prepare_s = rate, prepare_s

    def prepare(self, size: int) -> Callable[[], object]:
        self.now += self._prepare_s

        def multiply() -> None:
            self.now += 2 * size**3 / self._rate(size, self.done.count(size))
            self.done.append(size)

        return multiply

    def rates(self, seconds: float) -> dict[int, float]:
        return rates_of(self.prepare, seconds, lambda: self.now)


def test_a_real_cpu_is_measured():
    found = measure_peak(1)
    assert found.flop_per_s.keys() == {"fp32", "fp64"}
    assert min(found.flop_per_s.values()) > 1e6
    assert found.flop_per_s["fp32"] >= 0.8 * found.flop_per_s["fp64"]
    assert found.num_threads == 1
    assert found.words.startswith(
        "the fastest of repeated products of square matrices, 256 to "
    )
    assert f" by numpy {np.__version__} with " in found.words
    assert found.words.endswith(" on 1 thread")


def test_the_fastest_of_each_size_counts():
    """GIVEN a first product that is slow, and large ones that are the fastest."""
    machine = Machine(lambda size, num: size * 1e8 / (4 if num == 0 else 1))
    rates = machine.rates(10.0)
    assert rates == {size: pytest.approx(size * 1e8) for size in measured._SIZES}
    assert machine.now < 112


def test_every_size_has_its_share_of_the_time():
    machine = Machine(lambda _size, _num: 1e13)
    machine.rates(1.0)
    spent = [machine.done.count(size) * 2 * size**3 / 1e13 for size in measured._SIZES]
    assert spent == pytest.approx([0.2] * 5, abs=0.02)
    assert machine.now == pytest.approx(101, abs=0.02)


def test_a_slow_cpu_is_not_waited_for():
    machine = Machine(lambda _size, _num: 1e9, prepare_s=0.01)
    assert list(machine.rates(0.8)) == [256, 512]
    assert machine.now < 100 + 0.8
    machine = Machine(lambda _size, _num: 1e6)
    assert list(machine.rates(0.8)) == [256], "once at least"
    assert machine.done == [256]


def test_a_clock_that_does_not_see_a_product_tells_no_rate():
    times = iter([0.0, 0.0, 0.0, 0.0, *(9.0,) * 99])
    assert rates_of(lambda _: lambda: None, 1.0, lambda: next(times)) == {}


def asked(monkeypatch: pytest.MonkeyPatch, answer: Any = None) -> list[Any]:
    """Let another process answer, and return how it was started."""
    calls = []

    def run(command: list[str], **options: Any) -> SimpleNamespace:
        calls.append((command, options))
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, SimpleNamespace):
            return answer
        return SimpleNamespace(returncode=0, stdout=json.dumps(answer or TOLD).encode())

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def test_the_most_of_all_sizes_is_the_peak(monkeypatch):
    asked(monkeypatch)
    monkeypatch.setattr(measured, "_num_cpus", lambda: 8)
    found = measure_peak()
    assert found.flop_per_s == {"fp32": 2e11, "fp64": 9e10}
    assert found.words == (
        "the fastest of repeated products of square matrices, 256 to 512 wide, "
        "by numpy 9 with someblas 1 on 8 threads"
    )


@pytest.mark.parametrize(("wanted", "used"), [(None, 8), (3, 3), (8, 8), (2**62, 8)])
def test_threads_are_those_wanted_but_no_more_than_run(monkeypatch, wanted, used):
    monkeypatch.setattr(measured, "_num_cpus", lambda: 8)
    calls = asked(monkeypatch)
    assert measure_peak(wanted).num_threads == used
    ((command, options),) = calls
    assert command == [sys.executable, "-P", "-m", "traceparse.work.measured"]
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        assert options["env"][name] == str(used)
    assert options["env"].keys() >= os.environ.keys()


@pytest.mark.parametrize("num_threads", [0, -1])
def test_no_thread_measures_nothing(num_threads):
    with pytest.raises(UsageError, match=f"^num_threads={num_threads}: measuring needs at"):
        measure_peak(num_threads)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            SimpleNamespace(
                returncode=1, stderr=b"Traceback\n  x\nImportError: no numpy\xff\n\n"
            ),
            "exit status 1: ImportError: no numpy\ufffd",
        ),
        (SimpleNamespace(returncode=-9, stderr=b""), "exit status -9: no message"),
        (subprocess.TimeoutExpired("python", 60), "it took over 60 s"),
        (FileNotFoundError(2, "No such file"), f"{sys.executable}: No such file"),
        (SimpleNamespace(returncode=0, stdout=b"\xff"), "JSON is malformed"),
        (SimpleNamespace(returncode=0, stdout=b""), "Input data was truncated"),
        ({"library": "x", "rates": {}}, "only nothing was measured"),
        ({"library": "x", "rates": {"fp32": {"1": 1.0}}}, "only fp32 was measured"),
        ({"library": "x", "rates": {"fp32": {"1": 0.0}}}, "Expected `float` > 0"),
        ({"library": "x", "rates": {"fp32": {}}}, "Expected `object` of length >= 1"),
        ({"rates": RATES}, "missing required field `library`"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_goes_wrong_is_told_in_a_line(monkeypatch, answer, why):
    asked(monkeypatch, answer)
    with pytest.raises(TraceparseError) as caught:
        measure_peak(1)
    text = str(caught.value)
    assert text.startswith("the peak of this CPU could not be measured: ")
    assert why in text
    assert text.endswith("; give the peak instead")
    assert text.isprintable()


def test_a_numpy_that_does_not_know_its_blas(monkeypatch):
    knows: dict[str, Any]
    for knows in ({}, {"Build Dependencies": {}}, {"Build Dependencies": {"blas": {}}}):
        monkeypatch.setattr(np, "show_config", partial(dict, knows))
        assert measured._library() == f"numpy {np.__version__} with an unknown BLAS"


def test_the_process_tells_what_it_measured(monkeypatch, capsys):
    monkeypatch.setattr(measured, "_SECONDS", 0.001)
    measured.main()
    told = json.loads(capsys.readouterr().out)
    assert told["library"].startswith("numpy ")
    assert told["rates"].keys() == {"fp32", "fp64"}
    assert all("256" in rates for rates in told["rates"].values())
