"""Trace files that a URL names: found, opened and looked up through fsspec.

fsspec is imported for URLs only. What the packages behind it raise is of any type, and becomes
an error of ours here: it names the URL as it may be shown, and says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, Final, Protocol

from traceparse.errors import InputError, MissingExtraError, TraceparseError, one_line
from traceparse.urls import protocol_of, redacted, shown

__all__ = ["Remote", "RemoteFile", "filesystem", "told"]

_BLOCK: Final = 8 << 20  # of one request: with S3, time goes to the bytes and not to asking
_BLOCKS: Final = 4  # that are held of a file: the one that is read, and the next on its way
_LONGEST: Final = 200  # letters of what another package says
_HTTP: Final = frozenset({"http", "https"})
_PACKAGES: Final = {  # that a protocol needs
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "adl", "az"), "adlfs"),
    **dict.fromkeys(_HTTP, "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
}
_CREDENTIALS: Final = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or FSSPEC_S3_ANON=true "
    "for what is public",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
}
_NO_CREDENTIALS: Final = frozenset(
    {"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"}
)
# what tells a file from another of its name and size, by whichever store keeps it
_VERSIONS: Final = (
    *("ETag", "etag", "md5Hash", "crc32c", "Content-MD5", "content_md5", "Digest"),
    *("generation", "version_id", "VersionId"),
    *("LastModified", "last_modified", "Last-Modified", "mtime", "modified", "updated"),
    *("modificationTime", "created", "sha"),
)


class Bytes(Protocol):
    """An open file, as far as it is read here."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes: none at the end."""
        ...

    def seek(self, place: int, /) -> object:
        """Go on from there."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


@dataclass(frozen=True, slots=True)
class Remote:
    """A file that a URL names, with as much of a ``Path`` as reading traces takes.

    ``url`` may hold a secret, and is for fsspec and for processes that read; as text it is
    what may be shown. ``info`` is what a listing told of it, if it was in one.
    """

    url: str = field(repr=False)
    info: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return shown(self.url)

    @property
    def name(self) -> str:
        """Its last part, without a query."""
        return PurePosixPath(self._parts()[0].partition("://")[2]).name

    @property
    def is_of_this_process(self) -> bool:
        """Say whether other processes do not see it."""
        return protocol_of(self.url) == "memory"

    @property
    def is_signed(self) -> bool:
        """Say whether the URL is one file's, with a query that opens no other."""
        return bool(self._parts()[1])

    def _parts(self) -> tuple[str, str]:
        """Return the URL and its query: only those of the web have one."""
        if protocol_of(self.url) not in _HTTP:
            return self.url, ""
        url, _, query = self.url.partition("?")
        return url, query

    def with_name(self, name: str) -> Remote:
        """Return the file of another name beside it."""
        return Remote(f"{self._parts()[0].rpartition('/')[0]}/{name}")

    def exists(self) -> bool:
        """Is there such a file?"""
        with told(self.url):
            files, path = filesystem(self.url)
            return bool(files.exists(path))

    def look_up(self) -> Mapping[str, Any]:
        """Return what its store tells of it.

        Raises
        ------
        InputError
            It is not there, or that cannot be told.
        """
        if self.info is not None:
            return self.info
        with told(self.url):
            files, path = filesystem(self.url)
            info: Mapping[str, Any] = files.info(path)
            return info

    def size(self) -> int | None:
        """Return how many bytes it has, if its store tells."""
        size = self.look_up().get("size")
        return size if isinstance(size, int) and size >= 0 else None

    def version(self) -> str | None:
        """Return what changes when it is written again; ``None`` where nothing would."""
        info = self.look_up()
        versions = {name: str(info[name]) for name in _VERSIONS if info.get(name) is not None}
        return f"{self} {info.get('size')} {versions}" if versions else None

    def open(self, mode: str = "rb") -> RemoteFile:
        """Open it to be read from its beginning, a block at a time.

        Raises
        ------
        InputError
            It is not there, is no file, or cannot be opened.
        """
        if self.look_up().get("type", "file") != "file":
            raise InputError(f"{self}: this is no regular file; give a trace file")
        with told(self.url):
            files, path = filesystem(self.url)
            how = {"cache_type": "background", "cache_options": {"maxblocks": _BLOCKS}}
            if self.size() is None:  # and so nothing can be asked for by its place
                how = {}
            return RemoteFile(self.url, lambda: files.open(path, mode, _BLOCK, **how))


