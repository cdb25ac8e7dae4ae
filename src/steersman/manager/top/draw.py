"""The drawing of ``steersman top``: a picture and a view become one screen of a width and a height. Only this module needs rich."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec
from rich.text import Text

from steersman.api.printable import one_line
from steersman.manager.top.answer import CauseText, RoundText
from steersman.manager.top.columns import (
    COLUMNS,
    FIGHT_TITLES,
    HOT_TITLES,
    RED,
    YELLOW,
    fight_cells,
    hot_cells,
    notices,
    rate,
    verbs,
)
from steersman.manager.top.keys import View, visible_fights, visible_keys, visible_rows
from steersman.manager.top.model import FightRow, HotRow, Picture, Row
from steersman.runtime.action_table import past_tense
from steersman.runtime.trace import span
from steersman.runtime.trace_figures import OTHER_CLIENT

BOLD, DIM, SELECTED, SORTED = "bold", "dim", "reverse", "bold underline"
KEYS = "q quit  s sort  / filter  j k select  esc back  p pause"
HOT, FEW, FIGHTS = 5, 3, 3
"""Busy keys and fights that are shown, at most."""
GAP = "  "
SMALL = 34
"""Lines of a terminal that has room for few busy keys only."""
NARROW = 110
"""Columns of a terminal in which causes and actors have lines of their own."""


class Connection(msgspec.Struct, frozen=True):
    """Where the answers come from, and whether they still come."""

    server: str
    seen: datetime
    """When the last answer came, by this machine's clock."""
    lost: str = ""
    """Why there is no answer any more; empty while there is."""
    lost_for: float = 0.0
    """Seconds since then."""


