"""Communication that costs, from views worked out by hand."""

from __future__ import annotations

import pytest

from traceparse.run.findings.communication import (
    communication_bound,
    low_overlap,
    tiny_collectives,
)

SPLIT = {"exposed_transfer": 200, "exposed_wait": 60, "pipeline_wait": 0, "exposed_unsplit": 40}


def won(change, ratio):
    return {"changes": [{"change": change, "won_ratio": ratio}]}


@pytest.mark.parametrize(
    ("exposed", "severity"), [(99, None), (100, "info"), (249, "info"), (250, "warning")]
)
def test_bounds_are_those_of_the_bands(seen, exposed, severity):
    found = list(communication_bound(seen.view(compute=1_000 - exposed, comm=exposed)))
    assert [one["severity"] for one in found] == ([severity] if severity else [])


def test_what_is_won_back_is_no_waiting(seen):
    view = seen.view(
        compute=700, comm=300, communication_ns=SPLIT, collectives=[seen.collective()]
    )
    (found,) = communication_bound(view)
    assert found["lost_ratio"] == pytest.approx(0.24)
    assert found["title"] == "communication is exposed for 30.0% of the device-steps"
    assert found["evidence"] == (
        "of the device-steps: 20.0% transfer, 6.0% waiting for other ranks in collectives, "
        "4.0% transfer or waiting, which cannot be told apart; most exposed is allreduce in "
        "group 0 among ranks 0-3 of 16.8 MB; what it would win back is an upper bound: waiting "
        "may take the place of transfer"
    )
    assert "no_sync()" in found["advice"]


def test_a_replay_knows_better_what_is_won(seen):
    fields = {"communication_ns": SPLIT, "collectives": [seen.collective()]}
    (found,) = communication_bound(
        seen.view(compute=700, comm=300, what_if=won("network_free", 0.11), **fields)
    )
    assert found["lost_ratio"] == 0.11
    assert "a replay with a network that takes no time wins 11.0%" in found["evidence"]
    (found,) = communication_bound(
        seen.view(compute=700, comm=300, what_if=won("network_free", -0.001), **fields)
    )
    assert found["lost_ratio"] == 0.0
    assert found["advice"].startswith("look at what else bounds the steps first")


def test_where_most_is_waiting_ranks_are_balanced_first(seen):
    split = {**SPLIT, "exposed_transfer": 50, "exposed_wait": 210}
    straggler = {"code": "straggler", "title": "rank 1 ...", "lost_ratio": 0.2}
    (found,) = communication_bound(
        seen.view(compute=700, comm=300, communication_ns=split, stragglers=[straggler])
    )
    assert found["title"].endswith("most of it waiting for others")
    assert found["advice"].startswith("balance the ranks first")
    assert (
        "findings `straggler` claim 20.0% of the steps, which is in this" in found["evidence"]
    )


def test_what_cannot_be_told_apart_is_said(seen):
    (found,) = communication_bound(seen.view(compute=700, comm=300))
    assert "give the traces of all ranks" in found["evidence"]
    assert found["lost_ratio"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("allreduce", "bucket_cap_mb"),
        ("_allgather_base", "set_modules_to_forward_prefetch"),
        ("_reduce_scatter_base", "set_modules_to_forward_prefetch"),
        ("send/recv", "micro-batch"),
        ("all_to_all", "async_op=True"),
        (None, "async_op=True"),
    ],
)
def test_advice_is_for_what_is_called(seen, name, words):
    view = seen.view(
        compute=800, comm=200, communication_ns=SPLIT, collectives=[seen.collective(name)]
    )
    (found,) = low_overlap(view)
    assert words in found["advice"]


def test_overlap_wins_what_there_is_compute_for(seen):
    split = {**SPLIT, "exposed_transfer": 300, "exposed_wait": 100, "exposed_unsplit": 0}
    fields = {"communication_ns": split, "comm": 400}
    (found,) = low_overlap(seen.view(compute=600, overlap=100, **fields))
    assert (found["severity"], found["lost_ratio"]) == ("warning", pytest.approx(0.3))
    assert found["title"] == "only 20.0% of communication runs beside compute"
    assert "of the 40.0% of the device-steps in which it is exposed, 30.0%" in found["evidence"]
    # nothing left to hide it behind
    assert not list(low_overlap(seen.view(compute=80, overlap=60, idle=520, **fields)))
    # a replay without it would last as long
    fields["what_if"] = won("network_free", 0.01)
    assert not list(low_overlap(seen.view(compute=600, overlap=100, **fields)))


@pytest.mark.parametrize("fields", [{}, {"comm": 100, "overlap": 100}])
def test_good_overlap_is_none_of_its_business(seen, fields):
    assert not list(low_overlap(seen.view(**fields)))


def tiny(seen, **fields):
    rows = [
        seen.collective(message_bytes=1_000, count=60, exposed_ns=600, transfer_ns=1_200_000),
        seen.collective(exposed_ns=200),
    ]
    return seen.view(
        compute=800, comm=200, collectives=rows, **{"num_steps_in_files": 3, **fields}
    )


def test_tiny_collectives_are_counted_by_step(seen):
    (found,) = tiny_collectives(tiny(seen))
    # three quarters of the exposed time, of which one call in twenty stays
    assert found["lost_ratio"] == pytest.approx(0.15 * 0.95)
    assert found["severity"] == "warning"
    assert found["title"].startswith("20 collectives a step are too small")
    assert "20.0 us each once all have come" in found["evidence"]
    assert not list(tiny_collectives(tiny(seen, num_steps_in_files=7)))


def test_what_is_hidden_or_of_unknown_size_is_not_tiny(seen):
    for field in ({"exposed_ns": 0}, {"message_bytes": None}, {"message_bytes": (1 << 20) + 1}):
        row = seen.collective(**{"message_bytes": 1_000, "count": 60, **field})
        view = seen.view(compute=800, comm=200, collectives=[row])
        assert not list(tiny_collectives(view))
