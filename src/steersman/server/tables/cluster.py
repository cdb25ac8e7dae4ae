"""The cluster: nodes, namespaces, and what concerns all of it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from steersman.server.tables.age import since
from steersman.server.tables.printer import NAME, Cell, Printer, Printers, boolean, columns, integer, wide

if TYPE_CHECKING:
    from steersman.api.generated.apiregistration_v1 import APIService
    from steersman.api.generated.coordination_v1 import Lease
    from steersman.api.generated.core_v1 import ComponentStatus, Namespace, Node
    from steersman.api.generated.node_v1 import RuntimeClass
    from steersman.api.generated.scheduling_v1 import PriorityClass

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def node(node: Node, now: datetime) -> tuple[Cell, ...]:
    info = node.status.nodeInfo
    kernel = info.kernelVersion or "<unknown>"
    return (
        node.metadata.name,
        _status(node),
        ",".join(_roles(node)) or "<none>",
        since(node.metadata.creationTimestamp, now),
        info.kubeletVersion,
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.osImage or "<unknown>",
        f"{kernel} ({info.architecture})" if info.architecture else kernel,
        info.containerRuntimeVersion or "<unknown>",
    )


def _status(node: Node) -> str:
    ready = [each.status == "True" for each in node.status.conditions if each.type == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[-1] else "NotReady"
    return f"{word},SchedulingDisabled" if node.spec.unschedulable else word


def _roles(node: Node) -> list[str]:
    found = {key.removeprefix(_ROLE_PREFIX) for key in node.metadata.labels if key.startswith(_ROLE_PREFIX)}
    found.add(node.metadata.labels.get(_ROLE, ""))
    return sorted(found - {""})


def _address(node: Node, type: str) -> str:
    return next((each.address for each in node.status.addresses if each.type == type), "<none>")


def namespace(namespace: Namespace, now: datetime) -> tuple[Cell, ...]:
    metadata = namespace.metadata
    return metadata.name, namespace.status.phase, since(metadata.creationTimestamp, now)


def component_status(component: ComponentStatus, now: datetime) -> tuple[Cell, ...]:
    for condition in component.conditions:
        if condition.type == "Healthy":
            word = "Healthy" if condition.status == "True" else "Unhealthy"
            return component.metadata.name, word, condition.message, condition.error
    return component.metadata.name, "Unknown", "", ""


def lease(lease: Lease, now: datetime) -> tuple[Cell, ...]:
    metadata = lease.metadata
    return metadata.name, lease.spec.holderIdentity or "", since(metadata.creationTimestamp, now)


def priority_class(found: PriorityClass, now: datetime) -> tuple[Cell, ...]:
    return (
        found.metadata.name,
        found.value,
        found.globalDefault,
        since(found.metadata.creationTimestamp, now),
        found.preemptionPolicy or "",
    )


def runtime_class(found: RuntimeClass, now: datetime) -> tuple[Cell, ...]:
    return found.metadata.name, found.handler, since(found.metadata.creationTimestamp, now)


def api_service(service: APIService, now: datetime) -> tuple[Cell, ...]:
    backend = service.spec.service
    status = "Unknown"
    for condition in service.status.conditions:
        if condition.type == "Available":
            status = condition.status
            if status != "True" and condition.reason:
                status = f"{status} ({condition.reason})"
            break
    return (
        service.metadata.name,
        "Local" if backend is None else f"{backend.namespace}/{backend.name}",
        status,
        since(service.metadata.creationTimestamp, now),
    )


PRINTERS: Printers = {
    "nodes": Printer(
        columns(
            NAME,
            "Status",
            "Roles",
            "Age",
            "Version",
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ),
        node,
    ),
    "namespaces": Printer(columns(NAME, "Status", "Age"), namespace),
    "componentstatuses": Printer(columns(NAME, "Status", "Message", "Error"), component_status),
    "leases.coordination.k8s.io": Printer(columns(NAME, "Holder", "Age"), lease),
    "priorityclasses.scheduling.k8s.io": Printer(
        columns(NAME, integer("Value"), boolean("Global-Default"), "Age", "PreemptionPolicy"), priority_class
    ),
    "runtimeclasses.node.k8s.io": Printer(columns(NAME, "Handler", "Age"), runtime_class),
    "apiservices.apiregistration.k8s.io": Printer(columns(NAME, "Service", "Available", "Age"), api_service),
}
