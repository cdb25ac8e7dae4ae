"""Update: replaces an object or a part of it; `change` is what every update and patch comes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from steersman.api.errors import NotFound, ServerError
from steersman.api.scheme import same_encoding
from steersman.server import status_errors
from steersman.server.admission import namespace_lifecycle
from steersman.server.apply.deferred_owners import StoredManagedFields, same_ownership
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.options import APPLY_YAML
from steersman.server.registry import graceful_deletion, object_meta
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import PrepareForUpdate, WriteContext
from steersman.server.rest.authorization import authorize_grant, field_errors
from steersman.server.rest.create import create
from steersman.server.rest.listing import parse_uint64
from steersman.server.rest.request import Request, Result, check_identity
from steersman.server.server import ObjectView, Server
from steersman.server.storage.store import object_key

Change: TypeAlias = Callable[[Any], Any]
"""Makes the new object from the old one."""


_UNTYPED = frozenset(
    {
        "customresourcedefinitions.apiextensions.k8s.io",
        "deviceclasses.resource.k8s.io",
        "resourceclaims.resource.k8s.io",
    }
)
"""Resources with parts of any form that can change, in which true is not 1."""


def update(server: Server, request: Request, obj: Any) -> Result:
    """Replaces an object, or the part of it that is the request's subresource.

    Some resources create an object that does not exist.
    """
    resource, given = request.resource, obj.metadata
    check_identity(request, given.namespace, given.name)
    if resource.strategy.allow_create_on_update and may_create(request):
        existing = server.table(resource).get(object_key(request.namespace, request.name))
        if existing is None:
            if given.uid:
                raise status_errors.uid_mismatch(
                    resource.group, resource.plural, request.namespace, request.name, given.uid, ""
                )
            fresh = replace(obj, metadata=replace(given, resourceVersion=""))
            return Result(create(server, request, fresh), created=True)
    return Result(change(server, request, lambda old: obj, uid=given.uid))


def may_create(request: Request) -> bool:
    """Whether an update or apply of an absent object can create it, which upstream does also by its status."""
    part = request.subresource
    return not part or (part == "status" and request.resource.strategy.allow_create_on_update)


def prepare_for(resource: Resource, subresource: str) -> PrepareForUpdate:
    """The strategy function for updates of an object or subresource. Raises `NotFound` for an unknown subresource."""
    strategy = resource.strategy
    prepare = {"": strategy.prepare_for_update, "status": strategy.prepare_for_status_update}.get(
        subresource
    ) or strategy.subresource_updates.get(subresource)
    if prepare is None:
        raise NotFound("the server could not find the requested resource", reason="NotFound")
    return prepare


def change(
    server: Server,
    request: Request,
    make: Change,
    *,
    prepare: PrepareForUpdate | None = None,
    uid: str = "",
    owners: Callable[[Any, Any], StoredManagedFields] | None = None,
    view: ObjectView | None = None,
) -> Any:
    """Replaces an object by what ``make`` makes of it, and returns it.

    A resourceVersion in the new object, and ``uid``, are preconditions. A change that leaves the object equal
    is not written. The request's field manager owns what changes, unless ``owners`` returns other
    ``managedFields`` for the old and the new object. ``prepare`` is the subresource's unless given. ``view`` is how the
    object is shown to webhooks.
    """
    resource, subresource = request.resource, request.subresource
    namespace, name = request.namespace, request.name
    if resource.hub is not None:
        return _change_hub(server, request, resource.hub, make, uid, owners)
    if prepare is None:
        prepare = prepare_for(resource, subresource)
    strategy = resource.strategy
    old = server.get(resource, namespace, name)
    was = old.metadata
    if uid and uid != was.uid:
        raise status_errors.uid_mismatch(resource.group, resource.plural, namespace, name, uid, was.uid)
    new = make(old)
    applied = request.patch_type == APPLY_YAML
    if applied and strategy.default_applied is not None:
        new = strategy.default_applied(new)
    elif subresource == "status":
        new = strategy.status_default(new)
    else:
        new = strategy.default(new)
    now = server.now()
    if owners is None:
        owned = field_manager_for(resource, subresource).updated(old, new, request.field_manager, now)
    else:
        owned = owners(old, new)
    if resource.namespaced:
        namespace_lifecycle.updating(server, namespace)
    admission = server.attributes(
        "UPDATE", resource, subresource, namespace, name, new, old, request, owned, view
    )
    new = server.admit(admission)
    authorize_grant(server, request, new, old)
    version = new.metadata.resourceVersion
    if not version or version == "0":
        if not strategy.allow_unconditional_update:
            # Upstream says the resource where it means the kind.
            missing = [
                status_errors.field_invalid("metadata.resourceVersion", 0, "must be specified for an update")
            ]
            raise status_errors.invalid(resource.group, resource.plural, name, missing)
    elif version != was.resourceVersion:
        try:
            parse_uint64(version)
        except ValueError as error:
            raise ServerError(str(error)) from None
        raise status_errors.conflict(
            resource.group, resource.plural, name, status_errors.OPTIMISTIC_LOCK_ERROR
        )
    server.request_warnings += object_meta.duplicate_warnings(
        new.metadata.ownerReferences, patched=request.verb == "patch"
    )
    meta = object_meta.meta_for_update(new.metadata, was, namespace=namespace)
    context = WriteContext(now, request.user, server.request_warnings, applied)
    new = prepare(replace(new, metadata=meta), old, context)
    if (
        strategy.changes_generation is not None
        and subresource != "status"
        and strategy.changes_generation(new, old)
    ):
        new = replace(new, metadata=replace(new.metadata, generation=was.generation + 1))
    wrong = field_errors(
        server,
        request,
        new,
        old,
        strategy.rules.update(new, old, subresource, namespaced=resource.namespaced),
    )
    if wrong:
        raise status_errors.invalid(resource.group, resource.kind, name, wrong)
    settle = server.validate(replace(admission, obj=new))
    key = object_key(namespace, name)
    if graceful_deletion.deletion_finished(new, old, strategy):
        server.remove(resource, key)
        meta = replace(new.metadata, managedFields=owned, resourceVersion=was.resourceVersion)
        return replace(new, metadata=meta)
    settled = replace(new, metadata=replace(new.metadata, resourceVersion=was.resourceVersion))
    unchanged = same_encoding(settled, old) if resource.id in _UNTYPED else settled == old
    if unchanged and same_ownership(owned, was.managedFields):
        return old
    if settle is not None:
        settle()
    return server.write(resource, key, new, owned)


def _change_hub(
    server: Server,
    request: Request,
    hub: Resource,
    make: Change,
    uid: str,
    owners: Callable[[Any, Any], StoredManagedFields] | None,
) -> Any:
    """Changes an object by way of the version in which it is stored."""
    resource, subresource = request.resource, request.subresource
    strategy = resource.strategy
    assert resource.store is not None
    assert resource.serve is not None
    serve, store = resource.serve, resource.store
    owned: StoredManagedFields = ()

    def made(stored: Any) -> Any:
        nonlocal owned
        old = serve(stored)
        new = make(old)
        new = store(strategy.status_default(new) if subresource == "status" else strategy.default(new))
        if owners is None:
            now = server.now()
            owned = field_manager_for(resource, subresource).updated(
                old, serve(new), request.field_manager, now
            )
        else:
            owned = owners(old, new)
        return new

    stored = replace(request, resource=hub, requested=resource)
    changed = change(server, stored, made, uid=uid, owners=lambda old, new: owned)
    return serve(changed)
