"""What does a recorded operator call say about itself, and which work came out of it?

Everything in a :class:`Call` is untrusted: each reader checks what it reads, and raises
:class:`NotKnownError` with a reason where the record says too little or contradicts itself.
Nothing is guessed, nothing is evaluated, texts are bounded before they are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

__all__ = ["Call", "NotKnownError", "Work"]

_MOST_DIMS = 16
_MOST_SIZE = 2**63 - 1
_LONGEST_TEXT = 400
_NO_SHAPES = "no shapes were recorded: profile with record_shapes=True"
_NO_ARGUMENTS = "no values of arguments were recorded"
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
_ZERO = re.compile(r"[+-]?(?:0+\.?0*|\.0+)(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_FLAGS = {"True": True, "true": True, "1": True, "False": False, "false": False, "0": False}


class NotKnownError(Exception):
    """A call does not say enough for its formula; ``str()`` of it is the reason, for people."""


@dataclass(frozen=True, slots=True)
class Work:
    """How much one call works, or why that is not known.

    ``flop`` is what the hardware executes, two for each multiply and add, recomputation
    included; ``recompute_flop`` is the part of it that repeats earlier work. Where the record
    only bounds it, the count lies in ``lowest_flop`` to ``highest_flop``, else both equal
    ``flop``. ``dtype`` names the peak that the work is measured against, ``least_bytes`` is
    the memory traffic that no implementation can avoid, and ``conventions`` say what was
    chosen where one could choose.

    Where ``unknown`` has a reason, all numbers are ``None``.
    """

    flop: int | None = None
    recompute_flop: int | None = None
    lowest_flop: int | None = None
    highest_flop: int | None = None
    dtype: str | None = None
    least_bytes: int | None = None
    conventions: tuple[str, ...] = ()
    unknown: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded operator call, as the profiler wrote it; positions are those of the schema.

    ``dims`` are the sizes of each input: a list for a tensor, a list of lists for a list of
    tensors, empty for all else. ``types`` are the C++ names of their elements, ``""`` for an
    argument that was not given. ``concrete`` are the texts of numbers, flags and lists, ``""``
    for tensors.
    """

    name: str
    dims: Sequence[object]
    types: Sequence[object] = ()
    concrete: Sequence[object] = ()

    @property
    def num_inputs(self) -> int:
        """How many arguments the call had: some overloads of one name differ in it."""
        return len(self.dims) if isinstance(self.dims, list | tuple) else 0

    def shape(self, position: int, *ranks: int) -> tuple[int, ...]:
        """Return the sizes of a tensor; with ``ranks``, it must have one of those.

        Raises
        ------
        NotKnownError
            No such shape is recorded.
        """
        shape = _sizes(_at(self.dims, position))
        if shape is None:
            _unknown(f"input {position} has no shape" if self.num_inputs else _NO_SHAPES)
        if ranks and len(shape) not in ranks:
            wanted = " or ".join(map(str, ranks))
            _unknown(f"input {position} has {len(shape)} dimensions instead of {wanted}")
        return shape

    def is_given(self, position: int) -> bool:
        """Was a tensor with at least one dimension given?"""
        return bool(_at(self.dims, position))

    def shapes(self, position: int) -> tuple[tuple[int, ...], ...]:
        """Return the sizes of each tensor in a list of them; of one tensor, its own.

        A tensor in a list may be a single number: it has no sizes.

        Raises
        ------
        NotKnownError
            Something else is recorded.
        """
        dims = _at(self.dims, position)
        if not isinstance(dims, list | tuple) or len(dims) > _MOST_DIMS:
            _unknown(f"input {position} is no list of shapes")
        if _sizes(dims) is not None:
            return (self.shape(position),)
        found = [() if each == [] else _sizes(each) for each in dims]
        if any(each is None for each in found):
            _unknown(f"input {position} is no list of shapes")
        return tuple(each for each in found if each is not None)

    def type_of(self, position: int) -> str:
        """Return the recorded type of an input, ``""`` where none is."""
        found = _at(self.types, position)
        return found if isinstance(found, str) and len(found) <= _LONGEST_TEXT else ""

    def text(self, position: int) -> str:
        """Return the recorded text of an argument, ``""`` where none is.

        Raises
        ------
        NotKnownError
            It is something else, or longer than any argument that counts.
        """
        if not self.concrete:
            _unknown(_NO_ARGUMENTS)
        found = _at(self.concrete, position, "")
        if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
            _unknown(f"argument {position} cannot be read")
        return found.strip()

    def is_recorded(self, position: int) -> bool:
        """Is there a text of this argument? Tensors have none.

        Raises
        ------
        NotKnownError
            It cannot be read.
        """
        return bool(self.concrete) and self.text(position) != ""

    def flag(self, position: int) -> bool:
        """Return a flag: ``True`` or ``False``.

        Raises
        ------
        NotKnownError
            The argument is not recorded or is no flag.
        """
        text = self.text(position)
        if text not in _FLAGS:
            _unknown(f"argument {position} is no flag")
        return _FLAGS[text]

    def flags(self, position: int) -> tuple[bool, ...]:
        """Return a list of flags: ``[True, False]``.

        Raises
        ------
        NotKnownError
            The argument is not recorded or is something else.
        """
        parts = self._parts(position)
        if not parts or any(part not in _FLAGS for part in parts):
            _unknown(f"argument {position} is no list of flags")
        return tuple(_FLAGS[part] for part in parts)

    def whole(self, position: int) -> int | None:
        """Return a whole number, or ``None`` where the argument was not given.

        Raises
        ------
        NotKnownError
            The argument is something else.
        """
        text = self.text(position) if self.concrete else ""
        if text in {"", "None"}:
            return None
        if not _WHOLE.fullmatch(text):
            _unknown(f"argument {position} is no whole number")
        return int(text)

    def number(self, position: int) -> int:
        """Return a whole number that every call has.

        Raises
        ------
        NotKnownError
            The argument is not recorded or is something else.
        """
        number = self.whole(position)
        if number is None:
            told = f"argument {position} is not recorded"
            _unknown(told if self.concrete else _NO_ARGUMENTS)
        return number

    def wholes(self, position: int, count: int, *, least: int) -> tuple[int, ...]:
        """Return ``count`` whole numbers, none below ``least``; one stands for all of them.

        That is how convolutions read ``[2]``: ``expand_param_if_needed`` in
        ATen/native/ParamUtils.h.

        Raises
        ------
        NotKnownError
            The argument is something else.
        """
        parts = self._parts(position)
        if any(not _WHOLE.fullmatch(part) for part in parts):
            _unknown(f"argument {position} is no list of whole numbers")
        numbers = tuple(int(part) for part in parts)
        if len(numbers) == 1:
            numbers *= count
        if len(numbers) != count or any(number < least for number in numbers):
            _unknown(f"argument {position} does not fit the shapes")
        return numbers

    def is_nonzero(self, position: int) -> bool:
        """Is a number recorded that is not zero? Of what is not recorded, nothing is said."""
        return self.is_recorded(position) and not _ZERO.fullmatch(self.text(position))

    def _parts(self, position: int) -> list[str]:
        text = self.text(position)
        if not (text.startswith("[") and text.endswith("]")):
            _unknown(f"argument {position} is not recorded as a list")
        parts = text[1:-1].split(",")
        if len(parts) > _MOST_DIMS:
            _unknown(f"argument {position} is too long a list")
        return [part.strip() for part in parts]


def _at(inputs: object, position: int, default: object = None) -> object:
    """Return what is recorded of one input, if anything is and in a list."""
    if not isinstance(inputs, list | tuple) or position >= len(inputs):
        return default
    return inputs[position]


def _sizes(dims: object) -> tuple[int, ...] | None:
    """Return dims that are the sizes of one tensor; a number without dimensions has none."""
    if not isinstance(dims, list | tuple) or not 0 < len(dims) <= _MOST_DIMS:
        return None
    if any(type(size) is not int or not 0 <= size <= _MOST_SIZE for size in dims):
        return None
    return tuple(dims)


def _unknown(reason: str) -> NoReturn:
    raise NotKnownError(reason)
