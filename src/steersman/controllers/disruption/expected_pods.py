"""Expected pods: the sum of the replicas of all controllers of a budget's pods.

The replicas of the built-in workload kinds come from the caches; the scale of any other kind is read live.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from steersman.api.discovery import DiscoveryResult
from steersman.api.errors import NotFound
from steersman.api.kinds import DEPLOYMENTS, REPLICASETS, REPLICATIONCONTROLLERS, OwnerReference, Pod
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.meta import controller_of
from steersman.api.scheme import Key, Kind
from steersman.controllers.disruption.status import CountError
from steersman.intent.actions import Address, Discover, Read
from steersman.intent.controller import Caches

Scales: TypeAlias = Mapping[str, tuple[str, int]]
"""By the uid of a pod's controller: the uid of the object that has the replicas, and the replicas.

They differ for the ReplicaSets of a Deployment."""

_KINDS: Mapping[tuple[str, str], Kind[Any]] = {
    ("ReplicationController", ""): REPLICATIONCONTROLLERS,
    ("ReplicaSet", "apps"): REPLICASETS,
    ("ReplicaSet", "extensions"): REPLICASETS,
    ("StatefulSet", "apps"): STATEFULSETS,
}


def _group(reference: OwnerReference) -> str:
    group, slash, _ = reference.apiVersion.rpartition("/")
    return group if slash else ""


def cached_scales(caches: Caches, pods: Iterable[Pod]) -> Scales:
    """The replicas of those controllers that are in the caches."""
    found: dict[str, tuple[str, int]] = {}
    for pod in pods:
        reference = controller_of(pod)
        if reference is None or reference.uid in found:
            continue
        scale = _cached_scale(caches, reference, pod.metadata.namespace)
        if scale is not None:
            found[reference.uid] = scale
    return found


def _cached_scale(caches: Caches, reference: OwnerReference, namespace: str) -> tuple[str, int] | None:
    kind = _KINDS.get((reference.kind, _group(reference)))
    if kind is None:
        return None
    owner: Any = caches[kind].get(Key(namespace, reference.name))
    if owner is None or owner.metadata.uid != reference.uid:
        return None
    parent = controller_of(owner) if kind is REPLICASETS else None
    if parent is not None and parent.kind == "Deployment":
        owner = caches[DEPLOYMENTS].get(Key(namespace, parent.name))
        if _group(parent) not in ("apps", "extensions") or owner is None or owner.metadata.uid != parent.uid:
            return None
    return owner.metadata.uid, 1 if owner.spec.replicas is None else owner.spec.replicas


async def expected_pods(pods: Iterable[Pod], known: Scales) -> int:
    """The sum of the replicas of all controllers of these pods. Pods without a controller do not count."""
    replicas: dict[str, int] = {}
    visited: dict[str, None] = {}
    discovered: DiscoveryResult | None = None
    for pod in pods:
        reference = controller_of(pod)
        if reference is None or reference.uid in visited:
            continue
        visited[reference.uid] = None
        scale = known.get(reference.uid)
        if scale is None:
            if discovered is None:
                discovered = await Discover()
            scale = await _live_scale(pod, reference, discovered)
        replicas[scale[0]] = scale[1]
    return sum(replicas.values())


async def _live_scale(pod: Pod, reference: OwnerReference, discovered: DiscoveryResult) -> tuple[str, int]:
    """Reads the scale subresource of a controller, whose kind must be served in the version its reference names."""
    resource = discovered.find(reference.apiVersion, reference.kind)
    if resource is None:
        raise CountError(f'no matches for kind "{reference.kind}" in version "{reference.apiVersion}"')
    # Upstream's scale client reads the preferred version.
    kind = next(one for one in discovered.preferred if one.id == resource.id).partial.untyped
    try:
        scale = await Read(Address(kind, pod.metadata.namespace, reference.name), "scale")
    except NotFound:
        if "scale" not in resource.subresources:
            raise CountError(f"{resource.id} does not implement the scale subresource") from None
        raise CountError(f'found no controllers for pod "{pod.metadata.name}"') from None
    uid = scale["metadata"].get("uid", "")
    if uid != reference.uid:
        raise CountError(f'found no controllers for pod "{pod.metadata.name}"')
    return uid, int(scale.get("spec", {}).get("replicas", 0))
