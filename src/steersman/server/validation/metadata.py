"""Validation of ObjectMeta and of metav1 conditions.

Upstream validates the metadata of an update up to four times and reports the errors each time. Clients that
count causes get the same number here. Metadata that did not change is not validated again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from steersman.api.generated.meta_v1 import Condition, ObjectMeta, OwnerReference
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.status_errors import quote as json_quote
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_slice, go_struct
from steersman.server.validation.names import NameRule

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_MAX_ANNOTATIONS_BYTES = 256 * 1024


def validate_object_meta(
    errors: FieldErrors,
    meta: ObjectMeta,
    rule: NameRule = names.dns1123_subdomain,
    *,
    namespaced: bool = True,
    kube: bool = True,
) -> None:
    """Validates metadata. With ``kube``, finalizers without a domain must be well-known ones."""
    if meta.generateName:
        errors.invalid_each(
            "metadata.generateName", meta.generateName, names.generate_name(rule, meta.generateName)
        )
    name = meta.name
    if not name:
        errors.required("metadata.name", "name or generateName is required")
    else:
        for detail in rule(name):
            errors.invalid("metadata.name", name, detail)
    _validate_meta_fields(errors, meta, namespaced)
    if meta.finalizers and kube:
        _validate_qualified_finalizers(errors, meta.finalizers)


def validate_object_meta_update(
    errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, *, kube: bool = True
) -> None:
    """Validates the metadata of an update: immutable fields, and the values of the mutable ones."""
    if old.deletionTimestamp is not None and meta.finalizers != old.finalizers:
        _validate_no_new_finalizers(errors, meta.finalizers, old.finalizers)
    errors.immutable("metadata.name", meta.name, old.name)
    errors.immutable("metadata.namespace", meta.namespace, old.namespace)
    errors.immutable("metadata.uid", meta.uid, old.uid)
    errors.immutable("metadata.creationTimestamp", meta.creationTimestamp, old.creationTimestamp)
    errors.immutable("metadata.deletionTimestamp", meta.deletionTimestamp, old.deletionTimestamp)
    errors.immutable(
        "metadata.deletionGracePeriodSeconds",
        meta.deletionGracePeriodSeconds,
        old.deletionGracePeriodSeconds,
    )
    if meta.labels is not old.labels:
        validate_labels(errors, "metadata.labels", meta.labels)
    if meta.annotations is not old.annotations:
        validate_annotations(errors, "metadata.annotations", meta.annotations)
    if meta.ownerReferences is not old.ownerReferences:
        _validate_owner_references(errors, meta.ownerReferences)
    if kube and meta.finalizers is not old.finalizers:
        _validate_qualified_finalizers(errors, meta.finalizers)


def validate_generic_update(
    errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, *, namespaced: bool
) -> None:
    """Validates the metadata of an update by the generic rules, which run before those of the kind."""
    if not _is_unchanged(meta, old):
        validate_object_meta(errors, meta, names.path_segment, namespaced=namespaced, kube=False)
    validate_object_meta_update(errors, meta, old, kube=False)


def validate_changed_object_meta(
    errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, rule: NameRule, *, namespaced: bool = True
) -> None:
    """Validates the whole metadata of an update, unless it is unchanged, by the kind's rule for names."""
    if not _is_unchanged(meta, old):
        validate_object_meta(errors, meta, rule, namespaced=namespaced)


def _is_unchanged(meta: ObjectMeta, old: ObjectMeta) -> bool:
    return (
        meta.labels is old.labels
        and meta.annotations is old.annotations
        and meta.ownerReferences is old.ownerReferences
        and meta.finalizers is old.finalizers
        and meta.generateName == old.generateName
        and meta.name == old.name
        and meta.namespace == old.namespace
    )


def _validate_meta_fields(errors: FieldErrors, meta: ObjectMeta, namespaced: bool) -> None:
    if namespaced:
        if not meta.namespace:
            errors.required("metadata.namespace")
        else:
            errors.invalid_each("metadata.namespace", meta.namespace, _namespace_errors(meta.namespace))
    elif meta.namespace:
        errors.forbidden("metadata.namespace", "not allowed on this type")
    if meta.generation < 0:
        errors.nonnegative("metadata.generation", meta.generation)
    if meta.labels:
        validate_labels(errors, "metadata.labels", meta.labels)
    if meta.annotations:
        validate_annotations(errors, "metadata.annotations", meta.annotations)
    if meta.ownerReferences:
        _validate_owner_references(errors, meta.ownerReferences)
    if meta.finalizers:
        _validate_finalizers(errors, meta.finalizers)


_valid_namespaces: dict[str, bool] = {}


def _namespace_errors(name: str) -> tuple[str, ...]:
    # Every object names its namespace and there are few of them, so valid names are cached.
    if name in _valid_namespaces:
        return ()
    messages = names.dns1123_label(name)
    if not messages and len(_valid_namespaces) < 4096:
        _valid_namespaces[name] = True
    return messages


# -- labels, annotations, owners and finalizers -----------------------------------------------


def validate_labels(errors: FieldErrors, path: str, labels: Mapping[str, str]) -> None:
    """Validates labels, or a map that selects by labels."""
    for key, value in labels.items():
        for detail in key_errors(key):
            errors.invalid(path, key, detail)
        for detail in value_errors(value):
            errors.invalid(path, value, detail)


