"""The layouts of the fixtures are those of the real writers: torch's own, byte for byte."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.contract.places import SHARED
from tools.layouts import LAYOUTS, Num, write_layout

HEAD_KEYS = {"traceName"}


def rewritten(content, layout):
    """Read a trace with its numbers as they are spelled, and write it in a layout."""
    document = json.loads(content, parse_float=Num)
    if isinstance(document, list):
        return write_layout(document, {}, layout)
    events = document.pop("traceEvents")
    return write_layout(events, document, layout, trailing=HEAD_KEYS)


@pytest.fixture(scope="module")
def profiled():
    profiler = pytest.importorskip("torch.profiler", reason="torch writes the originals")
    torch = pytest.importorskip("torch")
    options = {"record_shapes": True, "profile_memory": True}
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options) as found:
        with profiler.record_function("outer"):
            torch.mm(torch.ones(4, 4), torch.ones(4, 4))
        found.step()
    return found


def test_k_new_is_what_torch_writes(profiled, tmp_path):
    path = tmp_path / "trace.json"
    profiled.export_chrome_trace(str(path))
    content = path.read_bytes()
    if not content.startswith(b" {\n"):
        pytest.skip("this torch has an older libkineto")
    assert rewritten(content, "k-new") == content


def test_py_is_what_torch_writes(profiled, tmp_path):
    path = tmp_path / "trace.json"
    try:
        profiled.export_chrome_trace(str(path), use_python_export=True)
    except TypeError:
        pytest.skip("this torch has no Python writer")
    content = path.read_bytes()
    assert rewritten(content, "py") == content


def test_legacy_is_what_torch_writes(tmp_path):
    profiler = pytest.importorskip(
        "torch.autograd.profiler", reason="torch writes the originals"
    )
    torch = pytest.importorskip("torch")
    with profiler.profile(use_kineto=False) as found:
        torch.mm(torch.ones(4, 4), torch.ones(4, 4))
    path = tmp_path / "trace.json"
    found.function_events.export_chrome_trace(str(path))
    content = path.read_bytes()
    assert rewritten(content, "leg") == content


def test_k_old_and_dumps_are_what_public_traces_have():
    old = SHARED / "h100-transformer.json.gz"
    dumped = SHARED / "hta-tiny-backward-thread.json.gz"
    compact = SHARED / "hta-trace-compare-base.json.gz"
    if not old.exists():
        pytest.skip(f"no traces at {SHARED}")
    for trace, layout in ((dumped, "jd4"), (compact, "c1")):
        content = gzip.decompress(trace.read_bytes())
        document = json.loads(content, parse_float=Num)
        keys = list(document)
        after = set(keys[keys.index("traceEvents") :])
        events = document.pop("traceEvents")
        made = write_layout(events, document, layout, trailing=after)
        assert made.strip() == content.strip()
    content = gzip.decompress(old.read_bytes())
    pieces = content.count(b"\n  },\n  {\n")
    made = rewritten(content, "k-old")
    assert made.count(b"\n  },\n  {\n") == pieces > 1000
    assert set(made.split()) >= {b'"ph":', b'"traceEvents":', b'"args":'}


def test_every_layout_is_json_with_the_same_events():
    event = {"ph": "X", "cat": "kernel", "name": 'a "b" \\ c', "pid": 0, "tid": 7}
    events = [event | {"ts": Num("1.500"), "dur": Num("2"), "args": {"device": 0}}] * 3
    for layout in LAYOUTS:
        document = json.loads(write_layout(events, {"traceName": "x"}, layout))
        found = document if isinstance(document, list) else document["traceEvents"]
        assert found == [event | {"ts": 1.5, "dur": 2, "args": {"device": 0}}] * 3
