"""The scale of a workload or custom resource: read, written, patched and applied as an object of its own.

A request changes a Scale, of which the replicas are then written to the object. The managers of the Scale are those who own the
replicas of the object, and afterwards own what the request leaves to them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import ServerError
from steersman.api.generated.autoscaling_v1 import Scale, ScaleSpec, ScaleStatus
from steersman.api.label_selectors import compile_selector
from steersman.server import status_errors
from steersman.server.apply import field_set, managed_fields
from steersman.server.apply.deferred_owners import StoredManagedFields, computed, managed_of
from steersman.server.apply.field_manager import FieldManager, document_reader
from steersman.server.apply.managed_fields import ManagedFields, VersionedSet
from steersman.server.apply.options import APPLY_YAML
from steersman.server.apply.ownership import ResourceSchema
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec import go_conversion
from steersman.server.codec.convert import CODECS, to_struct
from steersman.server.registry.strategy import ScaleAccess, replace_all, scale_metadata
from steersman.server.rest.patch import JSON, MERGE, STRATEGIC, patched_struct
from steersman.server.rest.request import Request, check_identity
from steersman.server.rest.update import change
from steersman.server.server import ObjectView, Server

API_VERSION, KIND = "autoscaling/v1", "Scale"
REPLICAS = "spec.replicas"
"""The path of the replicas in a Scale, and in built-in workloads."""
_NO_CONVERSION = f"to proper version: request to convert CR to an invalid group/version: {API_VERSION}"
"""Why upstream cannot apply the scale of a custom resource."""
_STORED_AS = {"replicationcontrollers": "controllers"}
"""Resources that upstream stores under another name, which its messages show."""


def get_scale(server: Server, request: Request) -> Scale:
    """The scale of a workload."""
    obj = server.get(request.resource, request.namespace, request.name)
    access = request.resource.strategy.scale
    if access is None:
        return scale_of(obj)
    scale = access.read(obj)
    if scale is None:
        raise status_errors.internal(f'the spec replicas field "{access.replicas_path}" does not exist')
    return scale


def update_scale(server: Server, request: Request, scale: Scale) -> Scale:
    """Sets the replicas of a workload."""
    return _change_scale(server, request, lambda old: (scale, None))


def patch_scale(server: Server, request: Request, body: Any) -> Scale:
    """Patches or applies the scale of a workload."""
    patch_type = request.patch_type
    if patch_type == STRATEGIC and request.resource.type in CODECS:
        raise status_errors.unsupported_media_type(JSON, MERGE, APPLY_YAML)
    if patch_type != APPLY_YAML:
        return _change_scale(server, request, lambda old: (patched_struct(old, body, patch_type), None))
    configuration = body if isinstance(body, Mapping) else {}
    return _change_scale(server, request, partial(_applied, server, request, dict(configuration)))


def scale_of(obj: Any) -> Scale:
    """The scale of a built-in workload."""
    return Scale(
        metadata=scale_metadata(obj.metadata),
        spec=ScaleSpec(replicas=obj.spec.replicas or 0),
        status=ScaleStatus(replicas=obj.status.replicas, selector=str(compile_selector(obj.spec.selector))),
    )


def patched_scale(server: Server, request: Request) -> Scale:
    """The scale that a patch starts from, with the managers of the replicas."""
    obj = server.get(request.resource, request.namespace, request.name)
    access = _access(request)
    return _with_managers(access.read(obj) or access.unset(obj), obj, access.replicas_path.lstrip("."))


def _access(request: Request) -> ScaleAccess:
    return request.resource.strategy.scale or ScaleAccess(
        scale_of, scale_of, partial(_scaled, request), REPLICAS
    )


def _change_scale(
    server: Server, request: Request, make: Callable[[Scale], tuple[Scale, StoredManagedFields | None]]
) -> Scale:
    """Writes the replicas of the Scale that ``make`` makes of the old one; it also returns the managers, where these do not
    follow from an update."""
    strategy, access = request.resource.strategy, _access(request)
    path = access.replicas_path.lstrip(".")
    managers: StoredManagedFields = ()

    def read(obj: Any) -> Scale:
        return access.read(obj) or access.unset(obj)

    def scaled(old: Any) -> Any:
        nonlocal managers
        before = _with_managers(read(old), old, path)
        scale, owners = make(before)
        if owners is None:
            owners = _field_manager().updated(before, scale, request.field_manager, server.now())
        managers = owners
        check_identity(request, scale.metadata.namespace, scale.metadata.name)
        _check_uid(request, old, scale)
        return access.write(old, scale)

    def owners(old: Any, new: Any) -> StoredManagedFields:
        return _to_object(old.metadata.managedFields, managers, request.resource.api_version, path)

    view = ObjectView("autoscaling", "v1", KIND, Scale, read=read, write=access.write)
    prepare = strategy.prepare_for_update if strategy.scale else replace_all
    return read(change(server, request, scaled, prepare=prepare, owners=owners, view=view))


def _scaled(request: Request, old: Any, scale: Scale) -> Any:
    """A built-in workload with the replicas of a scale."""
    if scale.spec.replicas < 0:
        negative = "must be greater than or equal to 0"
        wrong = [status_errors.field_invalid(REPLICAS, scale.spec.replicas, negative)]
        raise status_errors.invalid("autoscaling", KIND, request.name, wrong)
    return replace(
        old,
        metadata=replace(old.metadata, resourceVersion=scale.metadata.resourceVersion),
        spec=replace(old.spec, replicas=scale.spec.replicas),
    )


def _check_uid(request: Request, old: Any, scale: Scale) -> None:
    """Refuses the scale of another object of this name."""
    resource, given, known = request.resource, scale.metadata.uid, old.metadata.uid
    # Upstream does not look at it where the scale of a custom resource is patched.
    patched = request.verb == "patch"
    if not given or given == known or (patched and resource.type in CODECS):
        return
    failed = f"Precondition failed: UID in precondition: {given}, UID in object meta: {known}"
    if patched:
        raise status_errors.conflict(resource.group, f"{resource.plural}/scale", request.name, failed)
    stored_as = _STORED_AS.get(resource.plural, resource.plural)
    place = f"{resource.group}/{stored_as}" if resource.type in CODECS else stored_as
    raise status_errors.conflict(
        resource.group,
        resource.plural,
        request.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{place}/{request.namespace}/{request.name}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: {failed}",
    )


# -- managers ---------------------------------------------------------------------------------


@cache
def _field_manager() -> FieldManager:
    """Tracks the managers of a Scale."""
    read = document_reader(API_VERSION, KIND)
    schema = ResourceSchema(API_VERSION, KIND, typed_schema_of(Scale), "scale")
    return FieldManager(schema, read, read(Scale()), Scale())


def _applied(
    server: Server, request: Request, configuration: dict[str, Any], old: Scale
) -> tuple[Scale, StoredManagedFields]:
    """A Scale after an apply, and its managers."""
    custom = request.resource.type in CODECS
    typed = (configuration.get("apiVersion"), configuration.get("kind")) == (API_VERSION, KIND)
    if custom and typed and not managed_of(old.metadata.managedFields):
        raise ServerError(
            "failed to create manager for existing fields: "
            f"failed to convert live object (/; {API_VERSION}, Kind={KIND}) {_NO_CONVERSION}"
        )
    document, owners = _field_manager().applied(
        old, configuration, request.field_manager, server.now(), force=request.force
    )
    if document is None:
        return old, owners
    meta = configuration.get("metadata") or {}
    where = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {API_VERSION}, Kind={KIND}"
    failed = f"failed to convert new object ({where})"
    if custom:
        raise ServerError(f"{failed} {_NO_CONVERSION}")
    try:
        return to_struct(Scale, go_conversion.converted(Scale, document)), owners
    except ValueError as error:
        why = f"unable to convert unstructured object to {API_VERSION}, Kind={KIND}: {error}"
        raise ServerError(f"{failed} to proper version: {why}") from None


def _with_managers(scale: Scale, obj: Any, path: str) -> Scale:
    """A scale whose managers are those of the replicas of an object, which are at a path."""
    replicas = field_set.of(REPLICAS)
    owners: ManagedFields = {}
    for manager, owned in managed_of(obj.metadata.managedFields).items():
        if field_set.has(owned.fields, path):
            known_as = manager if manager.applies else replace(manager, version=API_VERSION)
            owners[known_as] = VersionedSet(replicas, API_VERSION, owned.time)
    return replace(scale, metadata=replace(scale.metadata, managedFields=computed(owners)))


def _to_object(
    before: StoredManagedFields, scale_owners: StoredManagedFields, api_version: str, path: str
) -> StoredManagedFields:
    """The managers of an object after those of its Scale have changed.

    As upstream, a manager by updates is another one for the Scale, by its API version: it loses the replicas and gets them back in an
    entry of its own, which has no time.
    """
    left = dict(managed_of(scale_owners))
    replicas = field_set.of(path)
    managed = managed_of(before)
    made: ManagedFields = {}
    for manager, owned in managed.items():
        if not field_set.has(owned.fields, path) or left.pop(manager, None) is not None:
            made[manager] = owned
        elif remaining := field_set.difference(owned.fields, replicas):
            made[manager] = owned._replace(fields=remaining)
    for manager, owned in left.items():
        if field_set.has(owned.fields, REPLICAS):
            earlier = managed.get(manager)
            made[manager] = VersionedSet(replicas, api_version, earlier.time if earlier is not None else None)
    # Written out, as two entries of one manager: they count as one when they are next read.
    return managed_fields.write(made)
