"""The keys of ``steersman top``: bytes of a terminal become names of keys, and a key changes the view."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from steersman.manager.top.model import SORTS, FightRow, HotRow, Picture, Row, sort_rows

UP, DOWN, PAGE_UP, PAGE_DOWN, HOME, END = "up", "down", "page-up", "page-down", "home", "end"
ENTER, ESCAPE, BACKSPACE = "enter", "escape", "backspace"
PAGE = 10
"""Rows that the page keys move."""
ALL = 10_000
"""More rows than there are."""

_NAMED = {
    "A": UP,
    "B": DOWN,
    "H": HOME,
    "F": END,
    "1~": HOME,
    "4~": END,
    "5~": PAGE_UP,
    "6~": PAGE_DOWN,
    "7~": HOME,
    "8~": END,
}
_KEY = re.compile(r"\x1b[\[O]([0-9;]*[A-Za-z~])|\x1b|[\s\S]")


class View(msgspec.Struct, frozen=True):
    """The choices of a user: the order, the filter, the controller, whether the picture stands still."""

    sort: str = "rate"
    filter: str = ""
    typing: bool = False
    """Whether keys go into the filter."""
    selected: str = ""
    """The controller whose rounds are shown; empty: none."""
    paused: bool = False
    ended: bool = False


def decode(typed: bytes) -> Iterator[str]:
    """The keys of what a terminal sent: characters as they are, others by name. Unknown sequences are dropped."""
    for match in _KEY.finditer(typed.decode("utf-8", "ignore")):
        key = match[0]
        if match[1]:
            if named := _NAMED.get(match[1]):
                yield named
        elif key in "\r\n":
            yield ENTER
        elif key == "\x1b":
            yield ESCAPE
        elif key in "\x7f\b":
            yield BACKSPACE
        elif key.isprintable() or key == "\x04":
            yield key


def press(view: View, key: str, picture: Picture | None) -> View:
    """The view after a key."""
    if view.typing:
        return _type(view, key)
    match key:
        case "q" | "Q" | "\x04":
            return replace(view, ended=True)
        case "s":
            order = list(SORTS)
            return replace(view, sort=order[(order.index(view.sort) + 1) % len(order)])
        case "S":
            order = list(SORTS)
            return replace(view, sort=order[order.index(view.sort) - 1])
        case "p" | " ":
            return replace(view, paused=not view.paused)
        case "/":
            return replace(view, typing=True)
        case "escape":
            return replace(view, selected="") if view.selected else replace(view, filter="")
        case "up" | "k":
            return _move(view, picture, -1)
        case "down" | "j":
            return _move(view, picture, 1)
        case "page-up":
            return _move(view, picture, -PAGE)
        case "page-down":
            return _move(view, picture, PAGE)
        case "home" | "g":
            return _move(view, picture, -ALL)
        case "end" | "G":
            return _move(view, picture, ALL)
    return view


def _type(view: View, key: str) -> View:
    """The view while the filter is typed."""
    match key:
        case "enter":
            return replace(view, typing=False)
        case "escape":
            return replace(view, typing=False, filter="")
        case "backspace":
            return replace(view, filter=view.filter[:-1])
    return replace(view, filter=view.filter + key) if len(key) == 1 and key.isprintable() else view


def _move(view: View, picture: Picture | None, by: int) -> View:
    """The view with another row selected; the first key selects the first row."""
    names = [row.controller for row in visible_rows(view, picture)]
    if not names:
        return view
    if view.selected not in names:
        return replace(view, selected=names[-1] if by == ALL else names[0])
    at = names.index(view.selected) + by
    return replace(view, selected=names[min(max(at, 0), len(names) - 1)])


# -- what a view leaves of a picture ----------------------------------------------------------


def visible_rows(view: View, picture: Picture | None) -> Sequence[Row]:
    """The controllers that the filter lets through, sorted."""
    if picture is None:
        return ()
    # A controller matches by its own name, or by a busy key or a fight of its own.
    busy = {row.controller for row in visible_keys(view, picture)}
    return [
        row
        for row in sort_rows(picture.rows, view.sort)
        if _matches(view, row.controller, row.kind) or row.controller in busy
    ]


def visible_keys(view: View, picture: Picture) -> Sequence[HotRow]:
    """The busy keys that the filter lets through."""
    return [row for row in picture.hottest if _matches(view, row.controller, row.key)]


def visible_fights(view: View, picture: Picture) -> Sequence[FightRow]:
    """The fights that the filter lets through."""
    return [row for row in picture.fights if _matches(view, row.object, row.between)]


def _matches(view: View, *texts: str) -> bool:
    wanted = view.filter.lower()
    return not wanted or any(wanted in text.lower() for text in texts)
