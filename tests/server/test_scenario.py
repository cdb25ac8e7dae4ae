"""The scenario of ``tests/real``, sent to the embedded server: answered as a real one did, up to a list.

What the real one answered is written down, so this needs none; that it still answers so is for
``tests/real/test_scenario.py`` to see.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
LIST = TESTS.parent / "docs" / "compatibility.md"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TESTS / "real" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = ("scenario", "scenario_plain", "scenario_play", "scenario_differences")
scenario, plain, play, differences = map(load, NAMES)


async def test_the_embedded_server_answers_the_scenario_as_a_real_one_did() -> None:
    async with play.embedded() as target:
        ours = await play.play(target, scenario.CHAPTERS)
    found = plain.compared(ours, plain.recorded())
    assert "\n".join(differences.unlisted(found)) == ""
    assert list(differences.obsolete(found)) == []


def test_every_request_has_a_name_of_its_own_and_an_answer() -> None:
    names = [
        f"{chapter}: {ask.title}"
        for chapter, asks in scenario.CHAPTERS.items()
        for ask in asks
        if ask.method != "COMPACT"
    ]
    assert list(plain.recorded()) == names
    assert len(names) == len(set(names)) > 1300


@pytest.mark.parametrize(
    "difference", [*differences.DIFFERENCES, *differences.SERVERS[1:]], ids=lambda each: each.name
)
def test_the_documents_tell_of_every_difference(difference: Any) -> None:
    assert f"| {difference.name} | {difference.what} | {difference.why} |" in LIST.read_text()
