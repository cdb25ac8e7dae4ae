"""How long a pod that failed is left alone, so that nobody fights with a kubelet that refuses it.

The first that fails on a node is replaced at once, every further one after a wait that doubles. A pod
is made as soon as the one before it is deleted, so when that was is written on it; what is remembered is only
which pods have failed.
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
from steersman.controllers.daemonset.template import target_of

SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(minutes=15)
FORGIVEN = 2 * LONGEST
"""After so long without a failure it is as if there had been none."""

NOT_AT_ALL = timedelta()

_KEPT = 12
"""As many failures make the longest wait; older ones make no difference."""

Failures: TypeAlias = Mapping[str, tuple[tuple[datetime, str], ...]]
"""Node -> when each pod that failed there was made, and its uid; in the order in which they were seen to."""


def remaining(pod: Pod, failures: Failures, node: str, now: datetime) -> timedelta:
    """How long a pod that failed is to be left alone yet.

    differs: upstream counts from when it deleted the one before. That is when this one was made, unless
    there were others in between that did not fail; then it waits a little longer here.
    """
    born = pod.metadata.creationTimestamp
    if born is None or now - born > FORGIVEN:
        return NOT_AT_ALL
    before = list(takewhile(lambda one: one[1] != pod.metadata.uid, failures.get(node, ())))
    count, at = 0, born
    for other, _ in reversed(before):
        if at - other > FORGIVEN:
            break
        count, at = count + 1, other
    if not count:
        return NOT_AT_ALL
    return max(NOT_AT_ALL, born + min(SHORTEST * (1 << count - 1), LONGEST) - now)


class _Record(msgspec.Struct):
    """What is known of one generation of one DaemonSet."""

    identity: tuple[str, int]
    nodes: dict[str, tuple[tuple[datetime, str], ...]] = field(default_factory=dict)


class Memory:
    """The failures one process has seen. All of it stays true, whatever becomes of the rounds that saw it."""

    def __init__(self) -> None:
        self._known: dict[Key, _Record] = {}

    def note(self, daemonset: DaemonSet, owned: Iterable[Pod], nodes: Mapping[str, object]) -> Failures:
        """Take in what the pods tell; answers with what is known of them and of those before them.

        Another generation of the DaemonSet starts anew, and so does a node that has been away.
        """
        identity = (daemonset.metadata.uid, daemonset.status.observedGeneration)
        record = self._known.get(daemonset.key)
        if record is None or record.identity != identity:
            record = _Record(identity)
        for node in [node for node in record.nodes if node not in nodes]:
            del record.nodes[node]
        for pod in sorted((pod for pod in owned if pod.status.phase == "Failed"), key=precedence):
            node, born = target_of(pod), pod.metadata.creationTimestamp
            known = record.nodes.get(node, ())
            if node in nodes and born is not None and (born, pod.metadata.uid) not in known:
                record.nodes[node] = (*known, (born, pod.metadata.uid))[-_KEPT:]
        if record.nodes:
            self._known[daemonset.key] = record
        else:
            self._known.pop(daemonset.key, None)
        return dict(record.nodes)

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)

    def __len__(self) -> int:
        return len(self._known)
