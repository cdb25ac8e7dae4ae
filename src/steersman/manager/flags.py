"""Flags in Go's syntax: ``--x=v``, ``--x v``, ``--x``, ``--x=false``, ``-v 2``.

argparse cannot parse ``--controllers -nodeipam`` or ``--flag=false``, so this parses flags as pflag does, with pflag's
error messages. A flag is one frozen value; `parse` is pure.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from steersman.api.go_quote import quote
from steersman.api.suggestions import closest
from steersman.manager.flag_types import BOOL, STRING, STRINGS, Type


class UsageError(Exception):
    """A mistake on the command line. The message is one line and says what to do."""

    @classmethod
    def of(cls, problems: Sequence[str]) -> UsageError:
        """One error for several mistakes, in upstream's format."""
        return cls(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


class Option(msgspec.Struct, frozen=True):
    """A flag."""

    name: str
    type: Type
    default: Any
    help: str
    section: str = "Generic"
    short: str = ""
    deprecated: str = ""
    """Deprecation message. The flag is still accepted, but not shown in the help."""


def parse(options: Iterable[Option], argv: Sequence[str]) -> dict[str, Any]:
    """Parse a command line of flags only: the values given, and the defaults of the other options."""
    options = tuple(options)
    given, stray = collect(options, argv)
    refuse(stray)
    return {option.name: option.default for option in options} | given


def warnings(options: Iterable[Option], given: Iterable[str]) -> Iterator[str]:
    """Deprecation warnings for the flags given, by their names."""
    known = {option.name: option for option in options}
    for name in given:
        if known[name].deprecated:
            yield f"Flag --{name} has been deprecated, {known[name].deprecated}"


def collect(options: Iterable[Option], argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The values given, and the words that are no flags. Flags may stand anywhere before ``--``."""
    stray: list[str] = []
    given: dict[str, Any] = {}
    for option, text in _words({option.name: option for option in options}, argv, stray):
        try:
            value = option.type.read(text)
        except ValueError as error:
            flag = f"-{option.short}, --{option.name}" if option.short else f"--{option.name}"
            raise UsageError(f"invalid argument {quote(text)} for {quote(flag)} flag: {error}") from None
        if option.type.many and option.name in given:
            value = (*given[option.name], *value)
        given[option.name] = value
    return given, stray


def refuse(stray: Sequence[str]) -> None:
    """Refuse words that are no flags, as pflag does."""
    if any(stray):
        # As pflag: a flag that needs no value does not consume the next argument.
        hint = "; write --FLAG=VALUE" if stray[0] in ("true", "false") else ""
        raise UsageError(f"does not take any arguments, got [{' '.join(map(quote, stray))}]{hint}")


def _words(
    known: Mapping[str, Option], argv: Sequence[str], stray: list[str]
) -> Iterator[tuple[Option, str]]:
    """The flags given, each with its value as text. Other words are added to ``stray``."""
    short = {option.short: option for option in known.values() if option.short}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            stray += rest
            break
        if not word.startswith("-") or word == "-":
            stray.append(word)
            continue
        if word.startswith("--"):
            name, equals, text = word[2:].partition("=")
            if not name or name.startswith("-"):
                raise UsageError(f"bad flag syntax: {word}")
            # As in Go, flags may be written with underscores.
            option = known.get(name) or known.get(name.replace("_", "-"))
            if option is None:
                raise UsageError(f"unknown flag: --{name}; {_hint(name, known)}")
            missing = f"flag needs an argument: --{name}"
        else:
            # -v2, -v=2 and -v 2 are equivalent.
            option = short.get(word[1])
            if option is None:
                raise UsageError(f"unknown shorthand flag: '{word[1]}' in {word}; {_hint('', known)}")
            equals, text = word[2:], word[2:].removeprefix("=")
            missing = f"flag needs an argument: '{word[1]}' in {word}"
        if not equals:
            if option.type.bare is not None:
                text = option.type.bare
            elif rest:
                text = rest.pop(0)
            else:
                raise UsageError(missing)
        yield option, text


def _hint(name: str, known: Mapping[str, Option]) -> str:
    close = closest(name, known)
    return f"did you mean --{close}?" if close else "see --help for all flags"


def usage(options: Iterable[Option], width: int = 100) -> str:
    """The help text, by section."""
    lines: list[str] = []
    section: str | None = None
    for option in options:
        if option.deprecated:
            continue
        if option.section != section:
            section = option.section
            lines += ["", f"{section} flags:" if section else "Flags:", ""]
        head = f"-{option.short}, " if option.short else "    "
        called = {"bool": "", "version": "version[=true]"}.get(option.type.name, option.type.name)
        lines.append(f"  {head}--{option.name} {called}".rstrip())
        shown = _shown(option)
        text = f"{option.help} (default {shown})" if shown else option.help
        lines += textwrap.wrap(text, width - 16, initial_indent=" " * 16, subsequent_indent=" " * 16)
    return "\n".join(lines[1:])


def _shown(option: Option) -> str:
    """The default as the help shows it; empty where it is the zero value."""
    written = option.type.write(option.default)
    if option.type is BOOL or option.type.name == "version":
        return written if written == "true" else ""
    # As pflag, which treats only its own empty lists as zero values.
    if written in ("", "0", "0s") or (written == "[]" and option.type is STRINGS):
        return ""
    return quote(written) if option.type is STRING else written
