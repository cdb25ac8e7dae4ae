"""Delete and deletecollection: removes objects, or marks them for deletion."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ApiError, NotFound
from steersman.server import status_errors
from steersman.server.admission import namespace_lifecycle
from steersman.server.calls import Call, CallNeeded
from steersman.server.evaluation import Computation, EvaluationNeeded
from steersman.server.registry import graceful_deletion, object_meta
from steersman.server.registry.graceful_deletion import DeletionOptions
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import WriteContext
from steersman.server.rest.listing import Page, list_objects
from steersman.server.rest.request import Request, Result
from steersman.server.server import Server
from steersman.server.storage.store import object_key
from steersman.server.validation.cluster import SYSTEM_PRIORITY_CLASSES


def delete(server: Server, request: Request) -> Result:
    """Deletes an object, or marks it for deletion where finalizers or a grace period must be waited for."""
    resource, namespace, name, options = request.resource, request.namespace, request.name, request.deletion
    namespace_lifecycle.deleting(resource, name)
    if resource.id == "priorityclasses.scheduling.k8s.io" and name in SYSTEM_PRIORITY_CLASSES:
        why = "this is a system priority class and cannot be deleted"
        raise status_errors.forbidden(resource.group, resource.plural, name, why)
    obj = server.get(resource, namespace, name)
    check_preconditions(resource, obj, options)
    admit_deletion(server, request, obj)
    return delete_admitted(server, request, obj)


def admit_deletion(server: Server, request: Request, obj: Any) -> None:
    """Refuses a deletion that admission refuses. That of a collection has no name, as upstream."""
    if server.admission is None:
        return
    resource, namespace, name = request.resource, request.namespace, request.name
    admission = server.attributes("DELETE", resource, "", namespace, name, None, obj, request)
    server.admit(admission)
    server.validate(admission)


def delete_admitted(server: Server, request: Request, obj: Any) -> Result:
    """Deletes an object past admission."""
    resource, namespace, name = request.resource, request.namespace, request.name
    options = request.deletion
    key, now = object_key(namespace, name), server.now()
    if resource.id == "namespaces":
        if obj.metadata.deletionTimestamp is None:
            return Result(_terminate(server, resource, key, obj, options))
        if obj.spec.finalizers:
            return Result(obj)
    terminated = resource.strategy.mark_terminating
    if terminated is not None and obj.metadata.deletionTimestamp is None:
        return Result(
            server.write(
                resource, key, terminated(obj, WriteContext(now, request.user, server.request_warnings))
            )
        )
    plan = graceful_deletion.plan_deletion(obj, resource.strategy, options, now)
    written = plan.write is not None and plan.write != obj.metadata
    if written:
        obj = server.write(resource, key, replace(obj, metadata=plan.write))
    if not plan.remove:
        return Result(obj)
    if written and server.dry_run:
        return Result(obj, deleted=True)
    return Result(server.remove(resource, key), deleted=True)


def check_preconditions(resource: Resource, obj: Any, options: DeletionOptions) -> None:
    """Refuses a deletion whose uid or resourceVersion is not the object's."""
    meta = obj.metadata
    if options.uid is not None and options.uid != meta.uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta.uid}). "
            "The object might have been deleted and then recreated"
        )
    elif options.resource_version is not None and options.resource_version != meta.resourceVersion:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({meta.resourceVersion}). The object might have been modified"
        )
    else:
        return
    # Upstream says the kind where it means the resource.
    raise status_errors.conflict(resource.group, resource.kind, meta.name, why)


def _terminate(server: Server, resource: Resource, key: str, obj: Any, options: DeletionOptions) -> Any:
    """Marks a namespace as Terminating; its controller empties it."""
    meta = obj.metadata
    finalizers = list(meta.finalizers)
    if options.propagation is not None:
        finalizers = [name for name in finalizers if name not in (object_meta.ORPHAN, object_meta.FOREGROUND)]
        if options.propagation == "Orphan":
            finalizers.append(object_meta.ORPHAN)
        elif options.propagation == "Foreground":
            finalizers.append(object_meta.FOREGROUND)
    meta = replace(meta, deletionTimestamp=server.now(), finalizers=tuple(finalizers))
    terminating = replace(obj, metadata=meta, status=replace(obj.status, phase="Terminating"))
    return server.write(resource, key, terminating)


def delete_collection(server: Server, request: Request) -> Page:
    """Deletes every object that a request selects; returns the objects as they were stored."""
    resource = request.resource
    if resource.namespaced and not request.namespace:
        raise status_errors.unsupported(resource.group, resource.plural, "deletecollection")
    selected = _listed(server, request)
    found = selected.items
    admitted, refusal = _admit_all(server, request, found)
    for obj in admitted:
        meta = obj.metadata
        one = replace(request, namespace=meta.namespace, name=meta.name)
        namespace_lifecycle.deleting(resource, meta.name)
        try:
            current = server.get(resource, meta.namespace, meta.name)
        except NotFound:
            continue
        check_preconditions(resource, current, request.deletion)
        delete_admitted(server, one, current)
    if refusal is not None:
        raise refusal
    return selected


_PAGE_SIZE = 10_000
"""The number of objects that are deleted at a time."""


def _listed(server: Server, request: Request) -> Page:
    """The objects that a request selects: one page if it limits them, as upstream, or else all."""
    options = request.list_options
    if options.limit > 0:
        return list_objects(server, request)
    options = replace(options, limit=_PAGE_SIZE)
    first = page = list_objects(server, replace(request, list_options=options))
    items = list(page.items)
    while page.continue_:
        options = replace(options, continue_=page.continue_, resource_version="", resource_version_match="")
        page = list_objects(server, replace(request, list_options=options))
        items += page.items
    return first._replace(items=items)


def _admit_all(server: Server, request: Request, found: list[Any]) -> tuple[list[Any], ApiError | None]:
    """The objects up to the first whose deletion is refused, and the refusal.

    All webhooks are asked and all expressions evaluated before any deletion.
    """
    if request.resource.serve_all is not None:
        request.resource.serve_all(found)
    calls: list[Call] = []
    computations: list[Computation] = []
    for index, obj in enumerate(found):
        try:
            served = obj if request.resource.serve is None else request.resource.serve(obj)
            admit_deletion(server, request, served)
        except CallNeeded as needed:
            if server.answers is None:
                raise
            calls += needed.calls
            if isinstance(needed, EvaluationNeeded):
                computations += needed.computations
        except ApiError as error:
            if not calls and not computations:
                return found[:index], error
            break
    if computations:
        raise EvaluationNeeded(computations, calls)
    if calls:
        raise CallNeeded(calls)
    return found, None
