"""Flags in Go's syntax: ``--x=v``, ``--x v``, ``--x``, ``--x=false``, ``-v 2``, durations, lists.

argparse cannot read ``--controllers -nodeipam`` or ``--flag=false``, so this reads them as pflag
does. A flag is one frozen value; `parse` is pure.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any


class UsageError(Exception):
    """What was typed cannot be understood. The message is one line and says what to do."""


@dataclass(frozen=True, slots=True)
class Type:
    """How a value is read and called in the help."""

    name: str
    read: Callable[[str], Any]
    bare: str | None = None
    """The value of the flag given without one; None where one must be given."""
    many: bool = False
    """Given again, it adds to the list instead of replacing it."""


@dataclass(frozen=True, slots=True)
class Option:
    """One flag."""

    name: str
    type: Type
    default: Any
    help: str
    section: str = "Generic"
    short: str = ""


_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def read_duration(text: str) -> float:
    """Seconds of a Go duration such as ``1h30m`` or ``-1.5s``; a bare ``0`` is allowed."""
    sign, rest = (-1.0, text[1:]) if text[:1] == "-" else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, end = 0.0, 0
    for match in _DURATION.finditer(rest):
        if match.start() != end:
            break
        total += float(match[1]) * _UNITS[match[2]]
        end = match.end()
    if not rest or end != len(rest):
        raise ValueError("not a duration such as 30s or 1h30m")
    return sign * total


def write_duration(seconds: float) -> str:
    """A duration as Go prints it: ``1h0m0s``, ``10s``, ``1.5s``, ``250ms``."""
    if seconds == 0:
        return "0s"
    sign, left = ("-", -seconds) if seconds < 0 else ("", seconds)
    if left < 1:
        return f"{sign}{left * 1000:g}ms"
    hours, left = divmod(left, 3600)
    minutes, left = divmod(left, 60)
    if hours:
        return f"{sign}{hours:.0f}h{minutes:.0f}m{left:g}s"
    return f"{sign}{minutes:.0f}m{left:g}s" if minutes else f"{sign}{left:g}s"


def _read_bool(text: str) -> bool:
    # The spellings of Go's strconv.ParseBool.
    if text in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if text in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise ValueError("not true or false")


def _read_int32(text: str) -> int:
    value = int(text, 0)
    if not -(2**31) <= value < 2**31:
        raise ValueError("out of range")
    return value


def _read_strings(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part) if text else ()


BOOL = Type("", _read_bool, bare="true")
STRING = Type("string", str)
INT = Type("int32", _read_int32)
FLOAT = Type("float32", float)
DURATION = Type("duration", read_duration)
STRINGS = Type("strings", _read_strings, many=True)


def parse(options: Iterable[Option], argv: Sequence[str]) -> dict[str, Any]:
    """The values of all options: those given, and the defaults of the others."""
    known = {option.name: option for option in options}
    short = {option.short: option for option in known.values() if option.short}
    given: dict[str, Any] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--" or not word.startswith("-") or word == "-":
            extra = rest[0] if word == "--" and rest else word
            raise UsageError(f"{extra!r} is not a flag, and no other arguments are taken")
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            # Go's flags may be written with underscores too.
            option = known.get(name) or known.get(name.replace("_", "-"))
        else:
            # -v2, -v=2 and -v 2 are the same.
            name, value = word[1:2], word[2:]
            equals, value = ("=", value.removeprefix("=")) if value else ("", "")
            option = short.get(name)
        if option is None:
            raise UsageError(_unknown(word.split("=")[0], known))
        if not equals:
            if option.type.bare is not None:
                value = option.type.bare
            elif rest:
                value = rest.pop(0)
            else:
                raise UsageError(f"flag needs an argument: --{option.name} {option.type.name}")
        try:
            read = option.type.read(value)
        except ValueError as error:
            raise UsageError(f"invalid argument {value!r} for --{option.name}: {error}") from None
        if option.type.many and option.name in given:
            read = (*given[option.name], *read)
        given[option.name] = read
    return {name: given.get(name, option.default) for name, option in known.items()}


def _unknown(word: str, known: Mapping[str, Option]) -> str:
    close = get_close_matches(word.lstrip("-"), known, n=1)
    hint = f"did you mean --{close[0]}?" if close else "see --help for those there are"
    return f"unknown flag: {word}; {hint}"


def usage(options: Iterable[Option], width: int = 100) -> str:
    """The help text, in sections."""
    lines: list[str] = []
    section = ""
    for option in options:
        if option.section != section:
            section = option.section
            lines += ["", f"{section} flags:", ""]
        head = f"-{option.short}, " if option.short else "    "
        lines.append(f"  {head}--{option.name} {option.type.name}".rstrip())
        shown = _shown(option)
        text = f"{option.help} (default {shown})" if shown else option.help
        lines += textwrap.wrap(text, width - 16, initial_indent=" " * 16, subsequent_indent=" " * 16)
    return "\n".join(lines[1:])


def _shown(option: Option) -> str:
    if option.default in (None, "", (), False, 0):
        return ""
    if option.type is DURATION:
        return write_duration(option.default)
    if option.type is STRINGS:
        return f"[{','.join(option.default)}]"
    return str(option.default).lower() if option.type is BOOL else str(option.default)
