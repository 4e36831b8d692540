"""Reports as files: what renderers may return, and that files appear whole or not at all."""

from __future__ import annotations

import json
import re

import pytest

from tests.traces import write_rank
from traceparse.engine import analyze
from traceparse.errors import MissingExtraError
from traceparse.run import FORMATS, formats, saving, write_whole


@pytest.fixture
def report(tmp_path):
    return analyze(write_rank(tmp_path, 0, 1))


class Point:
    """An entry point as installed packages have them."""

    def __init__(self, name, rendered):
        self.name, self.value, self._rendered = name, f"package:{name}", rendered

    def load(self):
        return lambda _report: self._rendered


@pytest.fixture
def installed(monkeypatch):
    """Take these renderers for what is installed."""

    def install(**rendered):
        points = [Point(name, content) for name, content in rendered.items()]
        monkeypatch.setattr(saving, "entry_points", lambda **_asked: points)

    return install


def test_all_our_formats_are_written_unless_others_are_named(report, tmp_path):
    out = tmp_path / "new" / "folder"
    paths = report.save(out)
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert {str(path.relative_to(out)) for path in paths} == written
    assert {"report.html", "report.json", "report.md", "tables/run.parquet"} <= written
    assert json.loads((out / "report.json").read_text()) == report.to_dict()
    assert set(FORMATS) | {"csv"} == set(formats())


def test_only_what_is_named_is_written(report, tmp_path):
    assert report.save(tmp_path / "out", formats=["json"]) == [tmp_path / "out/report.json"]


def test_an_unknown_format_is_refused_before_anything_is_written(report, tmp_path):
    with pytest.raises(
        MissingExtraError, match="report format pdf is not installed; there are: csv, html"
    ):
        report.save(tmp_path / "out", formats=["json", "pdf"])
    assert not (tmp_path / "out").exists()


def test_a_renderer_returns_text_or_bytes_or_files(report, tmp_path, installed):
    files = {"a.txt": "text é", "deep/b.bin": b"\x00\xff"}
    installed(txt="one", bin=b"two", many=files)
    out = tmp_path / "out"
    paths = report.save(out, formats=["txt", "bin", "many"])
    assert [str(path.relative_to(out)) for path in paths] == [
        *("report.txt", "report.bin", "a.txt", "deep/b.bin"),
    ]
    assert [path.read_bytes() for path in paths] == [
        *(b"one", b"two", "text é".encode(), b"\x00\xff"),
    ]


@pytest.mark.parametrize("name", ["../up.txt", "/tmp/there.txt", "a/../../up.txt"])
def test_a_renderer_stays_in_its_folder(name, report, tmp_path, installed):
    installed(many={"fine.txt": "", name: "text"})
    with pytest.raises(ValueError, match=re.escape(f"outside of the folder: {name!r}")):
        report.save(tmp_path / "out", formats=["many"])
    assert not (tmp_path / "out").exists()


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = write_whole(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_notebook_shows_text_where_nothing_is_installed(report, monkeypatch):
    assert "<strong>" in report._repr_html_()
    monkeypatch.setattr(saving, "entry_points", lambda **_asked: ())
    assert report._repr_html_() is None
