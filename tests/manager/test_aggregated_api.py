"""Controllers of ``steersman up`` and the resources of an aggregated API server: garbage, namespaces and quotas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steersman.api.clock import RealClock
from steersman.api.errors import NotFound
from steersman.api.scheme import Kind
from steersman.client import kubeconfig
from steersman.client.http import HttpApi
from steersman.manager.control_plane import run_control_plane
from steersman.manager.up import read
from steersman.server.calls import WebhookAddresses
from steersman.server.server import Server
from tests.harness.extension_server import API_VERSION, Extension, api_service, extension

NAMESPACES: Kind[dict[str, Any]] = Kind("", "v1", "Namespace", "namespaces", False, dict)
CONFIGMAPS: Kind[dict[str, Any]] = Kind("", "v1", "ConfigMap", "configmaps", True, dict)
QUOTAS: Kind[dict[str, Any]] = Kind("", "v1", "ResourceQuota", "resourcequotas", True, dict)
APISERVICES: Kind[dict[str, Any]] = Kind(
    "apiregistration.k8s.io", "v1", "APIService", "apiservices", False, dict
)
NAME = "v1.ice.example.com"


@dataclass
class Site:
    """A control plane with controllers, and an aggregated API server."""

    server: Server
    api: HttpApi
    remote: Extension

    async def registered(self) -> None:
        await self.api.create(APISERVICES, "", api_service(self.remote.ca_bundle))
        await self.condition("True")

    async def condition(self, status: str) -> None:
        async def known() -> bool:
            found = await self.api.get(APISERVICES, "", NAME)
            conditions = found.get("status", {}).get("conditions", ())
            return any(each["status"] == status for each in conditions)

        while not await known():
            await asyncio.sleep(0.01)

    async def gone(self, kind: Kind[Any], namespace: str, name: str) -> None:
        try:
            while True:
                await self.api.get(kind, namespace, name)
                await asyncio.sleep(0.01)
        except NotFound:
            pass


@asynccontextmanager
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    config = tmp_path / "config"
    options = read(["--port=0", "--nodes=0", f"--kubeconfig={config}"])
    async with (
        asyncio.timeout(60),
        run_control_plane(options, RealClock()) as running,
        HttpApi(kubeconfig.load(str(config)), qps=0) as api,
    ):
        published = running.server.store.table("configmaps").get(
            "kube-system/extension-apiserver-authentication"
        )
        async with extension(published.data["requestheader-client-ca-file"], tmp_path) as remote:
            running.server.webhook_addresses = WebhookAddresses({"default/ext": remote.address})
            yield Site(running.server, api, remote)


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def _owned_by(name: str, owner: dict[str, Any]) -> dict[str, Any]:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    return {"metadata": {"name": name, "ownerReferences": [reference]}}


async def test_the_objects_of_an_aggregated_server_are_deleted_with_their_namespace(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        await here.registered()
        await here.api.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
        await here.remote.put("shop", {"metadata": {"name": "mint"}})
        await here.remote.put("default", {"metadata": {"name": "lemon"}})
        await here.api.delete(NAMESPACES, "", "shop")
        await here.gone(NAMESPACES, "", "shop")
        assert list(here.remote.objects) == [("default", "lemon")]
        (user,) = {each.headers["X-Remote-User"] for each in here.remote.seen if each.method == "DELETE"}
        assert user == "system:serviceaccount:kube-system:namespace-controller"


async def test_owner_references_across_an_aggregated_server_are_honoured(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        await here.registered()
        flavor = await here.remote.put("default", {"metadata": {"name": "mint"}})
        owner = await here.api.create(CONFIGMAPS, "default", {"metadata": {"name": "owner"}})
        await here.remote.put(
            "default", _owned_by("owned", {**owner, "apiVersion": "v1", "kind": "ConfigMap"})
        )
        await here.api.create(CONFIGMAPS, "default", _owned_by("dependent", flavor))
        await here.remote.remove("default", "mint")
        await here.gone(CONFIGMAPS, "default", "dependent")
        await here.api.delete(CONFIGMAPS, "default", "owner", propagation="Background")
        await _until(lambda: not here.remote.objects)


async def test_a_quota_counts_the_objects_of_an_aggregated_server(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        await here.registered()
        await here.remote.put("default", {"metadata": {"name": "mint"}})
        # Counted by what is followed: else it would be when all quotas are computed again.
        await _until(lambda: any("resourceVersion" in each.query for each in here.remote.seen))
        hard = {"count/flavors.ice.example.com": "5"}
        await here.api.create(QUOTAS, "default", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        while True:
            found = await here.api.get(QUOTAS, "default", "q")
            if found.get("status", {}).get("used") == {"count/flavors.ice.example.com": "1"}:
                break
            await asyncio.sleep(0.01)


async def test_a_namespace_waits_for_an_aggregated_server_that_is_away(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        await here.registered()
        await here.api.create(NAMESPACES, "", {"metadata": {"name": "shop"}})
        flavor = await here.remote.put("shop", {"metadata": {"name": "mint"}})
        await here.api.create(CONFIGMAPS, "default", _owned_by("kept", {**flavor, "apiVersion": API_VERSION}))
        here.remote.broken.add("/apis/ice.example.com/v1")
        here.server.webhook_addresses = WebhookAddresses({"default/ext": "127.0.0.1:1"})
        patch = {"spec": {"versionPriority": 11}}
        await here.api.patch(APISERVICES, "", NAME, patch)
        await here.condition("False")
        await here.api.delete(NAMESPACES, "", "shop")

        async def failure() -> dict[str, Any] | None:
            found = await here.api.get(NAMESPACES, "", "shop")
            conditions = found.get("status", {}).get("conditions", ())
            named = (each for each in conditions if each["type"] == "NamespaceDeletionDiscoveryFailure")
            return next((each for each in named if each["status"] == "True"), None)

        while (told := await failure()) is None:
            await asyncio.sleep(0.01)
        assert told["reason"] == "DiscoveryFailed"
        assert "ice.example.com/v1: stale GroupVersion discovery: ice.example.com/v1" in told["message"]
        assert list(here.remote.objects) == [("shop", "mint")]
        # Its owner could not be looked for, which is not to say that it is gone.
        assert await here.api.get(CONFIGMAPS, "default", "kept")
        here.remote.broken.clear()
        here.server.webhook_addresses = WebhookAddresses({"default/ext": here.remote.address})
        await here.api.patch(APISERVICES, "", NAME, {"spec": {"versionPriority": 12}})
        await here.condition("True")
        await here.gone(NAMESPACES, "", "shop")
        assert not here.remote.objects
