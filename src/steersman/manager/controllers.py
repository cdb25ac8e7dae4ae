"""``steersman controllers``: the controllers of kube-controller-manager as a table, or one of them in detail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steersman.api.suggestions import closest
from steersman.manager import output
from steersman.manager.controller_selection import STATES, State
from steersman.manager.controller_table import ControllerRow, RoleGrants, controller_table, written
from steersman.manager.flags import UsageError
from steersman.manager.output import BOLD, DOCUMENTS, Paint, plain
from steersman.manager.verb import Given, columns

COLOURS: Mapping[State, str] = {
    "on": "32",
    "off": "33",
    "gate": "33",
    "cloud": "33",
    "flags": "33",
    "missing": "31",
}


def main(given: Given) -> int:
    """Entry point of ``steersman controllers``."""
    rows = controller_table()
    name = given.arguments[0] if given.arguments else ""
    if name:
        rows = (_find(rows, name),)
    form = given.values["output"]
    paint = output.paint_for_stdout()
    if form in DOCUMENTS:
        print(output.document(rows[0] if name else rows, form))
    elif form == "markdown":
        print(markdown(rows))
    elif name:
        print("\n".join(detail(rows[0], paint)))
    else:
        print("\n".join(table(rows, form == "wide", paint)))
    return 0


def _find(rows: Sequence[ControllerRow], name: str) -> ControllerRow:
    for row in rows:
        if name in (row.name, row.name.removesuffix("-controller"), *row.aliases):
            return row
    close = closest(name, [each for row in rows for each in (row.name, *row.aliases)])
    hint = f"did you mean {close!r}?" if close else "`steersman controllers` lists them"
    raise UsageError(f"unknown controller {name!r}; {hint}")


def notes() -> str:
    """The notes on the table in the verb's help."""
    states = "\n".join(columns(list(STATES.items())))
    return f"STATE is one of\n\n{states}\n\nTests are counted as modules with rows of its decision, scenarios of `steersman explore`, and\ncomparisons with kube-controller-manager on real API servers."


# -- the table --------------------------------------------------------------------------------

HEAD = ("NAME", "STATE", "PURPOSE")
WIDE = ("NEEDS", "ROWS", "SCENARIOS", "COMPARED", "SERVICE ACCOUNT", "ALIASES", "FLAGS", "WRITES")


def table(rows: Sequence[ControllerRow], wide: bool = False, paint: Paint = plain) -> Iterator[str]:
    """The lines of the table."""
    lines: list[tuple[str, ...]] = [(*HEAD, *WIDE) if wide else HEAD]
    for row in rows:
        tests = (row.tests.rows, row.tests.scenarios, row.tests.comparisons)
        counted = tuple(str(len(each) or "-") for each in tests)
        cells: tuple[str, ...] = (row.name, row.state, row.purpose)
        if wide:
            flags = ",".join(flag.name for flag in row.flags)
            more = (
                _needs(row),
                *counted,
                row.service_account or "(the manager)",
                ",".join(row.aliases),
                flags,
                ",".join(written(row)),
            )
            cells = (*cells, *(cell or "-" for cell in more))
        lines.append(cells)
    head, *body = output.table(lines)
    yield paint(head, BOLD)
    for row, line in zip(rows, body, strict=True):
        yield _painted(line, row.state, paint)
    here = sum(row.state != "missing" for row in rows)
    yield ""
    yield f"{here} of {len(rows)} controllers; `steersman controllers NAME` shows one in full"


def _painted(line: str, state: State, paint: Paint) -> str:
    """A line of the table with its state, the second word, in colour."""
    name, space, rest = line.partition(" ")
    return name + space + rest.replace(state, paint(state, COLOURS[state]), 1)


def _needs(row: ControllerRow) -> str:
    needs = [f"{gate.name}={'on' if gate.default else 'off'}" for gate in row.gates]
    return ",".join([*needs, *([f"cloud:{row.cloud}"] if row.cloud else [])]) or "-"


def markdown(rows: Sequence[ControllerRow]) -> str:
    """The table of docs/reference/controllers.md."""
    lines = [
        "| controller | state | what it is for | feature gates | service account | rows | scenarios | compared |"
    ]
    lines.append("|---|---|---|---|---|--:|--:|--:|")
    for row in rows:
        name = f"`{row.name}`" + (f" ({', '.join(row.aliases)})" if row.aliases else "")
        gates = ", ".join(f"{gate.name} ({'on' if gate.default else 'off'})" for gate in row.gates)
        tests = (row.tests.rows, row.tests.scenarios, row.tests.comparisons)
        counts = (str(len(each) or "") for each in tests)
        cells = (
            name,
            row.state,
            row.purpose,
            gates,
            row.service_account or "the manager's own user",
            *counts,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# -- one controller ---------------------------------------------------------------------------


def detail(row: ControllerRow, paint: Paint = plain) -> Iterator[str]:
    """The lines about one controller."""
    yield paint(row.name, BOLD)
    yield f"  {row.purpose}"
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
