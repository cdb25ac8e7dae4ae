"""How caches file objects that may have a controller, and the questions asked of those files.

Put `CONTROLLED` into a watch's ``indexes``; then `controlled_by` and `orphans_in` answer without
looking at every object of the namespace.
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
    """Filed under the uid of the object's controller."""
    controller = controller_of(obj)
    return (controller.uid,) if controller is not None else ()


def orphans(obj: Object) -> Iterable[str]:
    """Filed under the namespace, when nothing controls the object."""
    return (obj.metadata.namespace,) if controller_of(obj) is None else ()


CONTROLLED: Mapping[str, Index] = {BY_CONTROLLER: by_controller, ORPHANS: orphans}
"""The indexes of a watch on objects that have controllers."""


def controlled_by(cache: Cache[O], owner: Object) -> list[O]:
    """The objects whose controller is this owner.

    A reference across namespaces means nothing, whatever its uid says.
    """
    namespace = owner.metadata.namespace
    return [obj for obj in cache.by(BY_CONTROLLER, owner.metadata.uid) if obj.metadata.namespace == namespace]


def orphans_in(cache: Cache[O], namespace: str) -> list[O]:
    """The objects of a namespace that nothing controls."""
    return list(cache.by(ORPHANS, namespace))


def by_node(pod: Pod) -> Iterable[str]:
    """Files a pod under the node it is on."""
    return (pod.spec.nodeName,) if pod.spec.nodeName else ()
