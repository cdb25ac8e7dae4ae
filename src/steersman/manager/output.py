"""The output of verbs: tables for people, JSON and YAML for programs, colours on terminals."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

DOCUMENTS = ("json", "yaml")
"""The formats for programs."""
BOLD = "1"
CYAN = "36"

Paint: TypeAlias = Callable[[str, str], str]
"""Colours a text, if there are colours."""


def table(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> Iterator[str]:
    """The lines of a table. The columns of ``right`` are aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


def document(value: object, form: str) -> str:
    """A value as JSON or YAML."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    import yaml  # takes longer to import than all else here

    content: Any = msgspec.to_builtins(value)
    return str(yaml.safe_dump(content, sort_keys=False, width=120)).rstrip()


def coloured(terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether output is coloured: on a terminal, unless NO_COLOR is set."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def paint_for_stdout() -> Paint:
    """Colours, where the output is a terminal."""
    return paint if coloured(sys.stdout.isatty(), os.environ) else plain


def paint(text: str, colour: str) -> str:
    """A text in a colour, which is the parameter of a terminal's escape sequence."""
    return f"\033[{colour}m{text}\033[0m"


def plain(text: str, colour: str) -> str:
    """A text as it is."""
    return text
