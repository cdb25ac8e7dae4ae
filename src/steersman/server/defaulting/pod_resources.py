"""Resources of a pod as a whole: what it asks for where only its containers say, or only its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.quantity import Quantity
from steersman.server.defaulting.missing_fields import put

Sum: TypeAlias = dict[str, Quantity]

_HUGE_PAGES = "hugepages-"


def pod_level(spec: v1.PodSpec, resources: v1.ResourceRequirements) -> v1.PodSpec:
    """The pod's own requests and limits, completed from its containers'."""
    limits, requests = dict(resources.limits), dict(resources.requests)
    if limits or requests:
        for name, total in aggregated(spec, lambda given: given.limits).items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, str(total))
    if limits:
        for name, total in aggregated(spec, lambda given: given.requests).items():
            if name in ("cpu", "memory"):
                requests.setdefault(name, str(total))
        for name, limit in limits.items():
            if name in ("cpu", "memory") or name.startswith(_HUGE_PAGES):
                requests.setdefault(name, limit)
    if limits == resources.limits and requests == resources.requests:
        return spec
    return put(spec, resources=put(resources, limits=limits, requests=requests))


def aggregated(spec: v1.PodSpec, of: Callable[[v1.ResourceRequirements], Mapping[str, Amount]]) -> Sum:
    """What a pod's containers have at most at any time: sidecars stay, other init containers go."""
    total: Sum = {}
    for container in spec.containers:
        _add(total, of(container.resources))
    most: Sum = {}
    sidecars: Sum = {}
    for container in spec.initContainers:
        given = of(container.resources)
        if container.restartPolicy == "Always":
            _add(total, given)
            _add(sidecars, given)
            now = dict(sidecars)
        else:
            now = dict(sidecars)
            _add(now, given)
        _raise(most, now)
    _raise(total, most)
    return total


def _add(total: Sum, more: Mapping[str, Amount]) -> None:
    for name, amount in more.items():
        exact = Quantity.parse(amount)
        total[name] = total[name] + exact if name in total else exact


def _raise(least: Sum, to: Sum) -> None:
    for name, amount in to.items():
        if name not in least or amount > least[name]:
            least[name] = amount
