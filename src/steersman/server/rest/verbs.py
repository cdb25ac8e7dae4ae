"""REST semantics: what each verb makes of the state, and what it refuses.

Every function is synchronous and takes effect as a whole: it raises and nothing happened, or it returns
and everything has. Bodies are full structs here (`steersman.server.codec.convert` makes them); what a resource
does differently is in its strategy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound, ServerError
from steersman.api.generated_names import generate
from steersman.server import status_errors
from steersman.server.admission import namespace_lifecycle
from steersman.server.apply.deferred_owners import StoredManagedFields, same_ownership
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.registry import graceful_deletion, object_meta
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import Merge, Moment
from steersman.server.rest.delete import delete, delete_collection
from steersman.server.server import Server
from steersman.server.storage.store import object_key

__all__ = [
    "change",
    "create",
    "delete",
    "delete_collection",
    "finalize",
    "merge_of",
    "patch",
    "update",
    "update_status",
]

_NAME_TRIES = 8

Change: TypeAlias = Callable[[Any], Any]
"""From what is there to what shall be."""


# -- creating ---------------------------------------------------------------------------------


def create(
    server: Server,
    resource: Resource,
    namespace: str,
    obj: Any,
    *,
    user: str = "",
    manager: str = "",
    owners: StoredManagedFields | None = None,
) -> Any:
    """Store a new object; answers with what became of it.

    Its fields are owned by the manager that makes it, or by those who are named as owners.
    """
    strategy = resource.strategy
    given = obj.metadata
    namespace = _namespace(resource, namespace, given.namespace)
    if resource.namespaced:
        namespace_lifecycle.creating(server, resource, namespace, obj)
    obj = strategy.default(obj)
    now = server.now()
    if resource.hub is not None:
        assert resource.store is not None
        assert resource.serve is not None
        stored = resource.store(obj)
        if owners is None:
            owners = field_manager_for(resource).created(resource.serve(stored), manager, now)
        return resource.serve(create(server, resource.hub, namespace, stored, user=user, owners=owners))
    if owners is None:
        owners = field_manager_for(resource).created(obj, manager, now)
    if server.admission:
        obj = server.admit("CREATE", resource, "", namespace, given.name, obj, None, user)
    given = obj.metadata
    if strategy.ttl is not None:
        server.reap(resource)
    name, key = _name(server, resource, namespace, given.name, given.generateName)
    meta = object_meta.begun(
        given,
        name=name,
        namespace=namespace,
        uid=server.uid(),
        now=now,
        # Where nobody counts generations, nobody minds them either.
        generation=1 if strategy.counts is not None else given.generation,
    )
    obj = strategy.created(replace(obj, metadata=meta), Moment(now))
    wrong = strategy.rules.create(obj, namespaced=resource.namespaced)
    if wrong:
        raise status_errors.invalid(resource.group, resource.kind, name, wrong)
    if given.resourceVersion:
        raise ServerError("resourceVersion should not be set on objects to be created")
    settle = server.validate("CREATE", resource, "", namespace, name, obj, None, user)
    existing = server.table(resource).get(key)
    if existing is not None:
        raise _exists(resource, name, bool(given.generateName and not given.name), existing)
    if settle is not None:
        settle()
    return server.write(resource, key, obj, owners)


def _namespace(resource: Resource, asked: str, given: str) -> str:
    """The namespace of a write: the request's, which the object must not contradict."""
    if not resource.namespaced:
        return ""
    if not asked:
        raise status_errors.unsupported(resource.group, resource.plural, "create")
    if given and given != asked:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return asked


def _name(server: Server, resource: Resource, namespace: str, name: str, prefix: str) -> tuple[str, str]:
    """The name of a new object and its key; a generated one is tried again while it is taken."""
    if name or not prefix:
        return name, object_key(namespace, name)
    table = server.table(resource)
    for _ in range(_NAME_TRIES):
        name = generate(prefix, server.names)
        key = object_key(namespace, name)
        if table.get(key) is None:
            break
    return name, key


def _exists(resource: Resource, name: str, generated: bool, existing: Any) -> ApiError:
    refuse = status_errors.name_taken if generated else status_errors.already_exists
    error = refuse(resource.group, resource.plural, name)
    if existing.metadata.deletionTimestamp is not None:
        error.message = f"object is being deleted: {error.message}"
    return error


# -- updating ---------------------------------------------------------------------------------


def update(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    obj: Any,
    *,
    user: str = "",
    manager: str = "",
) -> Any:
    """Replace an object, all but its status."""
    _addressed(resource, namespace, name, obj.metadata)
    given = obj.metadata
    existing = server.table(resource).get(object_key(namespace, name))
    if existing is None and resource.strategy.create_on_update:
        if given.uid:
            raise status_errors.other_uid(resource.group, resource.plural, namespace, name, given.uid, "")
        fresh = replace(obj, metadata=replace(given, resourceVersion=""))
        return create(server, resource, namespace, fresh, user=user, manager=manager)
    return change(
        server,
        resource,
        namespace,
        name,
        lambda old: obj,
        merge=resource.strategy.updated,
        uid=given.uid,
        user=user,
        manager=manager,
    )


def update_status(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    obj: Any,
    *,
    user: str = "",
    manager: str = "",
) -> Any:
    """Replace an object's status, and what of its metadata goes along with it."""
    merge = merge_of(resource, "status")
    _addressed(resource, namespace, name, obj.metadata)
    return change(
        server,
        resource,
        namespace,
        name,
        lambda old: obj,
        merge=merge,
        subresource="status",
        uid=obj.metadata.uid,
        user=user,
        manager=manager,
    )


