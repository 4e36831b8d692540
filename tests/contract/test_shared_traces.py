"""Public traces of many machines: every figure is that of the shared reference, to the ns."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests import oracle
from tests.contract.places import SHARED
from tests.contract.seen import partition_errors, seen
from traceparse.engine import analyze
from traceparse.ingest import FRAME, Kept, read_traces
from traceparse.rank import digest

BASE = re.compile(rb'"baseTimeNanoseconds":\s*(\d+)')
SMALL_BYTES = 3_000_000
REFERENCES = sorted(
    path
    for path in (SHARED / "oracle").rglob("*.json")
    if path.name != "multirank.json"  # about matching between ranks
)

pytestmark = pytest.mark.skipif(
    not REFERENCES,
    reason=f"no traces at {SHARED}; say where they are in TRACEPARSE_SHARED_TRACES",
)


def trace_of(reference):
    return SHARED / f"{reference.relative_to(SHARED / 'oracle')}.gz"


def moved(times, base_ns):
    """Move a reference's TIMES, which have no base in them, to the file's own base."""
    if times is None:
        return None
    return times | {name: times[name] + base_ns for name in ("start_ns", "end_ns")}


def expected_devices(reference, base_ns):
    return sorted(
        (
            {
                "device": found["device"],
                "window": moved(found["window"]["contract"], base_ns),
                "steps": [
                    {name: cut[name] for name in ("step", "name", "open_ended")}
                    | {"times": moved(cut.get("contract"), base_ns)}
                    for cut in found["steps"]
                ],
                "kernels": found.get("kernels"),
            }
            for found in reference["devices"]
        ),
        key=lambda found: str(found["device"]),
    )


def test_all_fifty_are_there():
    assert len(REFERENCES) == 50


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda path: path.stem)
def test_analyzer_agrees_with_reference(reference):
    trace = trace_of(reference)
    content = gzip.decompress(trace.read_bytes())
    base = BASE.search(content)
    base_ns = int(base[1]) if base else 0
    want = expected_devices(json.loads(reference.read_text()), base_ns)

    found = seen(trace)

    assert found["devices"] == want
    assert partition_errors(found) == []
    if len(content) <= SMALL_BYTES:
        by_oracle = oracle.analyze(*oracle.load(content))
        assert by_oracle["devices"] == want
        assert found["skipped"] == by_oracle["skipped"]


def test_eight_ranks_of_eight():
    report = analyze(SHARED / "param-dlrm").to_dict()
    assert report["run"]["ranks"] == list(range(8))
    assert report["run"]["world_size"] == 8
    assert report["run"]["missing_ranks"] == []
    assert [note for note in report["notes"] if "rank" in note["code"]] == []


def test_a_missing_rank_is_named(tmp_path):
    for trace in (SHARED / "param-dlrm").glob("*.json.gz"):
        if not trace.name.startswith("worker5_"):
            shutil.copy(trace, tmp_path)
    report = analyze(tmp_path).to_dict()
    assert report["run"]["missing_ranks"] == [5]
    assert any("5" in note["message"] for note in report["notes"])


OF_PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"}


def products(found):
    """Add up the operators that the reference counts, by name."""
    sums: dict[str, dict[str, int]] = {}
    for row in found.operators:
        if row.op in OF_PRODUCTS:
            own = sums.setdefault(row.op, {"flop": 0, "kernel_time_ns": 0, "ops": 0})
            own["flop"] += row.flop
            own["kernel_time_ns"] += row.time_ns
            own["ops"] += row.count
    return sums


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda path: path.stem)
def test_products_and_their_kernels_agree_with_reference(reference):
    """Whichever link the reference goes by: here it is the place of the launch on the host."""
    gemm = json.loads(reference.read_text())["gemm"]
    if gemm is None:
        pytest.skip("the reference has no figures of products: no shapes, or no device")
    (trace,) = read_traces(trace_of(reference), rank=0)
    assert products(digest(trace)) == gemm["by_op"]


def without_stacks(trace):
    marks = trace.kept["annotations"].table()
    marks = marks.filter(pc.not_equal(marks["category"].cast(pa.string()), FRAME))
    return replace(trace, kept={**trace.kept, "annotations": Kept.of(marks)})


def test_the_checkpointed_blocks_of_a_resnet_are_recomputed():
    """3 steps, 4 layers in a checkpoint each: what repeats is all but the stem and the head.

    Python's stack and the structure of the graph tell the same.
    """
    (trace,) = read_traces(SHARED / "mi300x-resnet-act-checkpoint.json.gz", rank=0)
    found = digest(trace)
    assert trace.tables["annotations"]["category"].to_pylist().count(FRAME) == 3 * 4
    again = sum(row.recompute_flop for row in found.operators)
    total = sum(row.flop for row in found.operators)
    assert (again, total) == (101_732_843_520, 421_185_208_320)
    by_structure = digest(without_stacks(trace))
    assert by_structure.operators == found.operators
    forward = [row for row in found.operators if row.op in FORWARD]
    repeated = {(row.shapes, row.count) for row in forward if row.is_recompute}
    once = {(row.shapes, row.count) for row in forward if not row.is_recompute} - repeated
    assert once == {("10x3x224x224, 64x3x7x7", 3), ("1000, 10x512, 512x1000", 3)}
    assert len(repeated) == 10


FORWARD = {"aten::miopen_convolution", "aten::addmm"}
