"""What the namespace controller does about one namespace, row by row."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.discovery import ApiResource, DiscoveryResult, FailedGroupVersion
from steersman.api.errors import Conflict, Forbidden, MethodNotAllowed, NotFound, ServiceUnavailable
from steersman.api.kinds import Namespace, ObjectMeta
from steersman.api.partial_object import PartialObject, PartialObjectMeta
from steersman.controllers.namespace import DOCUMENTS, controller, decide
from steersman.controllers.namespace.conditions import HEALTHY, update_conditions
from steersman.controllers.namespace.resources_deleter import (
    POD_GRACE,
    PodGrace,
    PodGraceSpec,
    PodGraceStatus,
    longest_grace_period,
)
from steersman.intent.actions import Action, Address, Delete, DeleteCollection, Discover, List, Read, Update
from steersman.intent.controller import Settings
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.runtime.action_table import interpretation_of
from steersman.testing.decision_driver import USUAL, walk

DELETED = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW = DELETED + timedelta(seconds=5)
ALL = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")

PODS = ApiResource("", "v1", "Pod", "pods", True, ALL)
MAPS = ApiResource("", "v1", "ConfigMap", "configmaps", True, ALL)
NODES = ApiResource("", "v1", "Node", "nodes", False, ALL)
WIDGETS = ApiResource("example.com", "v1", "Widget", "widgets", True, ALL)
ONE_BY_ONE = ApiResource("example.com", "v1", "Widget", "widgets", True, ("delete", "get", "list"))
UNLISTED = ApiResource("example.com", "v1", "Secretive", "secretives", True, ("delete", "deletecollection"))
REVIEWS = ApiResource("authorization.k8s.io", "v1", "Review", "localsubjectaccessreviews", True, ("create",))


def document(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": "ns",
            "uid": "u",
            "resourceVersion": "5",
            "deletionTimestamp": "2026-01-01T12:00:00Z",
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Terminating"},
        **changes,
    }


class Server:
    """Has some objects, and forgets those that are deleted: unless they are held."""

    def __init__(
        self,
        *resources: ApiResource,
        there: dict[str, int] | None = None,
        held: dict[str, tuple[str, ...]] | None = None,
        pods: tuple[PodGrace, ...] = (),
        namespace: dict[str, Any] | None = None,
        **answers: Any,
    ) -> None:
        self.found: Any = DiscoveryResult(resources or (PODS, MAPS, NODES, WIDGETS))
        self.there = dict(there or {})
        self.held = held or {}
        self.pods = pods
        self.namespace = namespace or document()
        self.answers = answers
        if pods:
            self.there["pods"] = len(pods)

    def __call__(self, action: Action[Any]) -> Any:
        said = self.answers.get(type(action).__name__)
        kind = interpretation_of(action).kind(action)
        plural = kind.plural if kind is not None else ""
        if said is not None and (not isinstance(said, dict) or plural in said):
            return said[plural] if isinstance(said, dict) else said
        match action:
            case Read():
                return self.namespace
            case Discover():
                return self.found
            case List(kind=kind) if kind is POD_GRACE:
                return list(self.pods)
            case List(kind=kind):
                finalizers = self.held.get(kind.plural, ())
                return [
                    PartialObject(
                        metadata=PartialObjectMeta(name=f"{kind.plural}-{n}", finalizers=finalizers)
                    )
                    for n in range(self.there.get(kind.plural, 0))
                ]
            case DeleteCollection(kind=kind) | Delete(target=Address(kind=kind)):
                if kind.plural not in self.held:
                    self.there[kind.plural] = 0
                return None
        return USUAL

    def decide(self, said: list[Action[Any]] | None = None) -> tuple[list[Action[Any]], Verdict]:
        seen = Namespace(metadata=ObjectMeta(name="ns", uid="u", deletionTimestamp=DELETED))
        return walk(decide(seen, NOW), self, recorded=said)


def emptied(actions: list[Action[Any]]) -> list[str]:
    return [action.kind.plural for action in actions if isinstance(action, DeleteCollection)]


def written(actions: list[Action[Any]], subresource: str) -> list[Any]:
    return [
        action.body for action in actions if isinstance(action, Update) and action.subresource == subresource
    ]


def words(actions: list[Action[Any]]) -> dict[str, tuple[str, str, str]]:
    status = written(actions, "status")[-1]["status"]
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def pod(seconds: int | None = 30, phase: str = "Running") -> PodGrace:
    return PodGrace(
        spec=PodGraceSpec(terminationGracePeriodSeconds=seconds), status=PodGraceStatus(phase=phase)
    )


# -- emptying -----------------------------------------------------------------------------------------


def test_an_empty_namespace_is_let_go() -> None:
    actions, verdict = Server().decide()
    assert emptied(actions) == []
    assert written(actions, "finalize")[0]["spec"] == {"finalizers": []}
    assert verdict == Rest("content deleted; finalizer removed")


def test_everything_that_may_be_in_it_and_can_be_deleted_is_looked_for() -> None:
    actions, _ = Server(PODS, MAPS, NODES, WIDGETS, REVIEWS).decide()
    looked = [action.kind.plural for action in actions if isinstance(action, List)]
    assert looked == ["pods", "configmaps", "widgets"]


def test_only_what_is_there_is_deleted_and_then_looked_for_again() -> None:
    actions, verdict = Server(there={"widgets": 3}).decide()
    assert emptied(actions) == ["widgets"]
    assert all(
        action.propagation == "Background" for action in actions if isinstance(action, DeleteCollection)
    )
    assert [action for action in actions if isinstance(action, List)][-1] == List(WIDGETS.partial, "ns")
    assert verdict == Rest("content deleted; finalizer removed")


def test_nothing_else_goes_while_there_are_pods() -> None:
    server = Server(there={"widgets": 1}, pods=(pod(), pod(60), pod(900, "Succeeded")), held={"pods": ()})
    actions, verdict = server.decide()
    assert emptied(actions) == ["pods"]
    assert written(actions, "finalize") == []
    assert verdict == Wake(timedelta(seconds=31), "content remaining: 3 pods")
    # As upstream: that pods remain is not said.
    assert words(actions)["NamespaceContentRemaining"] == HEALTHY["NamespaceContentRemaining"]


def test_all_else_follows_in_the_same_round_once_pods_are_gone() -> None:
    actions, verdict = Server(there={"widgets": 1}, pods=(pod(),)).decide()
    assert emptied(actions) == ["pods", "widgets"]
    assert verdict == Rest("content deleted; finalizer removed")


@pytest.mark.parametrize(
    ("pods", "seconds"),
    [
        ((), 0),
        ((pod(30), pod(7)), 30),
        ((pod(30, "Failed"), pod(7)), 7),
        ((pod(None),), 0),
        ((pod(30, ""),), 30),
    ],
)
def test_pods_take_as_long_as_the_slowest_that_still_runs(pods: tuple[PodGrace, ...], seconds: int) -> None:
    assert longest_grace_period(pods) == seconds


def test_pods_that_outstay_their_time_are_a_failure() -> None:
    server = Server(pods=(pod(3),), held={"pods": ()})
    said: list[Action[Any]] = []
    with pytest.raises(
        InvalidSpec, match="unexpected items still remain in namespace: ns for gvr: /v1, Resource=pods"
    ):
        server.decide(said)
    assert written(said, "finalize") == []


def test_what_is_held_by_finalizers_is_waited_for_and_said() -> None:
    server = Server(there={"widgets": 2, "configmaps": 1}, held={"widgets": ("b", "a"), "configmaps": ("a",)})
    actions, verdict = server.decide()
    assert verdict == Wake(timedelta(seconds=8), "content remaining: 1 configmaps, 2 widgets")
    assert words(actions) == {
        **HEALTHY,
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances, "
            "widgets.example.com has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: a in 3 resource instances, "
            "b in 2 resource instances",
        ),
    }


def test_what_remains_without_a_reason_is_a_failure() -> None:
    said: list[Action[Any]] = []
    with pytest.raises(InvalidSpec):
        Server(there={"widgets": 2}, held={"widgets": ()}).decide(said)
    assert words(said)["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: ns "
        "for gvr: example.com/v1, Resource=widgets",
    )
    assert words(said)["NamespaceContentRemaining"][0] == "True"


def test_what_cannot_be_deleted_at_once_is_deleted_one_by_one() -> None:
    actions, verdict = Server(PODS, ONE_BY_ONE, there={"widgets": 2}).decide()
    removals = [action for action in actions if isinstance(action, Delete)]
    assert removals == [
        Delete(Address(ONE_BY_ONE.partial, "ns", f"widgets-{n}"), "Background") for n in range(2)
    ]
    assert verdict == Rest("content deleted; finalizer removed")


@pytest.mark.parametrize("refusal", [MethodNotAllowed("no"), NotFound("no")])
def test_a_collection_that_cannot_be_deleted_after_all_is_deleted_one_by_one(refusal: Exception) -> None:
    server = Server(there={"widgets": 1}, DeleteCollection={"widgets": refusal})
    actions, verdict = server.decide()
    assert [type(action) for action in actions if isinstance(action, Delete)] == [Delete]
    assert verdict == Rest("content deleted; finalizer removed")


def test_what_cannot_be_listed_is_deleted_all_the_same() -> None:
    actions, verdict = Server(PODS, UNLISTED).decide()
    assert emptied(actions) == ["secretives"]
    assert verdict == Rest("content deleted; finalizer removed")


@pytest.mark.parametrize("step", ["List", "DeleteCollection"])
def test_a_refusal_keeps_the_namespace_and_the_rest_is_emptied_all_the_same(step: str) -> None:
    refusals: dict[str, Any] = {step: {"widgets": Forbidden("not yours")}}
    server = Server(there={"widgets": 1, "configmaps": 1}, **refusals)
    said: list[Action[Any]] = []
    with pytest.raises(InvalidSpec, match="not yours"):
        server.decide(said)
    assert "configmaps" in emptied(said)
    assert words(said)["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 1 remaining: not yours",
    )
    assert written(said, "finalize") == []


# -- discovery ----------------------------------------------------------------------------------------


def test_a_namespace_is_never_let_go_when_discovery_fails() -> None:
    server = Server()
    server.found = ServiceUnavailable("the server is away")
    said: list[Action[Any]] = []
    with pytest.raises(InvalidSpec):
        server.decide(said)
    assert words(said)["NamespaceDeletionDiscoveryFailure"] == (
        "True",
        "DiscoveryFailed",
        "the server is away",
    )
    assert written(said, "finalize") == []
    assert emptied(said) == []


def test_what_is_known_is_emptied_while_some_groups_are_away() -> None:
    server = Server(there={"widgets": 1})
    missing = FailedGroupVersion(
        "metrics.k8s.io/v1beta1", "stale GroupVersion discovery: metrics.k8s.io/v1beta1"
    )
    server.found = DiscoveryResult(server.found.resources, (missing,))
    said: list[Action[Any]] = []
    with pytest.raises(InvalidSpec):
        server.decide(said)
    assert emptied(said) == ["widgets"]
    assert written(said, "finalize") == []
    assert words(said)["NamespaceDeletionDiscoveryFailure"] == (
        "True",
        "DiscoveryFailed",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "metrics.k8s.io/v1beta1: stale GroupVersion discovery: metrics.k8s.io/v1beta1",
    )


def test_a_group_version_that_is_none_keeps_the_namespace() -> None:
    server = Server()
    server.found = DiscoveryResult(server.found.resources, malformed=("a/b/c",))
    said: list[Action[Any]] = []
    with pytest.raises(InvalidSpec):
        server.decide(said)
    assert words(said)["NamespaceDeletionGroupVersionParsingFailure"] == (
        "True",
        "GroupVersionParsingFailed",
        "unexpected GroupVersion string: a/b/c",
    )
    assert written(said, "finalize") == []


# -- the namespace itself -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (NotFound("gone"), Rest("namespace already gone")),
        (document(metadata={"name": "ns", "uid": "u"}), Rest("not being deleted")),
        (document(spec={}), Rest("content deleted; waiting for finalizers of other controllers")),
    ],
)
def test_there_is_nothing_to_do_for_a_namespace(found: Any, verdict: Verdict) -> None:
    actions, said = Server(Read={"namespaces": found}).decide()
    assert actions == [Read(Address(DOCUMENTS, "", "ns"))]
    assert said == verdict


def test_a_namespace_that_does_not_say_that_it_is_going_is_made_to() -> None:
    actions, _ = Server(namespace=document(status={"phase": "Active"})).decide()
    assert written(actions, "status")[0]["status"]["phase"] == "Terminating"


def test_the_finalizers_of_others_stay() -> None:
    held = document(spec={"finalizers": ["z.example.com", "kubernetes", "a.example.com"]})
    actions, verdict = Server(namespace=held).decide()
    assert written(actions, "finalize")[0]["spec"] == {"finalizers": ["a.example.com", "z.example.com"]}
    assert verdict == Rest("content deleted; waiting for finalizers: a.example.com, z.example.com")


def _conflicting(server: Server, times: int, other: dict[str, Any]) -> Callable[[Action[Any]], Any]:
    left = [times]

    def answer(action: Action[Any]) -> Any:
        if isinstance(action, Update) and action.subresource == "finalize" and left[0]:
            left[0] -= 1
            server.namespace = other
            return Conflict("changed")
        return server(action)

    return answer


def test_somebody_elses_write_in_between_is_kept() -> None:
    other = document(spec={"finalizers": ["kubernetes", "new.example.com"]})
    seen = Namespace(metadata=ObjectMeta(name="ns", uid="u", deletionTimestamp=DELETED))
    actions, verdict = walk(decide(seen, NOW), _conflicting(Server(), 1, other))
    assert written(actions, "finalize")[-1]["spec"] == {"finalizers": ["new.example.com"]}
    assert verdict == Rest("content deleted; waiting for finalizers: new.example.com")


def test_another_namespace_of_the_same_name_is_left_alone() -> None:
    other = document(metadata={"name": "ns", "uid": "another"})
    seen = Namespace(metadata=ObjectMeta(name="ns", uid="u", deletionTimestamp=DELETED))
    actions, verdict = walk(decide(seen, NOW), _conflicting(Server(), 1, other))
    assert len(written(actions, "finalize")) == 1
    assert verdict == Rest("namespace already gone; its name is in use again")


def test_conditions_that_stay_as_they_are_are_not_written_again() -> None:
    first, _ = Server().decide()
    status = written(first, "status")[-1]["status"]
    actions, _ = Server(namespace=document(status=status)).decide()
    assert written(actions, "status") == []


def test_the_time_of_a_condition_changes_with_its_status_alone() -> None:
    before = update_conditions([], {}, DELETED)
    word = HEALTHY["NamespaceContentRemaining"]._replace(message="something else")
    after = update_conditions(before, {"NamespaceContentRemaining": word}, NOW)
    assert [c["lastTransitionTime"] for c in after] == ["2026-01-01T12:00:00Z"] * 5
    after = update_conditions(before, {"NamespaceContentRemaining": word._replace(status="True")}, NOW)
    assert [c["lastTransitionTime"][-3:-1] for c in after] == ["00", "00", "00", "05", "00"]


def test_conditions_of_others_stay() -> None:
    mine = {"type": "Mine", "status": "True"}
    assert update_conditions([mine], {}, NOW)[0] == mine


def test_how_often_namespaces_are_looked_at_again_can_be_set() -> None:
    assert controller.resync == 300.0
    configured = controller.configured(Settings(flags={"namespace-sync-period": 60.0}))
    assert configured is not None
    assert configured.resync == 60.0
