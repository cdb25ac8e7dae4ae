"""Computes how the ownership of fields changes with an update or an apply (upstream's ``merge.Updater``).

Documents are plain, of one kind, without ``managedFields``; owners are `managed_fields.ManagedFields`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from steersman.server.apply import field_set
from steersman.server.apply.compare import Comparison, compare, same_value
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.fields import ensure_named_fields, reconcile_with_schema, to_field_set
from steersman.server.apply.managed_fields import ManagedFields, Manager, VersionedSet, cap_update_managers
from steersman.server.apply.merge import merge, remove
from steersman.server.apply.schema import TypedSchema

Document: TypeAlias = dict[str, Any]
Filter: TypeAlias = Callable[[FieldSet], FieldSet]
Convert: TypeAlias = Callable[[Document, str], "Document | None"]
"""Converts a document to another API version; None if that version is not served."""

_STRIPPED_FIELDS = field_set.of(
    "apiVersion",
    "kind",
    "metadata",
    "metadata.name",
    "metadata.namespace",
    "metadata.creationTimestamp",
    "metadata.selfLink",
    "metadata.uid",
    "metadata.clusterName",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.resourceVersion",
)
"""Fields without a manager: they identify the object, or the server sets them."""


def _no_filter(fields: FieldSet) -> FieldSet:
    return fields


class ResourceSchema(msgspec.Struct, frozen=True):
    """One resource at one version, or one of its subresources: its schema and which fields requests can set."""

    api_version: str
    kind: str
    schema: TypedSchema
    subresource: str = ""
    field_filter: Filter = _no_filter
    """Keeps the fields that a request can change; the strategy resets the others."""
    convert: Convert | None = None
    at_version: Callable[[str], ResourceSchema | None] | None = None
    """The same resource at another version; set if there are several versions."""

    def entry_time(self, now: datetime) -> datetime | None:
        """The time of a managed fields entry written now. Entries of ``scale`` have none upstream."""
        return None if self.subresource == "scale" else now


class Conflicts(Exception):
    """Other managers own applied fields, with other values."""

    def __init__(self, fields: dict[Manager, FieldSet]) -> None:
        super().__init__(f"{len(fields)} managers own applied fields")
        self.fields = fields


# -- versions ---------------------------------------------------------------------------------


def _at_version(
    document: Document, version: str, resource: ResourceSchema
) -> tuple[Document, ResourceSchema] | None:
    """A document and its schema at a version; None if that version is not served."""
    if version == resource.api_version:
        return document, resource
    if resource.convert is None or resource.at_version is None:
        return None
    other, converted = resource.at_version(version), resource.convert(document, version)
    return None if other is None or converted is None else (converted, other)


def _changes(old: Document, new: Document, version: str, resource: ResourceSchema) -> Comparison | None:
    before, after = _at_version(old, version, resource), _at_version(new, version, resource)
    if before is None or after is None:
        return None
    found = compare(before[0], after[0], before[1].schema)
    field_filter = before[1].field_filter
    return found if field_filter is _no_filter else Comparison(*map(field_filter, found))


def _reconcile(managed: ManagedFields, live: Document, resource: ResourceSchema) -> ManagedFields:
    """Managed fields adapted to the current schema; entries of versions no longer served are dropped."""
    made: ManagedFields = {}
    for manager, owned in managed.items():
        converted = _at_version(live, owned.version, resource)
        if converted is None:
            continue
        schema = converted[1].schema
        if owned.schema is not schema:
            owned = owned._replace(fields=reconcile_with_schema(owned.fields, schema), schema=schema)
        made[manager] = owned
    return made


# -- updates ----------------------------------------------------------------------------------


def after_update(
    managed: ManagedFields,
    old: Document,
    new: Document,
    manager: Manager,
    resource: ResourceSchema,
    now: datetime,
) -> ManagedFields:
    """The managed fields after an update: the manager becomes the only owner of what it changed."""
    managed = _reconcile(managed, old, resource)
    changes: dict[str, Comparison | None] = {}
    managed = _remove_changed(managed, old, new, resource, changes)
    mine = changes.get(resource.api_version) or _changes(old, new, resource.api_version, resource)
    assert mine is not None
    taken = field_set.difference(
        resource.field_filter(field_set.union(mine.modified, mine.added)), _STRIPPED_FIELDS
    )
    if taken:
        before = managed.get(manager)
        fields = taken if before is None else field_set.union(taken, before.fields)
        managed[manager] = VersionedSet(
            fields, resource.api_version, resource.entry_time(now), resource.schema
        )
    return cap_update_managers(managed)


def _remove_changed(
    managed: ManagedFields,
    old: Document,
    new: Document,
    resource: ResourceSchema,
    changes: dict[str, Comparison | None],
    applier: Manager | None = None,
    force: bool = True,
) -> ManagedFields:
    """Managed fields without those that were changed or removed; adds the changes at each version to ``changes``.

    The entry of ``applier`` stays as it is. Raises `Conflicts` if fields of others change and ``force`` is off.
    """
    made: ManagedFields = {}
    conflicts: dict[Manager, FieldSet] = {}
    for manager, owned in managed.items():
        if manager == applier:
            made[manager] = owned
            continue
        if owned.version not in changes:
            changes[owned.version] = _changes(old, new, owned.version, resource)
        change = changes[owned.version]
        if change is None:
            continue
        fields = owned.fields
        lost = field_set.intersection(fields, field_set.union(change.modified, change.added))
        if lost:
            conflicts[manager] = lost
            fields = field_set.difference(fields, lost)
        fields = field_set.difference(fields, change.removed)
        if fields:
            made[manager] = owned if fields is owned.fields else owned._replace(fields=fields)
    if conflicts and not force:
        raise Conflicts(conflicts)
    return made


# -- apply ------------------------------------------------------------------------------------


def after_apply(
    managed: ManagedFields,
    live: Document,
    patch: Document,
    manager: Manager,
    resource: ResourceSchema,
    *,
    force: bool,
) -> tuple[Document, ManagedFields]:
    """The merged document and its managed fields after an apply; the live document itself if nothing changed.

    Raises `Conflicts` if other managers own fields that would change, unless forced.
    """
    managed = _reconcile(managed, live, resource)
    last = managed.get(manager)
    merged: Document = merge(live, patch, resource.schema)
    mine = resource.field_filter(to_field_set(patch, resource.schema))
    time = None if last is None else last.time
    managed = {**managed, manager: VersionedSet(mine, resource.api_version, time, resource.schema)}
    merged = _prune(merged, managed, last, resource)
    managed = _remove_changed(managed, live, merged, resource, {}, applier=manager, force=force)
    mine = field_set.difference(mine, _STRIPPED_FIELDS)
    if mine:
        managed[manager] = managed[manager]._replace(fields=mine)
    else:
        managed.pop(manager, None)
    return live if same_value(merged, live) else merged, managed


def _prune(
    merged: Document, managed: ManagedFields, last: VersionedSet | None, resource: ResourceSchema
) -> Document:
    """The merged document without fields the manager applied last time, omits now, and owns alone."""
    if last is None or not last.fields:
        return merged
    converted = _at_version(merged, last.version, resource)
    if converted is None:
        return merged
    whole, then = converted
    pruned = remove(whole, ensure_named_fields(last.fields, then.schema), then.schema) or {}
    pruned = _add_back_owned(whole, pruned, then, managed)
    gone = field_set.difference(_named_fields(whole, then), _named_fields(pruned, then))
    # Only owned fields are removed; other fields went with their parents.
    gone = field_set.intersection(gone, ensure_named_fields(last.fields, then.schema))
    pruned = remove(whole, gone, then.schema) or {}
    back = _at_version(pruned, resource.api_version, then)
    return merged if back is None else back[0]


def _named_fields(document: Document, resource: ResourceSchema) -> FieldSet:
    return ensure_named_fields(to_field_set(document, resource.schema), resource.schema)


def _add_back_owned(
    merged: Document, pruned: Document, resource: ResourceSchema, managed: ManagedFields
) -> Document:
    """The pruned document with every field that still has a manager added back."""
    owned: dict[str, FieldSet] = {}
    for each in managed.values():
        owned[each.version] = field_set.union(owned.get(each.version, {}), each.fields)
    # The version of the pruned document comes first: conversion to others may need the added fields.
    for version in sorted(owned, key=lambda version: version != resource.api_version):
        whole, part = _at_version(merged, version, resource), _at_version(pruned, version, resource)
        if whole is None or part is None:
            continue
        existing = whole[1]
        kept = field_set.union(
            _named_fields(part[0], existing), ensure_named_fields(owned[version], existing.schema)
        )
        left = (
            remove(whole[0], field_set.difference(_named_fields(whole[0], existing), kept), existing.schema)
            or {}
        )
        back = _at_version(left, resource.api_version, existing)
        pruned = pruned if back is None else back[0]
    return pruned
