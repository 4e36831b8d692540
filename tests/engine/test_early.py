from __future__ import annotations

import pytest

from traceparse.engine import processes
from traceparse.engine.early import default_folder, readers_ready


@pytest.fixture
def started(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(processes, "get_ready", lambda: said.append("start"))
    monkeypatch.setattr(processes, "end_server", lambda: said.append("end"))
    return said


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "traceparse"


@pytest.mark.parametrize("cache", [None, "gone", "empty", "a file"])
def test_many_files_that_cannot_be_cached_need_processes(started, tmp_path, cache):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a file").touch()
    with readers_ready([str(tmp_path)], jobs=2, cache=cache and tmp_path / cache):
        assert started == ["start"]
    assert started == ["start", "end"]


def test_others_may_need_none(started, tmp_path):
    trace = tmp_path / "rank0.json"
    trace.touch()
    for path, jobs, cache in ((tmp_path, 1, None), (trace, 2, None), (tmp_path, 2, tmp_path)):
        with readers_ready([str(path)], jobs=jobs, cache=cache):
            assert "start" not in started


@pytest.mark.parametrize(
    ("url", "is_many"),
    [
        ("s3://bucket/run", True),
        ("s3://bucket/run/rank*.json", True),
        ("s3://bucket/run/rank0.json.gz", False),
    ],
)
def test_what_a_url_names_is_guessed(started, url, is_many):
    with readers_ready([url], jobs=2, cache=None):
        assert ("start" in started) == is_many
