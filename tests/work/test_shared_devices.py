"""What the public traces ran on: every record of a device, read by hand once."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.contract.places import PUBLIC, SHARED
from traceparse.work import identify

pytestmark = pytest.mark.skipif(
    not PUBLIC,
    reason=f"no traces at {SHARED}; say where they are in TRACEPARSE_SHARED_TRACES",
)

_KEY = '"deviceProperties":'
_KEYS = ("name", "computeMajor", "computeMinor", "warpSize", "numSms", "totalGlobalMem")

# Name, compute capability, warp size, SMs, bytes -> accelerator, how, bf16 TFLOP/s, doubts
EXPECTED = {
    ("NVIDIA B200", 10, 0, 32, 148, 191503138816): ("b200", "name", 2250, 0),
    ("NVIDIA B300 SXM6 AC", 10, 3, 32, 148, 287431131136): ("b300", "name", 2250, 0),
    ("NVIDIA B300 SXM6 AC", 10, 3, 32, 148, 287416123392): ("b300", "name", 2250, 0),
    ("Quadro GP100", 6, 0, 32, 56, 17069309952): (None, None, None, 1),
    # a custom part with 96 GB: its peak is not published
    ("NVIDIA H100", 9, 0, 32, 132, 102085492736): ("h100-96-custom", "name", None, 1),
    ("NVIDIA H100 80GB HBM3", 9, 0, 32, 132, 85045477376): ("h100-sxm", "name", 989.4, 0),
    ("NVIDIA H100 80GB HBM3", 9, 0, 32, 132, 85018279936): ("h100-sxm", "name", 989.4, 0),
    ("NVIDIA A100-PG509-200", 8, 0, 32, 108, 42505273344): ("a100-sxm-40", "name", 312, 0),
    ("NVIDIA A100-PG509-200", 8, 0, 32, 108, 42297524224): ("a100-sxm-40", "name", 312, 0),
    ("Tesla V100-SXM2-32GB", 7, 0, 32, 80, 34089730048): ("v100-sxm2", "name", None, 0),
    ("Tesla V100-SXM2-32GB", 7, 0, 32, 80, 34079637504): ("v100-sxm2", "name", None, 0),
    ("Tesla V100-SXM2-32GB", 7, 0, 32, 80, 34079899648): ("v100-sxm2", "name", None, 0),
    ("Tesla V100-SXM2-16GB", 7, 0, 32, 80, 16945512448): ("v100-sxm2", "name", None, 0),
    ("Tesla V100-DGXS-32GB", 7, 0, 32, 80, 34084028416): ("v100-sxm2", "name", None, 0),
    ("Tesla V100-DGXS-32GB", 7, 0, 32, 80, 34087305216): ("v100-sxm2", "name", None, 0),
    ("AMD Instinct MI210", 9, 0, 64, 104, 68702699520): ("mi210", "name", 181, 0),
    # the trace is of half an MI250, which can do the same
    ("AMD Radeon Graphics", 9, 0, 64, 104, 68702699520): ("mi210", "properties", 181, 2),
    ("AMD Instinct MI300X", 9, 4, 64, 304, 206141652992): ("mi300x", "name", 1307.4, 0),
    ("AMD Instinct MI300X VF", 9, 4, 64, 304, 205571227648): ("mi300x", "name", 1307.4, 0),
    ("ARTEMIS", None, None, None, None, None): (None, None, None, 1),
    ("NVIDIA GeForce RTX 2080 Ti", 7, 5, 32, 68, 11554586624): (None, None, None, 1),
}


def _records():
    """Yield the records of devices of each trace, wherever in the file they stand."""
    for path in PUBLIC:
        with gzip.open(path) as file:
            _, key, rest = file.read().decode("utf-8", "replace").partition(_KEY)
        if key:
            found, _ = json.JSONDecoder().raw_decode(rest.lstrip())
            yield from ((path, record) for record in found)


def test_every_device_of_the_public_traces():
    seen = {}
    for path, record in _records():
        told = tuple(record.get(key) for key in _KEYS)
        found = identify(record)
        bf16 = found.peak_flop_per_s.get("bf16")
        tflop = None if bf16 is None else round(bf16 / 1e12, 1)
        got = (found.id, found.how, tflop, len(found.doubts))
        assert got == EXPECTED[told], path
        assert found.scale == 1.0
        seen[told] = got
    assert seen == EXPECTED
