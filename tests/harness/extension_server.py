"""An extension API server on loopback, which trusts the front proxy of a control plane: flavors of ice cream, kept in memory."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import WSMsgType, web
from multidict import CIMultiDict

from steersman.server.auth.ca import CertificateAuthority, self_signed

GROUP, VERSION = "ice.example.com", "v1"
API_VERSION = f"{GROUP}/{VERSION}"
ROOT = f"/apis/{API_VERSION}"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
DISCOVERY = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": API_VERSION,
    "resources": [
        {
            "name": "flavors",
            "singularName": "flavor",
            "namespaced": True,
            "kind": "Flavor",
            "verbs": VERBS,
        },
        {
            "name": "flavors/taste",
            "singularName": "",
            "namespaced": True,
            "kind": "Taste",
            "verbs": ["create"],
        },
    ],
}
V2 = {
    "swagger": "2.0",
    "paths": {
        f"{ROOT}/namespaces/{{namespace}}/flavors": {
            "get": {"responses": {"200": {"schema": {"$ref": "#/definitions/com.example.ice.Flavor"}}}}
        },
        "/apis/other.example.com/v1/things": {"get": {}},
        "/version/": {"get": {}},
    },
    "definitions": {
        "com.example.ice.Flavor": {
            "type": "object",
            "properties": {
                "metadata": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
                "taste": {"type": "string"},
            },
            "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": "Flavor"}],
        },
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
            "type": "object",
            "description": "of another version",
        },
        "com.example.ice.Unused": {"type": "object"},
    },
}


class Extension:
    """An extension API server. Attributes say how it behaves."""

    def __init__(self) -> None:
        self.seen: list[web.Request] = []
        self.more = asyncio.Event()
        """Lets a request that hangs, or a watch without objects, go on."""
        self.broken: set[str] = set()
        """Paths that are answered with garbage."""
        self.hangs = False
        self.starting = False
        """Every request is answered with 503."""
        self.aggregated: Mapping[str, Any] | None = None
        """Its aggregated discovery; None where it has only the legacy one."""
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self._revision = 0
        self._events: list[dict[str, Any]] = []
        self._changed = asyncio.Condition()
        now = datetime.now(UTC)
        self.authority = CertificateAuthority(self_signed("extension", now), lambda: now)
        self.address = ""

    @property
    def ca_bundle(self) -> str:
        return base64.b64encode(self.authority.pair.cert).decode()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        path = request.path
        if self.starting:
            return web.Response(status=503)
        if path in self.broken:
            return web.Response(body=b'{"swagger": "2.0", "paths": [1, {"', content_type="application/json")
        if path == ROOT:
            return web.json_response(DISCOVERY)
        if path == "/apis" and self.aggregated is not None:
            return web.Response(
                body=json.dumps(self.aggregated).encode(), headers={"Content-Type": AGGREGATED}
            )
        if path == "/openapi/v2":
            return web.json_response(V2)
        if path == "/openapi/v3":
            url = f"/openapi/v3{ROOT}?hash=ABC"
            return web.json_response(
                {"paths": {ROOT[1:]: {"serverRelativeURL": url}, "api/v1": {"serverRelativeURL": "/evil"}}}
            )
        if path.startswith("/openapi"):
            return web.json_response({"openapi": "3.0.0"})
        if self.hangs and path.startswith(f"{ROOT}/"):
            await self.more.wait()
        if path.endswith("/taste") and "Upgrade" in request.headers:
            return await self._upgraded(request)
        if path.endswith("/moved"):
            return web.Response(status=302, headers={"Location": "/elsewhere"})
        if path.endswith("/warned"):
            warnings = (("Warning", '299 - "one"'), ("Warning", '299 - "two"'))
            return web.Response(headers=CIMultiDict(warnings))
        return await self._resource(request, path.removeprefix(ROOT).strip("/").split("/"))

    async def _upgraded(self, request: web.Request) -> web.StreamResponse:
        """Sends every message back, in capitals."""
        socket = web.WebSocketResponse(protocols=("taste.example.com",))
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await socket.send_str(message.data.upper())
        return socket

    # -- flavors ------------------------------------------------------------------------------

    async def _resource(self, request: web.Request, parts: list[str]) -> web.StreamResponse:
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        if parts[0] != "flavors":
            return self._told(request, 404, await request.text())
        match request.method, parts[1:]:
            case "GET", []:
                if request.query.get("watch"):
                    return await self._watch(request, namespace)
                return web.json_response(self._list(namespace))
            case "POST", []:
                return web.json_response(await self.put(namespace, await request.json()), status=201)
            case "DELETE", []:
                for key in [key for key in self.objects if key[0] == namespace]:
                    await self.remove(*key)
                return web.json_response(self._list(namespace))
            case "GET", [name] if (namespace, name) in self.objects:
                return web.json_response(self.objects[namespace, name])
            case "DELETE", [name] if (namespace, name) in self.objects:
                await self.remove(namespace, name)
                return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})
            case "GET" | "DELETE", [_]:
                return self._told(request, 404, "")
        return self._told(request, 418, await request.text())

    def _told(self, request: web.Request, status: int, body: str) -> web.Response:
        told: dict[str, Any] = {
            "kind": "Status",
            "path": request.path_qs,
            "method": request.method,
            "body": body,
        }
        if status == 404:
            details = {"name": request.path.rpartition("/")[2], "group": GROUP, "kind": "flavors"}
            told |= {"status": "Failure", "reason": "NotFound", "message": "not found", "details": details}
        return web.json_response({**told, "code": status}, status=status)

    def _list(self, namespace: str) -> dict[str, Any]:
        items = [each for key, each in self.objects.items() if not namespace or key[0] == namespace]
        return {
            "kind": "FlavorList",
            "apiVersion": API_VERSION,
            "metadata": {"resourceVersion": str(self._revision)},
            "items": items,
        }

    async def put(self, namespace: str, document: dict[str, Any]) -> dict[str, Any]:
        name = document["metadata"]["name"]
        self._revision += 1
        meta = {
            **document["metadata"],
            "namespace": namespace,
            "uid": f"uid-{self._revision}",
            "resourceVersion": str(self._revision),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        made = {**document, "apiVersion": API_VERSION, "kind": "Flavor", "metadata": meta}
        self.objects[namespace, name] = made
        await self._event("ADDED", made)
        return made

    async def remove(self, namespace: str, name: str) -> None:
        self._revision += 1
        gone = self.objects.pop((namespace, name))
        meta = {**gone["metadata"], "resourceVersion": str(self._revision)}
        await self._event("DELETED", {**gone, "metadata": meta})

    async def _event(self, kind: str, document: dict[str, Any]) -> None:
        async with self._changed:
            self._events.append({"type": kind, "object": document})
            self._changed.notify_all()

    async def _watch(self, request: web.Request, namespace: str) -> web.StreamResponse:
        if request.query.get("sendInitialEvents"):
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 422}
            return web.json_response({**status, "reason": "Invalid", "message": "no such option"}, status=422)
        stream = web.StreamResponse(headers={"Content-Type": "application/json"})
        await stream.prepare(request)
        since = int(request.query.get("resourceVersion") or self._revision)
        sent = 0
        while not self.more.is_set():
            for event in self._events[sent:]:
                if int(event["object"]["metadata"]["resourceVersion"]) > since:
                    await stream.write(json.dumps(event).encode() + b"\n")
            sent = len(self._events)
            async with self._changed:
                while len(self._events) == sent and not self.more.is_set():
                    await self._changed.wait()
        return stream

    async def release(self) -> None:
        self.more.set()
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def extension(front_proxy_ca: str, directory: Path) -> AsyncIterator[Extension]:
    """A server that takes requests of a front proxy alone, whose authority this is."""
    made = Extension()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    pair = made.authority.serving(("ext.default.svc",), ("127.0.0.1",))
    both = directory / "pair"
    both.write_bytes(pair.cert + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    context.load_verify_locations(cadata=front_proxy_ca)
    context.verify_mode = ssl.CERT_REQUIRED
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    made.address = f"127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await made.release()
        await runner.cleanup()


def api_service(ca_bundle: str = "", name: str = "ext", **more: Any) -> dict[str, Any]:
    """The APIService of the flavors."""
    spec = {
        "group": GROUP,
        "version": VERSION,
        "groupPriorityMinimum": 1000,
        "versionPriority": 10,
        "service": {"namespace": "default", "name": name},
        "caBundle": ca_bundle,
        **more,
    }
    return {"metadata": {"name": f"{VERSION}.{GROUP}"}, "spec": spec}
