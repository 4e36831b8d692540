"""Damage a trace at random: bytes, JSON tokens, whole events, compressed containers.

Every change is drawn from one ``random.Random``, so a seed reproduces it. tools/fuzz.py drives
this for as long as it is told, the tests for a moment.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

import zstandard

from tools.fuzz_words import KEYS, NUMBERS, TEXTS, WORDS

__all__ = ["MOST_BYTES", "ON_BYTES", "ON_JSON", "Mutator", "read_seeds", "text_of"]

MOST_BYTES = 1 << 17  # of a mutated file, inflated: longer ones find little and take long
_LONGEST_SEED = 1 << 15
_LONGEST_FILE = 1 << 26
_LONGEST_RUN = 1 << 12
_MOST_CHANGES = 6

Change: TypeAlias = Callable[[bytes, Random, bytes], bytes]

_NUMBER = re.compile(rb"(?<=[:\[, ])-?\d[-+\d.eE]*")
_TEXT = re.compile(rb'"((?:[^"\\]|\\.){0,200})"')
_PAIR = re.compile(rb'"[^"\\]{1,40}"\s*:\s*(?:"[^"\\]*"|-?[\w.]+)\s*,?')
_VALUE = re.compile(rb':\s*("[^"\\]*"|-?[\w.]+)')
_KEY = re.compile(rb'"([^"\\]{1,40})"\s*:')
_EVENT = re.compile(rb'\{[^{}]{0,60}"ph"')
_MARK = re.compile(rb'[][{}:,"\\]')


def read_seeds(folders: Sequence[Path]) -> list[bytes]:
    """Read every file below the folders, once; traces too long to mutate are shortened."""
    files = sorted({path for folder in folders for path in folder.rglob("*") if path.is_file()})
    return list(dict.fromkeys(_shortened(path.read_bytes()) for path in files))


def _shortened(data: bytes) -> bytes:
    """Leave out events from the middle of a long trace, and its compression."""
    text, _ = text_of(data, _LONGEST_FILE)
    if len(text) <= _LONGEST_SEED:
        return data
    events = [found.start() for found in _EVENT.finditer(text)]
    half = _LONGEST_SEED // 2
    last_kept = max((at for at in events if at < half), default=half)
    first_kept = min((at for at in events if at > len(text) - half), default=len(text) - half)
    return text[:last_kept] + text[first_kept:]


# -- containers


def text_of(data: bytes, most: int = MOST_BYTES) -> tuple[bytes, str]:
    """Return what a file inflates to, at most so much of it, and which container it was in."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(wbits=31).decompress(data, most), "gzip"
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            reader = zstandard.ZstdDecompressor().stream_reader(data)
            return reader.read(most), "zstd"
    except (zlib.error, zstandard.ZstdError):
        pass
    return data[:most], "plain"


def _members(text: bytes, rng: Random) -> bytes:
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randint(1, 3)))
    bounds = zip([0, *cuts], [*cuts, len(text)], strict=True)
    return b"".join(gzip.compress(text[a:b], 1, mtime=0) for a, b in bounds)


def _wrapped(text: bytes, container: str, rng: Random) -> bytes:
    if container == "gzip":
        return gzip.compress(text, 1, mtime=0)
    if container == "members":
        return _members(text, rng)
    if container == "zstd":
        return zstandard.ZstdCompressor(level=1).compress(text)
    if container == "twice":
        return gzip.compress(gzip.compress(text, 1, mtime=0), 1, mtime=0)
    return text


# -- places in a text


def _span(text: bytes, rng: Random) -> tuple[int, int]:
    """Choose a stretch of a text: mostly short, sometimes long."""
    start = rng.randrange(len(text) + 1)
    most = rng.choice((1, 4, 16, 256, _LONGEST_RUN))
    return start, min(len(text), start + rng.randint(0, most))


def _near(pattern: re.Pattern[bytes], text: bytes, rng: Random) -> re.Match[bytes] | None:
    """Find some match of a pattern without looking at all of the text."""
    found = pattern.search(text, rng.randrange(len(text) + 1))
    return found or pattern.search(text)


def _swap(text: bytes, found: re.Match[bytes] | None, new: bytes, group: int = 0) -> bytes:
    if found is None:
        return text
    return text[: found.start(group)] + new + text[found.end(group) :]


# -- changes to bytes


