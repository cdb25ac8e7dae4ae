"""Mutates inputs at random, and minimizes an input that broke something."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from random import Random

_BYTES = (0, 1, 9, 10, 13, 32, 34, 37, 39, 44, 45, 46, 47, 58, 59, 61, 92, 95, 123, 127, 128, 192, 237, 255)
"""Bytes at which parsers turn: controls, blanks, delimiters, the ends of ASCII and of UTF-8."""
_NUMBERS = (
    b"0", b"-0", b"-1", b"1", b"00", b"+1", b"1e999", b"0x10", b"255", b"256", b"65536", b"2147483648", b"4294967296",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"1" * 30, b"9" * 400,
)  # fmt: skip
_NUMBER = re.compile(rb"[0-9]+")


class Mutator:
    """Derives inputs from others by a seeded random generator."""

    def __init__(self, random: Random, dictionary: Sequence[bytes], max_bytes: int) -> None:
        self._random = random
        self._dictionary = tuple(dictionary)
        self._max_bytes = max_bytes
        self._mutations: tuple[Callable[[bytearray], None], ...] = (
            self._flip_bit,
            self._set_byte,
            self._insert_byte,
            self._delete,
            self._copy,
            self._repeat,
            self._change_case,
            self._change_number,
            *((self._insert_token, self._insert_token, self._replace_by_token) if dictionary else ()),
        )

    def mutate(self, data: bytes, other: bytes) -> bytes:
        """Return an input with one to eight mutations, sometimes joined with a part of another one."""
        made = bytearray(data)
        if self._random.random() < 0.1:
            made[self._position(made) :] = other[self._random.randint(0, len(other)) :]
        for _ in range(1 << self._random.randrange(4)):
            self._random.choice(self._mutations)(made)
        return bytes(made[: self._max_bytes])

    def _position(self, data: bytearray) -> int:
        return self._random.randint(0, len(data))

    def _slice(self, data: bytearray) -> slice:
        start = self._position(data)
        return slice(start, start + self._random.choice((1, 2, 4, 8, 32, 128)))

    def _flip_bit(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] ^= 1 << self._random.randrange(8)

    def _set_byte(self, data: bytearray) -> None:
        if data:
            data[self._random.randrange(len(data))] = self._random.choice(_BYTES)

    def _insert_byte(self, data: bytearray) -> None:
        data.insert(self._position(data), self._random.choice(_BYTES))

    def _delete(self, data: bytearray) -> None:
        del data[self._slice(data)]

    def _copy(self, data: bytearray) -> None:
        at = self._position(data)
        data[at:at] = data[self._slice(data)]

    def _repeat(self, data: bytearray) -> None:
        """Repeat a part until the input is long: work that grows with the square of the length shows only there."""
        part = data[self._slice(data)]
        times = self._random.choice((2, 16, 200, self._max_bytes)) if part else 0
        at = self._position(data)
        data[at:at] = part * min(times, self._max_bytes // max(len(part), 1))

    def _change_case(self, data: bytearray) -> None:
        part = self._slice(data)
        data[part] = data[part].swapcase()

    def _change_number(self, data: bytearray) -> None:
        found = list(_NUMBER.finditer(data))
        if found:
            start, end = self._random.choice(found).span()
            data[start:end] = self._random.choice(_NUMBERS)

    def _insert_token(self, data: bytearray) -> None:
        at = self._position(data)
        data[at:at] = self._random.choice(self._dictionary)

    def _replace_by_token(self, data: bytearray) -> None:
        data[self._slice(data)] = self._random.choice(self._dictionary)


def minimize(data: bytes, breaks: Callable[[bytes], bool], seconds: float = 20.0) -> bytes:
    """Return the smallest input found within ``seconds`` that still breaks: first without large parts, then small ones."""
    until = time.monotonic() + seconds
    step = max(len(data) // 2, 1)
    while step and time.monotonic() < until:
        start = 0
        while start < len(data) and time.monotonic() < until:
            shorter = data[:start] + data[start + step :]
            if breaks(shorter):
                data = shorter
            else:
                start += step
        step //= 2
    return data
