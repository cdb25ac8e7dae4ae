"""The report of a shadow: figures, differences with both reasons, and what was left out; as text, markdown, a document or metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from steersman.api.printable import one_line
from steersman.shadow.comparison import Tally

Side = Literal["missing", "extra"]
SIDES: dict[Side, str] = {
    "missing": "we would, they did not",
    "extra": "they did, we would not",
}
SHOWN = 50
"""Differences of one controller that a text shows."""
GREEN, RED, YELLOW, BOLD = "32", "31", "33", "1"

Paint = Callable[[str, str], str]


class Difference(msgspec.Struct):
    """A place where our decisions and the acting manager's writes differ."""

    side: Side
    controller: str
    object: str
    """Kind, namespace and name of the object that was or was not written."""
    ours: str
    """The write that our controller wants or does not want, with its verdict."""
    theirs: str
    """The write of the acting manager, or the lack of it, as the cluster shows it."""
    since: str
    """When our controller first wanted the write, or when the acting manager wrote; RFC 3339."""
    found: str
    """When the grace time was over; RFC 3339."""
    resolved: str = ""
    """When the acting manager came to the same after all; empty: it did not."""


class ControllerFigures(msgspec.Struct, frozen=True):
    """One line of the summary."""

    name: str
    rounds: int
    wanted: int
    fulfilled: int
    superseded: int
    open: int
    late: int
    checked: int
    unclear: int
    missing: int
    extra: int
    failed: int

    @property
    def differences(self) -> int:
        return self.missing + self.extra


class Excluded(msgspec.Struct, frozen=True):
    """A controller that is not compared, and why."""

    name: str
    reason: str


class ErrorEntry(msgspec.Struct, frozen=True):
    """Something that could not be compared because of an error."""

    where: str
    error: str


class Report(msgspec.Struct, frozen=True):
    """The report of a shadow: its differences from the acting manager, and the figures of each controller."""

    server: str
    started: str
    ended: str
    seconds: float
    grace: float
    controllers: tuple[ControllerFigures, ...]
    differences: tuple[Difference, ...]
    """Differences that stand at the end, in the order in which they were found."""
    late: tuple[Difference, ...] = ()
    """Differences that the acting manager resolved after the grace time."""
    more: int = 0
    """Differences that are counted and not listed."""
    excluded: tuple[Excluded, ...] = ()
    errors: tuple[ErrorEntry, ...] = ()
    unattributed: dict[str, int] = {}
    """Deletions by an unknown client that our controllers did not want, by kind."""

    @property
    def agreed(self) -> bool:
        return not self.differences and not self.more

    @property
    def exit_code(self) -> int:
        """0: agreed; 2: differences; 1: something could not be compared."""
        if not self.agreed:
            return 2
        return 1 if self.errors else 0

    @property
    def total(self) -> ControllerFigures:
        """The sums of all controllers."""
        fields = [name for name in ControllerFigures.__struct_fields__ if name != "name"]
        return ControllerFigures(
            "total", *(sum(getattr(each, name) for each in self.controllers) for name in fields)
        )


def figures(name: str, tally: Tally, open_: int) -> ControllerFigures:
    """The line of a controller in the summary."""
    return ControllerFigures(
        name,
        tally.rounds,
        tally.wanted,
        tally.fulfilled,
        tally.superseded,
        open_,
        tally.late,
        tally.checked,
        tally.unclear,
        tally.missing,
        tally.extra,
        tally.failed,
    )


def plain(text: str, colour: str) -> str:
    """A text as it is."""
    return text


# -- text -------------------------------------------------------------------------------------

HEAD = (
    "CONTROLLER",
    "ROUNDS",
    "WANTED",
    "FULFILLED",
    "SUPERSEDED",
    "OPEN",
    "LATE",
    "CHECKED",
    "UNCLEAR",
    "DIFFERENCES",
)


def _cells(each: ControllerFigures) -> tuple[str, ...]:
    numbers = (
        each.rounds,
        each.wanted,
        each.fulfilled,
        each.superseded,
        each.open,
        each.late,
        each.checked,
        each.unclear,
        each.differences,
    )
    return (each.name, *(f"{number:,}" if number else "-" for number in numbers))


def text(report: Report, paint: Paint = plain) -> Iterator[str]:
    """The lines of a report for a person."""
    yield verdict(report, paint)
    yield ""
    shown = [each for each in report.controllers if each.rounds]
    rows = [HEAD, *(_cells(each) for each in shown), _cells(report.total)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        line = "  ".join(cells).rstrip()
        yield paint(line, BOLD) if not number else line
    idle = [each.name for each in report.controllers if not each.rounds]
    if idle:
        yield ""
        yield f"without anything to decide: {', '.join(idle)}"
    for each in _limited(report.differences):
        yield ""
        yield from _told(each, paint)
    if hidden := len(report.differences) - len(list(_limited(report.differences))) + report.more:
        yield ""
        yield f"and {hidden:,} more {'difference' if hidden == 1 else 'differences'}"
    if report.late:
        yield ""
        yield paint(
            f"Late, after more than {report.grace:g} s, and then as we would: {max(len(report.late), report.total.late):,}",
            BOLD,
        )
        for each in report.late[:SHOWN]:
            yield f"  {each.controller}: {each.object}: {one_line(each.ours)}"
    if report.unattributed:
        yield ""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.unattributed.items())
        yield f"Deleted by others, or by a manager that does not tell: {kinds}"
    if report.errors:
        yield ""
        yield paint("Not compared because of errors", BOLD)
        for trouble in report.errors[:SHOWN]:
            yield f"  {trouble.where}: {one_line(trouble.error)}"
    if report.excluded:
        yield ""
        yield paint("Not compared", BOLD)
        for left in report.excluded:
            yield f"  {left.name}: {left.reason}"


