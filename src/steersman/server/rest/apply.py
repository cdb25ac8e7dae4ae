"""Apply: merges a manager's whole intent into an object, and creates the object if it does not exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.errors import ServerError
from steersman.server import status_errors
from steersman.server.apply.deferred_owners import StoredManagedFields
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.codec.convert import to_struct
from steersman.server.rest.create import create
from steersman.server.rest.request import Request, Result, check_identity
from steersman.server.rest.update import change, may_create
from steersman.server.server import Server
from steersman.server.storage.store import object_key


def apply(server: Server, request: Request, configuration: Mapping[str, Any]) -> Result:
    """Applies a configuration to an object or to its subresource."""
    resource, namespace, name = request.resource, request.namespace, request.name
    ownership = field_manager_for(resource, request.subresource)
    now = server.now()
    owners: StoredManagedFields = ()

    def make(old: Any) -> Any:
        nonlocal owners
        document, owners = ownership.applied(
            old, dict(configuration), request.field_manager, now, force=request.force
        )
        if document is None:
            return old
        metadata = document.get("metadata") or {}
        check_identity(request, metadata.get("namespace"), metadata.get("name"))
        try:
            return to_struct(resource.type, document)
        except ValueError as error:
            where = f"{namespace}/{name}; {resource.group}/{resource.version}, Kind={resource.kind}"
            raise ServerError(f"failed to convert new object ({where}) to proper version: {error}") from None

    if may_create(request) and server.table(resource).get(object_key(namespace, name)) is None:
        new = make(None)
        if new.metadata.uid:
            raise status_errors.conflict(
                resource.group,
                resource.plural,
                name,
                f"uid mismatch: the provided object specified uid {new.metadata.uid}, "
                "and no existing object was found",
            )
        return Result(create(server, request, new, owners), created=True)
    return Result(change(server, request, make, owners=lambda old, new: owners))
