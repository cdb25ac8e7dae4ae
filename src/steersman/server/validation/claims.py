"""Claims of volumes: what one may ask for, and what of it may change once it was asked."""

from __future__ import annotations

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation import resources as amounts
from steersman.server.validation.diff import difference
from steersman.server.validation.field_errors import Found, Verbatim
from steersman.server.validation.selectors import label_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_RESIZES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_TEMPLATE_META = ("annotations", "labels")


def create(found: Found, claim: v1.PersistentVolumeClaim) -> None:
    meta.check(found, claim.metadata)
    spec(found, "spec", claim.spec)


def template(found: Found, path: str, given: v1.PersistentVolumeClaimTemplate) -> None:
    """A claim that a pod makes for itself."""
    metadata = given.metadata
    meta.notes(found, f"{path}.metadata.annotations", metadata.annotations)
    meta.labels(found, f"{path}.metadata.labels", metadata.labels)
    for name in metadata.__struct_fields__:
        if name not in _TEMPLATE_META and getattr(metadata, name):
            found.forbidden(f"{path}.metadata.{name}", "cannot be set")
    spec(found, f"{path}.spec", given.spec)


def access_modes(found: Found, path: str, modes: tuple[str, ...]) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            found.unsupported(path, mode, ACCESS_MODES)
    alone = "ReadWriteOncePod"
    if alone in modes and any(mode in ACCESS_MODES and mode != alone for mode in modes):
        found.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def spec(found: Found, path: str, given: v1.PersistentVolumeClaimSpec) -> None:
    if not given.accessModes:
        found.required(f"{path}.accessModes", "at least 1 access mode is required")
    label_selector(found, f"{path}.selector", given.selector)
    access_modes(found, f"{path}.accessModes", given.accessModes)
    storage = given.resources.requests.get("storage")
    at = f"{path}.resources[storage]"
    if storage is None:
        found.required(at)
    elif amounts.positive(found, at, storage):
        amounts.value(found, at, "storage", storage)
    if given.storageClassName:
        found.each(
            f"{path}.storageClassName", given.storageClassName, names.subdomain(given.storageClassName)
        )
    if given.volumeMode is not None and given.volumeMode not in VOLUME_MODES:
        found.unsupported(f"{path}.volumeMode", given.volumeMode, VOLUME_MODES)
    _sources(found, path, given)
    if given.volumeAttributesClassName:
        name = given.volumeAttributesClassName
        found.each(f"{path}.volumeAttributesClassName", name, names.subdomain(name))


def _sources(found: Found, path: str, given: v1.PersistentVolumeClaimSpec) -> None:
    """Where the content comes from: two fields, since the first could not say another namespace."""
    source, reference = given.dataSource, given.dataSourceRef
    if source is not None:
        _source(found, f"{path}.dataSource", source)
    if reference is None:
        return
    _source(found, f"{path}.dataSourceRef", reference)
    if reference.namespace:
        found.each(f"{path}.dataSourceRef.namespace", reference.namespace, names.label(reference.namespace))
        if source is not None:
            alone = "may not be specified when dataSourceRef.namespace is specified"
            found.invalid(path, Verbatim("{}"), alone)
    elif source is not None and (source.apiGroup, source.kind, source.name) != (
        reference.apiGroup,
        reference.kind,
        reference.name,
    ):
        found.invalid(path, Verbatim("{}"), "must match dataSourceRef")


def _source(found: Found, path: str, source: v1.TypedLocalObjectReference | v1.TypedObjectReference) -> None:
    if not source.name:
        found.required(f"{path}.name")
    if not source.kind:
        found.required(f"{path}.kind")
    if not source.apiGroup:
        if source.kind != "PersistentVolumeClaim":
            only = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            found.invalid(path, source.kind, only)
    else:
        found.each(f"{path}.apiGroup", source.apiGroup, names.subdomain(source.apiGroup))


# -- updates ----------------------------------------------------------------------------------


def update(found: Found, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim) -> None:
    """Once made, a claim can be bound, and a bound one can grow."""
    meta.check_update(found, new.metadata, old.metadata)
    meta.again(found, new.metadata, old.metadata, names.subdomain)
    if new.spec is old.spec and new.metadata.annotations is old.metadata.annotations:
        return
    spec(found, "spec", new.spec)
    if _ignoring_what_may_change(found, new, old) != old.spec:
        changed = difference(old.spec, new.spec)
        found.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            f"bound claims\n{changed}",
        )
    _sizes(found, new, old)
    found.changed("volumeMode", new.spec.volumeMode, old.spec.volumeMode)
    _attributes(found, new, old)


def _ignoring_what_may_change(
    found: Found, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim
) -> v1.PersistentVolumeClaimSpec:
    """The new spec with everything as it was that an update may change."""
    changes: dict[str, object] = {}
    if not old.spec.volumeName:
        changes["volumeName"] = old.spec.volumeName
    was, now = (
        old.metadata.annotations.get(CLASS_ANNOTATION),
        new.metadata.annotations.get(CLASS_ANNOTATION),
    )
    upgraded = old.spec.storageClassName is None and new.spec.storageClassName is not None
    if upgraded and was is not None and new.spec.storageClassName == was and now in (None, was):
        changes["storageClassName"] = None
    else:
        found.changed(f"metadata.annotations.{CLASS_ANNOTATION}", now or "", was or "")
        if upgraded and was in (None, new.spec.storageClassName):
            changes["storageClassName"] = None
    if new.status.phase == "Bound":
        resources = new.spec.resources
        if resources.requests:
            requests = dict(resources.requests)
            if "storage" in old.spec.resources.requests:
                requests["storage"] = old.spec.resources.requests["storage"]
            changes["resources"] = replace(resources, requests=requests)
        changes["volumeAttributesClassName"] = old.spec.volumeAttributesClassName
    return replace(new.spec, **changes)


def _sizes(found: Found, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim) -> None:
    size = amounts.quantity(new.spec.resources.requests.get("storage", "0"))
    before = amounts.quantity(old.spec.resources.requests.get("storage", "0"))
    has = amounts.quantity(old.status.capacity.get("storage", "0"))
    if size < before and size <= has:
        found.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _attributes(found: Found, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim) -> None:
    name = new.spec.volumeAttributesClassName
    current = old.status.currentVolumeAttributesClassName
    if name != old.spec.volumeAttributesClassName and current is not None and not name:
        to = "nil" if name is None else "empty string"
        found.forbidden(
            "spec.volumeAttributesClassName",
            f"update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil",
        )


def status(found: Found, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if not new.spec.accessModes:
        found.required("Spec.accessModes")
    given = new.status
    for name, amount in given.capacity.items():
        amounts.basic(found, f"status.capacity[{name}]", amount)
    for name, resize in given.allocatedResourceStatuses.items():
        _resource_key(found, "status.allocatedResourceStatuses", name)
        if resize not in _RESIZES:
            found.unsupported("status.allocatedResourceStatuses", name, _RESIZES)
    for name, amount in given.allocatedResources.items():
        if _resource_key(found, "status.allocatedResources", name):
            at = f"status.allocatedResources[{name}]"
            amounts.basic(found, at, amount)
            amounts.value(found, at, "storage", amount)


def _resource_key(found: Found, path: str, name: str) -> bool:
    before = len(found)
    found.each(path, name, names.qualified(name))
    if len(found) == before and amounts.is_native(name) and name != "storage":
        found.unsupported(path, name, ("storage",))
    return len(found) == before
