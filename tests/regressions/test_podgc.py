"""`steersman explore orphaned-pod --seed=111 '--faults=answers(409, verb=delete, kind=pods, times=2)'`.

A pod on a node that is gone stayed for ever when its deletion met a conflict once.
"""

from __future__ import annotations

import pytest

from steersman.explore.engine import Trial, reference, run_trial
from steersman.explore.scenario import find
from steersman.sim import faults


@pytest.mark.parametrize(
    "words",
    ["error_response(409, verb=delete, kind=pods, times=2)", "error_response(409, verb=patch, kind=pods)"],
)
def test_a_pod_whose_deletion_met_a_conflict_is_deleted_all_the_same(words: str) -> None:
    scenario = find("orphaned-pod")
    verdict = run_trial(Trial(scenario, faults.parse(words), seed=111), reference(scenario))
    assert verdict.injected, "there is a conflict"
    assert not verdict.findings, str(verdict)
