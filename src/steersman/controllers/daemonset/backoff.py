"""Backoff for failed daemon pods, so that the controller does not fight a kubelet that rejects them.

The first pod that fails on a node is replaced at once, each further one after a delay that doubles. A replacement is
created as soon as its predecessor is deleted, so its creationTimestamp has the time of that deletion; memory only
holds which pods have failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypeAlias

import msgspec
from msgspec import field

from steersman.api.kinds import Pod
from steersman.api.kinds.daemonsets import DaemonSet
from steersman.api.scheme import Key
from steersman.controllers.daemonset.nodes import precedence
from steersman.controllers.daemonset.template import target_node

INITIAL_DELAY = timedelta(seconds=1)
MAX_DELAY = timedelta(minutes=15)
RESET_AFTER = 2 * MAX_DELAY
"""The time without a failure after which the backoff starts anew."""

ZERO = timedelta()

_REMEMBERED = 12
"""This many failures reach the longest delay; older ones make no difference."""

Failures: TypeAlias = Mapping[str, tuple[tuple[datetime, str], ...]]
"""Node name -> creation time and uid of each pod that failed there, in the order in which the failures were seen."""


def remaining(pod: Pod, failures: Failures, node: str, now: datetime) -> timedelta:
    """The remaining delay before a failed pod is replaced.

    differs: upstream counts from the deletion of the previous pod. That is when this one was created, unless there
    were others in between that did not fail; then the delay is a little longer here.
    """
    created = pod.metadata.creationTimestamp
    if created is None or now - created > RESET_AFTER:
        return ZERO
    before = list(takewhile(lambda failure: failure[1] != pod.metadata.uid, failures.get(node, ())))
    count, at = 0, created
    for previous, _ in reversed(before):
        if at - previous > RESET_AFTER:
            break
        count, at = count + 1, previous
    if not count:
        return ZERO
    return max(ZERO, created + min(INITIAL_DELAY * (1 << count - 1), MAX_DELAY) - now)


class _Record(msgspec.Struct):
    """The failures of one generation of one DaemonSet."""

    identity: tuple[str, int]
    """The uid and the observed generation."""
    nodes: dict[str, tuple[tuple[datetime, str], ...]] = field(default_factory=dict)


class FailureMemory:
    """The failed daemon pods this process has seen. An entry stays true whether or not its round is carried out."""

    def __init__(self) -> None:
        self._records: dict[Key, _Record] = {}

    def record(self, daemonset: DaemonSet, owned: Iterable[Pod], nodes: Mapping[str, object]) -> Failures:
        """Adds the failed pods among ``owned``, and returns all known failures of the DaemonSet.

        Another generation of the DaemonSet starts anew, and so does a node that was gone.
        """
        identity = (daemonset.metadata.uid, daemonset.status.observedGeneration)
        record = self._records.get(daemonset.key)
        if record is None or record.identity != identity:
            record = _Record(identity)
        for node in [node for node in record.nodes if node not in nodes]:
            del record.nodes[node]
        for pod in sorted((pod for pod in owned if pod.status.phase == "Failed"), key=precedence):
            node, created = target_node(pod), pod.metadata.creationTimestamp
            known = record.nodes.get(node, ())
            if node in nodes and created is not None and (created, pod.metadata.uid) not in known:
                record.nodes[node] = (*known, (created, pod.metadata.uid))[-_REMEMBERED:]
        if record.nodes:
            self._records[daemonset.key] = record
        else:
            self._records.pop(daemonset.key, None)
        return dict(record.nodes)

    def forget(self, key: Key) -> None:
        """Drops a DaemonSet that is gone."""
        self._records.pop(key, None)

    def __len__(self) -> int:
        return len(self._records)
