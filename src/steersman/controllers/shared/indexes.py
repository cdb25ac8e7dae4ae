"""Cache indexes by controllerRef, by node and by PodGroup, and the lookups that use them.

A watch with `CONTROLLED` in its ``indexes`` lets `controlled_by` and `orphans_in` answer without scanning the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from steersman.api.kinds import Object, Pod
from steersman.api.meta import controller_of
from steersman.api.resource_claims import pod_group_name
from steersman.api.scheme import Key, kind_of
from steersman.intent.controller import Cache, Index

O = TypeVar("O", bound=Object)

BY_CONTROLLER = "by_controller"
ORPHANS = "orphans"
BY_POD_GROUP = "by_pod_group"


def controller_key(kind: str, name: str, uid: str) -> str:
    """The key of a controller in the index `BY_CONTROLLER`."""
    return f"{kind}/{name}/{uid}"


def by_controller(obj: Object) -> Iterable[str]:
    """Indexes an object by the kind, name and uid of its controller."""
    controller = controller_of(obj)
    return (
        (controller_key(controller.kind, controller.name, controller.uid),) if controller is not None else ()
    )


def orphans(obj: Object) -> Iterable[str]:
    """Indexes an object without a controller by its namespace."""
    return (obj.metadata.namespace,) if controller_of(obj) is None else ()


CONTROLLED: Mapping[str, Index] = {BY_CONTROLLER: by_controller, ORPHANS: orphans}
"""The indexes for a watch of objects that have controllers."""


def controlled_by(cache: Cache[O], owner: Object) -> list[O]:
    """The objects of the owner's namespace whose controller is this owner, by uid, kind and name.

    A controllerRef that has the uid of one object and the kind or name of another is invalid and ignored, and so is
    one across namespaces.

    differs: upstream takes the uid alone for the ReplicaSets of a Deployment and the ControllerRevisions of a
    DaemonSet.
    """
    meta = owner.metadata
    key = controller_key(kind_of(owner).name, meta.name, meta.uid)
    return [obj for obj in cache.by(BY_CONTROLLER, key) if obj.metadata.namespace == meta.namespace]


def orphans_in(cache: Cache[O], namespace: str) -> list[O]:
    """The objects of a namespace that have no controller."""
    return list(cache.by(ORPHANS, namespace))


def by_node(pod: Pod) -> Iterable[str]:
    """Indexes a pod by the name of its node."""
    return (pod.spec.nodeName,) if pod.spec.nodeName else ()


def by_pod_group(pod: Pod) -> Iterable[Key]:
    """Indexes a pod by its PodGroup."""
    name = pod_group_name(pod)
    return (Key(pod.metadata.namespace, name),) if name is not None else ()
