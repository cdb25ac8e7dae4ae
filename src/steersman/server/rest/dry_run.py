"""Dry run: a server that discards every write.

Requests pass defaulting, admission and validation as ever, and are answered with what would have been stored.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes, BeforeWrite, Server


class DryRunServer(Server):
    """A server on the state of another that stores nothing."""

    dry_run = True

    def __init__(self, server: Server) -> None:
        # Everything else is shared, also what extensions have added.
        vars(self).update(vars(server))

    def write(self, resource: Resource, key: str, obj: Any, owners: Any = None) -> Any:
        meta, old = obj.metadata, self.table(resource).get(key)
        # An object that is not stored keeps the version it has.
        version = "" if old is None else old.metadata.resourceVersion
        owners = meta.managedFields if owners is None else owners
        return replace(obj, metadata=replace(meta, resourceVersion=version, managedFields=owners))

    def remove(self, resource: Resource, key: str) -> Any:
        last = self.table(resource).get(key)
        return last if resource.serve is None else resource.serve(last)

    def validate(self, request: AdmissionAttributes) -> BeforeWrite | None:
        """Refuses as ever, and charges nothing to quotas."""
        super().validate(request)
        return None
