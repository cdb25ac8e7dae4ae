"""The chapter about CONNECT, sent to the embedded server: admission is asked as a real one asked it.

What the real one answered is written down; that it still answers so is for ``tests/real/test_scenario_connect.py`` to see.
"""

from __future__ import annotations

from tests.real import scenario_differences as differences
from tests.real import scenario_plain as plain
from tests.real import scenario_play as play
from tests.real.scenario_connect import CHAPTERS, HANDLERS
from tests.real.test_scenario_connect import DIFFERENCES, RECORDED


async def test_admission_is_asked_about_connect_as_a_real_server_asked_it() -> None:
    async with play.embedded() as target:
        ours = await play.play(target, CHAPTERS, HANDLERS)
    found = plain.compared(ours, plain.recorded(RECORDED))
    assert "\n".join(differences.unlisted(found, DIFFERENCES)) == ""
    assert list(differences.obsolete(found, DIFFERENCES)) == []


def test_every_request_has_a_name_of_its_own_and_an_answer() -> None:
    names = [f"{chapter}: {ask.title}" for chapter, asks in CHAPTERS.items() for ask in asks]
    assert list(plain.recorded(RECORDED)) == names
    assert len(names) == len(set(names)) >= 40
