"""Memory of the attach/detach controller: what this process has begun, and what it last saw of objects that are gone.

As upstream's it is lost with the process. Then each wait begins anew: 2 minutes for an operation, 6 minutes for a
volume to be unmounted. Operations themselves are not lost, since their VolumeAttachments are there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from steersman.api.scheme import Key
from steersman.controllers.attachdetach.operations import (
    FIRST_BACKOFF,
    LONGEST_BACKOFF,
    Backoff,
    Operation,
)
from steersman.controllers.shared.volumes import AttachableVolume


class LastNodeState(msgspec.Struct, frozen=True):
    """The last known state of a node, in case it is deleted."""

    managed: bool
    mounted: bool


class VolumeUser(msgspec.Struct, frozen=True):
    """A pod that was seen to use a volume. It does so as long as it runs, whatever becomes of its claim."""

    pod: Key
    node: str
    volume: AttachableVolume


class VolumeMemory:
    """The memory of one volume. The keys of its dictionaries are names of nodes, unless they say otherwise."""

    def __init__(self) -> None:
        self.acting: set[str] = set()
        """The nodes on which a round is acting. Another one that meets it there would send its requests again."""
        self.operations: dict[str, Operation] = {}
        self.backoffs: dict[str, Backoff] = {}
        """The key is empty for a volume that one node at a time may have: its operations wait for each other."""
        self.detach_requested: dict[str, float] = {}
        """The monotonic time since which a volume is to be detached."""
        self.uncertain: dict[str, None] = {}
        """The nodes on which attaching or detaching failed, until another operation begins there."""
        self.waiting_reported: dict[str, None] = {}
        """The nodes whose pods have the event that the volume is attached to another node."""
        self.attached: dict[str, str] = {}
        """The uid of the VolumeAttachment whose success has been told in events."""
        self.used: dict[str, None] = {}
        """The nodes whose pods this process has seen use the volume, so that it knows when they are gone."""
        self.last_node_states: dict[str, LastNodeState] = {}
        self.users: dict[str, VolumeUser] = {}
        """The key is the uid of the pod."""

    def begin(self, operation: str, node: str, monotonic: float) -> Operation:
        """The operation under way on a node, which begins now if there is none of this name.

        Whatever failed before, the outcome of a new operation is awaited.
        """
        known = self.operations.get(node)
        if known is None or known.name != operation:
            known = self.operations[node] = Operation(operation, monotonic)
            self.uncertain.pop(node, None)
        return known

    def succeeded(self, node: str, exclusive: bool) -> None:
        """End the operation of a node."""
        self.backoffs.pop("" if exclusive else node, None)
        self.operations.pop(node, None)

    def failed(self, operation: str, node: str, exclusive: bool, monotonic: float) -> None:
        """End the operation of a node and begin its back-off."""
        key = "" if exclusive else node
        known = self.backoffs.get(key)
        failures = known.failures + 1 if known is not None and known.operation == operation else 1
        # The exponent is limited because a float is, too.
        wait = min(FIRST_BACKOFF * 2 ** min(failures - 1, 10), LONGEST_BACKOFF)
        self.backoffs[key] = Backoff(operation, failures, monotonic + wait)
        self.operations.pop(node, None)

    def backoff(self, operation: str, node: str, exclusive: bool, monotonic: float) -> float:
        """The seconds that an operation must still wait."""
        known = self.backoffs.get("" if exclusive else node)
        if known is None or known.operation != operation:
            return 0.0
        return max(0.0, known.until - monotonic)

    def detached(self, node: str) -> None:
        """Forget a node that the volume is no longer attached to."""
        self.operations.pop(node, None)
        self.detach_requested.pop(node, None)
        self.uncertain.pop(node, None)
        self.waiting_reported.pop(node, None)
        self.attached.pop(node, None)
        self.used.pop(node, None)
        self.last_node_states.pop(node, None)


class Memory:
    """The memory of all volumes."""

    def __init__(self) -> None:
        self.volumes: dict[str, VolumeMemory] = {}
        """By the unique name of the volume."""
        self.attachments: dict[str, str] = {}
        """The unique names of volumes by the names of their VolumeAttachments, which only have a hash of it."""
        self.status_writes: dict[str, dict[str, bool]] = {}
        """The nodes whose status a round is writing: whether each volume is to be in ``volumesAttached``."""
        self._volumes_of_pod: dict[str, dict[str, None]] = {}
        """The volumes that each pod was seen to use, by the uid of the pod."""
        self._counts: dict[str, dict[str, Counter[tuple[str, str, str]]]] = {}
        """The part of each volume on each node in the gauges."""
        self._totals: Counter[tuple[str, str, str]] = Counter()

    def volume(self, name: str) -> VolumeMemory:
        return self.volumes.setdefault(name, VolumeMemory())

    def forget(self, name: str) -> None:
        self.volumes.pop(name, None)

    def set_users(self, name: str, users: dict[str, VolumeUser], node: str = "") -> None:
        """Take in the pods that use a volume, by their uids: those on one node, or on all."""
        volume = self.volume(name)
        if node:
            others = {uid: user for uid, user in volume.users.items() if user.node != node}
            users = {**others, **users}
        for uid in volume.users:
            if uid not in users and (volumes := self._volumes_of_pod.get(uid)) is not None:
                volumes.pop(name, None)
                if not volumes:
                    del self._volumes_of_pod[uid]
        for uid in users:
            self._volumes_of_pod.setdefault(uid, {})[name] = None
        volume.users = users

    def volumes_of_pod(self, uid: str) -> Iterable[str]:
        """The volumes that a pod was seen to use."""
        return self._volumes_of_pod.get(uid, ())

    def counted_nodes(self, volume: str) -> Iterable[str]:
        """The nodes on which a volume has a part in the gauges."""
        return tuple(self._counts.get(volume, ()))

    def count(
        self, volume: str, node: str, counts: Counter[tuple[str, str, str]]
    ) -> Iterator[tuple[tuple[str, str, str], int]]:
        """Take in the part of a volume on a node in the gauges; yields the gauges that change, and their values."""
        before = self._counts.get(volume, {}).get(node, Counter())
        if before == counts:
            return
        parts = self._counts.setdefault(volume, {})
        if counts:
            parts[node] = counts
        else:
            del parts[node]
            if not parts:
                del self._counts[volume]
        for label in dict.fromkeys((*before, *counts)):
            if before[label] != counts[label]:
                self._totals[label] += counts[label] - before[label]
                yield label, self._totals[label]
