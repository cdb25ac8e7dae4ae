"""replicaset-controller and replicationcontroller-controller."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.errors import Cause, Forbidden, NotFound, ServerError
from steersman.api.kinds import (
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    Condition,
    LabelSelector,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    ReplicationController,
    ReplicationControllerSpec,
    ReplicationControllerStatus,
)
from steersman.api.scheme import Key
from steersman.controllers.replicaset import (
    BURST,
    DELETION_AGE_RATIO,
    Seen,
    new_pod,
    replicaset,
    replicationcontroller,
)
from steersman.controllers.shared.indexes import CONTROLLED
from steersman.intent.actions import Create, Delete, Emit, Patch, Read, UpdateStatus
from steersman.intent.all_resources import AllObjects
from steersman.intent.controller import Change
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec, Rest, Wake
from steersman.runtime.store import Store
from steersman.testing.decision_driver import walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC = msgspec.Raw(b'{"containers":[{"name":"c","image":"i"}],"fieldOfTomorrow":1}')
LABELS = {"app": "web"}
OWNER = OwnerReference(
    apiVersion="apps/v1", kind="ReplicaSet", name="web", uid="rs", controller=True, blockOwnerDeletion=True
)
decide = replicaset.decide
enqueue_owner = replicaset.watches[1].to


def rs(replicas: int | None = 3, *, min_ready: int = 0, **status: Any) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(namespace="default", name="web", uid="rs", generation=2, resourceVersion="5"),
        spec=ReplicaSetSpec(
            replicas=replicas,
            minReadySeconds=min_ready,
            selector=LabelSelector(matchLabels=LABELS),
            template=PodTemplateSpec(metadata=ObjectMeta(labels={**LABELS, "tier": "front"}), spec=SPEC),
        ),
        status=ReplicaSetStatus(**{"replicas": 0, "observedGeneration": 2, **status}),
    )


def pod(
    name: str,
    *,
    ready: float | None = 600,
    phase: str = "Running",
    node: str = "n1",
    age: float = 900,
    labels: dict[str, str] | None = None,
    owned: bool = True,
    going: bool = False,
) -> Pod:
    """A pod that has been ready for so many seconds, or is not."""
    conditions: tuple[Condition, ...] = ()
    if ready is not None:
        since = NOW - timedelta(seconds=ready)
        conditions = (Condition(type="Ready", status="True", lastTransitionTime=since),)
    return Pod(
        metadata=ObjectMeta(
            namespace="default",
            name=name,
            uid=f"uid-{name}",
            resourceVersion="1",
            labels={**LABELS, "tier": "front"} if labels is None else labels,
            ownerReferences=(OWNER,) if owned else (),
            creationTimestamp=NOW - timedelta(seconds=age),
            deletionTimestamp=NOW if going else None,
        ),
        spec=PodSpec(nodeName=node),
        status=PodStatus(phase=phase, conditions=conditions),
    )


def see(owner: Any, *pods: Pod, related: dict[str, int] | None = None) -> Seen:
    owned = tuple(p for p in pods if p.metadata.ownerReferences)
    orphans = tuple(p for p in pods if not p.metadata.ownerReferences)
    return Seen(owner, owned, orphans, related)


def counts(actions: list[Any]) -> dict[str, int]:
    return dict(Counter(type(action).__name__ for action in actions))


def status_of(actions: list[Any]) -> Any:
    (update,) = [action for action in actions if isinstance(action, UpdateStatus)]
    return update.status


# -- creating ---------------------------------------------------------------------------------


def test_missing_pods_are_created_from_the_template_with_its_spec_untouched() -> None:
    actions, verdict = walk(decide(see(rs(3), pod("a")), NOW))
    creates = [action for action in actions if isinstance(action, Create)]
    assert len(creates) == 2
    body = creates[0].body
    assert body == new_pod(rs(3), REPLICASETS, rs(3).spec.template)
    assert body.spec is SPEC
    assert body.metadata.generateName == "web-"
    assert body.metadata.ownerReferences == (OWNER,)
    assert body.metadata.labels == {"app": "web", "tier": "front"}
    assert verdict == Rest("created 2 pods to reach 3")


def test_each_created_pod_is_an_event() -> None:
    actions, _ = walk(decide(see(rs(1)), NOW))
    emitted = [action for action in actions if isinstance(action, Emit)]
    assert [(e.type, e.reason, e.message) for e in emitted] == [
        ("Normal", "SuccessfulCreate", "Created pod: web-00001")
    ]


def test_no_more_than_a_burst_is_created_at_once_and_progress_is_shown() -> None:
    actions, _ = walk(decide(see(rs(BURST + 100)), NOW))
    assert counts(actions)["Create"] == BURST
    assert counts(actions)["UpdateStatus"] == 1


def test_a_refused_pod_is_shown_as_a_condition_and_an_event_and_tried_again() -> None:
    refusal = Forbidden('pods "web-" is forbidden: exceeded quota: q')
    said: list[Any] = []
    with pytest.raises(Forbidden, match="exceeded quota"):
        walk(decide(see(rs(10)), NOW), {Create: refusal}, recorded=said)
    assert counts(said)["Create"] == 1, "slow start stops after the first refusal"
    (event,) = [action for action in said if isinstance(action, Emit)]
    assert (event.type, event.reason) == ("Warning", "FailedCreate")
    assert event.message == f"Error creating: {refusal}"
    assert status_of(said).conditions == (
        Condition(
            type="ReplicaFailure",
            status="True",
            reason="FailedCreate",
            message=str(refusal),
            lastTransitionTime=NOW,
        ),
    )


def test_a_condition_that_is_there_keeps_its_words_and_goes_when_all_is_well() -> None:
    old = Condition(type="ReplicaFailure", status="True", reason="FailedCreate", message="older")
    said: list[Any] = []
    with pytest.raises(Forbidden):
        walk(
            decide(see(rs(1, readyReplicas=1, conditions=(old,))), NOW),
            {Create: Forbidden("newer")},
            recorded=said,
        )
    assert status_of(said).conditions == (old,)
    actions, _ = walk(decide(see(rs(1, conditions=(old,)), pod("a")), NOW))
    assert status_of(actions).conditions == ()


def test_in_a_namespace_that_is_going_away_nothing_is_an_error() -> None:
    going = Forbidden("terminating", causes=(Cause("NamespaceTerminating", "", ""),))
    actions, verdict = walk(decide(see(rs(3)), NOW), {Create: going})
    assert not [action for action in actions if isinstance(action, Emit)]
    assert verdict == Rest("0 of 3 replicas ready")


def test_a_set_that_is_being_deleted_creates_nothing() -> None:
    owner = msgspec.structs.replace(
        rs(3), metadata=msgspec.structs.replace(rs().metadata, deletionTimestamp=NOW)
    )
    actions, _ = walk(decide(see(owner, pod("a")), NOW))
    assert counts(actions) == {"UpdateStatus": 1}


def test_a_template_without_labels_is_refused_and_shown() -> None:
    bare = msgspec.structs.replace(
        rs(1), spec=msgspec.structs.replace(rs(1).spec, template=PodTemplateSpec(spec=SPEC))
    )
    said: list[Any] = []
    with pytest.raises(InvalidSpec, match="unable to create pods, no labels"):
        walk(decide(see(bare), NOW), recorded=said)
    assert status_of(said).conditions[0].reason == "FailedCreate"


# -- deleting ---------------------------------------------------------------------------------


def test_the_pods_that_will_be_missed_least_are_deleted() -> None:
    pods = (pod("ready"), pod("pending", phase="Pending", ready=None), pod("nowhere", node="", ready=None))
    actions, verdict = walk(decide(see(rs(1), *pods), NOW))
    deletes = [action for action in actions if isinstance(action, Delete)]
    assert [action.target.key.name for action in deletes] == ["nowhere", "pending"]
    reasons = [(e.reason, e.message) for e in actions if isinstance(e, Emit)]
    assert reasons == [
        ("SuccessfulDelete", "Deleted pod: nowhere"),
        ("SuccessfulDelete", "Deleted pod: pending"),
    ]
    assert verdict == Rest("deleted 2 pods to reach 1")


def test_of_equals_the_one_on_the_more_crowded_node_goes() -> None:
    pods = (pod("a", node="n1"), pod("b", node="n2"))
    actions, _ = walk(decide(see(rs(1), *pods, related={"n2": 1}), NOW))
    assert [action.target.key.name for action in actions if isinstance(action, Delete)] == ["b"]


def test_a_pod_that_was_just_adopted_is_company_on_its_node() -> None:
    pods = (pod("lone", node="n1", age=60), pod("one", node="n2"), pod("two", node="n2", owned=False))
    actions, _ = walk(decide(see(rs(2), *pods, related={}), NOW))
    assert [action.target.key.name for action in actions if isinstance(action, Delete)] == ["one"]


def test_a_set_without_a_controller_does_not_ask_for_company() -> None:
    pods = (pod("lone", node="n1", age=60), pod("one", node="n2"), pod("two", node="n2"))
    actions, _ = walk(decide(see(rs(2), *pods), NOW))
    assert [action.target.key.name for action in actions if isinstance(action, Delete)] == ["lone"]


def test_how_even_the_choice_was_is_measured() -> None:
    pods = (pod("old", age=3600), pod("young", age=600))
    actions, _ = walk(decide(see(rs(1), *pods), NOW))
    assert [a for a in actions if isinstance(a, Measure)] == [Measure(DELETION_AGE_RATIO, 1.0)]


def test_a_pod_that_is_gone_already_counts_as_deleted() -> None:
    actions, verdict = walk(decide(see(rs(0), pod("a")), NOW), {Delete: NotFound("gone")})
    assert not [action for action in actions if isinstance(action, Emit)]
    assert isinstance(verdict, Rest)


def test_a_pod_that_cannot_be_deleted_is_shown_and_tried_again() -> None:
    said: list[Any] = []
    with pytest.raises(ServerError, match="unable to delete pods: boom"):
        walk(decide(see(rs(0), pod("a")), NOW), {Delete: ServerError("boom")}, recorded=said)
    condition = status_of(said).conditions[0]
    assert (condition.reason, condition.message) == ("FailedDelete", "unable to delete pods: boom")
    assert [(e.reason, e.message) for e in said if isinstance(e, Emit)] == [
        ("FailedDelete", "Error deleting: boom")
    ]


# -- claiming ---------------------------------------------------------------------------------


def test_a_matching_orphan_is_adopted_after_a_look_at_the_live_set() -> None:
    actions, _ = walk(decide(see(rs(1), pod("stray", owned=False)), NOW))
    assert counts(actions) == {"Read": 1, "Patch": 1, "UpdateStatus": 1}
    assert isinstance(actions[0], Read)
    assert status_of(actions).replicas == 1


def test_a_pod_that_no_longer_matches_is_released_and_replaced() -> None:
    actions, _ = walk(decide(see(rs(1), pod("a", labels={"app": "other"})), NOW))
    assert counts(actions) == {"Patch": 1, "Create": 1, "Emit": 1}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_neither_counted_nor_claimed(phase: str) -> None:
    actions, _ = walk(decide(see(rs(1), pod("done", phase=phase, owned=False)), NOW))
    assert counts(actions) == {"Create": 1, "Emit": 1}
    assert not [action for action in actions if isinstance(action, Patch)]


# -- status -----------------------------------------------------------------------------------


def test_the_status_counts_all_labelled_ready_available_and_terminating() -> None:
    pods = (
        pod("available", ready=100),
        pod("ready", ready=5),
        pod("starting", ready=None),
        pod("plain", labels={"app": "web"}),
        pod("going", going=True),
    )
    actions, verdict = walk(decide(see(rs(4, min_ready=10), *pods), NOW))
    assert status_of(actions) == ReplicaSetStatus(
        replicas=4,
        fullyLabeledReplicas=3,
        readyReplicas=3,
        availableReplicas=2,
        terminatingReplicas=1,
        observedGeneration=2,
    )
    assert verdict == Wake(timedelta(seconds=5), "2 of 4 replicas available; waiting for minReadySeconds")


def test_a_replicationcontroller_does_not_count_terminating_pods() -> None:
    owner = ReplicationController(
        metadata=rs().metadata,
        spec=ReplicationControllerSpec(replicas=1, selector=LABELS, template=rs().spec.template),
    )
    actions, _ = walk(replicationcontroller.decide(see(owner, pod("a"), pod("b", going=True)), NOW))
    assert status_of(actions) == ReplicationControllerStatus(
        replicas=1, fullyLabeledReplicas=1, readyReplicas=1, availableReplicas=1, observedGeneration=2
    )


@given(
    st.integers(0, 20),
    st.lists(st.sampled_from(["ready", "starting", "done", "going", "orphan"]), max_size=20),
)
def test_a_round_never_overshoots(wanted: int, states: list[str]) -> None:
    """After the round there are exactly as many active pods as wanted, whatever there was before."""
    pods = [
        pod(
            f"p{n}",
            ready=60 if state == "ready" else None,
            phase="Failed" if state == "done" else "Running",
            going=state == "going",
            owned=state != "orphan",
        )
        for n, state in enumerate(states)
    ]
    actions, _ = walk(decide(see(rs(wanted), *pods), NOW))
    tally = counts(actions)
    active = sum(state in ("ready", "starting", "orphan") for state in states)
    assert active + tally.get("Create", 0) - tally.get("Delete", 0) == wanted
    assert not (tally.get("Create") and tally.get("Delete"))


# -- nonsense ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "words"), [(-1, "spec.replicas is -1"), (None, "spec.replicas is missing")]
)
def test_an_impossible_number_of_replicas_fails_its_own_round(replicas: int | None, words: str) -> None:
    with pytest.raises(InvalidSpec, match=words):
        walk(decide(see(rs(replicas)), NOW))


@pytest.mark.parametrize("selector", [None, LabelSelector(), LabelSelector(matchLabels={"a": "not valid!"})])
def test_a_set_that_selects_nothing_everything_or_nonsense_is_left_alone(
    selector: LabelSelector | None,
) -> None:
    owner = msgspec.structs.replace(rs(1), spec=msgspec.structs.replace(rs(1).spec, selector=selector))
    actions, verdict = walk(decide(see(owner, pod("a", owned=False)), NOW))
    assert actions == []
    assert isinstance(verdict, Rest)
    assert verdict.because.startswith("invalid selector: ")


# -- which sets a pod concerns ----------------------------------------------------------------


class Caches:
    """Stores filled by hand."""

    memory = None

    def __init__(self, *objects: Any) -> None:
        self.stores: dict[str, Store[Any]] = {}
        for kind in (PODS, REPLICASETS, REPLICATIONCONTROLLERS):
            store = self.stores[kind.resource] = Store()
            for name, index in CONTROLLED.items():
                store.add_index(name, index)
        for obj in objects:
            self.stores["pods" if isinstance(obj, Pod) else "replicasets.apps"].put(obj)

    def __getitem__(self, kind: Any) -> Store[Any]:
        return self.stores[kind.resource]

    @property
    def all_objects(self) -> AllObjects:
        raise LookupError("ReplicaSets follow no other resources")

    def monotonic(self) -> float:
        return 0.0


WEB = [Key("default", "web")]


@pytest.mark.parametrize(
    ("old", "new", "keys"),
    [
        (None, pod("a"), WEB),
        (pod("a"), None, WEB),
        (pod("a"), pod("a", ready=None), WEB),
        (None, pod("a", owned=False), WEB),
        (None, pod("a", owned=False, labels={"app": "x"}), []),
        (None, pod("a", owned=False, going=True), []),
        (pod("a", owned=False), pod("a", owned=False, ready=None), []),
        (pod("a", owned=False, labels={"app": "x"}), pod("a", owned=False), WEB),
        (pod("a"), pod("a", owned=False, labels={"app": "x"}), WEB),
        (pod("a", owned=False), None, []),
    ],
)
def test_a_pod_concerns_its_controller_or_for_an_orphan_who_selects_it(
    old: Pod | None, new: Pod | None, keys: list[Key]
) -> None:
    assert list(dict.fromkeys(enqueue_owner(Caches(rs()), Change(old, new)))) == keys


def test_a_set_of_the_same_name_but_another_uid_is_not_concerned() -> None:
    other = msgspec.structs.replace(rs(), metadata=msgspec.structs.replace(rs().metadata, uid="new"))
    assert list(enqueue_owner(Caches(other), Change(None, pod("a")))) == []


def test_related_pods_are_those_of_the_other_sets_with_the_same_controller() -> None:
    parent = OwnerReference(kind="Deployment", name="web", uid="d", controller=True)

    def child(name: str, uid: str) -> ReplicaSet:
        meta = msgspec.structs.replace(rs().metadata, name=name, uid=uid, ownerReferences=(parent,))
        return msgspec.structs.replace(rs(1), metadata=meta)

    def of(owner: str, uid: str, name: str, node: str) -> Pod:
        plain = pod(name, node=node)
        reference = msgspec.structs.replace(OWNER, name=owner, uid=uid)
        meta = msgspec.structs.replace(plain.metadata, ownerReferences=(reference,))
        return msgspec.structs.replace(plain, metadata=meta)

    caches = Caches(
        child("web", "rs"),
        child("old", "rs-old"),
        pod("a", node="n1"),
        pod("b", node="n2"),
        of("old", "rs-old", "c", "n2"),
    )
    seen = replicaset.see(caches, Key("default", "web"))
    assert seen is not None
    assert seen.related == {"n2": 1}


def test_both_kinds_have_upstreams_names() -> None:
    assert (replicaset.name, replicaset.service_account) == ("replicaset-controller", "replicaset-controller")
    assert (replicationcontroller.name, replicationcontroller.service_account) == (
        "replicationcontroller-controller",
        "replication-controller",
    )
