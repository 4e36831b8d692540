from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from traceparse.whole import whole, whole_new


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


def test_a_new_file_is_there_when_all_of_it_is(tmp_path):
    path = tmp_path / "a.txt"
    with whole_new(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert [found.read_text() for found in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_new_file_replaces_none(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(type(tmp_path), "hardlink_to", no_links)
    path = tmp_path / "a.txt"
    with pytest.raises(FileExistsError), whole_new(path) as temporary:
        temporary.write_text("new")
        path.write_text("from a moment ago")
    assert [found.read_text() for found in tmp_path.iterdir()] == ["from a moment ago"]


def no_links(_path, _target):
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links_has_new_files_too(tmp_path, monkeypatch):
    monkeypatch.setattr(type(tmp_path), "hardlink_to", no_links)
    path = tmp_path / "a.txt"
    with whole_new(path) as temporary:
        temporary.write_text("new")
    assert [found.read_text() for found in tmp_path.iterdir()] == ["new"]


def test_a_new_file_that_fails_is_none(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_new(tmp_path / "a.txt") as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_two_that_write_the_same_have_names_of_their_own(tmp_path):
    path = tmp_path / "a.txt"
    names = []
    with whole(path) as one, ThreadPoolExecutor() as pool:

        def write():
            with whole(path) as other:
                other.write_text("other")
                return other

        names = [one, pool.submit(write).result()]
        one.write_text("one")
    assert len(set(names)) == 2
    assert path.read_text() == "one"
