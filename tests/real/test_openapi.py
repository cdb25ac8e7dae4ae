"""OpenAPI beside a real API server's, and in the hands of a real kubectl."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from steersman.api.generated import resources
from steersman.server.discovery.documents import AGGREGATED, CustomResource, Discovery, negotiate_discovery
from steersman.server.discovery.openapi import OpenAPI
from steersman.server.discovery.openapi.schemas import V2, definitions
from tests.harness.assets import assets
from tests.harness.envtest import RealPlane

THING = CustomResource(
    group="example.com",
    version="v1",
    kind="Thing",
    plural="things",
    singular="thing",
    namespaced=True,
    list_kind="ThingList",
    storage_version="v1",
    status=True,
    schema={
        "type": "object",
        "description": "Something of ours.",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "description": "How big."},
                    "port": {"x-kubernetes-int-or-string": True},
                },
            }
        },
    },
)


# -- beside a real server ---------------------------------------------------------------------


def bare(value: Any) -> Any:
    """A document without what ours leave out: descriptions, defaults, unions, protobuf and old paths."""
    if isinstance(value, dict):
        kept = {
            key: bare(item)
            for key, item in value.items()
            if not (key == "description" and isinstance(item, str))
            and key not in ("default", "x-kubernetes-unions")
            and "protobuf" not in key
            and "/watch/" not in key
        }
        # What stands beside a reference in version 3 is mostly its description.
        return kept["allOf"][0] if list(kept) == ["allOf"] and len(kept["allOf"]) == 1 else kept
    return [bare(item) for item in value] if isinstance(value, list) else value


def without_kinds(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key != "x-kubernetes-group-version-kind"}


COMMON = tuple(f"io.k8s.apimachinery.pkg.apis.meta.v1.{kind}" for kind in ("DeleteOptions", "WatchEvent"))
"""A real server says of these that they are of groups that nobody serves any more, too."""


@pytest.fixture(scope="module")
def plane() -> Iterator[RealPlane]:
    """One of its own: custom resources of other tests would show in what is compared here."""
    with RealPlane.start() as running:
        yield running


def test_the_definitions_are_those_of_a_real_server(plane: RealPlane) -> None:
    real = bare(json.loads(plane.kubectl("get", "--raw", "/openapi/v2")))["definitions"]
    ours = bare(dict(definitions(V2)))
    assert sorted(ours) == sorted(
        name for name in real if name.startswith("io.k8s") and name != "io.k8s.apimachinery.pkg.version.Info"
    )
    for name in ours:
        if name in COMMON:
            assert without_kinds(ours[name]) == without_kinds(real[name]), name
        else:
            assert ours[name] == real[name], name


@pytest.mark.parametrize("name", sorted(OpenAPI().index()["paths"]))
def test_the_document_of_a_version_is_that_of_a_real_server(plane: RealPlane, name: str) -> None:
    real = bare(json.loads(plane.kubectl("get", "--raw", f"/openapi/v3/{name}")))
    found = OpenAPI().v3(name)
    assert found is not None
    ours = bare(json.loads(found.body))
    assert ours["paths"] == real["paths"]
    for definition, schema in ours["components"]["schemas"].items():
        if definition not in COMMON:
            assert schema == real["components"]["schemas"][definition], definition


# -- in the hands of kubectl ------------------------------------------------------------------


class Served:
    """As much of a server as kubectl needs to see the documents; it keeps what it is sent."""

    def __init__(self) -> None:
        self.discovery = Discovery([THING])
        self.openapi = OpenAPI([THING])
        self.objects: dict[str, Any] = {}
        self.patches: list[tuple[str, dict[str, str], Any]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        path = request.path.rstrip("/")
        if request.method == "PATCH":
            self.patches.append((request.content_type, dict(request.query), await request.json()))
            return web.json_response(self.objects[path])
        if path in ("/api", "/apis"):
            return self._discovered(
                path, negotiate_discovery(request.headers.get("Accept", "")).target == AGGREGATED
            )
        if path == "/openapi/v3":
            return web.json_response(self.openapi.index())
        if path.startswith("/openapi/v3/"):
            document = self.openapi.v3(path.removeprefix("/openapi/v3/"))
            assert document is not None, path
            return web.Response(body=document.body, content_type="application/json")
        if path in self.objects:
            return web.json_response(self.objects[path])
        missing = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
        }
        return web.json_response(missing, status=404)

    def _discovered(self, path: str, aggregated: bool) -> web.Response:
        assert aggregated
        found = self.discovery.aggregated_api if path == "/api" else self.discovery.aggregated_apis
        kind = f"application/json;g={AGGREGATED.group};v={AGGREGATED.version};as={AGGREGATED.kind}"
        return web.Response(body=found.body, headers={"Content-Type": kind, "ETag": found.etag})


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield served
    await runner.cleanup()


async def kubectl(served: Served, tmp_path: Path, *argv: str, stdin: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        str(assets("kubectl") / "kubectl"),
        f"--server={served.url}",
        *argv,
        env={**os.environ, "KUBECONFIG": str(tmp_path / "none"), "KUBECACHEDIR": str(tmp_path / "cache")},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(stdin.encode()), 30)
    assert process.returncode == 0, err.decode()
    assert err == b""
    return out.decode()


async def test_kubectl_explains_a_field_of_a_deployment(served: Served, tmp_path: Path) -> None:
    text = await kubectl(served, tmp_path, "explain", "deployment.spec.strategy")
    assert "GROUP:      apps" in text
    assert "FIELD: strategy <DeploymentStrategy>" in text
    assert "rollingUpdate\t<RollingUpdateDeployment>" in text
    assert "enum: Recreate, RollingUpdate" in text


async def test_kubectl_explains_all_of_a_pod(served: Served, tmp_path: Path) -> None:
    text = await kubectl(served, tmp_path, "explain", "pods", "--recursive")
    assert "\n    containers\t<[]Container> -required-\n      args\t<[]string>\n" in text
    assert "\n        limits\t<map[string]Quantity>\n" in text
    assert "\n      imagePullPolicy\t<string>\n      enum: Always, IfNotPresent, Never\n" in text


async def test_kubectl_explains_a_custom_resource_in_its_own_words(served: Served, tmp_path: Path) -> None:
    text = await kubectl(served, tmp_path, "explain", "things.spec")
    assert "KIND:       Thing" in text
    assert "size\t<integer> -required-\n    How big." in text
    assert "port\t<Object>" in text


async def test_kubectl_apply_merges_by_the_keys_of_the_schema_and_lets_the_server_validate(
    served: Served, tmp_path: Path
) -> None:
    def deployment(image: str) -> dict[str, Any]:
        containers = [{"name": "a", "image": image}, {"name": "b", "image": "b:1"}]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}},
            },
        }

    before = deployment("a:1")
    applied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(before)}
    path = "/apis/apps/v1/namespaces/default/deployments/web"
    served.objects[path] = {**before, "metadata": {**before["metadata"], "annotations": applied}}
    await kubectl(served, tmp_path, "apply", "-f", "-", stdin=json.dumps(deployment("a:2")))
    ((content_type, query, patch),) = served.patches
    assert content_type == "application/strategic-merge-patch+json"
    assert query["fieldValidation"] == "Strict"
    assert patch["spec"]["template"]["spec"] == {
        "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}],
        "containers": [{"name": "a", "image": "a:2"}],
    }


async def test_kubectl_lists_what_is_served(served: Served, tmp_path: Path) -> None:
    lines = (await kubectl(served, tmp_path, "api-resources", "--no-headers")).splitlines()
    listed = [line.split() for line in lines]
    assert ["things", "example.com/v1", "true", "Thing"] in listed
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in listed
    assert len(lines) == len({(row.plural, row.group) for row in resources()}) + 1
