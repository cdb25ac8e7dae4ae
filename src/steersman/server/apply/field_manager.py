"""FieldManager tracks the managed fields of one resource, or of one of its subresources.

`field_manager_for` makes one for any served resource; `custom_field_managers` for a version of a custom
resource, whose schema is data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.bounded_cache import BoundedCache
from steersman.server import apply as ssa
from steersman.server.apply import field_set, managed_fields, reset_fields
from steersman.server.apply.deferred_owners import (
    DeferredManagedFields,
    PendingWrite,
    StoredManagedFields,
    computed,
    managed_of,
)
from steersman.server.apply.field_set import FieldSet
from steersman.server.apply.managed_fields import ManagedFields
from steersman.server.apply.openapi import custom_resource_schema
from steersman.server.apply.ownership import Document, Filter, ResourceSchema
from steersman.server.apply.schema import TypedSchema
from steersman.server.apply.shape_key import shape_key
from steersman.server.apply.structs import typed_schema_of
from steersman.server.codec.convert import to_document, to_struct
from steersman.server.registry.conversion import OtherVersion, other_version
from steersman.server.registry.resources import Resource

_fields_by_shape: BoundedCache[tuple[FieldManager, tuple[Any, ...]], tuple[FieldSet, tuple[Any, ...]]] = (
    BoundedCache(2048)
)
"""The field sets of new objects by shape key, and the parts the key identifies by their addresses.

