"""The memory of the binder: an index of free volumes, and facts that keep concurrent rounds out of each other's way.

Nothing here decides whether a binding is right: every write carries the resourceVersion that was read. A process that
starts with an empty memory comes to the same end, perhaps with a refused write more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from steersman.api.kinds.storage import PersistentVolume, PersistentVolumeClaim
from steersman.api.scheme import Key
from steersman.api.volume_binding import BIND_COMPLETED
from steersman.controllers.persistentvolume.matching import FreeVolumes, Group, request_of
from steersman.controllers.persistentvolume.metrics import OPERATION_SECONDS, Counts, failed
from steersman.intent.controller import Cache
from steersman.intent.metrics import Measure
from steersman.intent.verdict import InvalidSpec

REMINDER = 1800.0
"""Seconds after which an event is repeated that still holds, before the server drops it.

differs: upstream repeats it every 15 seconds.
"""

ABSENCE = 5.0
"""Seconds for which a class that the server did not have is taken to be absent."""


class Choice(msgspec.Struct, frozen=True):
    """The claim for which a round chose a volume, and the resourceVersion of the volume at that time."""

    claim: Key
    version: str


class Operation(NamedTuple):
    """A provisioning or deletion that has begun."""

    plugin: str
    name: str
    started: float
    """Monotonic, in seconds."""


class Memory:
    """The memory of the controller between rounds."""

    def __init__(self) -> None:
        self.free = FreeVolumes()
        self.counts = Counts()
        self.recyclers: dict[str, str] = {}
        """The uids of the recycler pods that this process created, by volume."""
        self.recycle_failures: dict[str, float] = {}
        """The monotonic times at which recycling a volume failed last, by volume."""
        self._choices: dict[str, Choice] = {}
        self._waiting: dict[Group, dict[Key, None]] = {}
        """The claims that found no volume when last looked at, in that order."""
        self._groups: dict[Key, Group] = {}
        """The same claims by key."""
        self._operations: dict[Key, Operation] = {}
        """By the key of a claim or volume."""
        self._absent_classes: dict[str, float] = {}
        """The monotonic times at which the server had no class of a name."""
        self._said: dict[Key, tuple[tuple[str, ...], float]] = {}
        """The last event about a claim or volume, and the monotonic time of it."""
        self._writing: set[Key] = set()
        """The claims and volumes that a round is writing to."""

    # -- turns

    def is_written(self, keys: Iterable[Key]) -> bool:
        """Whether another round is writing to one of these claims and volumes."""
        return not self._writing.isdisjoint(keys)

    @contextmanager
    def write(self, keys: Iterable[Key]) -> Iterator[None]:
        """Keeps other rounds from writing to these claims and volumes meanwhile."""
        taken = set(keys)
        self._writing |= taken
        try:
            yield
        finally:
            self._writing -= taken

    # -- choices

    def choose(self, volume: PersistentVolume, claim: Key) -> None:
        """Keep other claims from choosing this version of a volume."""
        self._choices[volume.metadata.name] = Choice(claim, volume.metadata.resourceVersion)

    def chosen_for(self, volume: PersistentVolume, claims: Cache[PersistentVolumeClaim]) -> Key | None:
        """The claim that is about to take this version of a volume; None if there is none."""
        name = volume.metadata.name
        choice = self._choices.get(name)
        if choice is None:
            return None
        if choice.version == volume.metadata.resourceVersion:
            claim = claims.get(choice.claim)
            if claim is not None and BIND_COMPLETED not in claim.metadata.annotations:
                return choice.claim
        del self._choices[name]
        return None

    def drop_choice(self, volume: PersistentVolume) -> None:
        """Let other claims choose a volume again."""
        self._choices.pop(volume.metadata.name, None)

    # -- classes

    def is_absent(self, storage_class: str, monotonic: float) -> bool:
        """Whether the server was asked for a class a moment ago, and had none."""
        return monotonic - self._absent_classes.get(storage_class, -ABSENCE) < ABSENCE

    def found_absent(self, storage_class: str, monotonic: float) -> None:
        self._absent_classes[storage_class] = monotonic

    # -- claims that wait for a volume

    def wait(self, claim: PersistentVolumeClaim) -> None:
        """Remember that a claim found no volume."""
        group = self._groups[claim.key] = request_of(claim).group
        self._waiting.setdefault(group, {})[claim.key] = None

    def is_waiting(self, claim: Key) -> bool:
        return claim in self._groups

    def stop_waiting(self, claim: Key) -> None:
        group = self._groups.pop(claim, None)
        if group is None:
            return
        waiting = self._waiting[group]
        del waiting[claim]
        if not waiting:
            del self._waiting[group]

    def offer(
        self, volume: PersistentVolume, group: Group, claims: Cache[PersistentVolumeClaim]
    ) -> Key | None:
        """The claim that has waited longest for a volume like this one. It waits no more: its round is due."""
        for key in self._waiting.get(group, {}):
            claim = claims.get(key)
            if claim is not None and _admits(claim, volume):
                self.stop_waiting(key)
                return key
        return None

    # -- events

    def is_news(self, key: Key, event: tuple[str, ...], monotonic: float) -> bool:
        """Whether this event is not the last one about an object, or that one is old."""
        said = self._said.get(key)
        if said is not None and said[0] == event and monotonic - said[1] < REMINDER:
            return False
        self._said[key] = event, monotonic
        return True

    # -- operations

    def begin(self, key: Key, plugin: str, name: str, monotonic: float) -> None:
        """Note the start of an operation, unless it has begun."""
        self._operations.setdefault(key, Operation(plugin, name, monotonic))

    def forget(self, key: Key) -> None:
        """Drop the events and the operation of an object that is gone."""
        self._said.pop(key, None)
        self._operations.pop(key, None)

    def succeeded(self, key: Key, monotonic: float) -> Iterator[Measure]:
        """Measures an operation that ends now, if there is one."""
        operation = self._operations.pop(key, None)
        if operation is not None:
            labels = operation.plugin, operation.name
            yield Measure(OPERATION_SECONDS, monotonic - operation.started, labels)

    def failed(self, key: Key) -> Iterator[Measure]:
        """Counts the failure of an operation that goes on, if there is one."""
        operation = self._operations.get(key)
        if operation is not None:
            yield from failed(operation.plugin, operation.name)


def _admits(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    try:
        return request_of(claim).admits(volume)
    except (InvalidSpec, ValueError):
        return False
