"""Lease documents in their wire form, so that unknown fields survive an update."""

from __future__ import annotations

import socket
import uuid
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from steersman.api.clock import Clock
from steersman.api.kinds import LEASES
from steersman.api.meta import format_micro_time

Document: TypeAlias = dict[str, Any]

DOCUMENTS = LEASES.untyped


def identity(clock: Clock, host: str = "") -> str:
    """A name no other candidate has, not even on the same host."""
    suffix = uuid.UUID(int=clock.random.getrandbits(128), version=4)
    return f"{host or socket.gethostname()}_{suffix}"


def spec_of(lease: Document) -> Document:
    """The spec, empty where there is none."""
    spec: Document = lease.get("spec") or {}
    return spec


def text_in(lease: Document, field: str) -> str:
    """A field of the spec, empty where it is absent."""
    return str(spec_of(lease).get(field) or "")


def seconds_of(lease: Document) -> float:
    """How long the lease lasts, as its holder wrote it."""
    return float(spec_of(lease).get("leaseDurationSeconds") or 0)


def version_of(lease: Document) -> str:
    """The resourceVersion, empty of one that was never read."""
    return str((lease.get("metadata") or {}).get("resourceVersion") or "")


def new(namespace: str, name: str, spec: Document) -> Document:
    """A lease to be created."""
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.name,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def taken(before: Document, holder: str, duration: int, now: datetime) -> Document:
    """The spec with which a holder acquires or renews a lease."""
    mine = before.get("holderIdentity") == holder
    acquired = time_in(before.get("acquireTime")) if mine else None
    if now == time_in(before.get("renewTime")):
        # An update without a change is a no-op, which other candidates would not notice.
        now += timedelta(microseconds=1)
    transitions = int(before.get("leaseTransitions") or 0)
    return {
        **before,
        "holderIdentity": holder,
        "leaseDurationSeconds": duration,
        "acquireTime": format_micro_time(acquired or now),
        "renewTime": format_micro_time(now),
        "leaseTransitions": transitions if mine else transitions + 1,
    }


def given_up(before: Document, now: datetime) -> Document:
    """The spec by which others may have a lease at once."""
    return {
        **{field: value for field, value in before.items() if field != "preferredHolder"},
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": format_micro_time(now),
        "renewTime": format_micro_time(now),
    }


def time_in(text: object) -> datetime | None:
    """The moment that is written somewhere, if it is one."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None
