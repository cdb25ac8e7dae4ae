"""Observation of an autoscaler and the pods of its namespace, and the memory of the controller."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from steersman.api.discovery import DiscoveryResult
from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.autoscaling import HORIZONTALPODAUTOSCALERS, HorizontalPodAutoscaler
from steersman.api.label_selectors import Selector
from steersman.api.scheme import Key
from steersman.controllers.horizontalpodautoscaler.behavior import History
from steersman.controllers.horizontalpodautoscaler.metrics_client import CustomMetricsVersions
from steersman.intent.actions import Discover
from steersman.intent.controller import Caches, memory_of

DISCOVERY_TTL = timedelta(seconds=30)


class Known(msgspec.Struct, frozen=True):
    """Facts about one autoscaler. Those of a deleted one of the same name, with another uid, are not used."""

    uid: str
    history: History = History()
    selector: Selector | None = None
    """The selector of the target, to find pods that two autoscalers scale."""


class Memory:
    """The histories and selectors of all autoscalers, and what the server serves."""

    def __init__(self) -> None:
        self.custom_metrics = CustomMetricsVersions()
        self._known: dict[Key, Known] = {}
        self._discovered: tuple[datetime, DiscoveryResult] | None = None

    def history(self, autoscaler: HorizontalPodAutoscaler) -> History:
        """The recommendations and scale events of an autoscaler."""
        return self._of(autoscaler).history

    def keep(self, autoscaler: HorizontalPodAutoscaler, history: History) -> None:
        """Keeps the history of an autoscaler for its next round."""
        self._known[autoscaler.key] = replace(self._of(autoscaler), history=history)

    def selector(self, autoscaler: HorizontalPodAutoscaler) -> Selector | None:
        """The selector of an autoscaler's target; None until its first round."""
        return self._of(autoscaler).selector

    def keep_selector(self, autoscaler: HorizontalPodAutoscaler, selector: Selector) -> None:
        """Keeps the selector of an autoscaler's target for the rounds of the others."""
        self._known[autoscaler.key] = replace(self._of(autoscaler), selector=selector)

    def forget(self, key: Key) -> None:
        """Drops a deleted autoscaler."""
        self._known.pop(key, None)

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def _of(self, autoscaler: HorizontalPodAutoscaler) -> Known:
        uid, known = autoscaler.metadata.uid, self._known.get(autoscaler.key)
        # differs: upstream knows autoscalers by name, so one that is created again within a sync period inherits the
        # recommendations of the deleted one.
        return known if known is not None and known.uid == uid else Known(uid)

    async def discover(self, now: datetime) -> DiscoveryResult:
        """The resources the server serves, read at most 30 seconds ago."""
        if self._discovered is None or now - self._discovered[0] >= DISCOVERY_TTL:
            self._discovered = (now, await Discover())
        return self._discovered[1]


class Observation(msgspec.Struct, frozen=True):
    """An autoscaler, with the pods and the other autoscalers of its namespace."""

    autoscaler: HorizontalPodAutoscaler
    pods: tuple[Pod, ...]
    others: tuple[HorizontalPodAutoscaler, ...]
    memory: Memory


def observe(caches: Caches, key: Key) -> Observation | None:
    memory = memory_of(caches, Memory)
    autoscaler = caches[HORIZONTALPODAUTOSCALERS].get(key)
    if autoscaler is None:
        memory.forget(key)
        return None
    autoscalers = caches[HORIZONTALPODAUTOSCALERS].list(key.namespace)
    return Observation(
        autoscaler,
        tuple(caches[PODS].list(key.namespace)),
        tuple(other for other in autoscalers if other.key != key),
        memory,
    )
