"""Cache indexes by controllerRef and by node, and the lookups that use them.

A watch with `CONTROLLED` in its ``indexes`` lets `controlled_by` and `orphans_in` answer without scanning the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from steersman.api.kinds import Object, Pod
from steersman.api.meta import controller_of
from steersman.intent.controller import Cache, Index

O = TypeVar("O", bound=Object)

BY_CONTROLLER = "by_controller"
ORPHANS = "orphans"


def by_controller(obj: Object) -> Iterable[str]:
    """Indexes an object by the uid of its controller."""
    controller = controller_of(obj)
    return (controller.uid,) if controller is not None else ()


def orphans(obj: Object) -> Iterable[str]:
    """Indexes an object without a controller by its namespace."""
    return (obj.metadata.namespace,) if controller_of(obj) is None else ()


CONTROLLED: Mapping[str, Index] = {BY_CONTROLLER: by_controller, ORPHANS: orphans}
"""The indexes for a watch of objects that have controllers."""


def controlled_by(cache: Cache[O], owner: Object) -> list[O]:
    """The objects of the owner's namespace whose controller is this owner.

    A controllerRef across namespaces is invalid and ignored.
    """
    namespace = owner.metadata.namespace
    return [obj for obj in cache.by(BY_CONTROLLER, owner.metadata.uid) if obj.metadata.namespace == namespace]


def orphans_in(cache: Cache[O], namespace: str) -> list[O]:
    """The objects of a namespace that have no controller."""
    return list(cache.by(ORPHANS, namespace))


def by_node(pod: Pod) -> Iterable[str]:
    """Indexes a pod by the name of its node."""
    return (pod.spec.nodeName,) if pod.spec.nodeName else ()
