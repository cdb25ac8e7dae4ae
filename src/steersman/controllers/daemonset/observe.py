"""What a round sees, and which changes are a reason to look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import field

from steersman.api.kinds import PODS, Pod
from steersman.api.kinds.daemonsets import DAEMONSETS, DaemonSet
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.revisions import CONTROLLERREVISIONS, ControllerRevision
from steersman.api.scheme import Key
from steersman.controllers.daemonset.backoff import Failures, Memory
from steersman.controllers.daemonset.fit import UNFIT, Fit, wish
from steersman.controllers.shared.enqueue_owner import enqueue_owner, enqueue_revision_owner
from steersman.controllers.shared.indexes import controlled_by, orphans_in
from steersman.controllers.shared.selectors import selects
from steersman.intent.controller import Caches, Change, memory_of


class Seen(msgspec.Struct, frozen=True):
    """A DaemonSet, its pods and its history at one instant, and what each node is to it."""

    daemonset: DaemonSet
    fits: Mapping[str, Fit] = field(default_factory=dict)
    """By the nodes' names."""
    owned: tuple[Pod, ...] = ()
    orphans: tuple[Pod, ...] = ()
    """The pods of the namespace that have no controller."""
    revisions: tuple[ControllerRevision, ...] = ()
    """Those it controls."""
    strays: tuple[ControllerRevision, ...] = ()
    """Those of the namespace that nothing controls."""
    failures: Failures = field(default_factory=dict)


of_pod = enqueue_owner(DAEMONSETS, selects)
of_revision = enqueue_revision_owner(DAEMONSETS, selects)


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    numeric_tolerations: bool = False
    """Whether tolerations compare numbers (``Gt``, ``Lt``): see `tolerates`."""


def observe(caches: Caches, key: Key, config: Config = Config()) -> Seen | None:
    memory = memory_of(caches, Memory)
    daemonset = caches[DAEMONSETS].get(key)
    if daemonset is None:
        memory.forget(key)
        return None
    pods, revisions = caches[PODS], caches[CONTROLLERREVISIONS]
    wanted, numeric = wish(daemonset.spec.template.spec), config.numeric_tolerations
    fits = {node.metadata.name: wanted.fit(node, numeric=numeric) for node in caches[NODES].list()}
    owned = tuple(controlled_by(pods, daemonset))
    return Seen(
        daemonset,
        fits,
        owned,
        tuple(orphans_in(pods, key.namespace)),
        tuple(controlled_by(revisions, daemonset)),
        tuple(orphans_in(revisions, key.namespace)),
        memory.note(daemonset, owned, fits),
    )


def of_node(caches: Caches, change: Change[Node], config: Config = Config()) -> Iterator[Key]:
    """The DaemonSets to which the node is something else now. Nearly all changes of nodes are heartbeats.

    differs: upstream does not look when a node goes, nor when a node that has the pod is tainted so that it
    would not get one: the numbers in the status are then those of before.
    """
    old, new = change.old, change.new
    if old is not None and new is not None and _alike(old, new):
        return
    numeric = config.numeric_tolerations
    for daemonset in caches[DAEMONSETS].list():
        wanted = wish(daemonset.spec.template.spec)
        before = wanted.fit(old, numeric=numeric) if old is not None else UNFIT
        after = wanted.fit(new, numeric=numeric) if new is not None else UNFIT
        if before != after:
            yield daemonset.key


def _alike(old: Node, new: Node) -> bool:
    return old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints
