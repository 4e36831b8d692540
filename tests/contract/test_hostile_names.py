"""A trace from a stranger: its texts are shown harmless, and no path in it is ever opened."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
from rich.console import Console

from tests.contract.places import ROOT
from tests.report.parsed import has_own_scripts_only
from tests.run.conftest import Maker
from tools.damage_base import write
from tools.damage_clean import CLEAN, at, micro, rank_trace
from tools.layouts import write_layout
from traceparse.engine import read
from traceparse.report import html, json_text, terminal

HOSTILE = {
    "escape": "\x1b[31mred\x1b[0m \x1b]0;owned\x07\x1b]8;;http://e.vil\x1b\\x\x1b]8;;\x1b\\",
    "erase": "\x1b[2J\x1b[H\r\x08\x08\x9b2J\x9dx\x9c",
    "lines": "a\nerror: all is lost\r\nrank 7\x0b\x0c\x85\u2028\u2029z",
    "hidden": "\u202eexe.json\u2066\u200b\u200d\ufeff\U000e0041\x00\x7f",
    "surrogate": "half \ud800 of one",
    "script": "</style></script><script>alert(document.domain)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)><a href='javascript:alert(1)'>x</a>",
    "entity": "&lt;b&gt; &#60;script&#62; <!-- <![CDATA[ ]]> -->",
    "template": "{{ 7 * 7 }} {% include '/etc/passwd' %} ${7*7} %s %n {0}",
    "formula": "=cmd|' /C calc'!A0",
    "formula-2": '@SUM(1+1)*cmd|"calc"!A0,+1,-2\t=1',
    "markup": "[bold red]x[/] [link=file:///etc/passwd]y[/link] [/]",
    "markdown": "| a | b |\n|--|--|\n```x``` ![i](http://e.vil/i.png) [j](javascript:1) <b>",
    "path": "../../../../etc/passwd; rm -rf ~ `id` $(id) file:///etc/passwd",
    "long": "w" * 100_000,
}
OWN_COLORS = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def trace_of(text):
    """Write the text wherever a trace has one that could reach a report."""
    trace = CLEAN
    for handle in ("gemm1", "reduce2", "op2", "forward1", "call3", "python1"):
        trace = trace.edit(handle, name=text)
    trace = trace.edit("step1", name=f"ProfilerStep {text}#7")
    trace = trace.edit("gemm3", pid=text).args("gemm3", device=text, stream=text)
    trace = trace.edit("op3", pid=text, tid=text).edit("copy2", cat=text)
    trace = trace.args("reduce1", **{"Collective name": text, "Process Group Name": text})
    # an overlap, an early kernel and an unfinished event, so that doubts speak of them
    trace = trace.edit("gemm2", dur=micro(1_600_000), name=text).edit("relu1", ts=at(-9_000))
    trace = trace.args("op1", finished=False).edit("forward2", name="unknown")
    info = {**trace.header["distributedInfo"], "backend": text, "world_size": 2}
    devices = [{"id": 0, "name": text}]
    trace = trace.head(distributedInfo=info, traceName=text, host_name=text)
    header = {**trace.head(deviceProperties=devices).header, text[:200]: text}
    return write_layout(list(trace.events.values()), header, "c1")


def assert_plain(shown, *, colors=False):
    """Nothing on a terminal moves, hides, reverses or names things but what we put there."""
    text = OWN_COLORS.sub("", shown) if colors else shown
    found = {char for char in text if unicodedata.category(char) in CONTROL} - {"\n"}
    assert found == set()


@pytest.fixture(params=list(HOSTILE), ids=list(HOSTILE))
def hostile(request, tmp_path):
    text = HOSTILE[request.param]
    path = tmp_path / "trace.json"
    path.write_bytes(trace_of(text))
    return text, path


def test_terminal_shows_texts_and_obeys_none(traceparse, hostile):
    text, path = hostile
    status, output, errors = traceparse("analyze", path)
    assert status == 0
    assert_plain(output)
    assert_plain(errors)
    assert "error: all is lost" not in (output + errors).splitlines()
    if "\n" not in text and len(text) < 100 and text.isascii() and text.isprintable():
        assert text[:6] in output + errors


def test_terminal_in_color_adds_nothing_but_its_colors(traceparse, hostile, monkeypatch):
    _, path = hostile
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    status, output, errors = traceparse("analyze", path)
    assert status == 0
    assert OWN_COLORS.search(output)
    assert_plain(output, colors=True)
    assert_plain(errors, colors=True)


def test_json_is_ascii_and_has_the_texts(traceparse, hostile):
    text, path = hostile
    status, output, _ = traceparse("analyze", path, "--json")
    assert status == 0
    assert output.isascii()
    assert_plain(output)
    report = json.loads(output)
    meant = text.encode("utf-8", "replace").decode()
    assert report["run"]["backend"] == meant
    assert {part["device"] for part in report["devices"]} == {0, meant[:256]}


class Page(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.text = set(), [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes.extend(attrs)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_data(self, data):
        self.text += data


def links(page):
    return {
        (name, value) for name, value in page.attributes if name in ("href", "src", "style")
    }


def test_html_has_no_element_or_address_from_a_text(traceparse, hostile, tmp_path):
    text, path = hostile
    out, harmless = tmp_path / "out", tmp_path / "harmless"
    assert traceparse("analyze", path, "--out", out)[0] == 0
    path.write_bytes(trace_of("plain"))
    assert traceparse("analyze", path, "--out", harmless)[0] == 0
    page = (out / "report.html").read_text("utf-8")
    found, plain = Page(page), Page((harmless / "report.html").read_text("utf-8"))
    assert_plain(page)
    assert found.tags == plain.tags
    assert has_own_scripts_only(page)
    assert {name for name, _ in found.attributes} == {name for name, _ in plain.attributes}
    assert links(found) == links(plain)
    assert [name for name, _ in found.attributes if name.startswith("on")] == []
    if text.isprintable() and text.isascii() and len(text) < 100:
        assert text in found.text


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_names_of_devices_and_operators_are_shown_harmless(text):
    """As a digest has them: of a peak that is given, by work that is counted."""
    make = Maker()
    told = ({"id": text, "name": text},)
    step = make.step(1, make.times(compute=10), make.work(text, 1), make.work("bf16", 10))
    digest = make.digest(
        0,
        make.device(step),
        told=told,
        operators=[
            make.operator(text, shapes=text, dtype=text),
            # faster than can be, so that a finding speaks of it
            make.operator(text, shapes=text, flop=10**9, time_ns=1),
        ],
        conventions=(text, f"causal={text}"),
    )
    for asked in ({"peak": {"bf16": 1e12}, "price": 1}, {}):
        report = make.report(digest, **asked)
        shown = io.StringIO()
        for draw in (terminal.render, terminal.render_notes):
            draw(report, Console(file=shown, width=80, force_terminal=True))
        assert_plain(shown.getvalue(), colors=True)
        page = html.render(report)
        assert_plain(page)
        assert not Page(page).tags & {"img", "b"}
        assert has_own_scripts_only(page)
        assert json_text.render(report).isascii()
        if asked:
            assert report.findings


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_errors_are_one_plain_line(traceparse, tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({text[:300]: text, "schema": text, "x": [text]}))
    status, output, errors = traceparse("analyze", path)
    assert (status, output) == (1, "")
    (line,) = errors.splitlines()
    assert_plain(line)
    assert len(line) < 2_000


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_names_of_files_are_shown_harmless_too(traceparse, tmp_path, text):
    name = re.sub("[/\0\ud800]", "_", text)[:60]
    folder = tmp_path / "traces"
    folder.mkdir()
    path = folder / f"t{name}.json"
    path.write_bytes(trace_of("plain")[:9_000])
    status, output, errors = traceparse("analyze", folder, "--out", tmp_path / "out")
    assert status == 0
    assert_plain(output)
    assert_plain(errors)
    assert_plain((tmp_path / "out" / "report.html").read_text("utf-8"))
    path.write_bytes(b"{}")
    status, output, errors = traceparse("analyze", folder)
    assert (status, output) == (1, "")
    assert_plain(errors)
    assert len(errors.splitlines()) == 1


def test_tables_take_every_text(hostile):
    text, path = hostile
    tables = read(path).tables
    meant = text.encode("utf-8", "replace").decode()
    for name in ("ops", "annotations", "device_events"):
        assert meant in tables[name]["name"].to_pylist()
    calls = tables["collectives"]
    assert meant.strip().lower()[:64] in calls["collective"].to_pylist()
    assert meant[:256] in calls["group"].to_pylist()
    assert meant[:1024] in calls["name"].to_pylist()


def test_names_of_files_need_not_be_text(traceparse, tmp_path):
    for rank, part in enumerate((b"caf\xe9", b"\xff\xfe\x1b[2J")):
        path = tmp_path / f"rank{rank}_{os.fsdecode(part)}.json"
        path.write_bytes(write(rank_trace(rank, 2), "k-new"))
    status, output, errors = traceparse("analyze", tmp_path, "--out", tmp_path / "out")
    assert status == 0
    assert_plain(output)
    assert_plain(errors)
    run = read(tmp_path)
    assert run.ranks == (0, 1)
    assert len(set(run.tables["files"]["path"].to_pylist())) == 2


WATCH = """
import os, sys
seen = []
TOUCH = ("open", "os.", "shutil.", "socket.", "subprocess.", "urllib.", "glob.", "pathlib.")
TOUCH += ("exec", "compile", "pickle.", "ctypes.dlopen", "webbrowser.", "http.", "ftplib.")

