"""What a server says of itself, for clients in the same process: OpenAPI v3, as over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from steersman.api.errors import NotFound
from steersman.server.discovery.documents import custom_resources
from steersman.server.discovery.openapi import OpenAPI
from steersman.server.server import Server
from steersman.server.storage.watch import Selection

ROOT = "/openapi/v3"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def document(server: Server, path: str) -> dict[str, Any]:
    """The document at a path. Raises `NotFound` where there is none."""
    definitions = server.store.table(DEFINITIONS).select(Selection())
    openapi = OpenAPI(each for definition in definitions for each in custom_resources(definition))
    if path == ROOT:
        return openapi.index()
    found = openapi.v3(path.removeprefix(f"{ROOT}/")) if path.startswith(f"{ROOT}/") else None
    if found is None:
        raise NotFound("the server could not find the requested resource", reason="NotFound")
    read: dict[str, Any] = msgspec.json.decode(found.body)
    return read
