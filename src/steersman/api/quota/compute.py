"""What pods ask for in all: sums over containers, as limits and quotas count them, and how firmly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from steersman.api.quantity import Quantity

Amounts: TypeAlias = dict[str, Quantity]

_POD_LEVEL = ("cpu", "memory")


def parse_amounts(amounts: Mapping[str, Any]) -> Amounts:
    """Amounts as numbers. Raises `ValueError` for what is none."""
    return {name: Quantity.parse(amounts[name]) for name in amounts}


def pod_total(spec: Any, which: str) -> Amounts:
    """The ``requests`` or ``limits`` of a pod: of its containers together, or of one that runs before them.

    Sidecars run beside both.
    """
    sums: Amounts = {}
    for container in spec.containers:
        add(sums, parse_amounts(getattr(container.resources, which)))
    sidecars: Amounts = {}
    before: Amounts = {}
    for container in spec.initContainers:
        amounts = parse_amounts(getattr(container.resources, which))
        if container.restartPolicy == "Always":
            add(sums, amounts)
            add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            add(amounts, sidecars)
        _raise(before, amounts)
    _raise(sums, before)
    if spec.resources is not None:
        said = parse_amounts(getattr(spec.resources, which))
        sums.update(
            {name: said[name] for name in said if name in _POD_LEVEL or name.startswith("hugepages-")}
        )
    return sums


def with_overhead(spec: Any, sums: Amounts, which: str) -> Amounts:
    """The same with what it takes to run the pod at all: of limits only those there are."""
    for name, amount in parse_amounts(spec.overhead).items():
        if which == "requests" or (name in sums and sums[name].sign):
            sums[name] = sums[name] + amount if name in sums else amount
    return sums


def add(sums: Amounts, more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        sums[name] = sums[name] + amount if name in sums else amount


def _raise(sums: Amounts, others: Mapping[str, Quantity]) -> None:
    for name, amount in others.items():
        if name not in sums or amount > sums[name]:
            sums[name] = amount


def qos_class(spec: Any) -> str:
    """The pod's QoS class: BestEffort asks for nothing, Guaranteed for exactly its limits."""
    if spec.resources is not None:
        parts = [spec.resources]
    else:
        parts = [container.resources for container in (*spec.containers, *spec.initContainers)]
    requests = _sum(part.requests for part in parts)
    limits = _sum(part.limits for part in parts)
    if not requests and not limits:
        return "BestEffort"
    bounded = all(name in _sum((part.limits,)) for part in parts for name in _POD_LEVEL)
    if (
        bounded
        and len(requests) == len(limits)
        and all(limits.get(name) == requests[name] for name in requests)
    ):
        return "Guaranteed"
    return "Burstable"


def _sum(lists: Iterable[Mapping[str, Any]]) -> dict[str, Quantity]:
    """Amounts of compute resources, added up; zeros do not count."""
    sums: dict[str, Quantity] = {}
    for amounts in lists:
        for name in _POD_LEVEL:
            if name in amounts:
                amount = Quantity.parse(amounts[name])
                if amount.sign > 0:
                    sums[name] = sums[name] + amount if name in sums else amount
    return sums
