"""The chapters of the scenario about odd writes, sent to the embedded server: answered as a real one did.

What the real one answered is written down, so this needs none; that it still answers so is for
``tests/real/test_scenario_writes.py`` to see.
"""

from __future__ import annotations

from tests.real import scenario_differences as differences
from tests.real import scenario_plain as plain
from tests.real import scenario_play as play
from tests.real.scenario_writes import CHAPTERS
from tests.real.test_scenario_writes import RECORDED


async def test_the_embedded_server_answers_odd_writes_as_a_real_one_did() -> None:
    async with play.embedded() as target:
        ours = await play.play(target, CHAPTERS)
    found = plain.compared(ours, plain.recorded(RECORDED))
    assert "\n".join(differences.unlisted(found, ())) == ""


def test_every_request_has_a_name_of_its_own_and_an_answer() -> None:
    names = [f"{chapter}: {ask.title}" for chapter, asks in CHAPTERS.items() for ask in asks]
    assert list(plain.recorded(RECORDED)) == names
    assert len(names) == len(set(names)) > 100
