"""Metadata: what every object's may be, and what an update may make of it.

The real server looks at metadata up to four times in an update and lists what it finds each time. Clients
that count causes see the same here; what did not change since it was last found sound is not looked at.
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
    """The metadata of an object. ``kube``: finalizers without a domain must be the well-known ones."""
    if meta.generateName:
        errors.invalid_each(
            "metadata.generateName", meta.generateName, names.generate_name(rule, meta.generateName)
        )
    name = meta.name
    if not name:
        errors.required("metadata.name", "name or generateName is required")
    else:
        for why in rule(name):
            errors.invalid("metadata.name", name, why)
    _validate_meta_fields(errors, meta, namespaced)
    if meta.finalizers and kube:
        _validate_qualified_finalizers(errors, meta.finalizers)


def validate_object_meta_update(
    errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, *, kube: bool = True
) -> None:
    """What an update may not change, and what it may not change it to."""
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
    """What the server sees to in an update before it asks anybody who knows the kind."""
    if not _is_unchanged(meta, old):
        validate_object_meta(errors, meta, names.path_segment, namespaced=namespaced, kube=False)
    validate_object_meta_update(errors, meta, old, kube=False)


def validate_changed_object_meta(
    errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, rule: NameRule, *, namespaced: bool = True
) -> None:
    """The whole metadata once more in an update, by the kind's own rule of names."""
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
    # There are few namespaces, and every object is in one.
    if name in _valid_namespaces:
        return names.VALID
    messages = names.dns1123_label(name)
    if not messages and len(_valid_namespaces) < 4096:
        _valid_namespaces[name] = True
    return messages


# -- the parts --------------------------------------------------------------------------------


def validate_labels(errors: FieldErrors, path: str, given: Mapping[str, str]) -> None:
    """Labels, or a plain map that selects by them."""
    for key, value in given.items():
        for why in key_errors(key):
            errors.invalid(path, key, why)
        for why in value_errors(value):
            errors.invalid(path, value, why)


def validate_annotations(errors: FieldErrors, path: str, given: Mapping[str, str]) -> None:
    size = 0
    for key, value in given.items():
        for why in key_errors(key.lower()):
            errors.invalid(path, key, why)
        size += len(key) + len(value)
    # Characters are bytes or fewer, so only what is near the limit need be counted exactly.
    if size * 4 > _MAX_ANNOTATIONS_BYTES:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in given.items())
        if size > _MAX_ANNOTATIONS_BYTES:
            errors.too_long(path, _MAX_ANNOTATIONS_BYTES)


def _validate_owner_references(errors: FieldErrors, references: tuple[OwnerReference, ...]) -> None:
    path = "metadata.ownerReferences"
    first = ""
    for reference in references:
        kind, name = reference.kind, reference.name
        version = reference.apiVersion.rpartition("/")[2]
        if not (version and kind and name and reference.uid):
            if not version:
                errors.invalid(f"{path}.apiVersion", reference.apiVersion, "version must not be empty")
            for field in ("kind", "name", "uid"):
                if not getattr(reference, field):
                    errors.invalid(f"{path}.{field}", "", "must not be empty")
        if kind == "Event" and reference.apiVersion == "v1":
            errors.invalid(
                path, _format_owner_reference(reference), "/v1, Kind=Event is disallowed from being an owner"
            )
        if reference.controller:
            this = f"{kind}/{name}"
            if first:
                errors.invalid(
                    path,
                    go_slice(map(_format_owner_reference, references)),
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {this}',
                )
            else:
                first = this


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
        for why in key_errors(name):
            errors.invalid(path, name, why)
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
