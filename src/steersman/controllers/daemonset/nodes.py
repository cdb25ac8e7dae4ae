"""The nodes with the pods a DaemonSet has on each of them, which is what all its decisions are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from steersman.api.kinds import Pod
from steersman.api.pods import is_terminal
from steersman.controllers.daemonset.fit import UNFIT, Fit
from steersman.controllers.daemonset.template import target_of

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Station(msgspec.Struct, frozen=True):
    """One node, and the pods that are on it or for it."""

    node: str
    fit: Fit
    pods: Sequence[Pod] = ()
    """The one that counts first: those that have their place, then the eldest."""
    staying: Sequence[Pod] = ()
    """Those of them that nobody has asked to go."""
    there: bool = True
    """Whether the node is."""


def survey(fits: Mapping[str, Fit], pods: Iterable[Pod]) -> list[Station]:
    """Every node, and after them those that are gone but have pods.

    A pod that has ended and is on its way out is nobody's business any more, and one that is for no
    node in particular is nowhere.
    """
    by_node: dict[str, list[Pod]] = {}
    staying: dict[str, list[Pod]] = {}
    for pod in pods:
        leaving = pod.metadata.deletionTimestamp is not None
        if leaving and is_terminal(pod):
            continue
        node = target_of(pod)
        if node:
            by_node.setdefault(node, []).append(pod)
            if not leaving:
                staying.setdefault(node, []).append(pod)
    for several in (*by_node.values(), *staying.values()):
        if len(several) > 1:
            several.sort(key=precedence)
    stations = [
        Station(node, fit, by_node.get(node, ()), staying.get(node, ())) for node, fit in fits.items()
    ]
    gone = (node for node in by_node if node not in fits)
    stations.extend(Station(node, UNFIT, by_node[node], staying.get(node, ()), False) for node in gone)
    return stations


def hidden(pods: Iterable[Pod]) -> int:
    """How many pods are known by their metadata alone, since they could not be read: each is on some node."""
    return sum(not pod.spec.containers and not target_of(pod) for pod in pods)


def precedence(pod: Pod) -> tuple[bool, datetime, str]:
    """Sorts first which of a node's pods is the one to keep."""
    meta = pod.metadata
    return (not pod.spec.nodeName, meta.creationTimestamp or _LONG_AGO, meta.name)
