"""Metadata: what the server sets itself, and what it refuses from others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from random import Random

import msgspec

from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference
from steersman.api.labels import key_errors, value_errors
from steersman.server import problems
from steersman.server.problems import IMMUTABLE, FieldProblem, banned, required, wrong
from steersman.server.strategy import NameRule

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
"""The finalizers by which the garbage collector is asked to see to the dependents first."""

_ANNOTATIONS_SIZE = 256 * 1024


def uid(random: Random) -> str:
    """A random (version 4) uuid."""
    digits = f"{random.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def begun(
    meta: ObjectMeta, *, name: str, namespace: str, uid: str, now: datetime, generation: int
) -> ObjectMeta:
    """The metadata of a new object: what only the server may say is said by the server."""
    return msgspec.structs.replace(
        meta,
        name=name,
        namespace=namespace,
        uid=uid,
        creationTimestamp=now,
        deletionTimestamp=None,
        deletionGracePeriodSeconds=None,
        generation=generation,
        selfLink="",
        ownerReferences=deduplicated(meta.ownerReferences),
    )


def continued(meta: ObjectMeta, old: ObjectMeta, *, namespace: str) -> ObjectMeta:
    """The metadata of an update: what only the server may say stays as it was."""
    grace = meta.deletionGracePeriodSeconds
    return msgspec.structs.replace(
        meta,
        namespace=namespace,
        uid=meta.uid or old.uid,
        creationTimestamp=old.creationTimestamp,
        deletionTimestamp=old.deletionTimestamp or meta.deletionTimestamp,
        deletionGracePeriodSeconds=old.deletionGracePeriodSeconds if grace is None else grace,
        generation=old.generation,
        selfLink="",
        # Who owns what from now on is decided when it is written.
        managedFields=old.managedFields,
        ownerReferences=deduplicated(meta.ownerReferences),
    )


def deduplicated(references: tuple[OwnerReference, ...]) -> tuple[OwnerReference, ...]:
    """Each owner once."""
    if len(references) < 2:
        return references
    unique: list[OwnerReference] = []
    for reference in references:
        if reference not in unique:
            unique.append(reference)
    return references if len(unique) == len(references) else tuple(unique)


# -- what is refused --------------------------------------------------------------------------


_NOTHING = ObjectMeta()


def check(
    meta: ObjectMeta, *, namespaced: bool, rule: NameRule, old: ObjectMeta = _NOTHING
) -> list[FieldProblem]:
    """What is wrong with the metadata of any object; what is still as it was is right."""
    found: list[FieldProblem] = []
    if not meta.name:
        found.append(required("metadata.name", "name or generateName is required"))
    elif meta.name != old.name:
        found += [wrong("metadata.name", meta.name, why) for why in rule(meta.name)]
    if namespaced and not meta.namespace:
        found.append(required("metadata.namespace"))
    if meta.labels is not old.labels:
        found += _labels(meta.labels)
    if meta.annotations is not old.annotations:
        found += _annotations(meta.annotations)
    if meta.ownerReferences is not old.ownerReferences:
        found += _owners(meta.ownerReferences)
    if meta.finalizers is not old.finalizers:
        found += _finalizers(meta.finalizers)
    return found


def check_update(meta: ObjectMeta, old: ObjectMeta) -> list[FieldProblem]:
    """What an update may not change."""
    found: list[FieldProblem] = []
    if old.deletionTimestamp is not None and meta.finalizers != old.finalizers:
        extra = sorted(set(meta.finalizers) - set(old.finalizers))
        if extra:
            listed = ", ".join(problems.quote(name) for name in extra)
            found.append(
                banned(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, "
                    f"found new finalizers []string{{{listed}}}",
                )
            )
    for name in ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"):
        value = getattr(meta, name)
        if value != getattr(old, name):
            found.append(wrong(f"metadata.{name}", value, IMMUTABLE))
    return found


def _labels(labels: Mapping[str, str]) -> list[FieldProblem]:
    found = []
    for key, value in labels.items():
        found += [wrong("metadata.labels", key, why) for why in key_errors(key)]
        found += [wrong("metadata.labels", value, why) for why in value_errors(value)]
    return found


def _annotations(annotations: Mapping[str, str]) -> list[FieldProblem]:
    found = []
    size = 0
    for key, value in annotations.items():
        found += [wrong("metadata.annotations", key, why) for why in key_errors(key.lower())]
        size += len(key) + len(value)
    if size > _ANNOTATIONS_SIZE:
        too_long = f"Too long: may not be more than {_ANNOTATIONS_SIZE} bytes"
        found.append(FieldProblem("FieldValueTooLong", "metadata.annotations", too_long))
    return found


def _owners(references: tuple[OwnerReference, ...]) -> list[FieldProblem]:
    path = "metadata.ownerReferences"
    found = []
    controller = ""
    for reference in references:
        group, _, version = reference.apiVersion.rpartition("/")
        if not version:
            found.append(wrong(f"{path}.apiVersion", reference.apiVersion, "version must not be empty"))
        for name in ("kind", "name", "uid"):
            if not getattr(reference, name):
                found.append(wrong(f"{path}.{name}", "", "must not be empty"))
        if reference.kind == "Event" and not group:
            found.append(wrong(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.controller:
            this = f"{reference.kind}/{reference.name}"
            if controller:
                found.append(
                    wrong(
                        path,
                        references,
                        "Only one reference can have Controller set to true. "
                        f'Found "true" in references for {controller} and {this}',
                    )
                )
            controller = controller or this
    return found


def _finalizers(finalizers: tuple[str, ...]) -> list[FieldProblem]:
    path = "metadata.finalizers"
    found = [wrong(path, name, why) for name in finalizers for why in key_errors(name)]
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        both = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(wrong(path, finalizers, both))
    return found
