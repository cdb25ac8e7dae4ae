"""Request: one API request as a value, whichever way it came in."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from steersman.server import status_errors
from steersman.server.auth.users import APISERVER, User
from steersman.server.registry.graceful_deletion import DeletionOptions
from steersman.server.registry.resources import Resource


class ListOptions(msgspec.Struct, frozen=True):
    """The options of a list, a watch or a deletecollection."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    allow_watch_bookmarks: bool = False
    send_initial_events: bool | None = None
    level_triggered: bool = False
    """The watcher needs the latest state of each object, but not every state in between."""


_EVERYTHING = ListOptions()
_DEFAULT_DELETION = DeletionOptions()


class Request(msgspec.Struct, frozen=True, gc=False):
    """A request for a resource, after authentication and routing, before its body."""

    user: User
    verb: str
    """The verb as RBAC knows it: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` or
    ``deletecollection``."""
    resource: Resource
    namespace: str = ""
    """Empty for cluster-scoped resources and for lists across namespaces."""
    name: str = ""
    subresource: str = ""
    dry_run: bool = False
    field_manager: str = ""
    """The owner of the fields that are written: the option of that name, or the client's user agent."""
    patch_type: str = ""
    """The media type of a patch."""
    force: bool = False
    """Whether an apply takes over fields that others own."""
    field_validation: str = ""
    list_options: ListOptions = _EVERYTHING
    deletion: DeletionOptions = _DEFAULT_DELETION
    named_manager: str = ""
    """The option ``fieldManager``; empty if the client did not give it."""
    requested: Resource | None = None
    """The version of the resource that the client asked for; None if it is ``resource``."""


def server_request(verb: str, resource: Resource, namespace: str = "", name: str = "") -> Request:
    """A request that the server makes of its own accord, as ``system:apiserver``."""
    return Request(APISERVER, verb, resource, namespace, name)


class Result(NamedTuple):
    """The outcome of a writing request."""

    obj: Any
    """The object; or the Status, review, Scale or `Page` that answers the request."""
    created: bool = False
    deleted: bool = False
    """Whether a deletion has removed the object, instead of marking it."""
    warnings: tuple[str, ...] = ()


def check_identity(request: Request, namespace: str | None, name: str | None) -> None:
    """Refuses a body whose namespace or name is not the request's. An empty namespace means the request's."""
    if request.resource.namespaced and namespace and namespace != request.namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not name:
        raise status_errors.bad_request(
            f"the name of the object ({request.name} based on URL) was undeterminable: name must be provided"
        )
    if name != request.name:
        raise status_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({request.name})"
        )
