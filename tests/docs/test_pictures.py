"""Pictures of terminal output: what they show is what the program prints."""

from __future__ import annotations

import re

import pytest

from steersman.manager import cli
from steersman.manager.top.columns import COLUMNS as TOP_COLUMNS
from steersman.manager.top.columns import FIGHT_TITLES, HOT_TITLES
from tools.pictures import COLUMNS, IMAGES, TOOK, svg, words


def test_the_picture_of_the_demo_shows_what_the_demo_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo"]) == 0
    printed = [
        f"{line[: COLUMNS - 1]}…" if len(line) > COLUMNS else line
        for line in capsys.readouterr().out.splitlines()
    ]
    shown = words((IMAGES / "demo.svg").read_text())
    stale = [line for line in printed if not TOOK.search(line) and re.sub(r"\s", "", line) not in shown]
    assert stale == [], "run `./dev pictures`"


def test_colours_and_characters_of_markup_are_kept() -> None:
    picture = svg("\x1b[1;31mError\x1b[0m: a < b\n", "x")
    assert 'fill="#e06c75" font-weight="600">Error<' in picture
    assert words(picture) == "Error:a<b"


def test_a_long_line_is_cut_off() -> None:
    assert words(svg("x" * (COLUMNS + 1), "x")) == "x" * (COLUMNS - 1) + "…"


def test_a_selected_line_has_the_colours_of_its_background() -> None:
    assert f'<rect x="{16.0}" y="16" width="15.6" height="18" fill="#d8dee9"/>' in svg(
        "\x1b[7mab\x1b[0m", "x"
    )


def test_the_picture_of_top_has_the_columns_that_top_has() -> None:
    picture = (IMAGES / "top.svg").read_text()
    titles = [column.title for column in TOP_COLUMNS if column.least <= COLUMNS]
    for line in ("".join(titles), "".join(HOT_TITLES), "".join(FIGHT_TITLES)):
        assert re.sub(r"\s", "", line) in words(picture), "run `./dev pictures`"
    assert len(picture) < 60_000
