"""Errors of expressions with their positions, formatted as cel-go does."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

NOWHERE = -1
"""The position of an error that belongs to no character."""
MAX_SHOWN = 100
"""Errors in a message; further ones are only counted."""
MAX_LINE = 16384
"""Bytes of a source line in a message; longer lines are omitted."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error, and the position of its character."""

    at: int
    message: str


class CelError(Exception):
    """An invalid expression. The message shows every error with its source line."""

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(_format(source, self.problems))


def _format(source: str, problems: tuple[Problem, ...]) -> str:
    starts = [0, *(at + 1 for at, char in enumerate(source) if char == "\n")]
    placed = sorted(
        ((*_place(starts, one.at), one) for one in problems[:MAX_SHOWN]), key=lambda each: each[:2]
    )
    lines = source.split("\n")
    shown = [_format_problem(lines, line, column, problem.message) for line, column, problem in placed]
    if len(problems) > MAX_SHOWN:
        shown.append(f"{len(problems) - MAX_SHOWN} more errors were truncated")
    return "\n".join(shown)


def _place(starts: list[int], at: int) -> tuple[int, int]:
    """Return the line, counted from 1, and the column, counted from 0."""
    if at == NOWHERE:
        return -1, -1
    line = bisect_right(starts, at)
    return line, at - starts[line - 1]


def _format_problem(lines: list[str], line: int, column: int, message: str) -> str:
    header = f"ERROR: <input>:{line}:{column + 1}: {message}"
    if line < 1 or lines == [""]:
        return header
    text = lines[line - 1].replace("\t", " ")
    if len(text.encode()) > MAX_LINE:
        return header
    # Non-ASCII characters are marked with full-width ones, so that the mark is aligned.
    dots = "".join("." if char.isascii() else "．" for char in text[:column])
    mark = "＾" if text[column : column + 1] and not text[column].isascii() else "^"
    return f"{header}\n | {text}\n | {dots}{mark}"