def patch(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    make: Change,
    *,
    subresource: str = "",
    user: str = "",
    manager: str = "",
) -> Any:
    """Change an object, or its status, into what ``make`` makes of it."""

    def made(old: Any) -> Any:
        new = make(old)
        _addressed(resource, namespace, name, new.metadata)
        return new

    return change(
        server,
        resource,
        namespace,
        name,
        made,
        merge=merge_of(resource, subresource),
        subresource=subresource,
        user=user,
        manager=manager,
    )


def finalize(
    server: Server, resource: Resource, name: str, obj: Any, *, user: str = "", manager: str = ""
) -> Any:
    """Replace the finalizers in a namespace's spec; without any, one that is going is gone."""
    _addressed(resource, "", name, obj.metadata)
    return change(
        server,
        resource,
        "",
        name,
        lambda old: obj,
        merge=merge_of(resource, "finalize"),
        subresource="finalize",
        uid=obj.metadata.uid,
        user=user,
        manager=manager,
    )


def merge_of(resource: Resource, name: str) -> Merge:
    """How a request to an object or to a subresource changes it. Raises `NotFound` where there is none."""
    strategy = resource.strategy
    merge = {"": strategy.updated, "status": strategy.status_updated}.get(name) or strategy.parts.get(name)
    if merge is None:
        raise NotFound("the server could not find the requested resource", reason="NotFound")
    return merge


def change(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    make: Change,
    *,
    merge: Merge,
    subresource: str = "",
    uid: str = "",
    user: str = "",
    manager: str = "",
    owners: Callable[[Any, Any], StoredManagedFields] | None = None,
) -> Any:
    """Replace an object by what ``make`` makes of it; the heart of every update and patch.

    The new object may say which version it is a change of; ``uid`` says of which object. What comes out
    equal to what is there is not written. What changes is owned by the manager, unless ``owners`` says
    otherwise of the old and the new object.
    """
    if resource.hub is not None:
        return _change_through(
            server, resource, resource.hub, namespace, name, make, subresource, uid, user, manager, owners
        )
    strategy = resource.strategy
    old = server.get(resource, namespace, name)
    was = old.metadata
    if uid and uid != was.uid:
        raise status_errors.other_uid(resource.group, resource.plural, namespace, name, uid, was.uid)
    new = make(old)
    new = strategy.status_default(new) if subresource == "status" else strategy.default(new)
    now = server.now()
    owned = (
        owners(old, new)
        if owners
        else field_manager_for(resource, subresource).updated(old, new, manager, now)
    )
    if resource.namespaced:
        namespace_lifecycle.updating(server, namespace)
    if server.admission:
        new = server.admit("UPDATE", resource, subresource, namespace, name, new, old, user)
    version = new.metadata.resourceVersion
    if not version or version == "0":
        if not strategy.unconditional:
            # Upstream says the resource where it means the kind.
            missing = [status_errors.wrong("metadata.resourceVersion", 0, "must be specified for an update")]
            raise status_errors.invalid(resource.group, resource.plural, name, missing)
    elif version != was.resourceVersion:
        if not (version.isascii() and version.isdigit()):
            raise ServerError(f"strconv.ParseUint: parsing {status_errors.quote(version)}: invalid syntax")
        raise status_errors.conflict(resource.group, resource.plural, name, status_errors.LOCK)
    meta = object_meta.continued(new.metadata, was, namespace=namespace)
    new = merge(replace(new, metadata=meta), old, Moment(now))
    if strategy.counts is not None and subresource != "status" and strategy.counts(new, old):
        new = replace(new, metadata=replace(new.metadata, generation=was.generation + 1))
    wrong = strategy.rules.update(new, old, subresource, namespaced=resource.namespaced)
    if wrong:
        raise status_errors.invalid(resource.group, resource.kind, name, wrong)
    settle = server.validate("UPDATE", resource, subresource, namespace, name, new, old, user)
    key = object_key(namespace, name)
    if graceful_deletion.ended(new, old, strategy):
        server.remove(resource, key)
        meta = replace(new.metadata, managedFields=owned, resourceVersion=was.resourceVersion)
        return replace(new, metadata=meta)
    unchanged = replace(new, metadata=replace(new.metadata, resourceVersion=was.resourceVersion)) == old
    if unchanged and same_ownership(owned, was.managedFields):
        return old
    if settle is not None:
        settle()
    return server.write(resource, key, new, owned)


def _change_through(
    server: Server,
    resource: Resource,
    hub: Resource,
    namespace: str,
    name: str,
    make: Change,
    subresource: str,
    uid: str,
    user: str,
    manager: str,
    owners: Callable[[Any, Any], StoredManagedFields] | None,
) -> Any:
    """Change an object by way of the version in which it is stored."""
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
        follows = field_manager_for(resource, subresource)
        owned = owners(old, new) if owners else follows.updated(old, serve(new), manager, server.now())
        return new

    changed = change(
        server,
        hub,
        namespace,
        name,
        made,
        merge=merge_of(hub, subresource),
        subresource=subresource,
        uid=uid,
        user=user,
        owners=lambda old, new: owned,
    )
    return serve(changed)


def _addressed(resource: Resource, namespace: str, name: str, meta: Any) -> None:
    """The object of a request must be the one its path names."""
    if resource.namespaced and meta.namespace and meta.namespace != namespace:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not meta.name:
        raise status_errors.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if meta.name != name:
        raise status_errors.bad_request(
            f"the name of the object ({meta.name}) does not match the name on the URL ({name})"
        )
