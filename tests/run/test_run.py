from __future__ import annotations

import pyarrow.compute as pc

from tests.traces import kernel, launch, op, step, write, write_rank
from traceparse.engine import read
from traceparse.tables import TABLES, schema_of


def test_tables_hold_all_ranks_under_one_another(tmp_path):
    for rank in range(2):
        write_rank(tmp_path, rank, 3)
    run = read(tmp_path)
    assert run.ranks == (0, 1)
    assert "missing_ranks" in {note.code for note in run.notes}
    for name, table in run.tables.items():
        assert table.schema.equals(schema_of(name)), name
    assert set(TABLES) - set(run.tables) == {"python_functions", "counters"}
    assert run.tables["kernels"]["rank"].to_pylist() == [0, 0, 1, 1]
    assert pc.sum(run.tables["kernels"]["dur_ns"]).as_py() == 20_000
    assert run.tables["steps"]["exposed_comm_ns"].to_pylist() == [2000, 2000]
    assert run.tables["notes"].num_rows == len(run.notes)


def test_frames_for_people(tmp_path):
    write_rank(tmp_path, 0, 1)
    frame = read(tmp_path).tables["kernels"].to_pandas()
    assert frame.groupby("kind", observed=True)["dur_ns"].sum().to_dict() == {
        "compute": 6000,
        "comm": 4000,
    }


def test_shapes_that_are_written_alike_make_a_frame(tmp_path):
    """Scalars are left out of what people read, so inputs that differ may look the same."""
    dims = [[[2, 3], []], [[2, 3]], [[], [2, 3]]]
    events = []
    for n, sizes in enumerate(dims, 1):
        events.append(op(10 * n, 9, "aten::relu", **{"Input Dims": sizes}))
        events += [launch(10 * n + 1, correlation=n), kernel(100 + n, 1, correlation=n)]
    frame = read(write(tmp_path / "rank0.json", events)).tables["kernels"].to_pandas()
    assert frame["shapes"].tolist() == ["2x3"] * 3
    assert frame["shapes"].cat.categories.tolist() == ["2x3"]


def test_steps_and_files_are_tables_too(tmp_path):
    events = [step(1, 1, 5), {"ph": "M"}]
    path = write(tmp_path / "rank0.json", [*events, kernel(100, 5)])
    run = read(path)
    (row,) = run.tables["files"].to_pylist()
    assert (row["path"], row["skipped"], row["events"]) == (str(path), [("metadata", 1)], 3)
    (step_row,) = run.tables["steps"].to_pylist()
    assert (step_row["step"], step_row["device"], step_row["span_ns"]) == (1, "0", None)
