from __future__ import annotations

import gc
import os
import tempfile

import pytest

from traceparse.errors import TraceparseError
from traceparse.spill import Place, Spill


def test_what_is_put_is_got_in_any_order():
    spill = Spill()
    places = [spill.put(data) for data in (b"one", b"", memoryview(b"three"))]
    assert places == [Place(0, 3), Place(3, 0), Place(3, 5)]
    assert [spill.get(place) for place in reversed(places)] == [b"three", b"", b"one"]
    assert spill.get(Place(1, 4)) == b"neth"


def test_reads_and_writes_that_do_less_are_gone_on_with(monkeypatch):
    write, read = os.write, os.read
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:3]))
    monkeypatch.setattr(os, "read", lambda file, size: read(file, min(size, 2)))
    spill = Spill()
    assert spill.get(spill.put(b"0123456789")) == b"0123456789"


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spill = Spill()
    spill.put(b"some")
    file = spill._file
    os.fstat(file)
    assert list(tmp_path.iterdir()) == []
    del spill
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


def test_no_file_is_made_before_it_is_needed(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: pytest.fail("it was made"))
    Spill()


def test_no_room_is_said_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def full(*_):
        raise OSError(28, "No space left on device")

    spill = Spill()
    place = spill.put(b"some")
    for name in ("write", "read"):
        monkeypatch.setattr(os, name, full)
    line = (
        f"{tmp_path}: what a large trace needs beside memory cannot be kept there: No space "
        "left on device; set TMPDIR to a folder with more room"
    )
    for call in (lambda: spill.put(b"more"), lambda: spill.get(place)):
        with pytest.raises(TraceparseError) as caught:
            call()
        assert str(caught.value) == line
