"""Cascades in a whole plane: what goes with its owner, what stays, and what nobody dares to delete."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import ServiceUnavailable
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, REPLICASETS
from steersman.api.scheme import Kind
from steersman.client.capabilities import REMOTE
from steersman.controllers import CONTROLLERS
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Failure
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.kubelet import Kubelets
from steersman.sim.scheduler import Scheduler
from steersman.sim.world import World

CONFIGMAPS = load("", "v1", "ConfigMap")
EVENTS = load("", "v1", "Event")
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WIDGETS: Kind[dict[str, Any]] = Kind("example.com", "v1", "Widget", "widgets", True, dict)
GC = "garbage-collector-controller"


def workload(name: str = "web", replicas: int = 3) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def owner(kind: Kind[Any], obj: Any, **more: Any) -> dict[str, Any]:
    meta = obj["metadata"] if isinstance(obj, dict) else obj.metadata
    name, uid = (meta["name"], meta["uid"]) if isinstance(meta, dict) else (meta.name, meta.uid)
    return {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid, **more}


class Moody(LocalApi):
    """A manager's client whose discovery, or whose reads, can be made to fail."""

    blind = False
    deaf = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.capabilities = REMOTE

    async def discover(self) -> DiscoveryResult:
        if self.blind:
            raise ServiceUnavailable("discovery is away")
        return await super().discover()

    async def get(self, kind: Kind[Any], namespace: str, name: str) -> Any:
        if self.deaf:
            raise ServiceUnavailable("reads are away")
        return await super().get(kind, namespace, name)


class Plane:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.api = self.world.api()
        self.manager = Moody(self.world.server, User("manager"))
        with self.world.background():
            kubelets = Kubelets(self.world.api("kubelets"), self.world, ("node-1",))
            self.world.spawn(kubelets.run(), name="kubelets")
        self.world.spawn(Scheduler(self.world.api("scheduler"), self.world).run(), name="scheduler")

    def start(self) -> None:
        self.fleet = ControllerGroup(CONTROLLERS, self.manager, self.world)
        self.task = self.world.spawn(self.fleet.run(), name="manager")
        self.settle()

    def stop(self) -> None:
        self.task.cancel()
        self.world.run(self.world.advance(0.001))

    def settle(self, horizon: float = 40.0) -> None:
        self.world.run(self.world.settle(horizon))

    def create(self, kind: Kind[Any], body: dict[str, Any], namespace: str = "default") -> Any:
        if kind.type is dict:
            body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        return self.world.run(self.api.create(kind, namespace, body))

    def delete(self, kind: Kind[Any], name: str, propagation: str | None = None) -> None:
        self.world.run(self.api.delete(kind, "default", name, propagation=propagation))

    def names(self, kind: Kind[Any], namespace: str = "default") -> list[str]:
        items = self.world.run(self.api.list(kind, namespace)).items
        return sorted(i["metadata"]["name"] if isinstance(i, dict) else i.metadata.name for i in items)


@pytest.fixture
def plane() -> Iterator[Plane]:
    plane = Plane()
    yield plane
    plane.world.close()


# -- cascades -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("propagation", [None, "Background", "Foreground"])
def test_a_deployment_takes_its_sets_and_pods_with_it(plane: Plane, propagation: str | None) -> None:
    plane.start()
    plane.create(DEPLOYMENTS, workload("web"))
    plane.create(DEPLOYMENTS, workload("stays"))
    plane.settle()
    plane.delete(DEPLOYMENTS, "web", propagation)
    plane.settle()
    assert plane.names(DEPLOYMENTS) == ["stays"]
    assert [name.rsplit("-", 1)[0] for name in plane.names(REPLICASETS)] == ["stays"]
    assert [name.split("-")[0] for name in plane.names(PODS)] == ["stays"] * 3


def test_in_the_foreground_an_owner_is_the_last_to_go(plane: Plane) -> None:
    plane.start()
    plane.create(DEPLOYMENTS, workload())
    plane.settle()
    order: list[str] = []

    def note(commit: Any) -> None:
        if commit.event.type.value == "DELETED" and commit.resource in (
            "pods",
            "replicasets.apps",
            "deployments.apps",
        ):
            order.append(commit.resource)

    plane.world.server.store.commit_hooks.append(note)
    plane.delete(DEPLOYMENTS, "web", "Foreground")
    plane.settle()
    assert order == ["pods", "pods", "pods", "replicasets.apps", "deployments.apps"]


