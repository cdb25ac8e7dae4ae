"""The chapters of the scenario about odd writes, sent to a real kube-apiserver and to the embedded one.

``python -m tests.real.test_scenario_writes`` writes anew what the real server answers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.real import scenario_differences as differences
from tests.real import scenario_plain as plain
from tests.real import scenario_play as play
from tests.real.scenario_writes import CHAPTERS

RECORDED = Path(__file__).with_name("scenario_writes.txt")


async def really_played() -> dict[str, Any]:
    async with play.real() as target:
        return await play.play(target, CHAPTERS)


async def test_both_servers_answer_odd_writes_alike() -> None:
    theirs = await really_played()
    assert plain.compared(theirs, plain.recorded(RECORDED)) == {}, (
        "the real server does not answer as it was written down"
    )
    async with play.embedded() as target:
        ours = await play.play(target, CHAPTERS)
    assert "\n".join(differences.unlisted(plain.compared(ours, theirs), ())) == ""


if __name__ == "__main__":
    RECORDED.write_text(plain.write(asyncio.run(really_played())))
