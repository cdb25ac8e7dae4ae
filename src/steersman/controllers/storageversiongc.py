"""storageversion-garbage-collector (a dialogue): what API servers that are gone store is forgotten.

Every API server holds a lease that says it lives, and notes for every resource which version it stores.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from steersman.api.errors import NotFound
from steersman.api.kinds import LEASES, Condition, Lease
from steersman.api.kinds.storageversions import (
    STORAGEVERSIONS,
    ServerStorageVersion,
    StorageVersion,
    StorageVersionStatus,
)
from steersman.api.meta import truncate
from steersman.api.scheme import Key
from steersman.intent.actions import Address, Delete, Read, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict

NAMESPACE = "kube-system"
IDENTITY = "apiserver.kubernetes.io/identity"
SERVERS = LEASES.where(f"metadata.namespace={NAMESPACE}")
EQUAL = "AllEncodingVersionsEqual"


def _is_server(lease: Lease) -> bool:
    return lease.metadata.labels.get(IDENTITY) == "kube-apiserver"


class Seen(msgspec.Struct, frozen=True):
    version: StorageVersion
    doubtful: frozenset[str]
    """Servers whose lease the cache does not show."""


def observe(caches: Caches, key: Key) -> Seen | None:
    version = caches[STORAGEVERSIONS].get(key)
    if version is None:
        return None

    def lives(server: str) -> bool:
        lease = caches[SERVERS].get(Key(NAMESPACE, server))
        return lease is not None and _is_server(lease)

    servers = (one.apiServerID for one in version.status.storageVersions)
    return Seen(version, frozenset(server for server in servers if not lives(server)))


def common(
    version: StorageVersion, kept: tuple[ServerStorageVersion, ...], now: datetime
) -> StorageVersionStatus:
    """The status with only these servers in it, and whether they agree."""
    old = version.status
    encodings = {one.encodingVersion: None for one in kept}
    agreed = next(iter(encodings)) if len(encodings) == 1 else None
    condition = Condition(
        type=EQUAL,
        status="True" if agreed is not None else "False",
        observedGeneration=version.metadata.generation,
        lastTransitionTime=truncate(now),
        reason="CommonEncodingVersionSet" if agreed is not None else "CommonEncodingVersionUnset",
        message="Common encoding version set" if agreed is not None else "Common encoding version unset",
    )
    before = next((one for one in old.conditions if one.type == EQUAL), None)
    others = tuple(one for one in old.conditions if one.type != EQUAL)
    if before is not None and before.status == condition.status:
        changed = None not in (old.commonEncodingVersion, agreed) and old.commonEncodingVersion != agreed
        if not changed:
            condition = msgspec.structs.replace(condition, lastTransitionTime=before.lastTransitionTime)
    return StorageVersionStatus(
        storageVersions=kept, commonEncodingVersion=agreed, conditions=(*others, condition)
    )


async def decide(seen: Seen, now: datetime) -> Verdict:
    if not seen.doubtful:
        return Rest("every server lives")
    version = seen.version
    gone = set()
    for server in sorted(seen.doubtful):
        try:
            lease = await Read(Address(LEASES, NAMESPACE, server))
        except NotFound:
            gone.add(server)
            continue
        # differs: upstream takes any error for a lease that is gone.
        if not _is_server(lease):
            gone.add(server)
    if not gone:
        return Rest("every server lives, the cache will show it")
    kept = tuple(one for one in version.status.storageVersions if one.apiServerID not in gone)
    if not kept:
        await Delete(version)
        return Rest("no server stores it any more")
    await UpdateStatus(version, common(version, kept, now))
    return Rest(f"forgot {len(gone)} servers")


def _of(caches: Caches, change: Change[Lease]) -> Iterable[Key]:
    """A server that is gone is a reason to look at all it stored."""
    if change.new is not None or not _is_server(change.obj):
        return ()
    return (one.key for one in caches[STORAGEVERSIONS].by("server", change.obj.metadata.name))


def _servers(version: StorageVersion) -> Iterable[str]:
    return (one.apiServerID for one in version.status.storageVersions)


controller = Controller(
    name="storageversion-garbage-collector-controller",
    aliases=("storage-version-gc",),
    service_account="storage-version-garbage-collector",
    watches=(Watch(STORAGEVERSIONS, indexes={"server": _servers}), Watch(SERVERS, to=_of)),
    workers=1,
    observe=observe,
    decide=decide,
    feature_gates=("APIServerIdentity", "StorageVersionAPI"),
    required_kinds=(STORAGEVERSIONS,),
)