def test_orphans_stay_and_are_adopted_by_the_next_of_that_name(plane: Plane) -> None:
    plane.start()
    plane.create(DEPLOYMENTS, workload())
    plane.settle()
    before = plane.names(PODS)
    plane.delete(DEPLOYMENTS, "web", "Orphan")
    plane.settle()
    assert plane.names(PODS) == before
    assert all(not rs.metadata.ownerReferences for rs in plane.world.run(plane.api.list(REPLICASETS)).items)
    plane.create(DEPLOYMENTS, workload())
    plane.settle()
    assert plane.names(PODS) == before


def test_what_another_of_the_same_name_does_not_own_goes(plane: Plane) -> None:
    first = plane.create(CONFIGMAPS, {"metadata": {"name": "owner"}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "child", "ownerReferences": [owner(CONFIGMAPS, first)]}})
    plane.delete(CONFIGMAPS, "owner")
    plane.create(CONFIGMAPS, {"metadata": {"name": "owner"}})
    plane.start()
    assert "child" not in plane.names(CONFIGMAPS)
    assert "owner" in plane.names(CONFIGMAPS)


def test_an_owner_in_another_namespace_is_reported_and_its_death_is_nobodys_business(plane: Plane) -> None:
    plane.create(NAMESPACES, {"metadata": {"name": "other"}}, "")
    plane.start()
    far = plane.create(CONFIGMAPS, {"metadata": {"name": "far"}}, "other")
    near = plane.create(CONFIGMAPS, {"metadata": {"name": "near"}})
    both = [owner(CONFIGMAPS, far), owner(CONFIGMAPS, near)]
    plane.create(CONFIGMAPS, {"metadata": {"name": "both", "ownerReferences": both}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "lost", "ownerReferences": both[:1]}})
    plane.settle()
    found = plane.world.run(plane.api.list(EVENTS)).items
    reasons = [(e.involvedObject.name, e.reason, e.source.component) for e in found if "OwnerRef" in e.reason]
    assert sorted(reasons) == [
        ("both", "OwnerRefInvalidNamespace", GC),
        ("lost", "OwnerRefInvalidNamespace", GC),
    ]
    assert [name for name in plane.names(CONFIGMAPS) if name != "kube-root-ca.crt"] == ["both", "near"]
    plane.world.run(plane.api.delete(CONFIGMAPS, "other", "far"))
    plane.settle()
    assert "both" in plane.names(CONFIGMAPS)


def test_a_circle_goes_as_a_whole(plane: Plane) -> None:
    plane.start()
    one = plane.create(CONFIGMAPS, {"metadata": {"name": "one"}})
    two = plane.create(
        CONFIGMAPS,
        {"metadata": {"name": "two", "ownerReferences": [owner(CONFIGMAPS, one, blockOwnerDeletion=True)]}},
    )
    body = {"metadata": {"ownerReferences": [owner(CONFIGMAPS, two, blockOwnerDeletion=True)]}}
    plane.world.run(plane.api.patch(CONFIGMAPS, "default", "one", body))
    plane.settle()
    plane.delete(CONFIGMAPS, "one", "Foreground")
    plane.settle()
    assert not {"one", "two"} & set(plane.names(CONFIGMAPS))


# -- custom resources ---------------------------------------------------------------------------------


@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_custom_resources_own_and_are_owned(plane: Plane, propagation: str) -> None:
    plane.start()
    plane.create(DEFINITIONS, definition(), "")
    plane.settle()
    top = plane.create(WIDGETS, {"metadata": {"name": "top"}})
    ties = {"ownerReferences": [owner(WIDGETS, top, blockOwnerDeletion=True)]}
    plane.create(WIDGETS, {"metadata": {"name": "below", **ties}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "below", **ties}})
    plane.settle()
    plane.delete(WIDGETS, "top", propagation)
    plane.settle()
    left = propagation == "Orphan"
    assert plane.names(WIDGETS) == (["below"] if left else [])
    assert ("below" in plane.names(CONFIGMAPS)) == left


