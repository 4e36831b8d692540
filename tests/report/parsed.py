"""A page taken apart: its elements, texts, tables by their ids, and pictures."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

VOID = {"meta", "input"}  # of those the page has; what closes itself is another event
SILENT = {"style", "script"}


class Parsed(HTMLParser):
    """Elements, texts and tables of a page; complains of elements that do not nest."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self.text = ""
        self._rows: list[list[str]] = []
        self._hidden = 0
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.elements.append((tag, found))
        if tag in VOID:
            return
        self.open.append(tag)
        # definitions that open on demand, and their buttons, are no part of a cell
        if self._hidden or "popover" in found or tag == "button":
            self._hidden += 1
        if tag == "table":
            self._rows = self.tables[found["id"] or ""] = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in {"td", "th"}:
            self._rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self._hidden = max(self._hidden - 1, 0)

    def handle_data(self, data):
        if set(self.open) & SILENT:
            return
        self.text += data
        if not self._hidden and {"td", "th"} & set(self.open) and "title" not in self.open:
            cell = f"{self._rows[-1][-1]} {data.strip()}"
            self._rows[-1][-1] = cell.strip()

    def attributes(self, name: str) -> list[str]:
        return [attrs[name] or "" for _, attrs in self.elements if name in attrs]

    def heads(self, table: str) -> list[str]:
        return self.tables[table][0]

    def body(self, table: str) -> list[list[str]]:
        return self.tables[table][1:]

    def fields(self) -> dict[str, list[str]]:
        """The values that stand for each path of ``report.json``."""
        found: dict[str, list[str]] = {}
        for _, attrs in self.elements:
            if path := attrs.get("data-field"):
                found.setdefault(path, []).append(attrs.get("data-value") or "")
        return found


def bars(page: Parsed) -> list[tuple[str, list[tuple[str, float, float]]]]:
    """The pictures of a page: what each says, and its segments."""
    found: list[tuple[str, list[tuple[str, float, float]]]] = []
    for tag, attrs in page.elements:
        if tag == "svg":
            found.append((attrs.get("aria-label") or "", []))
        elif tag == "rect" and "x" in attrs:
            x, width = (float((attrs[name] or "").rstrip("%")) for name in ("x", "width"))
            found[-1][1].append((attrs["class"] or "", x, width))
    return found


def digests(tag: str, text: str) -> list[str]:
    """The hashes of all that a page lets the browser run or apply."""
    contents = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return [
        f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'"
        for one in contents
    ]


def policy_of(text: str) -> str:
    """The content security policy of a page."""
    (policy,) = [
        attrs["content"]
        for tag, attrs in Parsed(text).elements
        if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    return policy or ""


def has_own_scripts_only(text: str) -> bool:
    """Is every script of a page one that its policy allows, or data that nothing runs?"""
    scripts = [attrs for tag, attrs in Parsed(text).elements if tag == "script"]
    data = [attrs for attrs in scripts if attrs.get("type") == "application/json"]
    allowed = digests("script", text)
    known = f"script-src {' '.join(allowed)}; style-src" in policy_of(text)
    return known and len(scripts) == len(data) + len(allowed)
