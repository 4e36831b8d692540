"""Every chart in Chromium, under a policy that allows no eval and no network."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest

from traceparse.report.charts import charts_of, javascript, to_spec

DRAW = """
const specs = JSON.parse(document.getElementById("specs").textContent);
Promise.all(Object.entries(specs).map(([key, spec]) =>
  vegaEmbed(`#${key}`, spec, {ast: true, actions: false, mode: "vega-lite", renderer: "svg"})
)).then(() => { document.body.dataset.ready = "yes"; });
"""


def page_of(report, *, dark):
    charts = charts_of(report)
    specs = {chart.key: to_spec(chart, dark=dark) for chart in charts}
    scripts = [javascript(), DRAW]
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:"
    )
    data = json.dumps(specs).replace("<", "\\u003c")
    return "".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>charts</title>',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}"><body>',
            *(f'<div id="{chart.key}"></div>' for chart in charts),
            f'<script type="application/json" id="specs">{data}</script>',
            *(f"<script>{script}</script>" for script in scripts),
        ]
    )


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("which", ["full", "hostile", "fleet"])
def test_all_charts_are_drawn_and_the_console_is_clean(
    which, dark, browser, make, request, tmp_path
):
    report = make.fleet(128) if which == "fleet" else request.getfixturevalue(which)
    path = tmp_path / "page.html"
    path.write_text(page_of(report, dark=dark), encoding="utf-8")
    page = browser.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda wanted: asked.append(wanted.url))
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready=yes]", timeout=60_000)
    for chart in charts_of(report):
        assert page.locator(f"#{chart.key} svg").count() == 1
        assert page.locator(f"#{chart.key} svg path").count() > 3
        assert page.locator(f"#{chart.key}").get_attribute("aria-label") == chart.spoken
    page.close()
    assert said == []
    assert asked == [path.as_uri()]
