"""Reports as files: which formats there are, who renders them, and files that appear whole.

A format is an entry point of group ``traceparse.renderers``: a function from a report to the
text or bytes of ``report.<format>``, or to several files, by their names in the folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

from traceparse.errors import MissingExtraError
from traceparse.whole import whole

if TYPE_CHECKING:
    from traceparse.run.report import Report

__all__ = ["FORMATS", "Rendered", "formats", "save", "shown_as_html", "write_whole"]

FORMATS: Final = ("html", "json", "md", "parquet")  # that are written unless others are named
Rendered: TypeAlias = str | bytes | Mapping[str, str | bytes]
_RENDERERS = "traceparse.renderers"
_NOTEBOOKS = "traceparse.notebooks"


def formats() -> list[str]:
    """Return the names of all formats that something installed renders."""
    return sorted(entry_points(group=_RENDERERS).names)


def save(report: Report, directory: str | Path, wanted: Sequence[str]) -> list[Path]:
    """Render a report in some formats, then write the files, and return their paths.

    Nothing is written if any format cannot be rendered.

    Raises
    ------
    MissingExtraError
        No installed package renders one of the formats.
    """
    points = {point.name: point for point in entry_points(group=_RENDERERS)}
    if unknown := [name for name in wanted if name not in points]:
        raise MissingExtraError(
            f"report format {', '.join(unknown)} is not installed; there are: "
            f"{', '.join(sorted(points))}"
        )
    files: dict[str, str | bytes] = {}
    for name in dict.fromkeys(wanted):
        files |= _files(points[name], report)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    return [write_whole(folder / name, content) for name, content in files.items()]


def shown_as_html(what: object, kind: str) -> str | None:
    """Render something for a notebook: what the entry point of its kind makes of it.

    ``None`` where nothing is installed that does, so that it is shown as text.
    """
    for point in entry_points(group=_NOTEBOOKS, name=kind):
        shown: str = point.load()(what)
        return shown
    return None


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file that no reader ever sees half of, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as temporary:
        if isinstance(content, str):
            temporary.write_text(content, encoding="utf-8")
        else:
            temporary.write_bytes(content)
    return path


def _files(point: EntryPoint, report: Report) -> Mapping[str, str | bytes]:
    rendered: Rendered = point.load()(report)
    if isinstance(rendered, str | bytes):
        return {f"report.{point.name}": rendered}
    for name in rendered:
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts:
            raise ValueError(f"{point.value} names a file outside of the folder: {name!r}")
    return rendered
