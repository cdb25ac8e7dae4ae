"""Metadata: what every object's may be, and what an update may make of it.

The real server looks at metadata up to four times in an update and lists what it finds each time. Clients
that count causes see the same here; what did not change since it was last found sound is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference
from steersman.api.label_syntax import key_errors, value_errors
from steersman.server.status_errors import quote as json_quote
from steersman.server.validation import names as text
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_slice, go_struct
from steersman.server.validation.names import Rule

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_STANDARD_FINALIZERS = ("kubernetes", ORPHAN, FOREGROUND)
_ANNOTATIONS_SIZE = 256 * 1024


def check(
    errors: FieldErrors,
    meta: ObjectMeta,
    rule: Rule = text.subdomain,
    *,
    namespaced: bool = True,
    kube: bool = True,
) -> None:
    """The metadata of an object. ``kube``: finalizers without a domain must be the well-known ones."""
    if meta.generateName:
        errors.invalid_each("metadata.generateName", meta.generateName, text.prefix(rule, meta.generateName))
    name = meta.name
    if not name:
        errors.required("metadata.name", "name or generateName is required")
    else:
        for why in rule(name):
            errors.invalid("metadata.name", name, why)
    _common(errors, meta, namespaced)
    if meta.finalizers and kube:
        _qualified_finalizers(errors, meta.finalizers)


def check_update(errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, *, kube: bool = True) -> None:
    """What an update may not change, and what it may not change it to."""
    if old.deletionTimestamp is not None and meta.finalizers != old.finalizers:
        _no_new_finalizers(errors, meta.finalizers, old.finalizers)
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
        labels(errors, "metadata.labels", meta.labels)
    if meta.annotations is not old.annotations:
        notes(errors, "metadata.annotations", meta.annotations)
    if meta.ownerReferences is not old.ownerReferences:
        _owners(errors, meta.ownerReferences)
    if kube and meta.finalizers is not old.finalizers:
        _qualified_finalizers(errors, meta.finalizers)


def common(errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, *, namespaced: bool) -> None:
    """What the server sees to in an update before it asks anybody who knows the kind."""
    if not _same(meta, old):
        check(errors, meta, text.segment, namespaced=namespaced, kube=False)
    check_update(errors, meta, old, kube=False)


def again(
    errors: FieldErrors, meta: ObjectMeta, old: ObjectMeta, rule: Rule, *, namespaced: bool = True
) -> None:
    """The whole metadata once more in an update, by the kind's own rule of names."""
    if not _same(meta, old):
        check(errors, meta, rule, namespaced=namespaced)


def _same(meta: ObjectMeta, old: ObjectMeta) -> bool:
    return (
        meta.labels is old.labels
        and meta.annotations is old.annotations
        and meta.ownerReferences is old.ownerReferences
        and meta.finalizers is old.finalizers
        and meta.generateName == old.generateName
        and meta.name == old.name
        and meta.namespace == old.namespace
    )


def _common(errors: FieldErrors, meta: ObjectMeta, namespaced: bool) -> None:
    if namespaced:
        if not meta.namespace:
            errors.required("metadata.namespace")
        else:
            errors.invalid_each("metadata.namespace", meta.namespace, _namespace(meta.namespace))
    elif meta.namespace:
        errors.forbidden("metadata.namespace", "not allowed on this type")
    if meta.generation < 0:
        errors.nonnegative("metadata.generation", meta.generation)
    if meta.labels:
        labels(errors, "metadata.labels", meta.labels)
    if meta.annotations:
        notes(errors, "metadata.annotations", meta.annotations)
    if meta.ownerReferences:
        _owners(errors, meta.ownerReferences)
    if meta.finalizers:
        _finalizers(errors, meta.finalizers)


_sound: dict[str, bool] = {}


def _namespace(name: str) -> tuple[str, ...]:
    # There are few namespaces, and every object is in one.
    if name in _sound:
        return text.FINE
    messages = text.label(name)
    if not messages and len(_sound) < 4096:
        _sound[name] = True
    return messages


# -- the parts --------------------------------------------------------------------------------


def labels(errors: FieldErrors, path: str, given: Mapping[str, str]) -> None:
    """Labels, or a plain map that selects by them."""
    for key, value in given.items():
        for why in key_errors(key):
            errors.invalid(path, key, why)
        for why in value_errors(value):
            errors.invalid(path, value, why)


def notes(errors: FieldErrors, path: str, given: Mapping[str, str]) -> None:
    size = 0
    for key, value in given.items():
        for why in key_errors(key.lower()):
            errors.invalid(path, key, why)
        size += len(key) + len(value)
    # Characters are bytes or fewer, so only what is near the limit need be counted exactly.
    if size * 4 > _ANNOTATIONS_SIZE:
        size = sum(len(key.encode()) + len(value.encode()) for key, value in given.items())
        if size > _ANNOTATIONS_SIZE:
            errors.too_long(path, _ANNOTATIONS_SIZE)


def _owners(errors: FieldErrors, references: tuple[OwnerReference, ...]) -> None:
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
            errors.invalid(path, _owner(reference), "/v1, Kind=Event is disallowed from being an owner")
        if reference.controller:
            this = f"{kind}/{name}"
            if first:
                errors.invalid(
                    path,
                    go_slice(map(_owner, references)),
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {first} and {this}',
                )
            else:
                first = this


def _owner(reference: OwnerReference) -> Verbatim:
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


def _finalizers(errors: FieldErrors, finalizers: tuple[str, ...]) -> None:
    path = "metadata.finalizers"
    for name in finalizers:
        for why in key_errors(name):
            errors.invalid(path, name, why)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        both = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        errors.invalid(path, finalizers, both)


def _qualified_finalizers(errors: FieldErrors, finalizers: tuple[str, ...]) -> None:
    for i, name in enumerate(finalizers):
        qualified_finalizer(errors, f"metadata.finalizers[{i}]", name)


def qualified_finalizer(errors: FieldErrors, path: str, name: str) -> None:
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        errors.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def _no_new_finalizers(errors: FieldErrors, new: tuple[str, ...], old: tuple[str, ...]) -> None:
    extra = sorted(set(new) - set(old))
    if extra:
        names = ", ".join(json_quote(name) for name in extra)
        errors.forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted, "
            f"found new finalizers []string{{{names}}}",
        )
