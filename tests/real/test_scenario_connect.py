"""The chapter about CONNECT, sent to a real kube-apiserver and to the embedded server.

``python -m tests.real.test_scenario_connect`` writes anew what the real server answers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.real import scenario_differences as differences
from tests.real import scenario_plain as plain
from tests.real import scenario_play as play
from tests.real.scenario_connect import CHAPTERS, HANDLERS

RECORDED = Path(__file__).with_name("scenario_connect.txt")
DIFFERENCES: tuple[differences.Difference, ...] = ()


async def really_played() -> dict[str, Any]:
    async with play.real() as target:
        return await play.play(target, CHAPTERS, HANDLERS)


async def test_both_servers_ask_about_connect_alike() -> None:
    theirs = await really_played()
    assert plain.compared(theirs, plain.recorded(RECORDED)) == {}, (
        "the real server does not answer as it was written down"
    )
    async with play.embedded() as target:
        ours = await play.play(target, CHAPTERS, HANDLERS)
    found = plain.compared(ours, theirs)
    assert "\n".join(differences.unlisted(found, DIFFERENCES)) == ""
    assert list(differences.obsolete(found, DIFFERENCES)) == []


if __name__ == "__main__":
    RECORDED.write_text(plain.write(asyncio.run(really_played())))
