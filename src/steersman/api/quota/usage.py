"""Quota evaluators: the usage of an object, and the names in a quota that apply to its resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from steersman.api.bounded_cache import BoundedCache
from steersman.api.quantity import NANO, ZERO, Quantity
from steersman.api.quota.compute import Amounts, add, pod_total, with_overhead
from steersman.api.quota.scopes import claim_matches_scope, matches_no_scope, pod_matches_scope

ONE = Quantity.parse("1")
COUNT = "count/"
BY_CLASS = ".storageclass.storage.k8s.io/"
DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
"""Begins the name of the extended resource that stands for the devices of a class."""

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = (
    "count/pods",
    "pods",
    *_COMPUTE,
    *(f"requests.{name}" for name in _COMPUTE),
    *(f"limits.{name}" for name in _COMPUTE),
)
_REQUIRED = tuple(f"{prefix}{name}" for name in ("cpu", "memory") for prefix in ("", "requests.", "limits."))
"""Resources that every container must specify if a quota limits them. Upstream keeps this for compatibility only."""

Used: TypeAlias = Callable[[Any], Amounts]


class Evaluator(msgspec.Struct, frozen=True):
    """Evaluates the quota usage of one resource."""

    usage: Used
    matching: Callable[[str], bool]
    """Reports whether a name in a quota applies to this resource."""
    scoped: Callable[[Any, Any], bool] = matches_no_scope
    """Reports whether an object matches a scope."""
    missing: Callable[[Any, Iterable[str]], str] = lambda obj, names: ""
    """Returns an error if an object does not specify what a quota with these names requires."""
    updates: Callable[[Any, Any, str], bool] = lambda new, old, subresource: False
    """Reports whether an update can change the usage."""


# -- pods -------------------------------------------------------------------------------------

_usage: BoundedCache[int, tuple[Any, Amounts]] = BoundedCache(256)
"""By the id of a pod's spec: that spec, and what a running pod of it uses."""


