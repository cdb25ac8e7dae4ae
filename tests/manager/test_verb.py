"""A verb is declared once: its help, its parser and its mistakes follow."""

from __future__ import annotations

import pytest

from steersman.manager.flag_types import BOOL, INT, choice
from steersman.manager.flags import UsageError
from steersman.manager.verb import Argument, Example, Verb, flag, help_text, parse, verbs_of

FORCE = flag("force", BOOL, False, "Go on regardless.")
OUTPUT = flag("output", choice("table", "json"), "table", "Format.", "o")
FLEET = Verb(
    "fleet",
    "sail ships",
    verbs=verbs_of(
        "fleet",
        Verb("list", "show all ships", flags=(OUTPUT,)),
        Verb("sink", "sink ships", arguments=(Argument("SHIP", many=True),), flags=(FORCE,)),
        Verb("name", "name a ship", arguments=(Argument("SHIP"), Argument("NAME", optional=True))),
    ),
)
LONE = Verb(
    "lone",
    "run a command",
    description="It runs.",
    flags=lambda: (flag("count", INT, 3, "How often.", "c"),),
    examples=(Example("steersman lone -- true", "true"),),
    notes=lambda: "Notes at the end.\n",
    command=True,
)


@pytest.mark.parametrize(
    "words",
    [
        ["sink", "a", "b", "--force"],
        ["--force", "sink", "a", "b"],
        ["sink", "--force", "a", "b"],
        ["sink", "a", "--force=true", "b"],
        ["sink", "--force", "--", "a", "b"],
    ],
)
def test_flags_and_arguments_come_in_any_order(words: list[str]) -> None:
    given = parse(FLEET, words)
    assert given.verb.path == "steersman fleet sink"
    assert given.arguments == ("a", "b")
    assert given.values["force"] is True
    assert given.set == ("force",)


def test_defaults_are_those_of_the_verb_that_was_given() -> None:
    assert dict(parse(FLEET, ["list"]).values) == {"output": "table", "help": False}
    assert dict(parse(LONE, []).values) == {"count": 3, "help": False}


def test_what_follows_two_dashes_is_the_command_where_a_verb_takes_one() -> None:
    given = parse(LONE, ["-c2", "--", "sleep", "--count=9"])
    assert given.values["count"] == 2
    assert given.command == ("sleep", "--count=9")


@pytest.mark.parametrize(
    ("verb", "words", "message"),
    [
        (FLEET, [], "`steersman fleet` needs one of: list, sink, name"),
        (FLEET, ["snik"], "unknown verb 'snik' of `steersman fleet`; did you mean `steersman fleet sink`?"),
        (FLEET, ["zzz"], "unknown verb 'zzz' of `steersman fleet`; available: list, sink, name"),
        (FLEET, ["list", "--froce"], "unknown flag: --froce; did you mean --force?"),
        (FLEET, ["list", "--force"], "--force is a flag of `steersman fleet sink`, not of `steersman fleet list`"),
        (FLEET, ["list", "-o", "xml"], 'invalid argument "xml" for "-o, --output" flag: must be one of table, json'),
        (FLEET, ["list", "a"], 'does not take any arguments, got ["a"]'),
        (FLEET, ["sink"], "SHIP is missing: steersman fleet sink SHIP... [flags]"),
        (FLEET, ["name", "a", "b", "c"], "unexpected argument 'c': steersman fleet name SHIP [NAME] [flags]"),
        (LONE, ["--"], "no command after --"),
        (LONE, ["-c", "x", "--help"], 'invalid argument "x" for "-c, --count" flag'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_names_it(verb: Verb, words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(verb, words)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_help_needs_no_arguments_and_is_that_of_the_verb_given() -> None:
    assert parse(FLEET, ["--help"]).verb is FLEET
    assert parse(FLEET, ["sink", "-h"]).verb.name == "sink"
    assert parse(FLEET, ["-h", "sink"]).verb.name == "sink"


def test_the_help_has_one_form() -> None:
    assert (
        help_text(LONE)
        == """\
Run a command.

It runs.

Usage: steersman lone [flags] [-- COMMAND...]

Examples:

  steersman lone -- true  true

Flags:

  -c, --count int
                How often. (default 3)
  -h, --help
                Show this help and exit.

Notes at the end."""
    )
    assert help_text(FLEET).splitlines()[2:8] == [
        "Usage: steersman fleet VERB [flags]",
        "",
        "Verbs:",
        "",
        "  list  show all ships",
        "  sink  sink ships",
    ]
