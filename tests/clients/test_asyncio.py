"""kubernetes-asyncio, and what of it has come to be part of the official client."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import kubernetes.aio as official
import kubernetes_asyncio as separate
import pytest

CLIENTS = pytest.mark.parametrize("package", [separate, official], ids=["separate", "official"])


async def connected(package: ModuleType, plane: Any) -> Any:
    made = package.client.Configuration()
    await package.config.load_kube_config(config_file=str(plane.kubeconfig), client_configuration=made)
    return package.client.ApiClient(configuration=made)


@CLIENTS
async def test_objects_are_created_listed_patched_and_deleted(
    plane: Any, namespace: str, package: ModuleType
) -> None:
    async with await connected(package, plane) as api:
        core = package.client.CoreV1Api(api)
        body = {"metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"k": "v"}}
        made = await core.create_namespaced_config_map(namespace, body)
        assert made.data == {"k": "v"}
        page = await core.list_namespaced_config_map(namespace, label_selector="a=b", limit=1)
        assert [each.metadata.uid for each in page.items] == [made.metadata.uid]
        changed = await core.patch_namespaced_config_map("c", namespace, {"data": {"k": "w"}})
        assert changed.data == {"k": "w"}
        await core.delete_namespaced_config_map("c", namespace)
        with pytest.raises(package.client.ApiException) as refused:
            await core.read_namespaced_config_map("c", namespace)
        assert refused.value.status == 404


@CLIENTS
async def test_a_watch_tells_what_happens(plane: Any, namespace: str, package: ModuleType) -> None:
    async with await connected(package, plane) as api:
        core = package.client.CoreV1Api(api)
        await core.create_namespaced_secret(namespace, {"metadata": {"name": "s"}})
        seen = []
        async with package.watch.Watch().stream(
            core.list_namespaced_secret, namespace, timeout_seconds=60
        ) as stream:
            async for event in stream:
                seen.append((event["type"], event["object"].metadata.name))
                if event["type"] == "ADDED":
                    await core.delete_namespaced_secret("s", namespace)
                else:
                    break
        assert seen == [("ADDED", "s"), ("DELETED", "s")]


@CLIENTS
async def test_the_dynamic_client_applies(
    plane: Any, widgets: str, namespace: str, package: ModuleType, tmp_path: Path
) -> None:
    async with await connected(package, plane) as api:
        anything = await package.dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery"))
        kind = await anything.resources.get(api_version=f"{widgets}/v1", kind="Widget")
        body = {
            "apiVersion": f"{widgets}/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "namespace": namespace},
            "spec": {"size": 1},
        }
        made = await kind.server_side_apply(body=body, namespace=namespace, field_manager="me")
        assert made.spec.to_dict() == {"size": 1, "colour": "blue"}
        assert (await kind.get(name="w", namespace=namespace)).metadata.managedFields[0].manager == "me"
