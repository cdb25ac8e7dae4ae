"""Deleting: what of a deletion happens at once, and what waits for others."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.errors import NotFound
from steersman.server import status_errors
from steersman.server.admission import namespace_lifecycle
from steersman.server.registry import graceful_deletion, object_meta
from steersman.server.registry.graceful_deletion import Options
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import Moment
from steersman.server.server import Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection


def delete(
    server: Server,
    resource: Resource,
    namespace: str,
    name: str,
    options: Options = Options(),
    *,
    user: str = "",
) -> tuple[Any, bool]:
    """Delete an object, or begin to; answers with its last state and whether it is gone."""
    namespace_lifecycle.deleting(resource, name)
    obj = server.get(resource, namespace, name)
    intended(resource, obj, options)
    server.validate("DELETE", resource, "", namespace, name, None, obj, user)
    key, now = object_key(namespace, name), server.now()
    if resource.id == "namespaces":
        if obj.metadata.deletionTimestamp is None:
            return _terminate(server, resource, key, obj, options), False
        if obj.spec.finalizers:
            return obj, False
    terminated = resource.strategy.terminated
    if terminated is not None and obj.metadata.deletionTimestamp is None:
        return server.write(resource, key, terminated(obj, Moment(now))), False
    plan = graceful_deletion.plan(obj, resource.strategy, options, now)
    if plan.write is not None and plan.write != obj.metadata:
        obj = server.write(resource, key, replace(obj, metadata=plan.write))
    if not plan.remove:
        return obj, False
    return server.remove(resource, key), True


def intended(resource: Resource, obj: Any, options: Options) -> None:
    """Refuse a deletion of another object, or another version of it, than was meant."""
    meta = obj.metadata
    if options.uid and options.uid != meta.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif options.version and options.version != meta.resourceVersion:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the "
            f"ResourceVersion in record ({meta.resourceVersion}). The object might have been modified"
        )
    else:
        return
    # Upstream says the kind where it means the resource.
    raise status_errors.conflict(resource.group, resource.kind, meta.name, why)


def _terminate(server: Server, resource: Resource, key: str, obj: Any, options: Options) -> Any:
    """A namespace is first shown to be going; its controller empties it."""
    meta = obj.metadata
    finalizers = list(meta.finalizers)
    if options.propagation is not None:
        finalizers = [name for name in finalizers if name not in (object_meta.ORPHAN, object_meta.FOREGROUND)]
        if options.propagation == "Orphan":
            finalizers.append(object_meta.ORPHAN)
        elif options.propagation == "Foreground":
            finalizers.append(object_meta.FOREGROUND)
    meta = replace(meta, deletionTimestamp=server.now(), finalizers=tuple(finalizers))
    going = replace(obj, metadata=meta, status=replace(obj.status, phase="Terminating"))
    return server.write(resource, key, going)


def delete_collection(
    server: Server,
    resource: Resource,
    selection: Selection,
    options: Options = Options(),
    *,
    user: str = "",
) -> list[Any]:
    """Delete every object of a selection; answers with what was there."""
    found = list(server.table(resource).select(selection))
    for obj in found:
        try:
            delete(server, resource, obj.metadata.namespace, obj.metadata.name, options, user=user)
        except NotFound:
            continue
    return found
