"""What every chart has, and what none of them may have."""

from __future__ import annotations

import json
import re
import struct
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.report.charts.conftest import rows_of
from tests.traces import write_rank
from traceparse.errors import MissingExtraError
from traceparse.report import charts
from traceparse.report.charts import NEEDED, NO_ROOM, charts_of, to_png, to_spec, to_svg
from traceparse.report.charts.chart import MOST_ROWS
from traceparse.report.charts.palette import palette

KEYS = ["waterfall", "steps", "scaling_loss", "roofline", "collectives"]


def test_a_full_report_has_every_chart_in_order(full):
    assert [chart.key for chart in charts_of(full)] == KEYS


def test_nothing_is_drawn_of_what_is_not_known(make):
    assert charts_of(make.report([])) == ()


def test_a_specification_names_no_url_and_has_its_data_in_it(full):
    for chart in charts_of(full):
        text = json.dumps(to_spec(chart))
        assert "://" not in text
        assert '"url"' not in text
        assert rows_of(chart)


def test_a_specification_has_words_for_who_cannot_see_it(full):
    for chart in charts_of(full):
        assert to_spec(chart)["description"] == chart.spoken
        assert len(chart.spoken) > 20


def test_the_title_is_the_pages_unless_asked_for(full):
    for chart in charts_of(full):
        assert "title" not in to_spec(chart)
        assert to_spec(chart, titled=True)["title"]["text"] == chart.title


def test_in_the_dark_no_light_color_is_left_and_the_data_are_the_same(full):
    light = set(palette().values()) - set(palette(dark=True).values())
    for chart in charts_of(full):
        dark = to_spec(chart, dark=True)
        data = dark.pop("datasets")
        assert data == to_spec(chart)["datasets"]
        colors = set(re.findall(r"#[0-9a-f]{6}", json.dumps(dark)))
        assert colors
        assert not colors & light


def test_a_name_that_looks_like_a_color_keeps_it_in_the_dark(full, make):
    color = palette()["compute"]
    report = replace(full, roofline=[make.row(color)])
    (chart,) = (chart for chart in charts_of(report) if chart.key == "roofline")
    data = to_spec(chart, dark=True)["datasets"]
    assert color in {row.get("op") for rows in data.values() for row in rows}


def test_light_colors_tell_which_dark_one_they_are():
    assert len(set(palette().values())) == len(palette())


def test_hostile_names_are_visible_and_nowhere_in_an_expression(hostile):
    drawn = charts_of(hostile)
    assert {"steps", "roofline", "collectives"} <= {chart.key for chart in drawn}
    for chart in drawn:
        spec = to_spec(chart, titled=True)
        text = json.dumps(spec, ensure_ascii=False)
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202e\udcff]", text)
        assert spec.pop("description")
        for name in ("title", "datasets"):
            spec.pop(name)
        for place in _strings(spec):
            assert "alert" not in place.value or place.key in {"domain", "sort"}


class _Place:
    def __init__(self, key: str, value: str) -> None:
        self.key, self.value = key, value


def _strings(value, key=""):
    if isinstance(value, dict):
        for name, item in value.items():
            assert "alert" not in name
            yield from _strings(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, key)
    elif isinstance(value, str):
        yield _Place(key, value)


def test_a_png_is_one_with_pixels(full):
    for chart in charts_of(full):
        png = to_png(chart)
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", png[16:24])
        assert width > 1_000
        assert height > 200
        assert len(png) < 200_000


def test_an_svg_has_its_title_and_nothing_from_elsewhere(full):
    for chart in charts_of(full):
        svg = to_svg(chart)
        assert chart.title in svg
        assert not re.search(r'(?:href|src)="', svg)
        assert set(re.findall(r"https?://[^\"]+", svg)) <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }


def test_of_many_ranks_and_steps_a_chart_still_has_few_rows(make):
    fleet = make.fleet(512, steps=60)
    for chart in charts_of(fleet):
        assert len(rows_of(chart)) <= MOST_ROWS


def test_without_the_extra_a_line_says_what_to_install(full, monkeypatch):
    monkeypatch.setattr(charts, "find_spec", lambda _name: None)
    assert not charts.has_charts()
    for call in (lambda: charts_of(full), charts.javascript):
        with pytest.raises(MissingExtraError, match=re.escape(NEEDED)):
            call()
    assert "traceparse[report]" in NEEDED


def test_where_there_is_no_room_for_the_engine_it_is_not_started(tmp_path):
    """It would end the process with SIGTRAP, and the whole report with it."""
    code = (
        "import resource, sys; from traceparse.cli import app\n"
        "resource.setrlimit(resource.RLIMIT_AS, (32 << 30, 32 << 30))\n"
        "app(['analyze', sys.argv[1], '--jobs', '1', '--out', sys.argv[2]])"
    )
    words = [str(write_rank(tmp_path, 0, 1)), str(tmp_path / "out")]
    ended = subprocess.run([sys.executable, "-c", code, *words], check=False)
    assert ended.returncode == 0
    assert not list((tmp_path / "out").glob("*.png"))
    lines = (tmp_path / "out/report.md").read_text().splitlines()
    assert lines[-1] == f"Without pictures: {NO_ROOM}."


def test_nothing_of_the_extra_is_imported_before_it_is_asked_for():
    code = (
        "import sys, traceparse.report.charts as charts; charts.has_charts(); "
        "sys.exit('altair' in sys.modules or 'vl_convert' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_script_may_stand_in_a_page():
    script = charts.javascript()
    assert "vegaEmbed" in script
    assert not re.search(r"</script|<!--", script, re.IGNORECASE)
