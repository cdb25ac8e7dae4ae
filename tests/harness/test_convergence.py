"""When a workload is at rest."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.kinds import (
    Condition,
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    ObjectMeta,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
)
from tests.harness.convergence import deployment_settled, replicas_settled

COMPLETE = (Condition(type="Progressing", status="True", reason="NewReplicaSetAvailable"),)


def a_set(replicas: int, /, **status: int) -> ReplicaSet:
    counts: dict[str, Any] = dict.fromkeys(
        ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"), replicas
    )
    return ReplicaSet(
        metadata=ObjectMeta(generation=3),
        spec=ReplicaSetSpec(replicas=replicas),
        status=ReplicaSetStatus(**{"observedGeneration": 3, **counts, **status}),
    )


DEPLOYMENT = Deployment(
    metadata=ObjectMeta(generation=5),
    spec=DeploymentSpec(replicas=2),
    status=DeploymentStatus(
        observedGeneration=5,
        replicas=2,
        updatedReplicas=2,
        readyReplicas=2,
        availableReplicas=2,
        conditions=COMPLETE,
    ),
)


def test_a_deployment_whose_sets_agree_with_it_is_settled() -> None:
    assert deployment_settled(DEPLOYMENT, [a_set(0), a_set(2)])


@pytest.mark.parametrize(
    "change",
    [
        {"observedGeneration": 4},
        {"replicas": 3},
        {"updatedReplicas": 1},
        {"readyReplicas": 1},
        {"availableReplicas": 1},
        {"unavailableReplicas": 1},
        {"terminatingReplicas": 1},
        {"conditions": ()},
    ],
)
def test_a_deployment_with_anything_left_to_do_is_not(change: dict[str, object]) -> None:
    found = replace(DEPLOYMENT, status=replace(DEPLOYMENT.status, **change))
    assert not deployment_settled(found, [a_set(2)])


@pytest.mark.parametrize(
    "sets",
    [
        [],
        [a_set(1)],
        [a_set(2), a_set(1)],
        [a_set(2), a_set(0, replicas=1)],
        [a_set(2, observedGeneration=2)],
    ],
)
def test_a_deployment_whose_sets_disagree_is_not(sets: list[ReplicaSet]) -> None:
    assert not deployment_settled(DEPLOYMENT, sets)


def test_a_deployment_not_yet_in_the_generation_asked_for_is_not() -> None:
    assert deployment_settled(DEPLOYMENT, [a_set(2)], generation=5)
    assert not deployment_settled(DEPLOYMENT, [a_set(2)], generation=6)


@pytest.mark.parametrize("field", ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"])
def test_a_set_that_lacks_a_pod_is_not_settled(field: str) -> None:
    assert replicas_settled(a_set(2))
    assert not replicas_settled(a_set(2, **{field: 1}))


def test_a_set_with_a_pod_still_leaving_is_not_settled() -> None:
    assert not replicas_settled(a_set(2, terminatingReplicas=1))
