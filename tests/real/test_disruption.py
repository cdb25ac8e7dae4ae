"""Disruption budgets on a real API server: steersman and kube-controller-manager count the same.

The owners of the pods are there and nobody works for them, so that there are as many pods as the story has made.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.api.errors import TooManyRequests
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS, REPLICASETS, REPLICATIONCONTROLLERS, Object
from steersman.api.kinds.policy import PODDISRUPTIONBUDGETS, PodDisruptionBudget
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.pods import is_ready
from steersman.api.scheme import Kind

Document = dict[str, Any]
CONFIGMAPS = load("", "v1", "ConfigMap")
GAMES: Kind[Object] = Kind("example.com", "v1", "Game", "games", True, Object)


def budget(name: str, **spec: Any) -> Document:
    """A budget for the pods of that name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, **spec},
    }


def pod(app: str, number: int, owner: Document | None = None, on: str = "node-1") -> Document:
    meta: Document = {"name": f"{app}-{number}", "labels": {"app": app}}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    spec = {"nodeName": on, "containers": [{"name": "main", "image": "example/app:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def owned_by(kind: Kind[Any], name: str, uid: str) -> Document:
    return {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid, "controller": True}


def workload(kind: Kind[Any], name: str, replicas: int, owner: Document | None = None) -> Document:
    selector: Document = {"app": name} if kind is REPLICATIONCONTROLLERS else {"matchLabels": {"app": name}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "example/app:1"}]},
    }
    spec: Document = {"replicas": replicas, "selector": selector, "template": template}
    if kind is STATEFULSETS:
        spec["serviceName"] = name
    if kind is GAMES:
        spec = {"players": replicas}
    meta: Document = {"name": name, "ownerReferences": [owner] if owner else []}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta, "spec": spec}


RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
"""And serves nobody."""
BUDGETS = (
    budget("number", minAvailable=2),
    budget("spare", minAvailable=1),
    budget("share", minAvailable="50%"),
    budget("set", maxUnavailable="34%"),
    budget("stateful", maxUnavailable=1),
    budget("classic", maxUnavailable="25%"),
    budget("game", maxUnavailable=1),
    budget("generous", maxUnavailable="100%"),
    budget("limitless"),
    budget("nobodys", maxUnavailable=1),
    budget("none", minAvailable=1),
    budget("orphaned", maxUnavailable=1),
    budget("ghost", maxUnavailable=1),
    budget("core-ghost", maxUnavailable=1),
    budget("older", maxUnavailable=1),
    budget("unscaled", maxUnavailable=1),
    budget("unready", minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow"),
    budget("cautious", minAvailable=2, unhealthyPodEvictionPolicy="IfHealthyBudget"),
    budget("charged", minAvailable=1),
    {
        **budget("broad"),
        "spec": {
            "minAvailable": 1,
            "selector": {
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["broad", "other"]}]
            },
        },
    },
    {**budget("other", minAvailable=1), "metadata": {"name": "other"}},
)


FAILING = ("orphaned", "ghost", "core-ghost", "older", "unscaled")
"""Budgets of pods whose owner has no replicas that could be counted."""


async def owners(stage: Any) -> dict[str, Document]:
    """Who controls the pods, by the name of their budget."""
    await stage.establish("games")
    found: dict[str, Document] = {}

    async def make(kind: Kind[Any], name: str, replicas: int, owner: Document | None = None) -> Document:
        made = await stage.api.create(kind, stage.namespace, workload(kind, name, replicas, owner))
        found[name] = owned_by(kind, name, made.metadata.uid)
        return found[name]

    deployment = await make(DEPLOYMENTS, "share", 5)
    await make(REPLICASETS, "share", 3, deployment)
    await make(REPLICASETS, "set", 3)
    await make(REPLICASETS, "generous", 3)
    await make(REPLICASETS, "limitless", 3)
    await make(STATEFULSETS, "stateful", 3)
    await make(REPLICATIONCONTROLLERS, "classic", 3)
    game = await make(GAMES, "game", 4)
    found["older"] = {**game, "apiVersion": "example.com/v1alpha1"}
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unscaled"}}
    made = await stage.api.create(CONFIGMAPS, stage.namespace, data)
    found["unscaled"] = owned_by(CONFIGMAPS, "unscaled", made.metadata.uid)
    found["orphaned"] = owned_by(REPLICASETS, "no-such", "no-such")
    found["ghost"] = {
        "apiVersion": "example.com/v1",
        "kind": "Ghost",
        "name": "g",
        "uid": "g",
        "controller": True,
    }
    found["core-ghost"] = {**found["ghost"], "apiVersion": "v1"}
    return found


