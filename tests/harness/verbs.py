"""REST verbs by position, as `system:apiserver` unless a test names a user: shortcuts to `steersman.server.rest`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from steersman.server.auth.users import APISERVER, User
from steersman.server.registry.graceful_deletion import DeletionOptions
from steersman.server.registry.resources import Resource
from steersman.server.rest.perform import perform
from steersman.server.rest.request import Request, Result, check_identity
from steersman.server.rest.update import change
from steersman.server.server import Server


def create(
    server: Server,
    resource: Resource,
    namespace: str,
    obj: Any,
    *,
    user: User = APISERVER,
    manager: str = "",
    dry_run: bool = False,
) -> Any:
    request = Request(user, "create", resource, namespace, field_manager=manager, dry_run=dry_run)
    return perform(server, request, obj).obj


def update(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    obj: Any,
    *,
    subresource: str = "",
    user: User = APISERVER,
    manager: str = "",
) -> Any:
    request = Request(user, "update", resource, namespace, name, subresource, field_manager=manager)
    return perform(server, request, obj).obj


def update_status(server: Server, resource: Resource, namespace: str, name: str, obj: Any, **how: Any) -> Any:
    return update(server, resource, namespace, name, obj, subresource="status", **how)


def patch(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    make: Callable[[Any], Any],
    *,
    subresource: str = "",
    user: User = APISERVER,
    manager: str = "",
) -> Any:
    """Changes an object into what a function makes of it."""
    request = Request(user, "patch", resource, namespace, name, subresource, field_manager=manager)

    def made(old: Any) -> Any:
        new = make(old)
        check_identity(request, new.metadata.namespace, new.metadata.name)
        return new

    return change(server, request, made)


def delete(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    options: DeletionOptions = DeletionOptions(),
    *,
    user: User = APISERVER,
    dry_run: bool = False,
) -> Result:
    request = Request(user, "delete", resource, namespace, name, dry_run=dry_run, deletion=options)
    return perform(server, request)
