"""Objects that pods are made from, as simulated kubelets know them: claims and their volumes, ConfigMaps and Secrets.

Nothing is watched until a pod needs a kind. Pods that wait are looked at again when an object changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from steersman.api.clock import Clock
from steersman.api.generated import core_v1 as v1
from steersman.api.generated import load, storage_v1
from steersman.api.scheme import Key, Kind
from steersman.client.api import Api
from steersman.intent.controller import Change
from steersman.runtime.informer import Informer, Informers

CLAIMS: Kind[v1.PersistentVolumeClaim] = load("", "v1", "PersistentVolumeClaim")
VOLUMES: Kind[v1.PersistentVolume] = load("", "v1", "PersistentVolume")
CONFIG_MAPS: Kind[v1.ConfigMap] = load("", "v1", "ConfigMap")
SECRETS: Kind[v1.Secret] = load("", "v1", "Secret")
CSI_DRIVERS: Kind[storage_v1.CSIDriver] = load("storage.k8s.io", "v1", "CSIDriver")

KINDS: Mapping[str, tuple[Kind[Any], ...]] = MappingProxyType(
    {"claim": (CLAIMS, VOLUMES, CSI_DRIVERS), "configmap": (CONFIG_MAPS,), "secret": (SECRETS,)}
)
"""The kinds to watch for each kind of source."""


class PodObjects:
    """The objects that the pods of some nodes are made from. A `VolumeObjects` and a `ConfigObjects`."""

    def __init__(
        self, api: Api, clock: Clock, group: asyncio.TaskGroup, *, enqueue: Callable[[Key], None]
    ) -> None:
        """``enqueue`` is called with the keys of pods that wait, when an object has changed."""
        self._group = group
        self._enqueue = enqueue
        self._informers = Informers(api, clock)
        self._waiting: dict[Key, None] = {}
        self._on_claim: list[Callable[[v1.PersistentVolumeClaim], None]] = []
        group.create_task(self._informers.run(), name="kubelets: objects")

    def claim(self, key: Key) -> v1.PersistentVolumeClaim | None:
        return self._informers[CLAIMS].get(key)

    def volume(self, name: str) -> v1.PersistentVolume | None:
        return self._informers[VOLUMES].get(Key("", name))

    def config_map(self, key: Key) -> v1.ConfigMap | None:
        return self._informers[CONFIG_MAPS].get(key)

    def secret(self, key: Key) -> v1.Secret | None:
        return self._informers[SECRETS].get(key)

    def csi_driver(self, name: str) -> storage_v1.CSIDriver | None:
        return self._informers[CSI_DRIVERS].get(Key("", name))

    def on_claim(self, changed: Callable[[v1.PersistentVolumeClaim], None]) -> None:
        """Call this with every claim that is new or has changed, before pods that wait are enqueued."""
        self._on_claim.append(changed)

    def is_synced(self, key: Key, sources: Iterable[str]) -> bool:
        """Whether all objects of these kinds of source are known; if not, the pod is enqueued once they are."""
        for source in dict.fromkeys(sources):
            for kind in KINDS[source]:
                informer = self._informers.known(kind)
                if informer is None:
                    informer = self._informers.informer(kind)
                    informer.subscribe(self._on_change)
                    self._group.create_task(self._sync(informer), name=f"kubelets: {kind.plural}")
                if not informer.synced:
                    self._waiting[key] = None
                    return False
        return True

    def wait(self, key: Key) -> None:
        """Enqueue a pod whenever an object changes, until it is forgotten."""
        self._waiting[key] = None

    def forget(self, key: Key) -> None:
        """A pod no longer waits."""
        self._waiting.pop(key, None)

    async def _sync(self, informer: Informer[Any]) -> None:
        await informer.wait_synced()
        self._review()

    def _on_change(self, change: Change[Any]) -> None:
        if isinstance(change.new, v1.PersistentVolumeClaim):
            for changed in self._on_claim:
                changed(change.new)
        self._review()

    def _review(self) -> None:
        """Enqueue all pods that wait."""
        for key in self._waiting:
            self._enqueue(key)
