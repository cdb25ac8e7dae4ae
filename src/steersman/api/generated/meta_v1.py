"""The types of meta/v1. Made by tools/generate_api.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Annotated

import msgspec

from steersman.api import kinds
from steersman.api.generated.base import AnyCondition, Atomic, Json, Time
from steersman.api.generated.merge import ATOMIC, Merge
from steersman.api.kinds import EMPTY, Struct


class GroupVersionForDiscovery(Struct, frozen=True):
    groupVersion: str = msgspec.field(default_factory=str)
    version: str = msgspec.field(default_factory=str)


class APIGroup(Struct, frozen=True):
    name: str = msgspec.field(default_factory=str)
    preferredVersion: GroupVersionForDiscovery = msgspec.field(default_factory=GroupVersionForDiscovery)
    serverAddressByClientCIDRs: Annotated[tuple[ServerAddressByClientCIDR, ...], ATOMIC] = ()
    versions: Annotated[tuple[GroupVersionForDiscovery, ...] | None, ATOMIC] = msgspec.field(
        default_factory=NoneType
    )


class NestedAPIGroup(APIGroup, frozen=True):
    apiVersion: str = ""
    kind: str = ""


class APIGroupList(Struct, frozen=True):
    groups: Annotated[tuple[NestedAPIGroup, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class APIResource(Struct, frozen=True):
    categories: Annotated[tuple[str, ...], ATOMIC] = ()
    group: str = ""
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    namespaced: bool = msgspec.field(default_factory=bool)
    shortNames: Annotated[tuple[str, ...], ATOMIC] = ()
    singularName: str = msgspec.field(default_factory=str)
    storageVersionHash: str = ""
    verbs: tuple[str, ...] | None = msgspec.field(default_factory=NoneType)
    version: str = ""


class APIResourceList(Struct, frozen=True):
    groupVersion: str = msgspec.field(default_factory=str)
    resources: Annotated[tuple[APIResource, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class APIVersions(Struct, frozen=True):
    serverAddressByClientCIDRs: Annotated[tuple[ServerAddressByClientCIDR, ...] | None, ATOMIC] = (
        msgspec.field(default_factory=NoneType)
    )
    versions: Annotated[tuple[str, ...] | None, ATOMIC] = msgspec.field(default_factory=NoneType)


class Condition(AnyCondition, frozen=True):
    lastTransitionTime: Time | None = msgspec.field(default_factory=NoneType)
    message: str = msgspec.field(default_factory=str)
    observedGeneration: int = 0
    reason: str = msgspec.field(default_factory=str)
    status: str = msgspec.field(default_factory=str)
    type: str = msgspec.field(default_factory=str)


class DeleteOptions(Struct, frozen=True):
    dryRun: Annotated[tuple[str, ...], ATOMIC] = ()
    gracePeriodSeconds: int | None = None
    ignoreStoreReadErrorWithClusterBreakingPotential: bool | None = None
    orphanDependents: bool | None = None
    preconditions: Preconditions | None = None
    propagationPolicy: str | None = None


class NestedDeleteOptions(DeleteOptions, frozen=True):
    apiVersion: str = ""
    kind: str = ""


class FieldSelectorRequirement(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)
    operator: str = msgspec.field(default_factory=str)
    values: Annotated[tuple[str, ...], ATOMIC] = ()


class LabelSelector(Atomic, frozen=True):
    matchExpressions: Annotated[tuple[LabelSelectorRequirement, ...], ATOMIC] = ()
    matchLabels: Mapping[str, str] = EMPTY


class LabelSelectorRequirement(Struct, frozen=True):
    key: str = msgspec.field(default_factory=str)
    operator: str = msgspec.field(default_factory=str)
    values: Annotated[tuple[str, ...], ATOMIC] = ()


class ListMeta(Struct, frozen=True):
    continue_: str = msgspec.field(name="continue", default="")
    remainingItemCount: int | None = None
    resourceVersion: str = ""
    selfLink: str = ""
    shardInfo: ShardInfo | None = None


class ManagedFieldsEntry(Struct, frozen=True):
    apiVersion: str = ""
    fieldsType: str = ""
    fieldsV1: Json = None
    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: Time | None = None


class ObjectMeta(kinds.ObjectMeta, frozen=True):
    annotations: Mapping[str, str] = EMPTY
    creationTimestamp: Time | None = None
    deletionGracePeriodSeconds: int | None = None
    deletionTimestamp: Time | None = None
    finalizers: Annotated[tuple[str, ...], Merge(strategy="merge", list_type="set")] = ()
    generateName: str = ""
    generation: int = 0
    labels: Mapping[str, str] = EMPTY
    managedFields: Annotated[tuple[ManagedFieldsEntry, ...], ATOMIC] = ()
    name: str = ""
    namespace: str = ""
    ownerReferences: Annotated[
        tuple[OwnerReference, ...], Merge(strategy="merge", key="uid", list_type="map", keys=("uid",))
    ] = ()
    resourceVersion: str = ""
    selfLink: str = ""
    uid: str = ""


class Object(kinds.Object, frozen=True):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class OwnerReference(kinds.OwnerReference, Atomic, frozen=True):
    apiVersion: str = msgspec.field(default_factory=str)
    blockOwnerDeletion: bool | None = None
    controller: bool | None = None
    kind: str = msgspec.field(default_factory=str)
    name: str = msgspec.field(default_factory=str)
    uid: str = msgspec.field(default_factory=str)


class Preconditions(Struct, frozen=True):
    resourceVersion: str | None = None
    uid: str | None = None


class ServerAddressByClientCIDR(Struct, frozen=True):
    clientCIDR: str = msgspec.field(default_factory=str)
    serverAddress: str = msgspec.field(default_factory=str)


class ShardInfo(Struct, frozen=True):
    selector: str = msgspec.field(default_factory=str)


class Status(Struct, frozen=True):
    code: int = 0
    details: StatusDetails | None = None
    message: str = ""
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    reason: str = ""
    status: str = ""


class StatusCause(Struct, frozen=True):
    field: str = ""
    message: str = ""
    reason: str = ""


class StatusDetails(Struct, frozen=True):
    causes: Annotated[tuple[StatusCause, ...], ATOMIC] = ()
    group: str = ""
    kind: str = ""
    name: str = ""
    retryAfterSeconds: int = 0
    uid: str = ""


class WatchEvent(Struct, frozen=True):
    object: Json = msgspec.field(default_factory=NoneType)
    type: str = msgspec.field(default_factory=str)
