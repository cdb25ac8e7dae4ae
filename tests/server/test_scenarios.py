"""Every recorded scenario, sent to the embedded server: answered as a real kube-apiserver did, up to a list.

The answers of the real one are recorded, so this needs none; that it still answers so is for ``tests/real/test_scenarios.py``
to see.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.scenario_differences import Difference
from tests.real.scenarios import SCENARIOS

LIST = Path(__file__).parents[2] / "docs" / "compatibility.md"
LISTED = dict.fromkeys(each for scenario in SCENARIOS.values() for each in scenario.differences)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_embedded_server_answers_a_scenario_as_a_real_one_did(name: str) -> None:
    scenario = SCENARIOS[name]
    scenario.check(await scenario.play_embedded(), scenario.recorded())


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_request_has_a_name_of_its_own_and_an_answer(name: str) -> None:
    scenario = SCENARIOS[name]
    assert list(scenario.recorded()) == scenario.titles
    assert len(set(scenario.titles)) == len(scenario.titles)


def test_no_request_is_lost() -> None:
    counts = {name: len(scenario.titles) for name, scenario in SCENARIOS.items()}
    assert counts["verbs"] > 1300
    assert counts["servers"] > 800
    assert counts["cel"] >= 250
    assert counts["writes"] > 100
    assert counts["connect"] >= 40
    assert counts["parameters"] > 500
    assert counts["devices"] > 400


@pytest.mark.parametrize("difference", LISTED, ids=lambda each: each.name)
def test_the_documents_tell_of_every_difference(difference: Difference) -> None:
    assert f"| {difference.name} | {difference.what} | {difference.why} |" in LIST.read_text()
