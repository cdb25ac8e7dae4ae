"""What a round observes, and which changes enqueue a Deployment."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from steersman.api.kinds import Deployment, LabelSelector, LabelSelectorRequirement, ReplicaSet
from steersman.api.scheme import Key
from steersman.controllers.deployment import Seen, controller, enqueue_for_pod, observe
from steersman.intent.controller import Change
from steersman.testing.decision_driver import Shelves
from tests.harness.workloads import CREATED, deployment, owned_by, pod, replicaset

KEY = Key("default", "web")
ENQUEUE = controller.watches[1].to


def keys(caches: Shelves, old: ReplicaSet | None, new: ReplicaSet | None) -> list[Key]:
    return list(ENQUEUE(caches, Change(old, new)))


def test_a_deployment_that_is_gone_is_not_seen() -> None:
    assert observe(Shelves(controller), KEY) is None


def test_a_round_sees_the_sets_it_controls_and_the_orphans_it_selects() -> None:
    owner = deployment()
    mine = replicaset(owner, "v1")
    orphan = replicaset(None, "v2")
    stranger = replicaset(None, "v3", labels={"app": "other"})
    others = replicaset(deployment(name="other"), "v4")
    seen = observe(Shelves(controller, owner, mine, orphan, stranger, others), KEY)
    assert seen == Seen(owner, (mine,), (orphan,), {})


def test_pods_are_counted_for_recreate_only() -> None:
    owner = deployment(strategy="Recreate")
    rs = replicaset(owner)
    pods = [pod(rs, "a"), pod(rs, "b", "Succeeded"), pod(rs, "c", "Pending"), pod(rs, "d", "Unknown")]
    shelves = Shelves(controller, owner, rs, *pods)
    seen = observe(shelves, KEY)
    assert seen is not None
    assert seen.running == {rs.metadata.uid: 3}

    shelves.put(deployment())
    seen = observe(shelves, KEY)
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
    shelves = Shelves(controller, owner, orphan)
    seen = observe(shelves, KEY)
    assert seen is not None
    assert seen.orphans == ()
    assert keys(shelves, None, orphan) == []


def test_a_set_concerns_the_deployment_that_controls_it() -> None:
    owner = deployment()
    rs = replicaset(owner)
    shelves = Shelves(controller, owner, rs)
    assert keys(shelves, None, rs) == [KEY]
    assert keys(shelves, rs, rs) == [KEY]
    assert keys(shelves, rs, None) == [KEY]


def test_a_set_of_a_namesake_that_came_earlier_concerns_nobody() -> None:
    owner = deployment()
    rs = replicaset(replace(owner, metadata=replace(owner.metadata, uid="earlier")))
    assert keys(Shelves(controller, owner), None, rs) == []


def test_a_set_that_something_else_controls_concerns_nobody() -> None:
    owner = deployment()
    rs = replicaset(owner)
    reference = replace(owned_by(owner), kind="Rollout")
    foreign = replace(rs, metadata=replace(rs.metadata, ownerReferences=(reference,)))
    assert keys(Shelves(controller, owner), None, foreign) == []


def test_a_new_orphan_concerns_every_deployment_that_selects_it() -> None:
    other = deployment(name="other")
    shelves = Shelves(controller, deployment(), other)
    assert keys(shelves, None, replicaset(None)) == [KEY, Key("default", "other")]
    assert keys(shelves, None, replicaset(None, labels={"app": "db"})) == []


def test_an_orphan_counts_again_when_its_labels_change_and_not_otherwise() -> None:
    shelves = Shelves(controller, deployment())
    orphan = replicaset(None)
    assert keys(shelves, orphan, replace(orphan)) == []
    assert keys(shelves, replicaset(None, labels={"app": "db"}), orphan) == [KEY]


def test_an_orphan_that_goes_concerns_nobody() -> None:
    shelves = Shelves(controller, deployment())
    assert keys(shelves, replicaset(None), None) == []
    assert keys(shelves, None, replicaset(None, deleted=CREATED + timedelta(seconds=1))) == []


def test_a_set_that_changes_hands_concerns_both() -> None:
    one, two = deployment(name="one"), deployment(name="two")
    shelves = Shelves(controller, one, two)
    assert keys(shelves, replicaset(one), replicaset(two)) == [Key("default", "one"), Key("default", "two")]


def test_a_set_that_is_released_concerns_the_one_that_had_it_and_those_that_select_it() -> None:
    one, two = deployment(name="one"), deployment(name="two")
    shelves = Shelves(controller, one, two)
    found = keys(shelves, replicaset(one), replicaset(None))
    assert set(found) == {Key("default", "one"), Key("default", "two")}


# -- pods -------------------------------------------------------------------------------------


def scene(owner: Deployment) -> tuple[Shelves, ReplicaSet, ReplicaSet]:
    old, new = replicaset(owner, "v1", 0), replicaset(owner, "v2")
    return Shelves(controller, owner, old, new), old, new


def test_the_last_pod_that_goes_concerns_a_recreate_deployment() -> None:
    shelves, old, _ = scene(deployment(strategy="Recreate"))
    assert list(enqueue_for_pod(shelves, Change(pod(old, "a"), None))) == [KEY]


def test_a_pod_that_goes_before_the_last_is_no_reason_to_look() -> None:
    shelves, old, _ = scene(deployment(strategy="Recreate"))
    shelves.put(pod(old, "b"))
    assert list(enqueue_for_pod(shelves, Change(pod(old, "a"), None))) == []


def test_a_pod_that_ended_but_stays_does_not_hold_up_the_last() -> None:
    shelves, old, _ = scene(deployment(strategy="Recreate"))
    shelves.put(pod(old, "b", "Failed"))
    assert list(enqueue_for_pod(shelves, Change(pod(old, "a"), None))) == [KEY]


def test_a_pod_that_ends_counts_like_one_that_goes_and_counts_once() -> None:
    shelves, old, _ = scene(deployment(strategy="Recreate"))
    running, ended = pod(old, "a"), pod(old, "a", "Failed")
    shelves.put(ended)
    assert list(enqueue_for_pod(shelves, Change(running, ended))) == [KEY]
    assert list(enqueue_for_pod(shelves, Change(ended, ended))) == []
    assert list(enqueue_for_pod(shelves, Change(running, running))) == []


def test_pods_are_no_concern_of_a_rolling_update() -> None:
    shelves, old, _ = scene(deployment())
    assert list(enqueue_for_pod(shelves, Change(pod(old, "a"), None))) == []


def test_a_pod_of_no_set_or_of_an_unknown_one_concerns_nobody() -> None:
    shelves, old, _ = scene(deployment(strategy="Recreate"))
    gone = replace(old, metadata=replace(old.metadata, uid="gone"))
    assert list(enqueue_for_pod(shelves, Change(pod(None, "a"), None))) == []
    assert list(enqueue_for_pod(shelves, Change(pod(gone, "a"), None))) == []
