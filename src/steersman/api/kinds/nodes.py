"""Views of Nodes, and of selectors of Nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from steersman.api.kinds import EMPTY, Condition, Object, Struct
from steersman.api.scheme import Kind, register


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    timeAdded: datetime | None = None


class NodeSpec(Struct, frozen=True):
    podCIDR: str = ""
    podCIDRs: tuple[str, ...] = ()
    providerID: str = ""
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeAddress(Struct, frozen=True):
    type: str = ""
    address: str = ""


class NodeCondition(Condition, frozen=True):
    lastHeartbeatTime: datetime | None = None


class AttachedVolume(Struct, frozen=True):
    """Both fields are always encoded, as upstream does."""

    name: str
    devicePath: str


class NodeStatus(Struct, frozen=True):
    allocatable: Mapping[str, str] = EMPTY
    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[NodeCondition, ...] = ()
    volumesAttached: tuple[AttachedVolume, ...] = ()
    """The volumes that the attach/detach controller reports as attached, by their unique names."""
    volumesInUse: tuple[str, ...] = ()
    """The volumes that the kubelet has mounted or is about to mount, by their unique names."""


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


NODES = register(Kind("", "v1", "Node", "nodes", False, Node))


# -- selectors of nodes ---------------------------------------------------------------------------


class NodeSelectorRequirement(Struct, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True):
    matchExpressions: tuple[NodeSelectorRequirement, ...] = ()
    matchFields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct, frozen=True):
    nodeSelectorTerms: tuple[NodeSelectorTerm, ...] = ()
