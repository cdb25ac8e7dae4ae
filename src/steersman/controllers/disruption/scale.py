"""How many pods the owners of some pods want.

Owners that the caches know are looked up there; of any other kind the server is asked for the scale.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from steersman.api.discovery import Discovered
from steersman.api.errors import NotFound
from steersman.api.kinds import DEPLOYMENTS, REPLICASETS, REPLICATIONCONTROLLERS, OwnerReference, Pod
from steersman.api.kinds.statefulsets import STATEFULSETS
from steersman.api.meta import controller_of
from steersman.api.scheme import Key, Kind
from steersman.controllers.disruption.budget import Uncountable
from steersman.intent.actions import Address, Discover, Read
from steersman.intent.controller import Caches

Owners: TypeAlias = Mapping[str, tuple[str, int]]
"""By the uid of a pod's controller: the uid of who decides how many there are, and how many."""

_KINDS: Mapping[tuple[str, str], Kind[Any]] = {
    ("ReplicationController", ""): REPLICATIONCONTROLLERS,
    ("ReplicaSet", "apps"): REPLICASETS,
    ("ReplicaSet", "extensions"): REPLICASETS,
    ("StatefulSet", "apps"): STATEFULSETS,
}


def _group(reference: OwnerReference) -> str:
    group, slash, _ = reference.apiVersion.rpartition("/")
    return group if slash else ""


def known_scale(caches: Caches, pods: Iterable[Pod]) -> Owners:
    """What the caches know."""
    found: dict[str, tuple[str, int]] = {}
    for pod in pods:
        reference = controller_of(pod)
        if reference is None or reference.uid in found:
            continue
        scale = _looked_up(caches, reference, pod.metadata.namespace)
        if scale is not None:
            found[reference.uid] = scale
    return found


def _looked_up(caches: Caches, reference: OwnerReference, namespace: str) -> tuple[str, int] | None:
    kind = _KINDS.get((reference.kind, _group(reference)))
    if kind is None:
        return None
    owner: Any = caches[kind].get(Key(namespace, reference.name))
    if owner is None or owner.metadata.uid != reference.uid:
        return None
    above = controller_of(owner) if kind is REPLICASETS else None
    if above is not None and above.kind == "Deployment":
        owner = caches[DEPLOYMENTS].get(Key(namespace, above.name))
        if _group(above) not in ("apps", "extensions") or owner is None or owner.metadata.uid != above.uid:
            return None
    return owner.metadata.uid, 1 if owner.spec.replicas is None else owner.spec.replicas


async def expected(pods: Iterable[Pod], known: Owners) -> int:
    """The sum over all that control these pods. Pods without a controller do not count."""
    wanted: dict[str, int] = {}
    looked: dict[str, None] = {}
    served: Discovered | None = None
    for pod in pods:
        reference = controller_of(pod)
        if reference is None or reference.uid in looked:
            continue
        looked[reference.uid] = None
        scale = known.get(reference.uid)
        if scale is None:
            if served is None:
                served = await Discover()
            scale = await _asked(pod, reference, served)
        wanted[scale[0]] = scale[1]
    return sum(wanted.values())


async def _asked(pod: Pod, reference: OwnerReference, served: Discovered) -> tuple[str, int]:
    """What the scale of some other kind says."""
    group, kind = _group(reference), reference.kind
    resource = next(
        (one for one in served.preferred if one.group == group and one.kind == kind),
        None,
    )
    if resource is None:
        version = reference.apiVersion.rpartition("/")[2]
        raise Uncountable(f'no matches for kind "{kind}" in version "{group}/{version}"')
    try:
        scale = await Read(Address(resource.partial.untyped, pod.metadata.namespace, reference.name), "scale")
    except NotFound:
        if "scale" not in resource.parts:
            raise Uncountable(f"{resource.id} does not implement the scale subresource") from None
        raise Uncountable(f'found no controllers for pod "{pod.metadata.name}"') from None
    uid = scale["metadata"].get("uid", "")
    if uid != reference.uid:
        raise Uncountable(f'found no controllers for pod "{pod.metadata.name}"')
    return uid, int(scale.get("spec", {}).get("replicas", 0))
