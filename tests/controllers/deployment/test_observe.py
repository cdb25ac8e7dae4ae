"""What a round observes, and which changes enqueue a Deployment."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from steersman.api.kinds import Deployment, LabelSelector, LabelSelectorRequirement, ReplicaSet
from steersman.api.scheme import Key
from steersman.controllers.deployment import Seen, controller, enqueue_for_pod, observe
from steersman.intent.controller import Change
from steersman.testing.decision_driver import StaticCaches
from tests.harness.workloads import CREATED, deployment, owned_by, pod, replicaset

KEY = Key("default", "web")
ENQUEUE = controller.watches[1].to


def keys(caches: StaticCaches, old: ReplicaSet | None, new: ReplicaSet | None) -> list[Key]:
    return list(ENQUEUE(caches, Change(old, new)))


def test_a_deployment_that_is_gone_is_not_seen() -> None:
    assert observe(StaticCaches(controller), KEY) is None


def test_a_round_sees_the_sets_it_controls_and_the_orphans_it_selects() -> None:
    owner = deployment()
    mine = replicaset(owner, "v1")
    orphan = replicaset(None, "v2")
    stranger = replicaset(None, "v3", labels={"app": "other"})
    others = replicaset(deployment(name="other"), "v4")
    seen = observe(StaticCaches(controller, owner, mine, orphan, stranger, others), KEY)
    assert seen == Seen(owner, (mine,), (orphan,), {})


def test_pods_are_counted_for_recreate_only() -> None:
    owner = deployment(strategy="Recreate")
    rs = replicaset(owner)
    pods = [pod(rs, "a"), pod(rs, "b", "Succeeded"), pod(rs, "c", "Pending"), pod(rs, "d", "Unknown")]
    caches = StaticCaches(controller, owner, rs, *pods)
    seen = observe(caches, KEY)
    assert seen is not None
    assert seen.running == {rs.metadata.uid: 3}

    caches.put(deployment())
    seen = observe(caches, KEY)
    assert seen is not None
    assert seen.running == {}


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(None, id="none"),
        pytest.param(LabelSelector(), id="one that selects everything"),
        pytest.param(
            LabelSelector(matchExpressions=(LabelSelectorRequirement(key="app", operator="Near"),)),
            id="one that makes no sense",
        ),
    ],
)
def test_a_deployment_without_a_sensible_selector_is_offered_no_orphans(
    selector: LabelSelector | None,
) -> None:
    plain = deployment()
    owner = replace(plain, spec=replace(plain.spec, selector=selector))
    orphan = replicaset(None)
    caches = StaticCaches(controller, owner, orphan)
    seen = observe(caches, KEY)
    assert seen is not None
    assert seen.orphans == ()
    assert keys(caches, None, orphan) == []


def test_a_set_concerns_the_deployment_that_controls_it() -> None:
    owner = deployment()
    rs = replicaset(owner)
    caches = StaticCaches(controller, owner, rs)
    assert keys(caches, None, rs) == [KEY]
    assert keys(caches, rs, rs) == [KEY]
    assert keys(caches, rs, None) == [KEY]


def test_a_set_of_a_namesake_that_came_earlier_concerns_nobody() -> None:
    owner = deployment()
    rs = replicaset(replace(owner, metadata=replace(owner.metadata, uid="earlier")))
    assert keys(StaticCaches(controller, owner), None, rs) == []


def test_a_set_that_something_else_controls_concerns_nobody() -> None:
    owner = deployment()
    rs = replicaset(owner)
    reference = replace(owned_by(owner), kind="Rollout")
    foreign = replace(rs, metadata=replace(rs.metadata, ownerReferences=(reference,)))
    assert keys(StaticCaches(controller, owner), None, foreign) == []


def test_a_new_orphan_concerns_every_deployment_that_selects_it() -> None:
    other = deployment(name="other")
    caches = StaticCaches(controller, deployment(), other)
    assert keys(caches, None, replicaset(None)) == [KEY, Key("default", "other")]
    assert keys(caches, None, replicaset(None, labels={"app": "db"})) == []


def test_an_orphan_counts_again_when_its_labels_change_and_not_otherwise() -> None:
    caches = StaticCaches(controller, deployment())
    orphan = replicaset(None)
    assert keys(caches, orphan, replace(orphan)) == []
    assert keys(caches, replicaset(None, labels={"app": "db"}), orphan) == [KEY]


def test_an_orphan_that_goes_concerns_nobody() -> None:
    caches = StaticCaches(controller, deployment())
    assert keys(caches, replicaset(None), None) == []
    assert keys(caches, None, replicaset(None, deleted=CREATED + timedelta(seconds=1))) == []


def test_a_set_that_changes_hands_concerns_both() -> None:
    one, two = deployment(name="one"), deployment(name="two")
    caches = StaticCaches(controller, one, two)
    assert keys(caches, replicaset(one), replicaset(two)) == [Key("default", "one"), Key("default", "two")]


def test_a_set_that_is_released_concerns_the_one_that_had_it_and_those_that_select_it() -> None:
    one, two = deployment(name="one"), deployment(name="two")
    caches = StaticCaches(controller, one, two)
    found = keys(caches, replicaset(one), replicaset(None))
    assert set(found) == {Key("default", "one"), Key("default", "two")}


# -- pods -------------------------------------------------------------------------------------


def scene(owner: Deployment) -> tuple[StaticCaches, ReplicaSet, ReplicaSet]:
    old, new = replicaset(owner, "v1", 0), replicaset(owner, "v2")
    return StaticCaches(controller, owner, old, new), old, new


def test_the_last_pod_that_goes_concerns_a_recreate_deployment() -> None:
    caches, old, _ = scene(deployment(strategy="Recreate"))
    assert list(enqueue_for_pod(caches, Change(pod(old, "a"), None))) == [KEY]


def test_a_pod_that_goes_before_the_last_is_no_reason_to_look() -> None:
    caches, old, _ = scene(deployment(strategy="Recreate"))
    caches.put(pod(old, "b"))
    assert list(enqueue_for_pod(caches, Change(pod(old, "a"), None))) == []


def test_a_pod_that_ended_but_stays_does_not_hold_up_the_last() -> None:
    caches, old, _ = scene(deployment(strategy="Recreate"))
    caches.put(pod(old, "b", "Failed"))
    assert list(enqueue_for_pod(caches, Change(pod(old, "a"), None))) == [KEY]


def test_a_pod_that_ends_counts_like_one_that_goes_and_counts_once() -> None:
    caches, old, _ = scene(deployment(strategy="Recreate"))
    running, ended = pod(old, "a"), pod(old, "a", "Failed")
    caches.put(ended)
    assert list(enqueue_for_pod(caches, Change(running, ended))) == [KEY]
    assert list(enqueue_for_pod(caches, Change(ended, ended))) == []
    assert list(enqueue_for_pod(caches, Change(running, running))) == []


def test_pods_are_no_concern_of_a_rolling_update() -> None:
    caches, old, _ = scene(deployment())
    assert list(enqueue_for_pod(caches, Change(pod(old, "a"), None))) == []


def test_a_pod_of_no_set_or_of_an_unknown_one_concerns_nobody() -> None:
    caches, old, _ = scene(deployment(strategy="Recreate"))
    gone = replace(old, metadata=replace(old.metadata, uid="gone"))
    assert list(enqueue_for_pod(caches, Change(pod(None, "a"), None))) == []
    assert list(enqueue_for_pod(caches, Change(pod(gone, "a"), None))) == []