def plural(number: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def verdict(report: Report, paint: Paint = plain) -> str:
    """The first line of a report."""
    total = report.total
    where = f"{report.server}, {report.seconds:.0f} s, grace {report.grace:g} s"
    if not report.agreed:
        count = len(report.differences) + report.more
        names = ", ".join(dict.fromkeys(each.controller for each in report.differences))
        words = f"{plural(count, 'difference')}{names and ': '}{names}"
        return f"{paint(words, RED)} ({where})"
    errors = plural(len(report.errors), "error")
    if report.errors and not total.rounds:
        return f"{paint(f'nothing compared; {errors}', RED)} ({where})"
    agreed = f"agreed: {plural(total.fulfilled, 'write')} of {plural(total.rounds, 'round')}"
    if report.errors:
        return f"{paint(f'{agreed}; {errors}', YELLOW)} ({where})"
    return f"{paint(agreed, GREEN)} ({where})"


def _limited(differences: Iterable[Difference]) -> Iterator[Difference]:
    counts: dict[str, int] = {}
    for each in differences:
        counts[each.controller] = counts.get(each.controller, 0) + 1
        if counts[each.controller] <= SHOWN:
            yield each


def _told(each: Difference, paint: Paint) -> Iterator[str]:
    yield f"{paint(each.object, BOLD)}: {paint(SIDES[each.side], RED)} ({each.controller})"
    yield f"  we:    {one_line(each.ours)}"
    yield f"  they:  {one_line(each.theirs)}"
    yield f"  since  {each.since}, found {each.found}"


def brief(each: Difference) -> str:
    """A difference in one line, for progress."""
    return f"{each.controller}: {SIDES[each.side]}: {each.object}: {one_line(each.ours)}"


# -- markdown ---------------------------------------------------------------------------------


def markdown(report: Report) -> Iterator[str]:
    """The lines of a report for an issue or a job summary."""
    yield f"**{verdict(report)}**"
    yield ""
    yield f"| {' | '.join(word.lower() for word in HEAD)} |"
    yield f"|---|{'--:|' * (len(HEAD) - 1)}"
    for line in (*(each for each in report.controllers if each.rounds), report.total):
        yield f"| {' | '.join(_cells(line))} |"
    if report.differences:
        yield ""
        yield "| controller | object | difference | we | they | since |"
        yield "|---|---|---|---|---|---|"
        for each in _limited(report.differences):
            cells = (each.controller, each.object, SIDES[each.side], each.ours, each.theirs, each.since)
            yield f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in cells)} |"
    for title, lines in (
        (
            "Late",
            [f"{each.controller}: {each.object}: {one_line(each.ours)}" for each in report.late[:SHOWN]],
        ),
        ("Errors", [f"{each.where}: {one_line(each.error)}" for each in report.errors[:SHOWN]]),
        ("Not compared", [f"`{each.name}`: {each.reason}" for each in report.excluded]),
    ):
        if lines:
            yield ""
            yield f"{title}:"
            yield ""
            yield from (f"- {line}" for line in lines)


# -- metrics ----------------------------------------------------------------------------------

METRICS = (
    ("rounds", "counter", "Rounds that were decided"),
    ("wanted", "counter", "Writes that our controllers wanted"),
    ("fulfilled", "counter", "Writes that the cluster came to show"),
    ("superseded", "counter", "Writes that were wanted no more before anything was written"),
    ("late", "counter", "Writes that the cluster came to show after the grace time"),
    ("checked", "counter", "Writes of the acting manager that our controllers were asked about"),
    ("unclear", "counter", "Writes of the acting manager of which it cannot be told any more"),
    ("failed", "counter", "Rounds that ended in an error"),
    ("open", "gauge", "Writes that our controllers want and that are within the grace time"),
)


def metrics(report: Report) -> str:
    """The figures in the text format of Prometheus."""
    lines: list[str] = []
    for name, type_, help_ in METRICS:
        full = f"steersman_shadow_{name}{'_total' if type_ == 'counter' else ''}"
        lines += [f"# HELP {full} {help_}.", f"# TYPE {full} {type_}"]
        lines += [f'{full}{{controller="{each.name}"}} {getattr(each, name)}' for each in report.controllers]
    full = "steersman_shadow_differences"
    lines += [f"# HELP {full} Differences that stand.", f"# TYPE {full} gauge"]
    for each in report.controllers:
        for side in SIDES:
            lines.append(f'{full}{{controller="{each.name}",side="{side}"}} {getattr(each, side)}')
    return "\n".join(lines) + "\n"
