"""Owners and dependents on a real API server: what goes, what stays, and the same as with the reference."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from steersman.api.errors import NotFound
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES, PODS, REPLICASETS
from steersman.api.partial_object import PartialObject, partial_kind
from steersman.api.scheme import Kind
from steersman.client.http import HttpApi
from tests.harness.custom_resources import WIDGETS, definition
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import gone, until

REFERENCE: Binary = "kube-controller-manager"
SPACES = ("garbage", "elsewhere")
PATIENCE = 150.0
FLAGS = (
    "--controllers=garbage-collector-controller,deployment-controller,replicaset-controller,"
    "serviceaccount-controller",
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
)

Documents = Kind[dict[str, Any]]
DEFINITIONS: Documents = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped
CONFIGMAPS: Documents = load("", "v1", "ConfigMap").untyped
SECRETS: Documents = load("", "v1", "Secret").untyped
CLASSES: Documents = load("scheduling.k8s.io", "v1", "PriorityClass").untyped
EVENTS: Documents = load("", "v1", "Event").untyped
GADGETS: Documents = Kind("example.com", "v1", "Gadget", "gadgets", True, dict)


def bare(kind: Kind[Any]) -> Kind[PartialObject]:
    return partial_kind(kind.group, kind.version, kind.name, kind.plural, kind.namespaced)


async def define(api: HttpApi, kind: Documents) -> None:
    """Have custom resources, and wait until they can be created."""
    await api.create(DEFINITIONS, "", definition(kind))
    while True:
        try:
            await api.list(kind)
            return
        except NotFound:
            await api.get(DEFINITIONS, "", kind.resource)  # is there, and not served yet


def workload(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


class Story:
    """What is done to a cluster, and what is left of it."""

    def __init__(self, api: HttpApi) -> None:
        self.api = api

    async def make(
        self, kind: Documents, name: str, *owners: dict[str, Any], namespace: str = SPACES[0], **more: Any
    ) -> dict[str, Any]:
        """Create an object; answers with what a dependent says of it."""
        metadata = {"name": name, "ownerReferences": list(owners)}
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **more}
        made = await self.api.create(kind, namespace if kind.namespaced else "", body)
        return {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "name": name,
            "uid": made["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }

    async def delete(self, kind: Kind[Any], name: str, propagation: str, namespace: str = SPACES[0]) -> None:
        await self.api.delete(kind, namespace, name, propagation=propagation)

    async def gone(self, kind: Kind[Any], *names: str) -> None:
        for name in names:
            await gone(self.api, bare(kind), SPACES[0] if kind.namespaced else "", name)

    async def tell(self) -> None:
        api, make = self.api, self.make
        # All at once, of several kinds.
        top = await make(CONFIGMAPS, "back")
        for kind in (CONFIGMAPS, SECRETS, WIDGETS):
            await make(kind, "back-child", top)
        # One after the other, from below.
        top = await make(WIDGETS, "front")
        middle = await make(CONFIGMAPS, "front-middle", top)
        await make(SECRETS, "front-bottom", middle)
        # Let go of.
        top = await make(WIDGETS, "let")
        await make(WIDGETS, "let-child", top)
        await make(CONFIGMAPS, "let-child", top)
        # Two owners, of which one goes.
        left, right = await make(CONFIGMAPS, "left"), await make(SECRETS, "right")
        await make(CONFIGMAPS, "shared", left, right)
        await make(WIDGETS, "shared", left, right)
        # A circle.
        one = await make(CONFIGMAPS, "one")
        two = await make(CONFIGMAPS, "two", one)
        await api.patch(CONFIGMAPS, SPACES[0], "one", {"metadata": {"ownerReferences": [two]}})
        # Owners that cannot be.
        far = await make(CONFIGMAPS, "far", namespace=SPACES[1])
        await make(CONFIGMAPS, "far-child", far)
        await make(CLASSES, "wide", left, value=1)
        await make(CONFIGMAPS, "odd", {**left, "kind": "Nothing", "apiVersion": "nowhere.example.com/v1"})
        await make(CONFIGMAPS, "misnamed", {**left, "name": "misspelt"})
        # Workloads.
        for name in ("web", "shop"):
            await api.create(DEPLOYMENTS.untyped, SPACES[0], workload(name))
        for name in ("web", "shop"):
            await until(api, DEPLOYMENTS, SPACES[0], name, lambda found: found.status.replicas == 2)
        # A definition.
        gadget = await make(GADGETS, "gadget")
        await make(CONFIGMAPS, "gadget-child", gadget)

        await self.delete(CONFIGMAPS, "back", "Background")
        await self.delete(WIDGETS, "front", "Foreground")
        await self.delete(WIDGETS, "let", "Orphan")
        await self.delete(SECRETS, "right", "Background")
        await self.delete(CONFIGMAPS, "one", "Foreground")
        await self.delete(DEPLOYMENTS, "web", "Foreground")
        await self.delete(DEPLOYMENTS, "shop", "Background")
        await api.delete(DEFINITIONS, "", GADGETS.resource)

        await self.gone(CONFIGMAPS, "back-child", "front-middle", "one", "two", "far-child", "misnamed")
        await self.gone(SECRETS, "back-child", "front-bottom")
        await self.gone(WIDGETS, "back-child", "front", "let")
        await self.gone(DEPLOYMENTS, "web", "shop")
        await self.gone(CONFIGMAPS, "gadget-child")
        of_deployments: tuple[Kind[Any], ...] = (REPLICASETS, PODS)
        for each in of_deployments:
            for obj in (await api.list(each, SPACES[0])).items:
                await self.gone(each, obj.metadata.name)
        # That an owner is forgotten is the last thing that happens to what another keeps.
        for kind in (CONFIGMAPS, WIDGETS):
            forgot = lambda found: len(found.metadata.ownerReferences) == 1  # noqa: E731
            await until(api, bare(kind), SPACES[0], "shared", forgot)
            await until(
                api, bare(kind), SPACES[0], "let-child", lambda found: not found.metadata.ownerReferences
            )

    async def left(self) -> dict[str, list[Any]]:
        """What is there in the end, without what no two runs share."""
        found: dict[str, list[Any]] = {}
        for kind in (CONFIGMAPS, SECRETS, WIDGETS, DEPLOYMENTS, REPLICASETS, PODS, CLASSES):
            for namespace in SPACES if kind.namespaced else ("",):
                items: Any = (await self.api.list(bare(kind), namespace)).items
                found[f"{namespace}/{kind.plural}"] = sorted(
                    (
                        obj.metadata.name,
                        [(each.kind, each.name) for each in obj.metadata.ownerReferences],
                        list(obj.metadata.finalizers),
                        obj.metadata.deletionTimestamp is None,
                    )
                    for obj in items
                    if obj.metadata.name != "kube-root-ca.crt"
                )
        return found

    async def events(self) -> list[Any]:
        """The events about owners, once there are any."""
        while True:
            items: Any = (await self.api.list(EVENTS, SPACES[0])).items
            found = [
                (each["type"], each["source"], each["involvedObject"]["kind"], each["involvedObject"]["name"])
                for each in items
                if each["reason"] == "OwnerRefInvalidNamespace"
            ]
            if found:
                return sorted(found, key=str)


@contextlib.asynccontextmanager
async def running(plane: RealPlane, binary: Binary) -> AsyncIterator[HttpApi]:
    """A plane with two sorts of custom resources and a manager."""
    async with plane.connect() as api, asyncio.timeout(PATIENCE):
        for name in SPACES:
            await api.create(NAMESPACES, "", {"metadata": {"name": name}})
        for kind in (WIDGETS, GADGETS):
            await define(api, kind)
        manager = plane.manager(*FLAGS, binary=binary)
        try:
            yield api
        finally:
            manager.stop()
            assert "Traceback" not in manager.log()


async def told(plane: RealPlane, binary: Binary) -> dict[str, Any]:
    async with running(plane, binary) as api:
        story = Story(api)
        await story.tell()
        return {"left": await story.left(), "events": await story.events()}


@pytest.fixture(scope="module")
def ours() -> tuple[dict[str, Any], list[Any]]:
    with RealPlane.start() as plane:
        outcome = asyncio.run(told(plane, "steersman"))
        mine = "system:serviceaccount:kube-system:generic-garbage-collector"
        return outcome, [entry for entry in plane.audit() if entry.user == mine]


def test_what_lost_its_owners_goes_and_all_else_stays(ours: tuple[dict[str, Any], list[Any]]) -> None:
    left = ours[0]["left"]
    assert left["garbage/configmaps"] == [
        ("left", [], [], True),
        ("let-child", [], [], True),
        ("odd", [("Nothing", "left")], [], True),
        ("shared", [("ConfigMap", "left")], [], True),
    ]
    assert left["garbage/widgets"] == [
        ("let-child", [], [], True),
        ("shared", [("ConfigMap", "left")], [], True),
    ]
    assert left["elsewhere/configmaps"] == [("far", [], [], True)]
    assert ("wide", [("ConfigMap", "left")], [], True) in left["/priorityclasses"]
    assert left["garbage/pods"] == left["garbage/replicasets"] == left["garbage/secrets"] == []


def test_the_collector_is_refused_nothing_by_rbac(ours: tuple[dict[str, Any], list[Any]]) -> None:
    requests = ours[1]
    assert len(requests) > 10
    assert [entry for entry in requests if entry.code == 403] == []
    assert {entry.verb for entry in requests} <= {"get", "delete", "patch", "create"}


@pytest.mark.reference
@pytest.mark.compares("garbage-collector-controller")
def test_both_managers_leave_the_same(ours: tuple[dict[str, Any], list[Any]]) -> None:
    with RealPlane.start() as plane:
        assert ours[0] == asyncio.run(told(plane, REFERENCE))


async def test_a_resource_defined_while_the_manager_runs_is_looked_after_soon(plane: RealPlane) -> None:
    gizmos: Documents = Kind("late.example.com", "v1", "Gizmo", "gizmos", True, dict)
    manager = plane.manager(*FLAGS)
    async with plane.connect() as api, asyncio.timeout(PATIENCE):
        await define(api, gizmos)
        story = Story(api)
        top = await story.make(gizmos, "top", namespace="default")
        await story.make(CONFIGMAPS, "late-child", top, namespace="default")
        await api.delete(gizmos, "default", "top", propagation="Foreground")
        await gone(api, bare(gizmos), "default", "top")
        await gone(api, bare(CONFIGMAPS), "default", "late-child")
    manager.stop()
    assert "Traceback" not in manager.log()
