"""Discovery and OpenAPI for clients in the same process, without HTTP."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.api import generated
from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import NotFound
from steersman.server.discovery.documents import CUSTOM_VERBS, custom_resources, version_order
from steersman.server.registry.resources import Registry
from steersman.server.storage.watch import Selection

if TYPE_CHECKING:
    from steersman.server.server import Server

_V3_ROOT = "/openapi/v3"
_CUSTOM_RESOURCE_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def discover(registry: Registry) -> DiscoveryResult:
    """All resources that a registry serves: the same object until one is added or removed, also for forks."""
    if registry.discovered is None:
        registry.discovered = _discovered(registry)
    return registry.discovered


def _discovered(registry: Registry) -> DiscoveryResult:
    gated = tuple(_api_resource(row) for row in registry.rows() if row.gate)
    built_in = (*_built_in_resources(), *gated)
    built_in_versions = {(resource.group, resource.version) for resource in built_in}
    custom = sorted(
        registry.added(),
        key=lambda resource: (resource.group, version_order(resource.version), resource.plural),
    )
    return DiscoveryResult(
        (
            *built_in,
            *(
                ApiResource(
                    resource.group,
                    resource.version,
                    resource.kind,
                    resource.plural,
                    resource.namespaced,
                    CUSTOM_VERBS if resource.verbs is None else resource.verbs,
                    resource.subresources,
                )
                for resource in custom
                # A built-in version has no custom resources.
                if (resource.group, resource.version) not in built_in_versions
            ),
        )
    )


@cache
def _built_in_resources() -> tuple[ApiResource, ...]:
    return tuple(map(_api_resource, generated.resources()))


def _api_resource(row: generated.Resource) -> ApiResource:
    return ApiResource(
        row.group,
        row.version,
        row.kind,
        row.plural,
        row.namespaced,
        row.verbs,
        tuple(subresource.name for subresource in row.subresources),
        row.short_names,
    )


def openapi_document(server: Server, path: str) -> dict[str, Any]:
    """The OpenAPI v3 document at a path. Raises `NotFound`."""
    # OpenAPI is imported on first use: few clients in the process need it.
    from steersman.server.discovery.openapi import OpenAPI

    definitions = server.store.table(_CUSTOM_RESOURCE_DEFINITIONS).select(Selection())
    openapi = OpenAPI(resource for definition in definitions for resource in custom_resources(definition))
    if path == _V3_ROOT:
        return openapi.index()
    encoded = openapi.v3(path.removeprefix(f"{_V3_ROOT}/")) if path.startswith(f"{_V3_ROOT}/") else None
    if encoded is None:
        raise NotFound("the server could not find the requested resource", reason="NotFound")
    document: dict[str, Any] = msgspec.json.decode(encoded.body)
    return document
