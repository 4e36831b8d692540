"""The page in a browser: it asks for nothing, says nothing, and does what it should."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from traceparse.units import per_steps

pytestmark = [pytest.mark.browser, pytest.mark.slow]

MODES = ("light", "dark")
AXE = """
async () => {
  const found = await axe.run(document);
  if (found.passes.length < 20) return [`only ${found.passes.length} rules applied`];
  return found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes.length}, first ${one.nodes[0].html.slice(0, 200)}`);
}
"""
NUMBERS = """
() => [...document.querySelectorAll("[data-field]")].map(
  (one) => [one.dataset.field, one.dataset.value ?? null, one.textContent.trim()])
"""
WIDER = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(params=["demo", "simulated"])
def path(request) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_console_is_clean_and_no_request_leaves(path, at, mode):
    page, seen = at(path, color_scheme=mode)
    page.locator("text=Scaling loss").first.scroll_into_view_if_needed()
    assert page.locator(".drawing svg").count() >= 1
    assert seen.anything(page) == []


def test_hostile_names_are_text_and_run_nothing(hostile, pages, at):
    page, seen = at(pages("hostile", hostile))
    assert seen.anything(page) == []
    assert "<script>alert('x')</script>" in page.title()
    assert not set(page.inner_text("body")) & {"\u202e", "\x1b"}
    assert page.locator("[onload]").count() == 0


@pytest.mark.parametrize("mode", MODES)
def test_axe_finds_no_serious_fault(path, at, mode):
    # its source is run by the debugger, which the page's policy does not concern
    import axe_playwright_python  # noqa: PLC0415 - only its script is wanted

    (script,) = Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")
    page, _ = at(path, color_scheme=mode)
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.evaluate(script.read_text("utf-8"))
    assert page.evaluate(AXE) == []


def test_numbers_on_the_page_are_those_of_report_json(path, at):
    plain = json.loads(path.with_suffix(".json").read_text("utf-8"))
    page, _ = at(path)
    numbers = page.evaluate(NUMBERS)
    assert len(numbers) > 200
    steps = per_steps((plain["cost"] or {}).get("usd_per_step")).num_steps
    for field, value, text in numbers:
        found = plain
        for key in field.split("."):
            found = found[int(key)] if isinstance(found, list) else found[key]
        assert (None if value is None else float(value)) == found, field
        is_of_steps = "usd" in field and "per_million" not in field
        times = steps if is_of_steps else 1
        assert close(field, found, text, times=times), (field, found, text)


def close(field: str, value: float | None, text: str, *, times: int = 1) -> bool:
    """Is a text its number, so many times, as far as its own decimals go?"""
    if value is None:
        return text == "\N{EN DASH}"
    said = re.sub(r"[$,%]| [A-Za-z/]+", "", text)
    if text.endswith("%"):
        scale = 1e2
    elif "_ns" in field:
        scale = 1e-6
    elif "bytes" in field:
        unit = re.sub(r"[^A-Za-z/]", "", text)
        scale = {"B": 1.0, "kB": 1e-3, "MB": 1e-6, "GB": 1e-9, "": 1e-9}[unit]
    else:
        scale = 1e-12 if "flop" in field else float(times)
    decimals = len(said.partition(".")[2])
    return bool(abs(float(said) - value * scale) <= 0.5000001 * 10**-decimals)


def test_a_table_sorts_by_a_click_and_by_the_keyboard(simulated, at):
    page, _ = at(simulated)
    head = page.locator("#windows thead th").nth(2)
    cells = page.locator("#windows tbody td:nth-child(3)")

    def values() -> list[float]:
        return [float(v) for v in cells.evaluate_all("all => all.map(c => c.dataset.value)")]

    before = values()
    head.locator(".sort").click()
    assert values() == sorted(before, reverse=True) != before
    assert head.get_attribute("aria-sort") == "descending"
    head.locator(".sort").press("Enter")
    assert values() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    page.locator("#windows thead .sort").first.press("Space")
    assert values() == before
    assert head.get_attribute("aria-sort") is None
    assert page.locator("#windows thead [aria-sort]").count() == 1


def test_what_is_unknown_stays_last_whichever_way(used, pages, at):
    page, _ = at(pages("used", used))
    head = page.locator("#operators-table thead th").nth(7).locator(".sort")
    lost = page.locator("#operators-table tbody td:last-child")
    for _ in range(2):
        head.click()
        assert lost.all_inner_texts()[-1] == "\N{EN DASH}"
    assert lost.all_inner_texts()[:2] == ["80.0", "190.0"]


def test_a_table_is_filtered_by_words_and_says_how_many_are_left(simulated, at):
    page, _ = at(simulated)
    table = page.locator("#kernels-table tbody tr")
    total = table.count()
    page.get_by_label("Filter: Kernels and copies that take most").focus()
    page.keyboard.type("MM compute")
    shown = page.locator("#kernels-table tbody tr:visible").all_inner_texts()
    assert 0 < len(shown) < total
    assert all("mm" in text.lower() and "compute" in text for text in shown)
    box = page.locator(".filter", has=page.get_by_label("Filter: Kernels and copies"))
    assert box.get_by_role("status").inner_text() == f"{len(shown)} of {total} rows"
    page.get_by_label("Filter: Kernels and copies that take most").fill("")
    assert page.locator("#kernels-table tbody tr:visible").count() == total


def test_a_definition_opens_on_hover_and_by_the_keyboard(simulated, at):
    page, _ = at(simulated)
    button = page.get_by_role("button", name="What is MFU?").first
    said = page.locator("#d-mfu")
    assert said.is_hidden()
    button.hover()
    said.wait_for(state="visible")
    assert "what the model needs" in said.inner_text()
    page.mouse.move(0, 0)
    said.wait_for(state="hidden")
    button.press("Enter")
    assert said.is_visible()
    page.keyboard.press("Escape")
    assert said.is_hidden()


def test_a_link_to_a_rank_opens_its_section(simulated, at):
    page, _ = at(simulated)
    link = page.locator("#findings a[href^='#rank-']").first
    section = page.locator(link.get_attribute("href"))
    assert section.is_hidden()
    link.press("Enter")
    section.wait_for(state="visible")
    assert section.locator("table").count() == 1


def test_the_contents_lead_everywhere(path, at):
    page, _ = at(path)
    links = page.locator(".contents a")
    assert links.count() >= 8
    for link in links.all():
        target = link.get_attribute("href")
        link.press("Enter")
        box = page.locator(target).bounding_box()
        assert box is not None
        assert box["y"] < 900


def test_colors_are_chosen_on_the_page_and_charts_follow(simulated, at):
    page, seen = at(simulated, color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    label = ".drawing svg .role-axis-title text"
    light, drawn = page.evaluate(ground), page.locator(label).first.get_attribute("fill")
    page.get_by_label("dark").check()
    assert page.evaluate(ground) != light
    page.wait_for_function(
        f"document.querySelector('{label}').getAttribute('fill') !== '{drawn}'"
    )
    page.get_by_label("light").check()
    assert page.evaluate(ground) == light
    assert seen.anything(page) == []


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_no_window_is_too_narrow(path, at, width):
    page, _ = at(path, viewport={"width": width, "height": 800})
    assert not page.evaluate(WIDER)


def test_all_but_charts_is_there_without_javascript(path, at):
    page, seen = at(path, wait=False, java_script_enabled=False)
    assert seen.console == seen.requests == []
    assert page.locator("h1").is_visible()
    assert page.locator("#step-map svg.bar").first.is_visible()
    assert page.locator("#windows tbody tr").count() >= 2
    assert page.locator(".sort, .filter").count() == 0
    assert page.locator("figcaption").first.is_visible()
    assert page.get_by_text("The chart needs JavaScript.").first.is_visible()
    page.locator("details > summary").first.click()
    assert page.locator("details").first.get_attribute("open") is not None
    page.locator("[popovertarget=d-idle]").first.click()
    assert page.locator("#d-idle").is_visible()
    page.get_by_label("dark").check()


def test_print_unfolds_everything_and_leaves_the_contents_out(simulated, at):
    page, _ = at(simulated, color_scheme="dark")
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 4
    page.emulate_media(media="print")
    assert page.locator("#rank-3").is_visible()
    assert page.locator(".contents").is_hidden()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"


def test_512_ranks_are_one_page_of_less_than_5_mb(make, pages, at):
    path = pages("fleet", make.fleet(512, steps=10))
    assert path.stat().st_size < 5_000_000
    page, seen = at(path)
    assert page.locator("#chart-steps svg").count() == 1
    assert seen.anything(page) == []
