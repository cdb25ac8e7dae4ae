"""Create: stores a new object."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ApiError, ServerError
from steersman.api.generated_names import generate
from steersman.server import status_errors
from steersman.server.admission import namespace_lifecycle
from steersman.server.apply.deferred_owners import StoredManagedFields
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.options import APPLY_YAML
from steersman.server.registry import object_meta
from steersman.server.registry.resources import Resource
from steersman.server.registry.strategy import WriteContext
from steersman.server.rest.authorization import authorize_create, authorize_grant, field_errors
from steersman.server.rest.request import Request, server_request
from steersman.server.server import Server
from steersman.server.storage.store import object_key

_NAME_ATTEMPTS = 8


def create(server: Server, request: Request, obj: Any, owners: StoredManagedFields | None = None) -> Any:
    """Stores a new object and returns it.

    Its ``managedFields`` are ``owners``, or name the request's field manager.
    """
    resource = request.resource
    strategy = resource.strategy
    given = obj.metadata
    namespace = _namespace(resource, request.namespace, given.namespace)
    if resource.namespaced:
        namespace_lifecycle.creating(server, resource, namespace, obj)
    applied = request.patch_type == APPLY_YAML
    default = strategy.default_applied if applied else None
    obj = (default or strategy.default)(obj)
    now = server.now()
    if resource.hub is not None:
        assert resource.store is not None
        assert resource.serve is not None
        stored = resource.store(obj)
        if owners is None:
            owners = field_manager_for(resource).created(resource.serve(stored), request.field_manager, now)
        hub = replace(request, resource=resource.hub, requested=resource)
        return resource.serve(create(server, hub, stored, owners))
    if owners is None:
        owners = field_manager_for(resource, request.subresource).created(obj, request.field_manager, now)
    admission = server.attributes("CREATE", resource, "", namespace, given.name, obj, None, request, owners)
    if server.admission:
        obj = server.admit(admission)
        _namespace(resource, namespace, obj.metadata.namespace)
    authorize_grant(server, request, obj)
    given = obj.metadata
    name, key = _name(server, resource, namespace, given.name, given.generateName)
    server.request_warnings += object_meta.duplicate_warnings(
        given.ownerReferences, patched=request.verb == "patch"
    )
    meta = object_meta.meta_for_create(
        given,
        name=name,
        namespace=namespace,
        uid=server.uid(),
        now=now,
        # Resources that do not count generations keep what they are given.
        generation=1 if strategy.changes_generation is not None else given.generation,
    )
    obj = strategy.prepare_for_create(
        replace(obj, metadata=meta), WriteContext(now, request.user, server.request_warnings, applied)
    )
    wrong = field_errors(
        server, request, obj, None, strategy.rules.create(obj, namespaced=resource.namespaced)
    )
    if wrong:
        raise status_errors.invalid(resource.group, resource.kind, name, wrong)
    if given.resourceVersion:
        raise ServerError("resourceVersion should not be set on objects to be created")
    authorize_create(server, request)
    settle = server.validate(replace(admission, name=name, obj=obj))
    existing = server.table(resource).get(key)
    if existing is not None:
        raise _exists(resource, name, bool(given.generateName and not given.name), existing)
    if settle is not None:
        settle()
    return server.write(resource, key, obj, owners)


def admit_body(server: Server, request: Request, resource: Resource, name: str, body: Any) -> Any:
    """Admits the body of a request that is answered and not stored: a review, a Binding, an Eviction."""
    if server.admission is None:
        return body
    subresource, namespace = request.subresource, request.namespace
    admission = server.attributes("CREATE", resource, subresource, namespace, name, body, None, request)
    body = server.admit(admission)
    server.validate(replace(admission, obj=body))
    return body


def create_as_server(server: Server, resource: Resource, namespace: str, obj: Any) -> Any:
    """Stores an object that the server makes of its own accord. Its fields have no owner."""
    return create(server, server_request("create", resource, namespace), obj)


def _namespace(resource: Resource, requested: str, given: str) -> str:
    """The namespace of a new object: the request's, which the object must not contradict."""
    if not resource.namespaced:
        return ""
    if not requested:
        raise status_errors.unsupported(resource.group, resource.plural, "create")
    if given and given != requested:
        raise status_errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return requested


def _name(server: Server, resource: Resource, namespace: str, name: str, prefix: str) -> tuple[str, str]:
    """The name of a new object and its key; a generated name is drawn again while it is taken."""
    if name or not prefix:
        return name, object_key(namespace, name)
    table = server.table(resource)
    for _ in range(_NAME_ATTEMPTS):
        name = generate(prefix, server.names)
        key = object_key(namespace, name)
        if table.get(key) is None:
            break
    return name, key


def _exists(resource: Resource, name: str, generated: bool, existing: Any) -> ApiError:
    refuse = status_errors.generated_name_taken if generated else status_errors.already_exists
    error = refuse(resource.group, resource.plural, name)
    if existing.metadata.deletionTimestamp is not None:
        error.message = f"object is being deleted: {error.message}"
    return error
