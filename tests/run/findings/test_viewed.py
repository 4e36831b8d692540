"""What rules see of a run comes from its report and its digests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from tests.run.conftest import A100, H100, Maker, renamed
from traceparse.rank import StepTimes
from traceparse.run.basis import choose
from traceparse.run.findings.viewed import view_of


@pytest.fixture
def make():
    return Maker()


def steps(make, *compute_ns):
    """Steps of 1,000 ns, the last of which nothing ends."""
    last = len(compute_ns)
    return [
        make.step(
            number,
            make.times(compute=ns, idle=1_000 - ns),
            make.work(flop=ns),
            counted=ns // 2,
            open_ended=number == last,
        )
        for number, ns in enumerate(compute_ns, 1)
    ]


@dataclass(frozen=True, slots=True)
class Owned:
    """A device's steps and whose they are, as a basis is chosen by."""

    rank: int | None
    steps: Sequence[StepTimes]


def seen(make, *digests, **asked):
    owned = [
        Owned(digest.health.rank, device.steps)
        for digest in digests
        for device in digest.devices
    ]
    report = make.report(*digests, **asked)
    return view_of(report, choose(owned), digests, counted_ns=7, most_reached=0.8)


def test_steps_are_those_of_the_basis(make):
    one = make.digest(0, make.device(*steps(make, 400, 600, 900)), world_size=2)
    other = renamed(make.digest(0, make.device(*steps(make, 100, 300, 900)), world_size=2), 1)
    view = seen(make, one, other)
    assert (view.num_steps, view.num_device_steps, view.num_steps_in_files) == (2, 4, 3)
    assert (view.times.span_ns, view.times.compute_ns) == (4_000, 1_400)
    assert view.mean_step_ns == 1_000
    assert view.compute_ns_by_rank == {0: Fraction(500), 1: Fraction(200)}
    assert view.flop_by_rank == {0: 1_000, 1: 400}
    assert (view.counted_ns, view.most_reached) == (7, 0.8)
    assert view.kernels["count"] == 20


@pytest.mark.parametrize(
    ("told", "asked", "num_sms"),
    [
        ((H100,), {}, 132),
        ((H100, {**H100, "id": 1}), {}, 132),
        ((H100, {**A100, "id": 1}), {}, 132),  # it ran on the first
        (({**H100, "id": 5}, {**A100, "id": 6}), {}, None),
        ((), {}, None),
        ((), {"accelerator": "h100-sxm"}, 132),
        (({**H100, "numSms": 66},), {}, 66),  # half of one
    ],
)
def test_the_number_of_sms_is_what_devices_say_or_the_table(make, told, asked, num_sms):
    digest = make.digest(0, make.device(*steps(make, 400, 600)), told=told)
    assert seen(make, digest, **asked).num_sms == num_sms


def test_settings_of_the_profiler_are_those_of_any_file(make):
    digest = make.digest(0, make.device(*steps(make, 400, 600)))
    header = replace(digest.header, settings=("with_stack",))
    assert seen(make, replace(digest, header=header)).settings == {"with_stack"}


def test_a_job_without_devices_is_its_hosts(make):
    assert not seen(make, make.digest(0, make.device(*steps(make, 400, 600)))).is_host
    host = make.digest(0, make.device(*steps(make, 400, 600), device="cpu"))
    assert seen(make, host).is_host
