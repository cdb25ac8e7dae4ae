"""The nodes behind a load balancer: which of them receive traffic, and which changes of a node matter."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.api.kinds.nodes import Node

EXCLUDE_LABEL = "node.kubernetes.io/exclude-from-external-load-balancers"
TO_BE_DELETED_TAINT = "ToBeDeletedByClusterAutoscaler"
MOST_NAMES = 20
"""How many node names a message lists."""
_FALSE = ("0", "f", "F", "FALSE", "false", "False")


def is_included(node: Node) -> bool:
    """Whether no label excludes the node. A value that is no boolean excludes it, too."""
    value = node.metadata.labels.get(EXCLUDE_LABEL)
    return value is None or value in _FALSE


def is_untainted(node: Node) -> bool:
    """Whether the cluster autoscaler is not about to delete the node."""
    return all(taint.key != TO_BE_DELETED_TAINT for taint in node.spec.taints)


def load_balancer_nodes(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """The nodes of load balancers. Their readiness does not matter: load balancers check the health themselves."""
    return tuple(
        node
        for node in nodes
        if node.metadata.deletionTimestamp is None and is_included(node) and is_untainted(node)
    )


def same_nodes(old: Iterable[Node], new: Iterable[Node]) -> bool:
    """Whether two sets of nodes have the same names and providerIDs."""
    return _identities(old) == _identities(new)


def _identities(nodes: Iterable[Node]) -> dict[str, str]:
    return {node.metadata.name: node.spec.providerID for node in nodes}


def node_change_matters(old: Node | None, new: Node | None) -> bool:
    """Whether a change of a node leads to another look at all load balancers.

    As upstream: the autoscaler's taint alone does not; the node leaves the load balancers with the next change that does.
    """
    if old is None or new is None:
        return True
    return is_included(old) != is_included(new) or old.spec.providerID != new.spec.providerID


def shown_names(nodes: Iterable[Node]) -> str:
    """Node names for a message, as Go prints a list: ``[node-1 node-2 <3 more>]``."""
    names = [node.metadata.name for node in nodes]
    more = [f"<{len(names) - MOST_NAMES} more>"] if len(names) > MOST_NAMES else []
    return f"[{' '.join([*sorted(names[:MOST_NAMES]), *more])}]"
