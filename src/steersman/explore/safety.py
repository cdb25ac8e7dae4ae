"""Safety invariants of a run: what no commit may violate, at whichever write a manager died before it.

| invariant | violated when |
|---|---|
| ``cidrs`` | the pod CIDRs of two nodes overlap |
| ``evictions`` | a pod is evicted for a taint of its node, while the node's kubelet renews its lease and node-lifecycle-controller runs |

Those of attached volumes are in `steersman.explore.attachment_safety`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from steersman.api.conditions import find_condition
from steersman.api.ip_addresses import Network, parse_cidr
from steersman.api.kinds import PODS
from steersman.api.kinds.nodes import NODES
from steersman.api.kinds.storage import VOLUMEATTACHMENTS
from steersman.client.api import EventType
from steersman.explore.attachment_safety import AttachmentMonitor
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Commit
from steersman.sim.kubelet.node import STATE

BY_TAINT = "DeletionByTaintManager"
"""The reason of the condition DisruptionTarget of a pod that is deleted for a taint."""


class SafetyMonitor:
    """Checks each commit; the first violation of each invariant is kept."""

    def __init__(self, kubelets: Iterable[str], object_at: Callable[[str, str], Any]) -> None:
        """``kubelets`` are the nodes whose kubelets renew leases; none where no controller looks at them. ``object_at``
        returns the object of a resource and key."""
        self.violations: dict[str, str] = {}
        self._kubelets = frozenset(kubelets)
        self._object_at = object_at
        self._attachments = AttachmentMonitor(self.violations, object_at)
        self._cidrs: dict[str, tuple[tuple[str, ...], tuple[Network, ...]]] = {}
        """The pod CIDRs of nodes, by name: as written, and parsed."""

    def seed(self, nodes: Iterable[Any]) -> None:
        """Start from these nodes."""
        for node in nodes:
            self._node(node)

    def check(self, commit: Commit) -> None:
        """Look at a commit."""
        if commit.resource == NODES.resource:
            if commit.event.type is EventType.DELETED:
                self._cidrs.pop(commit.obj.metadata.name, None)
            else:
                self._node(commit.obj)
        elif commit.resource == PODS.resource and self._kubelets:
            self._pod(commit.obj, commit.old)
        elif commit.resource == VOLUMEATTACHMENTS.resource:
            self._attachments.check(commit)

    def _node(self, node: Any) -> None:
        name, written = node.metadata.name, tuple(node.spec.podCIDRs)
        if written == self._cidrs.get(name, ((), ()))[0]:
            return
        networks = tuple(found for text in written if (found := parse_cidr(text)) is not None)
        for other, (_, theirs) in self._cidrs.items():
            if other != name and any(_overlap(one, two) for one in networks for two in theirs):
                self.violations.setdefault("cidrs", f"{name} gets {', '.join(written)}, which {other} has")
        self._cidrs[name] = written, networks

    def _pod(self, pod: Any, old: Any) -> None:
        if (
            pod.metadata.deletionTimestamp is None
            or old is None
            or old.metadata.deletionTimestamp is not None
        ):
            return
        name = pod.spec.nodeName
        target = find_condition(pod.status.conditions, "DisruptionTarget")
        if name not in self._kubelets or target is None or target.reason != BY_TAINT:
            return
        node = self._object_at(NODES.resource, object_key("", name))
        if node is not None and not node.metadata.annotations.get(STATE):
            message = f"{pod.metadata.name} is evicted from {name}, whose kubelet runs"
            self.violations.setdefault("evictions", message)


def _overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one[0] <= other[-1] and other[0] <= one[-1]  # type: ignore[operator]
