from __future__ import annotations

import gzip
import os
import zlib

import pytest
import zstandard

from traceparse.errors import InputError
from traceparse.ingest import source as source_module
from traceparse.ingest.listing import find
from traceparse.ingest.source import Source

TEXT = b'{"traceEvents": []}' * 5000
GZIP, ZSTD = gzip.compress(TEXT), zstandard.compress(TEXT)


def _read(path, data: bytes, size: int = 1000) -> tuple[bytes, str | None]:
    path.write_bytes(data)
    with Source(path) as source:
        blocks = list(iter(lambda: source.read(size), b""))
        assert all(len(block) == size for block in blocks[:-1])
        return b"".join(blocks), source.damage


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(TEXT, TEXT, id="plain"),
        pytest.param(GZIP, TEXT, id="gzip"),
        pytest.param(GZIP * 3, TEXT * 3, id="gzip of three members"),
        pytest.param(GZIP + b"\0" * 512, TEXT, id="gzip with padding"),
        pytest.param(ZSTD, TEXT, id="zstd"),
        pytest.param(ZSTD * 2, TEXT * 2, id="zstd of two frames"),
        pytest.param(b"", b"", id="empty"),
    ],
)
def test_content_decides_what_is_inflated(tmp_path, data, expected):
    assert _read(tmp_path / "trace.json.gz", data) == (expected, None)
    assert _read(tmp_path / "trace.json", data) == (expected, None)


@pytest.mark.parametrize("data", [GZIP[:-6], ZSTD[:-3]], ids=["gzip", "zstd"])
def test_a_stream_that_breaks_off_gives_what_came_before(tmp_path, data):
    found, damage = _read(tmp_path / "trace.json", data)
    assert damage == "its compressed data breaks off"
    assert TEXT.startswith(found)


def test_a_gzip_without_its_last_bytes_loses_no_text(tmp_path):
    assert _read(tmp_path / "trace.json", GZIP[:-4])[0] == TEXT


@pytest.mark.parametrize("data", [GZIP, ZSTD], ids=["gzip", "zstd"])
def test_something_else_after_a_member_is_said(tmp_path, data):
    found, damage = _read(tmp_path / "trace.json", data + b"{}")
    assert found == TEXT
    assert damage == "something that is not compressed follows its compressed data"


def test_damage_inside_is_said(tmp_path):
    noise = os.urandom(200_000)
    packed = bytearray(gzip.compress(noise))
    packed[1000:1100] = bytes(100)
    found, damage = _read(tmp_path / "trace.json", bytes(packed))
    assert damage is not None
    assert damage.startswith("its compressed data is damaged") or damage.endswith("breaks off")
    assert len(found) <= len(noise) + 1000


@pytest.mark.parametrize("before", [b"", GZIP])
def test_all_that_stands_before_damage_in_gzip_is_given(tmp_path, before):
    noise = os.urandom(5_000)
    packer = zlib.compressobj(wbits=31)
    whole = packer.compress(noise) + packer.flush(zlib.Z_FULL_FLUSH)
    found, damage = _read(tmp_path / "trace.json", before + whole + b"\xff" * 64)
    assert found == (TEXT if before else b"") + noise
    assert damage is not None
    assert damage.startswith("its compressed data is damaged")


def test_one_block_is_bounded_however_well_it_was_compressed(tmp_path, monkeypatch):
    """GIVEN 64 MiB of zeros in 64 KB WHEN inflated THEN no piece is larger than asked for."""
    zeros = bytes(64 << 20)
    monkeypatch.setattr(source_module, "_TRUSTED", 1 << 30)
    for packed in (gzip.compress(zeros), zstandard.compress(zeros)):
        path = tmp_path / "bomb.json"
        path.write_bytes(packed)
        with Source(path) as source:
            total = 0
            while block := source.read(1 << 20):
                assert len(block) <= 1 << 20
                assert source._held <= 34 << 20
                total += len(block)
            assert total == len(zeros)


def test_progress_counts_bytes_on_disk(tmp_path):
    path = tmp_path / "trace.json"
    path.write_bytes(GZIP)
    seen: list[int] = []
    with Source(path, seen.append) as source:
        source.read(1 << 20)
    assert sum(seen) == source.size == len(GZIP)


def test_find_searches_folders_and_globs_and_names_each_file_once(tmp_path):
    for name in (
        "b/rank1.json.gz",
        "a/rank0.json",
        "a/.hidden.json",
        "a/notes.txt",
        ".git/x.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    first, second = tmp_path / "a/rank0.json", tmp_path / "b/rank1.json.gz"
    assert find([tmp_path]) == [first, second]
    assert find([str(tmp_path / "*" / "rank*"), first]) == [first, second]
    assert find([str(tmp_path / "**" / "*.gz")]) == [second]
    assert find([second, tmp_path]) == [second, first]


def test_a_file_named_outright_may_have_any_name(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"")
    assert find([path]) == [path]


def test_a_path_with_glob_characters_that_exists_is_a_path(tmp_path):
    path = tmp_path / "rank[0].json"
    path.write_bytes(b"")
    assert find([path]) == [path]


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(InputError, match=r"gone\.json: no such file or folder; check the path"):
        find([tmp_path / "gone.json"])
    with pytest.raises(InputError, match="no trace in this folder"):
        find([tmp_path])


def test_a_file_that_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(InputError, match="this is no regular file; give a trace file"):
        Source(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        Source(tmp_path / "gone")


def test_a_file_that_fails_while_it_is_read_is_said(tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_bytes(b"{}")

    class Broken:
        def read(self, _size):
            raise OSError(5, "Input/output error")

        def close(self):
            pass

    with Source(path) as source:
        source._file.close()
        monkeypatch.setattr(source, "_file", Broken())
        with pytest.raises(InputError, match="Input/output error"):
            source.read(1)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_what_inflates_as_no_trace_does_is_refused(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(source_module, "_TRUSTED", 1 << 20)
    path = tmp_path / "bomb.json"
    path.write_bytes(pack(bytes(5 << 20)))
    with (
        Source(path) as source,
        pytest.raises(InputError, match="more than 250-fold, to over 1"),
    ):
        while source.read(1 << 16):
            pass
    path.write_bytes(pack(os.urandom(5 << 20)))
    with Source(path) as source:
        assert sum(len(block) for block in iter(lambda: source.read(1 << 16), b"")) == 5 << 20


@pytest.mark.parametrize("raw_block", [1, 2, 3, 5, 64])
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_members_may_end_anywhere_in_a_block_of_the_file(
    tmp_path, monkeypatch, pack, raw_block
):
    monkeypatch.setattr(source_module, "_RAW_BLOCK", raw_block)
    parts = [b"one", b"two " * 99, b"three"]
    between = bytes(70) if pack is gzip.compress else b""
    data = between.join(pack(part) for part in parts)
    assert _read(tmp_path / "trace.json", data) == (b"".join(parts), None)


def test_zstd_frames_without_content_are_skipped(tmp_path):
    skippable = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    data = skippable + zstandard.compress(TEXT) + skippable + zstandard.compress(TEXT)
    assert _read(tmp_path / "trace.json", data) == (TEXT * 2, None)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="this is no regular file"):
        Source(tmp_path / "pipe.json")
    with pytest.raises(InputError, match="no trace in this folder"):
        find([tmp_path])
