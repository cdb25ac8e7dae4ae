"""Dry runs: a server that does everything but write.

Requests take their usual way through defaults, admission and checks, and are answered with what would
have become of them.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.server.registry.resources import Resource
from steersman.server.server import Server, Settle


class Rehearsal(Server):
    """A server on the state of another, where nothing that is written stays."""

    def __init__(self, server: Server) -> None:
        # It is the same server in everything, also in what extensions have added to it.
        vars(self).update(vars(server))

    def write(self, resource: Resource, key: str, obj: Any, owners: Any = None) -> Any:
        meta, old = obj.metadata, self.table(resource).get(key)
        # What is not written stays at the version it is at.
        version = "" if old is None else old.metadata.resourceVersion
        owners = meta.managedFields if owners is None else owners
        return replace(obj, metadata=replace(meta, resourceVersion=version, managedFields=owners))

    def remove(self, resource: Resource, key: str) -> Any:
        last = self.table(resource).get(key)
        return last if resource.serve is None else resource.serve(last)

    def validate(self, *request: Any) -> Settle | None:
        """Refuses as ever; but what is not written uses up nothing."""
        super().validate(*request)
        return None

    def reap(self, resource: Resource) -> None:
        """What has outlived its time goes when somebody is serious."""
