"""Printers of nodes, namespaces, configuration, cluster-wide classes, devices and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from steersman.api.quantity import Quantity
from steersman.server.tables import cells
from steersman.server.tables.cells import age
from steersman.server.tables.printer import (
    NAME,
    Cell,
    Column,
    Printer,
    Printers,
    boolean,
    columns,
    integer,
    wide,
)

if TYPE_CHECKING:
    from steersman.api.generated.apiregistration_v1 import APIService
    from steersman.api.generated.coordination_v1 import Lease
    from steersman.api.generated.core_v1 import (
        ComponentStatus,
        ConfigMap,
        Namespace,
        Node,
        ResourceQuota,
        Secret,
        ServiceAccount,
    )
    from steersman.api.generated.node_v1 import RuntimeClass
    from steersman.api.generated.resource_v1 import ResourceClaim, ResourceSlice
    from steersman.api.generated.resource_v1alpha3 import PoolStatus, ResourcePoolStatusRequest
    from steersman.api.generated.scheduling_v1 import PriorityClass
    from steersman.api.generated.scheduling_v1alpha2 import PodGroup

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def node_cells(node: Node, now: datetime) -> tuple[Cell, ...]:
    info = node.status.nodeInfo
    kernel = info.kernelVersion or "<unknown>"
    return (
        node.metadata.name,
        _node_status(node),
        ",".join(_node_roles(node)) or "<none>",
        age(node.metadata.creationTimestamp, now),
        info.kubeletVersion,
        _node_address(node, "InternalIP"),
        _node_address(node, "ExternalIP"),
        info.osImage or "<unknown>",
        f"{kernel} ({info.architecture})" if info.architecture else kernel,
        info.containerRuntimeVersion or "<unknown>",
    )


def _node_status(node: Node) -> str:
    ready = [item.status == "True" for item in node.status.conditions if item.type == "Ready"]
    status = "Unknown" if not ready else "Ready" if ready[-1] else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


def _node_roles(node: Node) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in node.metadata.labels if key.startswith(_ROLE_PREFIX)}
    roles.add(node.metadata.labels.get(_ROLE, ""))
    return sorted(roles - {""})


def _node_address(node: Node, type: str) -> str:
    return next((item.address for item in node.status.addresses if item.type == type), "<none>")


def namespace_cells(namespace: Namespace, now: datetime) -> tuple[Cell, ...]:
    metadata = namespace.metadata
    return metadata.name, namespace.status.phase, age(metadata.creationTimestamp, now)


def component_status_cells(component: ComponentStatus, now: datetime) -> tuple[Cell, ...]:
    for condition in component.conditions:
        if condition.type == "Healthy":
            status = "Healthy" if condition.status == "True" else "Unhealthy"
            return component.metadata.name, status, condition.message, condition.error
    return component.metadata.name, "Unknown", "", ""


def lease_cells(lease: Lease, now: datetime) -> tuple[Cell, ...]:
    metadata = lease.metadata
    return metadata.name, lease.spec.holderIdentity or "", age(metadata.creationTimestamp, now)


def priority_class_cells(priority_class: PriorityClass, now: datetime) -> tuple[Cell, ...]:
    return (
        priority_class.metadata.name,
        priority_class.value,
        priority_class.globalDefault,
        age(priority_class.metadata.creationTimestamp, now),
        priority_class.preemptionPolicy or "",
    )


def pod_group_cells(group: PodGroup, now: datetime) -> tuple[Cell, ...]:
    conditions = {condition.type: condition for condition in group.status.conditions}
    scheduled, disrupted = conditions.get("PodGroupScheduled"), conditions.get("DisruptionTarget")
    status = "Pending"
    if scheduled is not None:
        status = "Scheduled" if scheduled.status == "True" else "Unschedulable"
    if disrupted is not None:
        status = disrupted.reason
    template = group.spec.podGroupTemplateRef
    return (
        group.metadata.name,
        "Basic" if group.spec.schedulingPolicy.gang is None else "Gang",
        "<none>" if template is None or template.workload is None else template.workload.workloadName,
        status,
        age(group.metadata.creationTimestamp, now),
    )


def runtime_class_cells(runtime_class: RuntimeClass, now: datetime) -> tuple[Cell, ...]:
    return (
        runtime_class.metadata.name,
        runtime_class.handler,
        age(runtime_class.metadata.creationTimestamp, now),
    )


def api_service_cells(service: APIService, now: datetime) -> tuple[Cell, ...]:
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
        age(service.metadata.creationTimestamp, now),
    )


# -- configuration ------------------------------------------------------------------------------


def secret_cells(secret: Secret, now: datetime) -> tuple[Cell, ...]:
    metadata = secret.metadata
    return metadata.name, secret.type, len(secret.data), age(metadata.creationTimestamp, now)


def config_map_cells(config_map: ConfigMap, now: datetime) -> tuple[Cell, ...]:
    entries = len(config_map.data) + len(config_map.binaryData)
    return config_map.metadata.name, entries, age(config_map.metadata.creationTimestamp, now)


def service_account_cells(account: ServiceAccount, now: datetime) -> tuple[Cell, ...]:
    return account.metadata.name, age(account.metadata.creationTimestamp, now)


def resource_quota_cells(quota: ResourceQuota, now: datetime) -> tuple[Cell, ...]:
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(quota.status.hard):
        usage, hard = quota.status.used.get(resource), quota.status.hard[resource]
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {cells.format_quantity(usage)}/{cells.format_quantity(hard)}")
    created = age(quota.metadata.creationTimestamp, now)
    return quota.metadata.name, ", ".join(requests), ", ".join(limits), created


# -- devices ----------------------------------------------------------------------------------


def name_and_age_cells(obj: Any, now: datetime) -> tuple[Cell, ...]:
    return obj.metadata.name, age(obj.metadata.creationTimestamp, now)


def resource_claim_cells(claim: ResourceClaim, now: datetime) -> tuple[Cell, ...]:
    return claim.metadata.name, ",".join(_claim_states(claim)), age(claim.metadata.creationTimestamp, now)


def _claim_states(claim: ResourceClaim) -> list[str]:
    deleted = claim.metadata.deletionTimestamp is not None
    states = ["deleted"] if deleted else []
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reservedFor:
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return states


_NO_COUNTS = ("-", "-", "-", "-", "-")


def resource_pool_status_request_cells(request: ResourcePoolStatusRequest, now: datetime) -> tuple[Cell, ...]:
    status, completed, counts, pools = "Pending", "<none>", _NO_COUNTS, 0
    answer = request.status
    if answer is not None:
        pools = answer.poolCount or 0
        ended = (each for each in answer.conditions if each.type in ("Complete", "Failed"))
        end = next((each for each in ended if each.status == "True"), None)
        if end is not None:
            status = end.type
        if end is not None and end.type == "Complete":
            completed = age(end.lastTransitionTime, now)
            if pools > len(answer.pools):
                status = f"Complete ({len(answer.pools)}/{pools} pools)"
        if status != "Failed":
            counts = _device_counts(answer.pools)
    return request.metadata.name, request.spec.driver, *counts, pools, status, completed


def _device_counts(pools: tuple[PoolStatus, ...]) -> tuple[str, str, str, str, str]:
    return (
        str(sum(pool.totalDevices or 0 for pool in pools)),
        str(sum(pool.availableDevices or 0 for pool in pools)),
        str(sum(pool.allocatedDevices or 0 for pool in pools)),
        str(sum(pool.unavailableDevices or 0 for pool in pools)),
        str(sum(pool.validationError is not None for pool in pools)),
    )


def resource_slice_cells(resource_slice: ResourceSlice, now: datetime) -> tuple[Cell, ...]:
    spec, created = resource_slice.spec, age(resource_slice.metadata.creationTimestamp, now)
    return resource_slice.metadata.name, spec.nodeName or "", spec.driver, spec.pool.name, created


_NAME_AND_AGE = Printer(columns(NAME, "Age"), name_and_age_cells)


# -- metrics ----------------------------------------------------------------------------------

_METRICS_COLUMNS = (
    NAME,
    Column("cpu", format="quantity"),
    Column("memory", format="quantity"),
    Column("Window", format="duration"),
)


def node_metrics_cells(metrics: Mapping[str, Any], now: datetime) -> tuple[Cell, ...]:
    usage = metrics["usage"]
    return metrics["metadata"]["name"], usage["cpu"], usage["memory"], metrics["window"]


def pod_metrics_cells(metrics: Mapping[str, Any], now: datetime) -> tuple[Cell, ...]:
    usage = {"cpu": Quantity.parse("0"), "memory": Quantity.parse("0")}
    for container in metrics["containers"]:
        for name in usage:
            usage[name] = Quantity.parse(container["usage"][name]) + usage[name]
    return metrics["metadata"]["name"], str(usage["cpu"]), str(usage["memory"]), metrics["window"]


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
        node_cells,
    ),
    "namespaces": Printer(columns(NAME, "Status", "Age"), namespace_cells),
    "componentstatuses": Printer(columns(NAME, "Status", "Message", "Error"), component_status_cells),
    "leases.coordination.k8s.io": Printer(columns(NAME, "Holder", "Age"), lease_cells),
    "priorityclasses.scheduling.k8s.io": Printer(
        columns(NAME, integer("Value"), boolean("Global-Default"), "Age", "PreemptionPolicy"),
        priority_class_cells,
    ),
    "runtimeclasses.node.k8s.io": Printer(columns(NAME, "Handler", "Age"), runtime_class_cells),
    "apiservices.apiregistration.k8s.io": Printer(
        columns(NAME, "Service", "Available", "Age"), api_service_cells
    ),
    "secrets": Printer(columns(NAME, "Type", "Data", "Age"), secret_cells),
    "configmaps": Printer(columns(NAME, "Data", "Age"), config_map_cells),
    "serviceaccounts": Printer(columns(NAME, "Age"), service_account_cells),
    "resourcequotas": Printer(columns(NAME, "Request", "Limit", "Age"), resource_quota_cells),
    "deviceclasses.resource.k8s.io": _NAME_AND_AGE,
    "resourceclaimtemplates.resource.k8s.io": _NAME_AND_AGE,
    "resourceclaims.resource.k8s.io": Printer(columns(NAME, "State", "Age"), resource_claim_cells),
    "resourceslices.resource.k8s.io": Printer(
        columns(NAME, "Node", "Driver", "Pool", "Age"), resource_slice_cells
    ),
    "resourcepoolstatusrequests.resource.k8s.io": Printer(
        columns(
            NAME,
            "Driver",
            "Total",
            "Available",
            "Allocated",
            "Unavailable",
            "Errors",
            integer("Pools"),
            "Status",
            "Completed",
        ),
        resource_pool_status_request_cells,
    ),
    "podgroups.scheduling.k8s.io": Printer(
        columns(NAME, "Policy", "Workload", "Status", "Age"), pod_group_cells
    ),
    "nodes.metrics.k8s.io": Printer(_METRICS_COLUMNS, node_metrics_cells),
    "pods.metrics.k8s.io": Printer(_METRICS_COLUMNS, pod_metrics_cells),
}
