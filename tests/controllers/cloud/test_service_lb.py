"""service-lb-controller: rows of upstream's controller tests, and the steps of a round."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.cloud import CloudError, ImplementedElsewhere, RetryLater
from steersman.api.errors import ApiError, Conflict, NotFound
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.nodes import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from steersman.api.kinds.services import (
    ClientIPConfig,
    LoadBalancerIngress,
    LoadBalancerStatus,
    Service,
    ServicePort,
    ServiceSpec,
    ServiceStatus,
    SessionAffinityConfig,
)
from steersman.api.scheme import Key
from steersman.controllers.cloud.load_balancer_nodes import (
    EXCLUDE_LABEL,
    TO_BE_DELETED_TAINT,
    is_included,
    is_untainted,
    load_balancer_nodes,
    node_change_matters,
    same_nodes,
    shown_names,
)
from steersman.controllers.cloud.service_lb import (
    FINALIZER,
    NODE_SYNC_ERRORS,
    SYNCS,
    Memory,
    Synced,
    add_finalizer,
    controller,
    needs_cleanup,
    needs_update,
    remove_finalizer,
    set_status,
    wants_load_balancer,
)
from steersman.intent.actions import Action, Emit, Patch
from steersman.intent.cloud import (
    CloudCall,
    DeleteLoadBalancer,
    EnsureLoadBalancer,
    GetLoadBalancer,
    UpdateLoadBalancer,
)
from steersman.intent.controller import Change
from steersman.intent.metrics import Elapsed, Measure
from steersman.intent.verdict import Rest, Verdict, Wake
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = Key("d", "s")
STATUS = LoadBalancerStatus(ingress=(LoadBalancerIngress(ip="8.8.8.8"),))


def service(
    type: str = "LoadBalancer",
    *,
    finalizer: bool = False,
    deleted: bool = False,
    status: LoadBalancerStatus = LoadBalancerStatus(),
    uid: str = "u",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Service:
    spec.setdefault("ports", (ServicePort(port=80, protocol="TCP"),))
    return Service(
        metadata=ObjectMeta(
            name="s",
            namespace="d",
            uid=uid,
            finalizers=("other", FINALIZER) if finalizer else (),
            deletionTimestamp=NOW if deleted else None,
            annotations=annotations or {},
        ),
        spec=ServiceSpec(type=type, **spec),
        status=ServiceStatus(loadBalancer=status),
    )


def node(
    name: str = "n",
    *,
    ready: str = "True",
    excluded: str | None = None,
    taint: str = "",
    deleted: bool = False,
    provider: str = "providerID",
    label: str = "",
    condition: tuple[str, str] | None = None,
) -> Node:
    labels = {EXCLUDE_LABEL: excluded} if excluded is not None else {}
    if label:
        labels[label] = ""
    conditions = [NodeCondition(type="Ready", status=ready)] if ready else []
    if condition is not None:
        conditions.append(NodeCondition(type=condition[0], status=condition[1]))
    return Node(
        metadata=ObjectMeta(name=name, labels=labels, deletionTimestamp=NOW if deleted else None),
        spec=NodeSpec(providerID=provider, taints=(Taint(key=taint),) if taint else ()),
        status=NodeStatus(conditions=tuple(conditions)),
    )


NODE_1, NODE_2, NODE_3 = node("node1"), node("node2"), node("node3")


def look(
    *objects: Any,
    last: Synced | None = None,
    answers: Any = None,
    recorded: list[Action[Any]] | None = None,
) -> tuple[list[Action[Any]], Verdict, Memory]:
    """A round of the Service, after one that has ensured ``last``; its actions but for the clock."""
    caches = StaticCaches(controller, *objects)
    assert isinstance(caches.memory, Memory)
    if last is not None:
        caches.memory.synced[KEY] = last
    seen = controller.see(caches, KEY)
    if seen is None:
        return [], Rest("nothing to see"), caches.memory
    actions, verdict = walk(controller.decide(seen, NOW), answers, recorded=recorded)
    return [one for one in actions if not isinstance(one, Elapsed)], verdict, caches.memory


def told(actions: list[Action[Any]]) -> list[str]:
    """A round in short: its calls, patches and events."""
    words = []
    for one in actions:
        match one:
            case Emit(_, _, reason, _):
                words.append(reason)
            case Patch(_, {"status": _}):
                words.append("status")
            case Patch(_, {"metadata": {"finalizers": _}}):
                words.append("add finalizer")
            case Patch():
                words.append("remove finalizer")
            case CloudCall():
                words.append(type(one).__name__)
    return words


ENSURED = ["EnsuringLoadBalancer", "add finalizer", "EnsureLoadBalancer", "EnsuredLoadBalancer", "status"]
DELETED = ["GetLoadBalancer", "DeletingLoadBalancer", "DeleteLoadBalancer"]
PORTS = {
    "udp": (ServicePort(port=80, protocol="UDP"),),
    "sctp": (ServicePort(port=80, protocol="SCTP"),),
}


@pytest.mark.parametrize(
    ("before", "exists", "expected"),
    [
        (service("ClusterIP"), False, ["GetLoadBalancer", "DeletedLoadBalancer"]),
        (service(ports=PORTS["udp"]), False, ENSURED),
        (service(), False, ENSURED),
        (service(ports=PORTS["sctp"]), False, ENSURED),
        (service(loadBalancerClass="custom"), False, ["GetLoadBalancer", "DeletedLoadBalancer"]),
        (
            service("ClusterIP", finalizer=True, status=STATUS),
            True,
            [*DELETED, "remove finalizer", "DeletedLoadBalancer", "status"],
        ),
        (
            service(finalizer=True, deleted=True, status=STATUS),
            True,
            [*DELETED, "remove finalizer", "DeletedLoadBalancer", "status"],
        ),
        (service(finalizer=True), False, [word for word in ENSURED if word != "add finalizer"]),
        # Not in upstream's table:
        (
            service(finalizer=True, deleted=True),
            False,
            ["GetLoadBalancer", "remove finalizer", "DeletedLoadBalancer"],
        ),
        (service(status=LoadBalancerStatus((LoadBalancerIngress(ip="192.0.2.1"),))), False, ENSURED[:-1]),
    ],
    ids=[
        "wants none",
        "UDP",
        "TCP",
        "SCTP",
        "loadBalancerClass",
        "finalizer, wants none any more",
        "needs cleanup",
        "finalizer, wants one",
        "needs cleanup, gone already",
        "status is right",
    ],
)
def test_a_load_balancer_is_ensured_or_deleted(before: Service, exists: bool, expected: list[str]) -> None:
    answers = {GetLoadBalancer: STATUS if exists else None}
    actions, verdict, _ = look(before, NODE_1, answers=answers)
    assert told(actions) == expected
    assert isinstance(verdict, Rest)


def test_the_finalizer_is_there_before_the_load_balancer_and_leaves_after_it() -> None:
    actions, _, _ = look(service(), NODE_1)
    words = told(actions)
    assert words.index("add finalizer") < words.index("EnsureLoadBalancer")
    actions, _, _ = look(service(finalizer=True, deleted=True), answers={GetLoadBalancer: STATUS})
    words = told(actions)
    assert words.index("DeleteLoadBalancer") < words.index("remove finalizer")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (service(), service("ClusterIP"), True),
        (service("ClusterIP"), service(), True),
        (service("ClusterIP"), service("NodePort"), False),
        (
            service(ports=(ServicePort(port=8000), ServicePort(port=9000))),
            service(ports=(ServicePort(port=8001), ServicePort(port=9001))),
            True,
        ),
        (service(externalIPs=("old.1",)), service(externalIPs=("new.1", "new.2")), True),
        (service(externalIPs=("old.1", "old.2")), service(externalIPs=("new.1", "new.2")), True),
        (service(uid="old"), service(uid="new"), True),
        (service(), service(externalTrafficPolicy="Local"), True),
        (service(), service(healthCheckNodePort=30123), True),
        (
            service(ports=(ServicePort(port=80, targetPort=20),)),
            service(ports=(ServicePort(port=80, targetPort=21),)),
            True,
        ),
        (
            service(ports=(ServicePort(port=80, targetPort=22),)),
            service(ports=(ServicePort(port=80, targetPort="dns"),)),
            True,
        ),
        (service(), service(), False),
        (service(ipFamilies=("IPv4",)), service(ipFamilies=("IPv4", "IPv6")), True),
        (service(ipFamilies=("IPv4", "IPv6")), service(ipFamilies=("IPv4",)), True),
        (service(ipFamilies=("IPv4",)), service(ipFamilies=("IPv4",)), False),
        (service(), service(ports=(ServicePort(port=80, protocol="TCP", appProtocol="http"),)), True),
        (
            service(ports=(ServicePort(port=80, appProtocol="http"),)),
            service(ports=(ServicePort(port=80, appProtocol="tcp"),)),
            True,
        ),
        # Not in upstream's table, but in its code:
        (service(), service(loadBalancerSourceRanges=("10.0.0.0/8",)), True),
        (service(), service(sessionAffinity="ClientIP"), True),
        (
            service(sessionAffinityConfig=SessionAffinityConfig(ClientIPConfig(10))),
            service(sessionAffinityConfig=SessionAffinityConfig(ClientIPConfig(20))),
            True,
        ),
        (service(), service(loadBalancerIP="192.0.2.9"), True),
        (service(), service(annotations={"a": "b"}), True),
        (service(), service(selector={"a": "b"}), False),
        (service(), service(finalizer=True, status=STATUS), False),
        (service(ipFamilies=("IPv4",)), service(ipFamilies=("IPv6",)), False),
        (service(loadBalancerClass="a"), service(loadBalancerClass="a", healthCheckNodePort=1), False),
    ],
)
def test_a_change_concerns_the_load_balancer_or_not(old: Service, new: Service, expected: bool) -> None:
    assert needs_update(old, new) is expected
    if wants_load_balancer(old):
        again, _, _ = look(new, NODE_1, last=Synced(old, (NODE_1,)))
        assert bool(told(again)) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Service(), False),
        (service("NodePort", finalizer=True), True),
        (service(finalizer=True), False),
        (service("", finalizer=True, deleted=True), True),
        (service(finalizer=True, deleted=True), True),
        (service(deleted=True), False),
    ],
)
def test_the_finalizer_stands_for_a_load_balancer_to_delete(given: Service, expected: bool) -> None:
    assert needs_cleanup(given) is expected


def test_finalizers_and_status_are_patched_only_if_they_differ() -> None:
    assert add_finalizer(service(finalizer=True)) is None
    added = add_finalizer(service())
    assert added is not None
    assert added.body == {"metadata": {"uid": "u", "finalizers": [FINALIZER]}}
    assert remove_finalizer(service()) is None
    removed = remove_finalizer(service(finalizer=True))
    assert removed is not None
    assert removed.body == {"metadata": {"uid": "u", "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
    assert added.subresource == removed.subresource == "status", "no other right is granted"


@pytest.mark.parametrize(
    ("before", "after", "patched"),
    [
        (STATUS, STATUS, False),
        (LoadBalancerStatus(), STATUS, True),
        (LoadBalancerStatus(), LoadBalancerStatus(), False),
        (STATUS, LoadBalancerStatus(), True),
    ],
    ids=["same", "added", "none", "cleared"],
)
def test_a_status_is_written_where_it_differs(
    before: LoadBalancerStatus, after: LoadBalancerStatus, patched: bool
) -> None:
    assert (set_status(service(status=before), after) is not None) is patched


# -- nodes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (Node(), True),
        (node(), True),
        (node(provider=""), True),
        (node(ready="False"), True),
        (node(label="other"), True),
        (node(excluded=""), False),
        (node(excluded="false"), True),
        (node(excluded="true"), False),
        (node(excluded="foo"), False),
        (node(taint=TO_BE_DELETED_TAINT), False),
        (node(deleted=True), False),
        (node(taint="other"), True),
    ],
)
def test_a_node_is_behind_load_balancers_or_not(given: Node, expected: bool) -> None:
    # Upstream's table also asks for readiness, which counts for no load balancer any more.
    assert bool(load_balancer_nodes((given,))) is expected
    if given.metadata.deletionTimestamp is None:
        assert (is_included(given) and is_untainted(given)) is expected


GONE = TO_BE_DELETED_TAINT


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {}, False),
        ({}, {"excluded": ""}, True),
        ({"excluded": ""}, {}, True),
        ({"excluded": ""}, {"excluded": ""}, False),
        ({}, {"taint": "other"}, False),
        ({"taint": "other"}, {}, False),
        ({}, {"label": "other"}, False),
        ({"label": "other"}, {}, False),
        ({"ready": "False"}, {"ready": "False"}, False),
        ({"ready": "False"}, {"ready": ""}, False),
        ({"ready": ""}, {"ready": "False"}, False),
        ({"ready": ""}, {"ready": ""}, False),
        (
            {"ready": "False", "condition": ("DiskPressure", "False")},
            {"ready": "False", "condition": ("DiskPressure", "True")},
            False,
        ),
        (
            {"ready": "False", "condition": ("DiskPressure", "True")},
            {"ready": "False", "condition": ("DiskPressure", "False")},
            False,
        ),
        ({"condition": ("Other", "False")}, {"condition": ("Other", "True")}, False),
        ({"condition": ("Other", "True")}, {"condition": ("Other", "False")}, False),
        ({}, {"deleted": True}, False),
        ({"provider": ""}, {}, True),
        ({}, {"provider": ""}, True),
        ({}, {"provider": "providerID-2"}, True),
        ({"taint": GONE}, {"taint": GONE, "excluded": ""}, True),
        ({"taint": GONE, "excluded": ""}, {"taint": GONE}, True),
        ({"taint": GONE, "provider": ""}, {"taint": GONE}, True),
        ({"taint": GONE}, {"taint": GONE, "provider": ""}, True),
        ({"taint": GONE}, {"taint": GONE, "provider": "providerID-2"}, True),
        ({"taint": GONE, "ready": "False"}, {"taint": GONE}, False),
        ({"taint": GONE}, {"taint": GONE, "ready": "False"}, False),
        ({"excluded": ""}, {"excluded": "", "taint": GONE}, False),
        ({"excluded": "", "taint": GONE}, {"excluded": ""}, False),
        ({"excluded": "", "ready": "False"}, {"excluded": ""}, False),
        ({"excluded": ""}, {"excluded": "", "ready": "False"}, False),
        ({"excluded": "", "provider": ""}, {"excluded": ""}, True),
        ({"excluded": ""}, {"excluded": "", "provider": ""}, True),
        ({"excluded": ""}, {"excluded": "", "provider": "providerID-2"}, True),
        ({"ready": "False"}, {"ready": "False", "taint": GONE}, False),
        ({"ready": "False", "taint": GONE}, {"ready": "False"}, False),
        ({"ready": "False"}, {"ready": "False", "excluded": ""}, True),
        ({"ready": "False", "excluded": ""}, {"ready": "False"}, True),
        ({"ready": "False", "provider": ""}, {"ready": "False"}, True),
        ({"ready": "False"}, {"ready": "False", "provider": ""}, True),
        ({"ready": "False"}, {"ready": "False", "provider": "providerID-2"}, True),
        ({"provider": ""}, {"provider": "", "excluded": ""}, True),
        ({"provider": "", "excluded": ""}, {"provider": ""}, True),
        ({"provider": ""}, {"provider": "", "ready": "False"}, False),
        ({"provider": "", "ready": "False"}, {"provider": ""}, False),
        ({"provider": "", "taint": GONE}, {"provider": ""}, False),
        ({"provider": ""}, {"provider": "", "taint": GONE}, False),
    ],
    ids=str,
)
def test_a_change_of_a_node_leads_to_another_look_at_the_services(
    old: dict[str, Any], new: dict[str, Any], expected: bool
) -> None:
    assert node_change_matters(node(**old), node(**new)) is expected
    caches = StaticCaches(controller, service(), service("NodePort"))
    caches.put(service())
    _, nodes = controller.watches
    keys = list(nodes.to(caches, Change(node(**old), node(**new))))
    assert keys == ([KEY] if expected else [])


CHANGES = {
    "no change": ([NODE_1, NODE_2, NODE_3], [NODE_1, NODE_2, NODE_3], None),
    "a new node": ([NODE_1, NODE_2], [NODE_1, NODE_2, NODE_3], [NODE_1, NODE_2, NODE_3]),
    "not ready": ([NODE_1, NODE_2, NODE_3], [NODE_1, node("node2", ready="False"), NODE_3], None),
    "tainted": ([NODE_1, NODE_2, NODE_3], [NODE_1, node("node2", taint=GONE), NODE_3], [NODE_1, NODE_3]),
    "ready": ([NODE_1, node("node2", ready="False"), NODE_3], [NODE_1, NODE_2, NODE_3], None),
    "excluded": ([NODE_1, NODE_2, NODE_3], [NODE_1, node("node2", excluded=""), NODE_3], [NODE_1, NODE_3]),
    "deleted": ([NODE_1, NODE_2, NODE_3], [NODE_1, NODE_2], [NODE_1, NODE_2]),
    "being deleted": (
        [NODE_1, NODE_2, NODE_3],
        [NODE_1, node("node2", deleted=True), NODE_3],
        [NODE_1, NODE_3],
    ),
    "another taint": ([NODE_1, NODE_2, NODE_3], [NODE_1, node("node2", taint="Other"), NODE_3], None),
    "other providerIDs": (
        [NODE_1, NODE_2],
        [node("node1", provider="cumulus/1"), node("node2", provider="cumulus/2")],
        [node("node1", provider="cumulus/1"), node("node2", provider="cumulus/2")],
    ),
    "another node": ([NODE_1, NODE_2], [NODE_1, NODE_3], [NODE_1, NODE_3]),
}


@pytest.mark.parametrize("policy", ["Local", "Cluster"])
@pytest.mark.parametrize(("before", "after", "expected"), CHANGES.values(), ids=CHANGES)
def test_the_nodes_of_a_load_balancer_are_updated(
    before: list[Node], after: list[Node], expected: list[Node] | None, policy: str
) -> None:
    given = service(finalizer=True, externalTrafficPolicy=policy)
    actions, _, memory = look(given, *after, last=Synced(given, tuple(before)))
    assert [one for one in actions if isinstance(one, CloudCall)] == (
        [] if expected is None else [UpdateLoadBalancer("kubernetes", given, tuple(expected))]
    )
    assert same_nodes(memory.synced[KEY].nodes, before if expected is None else expected)
    assert told(actions)[1:] == ([] if expected is None else ["UpdatedLoadBalancer"])
    assert (Measure(SYNCS) in actions) is (expected is not None)


def test_a_load_balancer_without_nodes_is_told() -> None:
    given = service(finalizer=True)
    actions, _, _ = look(given, last=Synced(given, (NODE_1,)))
    assert told(actions) == ["UpdateLoadBalancer", "UnAvailableLoadBalancer"]
    actions, _, _ = look(given)
    assert told(actions) == [
        "EnsuringLoadBalancer",
        "UnAvailableLoadBalancer",
        "EnsureLoadBalancer",
        "EnsuredLoadBalancer",
        "status",
    ]


def test_nodes_that_cannot_be_updated_are_told_and_the_load_balancer_is_ensured_anew() -> None:
    given = service(finalizer=True)
    last = Synced(given, (NODE_1,))
    answers = {UpdateLoadBalancer: CloudError("error please"), GetLoadBalancer: STATUS}
    actions, _, memory = look(given, NODE_1, NODE_2, last=last, answers=answers)
    assert told(actions)[:5] == [
        "UpdateLoadBalancer",
        "GetLoadBalancer",
        "UpdateLoadBalancerFailed",
        "EnsuringLoadBalancer",
        "EnsureLoadBalancer",
    ]
    (event,) = (one for one in actions if isinstance(one, Emit) and one.reason == "UpdateLoadBalancerFailed")
    assert event.message == (
        "Error updating load balancer with new hosts [node1 node2] "
        "[node names limited, total number of nodes: 2], error: error please"
    )
    assert Measure(NODE_SYNC_ERRORS) in actions
    assert memory.synced[KEY].nodes == (NODE_1, NODE_2)


@pytest.mark.parametrize(
    ("update", "exists"),
    [(ImplementedElsewhere("elsewhere"), STATUS), (CloudError("gone"), None)],
    ids=["implemented elsewhere", "no load balancer"],
)
def test_nodes_that_no_load_balancer_of_this_controller_has_are_no_error(
    update: CloudError, exists: Any
) -> None:
    given = service(finalizer=True)
    answers = {UpdateLoadBalancer: update, GetLoadBalancer: exists}
    actions, verdict, _ = look(given, NODE_2, last=Synced(given, (NODE_1,)), answers=answers)
    assert isinstance(verdict, Rest)
    assert not [one for one in actions if isinstance(one, Emit | EnsureLoadBalancer)]


def test_a_message_lists_twenty_nodes_at_most() -> None:
    nodes = [node(f"n{number:02}") for number in range(23)]
    assert shown_names(nodes[:2]) == "[n00 n01]"
    assert shown_names(nodes).endswith("n19 <3 more>]")


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "answers", "message"),
    [
        (
            service(),
            {EnsureLoadBalancer: CloudError("quota exceeded")},
            "failed to ensure load balancer: quota exceeded",
        ),
        (
            service(),
            {Patch: Conflict("object conflict")},
            "failed to add load balancer cleanup finalizer: object conflict",
        ),
        (
            service(finalizer=True),
            {Patch: Conflict("object conflict")},
            "failed to update load balancer status: object conflict",
        ),
        (
            service(finalizer=True, deleted=True),
            {GetLoadBalancer: CloudError("no answer")},
            "failed to check if load balancer exists before cleanup: no answer",
        ),
        (
            service(finalizer=True, deleted=True),
            {GetLoadBalancer: STATUS, DeleteLoadBalancer: CloudError("in use")},
            "failed to delete load balancer: in use",
        ),
        (
            service(finalizer=True, deleted=True),
            {Patch: Conflict("object conflict")},
            "failed to remove load balancer cleanup finalizer: object conflict",
        ),
    ],
)
def test_a_step_that_fails_is_told_and_retried(before: Service, answers: Any, message: str) -> None:
    recorded: list[Action[Any]] = []
    caches_before = Synced(before, (NODE_2,)) if before.metadata.deletionTimestamp else None
    with pytest.raises(ApiError):
        look(before, NODE_1, answers=answers, recorded=recorded, last=caches_before)
    last = recorded[-1]
    assert last == Emit(
        before, "Warning", "SyncLoadBalancerFailed", f"Error syncing load balancer: {message}"
    )


def test_a_load_balancer_that_could_not_be_deleted_keeps_its_finalizer() -> None:
    recorded: list[Action[Any]] = []
    answers = {GetLoadBalancer: STATUS, DeleteLoadBalancer: CloudError("in use")}
    with pytest.raises(CloudError):
        look(service(finalizer=True, deleted=True), answers=answers, recorded=recorded)
    assert not [one for one in recorded if isinstance(one, Patch)]


def test_a_service_that_went_with_its_finalizer_needs_no_status() -> None:
    given = service(finalizer=True, deleted=True, status=STATUS)
    _, verdict, _ = look(given, answers={Patch: [USUAL, NotFound("gone")]})
    assert isinstance(verdict, Rest)


def test_a_provider_may_ask_for_a_fixed_delay() -> None:
    actions, verdict, memory = look(service(), answers={EnsureLoadBalancer: RetryLater("starting", 42.0)})
    assert isinstance(verdict, Wake)
    assert verdict.after.total_seconds() == 42.0
    assert told(actions)[-1] == "SyncLoadBalancerFailed"
    assert KEY not in memory.synced


def test_a_load_balancer_that_is_implemented_elsewhere_is_left_alone() -> None:
    actions, verdict, _ = look(service(), NODE_1, answers={EnsureLoadBalancer: ImplementedElsewhere("x")})
    assert isinstance(verdict, Rest)
    assert told(actions) == ["EnsuringLoadBalancer", "add finalizer", "EnsureLoadBalancer"]
    answers = {GetLoadBalancer: STATUS, DeleteLoadBalancer: ImplementedElsewhere("x")}
    actions, _, _ = look(service(finalizer=True, deleted=True), answers=answers)
    assert told(actions)[-2:] == ["remove finalizer", "DeletedLoadBalancer"]


@pytest.mark.parametrize(
    ("last", "error", "expected"),
    [
        (None, None, []),
        (Synced(service(), ()), None, ["DeletingLoadBalancer", "DeleteLoadBalancer", "DeletedLoadBalancer"]),
        (
            Synced(service(), ()),
            CloudError("error deleting"),
            ["DeletingLoadBalancer", "DeleteLoadBalancer", "DeleteLoadBalancerFailed"],
        ),
        (Synced(service("ClusterIP"), ()), None, []),
    ],
    ids=["never had one", "had one", "cannot be deleted", "had none"],
)
def test_the_load_balancer_of_a_service_that_lost_its_finalizer_is_deleted(
    last: Synced | None, error: CloudError | None, expected: list[str]
) -> None:
    recorded: list[Action[Any]] = []
    answers = {DeleteLoadBalancer: error} if error is not None else None
    with pytest.raises(CloudError) if error is not None else nullcontext():
        _, _, memory = look(last=last, answers=answers, recorded=recorded)
        assert memory.synced == {}
    assert told(recorded) == expected


def test_a_service_that_was_created_anew_gets_a_load_balancer_of_its_own() -> None:
    actions, _, memory = look(service(uid="new"), NODE_1, last=Synced(service(uid="old"), (NODE_1,)))
    assert told(actions) == [
        "DeletingLoadBalancer",
        "DeleteLoadBalancer",
        "DeletedLoadBalancer",
        *ENSURED,
    ]
    assert memory.synced[KEY].service.metadata.uid == "new"


@pytest.mark.parametrize(
    ("old", "new", "enqueued"),
    [
        (None, service(), True),
        (None, service("ClusterIP"), False),
        (None, service(loadBalancerClass="x"), False),
        (None, service("ClusterIP", finalizer=True), True),
        (service(), service(status=STATUS), False),
        (service(), service("ClusterIP"), True),
        (service(finalizer=True), service(finalizer=True, deleted=True), True),
        (service(), None, True),
        (service("ClusterIP"), None, False),
    ],
)
def test_which_changes_of_a_service_are_looked_at(
    old: Service | None, new: Service | None, enqueued: bool
) -> None:
    services, _ = controller.watches
    assert bool(list(services.to(StaticCaches(controller), Change(old, new)))) is enqueued


def test_failed_rounds_wait_from_five_seconds_to_five_minutes() -> None:
    assert (controller.min_backoff, controller.max_backoff) == (5.0, 300.0)


def test_the_same_round_again_does_nothing() -> None:
    given = service()
    _, _, memory = look(given, NODE_1)
    after = replace(
        given,
        metadata=replace(given.metadata, finalizers=(FINALIZER,)),
        status=ServiceStatus(loadBalancer=STATUS),
    )
    actions, verdict, _ = look(after, NODE_1, last=memory.synced[KEY])
    assert (actions, verdict) == ([], Rest("load balancer is up to date"))
