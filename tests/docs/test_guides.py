"""The guides: their listings run as they stand, from a folder that has the files they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from steersman.testing import Cluster

pytest_plugins = "pytester"

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
FILES = {"devices.md": "training.yaml", "webhooks.md": "webhook.yaml", "simulation.md": ""}
"""Guides with a listing in Python, and the file that the first listing in YAML of each is saved as."""


def blocks(page: str, language: str) -> list[str]:
    """The listings of a page in one language that are not inside of a tab."""
    text = (GUIDES / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """What a run inside of this one loads is forgotten after it, and must not be loaded twice."""
    with Cluster():
        pass


@pytest.mark.parametrize("page", FILES)
def test_the_first_listing_of_a_guide_runs(page: str, pytester: pytest.Pytester) -> None:
    listing = blocks(page, "python")[0]
    if "def test_" not in listing:
        listing = "def test_it():\n" + "".join(f"    {line}\n" for line in listing.splitlines())
    pytester.makepyfile(test_listing=listing)
    if FILES[page]:
        Path(pytester.path, FILES[page]).write_text(blocks(page, "yaml")[0])
    pytester.runpytest("-p", "no:asyncio", "-p", "no:cacheprovider").assert_outcomes(passed=1)