def flip_bits(text: bytes, rng: Random, _: bytes) -> bytes:
    """Flip one to eight bits, anywhere."""
    changed = bytearray(text)
    for _bit in range(rng.randint(1, 8) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def insert_bytes(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put random bytes somewhere."""
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.randbytes(rng.choice((1, 2, 8, 64))) + text[at:]


def delete_bytes(text: bytes, rng: Random, _: bytes) -> bytes:
    """Take a stretch out."""
    start, end = _span(text, rng)
    return text[:start] + text[end:]


def repeat_bytes(text: bytes, rng: Random, _: bytes) -> bytes:
    """Write a stretch several times over."""
    start, end = _span(text, rng)
    return text[:end] + text[start:end] * rng.choice((1, 2, 20)) + text[end:]


def truncate(text: bytes, rng: Random, _: bytes) -> bytes:
    """Break off."""
    return text[: rng.randrange(len(text) + 1)]


def behead(text: bytes, rng: Random, _: bytes) -> bytes:
    """Begin somewhere in the middle."""
    return text[rng.randrange(len(text) + 1) :]


def splice(text: bytes, rng: Random, other: bytes) -> bytes:
    """Go on with another file from somewhere on."""
    at, after = rng.randrange(len(text) + 1), rng.randrange(len(other) + 1)
    return text[:at] + other[after:]


def interleave(text: bytes, rng: Random, other: bytes) -> bytes:
    """Put a stretch of another file in, as two writers of one file do."""
    at = rng.randrange(len(text) + 1)
    start, end = _span(other, rng)
    return text[:at] + other[start:end] + text[at:]


def concatenate(text: bytes, rng: Random, other: bytes) -> bytes:
    """Append another file."""
    return text + rng.choice((b"", b"\n", b",", b"\0\0")) + other


# -- changes to JSON


def swap_number(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put something else where a number is."""
    return _swap(text, _near(_NUMBER, text, rng), rng.choice(NUMBERS))


def swap_text(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put another text where one is: a word that traces know, or a nasty one."""
    new = rng.choice(rng.choice((TEXTS, WORDS, KEYS)))
    return _swap(text, _near(_TEXT, text, rng), new, group=1)


def poison_text(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put something nasty inside a text."""
    found = _near(_TEXT, text, rng)
    if found is None:
        return text
    at = rng.randint(found.start(1), found.end(1))
    return text[:at] + rng.choice(TEXTS) + text[at:]


def swap_key(text: bytes, rng: Random, _: bytes) -> bytes:
    """Call a key by another one's name."""
    return _swap(text, _near(_KEY, text, rng), rng.choice(KEYS), group=1)


def swap_value(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put a value of another type where one is."""
    return _swap(text, _near(_VALUE, text, rng), rng.choice(NUMBERS), group=1)


def duplicate_pair(text: bytes, rng: Random, _: bytes) -> bytes:
    """Write a key and its value twice, or the key of one with the value of another."""
    found = _near(_PAIR, text, rng)
    if found is None:
        return text
    again = found[0] if found[0].endswith(b",") else found[0] + b","
    return text[: found.start()] + again + text[found.start() :]


def remove_pair(text: bytes, rng: Random, _: bytes) -> bytes:
    """Take a key and its value out."""
    return _swap(text, _near(_PAIR, text, rng), b"")


def change_mark(text: bytes, rng: Random, _: bytes) -> bytes:
    """Remove, double or change a bracket, comma, colon or quote."""
    found = _near(_MARK, text, rng)
    mark = found[0] if found else b""
    new = rng.choice((b"", mark * 2, bytes([rng.choice(b'[]{}:,"\\')])))
    return _swap(text, found, new)


def nest(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put brackets within brackets where a number is."""
    depth = rng.choice((3, 100, 990, 1100, 20_000))
    opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
    inside = opening * depth + b"1" + closing * rng.choice((depth, depth - 1, 0))
    return _swap(text, _near(_NUMBER, text, rng), inside)


def move_event(text: bytes, rng: Random, _: bytes) -> bytes:
    """Put one event, or a part of one, where another begins."""
    source, target = _near(_EVENT, text, rng), _near(_EVENT, text, rng)
    if source is None or target is None:
        return text
    following = _EVENT.search(text, source.end())
    end = following.start() if following else source.end()
    return text[: target.start()] + text[source.start() : end] + text[target.start() :]


def change_blanks(text: bytes, rng: Random, _: bytes) -> bytes:
    """Break lines otherwise, or not at all."""
    return rng.choice(
        (
            lambda: text.replace(b"\n", b"\r\n"),
            lambda: text.replace(b"\n", b""),
            lambda: text.replace(b"  ", b" "),
            lambda: text.replace(b", ", b",\n"),
            lambda: b"\xef\xbb\xbf" + text,
            lambda: b" \n" * rng.randint(1, 50) + text,
            lambda: text.decode("utf-8", "replace").encode("utf-16"),
        )
    )()


ON_BYTES: tuple[Change, ...] = (
    *(flip_bits, insert_bytes, delete_bytes, repeat_bytes, truncate, behead, splice),
    *(interleave, concatenate),
)
ON_JSON: tuple[Change, ...] = (
    *(swap_number, swap_text, poison_text, swap_key, swap_value, duplicate_pair, remove_pair),
    *(change_mark, nest, move_event, change_blanks),
)


class Mutator:
    """Changes files, with a corpus of others to take parts from."""

    def __init__(self, corpus: Sequence[bytes]) -> None:
        self._texts = [text_of(data)[0] for data in corpus]

    def mutate(self, data: bytes, rng: Random) -> bytes:
        """Return the file changed in one to six ways, in some container, maybe damaged."""
        text, container = text_of(data)
        for _ in range(rng.randint(1, _MOST_CHANGES)):
            change = rng.choice(ON_BYTES if rng.random() < 0.25 else ON_JSON)
            text = change(text, rng, rng.choice(self._texts))[:MOST_BYTES]
        return self._packed(text, container, rng)

    def _packed(self, text: bytes, container: str, rng: Random) -> bytes:
        """Compress as the file was, or not; sometimes otherwise, and sometimes wrongly."""
        luck = rng.random()
        if luck < 0.8:
            return text if luck < 0.5 else _wrapped(text, container, rng)
        kinds = ("gzip", "members", "zstd", "twice")
        packed = _wrapped(text, rng.choice(kinds), rng)
        if luck < 0.9:
            return packed
        other = _wrapped(rng.choice(self._texts), rng.choice(kinds), rng)
        return rng.choice(ON_BYTES)(packed, rng, other)
