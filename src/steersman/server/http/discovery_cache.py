"""DiscoveryCache: discovery documents, OpenAPI, table columns and list kinds of what is served now.

All are computed when first needed, and again after a CustomResourceDefinition has changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from steersman.server.discovery.documents import (
    METRICS_RESOURCES,
    CustomResource,
    Discovery,
    custom_resources,
)
from steersman.server.registry.resources import Resource
from steersman.server.server import Server
from steersman.server.storage.watch import Commit, Selection

if TYPE_CHECKING:
    from steersman.server.discovery.openapi import OpenAPI
    from steersman.server.discovery.remote import RemoteVersion
    from steersman.server.tables import Printer

_DEPRECATED = {
    ("componentstatuses", "v1"): "v1 ComponentStatus is deprecated in v1.19+",
    ("endpoints", "v1"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class RemoteDocuments(Protocol):
    """The discovery documents of aggregated servers."""

    def versions(self) -> Sequence[RemoteVersion]:
        """Their group versions."""
        ...

    def openapi_v2(self) -> Sequence[dict[str, Any]]:
        """The parts of their OpenAPI v2 documents about these, by priority."""
        ...

    def openapi_v3(self) -> Mapping[str, str]:
        """The URLs of their OpenAPI v3 documents, by name."""
        ...


class DiscoveryCache:
    """Discovery of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.remote: RemoteDocuments | None = None
        """The documents of aggregated servers; None while there are none."""
        self._snapshot = _Snapshot(server, self.remote)
        server.store.commit_hooks.append(self._on_commit)

    def close(self) -> None:
        """Stops following the server."""
        self._server.store.commit_hooks.remove(self._on_commit)

    def _on_commit(self, commit: Commit) -> None:
        if commit.resource == DEFINITIONS:
            self.renew()

    def renew(self) -> None:
        """Computes everything anew when it is next needed."""
        self._snapshot = _Snapshot(self._server, self.remote)

    @property
    def discovery(self) -> Discovery:
        return self._snapshot.discovery

    @property
    def openapi(self) -> OpenAPI:
        return self._snapshot.openapi

    def deprecation(self, resource: Resource) -> str:
        """The deprecation warning of a resource; empty for most."""
        return _DEPRECATED.get((resource.id, resource.version)) or self._snapshot.deprecations.get(
            (resource.group, resource.version, resource.plural), ""
        )

    def list_kind(self, resource: Resource) -> str:
        """The kind of a list of a resource's objects."""
        custom = self._snapshot.custom.get((resource.group, resource.version, resource.plural))
        return (custom.list_kind if custom is not None else "") or f"{resource.kind}List"

    def printer(self, resource: Resource) -> Printer:
        """The printer of a resource's tables."""
        return self._snapshot.printer(resource)


class _Snapshot:
    """Discovery between two changes of CustomResourceDefinitions."""

    def __init__(self, server: Server, remote: RemoteDocuments | None) -> None:
        self._server = server
        self._remote = remote
        self._printers: dict[Resource, Printer] = {}

    @cached_property
    def custom(self) -> dict[tuple[str, str, str], CustomResource]:
        definitions = self._server.store.table(DEFINITIONS).select(Selection())
        found = [each for definition in definitions for each in custom_resources(definition)]
        return {(each.group, each.version, each.plural): each for each in found}

    @cached_property
    def deprecations(self) -> dict[tuple[str, str, str], str]:
        if not self.custom:
            return {}
        from steersman.server.crd.warnings import deprecation

        definitions = {
            f"{definition.spec.names.plural}.{definition.spec.group}": definition
            for definition in self._server.store.table(DEFINITIONS).select(Selection())
        }
        return {
            key: deprecation(definitions[f"{each.plural}.{each.group}"], each.version)
            for key, each in self.custom.items()
        }

    @cached_property
    def discovery(self) -> Discovery:
        metrics = self._server.registry.serves(
            METRICS_RESOURCES[0].group, METRICS_RESOURCES[0].version, METRICS_RESOURCES[0].plural
        )
        return Discovery(
            self.custom.values(),
            metrics=metrics,
            built_in=self._server.registry.rows(),
            remote=() if self._remote is None else self._remote.versions(),
        )

    @cached_property
    def openapi(self) -> OpenAPI:
        from steersman.server.discovery.openapi import OpenAPI

        if self._remote is None:
            return OpenAPI(self.custom.values())
        return OpenAPI(
            self.custom.values(), remote_v2=self._remote.openapi_v2(), remote_v3=self._remote.openapi_v3()
        )

    def printer(self, resource: Resource) -> Printer:
        known = self._printers.get(resource)
        if known is None:
            from steersman.server.tables import custom_printer, printer_for

            custom = self.custom.get((resource.group, resource.version, resource.plural))
            known = printer_for(resource.id) if custom is None else custom_printer(custom.columns)
            self._printers[resource] = known
        return known
