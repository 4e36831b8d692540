"""Every kind of trace that is stored, damaged ones too: drawn or refused, and nothing lost."""

from __future__ import annotations

import pytest

import traceparse
from tests.bridge.perfetto import imported
from tests.contract.places import ROOT, STORED
from traceparse.bridge.overlay import overlay
from traceparse.errors import TraceparseError

_EVERY = 4  # of hundreds that differ in little


@pytest.mark.slow
@pytest.mark.parametrize("path", STORED[::_EVERY], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stored_trace_is_drawn_whole_and_reads_back_as_it_was(path, tmp_path):
    out = tmp_path / "overlay.json"
    try:
        report = traceparse.analyze(path)
    except TraceparseError:
        with pytest.raises(TraceparseError):
            overlay(path, out)
        assert not out.exists()
        return
    overlay(path, out)
    assert not imported(out).lost
    back = {str(one.device): one.window for one in traceparse.analyze(out).devices}
    assert back.keys() == {str(one.device) for one in report.devices}
    for device in report.devices:
        for name in ("compute_ns", "comm_ns", "copy_ns", "overlap_ns", "idle_ns"):
            own, told = getattr(back[str(device.device)], name), getattr(device.window, name)
            assert own == told, name
