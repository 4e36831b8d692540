from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from traceparse.errors import InputError
from traceparse.ingest.listing import find, place_of

NAMES = (
    "run/b/rank1.json.gz",
    "run/b/c/rank3.json",
    "run/a/rank0.json",
    "run/rank9.JSON",
    "run/a/rank0_facts.json",
    "run/a/notes.txt",
    "run/a/.hidden.json",
    "run/.git/x.json",
    "run2/rank5.json",
    "run3/notes.txt",
)


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    for name in NAMES:
        files.pipe(f"/{name}", b"")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


@pytest.fixture
def folder(tmp_path):
    for name in NAMES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    "pattern",
    [
        "run",
        "run/",
        "run/*",
        "run/**/rank*.json",
        "run*/rank?.json",
        "run/[ab]",
        "*/a/*",
        "run/.g*",
    ],
)
def test_a_url_names_what_a_path_does(folder, pattern):
    local = [str(path).removeprefix(f"{folder}/") for path in find([f"{folder}/{pattern}"])]
    remote = [
        str(place).removeprefix("memory://").lstrip("/")
        for place in find([f"memory://{pattern}"])
    ]
    assert remote == local
    assert local


@pytest.mark.usefixtures("memory")
def test_a_file_that_is_named_is_taken_as_it_is():
    urls = ["memory://run/a/notes.txt", "memory://run/a/rank0_facts.json"]
    assert [str(place) for place in find([*urls, *urls])] == urls


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("memory://gone", "no such file or folder, or no access to it; check the URL"),
        ("memory://gone/*.json", "no such file or folder, or no access to it; check the URL"),
        (
            "memory://run3/",
            "no trace in this folder: it holds no file named *.json, *.json.gz or *.json.zst; "
            "give the folder that the profiler wrote to",
        ),
        (
            "zip://x.json::memory://x.zip",
            "URLs inside one another are not read; give that of the traces",
        ),
        (
            "nothing://x",
            "unknown protocol (Protocol not known: nothing); give a path, or a URL that fsspec "
            "reads, as s3://...",
        ),
    ],
)
def test_what_a_url_does_not_name(url, expected):
    with pytest.raises(InputError) as caught:
        find([url])
    assert str(caught.value) == f"{url}: {expected}"


def test_a_name_with_letters_of_patterns_is_found(memory):
    memory.pipe("/odd/a[1].json", b"")
    assert [str(place) for place in find(["memory://odd/a[1].json"])] == [
        "memory://odd/a[1].json"
    ]


def test_what_was_listed_before_is_listed_again(memory):
    before = len(find(["memory://run"]))
    memory.pipe("/run/rank77.json", b"")
    assert len(find(["memory://run"])) == before + 1


def test_a_file_url_is_a_path(folder):
    assert place_of(f"file://{folder}/run") == folder / "run"
    assert find([f"file://{folder}/run2"]) == [folder / "run2" / "rank5.json"]
    assert place_of("runs/a") == Path("runs/a")