def test_what_custom_resources_owned_goes_with_their_definition(plane: Plane) -> None:
    plane.start()
    plane.create(DEFINITIONS, definition(), "")
    top = plane.create(WIDGETS, {"metadata": {"name": "top"}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "below", "ownerReferences": [owner(WIDGETS, top)]}})
    plane.settle()
    plane.world.run(plane.api.delete(DEFINITIONS, "", "widgets.example.com"))
    plane.settle()
    assert "below" not in plane.names(CONFIGMAPS)


def test_a_definition_that_went_while_nobody_looked_leaves_what_nobody_can_look_up(plane: Plane) -> None:
    plane.create(DEFINITIONS, definition(), "")
    top = plane.create(WIDGETS, {"metadata": {"name": "top"}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "below", "ownerReferences": [owner(WIDGETS, top)]}})
    plane.world.run(plane.api.delete(DEFINITIONS, "", "widgets.example.com"))
    plane.start()
    plane.world.run(plane.world.advance(3600))
    assert "below" in plane.names(CONFIGMAPS)
    ending = plane.fleet.trace.rounds(GC)[-1].ending
    assert ending == Failure("unable to get REST mapping for example.com/v1/Widget.", retry_after=1000.0)
    # It is looked up as soon as that is possible again, and found absent.
    plane.create(DEFINITIONS, definition(), "")
    plane.world.run(plane.world.advance(1100))
    assert "below" not in plane.names(CONFIGMAPS)


# -- failures -----------------------------------------------------------------------------------------


def test_nothing_is_deleted_on_the_word_of_a_server_that_does_not_answer(plane: Plane) -> None:
    gone = plane.create(CONFIGMAPS, {"metadata": {"name": "gone"}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "child", "ownerReferences": [owner(CONFIGMAPS, gone)]}})
    plane.delete(CONFIGMAPS, "gone")
    plane.manager.deaf = True
    plane.start()
    plane.world.run(plane.world.advance(600))
    assert "child" in plane.names(CONFIGMAPS)
    plane.manager.deaf = False
    plane.world.run(plane.world.advance(1100))
    assert "child" not in plane.names(CONFIGMAPS)


def test_a_manager_that_cannot_discover_anything_deletes_nothing_until_it_can(plane: Plane) -> None:
    plane.manager.blind = True
    gone = plane.create(CONFIGMAPS, {"metadata": {"name": "gone"}})
    plane.create(CONFIGMAPS, {"metadata": {"name": "child", "ownerReferences": [owner(CONFIGMAPS, gone)]}})
    plane.delete(CONFIGMAPS, "gone")
    plane.start()
    plane.create(DEPLOYMENTS, workload())
    plane.world.run(plane.world.advance(300))
    assert "child" in plane.names(CONFIGMAPS)
    assert len(plane.names(PODS)) == 3
    plane.manager.blind = False
    plane.world.run(plane.world.advance(60))
    assert "child" not in plane.names(CONFIGMAPS)
    assert len(plane.names(PODS)) == 3


def test_a_cascade_goes_on_where_a_manager_that_died_left_it(plane: Plane) -> None:
    plane.start()
    plane.create(DEPLOYMENTS, workload("web", 5))
    plane.settle()
    plane.delete(DEPLOYMENTS, "web", "Foreground")
    for _ in range(8):
        plane.world.run(plane.world.advance(0.01))
        plane.stop()
        plane.start()
    plane.settle()
    assert (plane.names(DEPLOYMENTS), plane.names(REPLICASETS), plane.names(PODS)) == ([], [], [])


def test_a_month_in_which_nothing_happens_takes_a_moment(plane: Plane) -> None:
    plane.manager = LocalApi(plane.world.server, User("manager"))  # type: ignore[assignment]
    plane.start()
    rounds = len(plane.fleet.trace.rounds(GC))
    plane.world.run(plane.world.advance(30 * 86_400))
    assert len(plane.fleet.trace.rounds(GC)) == rounds
