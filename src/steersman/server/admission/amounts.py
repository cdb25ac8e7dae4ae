"""What pods ask for in all: sums over containers, as limits and quotas count them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from steersman.api.generated.core_v1 import PodSpec
from steersman.api.quantity import Quantity

Amounts: TypeAlias = dict[str, Quantity]

_POD_LEVEL = ("cpu", "memory")


def parsed(amounts: Mapping[str, Any]) -> Amounts:
    """Amounts as numbers. Raises `ValueError` for what is none."""
    return {name: Quantity.parse(amounts[name]) for name in amounts}


def total(spec: PodSpec, which: str) -> Amounts:
    """The ``requests`` or ``limits`` of a pod: of its containers together, or of one that runs before them.

    Sidecars run beside both.
    """
    sums: Amounts = {}
    for container in spec.containers:
        add(sums, parsed(getattr(container.resources, which)))
    sidecars: Amounts = {}
    before: Amounts = {}
    for container in spec.initContainers:
        amounts = parsed(getattr(container.resources, which))
        if container.restartPolicy == "Always":
            add(sums, amounts)
            add(sidecars, amounts)
            amounts = dict(sidecars)
        else:
            add(amounts, sidecars)
        _raise(before, amounts)
    _raise(sums, before)
    if spec.resources is not None:
        said = parsed(getattr(spec.resources, which))
        sums.update(
            {name: said[name] for name in said if name in _POD_LEVEL or name.startswith("hugepages-")}
        )
    return sums


def with_overhead(spec: PodSpec, sums: Amounts, which: str) -> Amounts:
    """The same with what it takes to run the pod at all: of limits only those there are."""
    for name, amount in parsed(spec.overhead).items():
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
