"""URLs of traces: what is one, and how it is shown, as it may hold a secret."""

from __future__ import annotations

import re

__all__ = ["is_url", "protocol_of", "redacted", "shown"]

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_INSIDE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")
_QUERY = re.compile(r"\?[^?]*=.*", re.DOTALL)  # rank?.json is a glob
_HIDDEN = "***"
# in which user@host means container@account
_CONTAINERS = frozenset({"abfs", "abfss", "adl", "az", "wasb", "wasbs"})


def is_url(path: object) -> bool:
    """Is it text that names a protocol, as ``s3://bucket/run`` does?"""
    return isinstance(path, str) and _URL.fullmatch(path) is not None


def protocol_of(url: str) -> str:
    """Return what stands before ``://``, in small letters."""
    return url.partition("://")[0].lower()


def shown(url: str) -> str:
    """Write a URL for people: who signs in, and what a query signs, stay out of it."""
    found = _URL.fullmatch(url)
    if found is None:
        return url
    protocol, rest = found[1], found[2]
    host, slash, path = rest.partition("/")
    who, at, where = host.rpartition("@")
    if at and (":" in who or protocol.lower() not in _CONTAINERS):
        host = f"{_HIDDEN}@{where}"
    return f"{protocol}://{_QUERY.sub(f'?{_HIDDEN}', host + slash + path)}"


def redacted(text: str) -> str:
    """Return a text in which every URL is as it may be shown."""
    return _INSIDE.sub(lambda found: shown(found[0]), text)
