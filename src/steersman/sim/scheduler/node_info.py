"""The nodes as a scheduler knows them: what is free on each, kept as pods come and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from steersman.api.generated import core_v1 as v1
from steersman.api.scheme import Key
from steersman.sim.scheduler.requirements import Demand, amounts, demand


class Tenant(NamedTuple):
    """A pod on a node, or one that looks for a place."""

    key: Key
    uid: str
    labels: Mapping[str, str]
    demand: Demand
    priority: int
    leaving: bool
    containers: tuple[v1.Container, ...]
    """What its demand was read off, for the greater part."""


def tenant(pod: v1.Pod, known: Tenant | None = None) -> Tenant:
    """A pod as a scheduler looks at it; ``known`` is how it looked before."""
    meta, spec = pod.metadata, pod.spec
    # A pod that was bound has another spec, but asks for the same, unless its containers were resized.
    same = known is not None and known.uid == meta.uid and known.containers == spec.containers
    return Tenant(
        pod.key,
        meta.uid,
        meta.labels,
        known.demand if known is not None and same else demand(spec),
        spec.priority or 0,
        meta.deletionTimestamp is not None,
        spec.containers,
    )


class Host:
    """One node and the sums of what is on it."""

    __slots__ = (
        "cpu",
        "index",
        "labels",
        "memory",
        "name",
        "node",
        "ports",
        "room",
        "tenants",
        "used",
        "version",
    )

    def __init__(self, node: v1.Node, index: int) -> None:
        self.name = node.metadata.name
        self.index = index
        self.version = 0
        """Moves with every change."""
        self.tenants: dict[Key, Tenant] = {}
        self.used: dict[str, int] = {}
        self.ports: dict[tuple[str, str, int], int] = {}
        self.cpu = 0
        self.memory = 0
        self.become(node)

    def become(self, node: v1.Node) -> None:
        """Take in another state of the node."""
        self.node = node
        self.labels = node.metadata.labels
        self.room = amounts(node.status.allocatable)

    def add(self, new: Tenant, times: int = 1) -> None:
        """Count a pod in; with ``times`` of -1, out."""
        wants = new.demand
        for name, amount in wants.requests:
            self.used[name] = self.used.get(name, 0) + times * amount
        for port in wants.ports:
            self.ports[port] = self.ports.get(port, 0) + times
        self.cpu += times * wants.cpu
        self.memory += times * wants.memory
        if times > 0:
            self.tenants[new.key] = new
        else:
            self.tenants.pop(new.key, None)


class Hosts:
    """All nodes, and which pod is where."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._homes: dict[Key, tuple[str, Tenant]] = {}
        self._strays: dict[str, dict[Key, Tenant]] = {}
        """Pods of nodes that are not known, or not yet."""
        self._count = 0
        self.log: list[Host] = []
        """Every change of a node, in order, so that whoever ranks them need only look at these anew."""
        self.epoch = 0
        """Moves when nodes go, or the log begins anew."""
        self.guarded: dict[Key, Tenant] = {}
        """Pods that will not have others beside them."""

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    def __len__(self) -> int:
        return len(self._hosts)

    def get(self, name: str) -> Host | None:
        """A node by its name."""
        return self._hosts.get(name)

    def resident(self, key: Key) -> Tenant | None:
        """A pod that is on a node, or on its way there."""
        found = self._homes.get(key)
        return found[1] if found is not None else None

    def home(self, key: Key) -> str | None:
        """The node a pod is on."""
        found = self._homes.get(key)
        return found[0] if found is not None else None

    def put_node(self, node: v1.Node) -> None:
        """Take in a node, new or changed."""
        name = node.metadata.name
        host = self._hosts.get(name)
        if host is None:
            self._count += 1
            host = self._hosts[name] = Host(node, self._count)
            for each in self._strays.pop(name, {}).values():
                host.add(each)
        else:
            host.become(node)
        self._changed(host)

    def drop_node(self, name: str) -> None:
        """Forget a node; its pods are remembered, as it may come back."""
        host = self._hosts.pop(name, None)
        if host is not None:
            host.version = -1
            self._strays[name] = dict(host.tenants)
            self.epoch += 1

    def put(self, new: Tenant, name: str) -> None:
        """Take in a pod on a node. The same pod again only counts where its wishes changed."""
        known = self._homes.get(new.key)
        if known is not None:
            where, old = known
            if where == name and old == new:
                return
            self.drop(new.key)
        self._homes[new.key] = (name, new)
        if new.demand.apart is not None:
            self.guarded[new.key] = new
        host = self._hosts.get(name)
        if host is None:
            self._strays.setdefault(name, {})[new.key] = new
            return
        host.add(new)
        self._changed(host)

    def drop(self, key: Key) -> bool:
        """Forget a pod; answers whether it was anywhere."""
        known = self._homes.pop(key, None)
        if known is None:
            return False
        name, old = known
        self.guarded.pop(key, None)
        host = self._hosts.get(name)
        if host is None:
            self._strays.get(name, {}).pop(key, None)
            return True
        host.add(old, -1)
        self._changed(host)
        return True

    def _changed(self, host: Host) -> None:
        host.version += 1
        self.log.append(host)
        if len(self.log) > 100_000:
            self.log.clear()
            self.epoch += 1
