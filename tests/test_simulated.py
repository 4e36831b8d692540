"""The comparison with the truth of simulated jobs names what differs."""

from __future__ import annotations

from copy import deepcopy

from tests.simulated import device_differences, made


def test_differences_are_named():
    truth = made("recompute", 4, 0).truth
    report = deepcopy({"devices": truth["devices"]})
    assert device_differences(truth, report) == []
    step = report["devices"][2]["steps"][1]
    step["idle_ns"] += 1
    step["recompute_flop"] = None
    (first, second) = device_differences(truth, report)
    assert first.startswith(f"rank 2 step {step['step']}: idle_ns is {step['idle_ns']} instead")
    assert "recompute_flop is None instead of" in second
    del report["devices"][0]
    assert "instead of" in device_differences(truth, report)[0]
