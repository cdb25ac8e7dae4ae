"""Validation of PersistentVolumeClaims and their templates."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import FieldErrors, Verbatim, format_diff
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_label_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_RESIZE_STATUSES = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def validate_claim(errors: FieldErrors, claim: v1.PersistentVolumeClaim) -> None:
    meta.validate_object_meta(errors, claim.metadata)
    validate_claim_spec(errors, "spec", claim.spec)


def validate_claim_template(
    errors: FieldErrors, path: str, template: v1.PersistentVolumeClaimTemplate
) -> None:
    """Validates the claim template of an ephemeral volume."""
    meta.validate_template_meta(errors, f"{path}.metadata", template.metadata)
    validate_claim_spec(errors, f"{path}.spec", template.spec)


def validate_access_modes(errors: FieldErrors, path: str, modes: tuple[str, ...]) -> None:
    for mode in modes:
        if mode not in ACCESS_MODES:
            errors.not_supported(path, mode, ACCESS_MODES)
    alone = "ReadWriteOncePod"
    if alone in modes and any(mode in ACCESS_MODES and mode != alone for mode in modes):
        errors.forbidden(path, "may not use ReadWriteOncePod with other access modes")


def validate_claim_spec(errors: FieldErrors, path: str, spec: v1.PersistentVolumeClaimSpec) -> None:
    if not spec.accessModes:
        errors.required(f"{path}.accessModes", "at least 1 access mode is required")
    validate_label_selector(errors, f"{path}.selector", spec.selector)
    validate_access_modes(errors, f"{path}.accessModes", spec.accessModes)
    storage = spec.resources.requests.get("storage")
    at = f"{path}.resources[storage]"
    if storage is None:
        errors.required(at)
    elif resources.validate_positive_quantity(errors, at, storage):
        resources.validate_resource_quantity(errors, at, "storage", storage)
    if spec.storageClassName:
        errors.invalid_each(
            f"{path}.storageClassName",
            spec.storageClassName,
            names.dns1123_subdomain(spec.storageClassName),
        )
    if spec.volumeMode is not None and spec.volumeMode not in VOLUME_MODES:
        errors.not_supported(f"{path}.volumeMode", spec.volumeMode, VOLUME_MODES)
    _validate_data_sources(errors, path, spec)
    if spec.volumeAttributesClassName:
        name = spec.volumeAttributesClassName
        errors.invalid_each(f"{path}.volumeAttributesClassName", name, names.dns1123_subdomain(name))


def _validate_data_sources(errors: FieldErrors, path: str, spec: v1.PersistentVolumeClaimSpec) -> None:
    """Validates dataSource and dataSourceRef, which agree where both are set."""
    source, reference = spec.dataSource, spec.dataSourceRef
    if source is not None:
        _validate_data_source(errors, f"{path}.dataSource", source)
    if reference is None:
        return
    _validate_data_source(errors, f"{path}.dataSourceRef", reference)
    if reference.namespace:
        errors.invalid_each(
            f"{path}.dataSourceRef.namespace", reference.namespace, names.dns1123_label(reference.namespace)
        )
        if source is not None:
            alone = "may not be specified when dataSourceRef.namespace is specified"
            errors.invalid(path, Verbatim("{}"), alone)
    elif source is not None and (source.apiGroup, source.kind, source.name) != (
        reference.apiGroup,
        reference.kind,
        reference.name,
    ):
        errors.invalid(path, Verbatim("{}"), "must match dataSourceRef")


def _validate_data_source(
    errors: FieldErrors, path: str, source: v1.TypedLocalObjectReference | v1.TypedObjectReference
) -> None:
    if not source.name:
        errors.required(f"{path}.name")
    if not source.kind:
        errors.required(f"{path}.kind")
    if not source.apiGroup:
        if source.kind != "PersistentVolumeClaim":
            only = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            errors.invalid(path, source.kind, only)
    else:
        errors.invalid_each(f"{path}.apiGroup", source.apiGroup, names.dns1123_subdomain(source.apiGroup))


# -- updates ----------------------------------------------------------------------------------


def validate_claim_update(
    errors: FieldErrors, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim
) -> None:
    """A claim's spec is immutable except for binding, and for growing once bound."""
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    if new.spec is old.spec and new.metadata.annotations is old.metadata.annotations:
        return
    validate_claim_spec(errors, "spec", new.spec)
    if _with_mutable_fields_of(errors, new, old) != old.spec:
        changed = format_diff(old.spec, new.spec)
        errors.forbidden(
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            f"bound claims\n{changed}",
        )
    _validate_storage_request(errors, new, old)
    errors.immutable("volumeMode", new.spec.volumeMode, old.spec.volumeMode)
    _validate_attributes_class_change(errors, new, old)


def _with_mutable_fields_of(
    errors: FieldErrors, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim
) -> v1.PersistentVolumeClaimSpec:
    """The new spec with the old values of the fields that an update may change."""
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
        errors.immutable(f"metadata.annotations.{CLASS_ANNOTATION}", now or "", was or "")
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


def _validate_storage_request(
    errors: FieldErrors, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim
) -> None:
    size = resources.parse_quantity(new.spec.resources.requests.get("storage", "0"))
    before = resources.parse_quantity(old.spec.resources.requests.get("storage", "0"))
    capacity = resources.parse_quantity(old.status.capacity.get("storage", "0"))
    if size < before and size <= capacity:
        errors.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def _validate_attributes_class_change(
    errors: FieldErrors, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim
) -> None:
    name = new.spec.volumeAttributesClassName
    current = old.status.currentVolumeAttributesClassName
    if name != old.spec.volumeAttributesClassName and current is not None and not name:
        to = "nil" if name is None else "empty string"
        errors.forbidden(
            "spec.volumeAttributesClassName",
            f"update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil",
        )


def validate_claim_status(
    errors: FieldErrors, new: v1.PersistentVolumeClaim, old: v1.PersistentVolumeClaim
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if not new.spec.accessModes:
        errors.required("Spec.accessModes")
    status = new.status
    for name, amount in status.capacity.items():
        resources.validate_basic_resource(errors, f"status.capacity[{name}]", amount)
    for name, resize in status.allocatedResourceStatuses.items():
        _validate_allocated_resource(errors, "status.allocatedResourceStatuses", name)
        if resize not in _RESIZE_STATUSES:
            errors.not_supported("status.allocatedResourceStatuses", name, _RESIZE_STATUSES)
    for name, amount in status.allocatedResources.items():
        if _validate_allocated_resource(errors, "status.allocatedResources", name):
            at = f"status.allocatedResources[{name}]"
            before = len(errors)
            resources.validate_basic_resource(errors, at, amount)
            if len(errors) == before:
                resources.validate_resource_quantity(errors, at, "storage", amount)


def _validate_allocated_resource(errors: FieldErrors, path: str, name: str) -> bool:
    before = len(errors)
    errors.invalid_each(path, name, names.qualified_name(name))
    if len(errors) == before and resources.is_native(name) and name != "storage":
        errors.not_supported(path, name, ("storage",))
    return len(errors) == before


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "PersistentVolumeClaim"): Rules[v1.PersistentVolumeClaim](
        validate_claim, validate_claim_update, status=validate_claim_status
    ),
}
