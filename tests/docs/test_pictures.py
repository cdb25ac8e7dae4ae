"""Pictures of terminal output: what they show is what the program prints."""

from __future__ import annotations

import re

import pytest

from steersman.manager import cli
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
