"""Strategy: how one resource is created, updated and deleted, as data and small pure functions.

Most resources are alike: their status belongs to the status subresource, their generation counts
changes of the spec. A difference is a row of the tables in `steersman.server.registry.resources`,
or a function in the module of that kind; never a branch in the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import field

from steersman.api.generated.autoscaling_v1 import Scale
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.auth.users import User
from steersman.server.defaulting import Default, no_defaults
from steersman.server.validation import METADATA_ONLY, AnyRules

DefaultPropagation: TypeAlias = Literal["delete", "orphan", "unsupported"]
"""The propagation of a deletion to dependents where the request has no propagationPolicy."""


class WriteContext(msgspec.Struct, frozen=True):
    """The facts of a request that a strategy may need besides the object."""

    now: datetime
    user: User
    """The requesting user."""
    warnings: list[str]
    """Warnings for the client are added here."""
    applied: bool = False
    """Whether the object comes from a server-side apply."""


PrepareForCreate: TypeAlias = Callable[[Any, WriteContext], Any]
"""From a requested object, the object to store."""
PrepareForUpdate: TypeAlias = Callable[[Any, Any, WriteContext], Any]
"""From the new object and the old one, the object to store."""
GenerationTest: TypeAlias = Callable[[Any, Any], bool]
"""From the new object and the old one, whether the generation is incremented."""


def scale_metadata(meta: Any) -> ObjectMeta:
    """The metadata of a Scale, from that of the object it scales."""
    return ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resourceVersion=meta.resourceVersion,
        creationTimestamp=meta.creationTimestamp,
    )


class ScaleAccess(msgspec.Struct, frozen=True):
    """Reads and writes the scale of custom resources, whose definition says where it is."""

    read: Callable[[Any], Scale | None]
    """The scale of an object; None where the object does not set its replicas."""
    unset: Callable[[Any], Scale]
    """The scale that a patch is applied to where the object does not set its replicas."""
    write: Callable[[Any, Scale], Any]
    """The object with the replicas of a scale."""
    replicas_path: str
    """The path of the replicas, for messages."""


def prepare_nothing(obj: Any, context: WriteContext) -> Any:
    """Stores a new object as requested."""
    return obj


def replace_all(new: Any, old: Any, context: WriteContext) -> Any:
    """Stores an update as requested; nothing of the old object stays."""
    return new


def _always(obj: Any) -> bool:
    return True


class Strategy(msgspec.Struct, frozen=True):
    """How one resource is created, updated and deleted."""

    default: Default = no_defaults
    default_applied: Default | None = None
    """Defaulting of an object that is applied, where that is another."""
    status_default: Default = no_defaults
    """Defaulting of a status update."""
    rules: AnyRules = METADATA_ONLY
    """Validation."""
    prepare_for_create: PrepareForCreate = prepare_nothing
    prepare_for_update: PrepareForUpdate = replace_all
    prepare_for_status_update: PrepareForUpdate | None = None
    """None if there is no status subresource."""
    subresource_updates: Mapping[str, PrepareForUpdate] = field(default_factory=dict)
    """Other subresources that update a part of the object, such as ``scale``."""
    changes_generation: GenerationTest | None = None
    """None if the resource has no generation."""
    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    """Whether an update may omit the resourceVersion."""
    default_propagation: DefaultPropagation = "delete"
    check_graceful_delete: Callable[[Any, int | None], int] | None = None
    """The grace period in seconds, from the object and the requested period; None if deletion is never graceful."""
    mark_terminating: PrepareForCreate | None = None
    """Marks the object as terminating on its first deletion, instead of deleting it; None for most resources."""
    can_finish_deletion: Callable[[Any], bool] = _always
    """Whether a terminating object without finalizers may be removed."""
    field_managers: Callable[[str], Any] | None = None
    """The field managers of a custom resource, by subresource (see `apply.field_manager`); None for built-in kinds."""
    ttl: float | None = None
    """After how many seconds objects expire."""
    selectable_fields: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    """The fields that field selectors support, besides name and namespace."""
    scale: ScaleAccess | None = None
    """Where the scale is; None for ``spec.replicas`` and ``status.replicas``."""
    unknown_fields: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    """The paths of unknown fields in a document of a custom resource; None for built-in kinds, whose struct decides."""


# -- status -----------------------------------------------------------------------------------


def clear_status(type_: type[Any]) -> PrepareForCreate:
    """A strategy function that clears the status of new objects."""

    def prepare(obj: Any, context: WriteContext) -> Any:
        return msgspec.structs.replace(obj, status=empty)

    empty = type_().status
    return prepare


def keep_status(new: Any, old: Any, context: WriteContext) -> Any:
    """Stores an update with the old status."""
    return msgspec.structs.replace(new, status=old.status)


def update_status_only(keeps: tuple[str, ...]) -> PrepareForUpdate:
    """A strategy function that updates status and metadata only, without the metadata fields in ``keeps``."""

    def prepare(new: Any, old: Any, context: WriteContext) -> Any:
        meta = new.metadata
        if keeps:
            meta = msgspec.structs.replace(meta, **{name: getattr(old.metadata, name) for name in keeps})
        return msgspec.structs.replace(old, metadata=meta, status=new.status)

    return prepare
