"""Node objects as kubelets report them: the Node, its conditions, its lease. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

import msgspec
from msgspec import field
from msgspec.structs import replace

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.coordination_v1 import Lease, LeaseSpec
from steersman.api.generated.meta_v1 import ObjectMeta, OwnerReference

STATE = "sim.steersman.dev/state"
"""An annotation of a Node: ``failed`` stops its kubelet, ``rebooting`` reboots it once."""
SIMULATED = "sim.steersman.dev/simulated"
"""An annotation of a Node of a snapshot, whose providerID is that of a real machine: a simulated kubelet has taken it over."""
PROVIDER = "sim://"
"""Prefix of the providerID of nodes that simulated kubelets register."""
LEASES = "kube-node-lease"
LEASE_SECONDS = 40
VERSION = "v1.36.0-sim"

_CAPACITY: Mapping[str, str] = MappingProxyType(
    {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "500"}
)
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
CONTROLLER_ATTACHES = "volumes.kubernetes.io/controller-managed-attach-detach"
"""The annotation by which a kubelet leaves it to persistentvolume-attach-detach-controller to attach its volumes, as all do."""


class Shape(msgspec.Struct, frozen=True):
    """The properties of nodes."""

    capacity: Mapping[str, str] = field(default_factory=lambda: _CAPACITY)
    """Capacity, all of it allocatable."""
    zones: tuple[str, ...] = ()
    """Zones, assigned to nodes in turn."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[v1.Taint, ...] = ()


def address(number: int) -> str:
    """The address of the n-th node."""
    return f"172.{16 + (number >> 16 & 15)}.{number >> 8 & 255}.{number & 255}"


def node(name: str, number: int, shape: Shape, now: datetime) -> v1.Node:
    """The Node object as a kubelet registers it, ready at once."""
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
    }
    if shape.zones:
        labels["topology.kubernetes.io/zone"] = shape.zones[(number - 1) % len(shape.zones)]
    capacity = dict(shape.capacity)
    return v1.Node(
        metadata=ObjectMeta(
            name=name, labels={**labels, **shape.labels}, annotations={CONTROLLER_ATTACHES: "true"}
        ),
        spec=v1.NodeSpec(taints=shape.taints, providerID=f"{PROVIDER}{name}"),
        status=v1.NodeStatus(
            capacity=capacity,
            allocatable=capacity,
            addresses=(
                v1.NodeAddress(type="InternalIP", address=address(number)),
                v1.NodeAddress(type="Hostname", address=name),
            ),
            conditions=conditions((), now),
            daemonEndpoints=v1.NodeDaemonEndpoints(kubeletEndpoint=v1.DaemonEndpoint(Port=10250)),
            nodeInfo=v1.NodeSystemInfo(
                architecture="amd64",
                operatingSystem="linux",
                kernelVersion="simulated",
                osImage="simulated",
                containerRuntimeVersion="sim://1",
                kubeletVersion=VERSION,
                machineID=name,
                systemUUID=name,
                bootID=f"{name}-0",
            ),
        ),
    )


def conditions(old: tuple[v1.NodeCondition, ...], now: datetime) -> tuple[v1.NodeCondition, ...]:
    """The conditions of a healthy node; conditions of other writers are kept."""
    known = {condition.type: condition for condition in old}

    def made(type_: str, status: str, reason: str, message: str) -> v1.NodeCondition:
        was = known.pop(type_, None)
        since = was.lastTransitionTime if was is not None and was.status == status else now
        return v1.NodeCondition(
            type=type_,
            status=status,
            reason=reason,
            message=message,
            lastHeartbeatTime=now,
            lastTransitionTime=since,
        )

    ours = [made(type_, "False", reason, message) for type_, reason, message in _PRESSURES]
    ours.append(made("Ready", "True", "KubeletReady", "kubelet is posting ready status"))
    return (*ours, *known.values())


def taken_over(found: v1.Node) -> v1.Node:
    """The Node of a snapshot as one whose kubelet is simulated from now on; one that is not ready has failed."""
    meta = found.metadata
    # The kubelet acts on a change of its state: a node that never had one could not recover.
    state = {} if is_ready(found) else {STATE: "failed"}
    return replace(
        found, metadata=replace(meta, annotations={**meta.annotations, SIMULATED: "true", **state})
    )


def is_simulated(found: v1.Node) -> bool:
    """Whether the kubelet of a node is simulated, and so obeys annotations."""
    return found.spec.providerID.startswith(PROVIDER) or SIMULATED in found.metadata.annotations


def is_ready(found: v1.Node) -> bool:
    """Whether the Ready condition of a node is True."""
    return any(each.type == "Ready" and each.status == "True" for each in found.status.conditions)


def reported(found: v1.Node, now: datetime, reboots: int, volumes: tuple[str, ...] | None = None) -> v1.Node:
    """The Node with its current status; ``volumes`` are those in use, None leaves them as they are."""
    status = found.status if volumes is None else replace(found.status, volumesInUse=volumes)
    info = status.nodeInfo
    if reboots:
        info = replace(info, bootID=f"{found.metadata.name}-{reboots}")
    return replace(
        found, status=replace(status, conditions=conditions(status.conditions, now), nodeInfo=info)
    )


def confirmed(found: v1.Node, now: datetime, volumes: tuple[str, ...] | None = None) -> v1.Node:
    """The Node with its conditions as they were, reported again now."""
    status = found.status if volumes is None else replace(found.status, volumesInUse=volumes)
    kept = tuple(replace(each, lastHeartbeatTime=now) for each in status.conditions)
    return replace(found, status=replace(status, conditions=kept))


def lease(name: str, uid: str, now: datetime) -> Lease:
    """A new node lease."""
    owner = OwnerReference(apiVersion="v1", kind="Node", name=name, uid=uid)
    return Lease(
        metadata=ObjectMeta(name=name, namespace=LEASES, ownerReferences=(owner,)),
        spec=LeaseSpec(holderIdentity=name, leaseDurationSeconds=LEASE_SECONDS, renewTime=now),
    )
