"""Collectives beside each other: of the same ranks, kind, data type and size."""

from __future__ import annotations

from tests.run.compare.made import collective, compared, report_of, steps_of

STEPS = steps_of(1_000, 1_000)


def collectives(base, new, *, ranks=(2, 2)):
    sides = [
        report_of(*[STEPS] * num, collectives=rows)
        for num, rows in zip(ranks, (base, new), strict=True)
    ]
    return compared(*sides).collectives


def test_one_is_exposed_longer():
    """Of two steps on two ranks: calls and transfer a step, waiting of a mean device-step."""
    rows = collectives(
        [collective("allreduce", 64)],
        [collective("allreduce", 64, count=6, wait_ns=480, exposed_ns=560, process_group="dp")],
    )
    assert rows == [
        {
            "process_group": "dp",  # names of groups come and go; its ranks are the same
            "ranks": [0, 1],
            "collective": "allreduce",
            "dtype": "Float",
            "message_bytes": 64,
            "group_size": 2,
            "change": "changed",
            "base": {"count": 2.0, "transfer_ns": 200, "wait_ns": 20, "exposed_ns": 40},
            "new": {"count": 3.0, "transfer_ns": 200, "wait_ns": 120, "exposed_ns": 140},
            "delta_count": 1.0,
            "delta_transfer_ns": 0,
            "delta_wait_ns": 100,
            "delta_exposed_ns": 100,
        }
    ]


def test_other_sizes_types_and_ranks_are_others():
    base = [collective("allreduce", 64)]
    for new in (
        collective("allreduce", 128),
        collective("allreduce", 64, dtype="Half"),
        collective("allgather", 64),
        collective("allreduce", 64, ranks=[0]),
    ):
        rows = collectives(base, [new])
        assert rows is not None
        assert {row["change"] for row in rows} == {"appeared", "disappeared"}
        assert {row["delta_exposed_ns"] for row in rows} == {40, -40}


def test_the_same_is_the_same_and_the_largest_change_comes_first():
    rows = collectives(
        [collective("allreduce", 64), collective("allgather", 8)],
        [collective("allreduce", 64), collective("allgather", 8, wait_ns=0)],
    )
    assert rows is not None
    assert [(row["collective"], row["change"]) for row in rows] == [
        ("allgather", "changed"),
        ("allreduce", "same"),
    ]


def test_what_is_unknown_stays_so():
    rows = collectives(
        [collective("allreduce", None, transfer_ns=None, wait_ns=None)],
        [collective("allreduce", None)],
    )
    assert rows is not None
    (row,) = rows
    assert row["base"]["transfer_ns"] is None
    assert (row["delta_transfer_ns"], row["delta_wait_ns"]) == (None, None)
    assert row["delta_exposed_ns"] == 0
    assert collectives(None, []) is None


def test_between_jobs_of_other_sizes_all_ranks_are_all_ranks():
    rows = collectives(
        [collective("allreduce", 64), collective("allgather", 8, ranks=[0], group_size=1)],
        [
            collective("allreduce", 64, ranks=[0, 1, 2], group_size=3),
            collective("allgather", 8, ranks=[2], group_size=1),
        ],
        ranks=(2, 3),
    )
    assert rows is not None
    assert {row["change"] for row in rows} == {"changed"}
    assert len(rows) == 2
