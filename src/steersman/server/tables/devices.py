"""Devices: classes of them, claims to them, and what nodes have to offer."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, columns

if TYPE_CHECKING:
    from steersman.api.generated.resource_v1 import ResourceClaim, ResourceSlice


def named(found: Any, now: datetime) -> tuple[Cell, ...]:
    return found.metadata.name, since(found.metadata.creationTimestamp, now)


def claim(claim: ResourceClaim, now: datetime) -> tuple[Cell, ...]:
    return claim.metadata.name, ",".join(_states(claim)), since(claim.metadata.creationTimestamp, now)


def _states(claim: ResourceClaim) -> list[str]:
    deleted = claim.metadata.deletionTimestamp is not None
    states = ["deleted"] if deleted else []
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reservedFor:
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return states


def resource_slice(piece: ResourceSlice, now: datetime) -> tuple[Cell, ...]:
    spec, age = piece.spec, since(piece.metadata.creationTimestamp, now)
    return piece.metadata.name, spec.nodeName or "", spec.driver, spec.pool.name, age


_NAMED = Printer(columns(NAME, "Age"), named)

PRINTERS: Printers = {
    "deviceclasses.resource.k8s.io": _NAMED,
    "resourceclaimtemplates.resource.k8s.io": _NAMED,
    "resourceclaims.resource.k8s.io": Printer(columns(NAME, "State", "Age"), claim),
    "resourceslices.resource.k8s.io": Printer(columns(NAME, "Node", "Driver", "Pool", "Age"), resource_slice),
}