Many objects are alike: a controller creates pods of one template, a client events of one form. Those share
one field set, which is kept and encoded once.
"""


class FieldManager(msgspec.Struct, frozen=True, eq=False):
    """Tracks the managed fields of one resource, or of one of its subresources."""

    resource_schema: ResourceSchema
    document: Callable[[Any], Document]
    """Converts a stored object to a plain document without ``managedFields``."""
    empty: Document
    """The document of an object without any field set."""
    blank: Any
    """The same as an object."""

    def created(self, new: Any, manager: str, now: datetime) -> StoredManagedFields:
        """The managed fields of a new object; none if it sets no field."""
        if self._is_empty(new):
            return ()
        given: StoredManagedFields = new.metadata.managedFields
        if given and (managed_fields.is_reset(tuple(given)) or not managed_of(given)):
            given = ()
        return DeferredManagedFields(given, PendingWrite(self, None, new, manager, now))

    def updated(self, old: Any, new: Any, manager: str, now: datetime) -> StoredManagedFields:
        """The managed fields after an update; none if the object was not tracked before."""
        base: StoredManagedFields = old.metadata.managedFields
        given: StoredManagedFields = new.metadata.managedFields
        # A write to the object itself may set managedFields; on subresources they are ignored.
        if given is not base and given and not self.resource_schema.subresource:
            if isinstance(given, DeferredManagedFields):
                base = given
            elif managed_fields.is_reset(tuple(given)):
                base = ()
            elif managed := managed_fields.read_or_none(given):
                base = computed(managed)
        return DeferredManagedFields(base, PendingWrite(self, old, new, manager, now)) if base else ()

    def applied(
        self, old: Any, patch: Document, manager: str, now: datetime, *, force: bool
    ) -> tuple[Document | None, StoredManagedFields]:
        """The document and managed fields after an apply; ``old`` is None to create the object.

        The document is None if an existing object does not change. Raises what `steersman.server.apply.apply`
        raises.
        """
        live = self.empty if old is None else self.document(old)
        made = ssa.apply(
            live,
            patch,
            manager,
            {} if old is None else managed_of(old.metadata.managedFields),
            resource_schema=self.resource_schema,
            now=now,
            force=force,
            empty=self.empty,
        )
        unchanged = old is not None and made.document is live
        return None if unchanged else made.document, computed(made.managed)

    def managed_after(
        self, managed: ManagedFields, old: Any, new: Any, manager: str, now: datetime
    ) -> ManagedFields:
        """The managed fields after ``manager`` wrote ``new`` over ``old`` (None for a creation)."""
        if old is None and not managed:
            return self.managed_when_new(new, manager, now)
        before, after = self._changed_documents(old, new)
        made = ssa.track(
            before,
            after,
            manager,
            managed,
            resource_schema=self.resource_schema,
            now=now,
            empty=self.empty,
        )
        for owner, owned in made.items():
            earlier = managed.get(owner)
            if earlier is None or owned.fields is not earlier.fields:
                made[owner] = owned._replace(fields=field_set.interned(owned.fields))
        return made

    def managed_when_new(self, new: Any, manager: str, now: datetime) -> ManagedFields:
        """The managed fields of a new object: the manager owns every field it sets."""
        schema = self.resource_schema
        shape = shape_key(new, self.blank)
        known = _fields_by_shape.get((self, shape.key)) if shape is not None else None
        if known is not None:
            fields = known[0]
        else:
            made = ssa.track(
                None, self.document(new), manager, {}, resource_schema=schema, now=now, empty=self.empty
            )
            fields = field_set.interned(next(iter(made.values())).fields) if made else {}
            if shape is not None:
                _fields_by_shape.put((self, shape.key), (fields, shape.parts))
        if not fields:
            return {}
        identifier = managed_fields.manager_identifier(
            manager, managed_fields.UPDATE, schema.api_version, schema.subresource
        )
        return {identifier: managed_fields.VersionedSet(fields, schema.api_version, now, schema.schema)}

    def _changed_documents(self, old: Any, new: Any) -> tuple[Document | None, Document]:
        """Two objects as documents, without the parts they share, which are equal."""
        if old is None:
            return None, self.document(new)
        parts = [name for name in new.__struct_fields__ if getattr(old, name) is not getattr(new, name)]
        before = {name: getattr(old, name) for name in parts}
        after = {name: getattr(new, name) for name in parts}
        blank = self.blank
        return self.document(replace(blank, **before)), self.document(replace(blank, **after))

    def _is_empty(self, new: Any) -> bool:
        meta = new.metadata
        if meta.labels or meta.annotations or meta.finalizers or meta.ownerReferences or meta.generateName:
            return False
        return bool(replace(new, metadata=self.blank.metadata) == self.blank)


def document_reader(api_version: str, kind: str) -> Callable[[Any], Document]:
    """A function that converts stored objects to documents without ``managedFields``."""

    def read(obj: Any) -> Document:
        # Replaced before encoding, so that deferred managed fields are not computed to be dropped.
        meta = replace(obj.metadata, managedFields=())
        return to_document(api_version, kind, replace(obj, metadata=meta))

    return read


# -- built-in resources -----------------------------------------------------------------------


@lru_cache(maxsize=1024)
def field_manager_for(resource: Resource, subresource: str = "") -> FieldManager:
    """The field manager of a resource, or of one of its subresources."""
    if resource.strategy.field_managers is not None:
        made: FieldManager = resource.strategy.field_managers(subresource)
        return made
    kept = reset_fields.reset_fields_filter(
        resource.id, subresource, has_status="status" in resource.subresources
    )
    schema = ResourceSchema(
        resource.api_version,
        resource.kind,
        typed_schema_of(resource.type),
        subresource,
        kept,
    )
    other = other_version(resource.group, resource.version, resource.plural, resource.kind)
    if other is not None:
        schema = _with_other_version(resource, schema, other)
    read = document_reader(resource.api_version, resource.kind)
    blank = resource.type()
    return FieldManager(schema, read, read(blank), blank)


def _with_other_version(resource: Resource, schema: ResourceSchema, other: OtherVersion) -> ResourceSchema:
    """The schema of a resource that is also served at another version."""
    existing = replace(
        schema, api_version=other.api_version, kind=other.kind, schema=typed_schema_of(other.type)
    )
    read = document_reader(other.api_version, other.kind)

    def convert(document: Document, version: str) -> Document | None:
        return (
            read(other.convert(to_struct(resource.type, document))) if version == other.api_version else None
        )

    return replace(
        schema, convert=convert, at_version=lambda version: existing if version == other.api_version else None
    )


# -- custom resources -------------------------------------------------------------------------


def custom_field_managers(
    api_version: str,
    kind: str,
    schema: Callable[[], Mapping[str, Any]],
    blank: Any,
    *,
    has_status: bool,
    only_version: bool = True,
) -> Callable[[str], FieldManager]:
    """The field managers of one version of a custom resource, by subresource.

    ``schema`` returns its structural schema and is called on first use; ``only_version`` is whether the definition has
    no other versions.
    """

    @cache
    def typed_schema() -> TypedSchema:
        return custom_resource_schema(schema())

    @cache
    def field_manager(subresource: str) -> FieldManager:
        kept = _custom_filter(subresource, has_status)
        made = ResourceSchema(api_version, kind, typed_schema(), subresource, kept)
        if not only_version:
            made = replace(made, convert=_relabel, at_version=lambda version: _same_group(made, version))
        read = document_reader(api_version, kind)
        return FieldManager(made, read, read(blank), blank)

    return field_manager


def _custom_filter(subresource: str, has_status: bool) -> Filter:
    if subresource == "status":
        return reset_fields.exclude_fields(reset_fields.CUSTOM_STATUS)
    return reset_fields.exclude_fields(("status",) if has_status else ())


# differs: a field that only the other version declares loses its manager there when this version is written


def _relabel(document: Document, version: str) -> Document | None:
    return {**document, "apiVersion": version}


def _same_group(schema: ResourceSchema, version: str) -> ResourceSchema | None:
    same = version.rpartition("/")[0] == schema.api_version.rpartition("/")[0]
    return replace(schema, api_version=version) if same else None
