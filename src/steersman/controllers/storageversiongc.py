"""storageversion-garbage-collector-controller (a dialogue): removes dead API servers from StorageVersions.

Every API server holds a lease, and records in a StorageVersion the version in which it stores a resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from steersman.api.conditions import replace_condition
from steersman.api.errors import NotFound
from steersman.api.kinds import LEASES, Condition, Lease
from steersman.api.kinds.storageversions import (
    STORAGEVERSIONS,
    ServerStorageVersion,
    StorageVersion,
    StorageVersionStatus,
)
from steersman.api.meta import truncate_to_seconds
from steersman.api.scheme import Key
from steersman.intent.actions import Address, Delete, Read, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict

NAMESPACE = "kube-system"
IDENTITY = "apiserver.kubernetes.io/identity"
SERVER_LEASES = LEASES.where(f"metadata.namespace={NAMESPACE}")
ALL_EQUAL = "AllEncodingVersionsEqual"


def _is_server_lease(lease: Lease) -> bool:
    return lease.metadata.labels.get(IDENTITY) == "kube-apiserver"


class Observation(msgspec.Struct, frozen=True):
    """A StorageVersion, and the ids of its API servers without a lease in the cache."""

    version: StorageVersion
    without_lease: frozenset[str]


def observe(caches: Caches, key: Key) -> Observation | None:
    version = caches[STORAGEVERSIONS].get(key)
    if version is None:
        return None

    def has_lease(server: str) -> bool:
        lease = caches[SERVER_LEASES].get(Key(NAMESPACE, server))
        return lease is not None and _is_server_lease(lease)

    servers = (one.apiServerID for one in version.status.storageVersions)
    return Observation(version, frozenset(server for server in servers if not has_lease(server)))


def new_status(
    version: StorageVersion, kept: tuple[ServerStorageVersion, ...], now: datetime
) -> StorageVersionStatus:
    """The status with the remaining servers, and the encoding version they have in common."""
    old = version.status
    encodings = {one.encodingVersion: None for one in kept}
    common = next(iter(encodings)) if len(encodings) == 1 else None
    condition = Condition(
        type=ALL_EQUAL,
        status="True" if common is not None else "False",
        observedGeneration=version.metadata.generation,
        lastTransitionTime=truncate_to_seconds(now),
        reason="CommonEncodingVersionSet" if common is not None else "CommonEncodingVersionUnset",
        message="Common encoding version set" if common is not None else "Common encoding version unset",
    )
    conditions = replace_condition(old.conditions, condition)
    if None not in (old.commonEncodingVersion, common) and old.commonEncodingVersion != common:
        # To agree on another version is a transition, too.
        conditions = tuple(condition if one.type == ALL_EQUAL else one for one in conditions)
    return StorageVersionStatus(storageVersions=kept, commonEncodingVersion=common, conditions=conditions)


async def decide(seen: Observation, now: datetime) -> Verdict:
    if not seen.without_lease:
        return Rest("all API servers have a lease")
    version = seen.version
    gone = set()
    for server in sorted(seen.without_lease):
        try:
            lease = await Read(Address(LEASES, NAMESPACE, server))
        except NotFound:
            gone.add(server)
            continue
        # differs: upstream takes any error for a missing lease.
        if not _is_server_lease(lease):
            gone.add(server)
    if not gone:
        return Rest("all API servers have a lease")
    kept = tuple(one for one in version.status.storageVersions if one.apiServerID not in gone)
    if not kept:
        await Delete(version)
        return Rest("no API server left: StorageVersion deleted")
    await UpdateStatus(version, new_status(version, kept, now))
    return Rest(f"removed {len(gone)} API servers")


def _enqueue_versions_of(caches: Caches, change: Change[Lease]) -> Iterable[Key]:
    """The StorageVersions of a deleted server lease."""
    if change.new is not None or not _is_server_lease(change.obj):
        return ()
    return (one.key for one in caches[STORAGEVERSIONS].by("server", change.obj.metadata.name))


def _servers(version: StorageVersion) -> Iterable[str]:
    return (one.apiServerID for one in version.status.storageVersions)


controller = Controller(
    name="storageversion-garbage-collector-controller",
    aliases=("storage-version-gc",),
    service_account="storage-version-garbage-collector",
    watches=(
        Watch(STORAGEVERSIONS, indexes={"server": _servers}),
        Watch(SERVER_LEASES, to=_enqueue_versions_of),
    ),
    workers=1,
    observe=observe,
    decide=decide,
    feature_gates=("APIServerIdentity", "StorageVersionAPI"),
    required_kinds=(STORAGEVERSIONS,),
)
