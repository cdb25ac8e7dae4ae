"""What is wrong with an expression, and where: in the words and the form of cel-go, which people know."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

NOWHERE = -1
"""The position of what is no part of the text."""
MOST = 100
"""How many problems are shown; the others are counted."""
LONGEST_LINE = 16384
"""A longer line (in bytes) is not shown."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake, and the position of the character it is shown at."""

    at: int
    message: str


class CelError(Exception):
    """An expression that is wrong. Its text shows every mistake below the line it is in."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(_shown(source, self.problems))


def _shown(source: str, problems: tuple[Problem, ...]) -> str:
    starts = [0, *(at + 1 for at, char in enumerate(source) if char == "\n")]
    placed = sorted(((*_place(starts, one.at), one) for one in problems[:MOST]), key=lambda each: each[:2])
    lines = source.split("\n")
    shown = [_one(lines, line, column, problem.message) for line, column, problem in placed]
    if len(problems) > MOST:
        shown.append(f"{len(problems) - MOST} more errors were truncated")
    return "\n".join(shown)


def _place(starts: list[int], at: int) -> tuple[int, int]:
    """The line, counted from 1, and the column, counted from 0."""
    if at == NOWHERE:
        return -1, -1
    line = bisect_right(starts, at)
    return line, at - starts[line - 1]


def _one(lines: list[str], line: int, column: int, message: str) -> str:
    said = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1 or lines == [""]:
        return said
    text = lines[line - 1].replace("\t", " ")
    if len(text.encode()) > LONGEST_LINE:
        return said
    # Characters that are more than one byte are pointed at with wide ones, so that the mark is below.
    dots = "".join("." if char.isascii() else "．" for char in text[:column])
    mark = "＾" if text[column : column + 1] and not text[column].isascii() else "^"
    return f"{said}\n | {text}\n | {dots}{mark}"
