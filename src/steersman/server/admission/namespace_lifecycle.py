"""NamespaceLifecycle: denies writes in missing namespaces and creations in terminating ones."""

from __future__ import annotations

from typing import Any

from steersman.api.errors import Cause
from steersman.server import status_errors
from steersman.server.registry.core import IMMORTAL_NAMESPACES
from steersman.server.registry.resources import Resource
from steersman.server.server import Server


def creating(server: Server, resource: Resource, namespace: str, obj: Any) -> None:
    """Denies a creation in a namespace that does not exist or is terminating."""
    found = server.store.table("namespaces").get(namespace)
    if found is None:
        raise status_errors.not_found("", "namespaces", namespace)
    if found.status.phase == "Terminating":
        meta = obj.metadata
        raise status_errors.forbidden(
            resource.group,
            resource.plural,
            meta.name or meta.generateName or "Unknown",
            f"unable to create new content in namespace {namespace} because it is being terminated",
            (
                Cause(
                    "NamespaceTerminating",
                    f"namespace {namespace} is being terminated",
                    "metadata.namespace",
                ),
            ),
        )


def updating(server: Server, namespace: str) -> None:
    """Denies an update in a namespace that does not exist."""
    if server.store.table("namespaces").get(namespace) is None:
        raise status_errors.not_found("", "namespaces", namespace)


def deleting(resource: Resource, name: str) -> None:
    """Denies the deletion of immortal namespaces."""
    if resource.id == "namespaces" and name in IMMORTAL_NAMESPACES:
        raise status_errors.forbidden("", "namespaces", name, "this namespace may not be deleted")
