"""Files made to exhaust whoever reads them: bombs, endless texts, nesting, claims."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tools.hostile_bomb import write_gzip, write_members, write_plain, write_zstd
from tools.hostile_parts import (
    GB,
    HEAD,
    KERNEL,
    KERNEL_END,
    KERNEL_START,
    MB,
    TAIL,
    Write,
    hostile,
    repeated,
    write_lines,
)

__all__: list[str] = []

_BOMB = "inflates more than"
_NO_EVENTS = "no traceEvents in its first"
_LINE, _BLANK = b",\n", b", "

# -- bombs

for _name, _pack, _ending in (
    ("gzip", write_gzip, ".json.gz"),
    ("gzip members", write_members, ".json.gz"),
    ("zstd", write_zstd, ".json.zst"),
):
    for _what, _head, _unit, _tail, _words in (
        ("blanks", HEAD, b" ", KERNEL + TAIL, _BOMB),
        ("one name", HEAD + KERNEL_START, b"x", KERNEL_END + TAIL, _BOMB),
        ("kernels", HEAD, KERNEL + _LINE, KERNEL + TAIL, _BOMB),
        ("header", HEAD[:1], b'"k": "v",\n', HEAD[1:] + KERNEL + TAIL, _NO_EVENTS),
        ("no JSON", b"", b"\0", b"", "this is not JSON"),
        ("nothing but blanks", b"", b" ", b"", _BOMB),
    ):
        hostile(f"{_name} bomb, 20 GB: {_what}", status=1, words=_words, ending=_ending)(
            repeated(_pack, _head, _unit, _tail, 20 * GB)
        )


def _believed(event: bytes, size: int) -> Write:
    """Write what no guard against bombs may refuse: 130-fold, for a number in twelve events."""
    rng = Random(1)  # noqa: S311 - the same file every time
    some = [event.replace(b"100.000", b"%d.000" % rng.randrange(10**9)) for _ in range(2000)]
    unit = b"".join(other + _LINE + (event + _LINE) * 11 for other in some)
    return repeated(write_gzip, HEAD, unit, KERNEL + TAIL, size)


hostile("gzip, 4 GB, 130-fold: python functions", ending=".json.gz")(
    _believed(KERNEL.replace(b'"kernel"', b'"python_function"'), 4 * GB)
)
# kernels are kept, so memory is in proportion to them
hostile("gzip, 400 MB, 130-fold: kernels", ending=".json.gz")(_believed(KERNEL, 400 * MB))


# -- no events, and endless texts

for _what, _head, _unit, _tail, _words in (
    ("numbers", b'{"values": [0', b", 0.5", b"]}", _NO_EVENTS),
    ("keys", b"{", b'"key": "value", ', b'"last": 0}', _NO_EVENTS),
    ("blanks", b"", b" ", b"{}", ""),
    ("a list of nothing", b"[{}", b",{}", b"]", ""),
    ("a list of numbers", b"[0", b",0", b"]", "memory timeline"),
):
    hostile(f"1 GB on one line, no events: {_what}", status=1, words=_words)(
        repeated(write_plain, _head, _unit, _tail, GB)
    )
for _what, _gap, _head in (
    ("a line each", _LINE, HEAD),
    ("one line", _BLANK, HEAD.replace(b"\n", b"")),
):
    hostile(f"one name of 200 MB between kernels, {_what}", words="undecodable")(
        repeated(
            write_plain,
            _head + KERNEL + _gap + KERNEL_START,
            b"x",
            KERNEL_END + _gap + KERNEL + TAIL,
            200 * MB,
        )
    )
hostile("a header of 500 MB", status=1, words=_NO_EVENTS)(
    repeated(write_plain, b"{\n", b'  "key": "value",\n', HEAD[1:] + KERNEL + TAIL, 500 * MB)
)
hostile("a header of 15 MB")(
    repeated(write_plain, b"{\n", b'  "key": "value",\n', HEAD[1:] + KERNEL + TAIL, 15 * MB)
)
for _size in (500, 15):
    hostile(f"a trailer of {_size} MB")(
        repeated(
            write_plain, HEAD + KERNEL + b"\n]", b',\n  "key": "value"', b"\n}\n", _size * MB
        )
    )
for _what, _head, _unit, _tail in (
    ("blanks behind the events", HEAD + KERNEL + b"\n]\n", b" ", b"}\n"),
    ("blanks behind the file", HEAD + KERNEL + TAIL, b" ", b""),
    ("braces behind the file", HEAD + KERNEL + TAIL, b"{", b""),
    ("brackets behind the file", HEAD + KERNEL + TAIL, b"[", b""),
    ("numbers behind the file", HEAD + KERNEL + TAIL, b"1 ", b""),
):
    hostile(f"500 MB of {_what}")(repeated(write_plain, _head, _unit, _tail, 500 * MB))


# -- nesting


def _nested(place: bytes, opening: bytes, closing: bytes) -> Write:
    """Put brackets in brackets, 100,000 deep, where the place has its mark."""

    def write(path: Path, scale: float) -> int:
        depth = max(1, int(100_000 * scale))
        path.write_bytes(place.replace(b"@", opening * depth + b"1" + closing * depth))
        return path.stat().st_size

    return write


_GOOD = HEAD + KERNEL
for _where, _place, _status in (
    ("in args", _GOOD + _LINE + KERNEL[:-2] + b', "deep": @}}' + TAIL, 0),
    ("as a time", _GOOD + _LINE + KERNEL.replace(b"100.000", b"@") + TAIL, 0),
    ("as a name", _GOOD + _LINE + KERNEL.replace(b'"gemm"', b"@") + TAIL, 0),
    ("as an event", _GOOD + b",\n@" + TAIL, 0),
    ("in the header", b'{"deep": @, ' + _GOOD[1:] + TAIL, 0),
    ("in distributedInfo", b'{"distributedInfo": @, ' + _GOOD[1:] + TAIL, 0),
    ("in the trailer", _GOOD + b'], "deep": @}', 0),
    ("as the file", b"@", 1),
):
    hostile(f"lists 100,000 deep {_where}", status=_status)(_nested(_place, b"[", b"]"))
    hostile(f"objects 100,000 deep {_where}", status=_status)(_nested(_place, b'{"a":', b"}"))
hostile("lists 100,000 deep, never closed", status=1)(_nested(b"@", b"[", b""))
hostile("objects 100,000 deep, never closed", status=1)(_nested(b"@", b'{"a":', b""))


# -- claims

_CLAIMS = {
    "a world of a billion": b'"world_size": 1000000000',
    "a world of a million": b'"world_size": 1048576',
    "a world of a billion, as text": b'"world_size": "1000000000"',
    "a rank beyond all": b'"rank": 999999999999999999999, "world_size": 1',
    "a group of a billion": b'"world_size": 1, "pg_count": 1000000000, '
    b'"pg_config": [{"pg_name": "0", "pg_size": 1000000000, "ranks": [0]}]',
    "a world of a million digits": b'"world_size": ' + b"9" * MB,
    "a world of a million digits, as text": b'"world_size": "' + b"9" * MB + b'"',
}


def _claim(known: bytes, claimed: bytes) -> Write:
    head = HEAD.replace(known, claimed)
    return lambda path, _: write_lines(path, [KERNEL], head=head)


for _what, _text in _CLAIMS.items():
    hostile(f"claims {_what}")(_claim(b'"rank": 0, "world_size": 1', _text))
hostile("claims to begin 10^30 ns after 1970")(_claim(b"1700000000000000000", b"1" + b"0" * 30))


@hostile("claims times and ids of a million digits")
def _digits(path: Path, _: float) -> int:
    digits = b"1" * MB
    texts = (digits, b'"%s"' % digits, b"1e" + digits, b"0." + digits)
    events = [KERNEL.replace(b"100.000", text) for text in texts]
    events += [KERNEL.replace(b": 3}", b": " + text + b"}") for text in texts]
    events += [KERNEL.replace(b'"device": 0', b'"device": ' + text) for text in texts]
    step = (
        b'{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%s", "ts": 1, "dur": 9}'
    )
    return write_lines(path, [KERNEL, *events, step % digits], head=HEAD)
