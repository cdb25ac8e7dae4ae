"""disruption: the arithmetic of budgets in rows, and a budget in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import Conflict, NotFound, ServerError
from steersman.api.kinds import (
    Condition,
    Deployment,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodStatus,
    ReplicaSet,
)
from steersman.api.kinds.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from steersman.api.label_selectors import format_as_go
from steersman.api.scheme import Key
from steersman.controllers.disruption import controller
from steersman.controllers.disruption.status import (
    DELETION_TIMEOUT,
    count_healthy,
    desired_healthy,
    new_status,
)
from steersman.intent.actions import Action, Address, Discover, Emit, Patch, Read, UpdateStatus
from steersman.intent.controller import Change
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake
from steersman.testing.cluster import Cluster
from steersman.testing.decision_driver import USUAL, StaticCaches, walk

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
BEFORE = NOW - timedelta(hours=1)
WEB = {"app": "web"}


def budget(
    *,
    name: str = "b",
    least: int | str | None = None,
    most: int | str | None = None,
    granted: Mapping[str, datetime] | None = None,
    select: Any = LabelSelector(matchLabels=WEB),
) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="d", uid=name, generation=3),
        spec=PodDisruptionBudgetSpec(minAvailable=least, maxUnavailable=most, selector=select),
        status=PodDisruptionBudgetStatus(disruptedPods=granted or {}),
    )


W = TypeVar("W", ReplicaSet, Deployment)


def pod(name: str, *, ready: bool = True, owner: str = "rs", going: bool = False, **status: Any) -> Pod:
    kind = {
        "rs": ("apps/v1", "ReplicaSet"),
        "thing": ("example.com/v1", "Thing"),
        "old-thing": ("example.com/v1alpha1", "Thing"),
        "ghost": ("v1", "Ghost"),
        "job": ("batch/v1", "Job"),
    }
    owners: tuple[OwnerReference, ...] = ()
    if owner:
        version, word = kind[owner]
        owners = (OwnerReference(apiVersion=version, kind=word, name=owner, uid=owner, controller=True),)
    conditions = (Condition(type="Ready", status="True" if ready else "False"), *status.pop("conditions", ()))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="d",
            uid=name,
            resourceVersion="7",
            labels=WEB,
            ownerReferences=owners,
            deletionTimestamp=NOW if going else None,
        ),
        status=PodStatus(phase=status.pop("phase", "Running"), conditions=conditions),
    )


def rs(replicas: int, owner: str = "") -> ReplicaSet:
    owners: tuple[OwnerReference, ...] = ()
    if owner:
        owners = (
            OwnerReference(apiVersion="apps/v1", kind="Deployment", name=owner, uid=owner, controller=True),
        )
    made = ReplicaSet(metadata=ObjectMeta(name="rs", namespace="d", uid="rs", ownerReferences=owners))
    return _sized(made, replicas)


def deployment(replicas: int) -> Deployment:
    return _sized(Deployment(metadata=ObjectMeta(name="dep", namespace="d", uid="dep")), replicas)


def _sized(obj: W, replicas: int) -> W:
    return msgspec.structs.replace(obj, spec=msgspec.structs.replace(obj.spec, replicas=replicas))


def look(of: PodDisruptionBudget, *objects: Any, answers: Any = None) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, of, *objects), of.key)
    assert seen is not None
    return walk(controller.decide(seen, NOW), answers)


def written(actions: list[Action[Any]]) -> PodDisruptionBudgetStatus:
    (update,) = (action for action in actions if isinstance(action, UpdateStatus))
    assert isinstance(update.status, PodDisruptionBudgetStatus)
    return update.status


@pytest.mark.parametrize(
    ("of", "expected", "desired"),
    [
        (budget(least=2), 5, 2),
        (budget(least="50%"), 5, 3),
        (budget(least="0%"), 5, 0),
        (budget(most=1), 5, 4),
        (budget(most="30%"), 5, 3),
        (budget(most="100%"), 5, 0),
        (budget(most=9), 5, 0),
        (budget(), 5, 0),
    ],
)
def test_how_many_must_stay_is_rounded_up(of: PodDisruptionBudget, expected: int, desired: int) -> None:
    assert desired_healthy(of, expected) == desired


def test_a_number_counts_the_pods_there_are() -> None:
    made = written(look(budget(least=1), pod("a"), pod("b"), pod("c", ready=False), pod("x", owner=""))[0])
    assert (made.currentHealthy, made.desiredHealthy, made.expectedPods, made.disruptionsAllowed) == (
        3,
        1,
        4,
        2,
    )
    assert made.observedGeneration == 3
    assert made.conditions == (
        Condition(
            type="DisruptionAllowed",
            status="True",
            observedGeneration=3,
            reason="SufficientPods",
            lastTransitionTime=NOW,
        ),
    )


def test_a_share_is_of_what_the_owner_wants() -> None:
    made = written(look(budget(least="50%"), pod("a"), rs(10))[0])
    assert (made.expectedPods, made.desiredHealthy, made.disruptionsAllowed) == (10, 5, 0)
    assert made.conditions[0].reason == "InsufficientPods"


@pytest.mark.parametrize("owner", ["rs", ""])
def test_a_budget_that_sets_no_limit_expects_no_pods_and_allows_no_disruption(owner: str) -> None:
    actions, verdict = look(budget(), pod("a", owner=owner), pod("b", owner=owner))
    made = written(actions)
    counts = (made.currentHealthy, made.desiredHealthy, made.expectedPods, made.disruptionsAllowed)
    assert counts == (2, 0, 0, 0)
    assert [(one.status, one.reason) for one in made.conditions] == [("False", "InsufficientPods")]
    assert verdict == Rest("0 disruptions allowed")
    assert not [one for one in actions if isinstance(one, Emit)]


def test_a_deployment_decides_for_its_sets() -> None:
    made = written(look(budget(most=1), pod("a"), rs(3, "dep"), deployment(8))[0])
    assert made.expectedPods == 8


THING = ApiResource("example.com", "v1", "Thing", "things", True, ("get",), ("scale",))
JOB = ApiResource("batch", "v1", "Job", "jobs", True, ("get",), ("status",))
SERVED = DiscoveryResult((THING, JOB))


def scaled(replicas: int, uid: str = "thing") -> dict[str, Any]:
    return {"metadata": {"uid": uid}, "spec": {"replicas": replicas}}


def test_any_owner_with_a_scale_is_asked_once() -> None:
    actions, _ = look(
        budget(most=1),
        pod("a", owner="thing"),
        pod("b", owner="thing"),
        answers={Discover: SERVED, Read: scaled(4)},
    )
    assert len([one for one in actions if isinstance(one, Read)]) == 1
    assert written(actions).expectedPods == 4


@pytest.mark.parametrize(
    ("owner", "answer", "why"),
    [
        ("thing", scaled(4, "another"), 'found no controllers for pod "a"'),
        ("thing", NotFound("gone"), 'found no controllers for pod "a"'),
        ("job", NotFound("no scale"), "jobs.batch does not implement the scale subresource"),
        ("rs", scaled(1), 'no matches for kind "ReplicaSet" in version "apps/v1"'),
        ("old-thing", scaled(4), 'no matches for kind "Thing" in version "example.com/v1alpha1"'),
        ("ghost", scaled(4), 'no matches for kind "Ghost" in version "v1"'),
        ("thing", ServerError("down"), "down"),
    ],
)
def test_where_nobody_can_tell_nothing_may_be_disrupted(owner: str, answer: Any, why: str) -> None:
    said: list[Action[Any]] = []
    of = budget(most=1)
    seen = controller.see(StaticCaches(controller, of, pod("a", owner=owner)), of.key)
    assert seen is not None
    with pytest.raises(InvalidSpec):
        walk(controller.decide(seen, NOW), {Discover: SERVED, Read: answer}, recorded=said)
    made = written(said)
    assert made.disruptionsAllowed == 0
    assert (made.conditions[0].reason, made.conditions[0].message) == ("SyncFailed", why)
    event = next(one for one in said if isinstance(one, Emit))
    assert event.reason == "CalculateExpectedPodCountFailed"
    assert event.message == f"Failed to calculate the number of expected pods: {why}"


def test_a_conflict_is_no_failure_of_the_budget() -> None:
    with pytest.raises(Conflict):
        look(budget(least=1), pod("a"), answers={UpdateStatus: Conflict("changed")})


def test_pods_that_nobody_controls_are_told_of() -> None:
    actions, _ = look(budget(most=1), pod("a", owner=""))
    event = next(one for one in actions if isinstance(one, Emit))
    assert event.reason == "UnmanagedPods"
    assert (
        "(selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:"
        in event.message
    )


def test_a_selector_is_printed_as_go_does() -> None:
    rule = LabelSelectorRequirement(key="a", operator="In", values=("b", "c"))
    assert format_as_go(LabelSelector(matchExpressions=(rule,))) == (
        "&LabelSelector{MatchLabels:map[string]string{},"
        "MatchExpressions:[]LabelSelectorRequirement{LabelSelectorRequirement{Key:a,Operator:In,Values:[b c],},},}"
    )


def test_an_eviction_that_was_granted_counts_as_gone_for_two_minutes() -> None:
    granted = {"a": NOW - timedelta(seconds=30), "gone": BEFORE}
    actions, verdict = look(budget(least=1, granted=granted), pod("a"), pod("b"))
    made = written(actions)
    assert made.currentHealthy == 1
    assert dict(made.disruptedPods) == {"a": granted["a"]}
    assert verdict == Wake(timedelta(seconds=90), "0 disruptions allowed; an evicted pod is not deleted yet")


@pytest.mark.parametrize("granted", [BEFORE, NOW - DELETION_TIMEOUT])
def test_a_pod_that_was_not_evicted_after_all_counts_again_and_is_told_of(granted: datetime) -> None:
    actions, _ = look(budget(least=1, granted={"a": granted}), pod("a"), pod("b"))
    made = written(actions)
    assert made.currentHealthy == 2
    assert not made.disruptedPods
    event = next(one for one in actions if isinstance(one, Emit))
    assert (event.reason, event.message) == (
        "NotDeleted",
        "Pod was expected by PDB d/d to be deleted but it wasn't",
    )


def test_nothing_is_written_where_nothing_is_new() -> None:
    of = budget(least=1)
    first = written(look(of, pod("a"), pod("b"))[0])

    again = msgspec.structs.replace(of, status=first)
    actions, verdict = look(again, pod("a"), pod("b"))
    assert actions == []
    assert verdict == Rest("1 disruptions allowed")


def test_a_budget_without_pods_says_so() -> None:
    event = look(budget(least=1))[0][0]
    assert isinstance(event, Emit)
    assert (event.type, event.reason, event.message) == ("Normal", "NoPods", "No matching pods found")


def test_one_of_two_budgets_tells_of_pods_that_both_select() -> None:
    one, other = budget(name="a", least=1), budget(name="b", least=1)
    told = [action for action in look(one, other, pod("p"))[0] if isinstance(action, Emit)]
    assert [event.reason for event in told] == ["MultiplePodDisruptionBudgets"]
    assert told[0].message.endswith('Chose "a" arbitrarily.')
    assert not [action for action in look(other, one, pod("p"))[0] if isinstance(action, Emit)]


@given(
    pods=st.lists(st.booleans(), max_size=8),
    least=st.one_of(st.integers(0, 10), st.integers(0, 100).map(lambda n: f"{n}%")),
)
def test_what_is_allowed_never_leaves_too_few(pods: list[bool], least: int | str) -> None:
    of = budget(least=least)
    some = [pod(f"p{number}", ready=ready) for number, ready in enumerate(pods)]
    current, desired = count_healthy(some, {}), desired_healthy(of, len(some))
    made = new_status(of, current, desired, len(some), {}, NOW)
    assert made.disruptionsAllowed >= 0
    assert not made.disruptionsAllowed or current - made.disruptionsAllowed >= desired


TARGET = Condition(
    type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI", lastTransitionTime=BEFORE
)


def _pod_round(of: Pod) -> tuple[list[Action[Any]], Verdict]:
    seen = controller.see(StaticCaches(controller, of), Key("d", f"pod/{of.metadata.name}"))
    assert seen is not None
    return walk(controller.decide(seen, NOW), lambda action: USUAL)


def test_a_pod_that_was_not_disrupted_is_no_longer_said_to_be() -> None:
    (patch,), _ = _pod_round(pod("a", conditions=(TARGET,)))
    assert isinstance(patch, Patch)
    assert patch.subresource == "status"
    (condition,) = patch.body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionTarget",
        "False",
        None,
    )
    assert patch.body["metadata"] == {"uid": "a", "resourceVersion": "7"}


@pytest.mark.parametrize(
    "of",
    [
        pod("a"),
        pod("a", going=True, conditions=(TARGET,)),
        pod("a", phase="Failed", conditions=(TARGET,)),
        pod(
            "a",
            conditions=(Condition(type="DisruptionTarget", status="True", reason="TerminationByKubelet"),),
        ),
    ],
)
def test_a_pod_that_is_going_or_gone_is_left_alone(of: Pod) -> None:
    assert _pod_round(of)[0] == []


def test_a_disruption_target_without_a_time_is_stale_at_once() -> None:
    timeless = msgspec.structs.replace(TARGET, lastTransitionTime=None)
    of = pod("a", conditions=(timeless,))
    (patch,), _ = _pod_round(of)
    assert isinstance(patch, Patch)
    assert list(controller.watches[1].to(StaticCaches(controller), Change(None, of))) == [Key("d", "pod/a")]


def test_a_scale_is_read_in_the_preferred_version() -> None:
    newer = msgspec.structs.replace(THING, version="v2")
    actions, _ = look(
        budget(most=1),
        pod("a", owner="thing"),
        answers={Discover: DiscoveryResult((newer, THING)), Read: scaled(4)},
    )
    (read,) = (one for one in actions if isinstance(one, Read))
    assert isinstance(read.target, Address)
    assert read.target.kind.version == "v2"
    assert written(actions).expectedPods == 4


def test_a_disruption_has_two_minutes() -> None:
    young = msgspec.structs.replace(TARGET, lastTransitionTime=NOW - timedelta(seconds=100))
    assert _pod_round(pod("a", conditions=(young,)))[1] == Wake(
        timedelta(seconds=20), "DisruptionTarget condition not stale yet"
    )


def test_a_pod_is_a_reason_to_look_at_every_budget_that_selects_it() -> None:
    caches = StaticCaches(
        controller, budget(name="a"), budget(name="b", select=LabelSelector(matchLabels={"x": "y"}))
    )
    to = controller.watches[1].to
    assert list(to(caches, Change(None, pod("p")))) == [Key("d", "a")]
    assert list(to(caches, Change(pod("p"), pod("p", conditions=(TARGET,))))) == [
        Key("d", "a"),
        Key("d", "pod/p"),
    ]


def test_a_budget_in_a_cluster_lets_go_as_many_as_it_can_spare() -> None:
    with Cluster(seed=2) as cluster:
        cluster.apply(
            """
            apiVersion: policy/v1
            kind: PodDisruptionBudget
            metadata: {name: web}
            spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
            ---
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: web}
            spec:
              replicas: 3
              selector: {matchLabels: {app: web}}
              template:
                metadata: {labels: {app: web}}
                spec: {containers: [{name: c, image: app:1}]}
            """
        )
        cluster.settle()
        made = cluster.get("PodDisruptionBudget", "web").status
        assert (made.currentHealthy, made.desiredHealthy, made.expectedPods, made.disruptionsAllowed) == (
            3,
            2,
            3,
            1,
        )
        cluster.scale("Deployment", "web", replicas=2)
        cluster.settle()
        assert cluster.get("PodDisruptionBudget", "web").status.disruptionsAllowed == 0
