"""Repair of IPAddresses: one that is missing for a cluster IP is created again, and one of no cluster IP is removed, with events.

As upstream's ipallocator-repair-controller, but as reactions to writes: a server's own writes leave nothing to repair, so what is looked at is
what a client creates, changes or deletes, and what was stored before the server started.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from steersman.api.generated.core_v1 import Event, ObjectReference, Service
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.networking_v1 import IPAddress
from steersman.server.admission.service_ip_addresses import (
    ALLOCATOR,
    FAMILY,
    GROUP,
    IPADDRESSES,
    MANAGED_BY,
    cluster_ips,
    family_of,
    is_parent,
    new_ip_address,
)
from steersman.server.registry.object_meta import meta_for_create
from steersman.server.server import Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection

CONTROLLER = "ipallocator-repair-controller"
"""The reporting controller of the events, as upstream's."""


class IPAddressRepair:
    """Repairs the IPAddresses of one server."""

    def __init__(self, server: Server, service_with: Callable[[str], Service | None]) -> None:
        """``service_with`` returns the Service that has a cluster IP."""
        self._server = server
        self._service_with = service_with
        self._repairing = False

    def changed(self, address: IPAddress) -> None:
        """Looks at an IPAddress that was written or removed.

        differs: a missing one is created at once; upstream notices when its Service is written or resynced, within three minutes.
        """
        if not self._repairing:
            self._repairing = True
            try:
                self._repair(address.metadata.name)
            finally:
                self._repairing = False

    def _repair(self, name: str) -> None:
        server = self._server
        resource = server.registry.find(GROUP, "v1", "ipaddresses")
        found: IPAddress | None = server.store.table(resource.table).get(name)
        service = self._service_with(name) or _parent(server, found)
        if service is not None and name in cluster_ips(service):
            reason = _wrong(found, name, service)
            if reason is None:
                return
            if reason:
                _report(server, service, "Service", "ClusterIPNotAllocated", "ClusterIPAllocation", reason)
            if found is not None:
                server.remove(resource, name)
            meta = service.metadata
            server.write(resource, name, new_ip_address(server, name, meta.namespace, meta.name))
        elif found is not None and found.metadata.labels.get(MANAGED_BY) == ALLOCATOR:
            # differs: at once; upstream gives a Service a minute to follow its IPAddress, which here comes after it.
            reason, message = _leaked(server, found)
            _report(server, found, "IPAddress", reason, "IPAddressAllocation", message)
            server.remove(resource, name)


def repair_ip_addresses(server: Server) -> None:
    """Repairs all IPAddresses that there are."""
    repair = IPAddressRepair(server, lambda ip: None)
    for address in list(server.store.table(IPADDRESSES).select(Selection())):
        repair.changed(address)


def _parent(server: Server, address: IPAddress | None) -> Service | None:
    """The Service that an IPAddress says it belongs to."""
    parent = address.spec.parentRef if address is not None else None
    if parent is None or (parent.group, parent.resource) != ("", "services"):
        return None
    found: Service | None = server.store.table("services").get(object_key(parent.namespace, parent.name))
    return found


def _wrong(found: IPAddress | None, name: str, service: Service) -> str | None:
    """Why the IPAddress of a cluster IP is created again, empty where no event tells of it; None where it is right."""
    family, meta = family_of(name), service.metadata
    if found is None:
        return f"Cluster IP [{family}]: {name} is not allocated; repairing"
    if not is_parent(found, meta.namespace, meta.name):
        return f"the ClusterIP [{family}]: {name} for Service {meta.namespace}/{meta.name} has a wrong reference; repairing"
    labels = found.metadata.labels
    return None if (labels.get(FAMILY), labels.get(MANAGED_BY)) == (family, ALLOCATOR) else ""


def _leaked(server: Server, found: IPAddress) -> tuple[str, str]:
    """The reason and message of the event for an IPAddress that is no cluster IP."""
    name, parent = found.metadata.name, found.spec.parentRef
    if parent is None or (parent.group, parent.resource) != ("", "services"):
        shown = f"&ParentReference{{{_go(parent)}}}" if parent is not None else "nil"
        text = (
            f"IPAddress {name} appears to have been modified, not referencing a Service {shown}: cleaning up"
        )
        return "IPAddressNotAllocated", text
    subject = f"IPAddress: {name} for Service {parent.namespace}/{parent.name}"
    if _parent(server, found) is None:
        return "IPAddressNotAllocated", f"{subject} appears to have leaked: cleaning up"
    return "IPAddressWrongReference", f"{subject} has a wrong reference; cleaning up"


def _go(parent: Any) -> str:
    """A ParentReference as Go's generated String method writes it."""
    return f"Group:{parent.group},Resource:{parent.resource},Namespace:{parent.namespace},Name:{parent.name},"


def _report(server: Server, obj: Any, kind: str, reason: str, action: str, message: str) -> None:
    """Writes an event about an object, as recorders of events.k8s.io do."""
    meta, now = obj.metadata, server.clock.now()
    namespace = meta.namespace or "default"
    name = f"{meta.name}.{_nanoseconds(now):x}"
    resource = server.registry.find("", "v1", "events")
    key = object_key(namespace, name)
    if server.store.table(resource.table).get(key) is not None:
        return  # The same object in the same instant.
    event = Event(
        metadata=meta_for_create(
            ObjectMeta(), name=name, namespace=namespace, uid=server.uid(), now=server.now(), generation=0
        ),
        involvedObject=ObjectReference(
            apiVersion="v1" if kind == "Service" else f"{GROUP}/v1",
            kind=kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resourceVersion=meta.resourceVersion,
        ),
        type="Warning",
        reason=reason,
        action=action,
        message=message,
        eventTime=now,
        reportingComponent=CONTROLLER,
        reportingInstance=CONTROLLER,
    )
    server.write(resource, key, event)


def _nanoseconds(time: datetime) -> int:
    return round(time.timestamp() * 1e6) * 1000
