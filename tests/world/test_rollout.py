"""The whole plane in one process under virtual time: server, nodes, controllers."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.errors import Forbidden, Unreachable
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, JOBS, PODS, REPLICASETS, SERVICEACCOUNTS
from steersman.api.pods import is_active
from steersman.api.scheme import Key, Kind
from steersman.controllers import CONTROLLERS
from steersman.intent.verdict import Rest
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Failure
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.nodes import Nodes
from steersman.sim.world import World

EVENTS = load("", "v1", "Event")


def workload(replicas: int = 3, image: str = "app:1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            **spec,
        },
    }


class Plane:
    """A world with nodes and a manager, in the words of a test."""

    def __init__(self, seed: int, api: type[LocalApi] = LocalApi) -> None:
        self.world = World(seed)
        self.api = self.world.api()
        self.writer = api(self.world.server, User("manager"))
        nodes = Nodes(self.world.api("nodes"), self.world, start_delay=1.0)
        self.world.spawn(nodes.run(), name="nodes")
        self.start()

    def start(self) -> None:
        """A fresh manager: all it knows, it has to read."""
        self.fleet = ControllerGroup(CONTROLLERS, self.writer, self.world)
        self.manager = self.world.spawn(self.fleet.run(), name="manager")

    def create(self, kind: Kind[Any], body: dict[str, Any]) -> Any:
        return self.world.run(self.api.create(kind, "default", body))

    def patch(self, body: dict[str, Any]) -> None:
        self.world.run(self.api.patch(DEPLOYMENTS, "default", "web", body))

    def get(self, kind: Kind[Any] = DEPLOYMENTS, name: str = "web") -> Any:
        return self.world.run(self.api.get(kind, "default", name))

    def list(self, kind: Kind[Any]) -> list[Any]:
        return self.world.run(self.api.list(kind, "default")).items

    def settle(self, horizon: float = 10.0) -> None:
        self.world.run(self.world.settle(horizon))

    @property
    def pods(self) -> builtins.list[Any]:
        return [pod for pod in self.list(PODS) if is_active(pod)]

    def condition(self, type_: str) -> Any:
        return next((c for c in self.get().status.conditions if c.type == type_), None)


@pytest.fixture
def plane() -> Iterator[Plane]:
    made = Plane(seed=7)
    yield made
    made.world.close()


def test_a_deployment_gets_its_pods_and_says_so(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, workload(3))
    plane.settle()
    status = plane.get().status
    assert (status.replicas, status.updatedReplicas, status.availableReplicas) == (3, 3, 3)
    assert status.unavailableReplicas == 0
    assert plane.condition("Progressing").reason == "NewReplicaSetAvailable"
    assert len(plane.pods) == 3
    rounds = plane.fleet.trace.rounds("deployment-controller", Key("default", "web"))
    assert rounds[-1].ending == Rest("3 of 3 replicas updated and available")


def test_every_namespace_gets_its_default_account(plane: Plane) -> None:
    plane.settle()
    accounts = plane.world.run(plane.api.list(SERVICEACCOUNTS)).items
    names = [account.metadata.namespace for account in accounts]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_a_roll_never_has_too_many_pods_and_never_too_few_available(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, workload(10))
    plane.settle()
    seen: list[tuple[int, int]] = []

    def look(commit: Any) -> None:
        if commit.resource == "deployments.apps":
            status = commit.obj.status
            seen.append((status.replicas, status.availableReplicas))

    plane.world.server.store.commit_hooks.append(look)
    plane.patch({"spec": workload(10, "app:2")["spec"]})
    plane.settle()
    assert len(seen) > 3
    assert max(total for total, _ in seen) <= 13, "replicas + 25 % surge"
    assert min(available for _, available in seen) >= 8, "replicas - 25 % unavailable"
    images = {pod.spec.containers[0].image for pod in plane.pods}
    assert images == {"app:2"}


def test_a_bad_image_ends_at_the_deadline_to_the_second(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, workload(2, "bad", progressDeadlineSeconds=600))
    plane.settle(horizon=700)
    condition = plane.condition("Progressing")
    assert (condition.status, condition.reason) == ("False", "ProgressDeadlineExceeded")
    last_progress = condition.lastUpdateTime - plane.get().metadata.creationTimestamp
    assert 600 <= last_progress.total_seconds() <= 603


def test_a_pod_is_available_at_the_very_instant_its_min_ready_seconds_are_over(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, workload(1, minReadySeconds=30))
    plane.settle(horizon=5)
    assert plane.get().status.availableReplicas == 0
    (pod,) = plane.pods
    ready = next(c for c in pod.status.conditions if c.type == "Ready").lastTransitionTime
    at: list[float] = []

    def look(commit: Any) -> None:
        if commit.resource == "replicasets.apps" and commit.obj.status.availableReplicas:
            at.append((plane.world.now() - ready).total_seconds())

    plane.world.server.store.commit_hooks.append(look)
    plane.settle(horizon=60)
    assert at
    assert at[0] == 30.0


def test_a_refused_pod_is_visible_on_the_deployment() -> None:
    class Full(LocalApi):
        async def create(self, kind: Any, namespace: str, body: object) -> Any:
            if kind.resource == "pods":
                raise Forbidden('pods "web-" is forbidden: exceeded quota: q', reason="Forbidden")
            return await super().create(kind, namespace, body)

    plane = Plane(7, Full)
    plane.create(DEPLOYMENTS, workload(3))
    plane.world.run(plane.world.advance(5))
    condition = plane.condition("ReplicaFailure")
    assert (condition.status, condition.reason) == ("True", "FailedCreate")
    assert "exceeded quota" in condition.message
    reasons = [event.reason for event in plane.list(EVENTS)]
    assert "FailedCreate" in reasons
    plane.world.close()


def test_answers_that_are_lost_make_no_surplus_pods() -> None:
    """The write happened, the answer did not arrive: the server is asked before anything is repeated."""

    class Lossy(LocalApi):
        lost = 0

        async def create(self, kind: Any, namespace: str, body: object) -> Any:
            made = await super().create(kind, namespace, body)
            if kind.resource == "pods" and Lossy.lost < 4:
                Lossy.lost += 1
                raise Unreachable("the connection broke", uncertain=True)
            return made

    plane = Plane(7, Lossy)
    plane.create(DEPLOYMENTS, workload(5))
    created: list[str] = []
    plane.world.server.store.commit_hooks.append(
        lambda commit: created.append(commit.obj.metadata.uid) if commit.resource == "pods" else None
    )
    plane.settle()
    assert Lossy.lost == 4
    assert len(plane.pods) == 5
    assert len(set(created)) == 5, "no pod was created twice"
    plane.world.close()


def test_a_manager_that_dies_half_way_is_continued_by_the_next(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, workload(8))
    plane.settle()
    plane.patch({"spec": workload(8, "app:2")["spec"]})
    plane.world.run(plane.world.advance(1.5))
    plane.manager.cancel()
    plane.world.run(plane.world.advance(30))
    plane.start()
    plane.settle()
    assert {pod.spec.containers[0].image for pod in plane.pods} == {"app:2"}
    assert len(plane.pods) == 8
    assert len(plane.list(REPLICASETS)) == 2


def test_a_finished_job_expires_when_its_time_has_come(plane: Plane) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {
            "ttlSecondsAfterFinished": 3600,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
        },
    }
    plane.create(JOBS, job)
    now = plane.world.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    ends = [
        {"type": type_, "status": "True", "lastTransitionTime": now}
        for type_ in ("SuccessCriteriaMet", "Complete")
    ]
    done = {"status": {"startTime": now, "completionTime": now, "conditions": ends}}
    plane.world.run(plane.api.patch(JOBS, "default", "once", done, subresource="status"))
    plane.world.run(plane.world.advance(3599))
    assert plane.get(JOBS, "once").metadata.deletionTimestamp is None
    plane.world.run(plane.world.advance(2))
    left = plane.list(JOBS)
    assert not left or left[0].metadata.deletionTimestamp is not None


def test_an_object_that_makes_no_sense_fails_alone(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, workload(2))
    plane.settle()
    (found,) = plane.list(REPLICASETS)
    # Put straight into the store, past all validation, as somebody who edits etcd could.
    store = plane.world.server.store
    meta = replace(
        found.metadata, name="odd", uid="odd", ownerReferences=(), resourceVersion=store.next_version
    )
    store.table("replicasets.apps").put(
        "default/odd", replace(found, metadata=meta, spec=replace(found.spec, replicas=-1))
    )
    plane.patch({"spec": {"replicas": 4}})
    plane.world.run(plane.world.advance(5))
    assert plane.get().status.readyReplicas == 4, "the others go on"
    rounds = plane.fleet.trace.rounds("replicaset-controller", Key("default", "odd"))
    assert any(isinstance(r.ending, Failure) and "spec.replicas is -1" in r.ending.error for r in rounds)


def _journal(seed: int) -> list[str]:
    plane = Plane(seed)
    plane.create(DEPLOYMENTS, workload(4))
    plane.settle()
    plane.patch({"spec": workload(4, "app:2")["spec"]})
    plane.settle()
    lines = plane.fleet.trace.json().decode().splitlines()
    plane.world.close()
    return lines


def test_the_same_seed_gives_the_same_trace() -> None:
    first = _journal(3)
    assert first == _journal(3)
    assert first != _journal(4)