async def before(stage: Any) -> None:
    """Pods, and who controls them; budgets come when somebody is there to count."""
    owner = await owners(stage)
    threefold = ("number", "spare", "share", "set", "stateful", "classic", "game", "generous", "nobodys")
    for app in (*threefold, "limitless"):
        await stage.create(PODS, *(pod(app, number, owner.get(app)) for number in range(3)))
    for app in (*FAILING, "broad", "other", "stale", "timeless"):
        await stage.create(PODS, pod(app, 0, owner.get(app)))
    for app in ("unready", "cautious"):
        await stage.create(PODS, pod(app, 0), pod(app, 1, on="no-such"))
        await stage.patch(PODS, f"{app}-1", {"status": RUNS}, subresource="status")
    await stage.create(PODS, *(pod("charged", number) for number in range(3)))


def counted(*, allowed: int, healthy: int, expected: int) -> Callable[[PodDisruptionBudget], bool]:
    wanted = (allowed, healthy, expected)

    def met(one: PodDisruptionBudget) -> bool:
        status = one.status
        return (status.disruptionsAllowed, status.currentHealthy, status.expectedPods) == wanted

    return met


def failed(one: PodDisruptionBudget) -> bool:
    return any(condition.reason == "SyncFailed" for condition in one.status.conditions)


