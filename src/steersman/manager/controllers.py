"""``steersman controllers``: the controllers of kube-controller-manager as a table, or one of them in detail."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from steersman.manager.controller_table import (
    STATES,
    ControllerRow,
    RoleGrants,
    State,
    controller_table,
    written,
)
from steersman.manager.flags import closest

DESCRIPTION = """\
List the controllers of kube-controller-manager 1.36: whether they run by default, what they need, and how many tests
each has: modules with rows of its decision, scenarios of `steersman explore`, and comparisons with
kube-controller-manager on real API servers.

  steersman controllers                      all of them
  steersman controllers -o wide              also service accounts, aliases, flags and the resources they may write
  steersman controllers job                  one of them, by its name or alias: flags, rights and tests in full
  steersman controllers -o json | jq …       the same facts for programs; -o yaml as well

"""
EPILOG = """\
`steersman run --controllers='*,-ttl,bootstrapsigner'` selects controllers by these names and aliases.
"""
OUTPUTS = ("wide", "json", "yaml", "markdown")
COLOURS: Mapping[State, str] = {
    "on": "32",
    "off": "33",
    "gate": "33",
    "cloud": "33",
    "flags": "33",
    "missing": "31",
}
BOLD = "1"

Paint = Callable[[str, str], str]
"""Colours a text, if there are colours."""


def main(argv: Sequence[str]) -> int:
    """Entry point of ``steersman controllers``."""
    given = _parser().parse_args(argv)
    rows = controller_table()
    if given.name:
        found = [row for row in rows if given.name in (row.name, *row.aliases)]
        if not found:
            close = closest(given.name, [name for row in rows for name in (row.name, *row.aliases)])
            hint = f"did you mean {close!r}?" if close else "`steersman controllers` lists them"
            print(f"Error: unknown controller {given.name!r}; {hint}", file=sys.stderr)
            return 1
        rows = tuple(found)
    paint = _paint if coloured(sys.stdout.isatty(), os.environ) else _plain
    if given.output in ("json", "yaml"):
        print(_document(rows[0] if given.name else rows, given.output))
    elif given.output == "markdown":
        print(markdown(rows))
    elif given.name:
        print("\n".join(detail(rows[0], paint)))
    else:
        print("\n".join(table(rows, given.output == "wide", paint)))
    return 0


def coloured(terminal: bool, environ: Mapping[str, str]) -> bool:
    """Whether output is coloured: on a terminal, unless NO_COLOR is set."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _paint(text: str, colour: str) -> str:
    return f"\033[{colour}m{text}\033[0m"


def _plain(text: str, colour: str) -> str:
    return text


def _parser() -> argparse.ArgumentParser:
    states = "\n".join(f"  {name:<9} {meaning}" for name, meaning in STATES.items())
    parser = argparse.ArgumentParser(
        prog="steersman controllers",
        description=f"{DESCRIPTION}STATE is one of\n\n{states}",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="a controller or an alias")
    parser.add_argument(
        "-o", "--output", choices=OUTPUTS, default="", metavar="FORMAT", help=f"one of {', '.join(OUTPUTS)}"
    )
    return parser


def _document(value: ControllerRow | tuple[ControllerRow, ...], form: str) -> str:
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    import yaml  # takes longer to import than all else here

    document: Any = msgspec.to_builtins(value)
    return str(yaml.safe_dump(document, sort_keys=False, width=120)).rstrip()


# -- the table --------------------------------------------------------------------------------

HEAD = ("NAME", "STATE", "NEEDS", "ROWS", "SCENARIOS", "COMPARED")
WIDE = ("SERVICE ACCOUNT", "ALIASES", "FLAGS", "WRITES")


