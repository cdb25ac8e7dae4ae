"""Requirements of a pod on its node, computed once for all pods of one spec."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.quantity import Quantity
from steersman.sim.volume_names import ClaimVolume, claim_volumes

DEFAULT_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
"""Requests assumed for scoring a container without requests: upstream's values (millicores, bytes)."""


class Requirements(msgspec.Struct, frozen=True, eq=False):
    """The requirements of a pod."""

    requests: tuple[tuple[str, int], ...]
    """CPU in millicores, all else in units."""
    cpu: int
    memory: int
    """Requests assumed for scoring."""
    selector: tuple[tuple[str, str], ...]
    affinity: v1.NodeAffinity | None
    names: tuple[str, ...] | None
    """The only nodes it may run on, as for pods of a DaemonSet; None: any."""
    tolerations: tuple[v1.Toleration, ...]
    ports: tuple[tuple[str, str, int], ...]
    """Address, protocol and number of its host ports."""
    pod_affinity: v1.PodAffinity | None
    pod_anti_affinity: v1.PodAntiAffinity | None
    spread: tuple[v1.TopologySpreadConstraint, ...]
    claims: tuple[ClaimVolume, ...]
    shape: Hashable
    """Equal for pods that every node filters and scores the same."""

    @property
    def depends_on_pods(self) -> bool:
        """Whether it depends on other pods."""
        return self.pod_affinity is not None or self.pod_anti_affinity is not None or bool(self.spread)


_known: BoundedCache[int, tuple[v1.PodSpec, Requirements]] = BoundedCache(1024)


def requirements(spec: v1.PodSpec) -> Requirements:
    """The requirements of pods of this spec."""
    known = _known.get(id(spec))
    if known is None:
        known = (spec, _read(spec))
        _known.put(id(spec), known)
    return known[1]


def quantities(resources: Mapping[str, Amount]) -> dict[str, int]:
    """Resource quantities as integers; invalid ones are ignored."""
    found = {}
    for name, amount in resources.items():
        try:
            quantity = Quantity.parse(amount)
        except ValueError:
            continue
        found[name] = quantity.milli() if name == "cpu" else quantity.value()
    return found


def requests(spec: v1.PodSpec) -> dict[str, int]:
    """The requests of a pod: its containers together, or the peak of its init containers."""
    total = _added({}, *(quantities(each.resources.requests) for each in spec.containers))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for each in spec.initContainers:
        wanted = quantities(each.resources.requests)
        if each.restartPolicy == "Always":
            sidecars = _added(sidecars, wanted)
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _added(sidecars, wanted))
    total = _most(_added(total, sidecars), peak)
    if spec.resources is not None:
        total = {**total, **quantities(spec.resources.requests)}
    return _added(total, quantities(spec.overhead))


def _read(spec: v1.PodSpec) -> Requirements:
    wanted = requests(spec)
    affinity = spec.affinity or v1.Affinity()
    requested = tuple(sorted((name, amount) for name, amount in wanted.items() if amount > 0))
    selector = tuple(sorted(spec.nodeSelector.items()))
    ports = _ports(spec.containers)
    count = len(spec.containers)
    return Requirements(
        requests=requested,
        cpu=wanted.get("cpu", 0) or DEFAULT_CPU * count,
        memory=wanted.get("memory", 0) or DEFAULT_MEMORY * count,
        selector=selector,
        affinity=affinity.nodeAffinity,
        names=_names(affinity.nodeAffinity),
        tolerations=spec.tolerations,
        ports=ports,
        pod_affinity=affinity.podAffinity,
        pod_anti_affinity=affinity.podAntiAffinity,
        spread=spec.topologySpreadConstraints,
        claims=tuple(claim_volumes(spec)),
        shape=(requested, count, selector, affinity.nodeAffinity, spec.tolerations, ports),
    )


def _names(affinity: v1.NodeAffinity | None) -> tuple[str, ...] | None:
    """The nodes named by matchFields, if every term of the affinity names some."""
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
