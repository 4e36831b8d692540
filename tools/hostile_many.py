"""Files with a million of something that a job has a few of."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from pathlib import Path

from tools.hostile_bomb import write_plain
from tools.hostile_parts import (
    BEFORE,
    KERNEL,
    MB,
    TAIL,
    Write,
    hostile,
    kernel,
    launch,
    mark,
    repeated,
    write_lines,
)

__all__: list[str] = []

_REFUSED = "past belief"


def _many(count: int, event: Callable[[int], bytes], *also: bytes) -> Write:
    def write(path: Path, scale: float) -> int:
        numbers = range(max(1, int(count * scale)))
        return write_lines(path, chain(map(event, numbers), also))

    return write


def _worked_step(number: int) -> bytes:
    return b",\n".join((mark(number), launch(number), kernel(number)))


def _launched(number: int) -> bytes:
    return b",\n".join((launch(number), kernel(number)))


def _op(number: int) -> bytes:
    return (
        b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": %d, "tid": "t%d", "ts": %d, '
        b'"dur": 5, "args": {}}' % (number, number, number * 10 + 1)
    )


def _op_with(args: bytes) -> bytes:
    return (
        b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100.500, '
        b'"dur": 5.250, "args": {%s}}' % args
    )


def _op_of_other_shapes(number: int) -> bytes:
    return _op_with(
        b'"Input Dims": [[%d, 3], []], "Input type": ["t%d"], "Concrete Inputs": ["%d"]'
        % (number, number, number)
    )


# -- events that are all kept, so memory is in proportion to them

hostile("2.5 million kernels without launches")(_many(5 * MB // 2, kernel))
hostile("1.5 million kernels, each with its launch")(_many(3 * MB // 2, _launched))
hostile("3 million operators")(_many(3 * MB, lambda _: _op_with(b'"External id": 7')))

# -- texts and ids

hostile("2 million kernel names")(
    _many(2 * MB, lambda n: kernel(n, name=f"gemm_kernel_{n}_{n * 2654435761 % 2**32:08x}"))
)
hostile("1 million kernel names of 300 letters")(
    _many(MB, lambda n: kernel(n, name=f"void gemm_{n}<{'float, ' * 40}>"))
)
hostile("10,000 kernel names that are almost a collective's")(
    _many(10_000, lambda n: kernel(n, name="(multimem_" * 400 + str(n)))
)
hostile("100,000 kernel names of 5,000 letters")(
    _many(MB // 10, lambda n: kernel(n, name=f"{n}{'x' * 5000}"))
)
hostile("1 million categories")(_many(MB, lambda n: kernel(n, cat=f"kernel{n}"), KERNEL))
hostile("1 million phases")(_many(MB, lambda n: kernel(n, ph=f"X{n}"), KERNEL))
hostile("1 million categories of launches")(
    _many(MB, lambda n: kernel(n, cat=f"cuda_runtime{n}"), KERNEL)
)
hostile("1 million processes and threads")(_many(MB, _op))
hostile("2 million operators, each of other shapes")(_many(2 * MB, _op_of_other_shapes))
hostile("100,000 operators with shapes of 4,000 letters")(
    _many(MB // 10, lambda n: _op_with(b'"Input Dims": "%d%s"' % (n, b"x" * 4000)))
)
hostile("100,000 operators with shapes of 5,000 letters")(
    _many(MB // 10, lambda n: _op_with(b'"Input Dims": "%d%s"' % (n, b"x" * 5000)))
)
hostile("30,000 operators with shapes of many brackets")(
    _many(30_000, lambda n: _op_with(b'"Input Dims": [%d%s]' % (n, b", [[]]" * 680)))
)
hostile("1 million streams")(_many(MB, lambda n: kernel(n, stream=n)))
hostile("1 million documents in one file", status=1, words=_REFUSED)(
    repeated(write_plain, b"", BEFORE + KERNEL + TAIL, b"", 300 * MB)
)
hostile("1,000 documents of one rank in one file")(
    repeated(write_plain, b"", BEFORE + KERNEL + TAIL, b"", 300_000)
)

# -- more of something than is believed, and as much as just is

hostile("1 million devices", status=1, words=_REFUSED)(_many(MB, lambda n: kernel(n, device=n)))
hostile("1 million devices with names", status=1, words=_REFUSED)(
    _many(MB, lambda n: kernel(n, device=f"gpu {n}"))
)
hostile("1 million steps, each with work", status=1, words=_REFUSED)(_many(MB, _worked_step))
hostile("1 million steps, no work", status=1, words=_REFUSED)(_many(MB, mark, KERNEL))
hostile("100,000 steps within one another", status=1, words=_REFUSED)(
    _many(
        MB // 10,
        lambda n: mark(n, dur=900_000_000),
        *chain.from_iterable((launch(n), kernel(n)) for n in range(100)),
    )
)
hostile("1,000 steps on 1,000 devices", status=1, words=_REFUSED)(
    _many(1000, mark, *(kernel(n, device=n) for n in range(1000)))
)
hostile("60,000 steps, each with work")(_many(60_000, _worked_step))
hostile("60,000 steps within one another")(
    _many(
        60_000,
        lambda n: mark(n, dur=900_000_000),
        *chain.from_iterable((launch(n), kernel(n)) for n in range(10_000)),
    )
)
hostile("1,000 devices, 60 steps")(_many(60, mark, *(kernel(n, device=n) for n in range(1000))))
hostile("500 documents of 1,000 steps")(
    repeated(
        write_plain,
        b"",
        BEFORE + b",\n".join(map(_worked_step, range(1000))) + TAIL,
        b"",
        200 * MB,
    )
)
