"""What the garbage collector decides about one object, row by row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import Conflict, Forbidden, Invalid, NotFound, ServiceUnavailable
from steersman.api.kinds import OwnerReference
from steersman.api.partial_object import PartialObject
from steersman.api.scheme import Key
from steersman.controllers.garbagecollector.owner_refs import AbsentOwners, Coordinates
from steersman.intent.actions import Address, Delete, Emit, Patch, PatchType, Read
from steersman.intent.verdict import InvalidSpec, Rest, Wake
from tests.harness.owner_graph import (
    NODES,
    NOW,
    PODS,
    SETS,
    WIDGETS,
    OwnerGraph,
    going,
    live,
    not_found,
    owned,
    removed,
    thing,
)

WEB = thing("web")
POD = thing("pod", owned("web"))


# -- owners -------------------------------------------------------------------------------------------


def test_what_has_a_living_owner_is_left_alone_and_nobody_is_asked() -> None:
    assert OwnerGraph((SETS, WEB), (PODS, POD)).decide(PODS, POD) == ([], Rest("owner exists"))


def test_what_has_no_owner_is_left_alone() -> None:
    free = thing("pod")
    assert OwnerGraph((PODS, free)).decide(PODS, free) == ([], Rest("no ownerReferences"))


def test_what_has_lost_its_owner_is_deleted_in_one_request() -> None:
    cluster = OwnerGraph((SETS, WEB), (PODS, POD))
    cluster.remove(SETS, WEB)
    actions, verdict = cluster.decide(PODS, POD)
    assert actions == [removed(POD)]
    assert verdict == Rest("deleted: owner gone: ReplicaSet web")


def test_an_owner_that_the_cache_does_not_show_is_looked_for_before_anything_is_deleted() -> None:
    actions, _ = OwnerGraph((PODS, POD)).decide(PODS, POD, live())
    assert actions == [Read(Address(SETS.partial, "default", "web")), removed(POD)]


def test_an_owner_that_was_not_found_is_not_looked_for_again() -> None:
    other = thing("other", owned("web"))
    cluster = OwnerGraph((PODS, POD), (PODS, other))
    cluster.decide(PODS, POD, live())
    actions, _ = cluster.decide(PODS, other)
    assert actions == [removed(other)]


def test_an_owner_that_is_there_but_not_in_the_cache_keeps_what_it_owns_and_is_looked_at_again() -> None:
    actions, verdict = OwnerGraph((PODS, POD)).decide(PODS, POD, live(WEB))
    assert actions == [Read(Address(SETS.partial, "default", "web"))]
    assert verdict == Wake(timedelta(seconds=30), "owner ReplicaSet web exists but is not cached")


def test_an_owner_that_cannot_be_read_into_the_cache_is_not_asked_for_all_the_time() -> None:
    _, verdict = OwnerGraph((PODS, POD), unfilled=("replicasets.apps",)).decide(PODS, POD, live(WEB))
    assert isinstance(verdict, Wake)
    assert verdict.after == timedelta(seconds=1000)


def test_a_namesake_of_the_owner_is_not_the_owner() -> None:
    again = thing("web", uid="another")
    actions, _ = OwnerGraph((SETS, again), (PODS, POD)).decide(PODS, POD, live(again))
    assert actions == [Read(Address(SETS.partial, "default", "web")), removed(POD)]


@pytest.mark.parametrize("error", [Forbidden("no"), ServiceUnavailable("later")])
def test_no_answer_about_the_owner_is_no_reason_to_delete(error: Exception) -> None:
    with pytest.raises(type(error)):
        OwnerGraph((PODS, POD)).decide(PODS, POD, {Read: error})


def test_an_owner_of_a_kind_that_nobody_serves_is_no_reason_to_delete() -> None:
    pod = thing("pod", OwnerReference(apiVersion="gone/v1", kind="Gone", name="x", uid="u"))
    with pytest.raises(InvalidSpec, match=r"unable to get REST mapping for gone/v1/Gone\."):
        OwnerGraph((PODS, pod)).decide(PODS, pod)


def test_a_resource_that_is_served_no_more_is_not_taken_for_an_absent_owner() -> None:
    pod = thing("pod", owned("w", WIDGETS))
    unserved = NotFound("the server could not find the requested resource")
    with pytest.raises(InvalidSpec, match="unable to get REST mapping"):
        OwnerGraph((PODS, pod)).decide(PODS, pod, {Read: unserved})


def test_an_owner_that_was_seen_to_go_is_absent_even_when_its_kind_is_served_no_more() -> None:
    widget = thing("w")
    pod = thing("pod", owned("w", WIDGETS))
    cluster = OwnerGraph((WIDGETS, widget), (PODS, pod))
    cluster.remove(WIDGETS, widget)
    cluster.all_objects.discovered = DiscoveryResult((PODS, SETS, NODES))
    assert cluster.decide(PODS, pod)[0] == [removed(pod)]


def test_a_cluster_scoped_object_that_says_it_has_a_namespaced_owner_is_left_alone() -> None:
    node = thing("node", owned("web"), namespace="")
    actions, verdict = OwnerGraph((NODES, node)).decide(NODES, node)
    assert actions == []
    assert verdict == Rest("not collected: cluster-scoped objects cannot refer to namespaced owners")


def test_a_cluster_scoped_owner_owns_in_every_namespace() -> None:
    node = thing("node", namespace="")
    pod = thing("pod", owned("node", NODES))
    assert OwnerGraph((NODES, node), (PODS, pod)).decide(PODS, pod) == ([], Rest("owner exists"))


def test_an_owner_in_another_namespace_is_reported_and_owns_nothing() -> None:
    elsewhere = thing("web", namespace="other")
    actions, _ = OwnerGraph((SETS, elsewhere), (PODS, POD)).decide(PODS, POD, live())
    assert actions == [
        Emit(
            Address(PODS.partial, "default", "pod", POD.metadata.uid),
            "Warning",
            "OwnerRefInvalidNamespace",
            "ownerRef [apps/v1/ReplicaSet, namespace: default, name: web, uid: uid-web] does not exist in "
            'namespace "default"',
        ),
        Read(Address(SETS.partial, "default", "web")),
        removed(POD),
    ]


def test_one_living_owner_is_enough_and_the_absent_ones_are_forgotten() -> None:
    pod = thing("pod", owned("gone"), owned("web"), owned("lost"))
    actions, verdict = OwnerGraph((SETS, WEB), (PODS, pod)).decide(PODS, pod, live())
    assert actions[2:] == [
        Patch(
            Address(PODS.partial, "default", "pod"),
            [
                {"op": "test", "path": "/metadata/uid", "value": "uid-pod"},
                {"op": "test", "path": "/metadata/ownerReferences/2/uid", "value": "uid-lost"},
                {"op": "remove", "path": "/metadata/ownerReferences/2"},
                {"op": "test", "path": "/metadata/ownerReferences/0/uid", "value": "uid-gone"},
                {"op": "remove", "path": "/metadata/ownerReferences/0"},
            ],
            PatchType.JSON,
        )
    ]
    assert verdict == Rest("owner ReplicaSet web exists: removed references to other owners")


# -- deleting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finalizers", "policy"),
    [
        ((), "Background"),
        (("mine",), "Background"),
        (("mine", "orphan"), "Orphan"),
        (("foregroundDeletion",), "Foreground"),
    ],
)
def test_what_is_deleted_goes_the_way_its_finalizers_ask_for(
    finalizers: tuple[str, ...], policy: str
) -> None:
    pod = thing("pod", owned("web"), finalizers=finalizers)
    actions, _ = OwnerGraph((PODS, pod)).decide(PODS, pod, live())
    assert actions[-1] == removed(pod, policy=policy)


def test_a_change_that_does_not_matter_does_not_save_an_object() -> None:
    now = thing("pod", owned("web"), resourceVersion="9")
    answers = {Read: [not_found("web"), now], Delete: [Conflict("changed"), None]}
    actions, _ = OwnerGraph((PODS, POD)).decide(PODS, POD, answers)
    assert actions[1:] == [
        removed(POD),
        Read(Address(PODS.partial, "default", "pod")),
        removed(POD, exact=False),
    ]


def test_an_object_that_found_another_owner_meanwhile_is_looked_at_again() -> None:
    now = thing("pod", owned("web"), owned("new"), resourceVersion="9")
    answers = {Read: [not_found("web"), now], Delete: [Conflict("changed")]}
    with pytest.raises(Conflict):
        OwnerGraph((PODS, POD)).decide(PODS, POD, answers)


@pytest.mark.parametrize("found", [thing("pod", uid="another"), not_found("pod", "pods")])
def test_an_object_that_is_gone_or_replaced_meanwhile_is_done_with(found: Any) -> None:
    answers = {Read: [not_found("web"), found], Delete: [Conflict("changed")]}
    actions, verdict = OwnerGraph((PODS, POD)).decide(PODS, POD, answers)
    assert len(actions) == 3
    assert verdict == Rest("already gone or being deleted")


def test_what_is_going_already_is_waited_for() -> None:
    pod = going("pod", owned("web"))
    actions, verdict = OwnerGraph((PODS, pod)).decide(PODS, pod)
    assert actions == []
    assert verdict == Rest("already being deleted")


# -- foreground ---------------------------------------------------------------------------------------


FRONT = ("foregroundDeletion",)


def test_a_dependent_of_an_owner_that_waits_is_deleted() -> None:
    web = going("web", finalizers=FRONT)
    actions, _ = OwnerGraph((SETS, web), (PODS, POD)).decide(PODS, POD)
    assert actions == [removed(POD)]


def test_a_dependent_with_dependents_of_its_own_goes_in_the_foreground_too() -> None:
    top = going("top", finalizers=FRONT)
    web = thing("web", owned("top"))
    actions, _ = OwnerGraph((SETS, top), (SETS, web), (PODS, POD)).decide(SETS, web)
    assert actions == [removed(web, SETS, "Foreground")]


def test_a_circle_is_broken_by_not_keeping_the_owner_from_going() -> None:
    one = going("one", owned("two"), finalizers=FRONT)
    two = thing("two", owned("one"))
    freed = thing("two", owned("one", blocks=False), resourceVersion="8")
    actions, _ = OwnerGraph((SETS, one), (SETS, two)).decide(SETS, two, {Patch: freed})
    assert actions == [
        Patch(
            Address(SETS.partial, "default", "two"),
            [
                {"op": "test", "path": "/metadata/uid", "value": "uid-two"},
                {"op": "test", "path": "/metadata/ownerReferences/0/uid", "value": "uid-one"},
                {"op": "replace", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": False},
            ],
            PatchType.JSON,
        ),
        removed(freed, SETS, "Foreground"),
    ]


def test_an_owner_waits_for_the_dependents_that_block_it() -> None:
    web = going("web", finalizers=FRONT)
    actions, verdict = OwnerGraph((SETS, web), (PODS, POD)).decide(SETS, web)
    assert actions == []
    assert verdict == Rest("waiting for dependents: pod default/pod still exists")


@pytest.mark.parametrize(
    "dependent",
    [
        thing("pod", owned("web", blocks=False)),
        thing("pod", owned("web", blocks=None)),
        thing("pod", owned("web"), namespace="other"),
    ],
)
def test_an_owner_does_not_wait_for_others(dependent: PartialObject) -> None:
    web = going("web", finalizers=("mine", *FRONT))
    actions, _ = OwnerGraph((SETS, web), (PODS, dependent)).decide(SETS, web)
    assert actions == [_stripped("web", 1, "foregroundDeletion")]


def test_a_dependent_that_another_owner_keeps_lets_go_of_the_one_that_waits() -> None:
    pod = thing("pod", owned("top"), owned("web"))
    cluster = OwnerGraph((SETS, going("top", finalizers=FRONT)), (SETS, WEB), (PODS, pod))
    actions, _ = cluster.decide(PODS, pod)
    assert [type(action) for action in actions] == [Patch]
    assert actions[0].body[1]["value"] == "uid-top"  # type: ignore[attr-defined]


def test_a_finalizer_is_taken_off_what_the_object_has_become() -> None:
    web = going("web", finalizers=FRONT)
    now = going("web", finalizers=("new", *FRONT), resourceVersion="9")
    answers = {Patch: [Invalid("test failed"), None], Read: now}
    actions, _ = OwnerGraph((SETS, web)).decide(SETS, web, answers)
    assert actions == [
        _stripped("web", 0, "foregroundDeletion"),
        Read(Address(SETS.partial, "default", "web")),
        _stripped("web", 1, "foregroundDeletion"),
    ]


def _stripped(name: str, index: int, finalizer: str) -> Patch[Any]:
    body = [
        {"op": "test", "path": "/metadata/uid", "value": f"uid-{name}"},
        {"op": "test", "path": f"/metadata/finalizers/{index}", "value": finalizer},
        {"op": "remove", "path": f"/metadata/finalizers/{index}"},
    ]
    return Patch(Address(SETS.partial, "default", name), body, PatchType.JSON)


# -- orphans ------------------------------------------------------------------------------------------


def test_dependents_are_let_go_of_before_their_owner_goes() -> None:
    web = going("web", finalizers=("orphan",))
    actions, verdict = OwnerGraph((SETS, web), (PODS, POD)).decide(SETS, web)
    assert actions == [
        Patch(
            Address(PODS.partial, "default", "pod"),
            [
                {"op": "test", "path": "/metadata/uid", "value": "uid-pod"},
                {"op": "test", "path": "/metadata/ownerReferences/0/uid", "value": "uid-web"},
                {"op": "remove", "path": "/metadata/ownerReferences/0"},
            ],
            PatchType.JSON,
        ),
        _stripped("web", 0, "orphan"),
    ]
    assert verdict == Rest("orphaned 1 dependents")


def test_an_owner_stays_while_a_dependent_cannot_be_let_go_of() -> None:
    web = going("web", finalizers=("orphan",))
    with pytest.raises(Forbidden):
        OwnerGraph((SETS, web), (PODS, POD)).decide(SETS, web, {Patch: Forbidden("no")})


def test_a_dependent_that_is_gone_needs_no_letting_go() -> None:
    web = going("web", finalizers=("orphan",))
    answers = {Patch: [not_found("pod", "pods"), None]}
    actions, _ = OwnerGraph((SETS, web), (PODS, POD)).decide(SETS, web, answers)
    assert actions[-1] == _stripped("web", 0, "orphan")


@pytest.mark.parametrize("finalizer", ["orphan", "foregroundDeletion"])
def test_nothing_is_let_go_of_while_some_caches_are_not_filled(finalizer: str) -> None:
    web = going("web", finalizers=(finalizer,))
    actions, verdict = OwnerGraph((SETS, web), unfilled=("widgets.example.com",)).decide(SETS, web)
    assert actions == []
    assert verdict == Wake(timedelta(seconds=1), "caches not synced: widgets.example.com")


def test_a_cache_that_cannot_be_filled_does_not_hold_up_deletions_for_ever() -> None:
    web = thing("web", finalizers=("orphan",), deletionTimestamp=NOW - timedelta(seconds=30))
    actions, _ = OwnerGraph((SETS, web), unfilled=("widgets.example.com",)).decide(SETS, web)
    assert actions == [_stripped("web", 0, "orphan")]


# -- whom a change concerns -------------------------------------------------------------------------------


def key(resource: ApiResource, name: str) -> Key:
    return Key("default", f"{resource.id}/{name}")


def test_an_object_with_a_living_owner_concerns_nobody() -> None:
    assert OwnerGraph((SETS, WEB)).put((PODS, POD)) == []


def test_an_object_whose_owner_is_not_in_the_cache_is_to_be_looked_at() -> None:
    assert OwnerGraph().put((PODS, POD)) == [key(PODS, "pod")]


def test_an_owner_that_goes_concerns_its_dependents_and_the_owner_that_waits_for_it() -> None:
    top = going("top", finalizers=FRONT)
    web = thing("web", owned("top"))
    cluster = OwnerGraph((SETS, top), (SETS, web), (PODS, POD))
    assert cluster.remove(SETS, web) == [key(PODS, "pod"), key(SETS, "top")]
    assert Coordinates("apps/v1", "ReplicaSet", "default", "web", "uid-web") in cluster.memory


def test_an_owner_that_begins_to_wait_concerns_itself_and_its_dependents() -> None:
    cluster = OwnerGraph((SETS, WEB), (PODS, POD))
    assert cluster.put((SETS, going("web", finalizers=FRONT))) == [key(SETS, "web"), key(PODS, "pod")]
    assert cluster.put((SETS, going("web", finalizers=FRONT, resourceVersion="8"))) == []


def test_an_object_to_be_orphaned_concerns_itself() -> None:
    cluster = OwnerGraph((SETS, WEB), (PODS, POD))
    assert cluster.put((SETS, going("web", finalizers=("orphan",)))) == [key(SETS, "web")]


def test_an_owner_hears_when_it_is_no_longer_blocked_by_anybody() -> None:
    web, other = going("web", finalizers=FRONT), thing("other", owned("web"))
    cluster = OwnerGraph((SETS, web), (PODS, POD), (PODS, other))
    assert cluster.put((PODS, thing("pod", owned("web", blocks=False)))) == [key(PODS, "pod")]
    assert cluster.remove(PODS, other) == [key(SETS, "web")]
    assert cluster.put((PODS, thing("pod", owned("web")))) == [key(PODS, "pod")]
    assert cluster.put((PODS, thing("pod"))) == [key(SETS, "web")]


def test_an_owner_that_does_not_wait_need_not_hear_of_that() -> None:
    cluster = OwnerGraph((SETS, WEB), (PODS, POD))
    assert cluster.put((PODS, thing("pod"))) == []


def test_a_status_that_changes_concerns_nobody() -> None:
    cluster = OwnerGraph((SETS, WEB), (PODS, POD))
    assert cluster.put((PODS, thing("pod", owned("web"), resourceVersion="8"))) == []


def test_the_absent_are_forgotten_the_oldest_first() -> None:
    absent = AbsentOwners(2)
    one, two, three = (Coordinates("v1", "Pod", "ns", name, name) for name in "abc")
    absent.add(one)
    absent.add(two)
    assert one in absent
    absent.add(three)
    assert (one in absent, two in absent, three in absent) == (True, False, True)
