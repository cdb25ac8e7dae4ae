"""Sets of characters, as ranges of codes: what RE2 has names for and Python's ``re`` has not."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7f",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
"""The members of POSIX classes."""


def safe(char: str) -> str:
    """A character as a member of a class, whatever it means there."""
    return char if char.isascii() and char.isalnum() else f"\\U{ord(char):08x}"


def written(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges as members of a class."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


def inverted(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """All other characters. Classes do not nest in Python, so what is negated inside of one is spelt out."""
    found, start = [], 0
    for low, high in ranges:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    return [*found, (start, sys.maxunicode)] if start <= sys.maxunicode else found


def _ranges(codes: Iterable[int]) -> list[tuple[int, int]]:
    found = []
    for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0]):
        members = [code for _, code in run]
        found.append((members[0], members[-1]))
    return found


def others(members: str) -> str:
    """All characters but some of ASCII's."""
    fits = re.compile(f"[{members}]").match
    return written(inverted(_ranges(code for code in range(128) if fits(chr(code)))))


@lru_cache(maxsize=64)
def category(name: str) -> tuple[tuple[int, int], ...] | None:
    """The characters of a category; None for what is no category."""
    if name == "Any":
        return ((0, sys.maxunicode),)
    if not re.fullmatch("[LMNPSZC]|L[ultmo]|M[cen]|N[dlo]|P[cdefios]|S[ckmo]|Z[lps]|C[cfos]", name):
        return None
    # Beyond these there are only private and unassigned ones, and a few marks.
    spans = ((0, sys.maxunicode + 1),) if name[0] == "C" else ((0, 0x40000), (0xE0000, 0xE1000))
    codes = (
        code for span in spans for code in range(*span) if unicodedata.category(chr(code)).startswith(name)
    )
    return tuple(_ranges(codes))
