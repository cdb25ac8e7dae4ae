"""The columns of ``steersman top``, for the screen and for pipes: title, text of a cell, and how wide a terminal has to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from steersman.api.printable import one_line
from steersman.manager.output import table
from steersman.manager.top.model import FightRow, HotRow, Picture, Row, short, sort_rows

OLD, TOO_OLD = 5.0, 60.0
"""Seconds in the queue after which a key is worth a look, and after which something is wrong."""
RED, YELLOW = "red", "yellow"


class Column(NamedTuple):
    """A column of the table of controllers."""

    title: str
    sort: str
    """Its name in `SORTS`; empty if rows cannot be sorted by it."""
    cell: Callable[[Row], str]
    least: int = 0
    """Columns of the terminal from which it is shown."""
    right: bool = True
    colour: Callable[[Row], str] = lambda row: ""


def seconds(value: float) -> str:
    """A short duration for a narrow column: ``-``, ``3ms``, ``1.2s``, ``4m``."""
    if value <= 0.0:
        return "-"
    if value < 1.0:
        return f"{max(round(value * 1000), 1)}ms"
    if value < 10.0:
        return f"{value:.1f}s"
    if value < 100.0:
        return f"{value:.0f}s"
    return f"{value / 60:.0f}m" if value < 6000.0 else f"{value / 3600:.0f}h"


def latency(value: float, rounds: bool) -> str:
    """A measured latency. The clock of an event loop counts milliseconds, so zero is less than one."""
    if not rounds:
        return "-"
    return "<1ms" if value < 0.001 else seconds(value)


def number(value: int) -> str:
    """A count; zero is a dash, so that the others can be seen."""
    return str(value) if value else "-"


def rate(value: float) -> str:
    """Rounds a second."""
    if not value:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"


def verbs(row: Row) -> str:
    """Writes by verb: ``create 1, update/status 5``."""
    return ", ".join(f"{verb} {count}" for verb, count in row.writes.items()) or "-"


def _red(count: Callable[[Row], int]) -> Callable[[Row], str]:
    return lambda row: RED if count(row) else ""


def _yellow(count: Callable[[Row], int]) -> Callable[[Row], str]:
    return lambda row: YELLOW if count(row) else ""


def _old(row: Row) -> str:
    return RED if row.oldest >= TOO_OLD else YELLOW if row.oldest >= OLD else ""


COLUMNS = (
    Column(
        "CONTROLLER",
        "controller",
        lambda row: short(row.controller),
        right=False,
        colour=_red(lambda row: row.crashes),
    ),
    Column("KIND", "", lambda row: row.kind or "-", 150, right=False),
    Column("QUEUE", "queue", lambda row: number(row.queue)),
    Column("WORKING", "", lambda row: number(row.working), 120),
    Column("TIMERS", "", lambda row: number(row.waiting), 150),
    Column("OLDEST", "oldest", lambda row: seconds(row.oldest), colour=_old),
    Column("RND/S", "rate", lambda row: rate(row.rate)),
    Column("P50", "", lambda row: latency(row.p50, row.rate > 0), 100),
    Column("P99", "p99", lambda row: latency(row.p99, row.rate > 0)),
    Column("WAIT", "wait", lambda row: latency(row.wait, row.rate > 0)),
    Column("WRITES", "writes", lambda row: number(row.written)),
    Column(
        "REFUSED", "refused", lambda row: number(row.refused), 100, colour=_yellow(lambda row: row.refused)
    ),
    Column("RETRY", "retries", lambda row: number(row.retries), colour=_yellow(lambda row: row.retries)),
    Column("FAIL", "failures", lambda row: number(row.failures), colour=_red(lambda row: row.failures)),
    Column("WRITES BY VERB", "", verbs, 120, right=False),
)
HOT_TITLES = ("HOTTEST KEYS", "CONTROLLER", "RND/S", "BUSY BECAUSE")
FIGHT_TITLES = ("WRITE FIGHTS", "TURNS", "EVERY", "LAST", "BETWEEN")


def hot_cells(row: HotRow) -> tuple[str, ...]:
    """The cells of a busy key."""
    return one_line(row.key), short(row.controller), rate(row.rate), one_line(row.why) or "-"


def fight_cells(row: FightRow) -> tuple[str, ...]:
    """The cells of a fight."""
    every = seconds(row.seconds / row.turns)
    ago = f"{seconds(row.ago)} ago" if row.ago >= 1.0 else "now"
    return one_line(row.object), str(row.turns), every, ago, one_line(row.between)


def notices(picture: Picture) -> Iterator[str]:
    """The notices above the tables, which say why there is little in them."""
    if not picture.recording:
        yield "the trace is off (STEERSMAN_TRACE=off): there are queues, but no rounds"
    if not picture.running:
        yield "no controllers run here: this replica does not lead, or they have not started yet"


def text(picture: Picture, sort: str) -> str:
    """A picture as plain tables with all columns, for pipes."""
    parts: list[Sequence[str]] = []
    if told := list(notices(picture)):
        parts.append(told)
    if picture.rows:
        rows = sort_rows(picture.rows, sort)
        cells = [[column.title for column in COLUMNS], *([c.cell(row) for c in COLUMNS] for row in rows)]
        parts.append(list(table(cells, [at for at, column in enumerate(COLUMNS) if column.right])))
    if picture.hottest:
        parts.append(list(table([HOT_TITLES, *map(hot_cells, picture.hottest)], (2,))))
    if picture.fights:
        parts.append(list(table([FIGHT_TITLES, *map(fight_cells, picture.fights)], (1, 2, 3))))
    return "\n\n".join("\n".join(part) for part in parts)
