"""Namespaces that are deleted on a real API server: what they say of themselves, and the same as the reference."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.api.errors import NotFound
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, NAMESPACES
from steersman.api.partial_object import partial_kind
from steersman.api.scheme import Kind
from steersman.client.http import HttpApi
from tests.harness.custom_resources import DEFINITION, WIDGETS
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import gone, until

REFERENCE: Binary = "kube-controller-manager"
PATIENCE = 150.0
FLAGS = (
    "--controllers=namespace-controller,deployment-controller,replicaset-controller,"
    "serviceaccount-controller,garbage-collector-controller",
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
)
Documents = Kind[dict[str, Any]]
DEFINITIONS: Documents = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped
SERVICES: Documents = load("apiregistration.k8s.io", "v1", "APIService").untyped
CONFIGMAPS: Documents = load("", "v1", "ConfigMap").untyped
DOCUMENTS = NAMESPACES.untyped
SPACES = partial_kind("", "v1", "Namespace", "namespaces", False)


def workload() -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }


AWAY = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.away.example.com"},
    "spec": {
        "group": "away.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "insecureSkipTLSVerify": True,
        "service": {"name": "away", "namespace": "default"},
    },
}


async def said(api: HttpApi, name: str, type_: str, status: str = "True") -> dict[str, Any]:
    """The conditions of a namespace, once one of them has a status."""
    async for found in _versions(api, name):
        conditions = found["status"].get("conditions") or []
        if any((each["type"], each["status"]) == (type_, status) for each in conditions):
            return {
                "phase": found["status"]["phase"],
                "finalizers": found["spec"]["finalizers"],
                "conditions": [
                    (each["type"], each["status"], each["reason"], each["message"]) for each in conditions
                ],
            }
    raise AssertionError("a watch has no end")


async def _versions(api: HttpApi, name: str) -> Any:
    while True:
        found = await api.get(DOCUMENTS, "", name)
        yield found
        async for event in api.watch(
            DOCUMENTS,
            field_selector=f"metadata.name={name}",
            resource_version=found["metadata"]["resourceVersion"],
        ):
            if isinstance(event.obj, dict):
                yield event.obj


async def told(plane: RealPlane, binary: Binary) -> dict[str, Any]:
    """Delete some namespaces; answers with what they said of themselves until they were gone."""
    found: dict[str, Any] = {}
    async with plane.connect() as api, asyncio.timeout(PATIENCE):
        await api.create(DEFINITIONS, "", DEFINITION)
        while True:
            try:
                await api.list(WIDGETS)
                break
            except NotFound:
                await api.get(DEFINITIONS, "", WIDGETS.resource)
        for name in ("full", "held", "away"):
            await api.create(NAMESPACES, "", {"metadata": {"name": name}})
        manager = plane.manager(*FLAGS, binary=binary)
        try:
            await api.create(DEPLOYMENTS.untyped, "full", workload())
            await until(api, DEPLOYMENTS, "full", "web", lambda each: each.status.replicas == 2)
            for name in ("full", "held", "away"):
                for number in range(3):
                    body = {"metadata": {"name": f"m{number}"}}
                    await api.create(CONFIGMAPS, name, {"apiVersion": "v1", "kind": "ConfigMap", **body})
                    finalizers = ["example.com/hold"] if name == "held" and number else []
                    held = {"metadata": {"name": f"w{number}", "finalizers": finalizers}}
                    await api.create(
                        WIDGETS, name, {"apiVersion": "example.com/v1", "kind": "Widget", **held}
                    )
            await api.delete(NAMESPACES, "", "full")
            await api.delete(NAMESPACES, "", "held")
            await gone(api, SPACES, "", "full")
            found["held"] = await said(api, "held", "NamespaceFinalizersRemaining")
            for number in (1, 2):
                await api.patch(WIDGETS, "held", f"w{number}", {"metadata": {"finalizers": None}})
            await gone(api, SPACES, "", "held")

            await api.create(SERVICES, "", AWAY)
            await _unavailable(api)
            await api.delete(NAMESPACES, "", "away")
            found["away"] = await said(api, "away", "NamespaceDeletionDiscoveryFailure")
            await api.delete(SERVICES, "", "v1.away.example.com")
            await gone(api, SPACES, "", "away")
        finally:
            manager.stop()
            assert "Traceback" not in manager.log()
        everything: Any = (await api.list(WIDGETS)).items
        found["left"] = [each["metadata"]["name"] for each in everything]
    return found


async def _unavailable(api: HttpApi) -> None:
    """Wait until discovery says that a group does not answer."""
    while not (await api.discover()).failed:
        await api.get(SERVICES, "", "v1.away.example.com")


@pytest.fixture(scope="module")
def ours() -> tuple[dict[str, Any], list[Any]]:
    with RealPlane.start() as plane:
        outcome = asyncio.run(told(plane, "steersman"))
        mine = "system:serviceaccount:kube-system:namespace-controller"
        return outcome, [entry for entry in plane.audit() if entry.user == mine]


def test_a_namespace_says_what_holds_it_and_goes_with_all_that_is_in_it(
    ours: tuple[dict[str, Any], list[Any]],
) -> None:
    found = ours[0]
    held = {type_: (status, message) for type_, status, _, message in found["held"]["conditions"]}
    assert held["NamespaceContentRemaining"] == (
        "True",
        "Some resources are remaining: widgets.example.com has 2 resource instances",
    )
    assert found["left"] == []


def test_a_group_that_does_not_answer_keeps_a_namespace(ours: tuple[dict[str, Any], list[Any]]) -> None:
    away = {type_: (status, message) for type_, status, _, message in ours[0]["away"]["conditions"]}
    assert away["NamespaceDeletionDiscoveryFailure"] == (
        "True",
        "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
        "away.example.com/v1: stale GroupVersion discovery: away.example.com/v1",
    )
    assert ours[0]["away"]["finalizers"] == ["kubernetes"]


def test_the_controller_is_refused_nothing_by_rbac(ours: tuple[dict[str, Any], list[Any]]) -> None:
    assert len(ours[1]) > 100
    assert [entry for entry in ours[1] if entry.code == 403] == []


@pytest.mark.reference
@pytest.mark.compares("namespace-controller")
def test_both_managers_say_and_leave_the_same(ours: tuple[dict[str, Any], list[Any]]) -> None:
    with RealPlane.start() as plane:
        assert ours[0] == asyncio.run(told(plane, REFERENCE))
