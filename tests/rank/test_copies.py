"""Copies by direction and memory, how much they move, and what hides them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import kernel, op, span, write
from traceparse import ordered
from traceparse.ingest import read_trace
from traceparse.rank import CopyWork, copies, digest
from traceparse.rank.copies import way_of

PAGEABLE, PINNED = "Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)"
CLEAR = "Memset (Device)"


@pytest.mark.parametrize(
    ("name", "direction", "memory"),
    [
        (PAGEABLE, "HtoD", "pageable"),
        (PINNED, "HtoD", "pinned"),
        ("Memcpy DtoH (Device -> Pageable)", "DtoH", "pageable"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", "pinned"),
        ("Memcpy DtoD (Device -> Device)", "DtoD", "device"),
        ("Memcpy PtoP (Device -> Device)", "PtoP", "device"),
        ("Memcpy HtoH (Pinned -> Pageable)", "HtoH", "pageable"),
        ("Memcpy HtoD (Managed -> Device)", "HtoD", "unified"),
        ("Memcpy HtoA (Pageable -> Array)", "HtoD", "pageable"),
        ("Memcpy HtoD (Host -> Device)", "HtoD", None),  # ROCm: nobody says which
        ("Memcpy DtoH (Device -> Host)", "DtoH", None),
        ("Memcpy DtoD", "DtoD", "device"),
        ("Memcpy HtoD", "HtoD", None),
        (CLEAR, "memset", "device"),
        ("Memset (Managed)", "memset", "unified"),
        ("Memset (Unknown)", "memset", None),
        ("FillBuffer", "memset", None),
        ("CopyHostToDevice", "HtoD", None),
        ("CopyDeviceToHost", "DtoH", None),
        ("CopyDeviceToDevice", "DtoD", "device"),
        ("zeCommandListAppendMemoryCopy(M2D)", "HtoD", "pageable"),
        ("zeCommandListAppendMemoryCopy(D2H)", "DtoH", "pinned"),
        ("zeCommandListAppendMemoryCopy(D2D)", "DtoD", "device"),
        ("zeCommandListAppendMemoryFill", "memset", None),
        ("dma_request", None, None),
        ("Memcpy <unknown> (Device -> Pageable)", None, None),
        ("", None, None),
    ],
)
def test_names_tell(name, direction, memory):
    assert way_of(name) == (direction, memory)


def copy(ts, last, name=PAGEABLE, **args):
    category = "gpu_memset" if name == CLEAR else "gpu_memcpy"
    return span(category, name, ts, last, device=args.pop("device", 0), stream=7, **args)


def told(tmp_path, events):
    return digest(read_trace(write(tmp_path / "rank0.json", events))).copies


def test_by_hand(tmp_path):
    events = [
        copy(100, 10, bytes=64),
        copy(120, 10, bytes=36),
        copy(200, 30, PINNED, bytes=1000),
        copy(300, 5, CLEAR),
        kernel(95, 10),  # hides the first by half
        kernel(210, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
        kernel(212, 6),  # and both, 8 us of the third
        copy(120, 4, device=1, bytes=1),  # of another device, which nothing hides
    ]
    assert told(tmp_path, events) == (
        CopyWork("HtoD", "pinned", 1, 30_000, 1000, 22_000),
        CopyWork("HtoD", "pageable", 3, 24_000, 101, 19_000),
        CopyWork("memset", "device", 1, 5000, None, 5000),
    )


def test_the_host_copies_nothing(tmp_path):
    assert told(tmp_path, [op(10, 5)]) == ()


def test_of_many_only_the_exposure_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "MOST_COPIES", 2)
    events = [copy(100 + 10 * n, 5, bytes=8) for n in range(3)]
    assert told(tmp_path, events) == (CopyWork("HtoD", "pageable", 3, 15_000, 24, None),)


spans = st.lists(st.tuples(st.integers(100, 140), st.integers(0, 9)), max_size=8)


@settings(max_examples=100)
@given(spans, spans, spans, st.integers(2, 9))
def test_exposure_agrees_with_a_search(tmp_path_factory, pageable, pinned, kernels, rows):
    events = [kernel(1, 1), *(kernel(*one) for one in kernels)]
    events += [copy(*one) for one in pageable]
    events += [copy(start, last, PINNED) for start, last in pinned]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "_RUN", rows)
        patch.setattr(ordered, "_LEAST", 1)
        found = told(tmp_path_factory.mktemp("any"), events)
    hidden = {at for start, last in kernels for at in range(start, start + last)}
    for memory, own in (("pageable", pageable), ("pinned", pinned)):
        exposed = sum(len({*range(start, start + last)} - hidden) for start, last in own)
        assert [one.exposed_ns for one in found if one.memory == memory] == (
            [1000 * exposed] if own else []
        )
