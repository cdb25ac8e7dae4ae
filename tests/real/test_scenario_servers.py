"""The chapters of the scenario about other servers, sent to a real kube-apiserver and to the embedded one: conversion webhooks, aggregated
servers, kubelets and their users, and clients that page or write protobuf.

``python -m tests.real.test_scenario_servers`` writes anew what the real server answers.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.real import scenario_differences as differences
from tests.real import scenario_plain as plain
from tests.real import scenario_play as play
from tests.real.scenario_aggregation import CHAPTERS as AGGREGATION
from tests.real.scenario_conversion import CHAPTERS as CONVERSION
from tests.real.scenario_lists import CHAPTERS as LISTS
from tests.real.scenario_nodes import CHAPTERS as NODES

CHAPTERS = {**CONVERSION, **AGGREGATION, **NODES, **LISTS}
RECORDED = Path(__file__).with_name("scenario_servers.txt")


async def really_played() -> dict[str, Any]:
    async with play.real() as target:
        return await play.play(target, CHAPTERS)


async def test_both_servers_answer_the_chapters_about_other_servers_alike() -> None:
    theirs = await really_played()
    assert plain.compared(theirs, plain.recorded(RECORDED)) == {}, (
        "the real server does not answer as it was written down"
    )
    async with play.embedded() as target:
        ours = await play.play(target, CHAPTERS)
    found = plain.compared(ours, theirs)
    assert "\n".join(differences.unlisted(found, differences.SERVERS)) == ""
    assert list(differences.obsolete(found, differences.SERVERS)) == []


if __name__ == "__main__":
    RECORDED.write_text(plain.write(asyncio.run(really_played())))
