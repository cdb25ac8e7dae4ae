"""What a deletion comes to: finalizers, grace periods, propagation. Pure functions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.generated.core_v1 import ConfigMap, Pod, PodSpec, PodStatus
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.registry.graceful_deletion import DeletionOptions, plan_deletion
from steersman.server.registry.object_meta import FOREGROUND, ORPHAN
from steersman.server.registry.resources import Registry

NOW = datetime(2026, 1, 1, tzinfo=UTC)

PODS = Registry().find("", "v1", "pods").strategy
CONFIGMAPS = Registry().find("", "v1", "configmaps").strategy

OWN = ("example.com/a",)


@pytest.mark.parametrize(
    ("before", "propagation", "after"),
    [
        ((), None, ()),
        ((), "Background", ()),
        ((), "Foreground", (FOREGROUND,)),
        ((), "Orphan", (ORPHAN,)),
        (OWN, "Foreground", (*OWN, FOREGROUND)),
        ((ORPHAN,), None, (ORPHAN,)),
        ((FOREGROUND,), None, (FOREGROUND,)),
        ((ORPHAN,), "Foreground", (FOREGROUND,)),
        ((FOREGROUND, *OWN), "Background", OWN),
        ((FOREGROUND,), "Background", ()),
    ],
)
def test_the_policy_of_a_deletion_decides_over_the_collectors_finalizers(
    before: tuple[str, ...], propagation: str | None, after: tuple[str, ...]
) -> None:
    obj = ConfigMap(metadata=ObjectMeta(name="x", finalizers=before))
    decided = plan_deletion(obj, CONFIGMAPS, DeletionOptions(propagation=propagation), NOW)
    assert decided.remove is (not after)
    if after:
        assert decided.write is not None
        assert decided.write.finalizers == after
        assert decided.write.deletionTimestamp == NOW


@pytest.mark.parametrize(
    ("node", "phase", "wanted", "asked", "grace"),
    [
        ("", "Pending", 30, None, 0),
        ("", "Pending", 30, 60, 0),
        ("n", "Running", 30, None, 30),
        ("n", "Running", 30, 5, 5),
        ("n", "Running", 30, 0, 0),
        ("n", "Running", 30, -1, 1),
        ("n", "Running", None, None, 0),
        ("n", "Failed", 30, 60, 0),
        ("n", "Succeeded", 30, None, 0),
    ],
)
def test_how_long_a_pod_is_given(
    node: str, phase: str, wanted: int | None, asked: int | None, grace: int
) -> None:
    pod = Pod(
        metadata=ObjectMeta(name="p", generation=1),
        spec=PodSpec(nodeName=node, terminationGracePeriodSeconds=wanted),
        status=PodStatus(phase=phase),
    )
    decided = plan_deletion(pod, PODS, DeletionOptions(grace_period=asked), NOW)
    assert decided.write is not None
    assert decided.write.deletionGracePeriodSeconds == grace
    assert decided.write.deletionTimestamp == NOW + timedelta(seconds=grace)
    assert decided.write.generation == 2
    assert decided.remove is (grace == 0)


@given(st.lists(st.tuples(st.integers(0, 40), st.one_of(st.none(), st.integers(-1, 60))), max_size=8))
def test_asking_again_never_gives_a_pod_more_time(requests: list[tuple[int, int | None]]) -> None:
    pod = Pod(
        metadata=ObjectMeta(name="p", generation=1),
        spec=PodSpec(nodeName="n", terminationGracePeriodSeconds=30),
        status=PodStatus(phase="Running"),
    )
    now = NOW
    first = plan_deletion(pod, PODS, DeletionOptions(), now).write
    assert first is not None
    meta = first
    for later, asked in requests:
        now += timedelta(seconds=later)
        decided = plan_deletion(
            Pod(metadata=meta, spec=pod.spec, status=pod.status),
            PODS,
            DeletionOptions(grace_period=asked),
            now,
        )
        if decided.write is None:
            continue
        assert decided.write.deletionTimestamp is not None
        assert meta.deletionTimestamp is not None
        assert meta.deletionGracePeriodSeconds is not None
        assert decided.write.deletionGracePeriodSeconds is not None
        assert decided.write.deletionGracePeriodSeconds <= meta.deletionGracePeriodSeconds
        assert decided.write.deletionTimestamp <= max(meta.deletionTimestamp, now)
        assert decided.write.generation == 2
        meta = decided.write
        if decided.remove:
            return
