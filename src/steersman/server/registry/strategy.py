"""What differs between resources: data and small pure functions, one `Strategy` each.

Most resources are alike: their status belongs to the status subresource, their generation counts
changes of the spec. What is peculiar to a resource is a row of the tables in `steersman.server.registry.resources`,
or a function in the module of that kind; never a branch in the verbs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import field

from steersman.api.generated.autoscaling_v1 import Scale
from steersman.server.auth.users import User
from steersman.server.defaulting import Default, no_defaults
from steersman.server.validation import METADATA_ONLY, AnyRules

Dependents: TypeAlias = Literal["delete", "orphan", "unsupported"]
"""What happens to dependents when a deletion does not say."""


class WriteContext(NamedTuple):
    """The facts of a request that a strategy may need besides the object."""

    now: datetime
    user: User
    """The requesting user."""


Prepare: TypeAlias = Callable[[Any, WriteContext], Any]
Merge: TypeAlias = Callable[[Any, Any, WriteContext], Any]
"""The new object and the old one, to what shall be stored."""
Counts: TypeAlias = Callable[[Any, Any], bool]


class ScaleAccess(NamedTuple):
    """Reads and writes the scale of custom resources, whose definition says where it is."""

    read: Callable[[Any], Scale | None]
    """The scale of an object; None where the object does not set its replicas."""
    unset: Callable[[Any], Scale]
    """The scale that a patch is applied to where the object does not set its replicas."""
    write: Callable[[Any, Scale], Any]
    """The object with the replicas of a scale."""
    replicas_path: str
    """The path of the replicas, for messages."""


def as_given(obj: Any, context: WriteContext) -> Any:
    """Nothing to prepare."""
    return obj


def as_new(new: Any, old: Any, context: WriteContext) -> Any:
    """Nothing of the old object stays."""
    return new


def _always(obj: Any) -> bool:
    return True


class Strategy(msgspec.Struct, frozen=True):
    """How one resource is created, updated and deleted."""

    default: Default = no_defaults
    status_default: Default = no_defaults
    """What is filled in where only the status is written."""
    rules: AnyRules = METADATA_ONLY
    """What is refused."""
    created: Prepare = as_given
    updated: Merge = as_new
    status_updated: Merge | None = None
    """None where there is no status subresource."""
    parts: Mapping[str, Merge] = field(default_factory=dict)
    """Other subresources by which a part of the object is changed."""
    counts: Counts | None = None
    """Which changes make a new generation; None where generations are not counted."""
    create_on_update: bool = False
    unconditional: bool = True
    """Whether an update may leave out the resourceVersion."""
    dependents: Dependents = "delete"
    grace: Callable[[Any, int | None], int] | None = None
    """How long a deletion waits, in seconds; None where deletions are never graceful."""
    terminated: Prepare | None = None
    """What a first deletion makes of the object, where that is all it does."""
    ends: Callable[[Any], bool] = _always
    """Whether an object that is being deleted and has no finalizers may go."""
    field_managers: Callable[[str], Any] | None = None
    """The field managers of a custom resource, by subresource (see `apply.field_manager`); None for built-in kinds."""
    ttl: float | None = None
    """After how many seconds objects go by themselves."""
    fields: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    """What field selectors may ask for, besides name and namespace."""
    scale: ScaleAccess | None = None
    """Where the scale is; None for ``spec.replicas`` and ``status.replicas``."""
    unknown: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    """The paths of the fields of a document that nobody would keep; None where the struct says."""


# -- status -----------------------------------------------------------------------------------


def without_status(type_: type[Any]) -> Prepare:
    """New objects have no status, whatever their maker says."""

    def created(obj: Any, context: WriteContext) -> Any:
        return msgspec.structs.replace(obj, status=empty)

    empty = type_().status
    return created


def old_status(new: Any, old: Any, context: WriteContext) -> Any:
    """An update of the object leaves the status alone."""
    return msgspec.structs.replace(new, status=old.status)


def only_status(keeps: tuple[str, ...]) -> Merge:
    """Everything as it was but the status and the metadata; of that, too, some fields may be kept."""

    def merged(new: Any, old: Any, context: WriteContext) -> Any:
        meta = new.metadata
        if keeps:
            meta = msgspec.structs.replace(meta, **{name: getattr(old.metadata, name) for name in keeps})
        return msgspec.structs.replace(old, metadata=meta, status=new.status)

    return merged
