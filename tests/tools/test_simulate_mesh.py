"""A mesh that is made of a few copies is the job that it says it is, and its truth is found."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from tools import simulate as command
from tools.simulate_digests import digests_of
from tools.simulate_gloo import run_job
from tools.simulate_mesh import HOST, mesh_job
from tools.simulate_record import record
from tools.simulate_write import trace_bytes
from traceparse.engine.cache import Cache
from traceparse.ingest import read_traces
from traceparse.rank import digest
from traceparse.run import assemble

SIZE = {"tensor": 4, "stages": 2}  # of a copy


@pytest.fixture(scope="module")
def small():
    return mesh_job(ranks=40, seed=3, layers=1, steps=2, **SIZE)


@pytest.fixture(scope="module")
def small_traces(small):
    return dict(small.traces())


@pytest.fixture(scope="module")
def large():
    return mesh_job(ranks=64, seed=1, layers=2, **SIZE)


@pytest.fixture(scope="module")
def report(large):
    return assemble(list(digests_of(large)))


def test_a_job_of_copies_is_what_a_simulation_of_all_its_ranks_gives(small, small_traces):
    assert len(small.of) > len(set(small.of)), "no copy is repeated"
    job = small.job()
    for recording in record(job, run_job(job)):
        name = f"rank{recording.rank}_trace.json"
        assert small_traces[name] == trace_bytes(job, recording), name


def test_its_digests_are_those_of_its_traces(small, small_traces, tmp_path):
    told = list(digests_of(small))
    assert [one.health.path for one in told] == list(small_traces)
    for one in told:
        path = tmp_path / one.health.path
        path.write_bytes(small_traces[path.name])
        (own,) = (digest(trace) for trace in read_traces(path))
        health = replace(own.health, path=one.health.path, bytes=one.health.bytes)
        assert spelled(one) == spelled(replace(own, health=health)), path.name


def spelled(one):
    """Return a digest whose texts have no numbers, as these depend on how it was made."""
    devices = []
    for device in one.devices:
        calls = device.calls
        texts = pa.schema(
            field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field
            for field in calls.schema
        )
        devices.append(replace(device, calls=calls.cast(texts)))
    return replace(one, devices=tuple(devices))


def test_who_is_waited_for_is_found_and_why(large, report):
    straggler = large.truth()["straggler"]
    (found,) = [one for one in report.findings if one["code"] == "straggler"]
    assert found["title"] == f"rank {straggler['rank']} is waited for: {straggler['cause']}"
    changed = [row for row in report.what_if["changes"] if row["ranks"]]
    assert [row["ranks"] for row in changed] == [[straggler["rank"]]]


def test_clocks_are_found_to_the_nanosecond(large, report):
    offsets = large.truth()["offsets_ns"]
    assert len(set(offsets.values())) == 64 // HOST
    assert report.clock["offsets_ns"] == offsets
    assert report.clock["residual_ns"] == 0


def test_every_collective_is_matched_and_transfers_as_long_as_it_does(large, report):
    groups = {"mesh_tp": "1", "mesh_dp": "3", "send/recv": None}
    for kind, told in large.truth()["collectives"].items():
        rows = [row for row in report.collectives if row["process_group"] == groups[kind]]
        found = {name: sum(row[name] for row in rows) for name in told}
        assert found == told, kind
    assert not {"collectives_unmatched", "collectives_disagree"} & {
        note.code for note in report.notes
    }


def test_copies_are_on_whole_hosts_and_several():
    for ranks in (8, 36):
        with pytest.raises(ValueError, match="two or more copies of 8 ranks"):
            mesh_job(ranks=ranks, seed=0, **SIZE)
    with pytest.raises(ValueError, match="whole hosts"):
        mesh_job(ranks=24, seed=0, tensor=2, stages=2)


def test_the_command_writes_digests_as_they_are_kept(tmp_path, capsys):
    words = ["mesh", "--ranks", "64", "--layers", "1", "--steps", "1", "--digests"]
    assert command.main([*words, "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("wrote 64 digests and truth.json")
    truth = json.loads((tmp_path / "truth.json").read_text())
    kept = Cache(tmp_path).get(command.digest_path(tmp_path, 63), tmp_path / "moved")
    assert kept is not None
    assert kept[0].header.rank == truth["world_size"] - 1


def test_others_are_neither_so_large_nor_digests(tmp_path, capsys):
    for more in (["--ranks", "2048"], ["--digests"]):
        with pytest.raises(SystemExit):
            command.main(["ddp", *more, "--out", str(tmp_path)])
        assert "are of mesh alone" in capsys.readouterr().err
