"""What a pod asks of a node, read once for all pods of one spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.quantity import Quantity

CPU_UNSAID = 100
MEMORY_UNSAID = 200 * 1024 * 1024
"""What a container that asks for nothing is taken to use when nodes are compared; upstream's figures."""


class Demand(msgspec.Struct, frozen=True, eq=False):
    """A pod's wishes."""

    requests: tuple[tuple[str, int], ...]
    """CPU in thousandths, all else in units."""
    cpu: int
    memory: int
    """What it counts for when nodes are compared."""
    selector: tuple[tuple[str, str], ...]
    affinity: v1.NodeAffinity | None
    names: tuple[str, ...] | None
    """The only nodes it may go to, where it says so: a pod of a DaemonSet does."""
    tolerations: tuple[v1.Toleration, ...]
    ports: tuple[tuple[str, str, int], ...]
    """Address, protocol and number of the node's ports it takes."""
    together: v1.PodAffinity | None
    apart: v1.PodAntiAffinity | None
    spread: tuple[v1.TopologySpreadConstraint, ...]
    shape: Hashable
    """Equal for pods that any one node looks the same to."""

    @property
    def wide(self) -> bool:
        """Whether it matters where other pods are."""
        return self.together is not None or self.apart is not None or bool(self.spread)


_known: BoundedCache[int, tuple[v1.PodSpec, Demand]] = BoundedCache(1024)


def demand(spec: v1.PodSpec) -> Demand:
    """What pods of this spec ask for."""
    known = _known.get(id(spec))
    if known is None:
        known = (spec, _read(spec))
        _known.put(id(spec), known)
    return known[1]


def amounts(said: Mapping[str, Amount]) -> dict[str, int]:
    """A list of resources in whole numbers; what cannot be read counts as nothing."""
    found = {}
    for name, amount in said.items():
        try:
            quantity = Quantity.parse(amount)
        except ValueError:
            continue
        found[name] = quantity.milli() if name == "cpu" else quantity.value()
    return found


def requests(spec: v1.PodSpec) -> dict[str, int]:
    """What a pod asks for: its containers together, or its hungriest moment of initialisation."""
    total = _added({}, *(amounts(each.resources.requests) for each in spec.containers))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for each in spec.initContainers:
        wanted = amounts(each.resources.requests)
        if each.restartPolicy == "Always":
            sidecars = _added(sidecars, wanted)
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _added(sidecars, wanted))
    total = _most(_added(total, sidecars), peak)
    if spec.resources is not None:
        total = {**total, **amounts(spec.resources.requests)}
    return _added(total, amounts(spec.overhead))


def _read(spec: v1.PodSpec) -> Demand:
    wanted = requests(spec)
    affinity = spec.affinity or v1.Affinity()
    asked = tuple(sorted((name, amount) for name, amount in wanted.items() if amount > 0))
    selector = tuple(sorted(spec.nodeSelector.items()))
    ports = _ports(spec.containers)
    count = len(spec.containers)
    return Demand(
        requests=asked,
        cpu=wanted.get("cpu", 0) or CPU_UNSAID * count,
        memory=wanted.get("memory", 0) or MEMORY_UNSAID * count,
        selector=selector,
        affinity=affinity.nodeAffinity,
        names=_names(affinity.nodeAffinity),
        tolerations=spec.tolerations,
        ports=ports,
        together=affinity.podAffinity,
        apart=affinity.podAntiAffinity,
        spread=spec.topologySpreadConstraints,
        shape=(asked, count, selector, affinity.nodeAffinity, spec.tolerations, ports),
    )


def _names(affinity: v1.NodeAffinity | None) -> tuple[str, ...] | None:
    """The nodes that are named, if each way to meet the affinity names some."""
    required = affinity and affinity.requiredDuringSchedulingIgnoredDuringExecution
    if not required or not required.nodeSelectorTerms:
        return None
    names: dict[str, None] = {}
    for term in required.nodeSelectorTerms:
        named = (need.values for need in term.matchFields if need.operator == "In")
        values = next(named, None)
        if values is None:
            return None
        names.update(dict.fromkeys(values))
    return tuple(names)


def _ports(containers: Iterable[v1.Container]) -> tuple[tuple[str, str, int], ...]:
    return tuple(
        sorted(
            (port.hostIP or "0.0.0.0", port.protocol or "TCP", port.hostPort)
            for container in containers
            for port in container.ports
            if port.hostPort
        )
    )


def _added(total: Mapping[str, int], *more: Mapping[str, int]) -> dict[str, int]:
    found = dict(total)
    for each in more:
        for name, amount in each.items():
            found[name] = found.get(name, 0) + amount
    return found


def _most(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in (*one, *other)}
