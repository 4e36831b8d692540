"""Chromium, driven by Playwright, and a record of all that a page does in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Route, sync_playwright

__all__ = ["Seen", "chromium", "chromium_path", "opened", "ready"]

_ARGUMENTS: Final = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
)
_READY: Final = "html[data-ready]"
_LISTEN: Final = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.effectiveDirective}: ${event.blockedURI}`);
});
"""


@dataclass  # no slots: Playwright keeps what it wraps methods in on their object
class Seen:
    """What a page said, asked for and tried: nothing of it should be there."""

    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def dismiss(self, dialog: Dialog) -> None:
        """Close a dialog, and remember that there was one."""
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def anything(self, page: Page) -> list[str]:
        """List all of it, and what the page's policy had to forbid."""
        blocked: list[str] = page.evaluate("window.violations")
        return [*self.console, *self.requests, *self.dialogs, *blocked]


def chromium_path() -> str | None:
    """Return where Chromium is, if it is anywhere."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser without a window, and end it."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium_path(), args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, path: Path, **settings: Any) -> Iterator[tuple[Page, Seen]]:  # noqa: ANN401 - Playwright's
    """Open a file in a context of its own. Whatever else it asks for fails, and is noted."""
    seen = Seen()
    context = browser.new_context(**settings)
    try:
        _watch(context, path.as_uri(), seen)
        page = context.new_page()
        page.on("console", lambda message: seen.console.append(message.text))
        page.on("pageerror", lambda error: seen.console.append(str(error)))
        page.on("dialog", seen.dismiss)
        page.goto(path.as_uri())
        yield page, seen
    finally:
        context.close()


def ready(page: Page) -> Page:
    """Wait until all charts are drawn."""
    page.wait_for_selector(_READY, state="attached")
    return page


def _watch(context: BrowserContext, own: str, seen: Seen) -> None:
    def handle(route: Route) -> None:
        if route.request.url.partition("#")[0] == own:
            route.continue_()
        else:
            seen.requests.append(route.request.url)
            route.abort()

    context.route("**/*", handle)
    context.add_init_script(_LISTEN)