class RemoteFile:
    """An open file of which every failure is one of ours."""

    def __init__(self, url: str, reopen: Callable[[], Bytes]) -> None:
        self._url = url
        self._reopen = reopen
        self._file = reopen()

    def __enter__(self) -> RemoteFile:
        """Return the open file."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most so many: none at the end."""
        with told(self._url):
            return self._file.read(size)

    def seek(self, place: int) -> None:
        """Go on from a place; where a store cannot, all before it is read once more."""
        with told(self._url):
            try:
                self._file.seek(place)
            except ValueError:
                self._file.close()
                self._file = self._reopen()
                while place > 0 and (block := self._file.read(min(place, _BLOCK))):
                    place -= len(block)

    def close(self) -> None:
        """Let go of it."""
        with told(self._url):
            self._file.close()


def filesystem(url: str) -> tuple[Any, str]:
    """Return what reads a URL, and how that names it."""
    import fsspec  # noqa: PLC0415 - not for who has local files

    files, path = fsspec.core.url_to_fs(url)
    return files, path


@contextmanager
def told(url: str) -> Iterator[None]:
    """Turn what goes wrong with a URL into an error of ours: one line, without secrets."""
    try:
        yield
    except TraceparseError:
        raise
    except ImportError as error:
        raise _missing(url, error) from error
    except Exception as error:  # noqa: BLE001 - of any of the packages behind fsspec
        cause = _cause(error)
        words = f"{shown(url)}: {_words(url, cause, _without_secrets(url, one_line(cause)))}"
        # a traceback would show what is left out here
        raise InputError(words) from (error if shown(url) == url else None)


def _cause(error: Exception) -> Exception:
    """Return what went wrong: with the web, whatever it was, a file is not found."""
    below = error.__cause__
    if isinstance(error, FileNotFoundError) and isinstance(below, Exception):
        return below if type(below).__module__.startswith("aiohttp.") else error
    return error


def _missing(url: str, error: ImportError) -> MissingExtraError:
    package = _PACKAGES.get(protocol_of(url))
    how = f"pip install {package}" if package else one_line(error)[:_LONGEST]
    return MissingExtraError(
        f"{shown(url)}: a package that reads {protocol_of(url)}:// is not installed: {how}"
    )


def _without_secrets(url: str, text: str) -> str:
    """Return what another package says without the URL's secrets, whichever way it has them."""
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - not for who has local files

    split = urlsplit(url)
    secrets = {split.password, unquote(split.password or ""), split.query}
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return redacted(text)


def _words(url: str, error: Exception, text: str) -> str:
    """Say what is wrong, and what to do."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = f" ({text[:_LONGEST]})" if text else ""
    status = getattr(error, "status", None)
    is_late = isinstance(error, TimeoutError) or any("Timeout" in kind for kind in kinds)
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        words = "no such file or folder, or no access to it; check the URL"
    elif kinds & _NO_CREDENTIALS:
        how = _CREDENTIALS.get(protocol_of(url), "those that its fsspec package reads")
        words = f"no credentials were found{said}; set {how}"
    elif isinstance(error, PermissionError) or status in (401, 403):
        words = f"access is denied{said}; check the credentials, and what they may read"
    elif is_late:
        words = f"no answer in time{said}; check the network, and try again"
    elif isinstance(error, ValueError) and text.startswith("Protocol not known"):
        words = f"unknown protocol{said}; give a path, or a URL that fsspec reads, as s3://..."
    else:
        name = type(error).__name__
        words = f"cannot be read: {name}{said}; check the URL and the network"
    return words
