"""A verb of the command line: one declaration, from which its help, its parser and the shell completion are made.

::

    Verb(
        "drain",
        "evict the pods of nodes",
        arguments=(Argument("NODE", many=True),),
        flags=(flag("timeout", DURATION, 0.0, "Time to wait for a node."),),
        examples=(Example("steersman drain node-1", "wait until the node is empty"),),
    )

Declarations are light to import: what takes long to load is behind a function, and the module that performs the verb is
imported when it is called.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import msgspec
from msgspec.structs import replace

from steersman.api.suggestions import closest
from steersman.manager.flag_types import BOOL, Type, choice
from steersman.manager.flags import Option, UsageError, collect, refuse, usage
from steersman.runtime.python_gc import without_collector

PROGRAM = "steersman"
WIDTH = 100
"""Columns of the help."""

T = TypeVar("T")
Late: TypeAlias = T | Callable[[], T]
"""A value, or a function that makes it when it is needed."""


def flag(name: str, type: Type, default: Any, help: str, short: str = "") -> Option:
    """A flag of a verb."""
    return Option(name, type, default, help, "", short)


HELP = flag("help", BOOL, False, "Show this help and exit.", "h")


def output_flag(*others: str) -> Option:
    """The flag ``--output`` of a verb that shows objects: a table, or a document for programs."""
    return flag("output", choice("table", *others, "json", "yaml"), "table", "Format of the output.", "o")


class Argument(msgspec.Struct, frozen=True):
    """A word of a command line that is no flag."""

    name: str
    """As the usage shows it, such as ``NODE``."""
    optional: bool = False
    many: bool = False
    choices: Late[tuple[str, ...]] = ()
    """The words that a shell completes it to."""
    files: bool = False
    """Whether a shell completes it to the names of files."""

    def __str__(self) -> str:
        text = f"{self.name}..." if self.many else self.name
        return f"[{text}]" if self.optional else text


class Example(NamedTuple):
    """A command line, and what it does."""

    command: str
    meaning: str = ""


class Verb(msgspec.Struct, frozen=True):
    """A verb, or a verb of a verb, such as ``drain`` of ``node``."""

    name: str
    summary: str
    """One line without a full stop, for lists of verbs."""
    description: str = ""
    """The text that follows the summary in the verb's own help."""
    arguments: tuple[Argument, ...] = ()
    flags: Late[tuple[Option, ...]] = ()
    examples: tuple[Example, ...] = ()
    verbs: tuple[Verb, ...] = ()
    """The verbs of this verb, made by `verbs_of`."""
    notes: Late[str] = ""
    """The text that follows the flags in the help, such as a list of values."""
    command: bool = False
    """Whether a command to run may follow after ``--``."""
    of: str = ""
    """The name of the verb above: ``node`` for ``drain``; empty for a verb of the program."""

    @property
    def path(self) -> str:
        """The words that call it: ``steersman node drain``."""
        return " ".join(filter(None, (PROGRAM, self.of, self.name)))

    @property
    def options(self) -> tuple[Option, ...]:
        """The flags, with ``--help`` among them."""
        found = evaluate(self.flags)
        return found if any(each.name == HELP.name for each in found) else (*found, HELP)

    def call(self, words: Sequence[str]) -> int:
        """Perform the verb, or show its help; returns the exit code. Raises `UsageError`."""
        given = parse(self, words)
        if given.values[HELP.name]:
            print(help_text(given.verb))
            return 0
        with without_collector():
            main = import_module(f"steersman.manager.{self.name}").main
        return cast("int", main(given))


class Given(msgspec.Struct, frozen=True):
    """A command line, parsed."""

    verb: Verb
    """The verb, or the verb of it that was given."""
    values: Mapping[str, Any]
    """The value of each flag."""
    set: tuple[str, ...]
    """The names of the flags that were given."""
    arguments: tuple[str, ...]
    command: tuple[str, ...] = ()
    """The words after ``--``, for a verb that runs a command."""


def verbs_of(name: str, *verbs: Verb) -> tuple[Verb, ...]:
    """Declare verbs as those of another one, such as ``drain`` of ``node``."""
    return tuple(replace(verb, of=name) for verb in verbs)


def evaluate(value: Late[T]) -> T:
    """The value itself; where it is a function, the result of calling it."""
    return value() if callable(value) else value


# -- parsing ----------------------------------------------------------------------------------


