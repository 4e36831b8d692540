"""Names that torch writes badly, and disks that are full."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.loops import facts_beside, names_in, work
from traceparse.capture import profile
from traceparse.engine import pack
from traceparse.ingest import read_trace

#: Does torch hide them?
NAMES = {
    'a "quote"': False,
    "a back\\slash": False,
    "ends with \\": False,
    "é and \U0001f600": True,
    "new\nline": False,
    "tab\tulator": True,
    "x" * 10_000: False,
    '{"a": [1, 2]}': False,
    "Record Window End": False,
}


def captured(out: Path, names: list[str], **options: Any) -> profile:
    with profile(out, steps=range(1, 3), **options) as prof:
        for _ in range(4):
            for name in names:
                with torch.profiler.record_function(name):
                    work()
            prof.step()
    return prof


@pytest.mark.usefixtures("packed_at_once")
@pytest.mark.parametrize(("name", "is_hidden"), NAMES.items(), ids=map(repr, range(len(NAMES))))
def test_names_of_any_letters_leave_a_trace_that_is_read_whole(
    tmp_path: Path, name: str, is_hidden: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = captured(tmp_path, [name]).path
    assert path is not None
    trace = read_trace(path)
    assert not trace.health.truncated
    assert trace.health.events == facts_beside(path)["num_events"]
    lost = [text for text in caplog.messages if "named `unknown`" in text]
    assert len(lost) == is_hidden
    assert len(caplog.messages) == len(set(caplog.messages))


@pytest.mark.usefixtures("packed_at_once")
def test_facts_of_any_letters_are_the_same_in_the_trace_and_beside_it(
    tmp_path: Path, fake_group: Callable[..., None]
) -> None:
    fake_group()
    for name in NAMES:
        torch.distributed.new_group([2, 3], group_desc=name)
    prof = captured(tmp_path, ["x"])
    path = tmp_path / "rank3_trace.json.gz"
    assert prof.path == path
    text = gzip.decompress(path.read_bytes()).decode("ascii", "replace")
    told = json.loads("{" + text.split("\n")[1].rstrip(",") + "}")["traceparse"]
    assert [group["description"] for group in told["groups"]] == ["default_pg", *NAMES]
    assert told.items() <= facts_beside(path).items()
    assert "host_name" not in text
    assert os.uname().nodename not in text
    assert str(tmp_path) not in text


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except OSError as error:
        pytest.skip(f"no mount: {error}")
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_full_disk_loses_the_trace_and_stops_nothing(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = 0
    with profile(small_disk, steps=range(1, 3)) as prof:
        for _ in range(4):
            for _ in range(200):
                work()
            prof.step()
            done += 1
    assert done == 4
    assert prof.path is None
    assert names_in(small_disk) == []
    (message,) = caplog.messages
    path = small_disk / "rank0_trace.json.gz"
    assert message.startswith(
        f"traceparse: no trace was kept, training goes on: {path}: torch "
    )
    assert message.endswith(("is the disk full?", "is the directory writable?"))


@pytest.mark.usefixtures("packed_at_once")
def test_a_disk_that_is_full_when_the_trace_is_packed_leaves_the_raw_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_raw: Path, packed: Path, *_: Any, **__: Any) -> None:
        packed.write_bytes(b"half")
        raise OSError(28, "No space left on device", str(packed))

    monkeypatch.setattr(pack, "pack", full)
    assert captured(tmp_path, ["x"]).path is None
    raw = tmp_path / f".rank0_trace.json.gz.{os.getpid()}.raw"
    assert names_in(tmp_path) == [raw.name]
    (message,) = caplog.messages
    assert "No space left on device" in message
    assert message.endswith(f"; what torch wrote is in {raw}")