def pod_usage(pod: Any) -> Amounts:
    """Return the usage of a pod. A terminal pod counts only as an object."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return {"count/pods": ONE}
    spec = pod.spec
    known = _usage.get(id(spec))
    if known is None:
        requests = with_overhead(spec, pod_total(spec, "requests"), "requests")
        limits = with_overhead(spec, pod_total(spec, "limits"), "limits")
        known = (spec, {"count/pods": ONE, **_compute(requests, limits)})
        _usage.put(id(spec), known)
    return known[1]


def _compute(requests: Amounts, limits: Amounts) -> Amounts:
    used: Amounts = {"pods": ONE}
    for name in _COMPUTE:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name in requests:
        if name.startswith("hugepages-"):
            used[name] = requests[name]
            used[f"requests.{name}"] = requests[name]
        elif _is_extended(name):
            used[f"requests.{name}"] = requests[name]
    return used


def _applies_to_pods(name: str) -> bool:
    if name in _POD_NAMES or name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    extended = name.removeprefix("requests.")
    return extended != name and _is_extended(extended)


def _is_extended(name: str) -> bool:
    """Whether a resource is an extended one: of a vendor, or of a device class."""
    return ("/" in name and "kubernetes.io/" not in name) or name.startswith(DEVICE_CLASS)


def _missing_resources(pod: Any, names: Iterable[str]) -> str:
    if pod.spec.resources is not None and (pod.spec.resources.requests or pod.spec.resources.limits):
        return ""
    required = [name for name in names if name in _REQUIRED]
    lacking: dict[str, list[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.initContainers):
        for name in required:
            side, _, what = name.rpartition(".")
            amounts = container.resources.limits if side == "limits" else container.resources.requests
            if what not in amounts:
                lacking.setdefault(name, []).append(container.name)
    if not lacking:
        return ""
    parts = (f"{name} for: {','.join(sorted(dict.fromkeys(lacking[name])))}" for name in sorted(lacking))
    return f"must specify {'; '.join(parts)}"


def _pod_updates(new: Any, old: Any, subresource: str) -> bool:
    if subresource == "resize":
        return True
    return not subresource and _bounded(new) != _bounded(old)


def _bounded(pod: Any) -> bool:
    deadline = pod.spec.activeDeadlineSeconds
    return deadline is not None and deadline >= 0


# -- services ---------------------------------------------------------------------------------


def service_usage(service: Any) -> Amounts:
    """Return the usage of a Service: also its node ports and load balancers."""
    spec = service.spec
    ports = balancers = 0
    if spec.type in ("NodePort", "LoadBalancer"):
        ports = len(spec.ports)
        if spec.type == "LoadBalancer":
            balancers = 1
            if spec.allocateLoadBalancerNodePorts is False:
                ports = sum(1 for port in spec.ports if port.nodePort)
    return {
        "count/services": ONE,
        "services": ONE,
        "services.loadbalancers": Quantity.of(balancers),
        "services.nodeports": Quantity.of(ports),
    }


# -- claims -----------------------------------------------------------------------------------


def claim_usage(claim: Any) -> Amounts:
    """Return the usage of a PersistentVolumeClaim: storage in total and by storage class."""
    used: Amounts = {"persistentvolumeclaims": ONE, "count/persistentvolumeclaims": ONE}
    name = claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class")
    name = name or claim.spec.storageClassName or ""
    requested = claim.spec.resources.requests.get("storage")
    if name:
        used[f"{name}{BY_CLASS}persistentvolumeclaims"] = ONE
    if requested is not None:
        amount = Quantity.parse(requested)
        granted = claim.status.allocatedResources.get("storage")
        if granted is not None and Quantity.parse(granted) > amount:
            amount = Quantity.parse(granted)
        if amount.nanos % NANO:
            amount = Quantity.of(amount.value(), amount.format)
        used["requests.storage"] = amount
        if name:
            used[f"{name}{BY_CLASS}requests.storage"] = amount
    return used


def _applies_to_claims(name: str) -> bool:
    return name in ("count/persistentvolumeclaims", "persistentvolumeclaims", "requests.storage") or (
        name.endswith((f"{BY_CLASS}persistentvolumeclaims", f"{BY_CLASS}requests.storage"))
    )


def _claim_updates(new: Any, old: Any, subresource: str) -> bool:
    if subresource == "status":
        return bool(new.status.allocatedResources != old.status.allocatedResources)
    return not subresource


# -- devices ----------------------------------------------------------------------------------

DEVICES = ".deviceclass.resource.k8s.io/devices"
MOST_DEVICES = 32
"""The largest number of devices of one claim."""


def device_usage(claim: Any) -> Amounts:
    """Return the usage of a ResourceClaim: for each device class the largest number of devices it may get."""
    used: Amounts = {f"{COUNT}resourceclaims.resource.k8s.io": ONE}
    for request in claim.spec.devices.requests or ():
        worst: dict[str, int] = {}
        for one in request.firstAvailable or (() if request.exactly is None else (request.exactly,)):
            number = one.count or 0 if one.allocationMode == "ExactCount" else 0
            if one.allocationMode == "All":
                number = MOST_DEVICES
            name = f"{one.deviceClassName}{DEVICES}"
            worst[name] = max(worst.get(name, 0), number)
        add(used, {name: Quantity.of(number) for name, number in worst.items()})
    return used


# -- all --------------------------------------------------------------------------------------

BARE = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
"""Resources that are also counted under their plain names, which are older than ``count/``."""

_EVALUATORS = {
    "pods": Evaluator(pod_usage, _applies_to_pods, pod_matches_scope, _missing_resources, _pod_updates),
    "services": Evaluator(
        service_usage,
        lambda name: name in ("count/services", "services", "services.nodeports", "services.loadbalancers"),
        updates=lambda new, old, subresource: not subresource,
    ),
    "persistentvolumeclaims": Evaluator(
        claim_usage, _applies_to_claims, claim_matches_scope, updates=_claim_updates
    ),
    "resourceclaims.resource.k8s.io": Evaluator(
        device_usage,
        lambda name: name == f"{COUNT}resourceclaims.resource.k8s.io" or name.endswith(DEVICES),
        updates=lambda new, old, subresource: not subresource,
    ),
}


def evaluator(resource: str) -> Evaluator:
    """Return the evaluator of a resource; by default, objects are counted."""
    found = _EVALUATORS.get(resource)
    if found is None:
        names = (f"count/{resource}", resource) if resource in BARE else (f"count/{resource}",)
        used = dict.fromkeys(names, ONE)
        found = _EVALUATORS[resource] = Evaluator(lambda obj: used, lambda name: name in names)
    return found


def difference(new: Amounts, old: Amounts) -> Amounts:
    """Return the increase of usage, with decreases as zero."""
    more = {name: amount - old.get(name, ZERO) for name, amount in new.items()}
    return {name: amount if amount.sign > 0 else ZERO for name, amount in more.items()}
