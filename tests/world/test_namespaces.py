"""Namespaces that are deleted in a whole plane: what goes first, what holds them, and what never ends them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.discovery import DiscoveryResult, FailedGroupVersion
from steersman.api.errors import ServiceUnavailable
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, SERVICEACCOUNTS
from steersman.api.scheme import Kind
from steersman.client.capabilities import REMOTE
from steersman.controllers import CONTROLLERS
from steersman.runtime.controller_group import ControllerGroup
from steersman.server.auth.users import User
from steersman.server.local import LocalApi
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.scheduler import Scheduler
from steersman.sim.world import World

CONFIGMAPS = load("", "v1", "ConfigMap")
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
WIDGETS: Kind[dict[str, Any]] = Kind("example.com", "v1", "Widget", "widgets", True, dict)
DOCUMENTS = NAMESPACES.untyped


def workload() -> dict[str, Any]:
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
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


class Moody(LocalApi):
    """A manager's client whose discovery can be made to fail, as a whole or in parts."""

    mood: Exception | str | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.capabilities = REMOTE

    async def discover(self) -> DiscoveryResult:
        found = await super().discover()
        if isinstance(self.mood, Exception):
            raise self.mood
        if self.mood is None:
            return found
        kept = tuple(each for each in found.resources if each.group != self.mood)
        return DiscoveryResult(kept, (FailedGroupVersion(f"{self.mood}/v1", "away"),))


class Plane:
    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.api = self.world.api()
        self.manager = Moody(self.world.server, User("manager"))
        with self.world.background():
            settings = KubeletSettings(shutdown=3.0)
            kubelets = Kubelets(self.world.api("kubelets"), self.world, ("node-1",), settings=settings)
            self.world.spawn(kubelets.run(), name="kubelets")
        self.world.spawn(Scheduler(self.world.api("scheduler"), self.world).run(), name="scheduler")
        self.start()
        self.create(DEFINITIONS, "", definition())
        self.create(NAMESPACES, "", {"metadata": {"name": "ns"}})
        self.advance(20)

    def start(self) -> None:
        self.fleet = ControllerGroup(CONTROLLERS, self.manager, self.world)
        self.task = self.world.spawn(self.fleet.run(), name="manager")
        self.advance(1)

    def stop(self) -> None:
        self.task.cancel()
        self.world.run(self.world.advance(0.001))

    def advance(self, seconds: float) -> None:
        self.world.run(self.world.advance(seconds))

    def create(self, kind: Kind[Any], namespace: str, body: dict[str, Any]) -> Any:
        if kind.type is dict:
            body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        return self.world.run(self.api.create(kind, namespace, body))

    def delete(self) -> None:
        self.world.run(self.api.delete(NAMESPACES, "", "ns"))

    @property
    def there(self) -> bool:
        names = [each.metadata.name for each in self.world.run(self.api.list(NAMESPACES)).items]
        return "ns" in names

    def condition(self, type_: str) -> tuple[str, str, str]:
        document: Any = self.world.run(self.api.get(DOCUMENTS, "", "ns"))
        found = next(each for each in document["status"]["conditions"] if each["type"] == type_)
        return found["status"], found["reason"], found["message"]

    def count(self) -> int:
        """The objects of all tables that are in the namespace."""
        tables = self.world.server.store.tables()
        return sum(key.startswith("ns/") for table in tables for key in table.keys())  # noqa: SIM118


@pytest.fixture
def plane() -> Iterator[Plane]:
    plane = Plane()
    yield plane
    plane.world.close()


def test_a_namespace_goes_with_all_that_is_in_it_and_nothing_comes_back(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, "ns", workload())
    plane.create(CONFIGMAPS, "ns", {"metadata": {"name": "m"}})
    plane.create(WIDGETS, "ns", {"metadata": {"name": "w"}})
    plane.create(WIDGETS, "default", {"metadata": {"name": "elsewhere"}})
    plane.advance(10)
    plane.delete()
    plane.advance(60)
    assert not plane.there
    assert plane.count() == 0
    left: Any = plane.world.run(plane.api.list(WIDGETS)).items
    assert [each["metadata"]["name"] for each in left] == ["elsewhere"]
    assert plane.world.run(plane.api.list(SERVICEACCOUNTS, "ns")).items == []


def test_nothing_is_touched_until_all_servers_know_that_it_is_going(plane: Plane) -> None:
    plane.create(CONFIGMAPS, "ns", {"metadata": {"name": "m"}})
    plane.delete()
    plane.advance(4.9)
    assert len(plane.world.run(plane.api.list(CONFIGMAPS, "ns")).items) == 1
    plane.advance(0.2)
    assert not plane.there


