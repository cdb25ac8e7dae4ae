"""Character classes that RE2 has and Python's ``re`` lacks, as ranges of code points."""

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


def escape_member(char: str) -> str:
    """A character escaped as a member of a class."""
    return char if char.isascii() and char.isalnum() else f"\\U{ord(char):08x}"


def class_members(ranges: Iterable[tuple[int, int]]) -> str:
    """Ranges as members of a class."""
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)


def complement(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The complement of ranges. Python's classes do not nest, so a negated class inside of one is expanded."""
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


def ascii_complement(members: str) -> str:
    """The complement of some ASCII characters."""
    fits = re.compile(f"[{members}]").match
    return class_members(complement(_ranges(code for code in range(128) if fits(chr(code)))))


@lru_cache(maxsize=64)
def category(name: str) -> tuple[tuple[int, int], ...] | None:
    """The characters of a Unicode category; None if there is no such category."""
    if name == "Any":
        return ((0, sys.maxunicode),)
    if not re.fullmatch("[LMNPSZC]|L[ultmo]|M[cen]|N[dlo]|P[cdefios]|S[ckmo]|Z[lps]|C[cfos]", name):
        return None
    # Other planes have only private and unassigned characters, and a few marks.
    spans = ((0, sys.maxunicode + 1),) if name[0] == "C" else ((0, 0x40000), (0xE0000, 0xE1000))
    codes = (
        code for span in spans for code in range(*span) if unicodedata.category(chr(code)).startswith(name)
    )
    return tuple(_ranges(codes))
