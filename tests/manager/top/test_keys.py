"""The keys of ``steersman top``."""

from __future__ import annotations

from functools import reduce

import pytest

from steersman.manager.top.keys import View, decode, press, visible_fights, visible_keys, visible_rows
from steersman.manager.top.model import SORTS, Picture, advance
from tests.harness.top import answer, controller, fight

PICTURE = advance(
    None,
    answer(
        controller("a-controller", rate=3.0, hottest=[("shop", "web", 9)]),
        controller("b-controller", rate=2.0),
        controller("c-controller", rate=1.0),
        fights=[fight("another client", "b-controller", name="db")],
    ),
)


def after(typed: str, view: View = View(), picture: Picture | None = PICTURE) -> View:
    """The view after some keys."""
    return reduce(lambda now, key: press(now, key, picture), decode(typed.encode()), view)


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("jk", ["j", "k"]),
        ("\x1b[A\x1b[B\x1bOA", ["up", "down", "up"]),
        ("\x1b[5~\x1b[6~\x1b[H\x1b[F", ["page-up", "page-down", "home", "end"]),
        ("\r\x1b\x7f", ["enter", "escape", "backspace"]),
        ("\x1b[200~\x1b[1;5C\x01", []),
        ("ü", ["ü"]),
    ],
)
def test_bytes_of_a_terminal_are_keys(typed: str, keys: list[str]) -> None:
    assert list(decode(typed.encode())) == keys


def test_half_a_character_is_dropped() -> None:
    assert list(decode("ü".encode()[:1] + b"q")) == ["q"]


def test_s_goes_through_all_columns_and_back_again() -> None:
    assert [after("s" * times).sort for times in range(len(SORTS) + 1)] == [*SORTS, "rate"]
    assert after("S").sort == list(SORTS)[-1]


@pytest.mark.parametrize(
    ("typed", "selected"),
    [
        ("j", "a"), ("jj", "b"), ("k", "a"), ("jjjjj", "c"), ("jjk", "a"), ("G", "c"), ("Gg", "a"),
        ("\x1b[B\x1b[B", "b"), ("jj\x1b", ""),
    ],
)  # fmt: skip
def test_a_row_is_selected(typed: str, selected: str) -> None:
    assert after(typed).selected == (selected and f"{selected}-controller")


def test_the_selection_stays_with_its_controller_when_the_order_changes() -> None:
    assert after("jjs").selected == "b-controller"


def test_p_pauses_and_goes_on_and_q_ends() -> None:
    assert after("p").paused
    assert not after("pp").paused
    assert after("q").ended


def test_the_filter_is_typed_kept_and_dropped() -> None:
    typing = after("/qsx\x7f")
    assert (typing.filter, typing.typing, typing.ended) == ("qs", True, False), "keys are letters there"
    assert not after("\r", typing).typing
    assert after("\x1b", typing).filter == ""
    assert after("\r\x1b", typing).filter == "", "escape drops it later, too"


@pytest.mark.parametrize(
    ("wanted", "rows", "keys", "fights"),
    [("", 3, 1, 1), ("B-CON", 1, 0, 0), ("shop/web", 1, 1, 0), ("db", 0, 0, 1), ("nothing", 0, 0, 0)],
)
def test_a_filter_is_for_controllers_keys_and_fights(wanted: str, rows: int, keys: int, fights: int) -> None:
    view = View(filter=wanted)
    assert len(visible_rows(view, PICTURE)) == rows
    assert len(visible_keys(view, PICTURE)) == keys
    assert len(visible_fights(view, PICTURE)) == fights


def test_without_rows_there_is_nothing_to_select() -> None:
    assert after("jG", picture=None).selected == ""
