"""The verbs a benchmark needs, over one connection pool to a real API server."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec

from steersman.api.errors import from_status
from steersman.api.scheme import Kind, encode

T = TypeVar("T")


class Event(msgspec.Struct):
    """One line of a watch, its object still raw."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw]


class Wire:
    """An administrator's client. Not throttled: it must never be what a benchmark waits for."""

    def __init__(self, kubeconfig: Path) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._url: str = cluster["server"]
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=ca)
        with tempfile.NamedTemporaryFile() as file:
            file.write(base64.b64decode(user["client-certificate-data"]))
            file.write(base64.b64decode(user["client-key-data"]))
            file.flush()
            self._tls.load_cert_chain(file.name)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            self._url,
            connector=aiohttp.TCPConnector(ssl=self._tls, limit=100),
            headers={"User-Agent": "steersman-benchmark", "Accept": "application/json"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            read_bufsize=1 << 20,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        params: dict[str, str] | None = None,
    ) -> bytes:
        assert self._session is not None
        async with self._session.request(
            method, path, data=body, params=params, headers={"Content-Type": content_type}
        ) as answer:
            data = await answer.read()
            if answer.status >= 400:
                raise from_status(json.loads(data), code=answer.status)
            return data

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        data = await self.request("POST", kind.path(namespace), encode(kind, body))
        return msgspec.json.decode(data, type=kind.type)

    async def patch(
        self, kind: Kind[T], namespace: str, name: str, body: object, *, subresource: str = ""
    ) -> T:
        data = await self.request(
            "PATCH",
            kind.path(namespace, name, subresource),
            msgspec.json.encode(body),
            "application/merge-patch+json",
        )
        return msgspec.json.decode(data, type=kind.type)

    async def delete(
        self, kind: Kind[Any], namespace: str, name: str, *, grace: int | None = None, propagation: str = ""
    ) -> None:
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        await self.request("DELETE", kind.path(namespace, name), json.dumps(options).encode())

    async def list(self, kind: Kind[T], namespace: str = "") -> tuple[list[T], str]:
        data = await self.request("GET", kind.path(namespace))
        found = msgspec.json.decode(data, type=_List)
        return [
            msgspec.json.decode(raw, type=kind.type) for raw in found.items
        ], found.metadata.resourceVersion

    async def watch(self, kind: Kind[T], namespace: str, since: str) -> AsyncIterator[tuple[str, T]]:
        """Changes since a resourceVersion, until the server ends it."""
        assert self._session is not None
        params = {"watch": "1", "resourceVersion": since}
        decoder = msgspec.json.Decoder(Event)
        objects = msgspec.json.Decoder(kind.type)
        async with self._session.get(kind.path(namespace), params=params) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                event = decoder.decode(line)
                if event.type == "ERROR":
                    raise from_status(json.loads(bytes(event.object)))
                yield event.type, objects.decode(event.object)