def table(rows: Sequence[ControllerRow], wide: bool = False, paint: Paint = _plain) -> Iterator[str]:
    """The lines of the table."""
    lines: list[tuple[str, ...]] = [(*HEAD, *WIDE) if wide else HEAD]
    for row in rows:
        tests = (row.tests.rows, row.tests.scenarios, row.tests.comparisons)
        counted = tuple(str(len(each) or "-") for each in tests)
        cells: tuple[str, ...] = (row.name, row.state, _needs(row), *counted)
        if wide:
            flags = ",".join(flag.name for flag in row.flags)
            more = (
                row.service_account or "(the manager)",
                ",".join(row.aliases),
                flags,
                ",".join(written(row)),
            )
            cells = (*cells, *(cell or "-" for cell in more))
        lines.append(cells)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for number, line in enumerate(lines):
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        if number == 0:
            yield paint("  ".join(padded).rstrip(), BOLD)
            continue
        padded[1] = paint(padded[1], COLOURS[rows[number - 1].state])
        yield "  ".join(padded).rstrip()
    here = sum(row.state != "missing" for row in rows)
    yield ""
    yield f"{here} of {len(rows)} controllers; `steersman controllers NAME` shows one in full"


def _needs(row: ControllerRow) -> str:
    needs = [f"{gate.name}={'on' if gate.default else 'off'}" for gate in row.gates]
    return ",".join([*needs, *([f"cloud:{row.cloud}"] if row.cloud else [])]) or "-"


def markdown(rows: Sequence[ControllerRow]) -> str:
    """The table of docs/reference/controllers.md."""
    lines = ["| controller | state | feature gates | service account | rows | scenarios | compared |"]
    lines.append("|---|---|---|---|--:|--:|--:|")
    for row in rows:
        name = f"`{row.name}`" + (f" ({', '.join(row.aliases)})" if row.aliases else "")
        gates = ", ".join(f"{gate.name} ({'on' if gate.default else 'off'})" for gate in row.gates)
        tests = (row.tests.rows, row.tests.scenarios, row.tests.comparisons)
        counts = (str(len(each) or "") for each in tests)
        cells = (name, row.state, gates, row.service_account or "the manager's own user", *counts)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# -- one controller ---------------------------------------------------------------------------


def detail(row: ControllerRow, paint: Paint = _plain) -> Iterator[str]:
    """The lines about one controller."""
    yield paint(row.name, BOLD)
    if row.aliases:
        yield f"  aliases          {', '.join(row.aliases)}"
    yield f"  state            {paint(row.state, COLOURS[row.state])}: {STATES[row.state]}"
    for gate in row.gates:
        yield f"  feature gate     {gate.name} ({gate.stage}, {'on' if gate.default else 'off'} by default)"
    if row.cloud:
        yield f"  cloud            needs a provider with {row.cloud.replace('_', ' ')}"
    account = f"{row.service_account} in kube-system" if row.service_account else "none: acts as the manager"
    yield f"  service account  {account}"
    yield f"  events           from {row.event_component}"
    if row.watches:
        yield f"  watches          {', '.join(row.watches)}"
    if row.flags:
        yield ""
        yield paint("Flags", BOLD)
        width = max(len(flag.name) for flag in row.flags)
        for flag in row.flags:
            yield f"  --{flag.name:<{width}}  {flag.default or '(empty)'}"
    for role in row.roles:
        yield ""
        yield from _role(role, paint)
    yield ""
    yield paint("Tests", BOLD)
    tests = {
        "rows": row.tests.rows,
        "scenarios": row.tests.scenarios,
        "compared": row.tests.comparisons,
    }
    for title, names in tests.items():
        yield f"  {title:<10} {', '.join(names) or '-'}"


def _role(role: RoleGrants, paint: Paint) -> Iterator[str]:
    where = f" in {role.namespace}" if role.namespace else ""
    gated = " (where its feature gate is on in the API server, too)" if role.gated else ""
    yield paint(f"{role.kind} {role.name}{where}{gated}", BOLD)
    width = max((len(grant.resource) for grant in role.grants), default=0)
    for grant in role.grants:
        yield f"  {grant.resource:<{width}}  {' '.join(grant.verbs)}"
