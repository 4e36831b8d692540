from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from traceparse.engine import pack
from traceparse.errors import CaptureError, EmptyTraceError, InputError
from traceparse.packing import UNSAID

SPAN = {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "aten::mm"}


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    request = {
        "job": os.getpid(),
        "raw": str(tmp_path / ".raw"),
        "target": str(tmp_path / "rank0_trace.json.gz"),
        "facts": {"params": 3},
        "overwrite": False,
        "with_host": False,
    }
    write(request, [SPAN, {**SPAN, "ts": 5}])
    return request


def write(request: dict[str, Any], events: list[dict[str, Any]]) -> None:
    trace = {"schemaVersion": 1, "traceEvents": events, "traceName": request["raw"]}
    Path(request["raw"]).write_text(json.dumps(trace, indent=1))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_trace_is_kept_with_its_facts_and_the_raw_one_is_gone(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    verdict = pack.keep(asked)
    path = tmp_path / "rank0_trace.json.gz"
    size = path.stat().st_size
    assert verdict == {
        "num_events": 2,
        "said": [],
        "trace_bytes": size,
        "facts": {"params": 3, "num_events": 2, "trace_bytes": size},
    }
    assert names_in(tmp_path) == ["rank0_facts.json", path.name]
    assert json.loads((tmp_path / "rank0_facts.json").read_text()) == verdict["facts"]
    assert json.loads(gzip.decompress(path.read_bytes()))["traceparse"] == {"params": 3}


def test_a_trace_that_is_there_is_not_replaced(tmp_path: Path, asked: dict[str, Any]) -> None:
    path = tmp_path / "rank0_trace.json.gz"
    path.write_text("precious")
    with pytest.raises(CaptureError) as caught:
        pack.keep(asked)
    assert str(caught.value) == (
        f"{path}: another process kept a trace of this rank meanwhile; "
        "choose another directory for each job"
    )
    assert path.read_text() == "precious"
    assert names_in(tmp_path) == [".raw", path.name]


def test_a_trace_that_is_there_is_replaced_when_asked_for(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    path = tmp_path / "rank0_trace.json.gz"
    path.write_text("old")
    pack.keep({**asked, "overwrite": True})
    assert path.read_bytes()[:2] == b"\x1f\x8b"


def test_of_a_trace_in_which_nothing_happened_nothing_is_left(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    write(asked, [{**SPAN, "cat": "user_annotation"}])
    with pytest.raises(EmptyTraceError) as caught:
        pack.keep(asked)
    assert str(caught.value).startswith(
        f"{tmp_path / 'rank0_trace.json.gz'}: the trace has no kernel, copy or operator, only "
    )
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("text", ["nothing", "[1, 2]", '{"a": 1}'])
def test_what_is_no_trace_is_refused_by_the_name_it_would_have(
    tmp_path: Path, asked: dict[str, Any], text: str
) -> None:
    Path(asked["raw"]).write_text(text)
    with pytest.raises(InputError) as caught:
        pack.keep(asked)
    assert str(caught.value).startswith(f"{tmp_path / 'rank0_trace.json.gz'}: ")
    assert ".tmp" not in str(caught.value)
    assert names_in(tmp_path) == [".raw"]


def test_a_file_that_breaks_off_is_kept_and_said(asked: dict[str, Any]) -> None:
    raw = Path(asked["raw"])
    raw.write_text(raw.read_text()[:-60])
    said = pack.keep(asked)["said"]
    assert "the file breaks off before its end" in said


def test_what_torch_lost_of_names_is_said_once(asked: dict[str, Any]) -> None:
    write(
        asked,
        [SPAN, {**SPAN, "ts": 5, "name": "unknown"}, {**SPAN, "ts": 9, "name": "unknown"}],
    )
    (text,) = pack.keep(asked)["said"]
    assert text.startswith("2 events named `unknown`: the profiler hides names with characters")


def test_what_is_repaired_and_what_is_not_read_back_is_said(asked: dict[str, Any]) -> None:
    raw = Path(asked["raw"])
    raw.write_text(raw.read_text().replace("aten::mm", 'a "ph": "X" b', 1))
    said = pack.keep(asked)["said"]
    assert said[0] == "torch wrote 3 events, and 2 are read back"
    assert said[1] == "events that are repaired when read: 1 quote_in_string"


def ran(request: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(request)))
    monkeypatch.setattr(sys, "stdout", out)
    nice: list[int] = []
    monkeypatch.setattr(os, "nice", nice.append)
    pack.main()
    assert nice == [10]
    verdict: dict[str, Any] = json.loads(out.getvalue())
    return verdict


def test_the_verdict_is_said_on_standard_output(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(asked, monkeypatch)["num_events"] == 2


def test_what_goes_wrong_is_the_verdict_in_one_line(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(asked["raw"]).unlink()
    text = ran(asked, monkeypatch)["error"]
    assert text.startswith("[Errno 2] No such file or directory: ")
    assert "\n" not in text


def test_a_job_that_has_gone_reads_no_verdict(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(asked)))
    monkeypatch.setattr(sys, "stdout", Gone())
    monkeypatch.setattr(os, "nice", lambda _: 0)
    pack.main()
    assert Path(asked["target"]).exists()


@pytest.mark.slow
def test_it_is_a_module_that_runs(asked: dict[str, Any]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "traceparse.engine.pack"],
        input=json.dumps(asked).encode(),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["num_events"] == 2
    assert done.stderr == b""


def test_what_nobody_is_left_to_say_is_in_the_facts(asked: dict[str, Any]) -> None:
    write(asked, [SPAN, {**SPAN, "name": "unknown"}])
    there = pack.keep(asked)["facts"]
    gone = pack.keep({**asked, "job": 1, "overwrite": True, "raw": raw_again(asked)})["facts"]
    assert UNSAID not in there
    assert [text.partition(":")[0] for text in gone[UNSAID]] == ["1 event named `unknown`"]


def raw_again(asked: dict[str, Any]) -> str:
    write(asked, [SPAN, {**SPAN, "name": "unknown"}])
    return str(asked["raw"])
