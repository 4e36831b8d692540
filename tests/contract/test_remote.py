"""Traces behind URLs, as commands and the API read them: from a local S3 and web server."""

from __future__ import annotations

import functools
import http.server
import json
import logging
import subprocess
import sys
import threading
from typing import Any

import fsspec
import pytest
from moto.server import ThreadedMotoServer

import traceparse
from tests.traces import kernel, write, write_rank
from traceparse.engine import explore
from traceparse.errors import InputError
from traceparse.ingest import remote, source
from traceparse.ingest.remote import Remote
from traceparse.report import json_text
from traceparse.run import ask

pytestmark = pytest.mark.slow  # a server has to start
_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "for-tests",
    "AWS_SECRET_ACCESS_KEY": "for-tests",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="module")
def server():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(server, monkeypatch, tmp_path):
    """Return an empty bucket's file system: what is in the environment leads to it."""
    for name, value in {**_ENVIRONMENT, "AWS_ENDPOINT_URL": server}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    files = fsspec.filesystem("s3", skip_instance_cache=True)
    files.mkdir("bucket")
    type(files).clear_instance_cache()
    yield files
    files.rm("bucket", recursive=True)
    type(files).clear_instance_cache()


@pytest.fixture
def run(tmp_path):
    """Make a run of three ranks, with facts beside one and a file that is none."""
    folder = tmp_path / "run"
    (folder / "late").mkdir(parents=True)
    for rank in range(2):
        write_rank(folder, rank, 2)
    write(folder / "late" / "rank2_trace.json.gz", [kernel(1, 5), kernel(9, 4, "x")])
    (folder / "late" / "rank2_facts.json").write_text('{"rank": 5}')
    (folder / "rank9.json").write_text("nothing")
    return folder


def plain(report, root):
    """Return a report in which paths begin alike."""
    return json.loads(json.dumps(report.to_dict()).replace(str(root), ""))


def test_a_report_from_s3_is_that_from_the_disk(s3, run):
    s3.put(str(run), "bucket/run", recursive=True)
    expected = plain(traceparse.analyze(run), run)
    for url in ("s3://bucket/run", "s3://bucket/run/", "s3://bucket"):
        assert plain(traceparse.analyze(url), "s3://bucket/run") == expected
    assert len(expected["files"]) == 3
    assert any(note["code"] == "not_a_trace" for note in expected["notes"])
    assert any("it is of rank 5" in note["message"] for note in expected["notes"])


def test_other_ways_to_read_take_urls(s3, run):
    s3.put(str(run), "bucket/run", recursive=True)
    url = "s3://bucket/run/rank*.json"
    local = f"{run}/rank*.json"
    found, expected = traceparse.read(url), traceparse.read(local)
    assert found.tables["device_events"].equals(expected.tables["device_events"])
    change = traceparse.compare(url, "s3://bucket/run/late")
    assert plain(change, "s3://bucket/run") == plain(
        traceparse.compare(local, run / "late"), run
    )
    assert change.base.paths == (url,)
    s3.pipe("bucket/base.json", json_text.render(traceparse.analyze(local)).encode())
    stored = traceparse.compare("s3://bucket/base.json", url)
    assert stored.base.paths == ("s3://bucket/base.json",)
    assert stored.step_ns == traceparse.compare(local, local).step_ns
    job = explore(url, asked=ask())
    first = job.assembled.parts[0].digest
    again = job.trace(first).health
    assert (again.path, again.events) == (first.health.path, first.health.events)


def test_the_command_reads_s3_in_processes_and_stores_digests(s3, run, tmp_path):
    s3.put(str(run), "bucket/run", recursive=True)

    def analyzed(path, *words):
        words = ("analyze", str(path), "--json", "--jobs", "2", *map(str, words))
        line = [sys.executable, "-m", "traceparse", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.replace(str(path), ""))

    expected = analyzed(run, "--no-cache")
    cache = tmp_path / "cache"
    assert analyzed("s3://bucket/run", "--cache", cache) == expected
    assert len(list(cache.iterdir())) == 3
    assert analyzed("s3://bucket/run", "--cache", cache) == expected


