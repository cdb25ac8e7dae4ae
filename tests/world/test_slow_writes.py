"""Every scenario ends the same when each write of a controller takes time: 1 to 300 ms, before or after its effect.

Then rounds of two keys overlap, watches deliver a write before its response, and clocks move on between two looks.
"""

from __future__ import annotations

import pytest

from steersman.explore.engine import Trial, reference, run_trial
from steersman.explore.scenario import Scenario, catalogue
from steersman.sim import faults

SEEDS = (1, 2)
LATENCIES = (faults.request_latency(), faults.request_latency(verb=""))
"""Of writes, and of all requests."""


@pytest.mark.parametrize("scenario", catalogue(), ids=lambda scenario: scenario.name)
def test_writes_that_take_time_change_nothing_in_the_end(scenario: Scenario) -> None:
    wanted = reference(scenario)
    trials = (Trial(scenario, (latency,), seed) for latency in LATENCIES for seed in SEEDS)
    verdicts = [run_trial(trial, wanted) for trial in trials]
    assert all(verdict.injected for verdict in verdicts), "writes take time"
    found = [str(verdict) for verdict in verdicts if verdict.findings]
    assert not found, "\n".join(found)
