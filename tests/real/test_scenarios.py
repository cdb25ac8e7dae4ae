"""Every recorded scenario, sent to a real kube-apiserver and to the embedded server: the same answers, up to a list."""

from __future__ import annotations

import pytest

from tests.real import scenario_plain as plain
from tests.real.scenarios import SCENARIOS


@pytest.mark.parametrize(
    # Each has a control plane of its own, so they may run side by side.
    "name",
    [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in SCENARIOS],
)
async def test_both_servers_answer_a_scenario_alike(name: str) -> None:
    scenario = SCENARIOS[name]
    theirs = await scenario.play_real()
    assert plain.compared(theirs, scenario.recorded()) == {}, (
        "the real server does not answer as it was recorded"
    )
    scenario.check(await scenario.play_embedded(), theirs)
