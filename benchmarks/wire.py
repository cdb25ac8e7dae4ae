"""The verbs a benchmark needs, over one connection pool to a real API server.

Not the manager's own client, for two reasons: a fault in it must not hide in both sides of a
measurement, and the server encodes a watched object once for all who ask for it in the same form.
A benchmark that followed pods as a manager does would pay part of that manager's bill, and only of
the one that reads JSON. So pods are followed as `METADATA`, a form neither manager uses.
"""

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

JSON = "application/json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Objects with nothing but their metadata, as the server cuts them down."""


class Event(msgspec.Struct):
    """One line of a watch, its object still raw."""

    type: str
    object: msgspec.Raw


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


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
            headers={"User-Agent": "steersman-benchmark"},
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
        content_type: str = JSON,
        accept: str = JSON,
    ) -> bytes:
        assert self._session is not None
        headers = {"Content-Type": content_type, "Accept": accept}
        async with self._session.request(method, path, data=body, headers=headers) as answer:
            data = await answer.read()
            if answer.status >= 400:
                raise from_status(json.loads(data), code=answer.status)
            return data

    async def create(self, kind: Kind[T], namespace: str, body: object) -> T:
        data = await self.request("POST", kind.path(namespace), encode(kind, body))
        return msgspec.json.decode(data, type=kind.type)

    async def patch(
        self,
        kind: Kind[T],
        namespace: str,
        name: str,
        body: object,
        *,
        subresource: str = "",
        accept: str = JSON,
    ) -> T:
        data = await self.request(
            "PATCH",
            kind.path(namespace, name, subresource),
            msgspec.json.encode(body),
            "application/merge-patch+json",
            accept,
        )
        return msgspec.json.decode(data, type=kind.type)

    async def delete(self, kind: Kind[Any], namespace: str, name: str, *, grace: int | None = None) -> None:
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        path = kind.path(namespace, name)
        await self.request("DELETE", path, json.dumps(options).encode(), accept=METADATA)

    async def list(self, kind: Kind[T], namespace: str = "", *, accept: str = JSON) -> tuple[list[T], str]:
        """All objects, and the resourceVersion to watch from."""
        # The lists of cut-down objects have a name of their own.
        accept = accept.replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;")
        data = await self.request("GET", kind.path(namespace), accept=accept)
        found = msgspec.json.decode(data, type=_List)
        return [
            msgspec.json.decode(raw, type=kind.type) for raw in found.items or ()
        ], found.metadata.resourceVersion

    async def watch(
        self, kind: Kind[T], namespace: str, since: str, *, accept: str = JSON
    ) -> AsyncIterator[tuple[str, T]]:
        """Changes since a resourceVersion, until the server ends it."""
        assert self._session is not None
        params = {"watch": "1", "resourceVersion": since}
        decoder = msgspec.json.Decoder(Event)
        objects = msgspec.json.Decoder(kind.type)
        headers = {"Accept": accept}
        async with self._session.get(kind.path(namespace), params=params, headers=headers) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                event = decoder.decode(line)
                if event.type == "ERROR":
                    raise from_status(json.loads(bytes(event.object)))
                yield event.type, objects.decode(event.object)
