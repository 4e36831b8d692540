from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from traceparse import packing
from traceparse.packing import facts_path, pack, trace_name

EVENT = '  {\n    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": %d, "dur": 1\n  }'


def written(num: int = 3, *, name: str = "/home/me/traces/raw.json", head: str = "") -> str:
    """Return a file as torch writes it."""
    events = ",\n".join(EVENT % number for number in range(num))
    return (
        '{\n  "schemaVersion": 1,\n  "host_name": "secret-7",\n' + head + '  "traceEvents": [\n'
        f'{events}\n  ],\n  "traceName": "{name}",\n  "displayTimeUnit": "ms"\n}}\n'
    )


def packed(
    folder: Path, text: str, facts: dict[str, Any] | None = None, *, with_host: bool = False
) -> tuple[int, str]:
    raw, target = folder / "raw.json", folder / "rank0_trace.json.gz"
    raw.write_text(text, "utf-8")
    num = pack(raw, target, facts or {}, name="rank0_trace.json", with_host=with_host)
    return num, gzip.decompress(target.read_bytes()).decode("utf-8")


def test_names_belong_together() -> None:
    assert trace_name(12) == "rank12_trace.json.gz"
    assert facts_path(Path("a/rank12_trace.json.gz")) == Path("a/rank12_facts.json")


def test_facts_go_in_and_what_is_personal_goes_out(tmp_path: Path) -> None:
    num, text = packed(tmp_path, written(), {"params": 3})
    assert num == 3
    assert text == (
        '{\n    "traceparse": {"params": 3},\n  "schemaVersion": 1,\n  "traceEvents": [\n'
        + ",\n".join(EVENT % number for number in range(3))
        + '\n  ],\n  "traceName": "rank0_trace.json",\n  "displayTimeUnit": "ms"\n}\n'
    )


def test_what_is_personal_stays_when_asked_for(tmp_path: Path) -> None:
    text = written()
    named = text.replace("/home/me/traces/raw.json", "rank0_trace.json")
    assert packed(tmp_path, text, with_host=True) == (3, named)


def test_without_facts_none_go_in(tmp_path: Path) -> None:
    assert "traceparse" not in json.loads(packed(tmp_path, written())[1])


FACTS = {
    "a": 'quo"te',
    "b": "back\\slash\\",
    "c": "é \U0001f600",
    "d": "new\nline\ttab\x00\x1f",
    "e": "x" * 10_000,
    "f": [{"ranks": "0-7", "description": '"'}],
    "g": 0.5,
    "h": 10**29,
}


def test_facts_of_any_letters_stay_what_they_are(tmp_path: Path) -> None:
    _, text = packed(tmp_path, written(), FACTS)
    assert json.loads(text)["traceparse"] == FACTS
    assert text.isascii()
    # in one line: it can be read where what follows is damaged
    assert json.loads("{" + text.split("\n")[1].rstrip(",") + "}") == {"traceparse": FACTS}


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_blocks_may_be_cut_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    text = written(200)
    whole = packed(tmp_path, text, {"params": 3})
    monkeypatch.setattr(packing, "_BLOCK", block)
    monkeypatch.setattr(packing, "_TAIL_BYTES", 300)
    assert packed(tmp_path, text, {"params": 3}) == whole
    assert whole[0] == 200


def test_a_long_header_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GIVEN the ranks of all process groups before the name of the host."""
    head = '  "distributedInfo": {"ranks": "' + "1, " * 1000 + '"},\n  "host_name": "again",\n'
    monkeypatch.setattr(packing, "_BLOCK", 64)
    _, text = packed(tmp_path, written(head=head))
    assert "host_name" not in text
    assert json.loads(text)["distributedInfo"]["ranks"].startswith("1, 1, ")


def test_a_name_of_the_host_in_an_event_is_left_alone(tmp_path: Path) -> None:
    text = written().replace("aten::mm", 'x", "host_name": "y')
    assert json.loads(packed(tmp_path, text)[1])["traceEvents"][0]["host_name"] == "y"


def test_a_name_of_the_trace_in_an_event_is_left_alone(tmp_path: Path) -> None:
    far = 'x", "traceName": "y'
    text = written(500).replace("aten::mm", far, 1)
    assert json.loads(packed(tmp_path, text)[1])["traceEvents"][0]["traceName"] == "y"


@pytest.mark.parametrize("text", ["", "no JSON at all", "[1, 2]", '{"a": 1}', "{}"])
def test_what_is_no_trace_is_packed_all_the_same(tmp_path: Path, text: str) -> None:
    """Whoever reads it back will refuse it."""
    assert packed(tmp_path, text) == (0, text)


def test_a_file_that_is_cut_off_loses_nothing_more(tmp_path: Path) -> None:
    text = written(50)[:2000]
    num, kept = packed(tmp_path, text, {"params": 3})
    assert num == text.count('"ph": "')
    assert kept.endswith(text[-500:])


def test_the_same_file_is_packed_to_the_same_bytes(tmp_path: Path) -> None:
    """So without the time, and with its own name in the place of ours."""
    packed(tmp_path, written(), {"params": 3})
    once = (tmp_path / "rank0_trace.json.gz").read_bytes()
    packed(tmp_path, written(), {"params": 3})
    assert (tmp_path / "rank0_trace.json.gz").read_bytes() == once
    assert b"raw" not in once[:60]


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pack(tmp_path / "none", tmp_path / "to", {}, name="x", with_host=False)
