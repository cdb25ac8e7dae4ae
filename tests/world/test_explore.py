"""A manager that dies between any two writes is continued by the next, whatever was going on.

A crash before one write and one after the write before it are tried once where the server is then in one state.
"""

from __future__ import annotations

import pytest

from steersman.explore.engine import distinct_crash_trials, reference, run_trial
from steersman.explore.scenario import Scenario, catalogue

SCENARIOS = catalogue()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_crash_before_or_after_any_write_changes_nothing_in_the_end(scenario: Scenario) -> None:
    wanted = reference(scenario)
    assert wanted.writes > 0, "a scenario in which nothing is written says nothing"
    verdicts = (run_trial(trial, wanted) for trial in distinct_crash_trials(scenario, wanted))
    found = [str(verdict) for verdict in verdicts if verdict.findings]
    assert not found, "\n".join([f"{len(found)} crash points of {len(wanted.crash_points)}", *found[:5]])