def test_pods_go_before_all_else(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, "ns", workload())
    plane.create(CONFIGMAPS, "ns", {"metadata": {"name": "m"}})
    plane.advance(10)
    order: list[str] = []

    def note(commit: Any) -> None:
        if commit.event.type.value == "DELETED" and commit.resource != "events":
            order.append(commit.resource)

    plane.world.server.store.commit_hooks.append(note)
    plane.delete()
    plane.advance(6)
    assert len(plane.world.run(plane.api.list(PODS, "ns")).items) == 3
    assert order == []
    plane.advance(60)
    assert order[:3] == ["pods"] * 3
    assert "configmaps" in order[3:]
    assert not plane.there


def test_a_finalizer_holds_a_namespace_and_is_named(plane: Plane) -> None:
    plane.create(WIDGETS, "ns", {"metadata": {"name": "w", "finalizers": ["example.com/hold"]}})
    plane.delete()
    plane.advance(120)
    assert plane.there
    assert plane.condition("NamespaceFinalizersRemaining") == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
    )
    assert plane.condition("NamespaceContentRemaining")[2] == (
        "Some resources are remaining: widgets.example.com has 1 resource instances"
    )
    plane.world.run(plane.api.patch(WIDGETS, "ns", "w", {"metadata": {"finalizers": None}}))
    plane.advance(20)
    assert not plane.there


def test_a_finalizer_of_the_namespace_itself_is_somebody_elses(plane: Plane) -> None:
    body: Any = plane.world.run(plane.api.get(DOCUMENTS, "", "ns"))
    body["spec"]["finalizers"].append("example.com/mine")
    plane.world.run(plane.api.subresource(NAMESPACES, "", "ns", "finalize", body, verb="update"))
    plane.delete()
    plane.advance(60)
    document: Any = plane.world.run(plane.api.get(DOCUMENTS, "", "ns"))
    assert document["spec"]["finalizers"] == ["example.com/mine"]
    document["spec"]["finalizers"] = []
    plane.world.run(plane.api.subresource(NAMESPACES, "", "ns", "finalize", document, verb="update"))
    assert not plane.there


def test_a_namespace_outlives_an_outage_of_discovery(plane: Plane) -> None:
    plane.create(WIDGETS, "ns", {"metadata": {"name": "w"}})
    plane.manager.mood = ServiceUnavailable("discovery is away")
    plane.delete()
    plane.advance(600)
    assert plane.there
    assert len(plane.world.run(plane.api.list(WIDGETS, "ns")).items) == 1
    assert plane.condition("NamespaceDeletionDiscoveryFailure") == (
        "True",
        "DiscoveryFailed",
        "discovery is away",
    )
    plane.manager.mood = None
    plane.advance(90)
    assert not plane.there


def test_a_group_that_does_not_answer_keeps_the_namespace_and_the_rest_is_emptied(plane: Plane) -> None:
    plane.create(WIDGETS, "ns", {"metadata": {"name": "w"}})
    plane.create(CONFIGMAPS, "ns", {"metadata": {"name": "m"}})
    plane.manager.mood = "example.com"
    plane.delete()
    plane.advance(600)
    assert plane.there
    assert plane.world.run(plane.api.list(CONFIGMAPS, "ns")).items == []
    assert len(plane.world.run(plane.api.list(WIDGETS, "ns")).items) == 1
    assert plane.condition("NamespaceDeletionDiscoveryFailure")[2] == (
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "example.com/v1: away"
    )
    plane.manager.mood = None
    plane.advance(90)
    assert not plane.there


def test_a_resource_that_goes_half_way_does_not_hold_the_namespace(plane: Plane) -> None:
    plane.create(WIDGETS, "ns", {"metadata": {"name": "w", "finalizers": ["example.com/hold"]}})
    plane.delete()
    plane.advance(30)
    assert plane.there
    plane.world.run(plane.api.delete(DEFINITIONS, "", "widgets.example.com"))
    plane.world.run(plane.api.patch(WIDGETS, "ns", "w", {"metadata": {"finalizers": None}}))
    plane.advance(60)
    assert not plane.there


def test_a_deletion_goes_on_where_a_manager_that_died_left_it(plane: Plane) -> None:
    plane.create(DEPLOYMENTS, "ns", workload())
    plane.create(WIDGETS, "ns", {"metadata": {"name": "w"}})
    plane.advance(10)
    plane.delete()
    for _ in range(12):
        plane.advance(3)
        plane.stop()
        plane.start()
    plane.advance(90)
    assert not plane.there
    assert plane.count() == 0


def test_a_new_namespace_of_the_same_name_is_not_taken_for_the_old_one(plane: Plane) -> None:
    plane.delete()
    plane.advance(30)
    assert not plane.there
    plane.create(NAMESPACES, "", {"metadata": {"name": "ns"}})
    plane.create(CONFIGMAPS, "ns", {"metadata": {"name": "m"}})
    plane.advance(600)
    assert plane.there
    assert len(plane.world.run(plane.api.list(CONFIGMAPS, "ns")).items) == 1