async def evict(stage: Any, name: str) -> str:
    """Ask for a pod to go; what the API server says to it."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        await stage.api.subresource(PODS, stage.namespace, name, "eviction", body)
    except TooManyRequests as error:
        return str(error)
    await stage.until(PODDISRUPTIONBUDGETS, name.partition("-")[0], lambda one: not one.status.disruptedPods)
    return "evicted"


def stamp(ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def tell(stage: Any) -> Document:
    for number in range(3):
        await stage.until(PODS, f"charged-{number}", is_ready)
    await stage.create(PODDISRUPTIONBUDGETS, *BUDGETS)
    async with asyncio.TaskGroup() as tasks:
        for name, allowed, healthy, expected in (
            ("number", 1, 3, 3),
            ("spare", 2, 3, 3),
            ("share", 0, 3, 5),
            ("set", 2, 3, 3),
            ("stateful", 1, 3, 3),
            ("classic", 1, 3, 3),
            ("game", 0, 3, 4),
            ("generous", 3, 3, 3),
            ("nobodys", 0, 3, 0),
            ("limitless", 0, 3, 0),
            ("unready", 0, 1, 2),
            ("cautious", 0, 1, 2),
            ("charged", 2, 3, 3),
            ("broad", 1, 2, 2),
            ("other", 0, 1, 1),
        ):
            met = counted(allowed=allowed, healthy=healthy, expected=expected)
            tasks.create_task(stage.until(PODDISRUPTIONBUDGETS, name, met))
        for name in FAILING:
            tasks.create_task(stage.until(PODDISRUPTIONBUDGETS, name, failed))
        for reason, name in (("NoPods", "none"), ("UnmanagedPods", "nobodys")):
            tasks.create_task(stage.told(reason, name))
    answers = {
        name: await evict(stage, name)
        for name in ("number-0", "unready-0", "unready-1", "cautious-1", "limitless-0")
    }
    await stage.until(PODDISRUPTIONBUDGETS, "number", counted(allowed=0, healthy=2, expected=2))
    answers["number-1"] = await evict(stage, "number-1")
    # Somebody was allowed to evict these and never did: the first a moment ago, the second long ago.
    charges = {"charged-0": stamp(1), "charged-1": stamp(600), "no-such": stamp(1)}
    await stage.patch(
        PODDISRUPTIONBUDGETS, "charged", {"status": {"disruptedPods": charges}}, subresource="status"
    )
    await stage.told("NotDeleted", "charged-1")
    await stage.until(PODDISRUPTIONBUDGETS, "charged", counted(allowed=1, healthy=2, expected=3))
    # Pods that were said to be disrupted, and were not.
    for name, reason in (("stale-0", "EvictionByEvictionAPI"), ("spare-0", "TerminationByKubelet")):
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "soon"}
        conditions = [{**condition, "lastTransitionTime": stamp(600)}]
        await stage.patch(PODS, name, {"status": {"conditions": conditions}}, subresource="status")
    undated = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    await stage.patch(PODS, "timeless-0", {"status": {"conditions": [undated]}}, subresource="status")
    for name in ("stale-0", "timeless-0"):
        await stage.until(PODS, name, lambda one: targeted(one) == "False")
    # What is wanted changes, and so do pods: the reference manager looks at owners only when pods change.
    await stage.patch(DEPLOYMENTS, "share", {"spec": {"replicas": 4}})
    await stage.patch(GAMES, "game", {"spec": {"players": 3}})
    for name in ("share-0", "game-0", "other-0"):
        await stage.patch(PODS, name, {"metadata": {"annotations": {"example/look": "again"}}})
    await stage.until(PODDISRUPTIONBUDGETS, "share", counted(allowed=1, healthy=3, expected=4))
    await stage.until(PODDISRUPTIONBUDGETS, "game", counted(allowed=1, healthy=3, expected=3))
    await stage.told("MultiplePodDisruptionBudgets", "other-0")
    await stage.patch(PODDISRUPTIONBUDGETS, "set", {"spec": {"maxUnavailable": 0}})
    await stage.until(PODDISRUPTIONBUDGETS, "set", counted(allowed=0, healthy=3, expected=3))
    page = await stage.api.list(PODS.untyped, stage.namespace)
    targets = {one["metadata"]["name"]: target(one) for one in page.items if target(one) is not None}
    return {"answers": answers, "targets": targets}


def targeted(one: Any) -> str:
    return next((c.status for c in one.status.conditions if c.type == "DisruptionTarget"), "")


def target(document: Document) -> Document | None:
    """What a pod says of being disrupted, but when."""
    for condition in document["status"].get("conditions", ()):
        if condition["type"] == "DisruptionTarget":
            return {key: value for key, value in condition.items() if not key.endswith("Time")}
    return None


def timeless(end: dict[str, Any]) -> dict[str, Any]:
    """The same, whenever it was, and however often somebody looked."""
    for event in end["events"]:
        # The reference manager settles on any of several.
        event["message"] = re.sub(r'Chose "[a-z]+"', "Chose one", event["message"])
        event["count"] = None
    charged = end["poddisruptionbudgets"]["charged"]["status"]
    charged["disruptedPods"] = sorted(charged["disruptedPods"])
    return end


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found = both(
        tell,
        "budgets",
        before=before,
        controllers=("disruption-controller",),
        kinds=(PODDISRUPTIONBUDGETS, PODS),
    )
    return {binary: timeless(end) for binary, end in found.items()}


def test_a_budget_lets_go_what_it_can_spare(ends: dict[str, dict[str, Any]]) -> None:
    answers = ends["steersman"]["answers"]
    assert answers["number-0"] == "evicted"
    assert "violate the pod's disruption budget" in answers["number-1"]
    assert answers["unready-1"] == "evicted", "it serves nobody, and its budget does not mind"
    assert "violate the pod's disruption budget" in answers["cautious-1"]
    assert "violate the pod's disruption budget" in answers["limitless-0"]
    assert ends["steersman"]["targets"]["stale-0"]["status"] == "False"


@pytest.mark.parametrize("what", ["poddisruptionbudgets", "pods", "events", "answers", "targets"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
