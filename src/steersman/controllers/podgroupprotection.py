"""podgroup-protection-controller (a decision): keeps a PodGroup that is being deleted while pods of it may still run.

The API server gives every new PodGroup a finalizer. It is removed once the group is being deleted and all of its pods have
ended or are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from steersman.api.errors import NotFound
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.podgroups import PODGROUPS, PodGroup
from steersman.api.pods import is_terminal
from steersman.api.scheme import Key
from steersman.controllers.shared.protection import is_deletion_candidate
from steersman.intent.actions import ReadModifyWrite
from steersman.intent.controller import Caches, Change, Controller, Watch
from steersman.intent.verdict import Rest, Verdict

FINALIZER = "scheduling.k8s.io/podgroup-protection"
BY_GROUP = "active_by_pod_group"
"""The index of pods that have not ended, by the keys of their PodGroups."""


class Observation(msgspec.Struct, frozen=True):
    """A PodGroup, and a pod of it that has not ended, if there is one."""

    group: PodGroup
    active: Pod | None


class FinalizerRemoval(msgspec.Struct, frozen=True):
    """Edits a live object: removes a finalizer."""

    finalizer: str

    def __call__(self, document: dict[str, Any]) -> None:
        metadata = document["metadata"]
        metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != self.finalizer]


def group_of(pod: Pod) -> Key | None:
    """The key of the PodGroup that a pod names."""
    group = pod.spec.schedulingGroup
    if group is None or group.podGroupName is None:
        return None
    return Key(pod.metadata.namespace, group.podGroupName)


def by_group(pod: Pod) -> Iterable[Key]:
    """Indexes a pod that has not ended by its PodGroup."""
    group = group_of(pod)
    return () if group is None or is_terminal(pod) else (group,)


def enqueue_groups(caches: Caches, change: Change[Pod]) -> Iterator[Key]:
    """The PodGroups that may have lost their last active pod: a pod has ended, is gone, or has another in its place."""
    old, new = change.old, change.new
    freed = [new] if new is not None and is_terminal(new) else []
    if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
        freed.append(old)
    # Each group once.
    yield from dict.fromkeys(group for pod in freed if (group := group_of(pod)) is not None)


def observe(caches: Caches, key: Key) -> Observation | None:
    group = caches[PODGROUPS].get(key)
    if group is None:
        return None
    return Observation(group, next(iter(caches[PODS].by(BY_GROUP, key)), None))


async def decide(seen: Observation, now: datetime) -> Verdict:
    if not is_deletion_candidate(seen.group, FINALIZER):
        return Rest("not being deleted, or without the finalizer")
    if seen.active is not None:
        return Rest(f"pod {seen.active.metadata.name} of the group has not ended")
    try:
        # The rights of this controller include no patch.
        # differs: upstream updates the PodGroup as the cache has it, and loses the fields that it does not know.
        await ReadModifyWrite(seen.group, FinalizerRemoval(FINALIZER))
    except NotFound:
        return Rest("PodGroup already deleted")
    return Rest("no active pod left: finalizer removed")


controller = Controller(
    name="podgroup-protection-controller",
    watches=(
        Watch(PODGROUPS, when=lambda group: is_deletion_candidate(group, FINALIZER)),
        Watch(PODS, to=enqueue_groups, indexes={BY_GROUP: by_group}),
    ),
    workers=1,
    observe=observe,
    decide=decide,
    feature_gates=("GenericWorkload",),
    required_kinds=(PODGROUPS,),
)
