"""Hosts that let devices wait."""

from __future__ import annotations

import pytest

from traceparse.run.findings.host import data_loader, launch_gaps, synchronizing_calls

RULES = {
    "launch_ns": launch_gaps,
    "data_loader_ns": data_loader,
    "sync_ns": synchronizing_calls,
}


def host(**known):
    return {**dict.fromkeys([*RULES, "unknown_ns"], 0), **known}


@pytest.mark.parametrize(("name", "rule"), RULES.items())
@pytest.mark.parametrize(
    ("ns", "severity"), [(49, None), (50, "info"), (99, "info"), (100, "warning")]
)
def test_each_reason_has_its_finding(seen, name, rule, ns, severity):
    view = seen.view(compute=800, idle=200, host=host(**{name: ns, "unknown_ns": 200 - ns}))
    found = list(rule(view))
    assert [one["severity"] for one in found] == ([severity] if severity else [])
    assert [one["lost_ratio"] for one in found] == ([ns / 1_000] if severity else [])
    others = [other for other in RULES.values() if other is not rule]
    assert not [one for other in others for one in other(view)]


@pytest.mark.parametrize("rule", RULES.values())
def test_nothing_is_said_where_nobody_knows_what_hosts_did(seen, rule):
    assert not list(rule(seen.view(compute=100, idle=900)))


def test_no_more_is_won_than_a_replay_without_any_gap_wins(seen):
    what_if = {"changes": [{"change": "launch_gaps_gone", "won_ratio": 0.07}]}
    view = seen.view(compute=800, idle=200, host=host(launch_ns=200), what_if=what_if)
    (found,) = launch_gaps(view)
    assert found["lost_ratio"] == 0.07
    assert found["evidence"].endswith("for whatever reason, wins 7.0%")


def test_kernels_and_calls_are_counted(seen):
    kernels = {"count": 2_000, "time_ns": 8_000_000}
    (found,) = launch_gaps(seen.view(idle=100, host=host(launch_ns=100), kernels=kernels))
    assert "a mean kernel takes 4.0 us (2,000 kernels in the files)" in found["evidence"]
    view = seen.view(idle=100, host=host(sync_ns=100), num_syncs_per_step=12.5)
    (found,) = synchronizing_calls(view)
    assert "12.5 such calls a step on a mean device" in found["evidence"]


def test_what_was_recorded_besides_slows_hosts(seen):
    fields = {"idle": 100, "host": host(launch_ns=100)}
    (found,) = launch_gaps(seen.view(settings=frozenset({"with_stack", "other"}), **fields))
    assert "stacks were recorded, which slows hosts" in found["evidence"]
    (found,) = launch_gaps(seen.view(**fields))
    assert "recorded" not in found["evidence"]
