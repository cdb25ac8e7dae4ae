"""The verb: a patch that says all that somebody wants, and creates what is not there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from steersman.api.errors import ServerError
from steersman.server import status_errors
from steersman.server.apply.deferred_owners import StoredManagedFields
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.codec.convert import adopt
from steersman.server.registry.resources import Resource
from steersman.server.rest import verbs
from steersman.server.server import Server
from steersman.server.storage.store import object_key


class Answer(NamedTuple):
    """What became of an apply."""

    obj: Any
    created: bool


def apply(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    patch: Mapping[str, Any],
    *,
    manager: str,
    force: bool = False,
    subresource: str = "",
    user: str = "",
) -> Answer:
    """Apply a document to an object or to a part of it; an object that is not there is created."""
    follows = field_manager_for(resource, subresource)
    now = server.now()
    owners: StoredManagedFields = ()

    def make(old: Any) -> Any:
        nonlocal owners
        document, owners = follows.applied(old, dict(patch), manager, now, force=force)
        if document is None:
            return old
        _addressed(resource, namespace, name, document.get("metadata") or {})
        try:
            return adopt(resource.type, document)
        except ValueError as error:
            where = f"{namespace}/{name}; {resource.group}/{resource.version}, Kind={resource.kind}"
            raise ServerError(f"failed to convert new object ({where}) to proper version: {error}") from None

    if not subresource and server.table(resource).get(object_key(namespace, name)) is None:
        new = make(None)
        if new.metadata.uid:
            raise status_errors.conflict(
                resource.group,
                resource.plural,
                name,
                f"uid mismatch: the provided object specified uid {new.metadata.uid}, "
                "and no existing object was found",
            )
        made = verbs.create(server, resource, namespace, new, user=user, owners=owners)
        return Answer(made, True)
    changed = verbs.change(
        server,
        resource,
        namespace,
        name,
        make,
        merge=verbs.merge_of(resource, subresource),
        subresource=subresource,
        user=user,
        owners=lambda old, new: owners,
    )
    return Answer(changed, False)


def _addressed(resource: Resource, namespace: str, name: str, metadata: Mapping[str, Any]) -> None:
    """What is applied must be what the path names."""
    said = metadata.get("namespace")
    if resource.namespaced and said and said != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not metadata.get("name"):
        raise status_errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if metadata["name"] != name:
        raise status_errors.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )
