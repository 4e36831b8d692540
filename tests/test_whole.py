from __future__ import annotations

import pytest

from traceparse.whole import whole


def test_a_file_is_there_when_all_of_it_is(tmp_path):
    path = tmp_path / "a.txt"
    with whole(path) as one, whole(tmp_path / "b.txt") as other:
        one.write_text("new")
        other.write_text("too")
        assert not path.exists()
    assert path.read_text() == "new"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_what_fails_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), whole(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert [found.read_text() for found in tmp_path.iterdir()] == ["old"]
