"""The invariant ``protection``: no claim, volume or VolumeAttributesClass is removed while it is in use.

An object counts as in use by what the server had stored when it was removed. A pod, claim or volume that came after the
object's deletion does not count: no finalizer can keep an object for users that are still to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from steersman.client.api import EventType
from steersman.controllers.shared.pod_claims import has_claim
from steersman.controllers.vacprotection import classes_of_claim, classes_of_volume
from steersman.server.storage.store import Store
from steersman.server.storage.watch import Commit

PODS, CLAIMS, VOLUMES = "pods", "persistentvolumeclaims", "persistentvolumes"
CLASSES = "volumeattributesclasses.storage.k8s.io"


def removed_in_use(store: Store, commit: Commit) -> str:
    """Describes the removal of an object that is in use; empty for any other commit."""
    users = _USERS.get(commit.resource)
    if users is None or commit.event.type is not EventType.DELETED:
        return ""
    user = next(users(store, commit.obj), "")
    return f"{commit.resource} {commit.key} was removed while {user} uses it" if user else ""


def _of_claim(store: Store, claim: Any) -> Iterator[str]:
    """The pods that run with a claim."""
    for pod in _earlier(store, PODS, claim):
        same = pod.metadata.namespace == claim.metadata.namespace
        if same and pod.status.phase == "Running" and has_claim(pod, claim):
            yield f"pod {pod.metadata.name}"


def _of_volume(store: Store, volume: Any) -> Iterator[str]:
    """The claim that a volume is bound to."""
    for claim in _earlier(store, CLAIMS, volume):
        if volume.status.phase == "Bound" and claim.spec.volumeName == volume.metadata.name:
            yield f"claim {claim.metadata.name}"


def _of_class(store: Store, class_: Any) -> Iterator[str]:
    """The claims and volumes that refer to a class."""
    name = class_.metadata.name
    for claim in _earlier(store, CLAIMS, class_):
        if name in classes_of_claim(claim):
            yield f"claim {claim.metadata.name}"
    for volume in _earlier(store, VOLUMES, class_):
        if name in classes_of_volume(volume):
            yield f"volume {volume.metadata.name}"


def _earlier(store: Store, resource: str, obj: Any) -> Iterator[Any]:
    """The objects of a resource that were there when an object was deleted."""
    table, deleted = store.table(resource), obj.metadata.deletionTimestamp
    for key in table.keys():  # noqa: SIM118  (a table is no dict)
        found = table.get(key)
        if found is not None and (deleted is None or found.metadata.creationTimestamp <= deleted):
            yield found


_USERS: Mapping[str, Callable[[Store, Any], Iterator[str]]] = {
    CLAIMS: _of_claim,
    VOLUMES: _of_volume,
    CLASSES: _of_class,
}
