"""Sums the resource requests and limits of a pod, and determines its QoS class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from steersman.api.quantity import Quantity

Amounts: TypeAlias = dict[str, Quantity]

_POD_LEVEL = ("cpu", "memory")


def parse_amounts(amounts: Mapping[str, Any]) -> Amounts:
    """Parse quantities. Raises `ValueError`."""
    return {name: Quantity.parse(amounts[name]) for name in amounts}


def pod_total(spec: Any, which: str) -> Amounts:
    """Return the ``requests`` or ``limits`` of a pod: the sum of its containers, or the highest of its init containers.

    Sidecars (restartable init containers) count towards both.
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
        _raise_to(before, amounts)
    _raise_to(sums, before)
    if spec.resources is not None:
        declared = parse_amounts(getattr(spec.resources, which))
        sums.update(
            {name: declared[name] for name in declared if name in _POD_LEVEL or name.startswith("hugepages-")}
        )
    return sums


def with_overhead(spec: Any, sums: Amounts, which: str) -> Amounts:
    """Add the pod's overhead; to limits only where there is a limit."""
    for name, amount in parse_amounts(spec.overhead).items():
        if which == "requests" or (name in sums and sums[name].sign):
            sums[name] = sums[name] + amount if name in sums else amount
    return sums


def add(sums: Amounts, more: Mapping[str, Quantity]) -> None:
    """Add amounts to ``sums`` in place."""
    for name, amount in more.items():
        sums[name] = sums[name] + amount if name in sums else amount


def _raise_to(sums: Amounts, others: Mapping[str, Quantity]) -> None:
    for name, amount in others.items():
        if name not in sums or amount > sums[name]:
            sums[name] = amount


def qos_class(spec: Any) -> str:
    """Return the pod's QoS class: BestEffort, Burstable or Guaranteed."""
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
    """Sum cpu and memory, ignoring zeros."""
    sums: dict[str, Quantity] = {}
    for amounts in lists:
        for name in _POD_LEVEL:
            if name in amounts:
                amount = Quantity.parse(amounts[name])
                if amount.sign > 0:
                    sums[name] = sums[name] + amount if name in sums else amount
    return sums
