"""The same scenario, sent to a real kube-apiserver and to the embedded server: the same answers, up to a list.

``python tests/real/test_scenario.py`` writes anew what the real server answers.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def load(name: str) -> ModuleType:
    """A module beside this one: test directories are no packages."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = ("scenario", "scenario_plain", "scenario_play", "scenario_differences")
scenario, plain, play, differences = map(load, NAMES)


async def really_played() -> dict[str, Any]:
    async with play.real() as target:
        told: dict[str, Any] = await play.play(target, scenario.CHAPTERS)
        return told


async def test_both_servers_answer_the_scenario_alike() -> None:
    theirs = await really_played()
    assert plain.compared(theirs, plain.recorded()) == {}, (
        "the real server does not answer as it was written down"
    )
    async with play.embedded() as target:
        ours = await play.play(target, scenario.CHAPTERS)
    found = plain.compared(ours, theirs)
    assert "\n".join(differences.unlisted(found)) == ""
    assert list(differences.obsolete(found)) == []


if __name__ == "__main__":
    plain.RECORDED.write_text(plain.write(asyncio.run(really_played())))