def validate_annotations(errors: FieldErrors, path: str, annotation_map: Mapping[str, str]) -> None:
    size = 0
    for key, value in annotation_map.items():
        for detail in key_errors(key.lower()):
            errors.invalid(path, key, detail)
        size += len(key) + len(value)
    # A character has at most four bytes, so only a map near the limit is counted exactly.
    if size * 4 > _MAX_ANNOTATIONS_BYTES:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in annotation_map.items())
        if size > _MAX_ANNOTATIONS_BYTES:
            errors.too_long(path, _MAX_ANNOTATIONS_BYTES)


def _validate_owner_references(errors: FieldErrors, references: tuple[OwnerReference, ...]) -> None:
    path = "metadata.ownerReferences"
    controller = ""
    for reference in references:
        kind, name = reference.kind, reference.name
        group, _, version = reference.apiVersion.rpartition("/")
        if "/" in group:
            version = ""
        if not (version and kind and name and reference.uid):
            if not version:
                errors.invalid(f"{path}.apiVersion", reference.apiVersion, "version must not be empty")
            for field, value in (("kind", reference.kind), ("name", reference.name), ("uid", reference.uid)):
                if not value:
                    errors.invalid(f"{path}.{field}", "", "must not be empty")
        if kind == "Event" and (group, version) == ("", "v1"):
            errors.invalid(
                path, _format_owner_reference(reference), "/v1, Kind=Event is disallowed from being an owner"
            )
        if reference.controller:
            this = f"{kind}/{name}"
            if controller:
                errors.invalid(
                    path,
                    go_slice(map(_format_owner_reference, references)),
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {this}',
                )
            else:
                controller = this


def _format_owner_reference(reference: OwnerReference) -> Verbatim:
    flags = {
        name: value
        for name in ("controller", "blockOwnerDeletion")
        if (value := getattr(reference, name)) is not None
    }
    return go_struct(
        apiVersion=reference.apiVersion,
        kind=reference.kind,
        name=reference.name,
        uid=reference.uid,
        **flags,
    )


def _validate_finalizers(errors: FieldErrors, finalizers: tuple[str, ...]) -> None:
    path = "metadata.finalizers"
    for name in finalizers:
        for detail in key_errors(name):
            errors.invalid(path, name, detail)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        both = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.invalid(path, finalizers, both)


def _validate_qualified_finalizers(errors: FieldErrors, finalizers: tuple[str, ...]) -> None:
    for i, name in enumerate(finalizers):
        validate_qualified_finalizer(errors, f"metadata.finalizers[{i}]", name)


def validate_qualified_finalizer(errors: FieldErrors, path: str, name: str) -> None:
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        errors.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def _validate_no_new_finalizers(errors: FieldErrors, new: tuple[str, ...], old: tuple[str, ...]) -> None:
    extra = sorted(set(new) - set(old))
    if extra:
        names = ", ".join(json_quote(name) for name in extra)
        errors.forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{names}}}",
        )


# -- conditions -----------------------------------------------------------------------------

_CONDITION_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_MESSAGE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  "
    "or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON}')"
)


def format_condition(condition: Condition) -> Verbatim:
    """A condition as upstream's messages show it."""
    fields: dict[str, object] = {"type": condition.type, "status": condition.status}
    if condition.observedGeneration:
        fields["observedGeneration"] = condition.observedGeneration
    since = condition.lastTransitionTime
    return go_struct(**fields, lastTransitionTime=since, reason=condition.reason, message=condition.message)


def validate_template_meta(errors: FieldErrors, path: str, metadata: ObjectMeta) -> None:
    """Validates the metadata of a template of claims, which has annotations and labels only."""
    validate_annotations(errors, f"{path}.annotations", metadata.annotations)
    validate_labels(errors, f"{path}.labels", metadata.labels)
    for name in metadata.__struct_fields__:
        if name not in _TEMPLATE_METADATA and getattr(metadata, name):
            errors.forbidden(f"{path}.{name}", "cannot be set")


_TEMPLATE_METADATA = ("annotations", "labels")


def validate_conditions(errors: FieldErrors, path: str, conditions: tuple[Condition, ...]) -> None:
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        at = f"{path}[{i}]"
        if condition.type in seen:
            errors.duplicate(f"{at}.type", condition.type)
        seen.add(condition.type)
        errors.invalid_each(f"{at}.type", condition.type, names.qualified_name(condition.type))
        if condition.status not in _CONDITION_STATUSES:
            errors.not_supported(f"{at}.status", condition.status, _CONDITION_STATUSES)
        if condition.observedGeneration < 0:
            least = "must be greater than or equal to zero"
            errors.invalid(f"{at}.observedGeneration", condition.observedGeneration, least)
        if condition.lastTransitionTime is None:
            errors.required(f"{at}.lastTransitionTime")
        if not condition.reason:
            errors.required(f"{at}.reason")
        else:
            if not _is_reason(condition.reason):
                errors.invalid(f"{at}.reason", condition.reason, _REASON_MESSAGE)
            if len(condition.reason) > 1024:
                errors.too_long(f"{at}.reason", 1024)
        if len(condition.message) > 32 * 1024:
            errors.too_long(f"{at}.message", 32 * 1024)