def watch(event, arguments):
    if watching and event.startswith(TOUCH):
        texts = (a for a in arguments if isinstance(a, (str, bytes, os.PathLike)))
        seen.append((event, [ascii(os.fsdecode(a)).strip("'") for a in texts]))

watching = False
sys.addaudithook(watch)
path, out = sys.argv[1:3]
from traceparse import engine, report, run
from traceparse.report import html, terminal
import rich.console
warm = engine.analyze(sys.argv[3])
html.render(warm)
terminal.render(warm, rich.console.Console(file=open(os.devnull, "w")))
watching = True
found = engine.analyze(path)
found.save(out)
terminal.render(found, rich.console.Console(file=sys.stderr))
engine.read(path)
watching = False
for event, arguments in seen:
    print(event, *arguments, sep="\\t")
"""


def test_no_path_in_a_trace_is_opened(tmp_path):
    bait = tmp_path / "bait"
    bait.mkdir()
    for name in ("kernel.py", "weights.pt", "other.json"):
        (bait / name).write_text('{"traceEvents": []}')
    trace = CLEAN.head(traceName=str(bait / "other.json"), include="/etc/passwd")
    places = [str(bait / "kernel.py"), "/etc/passwd", f"file://{bait}/weights.pt"]
    for number, place in enumerate([*places, "~/.ssh/id_rsa", "http://127.0.0.1:9/x"]):
        handle = ("op1", "op2", "op3", "gemm1", "gemm2")[number]
        trace = trace.edit(handle, name=place).args(
            handle, Call_stack=f"{place}(12): forward", kernel_file=place, kernel_hash=place
        )
        trace = trace.edit(f"python{number % 3 + 1}", name=f"{place}(7): open")
    path, warm, out = tmp_path / "trace.json", tmp_path / "warm.json", tmp_path / "out"
    path.write_bytes(write_layout(list(trace.events.values()), trace.header, "k-new"))
    warm.write_bytes(write_layout(list(CLEAN.events.values()), CLEAN.header, "k-new"))
    command = [sys.executable, "-c", WATCH, str(path), str(out), str(warm)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    events = [line.split("\t") for line in ended.stdout.splitlines()]
    assert {name for name, *_ in events} <= ALLOWED
    touched = {argument for _, *arguments in events for argument in arguments}
    assert str(path) in touched
    ours = {place for place in touched if place.startswith(str(tmp_path))}
    assert {place for place in ours if not place.startswith(str(out))} == {str(path)}
    assert [place for place in touched - ours if "/" in place and not is_own(place)] == []
    assert "bait" not in ended.stdout


ALLOWED = {"open", "os.listdir", "os.scandir", "os.rename", "os.mkdir", "os.remove"}
ALLOWED |= {"compile", "exec"}  # of our own modules: whatever was compiled is looked through


def is_own(place):
    whole = str(Path(place).absolute())
    return whole.startswith((sys.prefix, sys.base_prefix, str(ROOT), "/dev/null"))
