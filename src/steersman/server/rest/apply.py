"""Apply: merges a manager's whole intent into an object, and creates the object if it does not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from steersman.api.errors import ServerError
from steersman.server import status_errors
from steersman.server.apply.deferred_owners import StoredManagedFields
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.codec import go_conversion
from steersman.server.codec.convert import CODECS, to_struct
from steersman.server.registry.resources import Resource
from steersman.server.rest.create import create
from steersman.server.rest.request import Request, Result, check_identity
from steersman.server.rest.update import change, may_create
from steersman.server.server import Server
from steersman.server.storage.store import object_key


def apply(server: Server, request: Request, configuration: Mapping[str, Any]) -> Result:
    """Applies a configuration to an object or to its subresource."""
    resource = request.resource
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
            return _converted(resource, document, configuration)
        except ValueError as error:
            raise _unconvertible(request, configuration, str(error)) from None

    try:
        return _applied(server, request, make, lambda old, new: owners)
    except status_errors.MalformedObject as error:
        raise _unconvertible(request, configuration, go_conversion.malformed(error.why)) from None


def _converted(resource: Resource, document: dict[str, Any], configuration: Mapping[str, Any]) -> Any:
    """An applied document as a struct, converted as Go does it. Raises `ValueError` in Go's words."""
    if resource.type in CODECS:
        return to_struct(resource.type, document)
    if not go_conversion.is_ambiguous(configuration):
        with suppress(ValueError):
            return to_struct(resource.type, document)
    return to_struct(resource.type, go_conversion.converted(resource.type, document))


def _applied(
    server: Server,
    request: Request,
    make: Callable[[Any], Any],
    owners: Callable[[Any, Any], StoredManagedFields],
) -> Result:
    """Stores the object that ``make`` makes of the one that there is, or of none."""
    resource, namespace, name = request.resource, request.namespace, request.name
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
        return Result(create(server, request, new, owners(None, new)), created=True)
    return Result(change(server, request, make, owners=owners))


def _unconvertible(request: Request, configuration: Mapping[str, Any], why: str) -> ServerError:
    """The refusal of a configuration with a value that its kind cannot decode, which upstream takes for its own failure."""
    kind = f"{request.resource.group}/{request.resource.version}, Kind={request.resource.kind}"
    meta = configuration.get("metadata") or {}
    where = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}"
    return ServerError(
        f"failed to convert new object ({where}; {kind}) to proper version: "
        f"unable to convert unstructured object to {kind}: {why}"
    )
