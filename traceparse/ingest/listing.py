"""From paths to files: which ones do these paths, folders, globs and URLs name?"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from traceparse.errors import InputError
from traceparse.ingest.remote import Remote, filesystem, told
from traceparse.ingest.sidecar import is_sidecar
from traceparse.urls import is_url, protocol_of, shown

__all__ = ["Place", "find", "path_text", "place_of"]

Place: TypeAlias = Path | Remote
_ENDINGS: Final = (".json", ".json.gz", ".json.zst", ".json.tmp", ".json.gz.tmp")
_PATTERN: Final = re.compile(r"[*?[]")
_LOCAL: Final = frozenset({"file", "local"})
_WEB: Final = frozenset({"http", "https"})


def place_of(path: str | Path | Remote) -> Place:
    """Return the file, folder or glob that is named: of this machine, or what a URL is of."""
    if not isinstance(path, str) or not is_url(path):
        return Path(path) if isinstance(path, str) else path
    if protocol_of(path) in _LOCAL:
        return Path(path.partition("://")[2])
    return Remote(path)


def path_text(path: Place) -> str:
    """Return a path as text that any file can hold: names on disk may be any bytes."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")


def find(paths: Sequence[str | Path]) -> list[Place]:
    """Which files do these paths, folders (searched downwards), globs and URLs name? Once each.

    Facts that stand beside a trace are no trace, unless they are named outright.

    Raises
    ------
    InputError
        A path is not there, or a folder or glob holds no ``.json`` file.
    MissingExtraError
        A URL takes a package that is not there.
    """
    found: dict[Place, None] = {}
    for path in paths:
        place = place_of(path)
        some = _expand_url(place.url) if isinstance(place, Remote) else _expand(str(place))
        found.update(dict.fromkeys(some))
    return list(found)


def _expand(text: str) -> list[Path]:
    path = Path(text)
    if path.is_dir():
        return _some(_search(path), text)
    if path.exists():
        return [path]
    matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - a pattern, not a folder
    if not matches:
        raise InputError(f"{text}: no such file or folder; check the path")
    traces = [match for match in matches if not is_sidecar(Path(match))]
    return [file for match in traces or matches for file in _expand(match)]


def _search(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            # a pipe by that name would be waited for, for ever
            if _is_trace(name) and path.is_file() and not is_sidecar(path):
                yield path


def _is_trace(name: str) -> bool:
    return name.lower().endswith(_ENDINGS) and name[0] != "."


def _some(files: Iterable[Any], folder: str) -> list[Any]:
    inside = list(files)
    if not inside:
        raise InputError(
            f"{folder}: no trace in this folder: it holds no file named "
            f"*.json, *.json.gz or *.json.zst; give the folder that the profiler wrote to"
        )
    return inside


def _expand_url(url: str) -> list[Remote]:
    """Return the files that a URL names: itself, those below it, or those of a glob.

    A URL of the web is a folder, whose page lists what is in it, if it ends in a slash: to ask
    would be to fetch it.
    """
    if "::" in url:
        raise InputError(
            f"{shown(url)}: URLs inside one another are not read; give that of the traces"
        )
    with told(url):
        files, path = filesystem(url)
        files.invalidate_cache()  # what was listed some time ago may have changed
        is_web = protocol_of(url) in _WEB
        has_pattern = _PATTERN.search(url.partition("?")[0] if is_web else url)
        if has_pattern and (matches := _globbed(files, url, path)):
            return matches
        if is_web and url.endswith("/"):
            return _some(_below(files, url, path), shown(url))
        info = files.info(path)
        if info["type"] != "directory":
            return [Remote(url, info)]
        return _some(_below(files, url, path), shown(url))


def _globbed(files: Any, url: str, pattern: str) -> list[Remote]:  # noqa: ANN401 - fsspec's
    begin = _PATTERN.search(url)
    assert begin
    root = url[: url.rindex("/", 0, begin.start()) + 1]
    matches = [
        (Remote(child, info), path)
        for child, path, info in _named(files, root, files.glob(pattern, detail=True))
        if "/." in url[len(root) - 1 :] or not _is_hidden(child[len(root) :])
    ]
    traces = [match for match in matches if not is_sidecar(match[0])]
    found: list[Remote] = []
    for match, path in traces or matches:
        is_folder = match.look_up()["type"] == "directory"
        some = _some(_below(files, match.url, path), str(match)) if is_folder else [match]
        found.extend(some)
    return found


def _below(files: Any, url: str, folder: str) -> Iterator[Remote]:  # noqa: ANN401 - as above
    """Return the traces below a folder, in the order in which one of a disk is searched."""
    found = []
    for child, _, info in _named(files, url, files.find(folder, detail=True)):
        below = child[len(url) :].strip("/")
        parts = below.split("/")
        if info["type"] == "file" and not _is_hidden(below) and _is_trace(parts[-1]):
            found.append(([*((1, part) for part in parts[:-1]), (0, parts[-1])], child, info))
    for _, child, info in sorted(found, key=lambda one: one[0]):
        file = Remote(child, info)
        if not is_sidecar(file):
            yield file


def _is_hidden(below: str) -> bool:
    return not below or below.startswith(".") or "/." in below


def _named(
    files: Any,  # noqa: ANN401 - as above
    root: str,
    listed: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the URL of each file below a root, what its store calls it, and what it tells.

    The root keeps what only its URL has, such as who signs in.
    """
    base = files._strip_protocol(root).strip("/")
    prefix = f"{root.rstrip('/')}/" if base else root
    for path, info in sorted(listed.items()):
        whole = path.strip("/")
        if not base or whole.startswith(f"{base}/"):
            yield prefix + whole[len(base) :].strip("/"), path, info
