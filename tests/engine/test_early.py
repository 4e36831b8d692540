from __future__ import annotations

import pytest

from traceparse.engine import processes
from traceparse.engine.early import default_folder, get_ready


@pytest.fixture
def started(monkeypatch):
    starts: list[bool] = []
    monkeypatch.setattr(processes, "get_ready", lambda: starts.append(True))
    return starts


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "traceparse"


@pytest.mark.parametrize("cache", [None, "gone", "empty", "a file"])
def test_many_files_that_cannot_be_cached_need_processes(started, tmp_path, cache):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").touch()
    get_ready([str(tmp_path)], jobs=2, cache=cache and tmp_path / cache)
    assert started


def test_others_may_need_none(started, tmp_path):
    trace = tmp_path / "rank0.json"
    trace.touch()
    get_ready([str(tmp_path)], jobs=1, cache=None)
    get_ready([str(trace)], jobs=2, cache=None)
    get_ready([str(tmp_path)], jobs=2, cache=tmp_path)
    assert not started