def screen(picture: Picture, view: View, connection: Connection, width: int, height: int) -> list[Text]:
    """The lines of one screen: exactly ``height``, none longer than ``width``."""
    head = list(_head(picture, view, connection))
    hot = visible_keys(view, picture)[: HOT if height >= SMALL else FEW]
    fights = visible_fights(view, picture)[:FIGHTS]
    below = [*_section(_hot(hot, width) if hot else ()), *_section(_fights(fights, width) if fights else ())]
    rows = visible_rows(view, picture)
    chosen = next((row for row in rows if row.controller == view.selected), None)
    # A line of titles, and the keys in the last line.
    room = max(height - len(head) - len(below) - 2, 3)
    shown = min(len(rows), room if chosen is None else max(room // 2 - 1, 3))
    detail = [] if chosen is None else list(_section(_details(picture, chosen)))[: room - shown]
    lines = [*head, *_controllers(rows, view, shown, width), *detail, *below][: height - 1]
    lines += [Text()] * (height - 1 - len(lines))
    lines.append(_foot(view))
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _section(lines: Iterable[Text]) -> Iterator[Text]:
    """The lines of a part of the screen, after an empty one."""
    for number, line in enumerate(lines):
        if not number:
            yield Text()
        yield line


def grid(
    rows: Sequence[Sequence[Text]], right: Collection[int], flexible: Sequence[tuple[int, int]], width: int
) -> Iterator[Text]:
    """The lines of a table. Where it is too wide, the ``flexible`` columns give way in turn, each to its least width."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    for number, least in flexible:
        cut = max(min(excess, widths[number] - least), 0)
        widths[number] -= cut
        excess -= cut
    for row in rows:
        line = Text()
        for number, (cell, room) in enumerate(zip(row, widths, strict=True)):
            fitted = cell.copy()
            fitted.truncate(room, overflow="ellipsis")
            fitted.align("right" if number in right else "left", room)
            line.append(GAP if number else "").append_text(fitted)
        yield line


def _line(*pieces: str | tuple[str, str]) -> Text:
    """A line that is cut off where the terminal ends."""
    return Text.assemble(*pieces, no_wrap=True)


def _head(picture: Picture, view: View, connection: Connection) -> Iterator[Text]:
    ready, working = sum(row.queue for row in picture.rows), sum(row.working for row in picture.rows)
    total = rate(sum(row.rate for row in picture.rows))
    pieces: list[str | tuple[str, str]] = [
        (f"{picture.now:%H:%M:%S}", BOLD),
        f"  {len(picture.rows)} controllers, {total} rounds/s, {ready} ready, {working} working",
    ]
    if view.paused:
        pieces.append(("  PAUSED", YELLOW))
    pieces.append((f"  {one_line(connection.server)}", DIM))
    yield _line(*pieces)
    if connection.lost:
        since = f"no answer since {connection.seen:%H:%M:%S}, for {span(round(connection.lost_for))}"
        yield _line((since, RED), "; this is the last picture")
        yield _line((one_line(connection.lost), RED))
    for notice in notices(picture):
        yield _line((notice, YELLOW))


def _foot(view: View) -> Text:
    if view.typing:
        return _line(("filter: ", BOLD), view.filter, ("_", "blink"), ("  enter keeps it, esc drops it", DIM))
    wanted = f"filter: {view.filter}  " if view.filter else ""
    return _line(f"sort: {view.sort}  {wanted}", (KEYS, DIM))


# -- controllers ------------------------------------------------------------------------------


def _controllers(rows: Sequence[Row], view: View, shown: int, width: int) -> Iterator[Text]:
    columns = [column for column in COLUMNS if column.least <= width]
    names = [row.controller for row in rows]
    at = names.index(view.selected) if view.selected in names else 0
    first = min(max(at - shown + 1, 0), max(len(rows) - shown, 0))
    cells = [[Text(each.title, SORTED if each.sort == view.sort else BOLD) for each in columns]]
    for row in rows[first : first + shown]:
        cells.append([Text(one_line(each.cell(row)), each.colour(row)) for each in columns])
    right = [number for number, column in enumerate(columns) if column.right]
    # The verbs give way before the names.
    flexible = [(len(columns) - 1, 20)] if columns[-1].title == COLUMNS[-1].title else []
    lines = list(grid(cells, right, [*flexible, (0, 16)], width))
    for line, row in zip(lines[1:], rows[first : first + shown], strict=True):
        if row.controller == view.selected:
            line.align("left", width)
            line.stylize(SELECTED)
        elif row.idle:
            line.stylize(DIM)
    yield from lines


# -- the rounds of the selected controller ----------------------------------------------------


def _details(picture: Picture, row: Row) -> Iterator[Text]:
    writers = {each.number: each.controller for kept in picture.rounds.values() for each in kept}
    yield _line(
        (row.controller, BOLD),
        f"  {row.rounds} rounds since the start; last minute: {verbs(row)}"
        if row.writes
        else f"  {row.rounds} rounds since the start; no writes in the last minute",
        (f"; {row.crashes} crashes in a row" if row.crashes else "", RED),
    )
    rounds = picture.rounds.get(row.controller, ())
    if not rounds:
        yield _line(("no rounds since this view began", DIM))
    for each in reversed(rounds):
        yield from describe(each, writers)


def describe(each: RoundText, writers: Mapping[int, str]) -> Iterator[Text]:
    """A round in two lines: key and causes, then actions and verdict."""
    key = f"{each.namespace}/{each.name}" if each.namespace else each.name
    causes = ", ".join(_cause(cause, writers) for cause in each.causes) or "no cause"
    yield _line((f"{each.started:%H:%M:%S} ", DIM), (one_line(key), BOLD), f" because {one_line(causes)}")
    refused = any(step.outcome for step in each.steps)
    steps = [
        f"{step.action} ({step.outcome})" if step.outcome else past_tense(step.action) for step in each.steps
    ]
    ending, colour = _verdict(each)
    yield _line(
        "         ",
        (one_line("; ".join(steps)), YELLOW if refused else ""),
        "; " if steps else "",
        (one_line(ending), colour),
    )


def _cause(cause: CauseText, writers: Mapping[int, str]) -> str:
    if cause.type != "event" or cause.event == "added":
        return cause.text
    writer = writers.get(cause.round, f"round {cause.round}") if cause.round else OTHER_CLIENT
    return f"{cause.text} by {writer}"


def _verdict(each: RoundText) -> tuple[str, str]:
    ending = each.ending
    if ending.failure is not None:
        return f"failed: {ending.failure}; again in {span(ending.retry_after)}", RED
    if ending.wake is not None:
        return f"wakes in {span(ending.wake)}: {ending.because}", ""
    return f"rests: {ending.rest}", ""


# -- busy keys, fights ------------------------------------------------------------------------


def _hot(rows: Sequence[HotRow], width: int) -> Iterator[Text]:
    cells = [[Text(title, BOLD) for title in HOT_TITLES]]
    for row in rows:
        *others, why = hot_cells(row)
        cells.append([*map(Text, others), Text(why, RED if why.startswith("failed:") else "")])
    return _with_words(cells, (2,), ((3, 40), (0, 20), (1, 14), (3, 12)), width)


def _fights(rows: Sequence[FightRow], width: int) -> Iterator[Text]:
    cells = [[Text(title, BOLD) for title in FIGHT_TITLES]]
    cells += [[Text(cell, YELLOW) for cell in fight_cells(row)] for row in rows]
    return _with_words(cells, (1, 2, 3), ((4, 40), (0, 20)), width)


def _with_words(
    cells: Sequence[Sequence[Text]], right: Collection[int], flexible: Sequence[tuple[int, int]], width: int
) -> Iterator[Text]:
    """The lines of a table whose last column is words. In a narrow terminal these have a line of their own."""
    if width >= NARROW:
        yield from grid(cells, right, flexible, width)
        return
    last = len(cells[0]) - 1
    first = [each for each in flexible if each[0] != last]
    for number, line in enumerate(grid([row[:last] for row in cells], right, first, width)):
        yield line
        if number:
            yield Text("  ").append_text(cells[number][last])
