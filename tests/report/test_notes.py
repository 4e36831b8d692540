"""Notes and file health, said once."""

from __future__ import annotations

from traceparse.errors import Note
from traceparse.report.notes import health_text, note_lines


def texts(*notes: Note) -> list[str]:
    return [line.text for line in note_lines(notes)]


def test_a_note_says_where_it_applies():
    assert texts(
        Note("truncated", "ends at byte 7", rank=1, file="b.json"),
        Note("rank_slow", "starts late", rank=3),
        Note("world", "one rank only"),
    ) == ["b.json: ends at byte 7", "rank 3: starts late", "one rank only"]


def test_a_place_that_the_message_names_is_not_said_twice():
    assert texts(Note("x", "b.json: ends early", file="b.json")) == ["b.json: ends early"]


def test_the_same_of_several_files_is_one_line():
    notes = [Note("old", "an old layout", rank, f"{rank}.json") for rank in range(3)]
    assert texts(*notes) == ["3 files (first: 0.json): an old layout"]


def test_the_like_of_several_files_is_one_line_that_says_so():
    notes = [Note("cut", f"ends at byte {rank}", rank, f"{rank}.json") for rank in range(3)]
    assert texts(*notes) == [
        "3 files (first: 0.json): ends at byte 0 (and 2 more like it in report.json)"
    ]


def test_the_same_of_several_ranks_is_one_line():
    notes = [Note("late", "starts late", rank) for rank in (5, 0, 1)]
    assert texts(*notes) == ["ranks 0-1, 5: starts late"]


def test_different_notes_on_the_whole_run_stay_apart_and_equal_ones_do_not():
    notes = [Note("steps", "a"), Note("steps", "b"), Note("steps", "a")]
    assert texts(*notes) == ["a", "b"]


def test_more_notes_on_the_whole_run_than_anyone_reads_are_one_line():
    notes = [Note("ambiguous", f"process group {n}: two ways") for n in range(5)]
    assert texts(*notes[:4]) == [note.message for note in notes[:4]]
    assert texts(*notes, notes[0]) == [
        "process group 0: two ways (and 4 more like it in report.json)"
    ]


def test_a_healthy_file_is_not_worth_a_word(make):
    assert health_text(make.file(skipped={"python_function": 9}, repaired={"quote": 0})) is None


def test_damage_is_said_in_words(make):
    file = make.file(
        truncated=True,
        skipped={"time_missing": 1_200, "sync": 4, "undecodable": 3},
        repaired={"quote": 2, "never": 0},
    )
    assert health_text(file) == (
        "truncated; lost 1,203 events (1,200 time_missing, 3 undecodable); "
        "repaired 2 events (2 quote)"
    )


def test_damage_that_notes_have_said_is_not_said_again(make):
    file = make.file(truncated=True, skipped={"time_missing": 1}, repaired={"quote": 2})
    assert health_text(file, {"truncated", "events_lost"}) == "repaired 2 events (2 quote)"
    assert health_text(file, {"truncated", "events_lost", "repaired"}) is None