def parse(verb: Verb, words: Sequence[str]) -> Given:
    """Parse a command line. Flags and arguments may be mixed in any order. Raises `UsageError`."""
    words, command = _split(verb, list(words))
    known = {each.name: each for one in (verb, *verb.verbs) for each in one.options}
    given, stray = collect(known.values(), words)
    chosen = verb
    if verb.verbs and (stray or not given.get(HELP.name)):
        chosen, stray = _choose(verb, stray)
        _check_flags(verb, chosen, given)
    values = {each.name: each.default for each in chosen.options} | given
    if not values[HELP.name]:
        _check_arguments(chosen, stray)
    return Given(chosen, values, tuple(given), tuple(stray), command)


def _check_flags(verb: Verb, chosen: Verb, given: Iterable[str]) -> None:
    """Refuse flags of other verbs of the same verb."""
    owned = {each.name for each in chosen.options}
    for name in given:
        if name not in owned:
            owners = [one.path for one in verb.verbs if any(each.name == name for each in one.options)]
            raise UsageError(f"--{name} is a flag of `{'`, `'.join(owners)}`, not of `{chosen.path}`")


def _split(verb: Verb, words: list[str]) -> tuple[list[str], tuple[str, ...]]:
    if not verb.command or "--" not in words:
        return words, ()
    cut = words.index("--")
    if not words[cut + 1 :]:
        raise UsageError("no command after --")
    return words[:cut], tuple(words[cut + 1 :])


def _choose(verb: Verb, stray: list[str]) -> tuple[Verb, list[str]]:
    if not stray:
        raise UsageError(f"`{verb.path}` needs one of: {', '.join(each.name for each in verb.verbs)}")
    return find(verb.verbs, stray[0], verb.path), stray[1:]


def find(verbs: Sequence[Verb], name: str, path: str = PROGRAM) -> Verb:
    """The verb of a name. Raises `UsageError`, which names the most similar one."""
    for verb in verbs:
        if verb.name == name:
            return verb
    names = [verb.name for verb in verbs]
    close = closest(name, names)
    hint = f"did you mean `{path} {close}`?" if close else f"available: {', '.join(names)}"
    raise UsageError(f"unknown verb {name!r} of `{path}`; {hint}")


def _check_arguments(verb: Verb, stray: Sequence[str]) -> None:
    wanted = verb.arguments
    if not wanted:
        refuse(stray)
        return
    needed = [each for each in wanted if not each.optional]
    if len(stray) < len(needed):
        missing = needed[len(stray)]
        raise UsageError(f"{missing.name} is missing: {usage_line(verb)}")
    if len(stray) > len(wanted) and not wanted[-1].many:
        raise UsageError(f"unexpected argument {stray[len(wanted)]!r}: {usage_line(verb)}")


# -- help -------------------------------------------------------------------------------------


def usage_line(verb: Verb) -> str:
    """How to call a verb, such as ``steersman node drain NODE... [flags]``."""
    words = ["VERB"] if verb.verbs else list(map(str, verb.arguments))
    return " ".join((verb.path, *words, "[flags]", *(("[-- COMMAND...]",) if verb.command else ())))


def help_text(verb: Verb) -> str:
    """The help of a verb: what it is for, how to call it, its verbs, examples, flags and notes."""
    return "\n".join(_help(verb))


def _help(verb: Verb) -> Iterator[str]:
    yield f"{verb.summary[0].upper()}{verb.summary[1:]}."
    if verb.description:
        yield ""
        yield from textwrap.wrap(verb.description, WIDTH)
    yield ""
    yield f"Usage: {usage_line(verb)}"
    if verb.verbs:
        yield from ("", "Verbs:", "")
        yield from columns([(each.name, each.summary) for each in verb.verbs])
    if verb.examples:
        yield from ("", "Examples:", "")
        yield from columns(verb.examples)
    yield ""
    yield usage(verb.options, WIDTH)
    notes = evaluate(verb.notes)
    if notes:
        yield ""
        yield notes.rstrip()


def columns(rows: Sequence[tuple[str, str]], width: int = WIDTH) -> Iterator[str]:
    """The lines of a list of two columns. A text that is too long goes on in the next line, below its beginning."""
    left = max(len(first) for first, _ in rows)
    for first, second in rows:
        begin, room = f"  {first:<{left}}  ", width - left - 4
        lines = textwrap.wrap(second, max(room, 30), break_on_hyphens=False) or [""]
        yield (begin + lines[0]).rstrip()
        yield from (" " * len(begin) + line for line in lines[1:])
