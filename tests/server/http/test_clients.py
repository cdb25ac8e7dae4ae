"""Clients people have: our own, the official one for Python, and kubectl."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steersman.api.clock import RealClock
from steersman.api.errors import Conflict, NotFound
from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.server.bootstrap import bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server
from tests.harness.envtest import ASSETS

CONFIGMAPS: Kind[Any] = load("", "v1", "ConfigMap").untyped
DEPLOYMENTS: Kind[Any] = load("apps", "v1", "Deployment").untyped


def _story() -> ModuleType:
    path = Path(__file__).parents[1] / "story.py"
    spec = importlib.util.spec_from_file_location("story", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


story = _story()


async def test_the_story_is_told_over_http_as_in_process(plane: Any) -> None:
    server = Server(RealClock())
    bootstrap_server(server)
    async with plane.connect() as api:
        assert await story.told(api) == await story.told(LocalApi(server))


async def test_our_own_client_has_its_ten_verbs(plane: Any) -> None:
    async with plane.connect() as api:
        made = await api.create(CONFIGMAPS, "default", {"metadata": {"name": "a"}, "data": {"k": "1"}})
        assert (await api.get(CONFIGMAPS, "default", "a")) == made
        changed = await api.update(CONFIGMAPS, "default", "a", {**made, "data": {"k": "2"}})
        with pytest.raises(Conflict):
            await api.update(CONFIGMAPS, "default", "a", {**made, "data": {"k": "3"}})
        patched = await api.patch(CONFIGMAPS, "default", "a", {"data": {"l": "1"}})
        assert patched["data"] == {"k": "2", "l": "1"}
        seen = []
        version = changed["metadata"]["resourceVersion"]
        async for event in api.watch(CONFIGMAPS, "default", resource_version=version):
            seen.append(event.type.value)
            if event.type.value == "MODIFIED":
                await api.delete(CONFIGMAPS, "default", "a")
            if event.type.value == "DELETED":
                break
        assert seen == ["MODIFIED", "DELETED"]
        workload = story.workload("d", replicas=2)
        await api.create(DEPLOYMENTS, "default", workload)
        status = {"metadata": {"name": "d"}, "status": {"replicas": 1}}
        assert (await api.update_status(DEPLOYMENTS, "default", "d", status))["status"]["replicas"] == 1
        scale = await api.subresource(DEPLOYMENTS, "default", "d", "scale", verb="get")
        assert scale["spec"] == {"replicas": 2}
        await api.delete_collection(DEPLOYMENTS, "default")
        assert (await api.list(DEPLOYMENTS, "default")).items == []
        with pytest.raises(NotFound):
            await api.get(DEPLOYMENTS, "default", "d")


OFFICIAL = """
import sys
from kubernetes import client, config, watch
config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
seen = []
core.create_namespaced_config_map("default", {"metadata": {"name": "a"}, "data": {"k": "1"}})
for event in watch.Watch().stream(core.list_namespaced_config_map, "default", timeout_seconds=30):
    seen.append((event["type"], event["object"].metadata.name))
    if event["type"] == "ADDED":
        core.patch_namespaced_config_map("a", "default", {"data": {"l": "2"}})
    elif event["type"] == "MODIFIED":
        core.delete_namespaced_config_map("a", "default")
    else:
        break
assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")], seen
lease = {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00.000001Z"}}
made = client.CoordinationV1Api().create_namespaced_lease("default", lease)
assert made.spec.renew_time.year == 2026
try:
    core.read_namespaced_pod("nobody", "default")
except client.ApiException as error:
    assert error.status == 404
print("fine", client.VersionApi().get_code().git_version)
"""


async def run(*command: str, **environ: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **environ},
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, out.decode()


async def test_the_official_python_client_works(plane: Any) -> None:
    code, out = await run(sys.executable, "-c", OFFICIAL, str(plane.kubeconfig()))
    assert (code, out.split()[0]) == (0, "fine"), out


def _kubectl() -> str | None:
    directory = os.environ.get(ASSETS)
    return shutil.which("kubectl", path=directory) if directory else shutil.which("kubectl")


@pytest.mark.skipif(_kubectl() is None, reason=f"needs kubectl: set {ASSETS} or put it on the PATH")
async def test_kubectl_gets_applies_describes_and_deletes(plane: Any, tmp_path: Path) -> None:
    config = str(plane.kubeconfig())

    async def kubectl(*arguments: str) -> str:
        binary = _kubectl()
        assert binary is not None
        code, out = await run(binary, *arguments, KUBECONFIG=config, HOME=str(tmp_path))
        assert code == 0, out
        return out

    assert "kube-system" in await kubectl("get", "namespaces")
    manifest = tmp_path / "web.yaml"
    labels = {"app": "web"}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "app:1"}]},
            },
        },
    }
    manifest.write_text(json.dumps(document))
    assert await kubectl("apply", "-f", str(manifest)) == "deployment.apps/web created\n"
    assert await kubectl("apply", "-f", str(manifest)) == "deployment.apps/web unchanged\n"
    assert "0/1" in await kubectl("get", "deployment", "web")
    assert "StrategyType:" in await kubectl("describe", "deployment", "web")
    assert "unchanged (server dry run)" in await kubectl("apply", "--dry-run=server", "-f", str(manifest))
    assert "scaled" in await kubectl("scale", "deployment", "web", "--replicas=3")
    assert await kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "nodeName" in await kubectl("explain", "pod.spec.nodeName")
    assert "deployments" in await kubectl("api-resources")
    # Not by `kubectl version`, which fails where kubectl was built without a version of its own.
    assert '"gitVersion": "v1.36' in await kubectl("get", "--raw", "/version")
    assert "serverside-applied" in await kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", str(manifest)
    )
    assert "deleted" in await kubectl("delete", "deployment", "web")
    assert "created" in await kubectl("create", "deployment", "web", "--image=app:1")
    assert (await kubectl("auth", "can-i", "create", "pods")).strip() == "yes"
    assert "system:masters" in await kubectl("auth", "whoami")
