"""The counts of a Deployment's status."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from steersman.api.conditions import find_condition
from steersman.api.kinds import ReplicaSetStatus
from steersman.controllers.deployment.replicasets import Limits, ReplicaSets
from steersman.controllers.deployment.status import new_status, terminating_replicas
from tests.harness.workloads import deployment, replicaset

NOW = datetime(2024, 5, 1, 12, 0, 0, 999, tzinfo=UTC)


def test_counts_are_summed_over_all_sets_and_updated_ones_are_of_the_new_set() -> None:
    owner = deployment(5, "v2", generation=4)
    sets = ReplicaSets.of(
        owner,
        [
            replicaset(owner, "v1", 4, current=5, available=3, terminating=1, age=9),
            replicaset(owner, "v2", 2, current=2, available=1, terminating=2),
        ],
    )
    status = new_status(sets, Limits.of(owner), (), NOW)
    assert status.observedGeneration == 4
    assert status.replicas == 7
    assert status.updatedReplicas == 2
    assert status.readyReplicas == 4
    assert status.availableReplicas == 4
    assert status.unavailableReplicas == 2
    assert status.terminatingReplicas == 3


def test_while_a_set_shrinks_no_pod_counts_as_unavailable() -> None:
    owner = deployment(2)
    sets = ReplicaSets.of(owner, [replicaset(owner, replicas=2, current=5)])
    assert new_status(sets, Limits.of(owner), (), NOW).unavailableReplicas == 0


@pytest.mark.parametrize(
    ("available", "strategy", "status", "reason"),
    [
        (4, "RollingUpdate", "True", "MinimumReplicasAvailable"),
        (3, "RollingUpdate", "True", "MinimumReplicasAvailable"),
        (2, "RollingUpdate", "False", "MinimumReplicasUnavailable"),
        (3, "Recreate", "False", "MinimumReplicasUnavailable"),
        (4, "Recreate", "True", "MinimumReplicasAvailable"),
    ],
)
def test_enough_are_available_when_no_more_are_missing_than_may_be(
    available: int, strategy: str, status: str, reason: str
) -> None:
    owner = deployment(4, strategy="Recreate" if strategy == "Recreate" else "RollingUpdate")
    sets = ReplicaSets.of(owner, [replicaset(owner, replicas=4, available=available)])
    condition = find_condition(new_status(sets, Limits.of(owner), (), NOW).conditions, "Available")
    assert condition is not None
    assert (condition.status, condition.reason) == (status, reason)
    assert condition.lastUpdateTime == datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_terminating_pods_are_unknown_while_a_set_has_not_said() -> None:
    silent = replicaset(deployment(), terminating=None)
    assert terminating_replicas([replicaset(deployment(), terminating=2), silent]) is None


def test_a_set_nobody_has_looked_at_yet_has_no_terminating_pods() -> None:
    fresh = replace(replicaset(deployment()), status=ReplicaSetStatus(replicas=0))
    assert terminating_replicas([replicaset(deployment(), terminating=2), fresh]) == 2
    assert terminating_replicas([]) == 0