def test_what_is_stored_is_not_fetched_unless_it_changed(s3, run, tmp_path, monkeypatch):
    s3.put(str(run), "bucket/run", recursive=True)
    url, cache = "s3://bucket/run/rank0.json", tmp_path / "cache"
    first = traceparse.analyze(url, cache=cache)
    opened = []
    plain_open = source._opened

    def counted(path):
        opened.append(path)
        return plain_open(path)

    monkeypatch.setattr(source, "_opened", counted)
    assert traceparse.analyze(url, cache=cache) == first
    assert opened == []
    s3.pipe("bucket/run/rank0.json", s3.cat("bucket/run/rank1.json"))
    assert traceparse.analyze(url, cache=cache) != first
    assert len(opened) == 1


def test_a_file_is_fetched_in_blocks_as_it_is_read(s3, monkeypatch):
    monkeypatch.setattr(remote, "_BLOCK", 1 << 16)
    content = b"".join(b"%07d\n" % place for place in range(1 << 15))
    s3.pipe("bucket/x.json", content)
    with Remote("s3://bucket/x.json").open() as file:
        opened: Any = file._file
        held = opened.cache
        assert file.read(10) == content[:10]
        assert held.total_requested_bytes <= 2 << 16, "this block, and the next"
        assert content == content[:10] + b"".join(iter(lambda: file.read(1 << 14), b""))
        file.seek(77)
        assert file.read(3) == content[77:80]
        assert (held.blocksize, held.maxblocks) == (1 << 16, remote._BLOCKS)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://no-bucket/run", "no such file or folder, or no access to it; check the URL"),
        ("s3://bucket/no-key", "no such file or folder, or no access to it; check the URL"),
        ("s3://bucket/no-*.json", "no such file or folder, or no access to it; check the URL"),
    ],
)
@pytest.mark.usefixtures("s3")
def test_what_is_not_there_is_said(url, expected):
    with pytest.raises(InputError) as caught:
        traceparse.analyze(url)
    assert str(caught.value) == f"{url}: {expected}"


@pytest.mark.usefixtures("s3")
def test_credentials_that_are_not_there_are_asked_for(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(InputError) as caught:
        traceparse.analyze("s3://bucket/run")
    assert str(caught.value) == (
        "s3://bucket/run: no credentials were found (Unable to locate credentials); set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or FSSPEC_S3_ANON=true for "
        "what is public"
    )


class _Pages(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; what asks with a wrong signature is refused."""

    def do_GET(self):
        if "sig=" in self.path and "sig=right" not in self.path:
            self.send_error(403)
            return
        super().do_GET()

    do_HEAD = do_GET  # noqa: N815 - the base class's name

    def log_message(self, *_args):
        pass


@pytest.fixture
def web(run):
    handler = functools.partial(_Pages, directory=str(run))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_web_is_read_file_by_file_and_as_a_folder(web, run):
    expected = plain(traceparse.analyze(run), run)
    assert plain(traceparse.analyze(f"{web}/"), web) == expected
    one = traceparse.analyze(f"{web}/rank0.json")
    assert plain(one, web) == plain(traceparse.analyze(run / "rank0.json"), run)


def test_a_signature_is_used_and_never_shown(web, run):
    url = f"{web}/rank0.json?sig=right-f00"
    report = traceparse.analyze(url)
    assert report.files[0].path == f"{web}/rank0.json?***"
    assert "f00" not in json.dumps(report.to_dict())
    with pytest.raises(InputError) as caught:
        traceparse.analyze(f"{web}/rank0.json?sig=wrong-f00")
    assert str(caught.value).startswith(f"{web}/rank0.json?***: access is denied (403, ")
    assert "f00" not in str(caught.value)
    (run / "rank0.json").write_text("nothing")
    with pytest.raises(InputError) as caught:
        traceparse.analyze(url)
    assert str(caught.value).startswith(f"{web}/rank0.json?***: this is not JSON")
    words = [sys.executable, "-m", "traceparse", "analyze", url, "--debug"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "f00" not in done.stdout + done.stderr


def test_hta_reads_what_is_behind_a_url(s3, run):
    s3.put(str(run), "bucket/run", recursive=True)
    pytest.importorskip("hta")
    found = traceparse.to_hta(traceparse.analyze("s3://bucket/run/rank0.json"))
    expected = traceparse.to_hta(traceparse.analyze(run / "rank0.json"))
    assert found.t.trace_files == {0: "s3://bucket/run/rank0.json"}
    assert found.t.traces[0].equals(expected.t.traces[0])
