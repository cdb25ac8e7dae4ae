"""The pattern that the pod garbage collector leaves: the oldest terminated pods go together, and younger ones stay."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from steersman.api.kinds import PODS, Condition, ObjectMeta, Pod, PodStatus
from steersman.shadow.their_deletions import Deletion, TerminatedPods

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(number: int, *conditions: str) -> Pod:
    meta = ObjectMeta(
        name=f"p{number}",
        namespace="default",
        uid=str(number),
        creationTimestamp=NOON + timedelta(seconds=number),
    )
    told = tuple(Condition(type=each, status="True") for each in conditions)
    return Pod(metadata=meta, status=PodStatus(phase="Failed", conditions=told))


@pytest.mark.parametrize(
    ("deleted", "left", "found"),
    [
        ((pod(1), pod(2), pod(3)), (pod(4),), ["p1", "p2", "p3"]),
        ((pod(1), pod(2)), (pod(4),), []),
        ((pod(2), pod(3), pod(4)), (pod(1),), []),
        ((pod(1), pod(2), pod(3)), (), []),
        # Pods whose node is gone are ended first, and go whatever the threshold is.
        (tuple(pod(each, "DisruptionTarget") for each in (1, 2, 3)), (pod(4),), []),
    ],
)
def test_the_oldest_terminated_pods_that_go_together_were_collected(
    deleted: tuple[Pod, ...], left: tuple[Pod, ...], found: list[str]
) -> None:
    pattern = TerminatedPods()
    told = [each for one in deleted for each in pattern.add(Deletion(PODS, one, 0.0), left)]
    assert [each.obj.metadata.name for each in told] == found
