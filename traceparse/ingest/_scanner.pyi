"""The native scanner (_scanner.c), where it was built."""

from collections.abc import Sequence

class Scanner:
    def __new__(
        cls,
        columns: Sequence[object],
        capacity: int,
        most_texts: int,
        most_bytes: int,
        seed: int,
        /,
    ) -> Scanner: ...
    def scan(self, text: bytes, at: int, row: int, /) -> tuple[int, int, int, int]: ...
    def texts(self, first: int, /) -> list[bytes]: ...
    def kinds(self, first: int, /) -> list[tuple[int, int]]: ...
    def clear(self) -> None: ...
