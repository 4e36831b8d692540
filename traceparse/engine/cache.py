"""What was digested once need not be read again: one small Parquet file a trace file.

An entry is named by the content of the trace file (its name, size and time of last change, and
what it begins and ends with), by the facts that stand beside it, by what was asked of it, and
by the code that digested it. What is not an entry of that name, whole, is as good as none, and
is written anew.

The content of what a URL names is not fetched for that: it is told by the URL, its size, and
its tag or time of last change. A store that tells neither has no entry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pyarrow as pa

from traceparse.errors import TraceparseError
from traceparse.ingest import Place, Remote, path_text, read_sidecar
from traceparse.rank import RankDigest, StoredError, from_table, to_table
from traceparse.whole import whole
from traceparse.work import added_formulas

__all__ = ["Cache", "code", "moved", "source"]

_PACKAGE = Path(__file__).resolve().parent.parent
_ROOMS = ("ingest", "rank", "work", "data")  # whose code and facts make a digest
_BUILT = {".so", ".pyd"}  # other bytes wherever the same source is built
_EDGE = 1 << 14  # bytes at either end of a file that are looked at
_PATH = b"traceparse.path"
# of a few rows: what pays for itself in large files takes a third of the time to read these
_PLAIN: Final = {"use_dictionary": False, "compression": "none", "write_statistics": False}


@cache
def source() -> bytes:
    """Return a hash of all that a digest depends on but the trace and how ours was built."""
    return _hash([path for path in _files() if path.suffix not in _BUILT])


@cache
def code() -> bytes:
    """Return a hash of all that a digest depends on but the trace, also of what was built."""
    return _hash(_files())


def _files() -> list[Path]:
    files = sorted(_PACKAGE.glob("*.py"))
    for room in _ROOMS:
        files += sorted(path for path in (_PACKAGE / room).iterdir() if path.is_file())
    return files


def _hash(files: Sequence[Path]) -> bytes:
    found = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        found.update(f"{path.name} {len(content)} ".encode() + content)
    found.update(repr(added_formulas()).encode())
    return found.digest()


class Cache:
    """Digests by trace file, in a folder that is made when something is put there.

    Several processes may use one folder at the same time: an entry is there whole or not at
    all. ``complaint`` says why something could not be kept, if so.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.complaint: str | None = None

    def entry(self, path: Place, rank: int | None) -> Path | None:
        """Return where the digests of a file as it is now belong; ``None`` if it has none."""
        try:
            content = _version(path) if isinstance(path, Remote) else _content(path)
        except (OSError, TraceparseError):  # whoever reads it will say so
            return None
        if content is None:
            return None
        # also why they cannot be read, as a note says so
        facts = repr(read_sidecar(path)).encode()
        asked = f"{rank}".encode()
        name = hashlib.sha256(b"\0".join([code(), asked, facts, *content])).hexdigest()
        return self.folder / f"{name}.parquet"

    def get(self, entry: Path, path: Place) -> list[RankDigest] | None:
        """Return the digests of the file at a path from its entry, if they are there."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - not for who keeps nothing

        try:
            # by itself: the machinery of data sets takes three times as long
            with pq.ParquetFile(pa.BufferReader(entry.read_bytes())) as file:
                table = file.read(use_threads=False)
            before = table.schema.metadata[_PATH].decode()
            return [moved(digest, before, path_text(path)) for digest in from_table(table)]
        except (OSError, StoredError, pa.ArrowException, LookupError, TypeError, ValueError):
            return None  # whatever is wrong with it, it is made again

    def put(self, entry: Path, path: Place, digests: Sequence[RankDigest]) -> None:
        """Keep the digests of the file at a path: its entry is from before it was read."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - as above

        table = to_table(digests)
        metadata = {**table.schema.metadata, _PATH: path_text(path).encode()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with whole(entry) as temporary:
                pq.write_table(table.replace_schema_metadata(metadata), temporary, **_PLAIN)
        except OSError as error:
            self.complaint = f"{self.folder}: {error.strerror or error}"


def _content(path: Path) -> list[bytes]:
    found = path.stat()
    with path.open("rb") as file:
        head = file.read(_EDGE)
        file.seek(max(found.st_size - _EDGE, 0))
        tail = file.read(_EDGE)
    # the name, as it may say the rank
    named = f"{found.st_size} {found.st_mtime_ns} {path_text(Path(path.name))}"
    return [named.encode(), head, tail]


def _version(path: Remote) -> list[bytes] | None:
    version = path.version()
    return None if version is None else [version.encode("utf-8", "backslashreplace")]


def moved(digest: RankDigest, before: str, now: str) -> RankDigest:
    """Return the digest of a file that had another path when it was read."""
    if before == now:
        return digest

    def path_now(path: str) -> str:
        return now + path.removeprefix(before) if path.startswith(before) else path

    notes = (
        replace(note, file=path_now(note.file)) if note.file else note for note in digest.notes
    )
    health = replace(digest.health, path=path_now(digest.health.path))
    return replace(digest, health=health, notes=tuple(notes))
