"""NodeInfo: the nodes as the scheduler knows them, with the resources their pods request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key
from steersman.sim.scheduler.requirements import Requirements, quantities, requirements


class PodInfo(msgspec.Struct, frozen=True):
    """A pod that is bound, or waits to be scheduled."""

    key: Key
    uid: str
    labels: Mapping[str, str]
    requirements: Requirements
    priority: int
    terminating: bool
    containers: tuple[v1.Container, ...]
    """The containers its requirements were computed from."""


def pod_info(pod: v1.Pod, known: PodInfo | None = None) -> PodInfo:
    """A pod as the scheduler sees it; ``known`` is its previous version."""
    meta, spec = pod.metadata, pod.spec
    # Binding changes the spec, but not the requirements, unless containers were resized.
    same = known is not None and known.uid == meta.uid and known.containers == spec.containers
    return PodInfo(
        pod.key,
        meta.uid,
        meta.labels,
        known.requirements if known is not None and same else requirements(spec),
        spec.priority or 0,
        meta.deletionTimestamp is not None,
        spec.containers,
    )


class NodeInfo:
    """A node, and the sums of its pods' requests."""

    __slots__ = (
        "allocatable",
        "cpu",
        "index",
        "labels",
        "memory",
        "name",
        "node",
        "pods",
        "ports",
        "requested",
        "version",
    )

    def __init__(self, node: v1.Node, index: int) -> None:
        self.name = node.metadata.name
        self.index = index
        self.version = 0
        """Increases with every change."""
        self.pods: dict[Key, PodInfo] = {}
        self.requested: dict[str, int] = {}
        self.ports: dict[tuple[str, str, int], int] = {}
        self.cpu = 0
        self.memory = 0
        self.update_node(node)

    def update_node(self, node: v1.Node) -> None:
        """Update the node object."""
        self.node = node
        self.labels = node.metadata.labels
        self.allocatable = quantities(node.status.allocatable)

    def add(self, new: PodInfo, times: int = 1) -> None:
        """Add a pod; with ``times`` of -1, remove it."""
        requirements = new.requirements
        for name, amount in requirements.requests:
            self.requested[name] = self.requested.get(name, 0) + times * amount
        for port in requirements.ports:
            self.ports[port] = self.ports.get(port, 0) + times
        self.cpu += times * requirements.cpu
        self.memory += times * requirements.memory
        if times > 0:
            self.pods[new.key] = new
        else:
            self.pods.pop(new.key, None)


class NodeInfos:
    """All nodes, and the node of each pod."""

    def __init__(self) -> None:
        self._node_infos: dict[str, NodeInfo] = {}
        self._bound: dict[Key, tuple[str, PodInfo]] = {}
        self._unknown_nodes: dict[str, dict[Key, PodInfo]] = {}
        """Pods of unknown nodes."""
        self._count = 0
        self.log: list[NodeInfo] = []
        """Every change of a node, in order: rankings only look at these."""
        self.epoch = 0
        """Increases when nodes are removed, or the log is cleared."""
        self.with_anti_affinity: dict[Key, PodInfo] = {}
        """Pods with required or preferred anti-affinity."""
        self.with_claims: dict[Key, PodInfo] = {}
        """Pods with PersistentVolumeClaims."""

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(self._node_infos.values())

    def __len__(self) -> int:
        return len(self._node_infos)

    def get(self, name: str) -> NodeInfo | None:
        """A node by name."""
        return self._node_infos.get(name)

    def pod(self, key: Key) -> PodInfo | None:
        """A pod that is bound or being bound."""
        found = self._bound.get(key)
        return found[1] if found is not None else None

    def node_of(self, key: Key) -> str | None:
        """The node of a pod."""
        found = self._bound.get(key)
        return found[0] if found is not None else None

    def put_node(self, node: v1.Node) -> None:
        """Add or update a node."""
        name = node.metadata.name
        node_info = self._node_infos.get(name)
        if node_info is None:
            self._count += 1
            node_info = self._node_infos[name] = NodeInfo(node, self._count)
            for each in self._unknown_nodes.pop(name, {}).values():
                node_info.add(each)
        else:
            node_info.update_node(node)
        self._changed(node_info)

    def remove_node(self, name: str) -> None:
        """Remove a node; its pods are kept, as the node may return."""
        node_info = self._node_infos.pop(name, None)
        if node_info is not None:
            node_info.version = -1
            self._unknown_nodes[name] = dict(node_info.pods)
            self.epoch += 1

    def put(self, new: PodInfo, name: str) -> None:
        """Add a pod to a node. An unchanged pod changes nothing."""
        known = self._bound.get(new.key)
        if known is not None:
            where, old = known
            if where == name and old == new:
                return
            self.remove(new.key)
        self._bound[new.key] = (name, new)
        if new.requirements.pod_anti_affinity is not None:
            self.with_anti_affinity[new.key] = new
        if new.requirements.claims:
            self.with_claims[new.key] = new
        node_info = self._node_infos.get(name)
        if node_info is None:
            self._unknown_nodes.setdefault(name, {})[new.key] = new
            return
        node_info.add(new)
        self._changed(node_info)

    def remove(self, key: Key) -> bool:
        """Remove a pod; returns whether it was on a node."""
        known = self._bound.pop(key, None)
        if known is None:
            return False
        name, old = known
        self.with_anti_affinity.pop(key, None)
        self.with_claims.pop(key, None)
        node_info = self._node_infos.get(name)
        if node_info is None:
            self._unknown_nodes.get(name, {}).pop(key, None)
            return True
        node_info.add(old, -1)
        self._changed(node_info)
        return True

    def _changed(self, node_info: NodeInfo) -> None:
        node_info.version += 1
        self.log.append(node_info)
        if len(self.log) > 100_000:
            self.log.clear()
            self.epoch += 1
