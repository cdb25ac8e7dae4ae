"""Observation of an autoscaler and the pods of its namespace, and the memory of the controller."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from steersman.api.discovery import DiscoveryResult
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.autoscaling import HORIZONTALPODAUTOSCALERS, HorizontalPodAutoscaler
from steersman.api.label_selectors import Selector
from steersman.api.scheme import Key
from steersman.controllers.horizontalpodautoscaler.behavior import History
from steersman.intent.actions import Discover
from steersman.intent.controller import Caches, memory_of

DISCOVERY_TTL = timedelta(seconds=30)


class Memory:
    """The histories and selectors of all autoscalers, and what the server serves."""

    def __init__(self) -> None:
        self.selectors: dict[Key, Selector] = {}
        """The selector of each autoscaler's target, to find pods that two autoscalers scale."""
        self._histories: dict[Key, tuple[str, History]] = {}
        self._discovered: tuple[datetime, DiscoveryResult] | None = None

    def history(self, autoscaler: HorizontalPodAutoscaler) -> History:
        """The recommendations and scale events of an autoscaler."""
        uid, history = self._histories.get(autoscaler.key, ("", History()))
        return history if uid == autoscaler.metadata.uid else History()

    def keep(self, autoscaler: HorizontalPodAutoscaler, history: History) -> None:
        """Keeps the history of an autoscaler for its next round."""
        self._histories[autoscaler.key] = (autoscaler.metadata.uid, history)

    def forget(self, key: Key) -> None:
        """Drops a deleted autoscaler."""
        self.selectors.pop(key, None)
        self._histories.pop(key, None)

    async def discover(self, now: datetime) -> DiscoveryResult:
        """The resources the server serves, read at most 30 seconds ago."""
        if self._discovered is None or now - self._discovered[0] >= DISCOVERY_TTL:
            self._discovered = (now, await Discover())
        return self._discovered[1]


class Observation(msgspec.Struct, frozen=True):
    """An autoscaler, with the pods and the other autoscalers of its namespace."""

    autoscaler: HorizontalPodAutoscaler
    pods: tuple[Pod, ...]
    others: tuple[Key, ...]
    memory: Memory


def observe(caches: Caches, key: Key) -> Observation | None:
    memory = memory_of(caches, Memory)
    autoscaler = caches[HORIZONTALPODAUTOSCALERS].get(key)
    if autoscaler is None:
        memory.forget(key)
        return None
    keys = (one.key for one in caches[HORIZONTALPODAUTOSCALERS].list(key.namespace))
    return Observation(
        autoscaler,
        tuple(caches[PODS].list(key.namespace)),
        tuple(other for other in keys if other != key),
        memory,
    )
