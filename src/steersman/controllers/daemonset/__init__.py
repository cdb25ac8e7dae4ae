"""daemonset-controller (a decision): keeps a daemon pod on every node that should run one.

A round finds the revision of the pod template (`history`), creates missing pods and deletes surplus ones on each
node (`sync`), or, where there is nothing to do, takes the next step of a rolling update (`rolling`). Then it
writes the status.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial

import msgspec
from msgspec import field
from msgspec.structs import replace

from steersman.api.errors import ApiError
from steersman.api.kinds import PODS, Object, Pod
from steersman.api.kinds.daemonsets import DAEMONSETS, DaemonSet, DaemonSetStatus
from steersman.api.kinds.nodes import NODES, Node
from steersman.api.kinds.revisions import CONTROLLERREVISIONS, ControllerRevision
from steersman.api.label_selectors import Selector, compile_selector
from steersman.api.pods import is_available, is_ready, next_available
from steersman.api.scheme import Key
from steersman.controllers.daemonset.backoff import FailureMemory, Failures
from steersman.controllers.daemonset.history import History, cleanup_history, construct_history
from steersman.controllers.daemonset.nodes import (
    SHOULD_NOT_RUN,
    UNKNOWN,
    NodeFit,
    NodePods,
    group_by_node,
    requirements_of,
)
from steersman.controllers.daemonset.rolling import rolling_update
from steersman.controllers.daemonset.sync import manage, sync_nodes
from steersman.controllers.daemonset.template import generation_of, is_updated
from steersman.controllers.shared.controller_ref import claim
from steersman.controllers.shared.enqueue_owner import enqueue_owner, enqueue_revision_owner
from steersman.controllers.shared.indexes import CONTROLLED, controlled_by, orphans_in
from steersman.controllers.shared.selectors import selects
from steersman.intent.actions import Emit, UpdateStatus
from steersman.intent.controller import Caches, Change, Controller, Flag, Settings, Watch, memory_of
from steersman.intent.settings import DEFAULTS
from steersman.intent.undecodable import is_decodable
from steersman.intent.verdict import InvalidSpec, Rest, Verdict, Wake

COALESCE_WITHIN = 0.5
"""The longest a DaemonSet waits between two rounds, in seconds: many pods becoming ready are one status write."""

NAMED = 3
"""The most nodes that a verdict names."""


class Config(msgspec.Struct, frozen=True):
    """The controller's feature gates."""

    numeric_tolerations: bool = False
    """Whether tolerations compare numbers (``Gt``, ``Lt``): see `tolerates`."""


# -- observe ----------------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    """A DaemonSet, its pods, its history and the nodes at one instant."""

    daemonset: DaemonSet
    fits: Mapping[str, NodeFit] = field(default_factory=dict)
    """Node name -> whether it should run a pod."""
    owned: tuple[Pod, ...] = ()
    """The pods it controls."""
    orphans: tuple[Pod, ...] = ()
    """The pods of the namespace that have no controller."""
    revisions: tuple[ControllerRevision, ...] = ()
    """The revisions it controls."""
    orphan_revisions: tuple[ControllerRevision, ...] = ()
    """The revisions of the namespace that have no controller."""
    failures: Failures = field(default_factory=dict)


def observe(caches: Caches, key: Key, config: Config = Config()) -> Seen | None:
    memory = memory_of(caches, FailureMemory)
    daemonset = caches[DAEMONSETS].get(key)
    if daemonset is None:
        memory.forget(key)
        return None
    pods, revisions = caches[PODS], caches[CONTROLLERREVISIONS]
    requirements, numeric = requirements_of(daemonset.spec.template.spec), config.numeric_tolerations
    fits = {
        node.metadata.name: requirements.fit(node, numeric=numeric) if is_decodable(node) else UNKNOWN
        for node in caches[NODES].list()
    }
    owned = tuple(controlled_by(pods, daemonset))
    return Seen(
        daemonset,
        fits,
        owned,
        tuple(orphans_in(pods, key.namespace)),
        tuple(controlled_by(revisions, daemonset)),
        tuple(orphans_in(revisions, key.namespace)),
        memory.record(daemonset, owned, fits),
    )


# -- decide -----------------------------------------------------------------------------------


async def decide(seen: Seen, now: datetime) -> Verdict:
    daemonset = seen.daemonset
    try:
        selector = compile_selector(daemonset.spec.selector)
    except ValueError as error:
        return Rest(f"invalid selector: {error}")
    if selector.empty:
        message = "This daemon set is selecting all pods. A non-empty selector is required."
        await Emit(daemonset, "Warning", "SelectingAll", message)
        return Rest("empty selector: it would select all pods")
    if not selector.matches(daemonset.spec.template.metadata.labels):
        # differs: upstream relies on validation alone, and would create pods for ever that it does not find again.
        return Rest("invalid selector: does not match the labels of the pod template")
    if daemonset.metadata.deletionTimestamp is not None:
        # Its revisions may be deleted before its pods, so the template of a pod would be unknown.
        return Rest("being deleted")
    history = await _claim(seen, selector)
    return await _sync(seen, history, now) if isinstance(history, History) else history


async def _claim(seen: Seen, selector: Selector) -> History | Wake:
    def selected(obj: Object) -> bool:
        return selector.matches(obj.metadata.labels)

    revisions = await claim(seen.daemonset, seen.revisions, seen.orphan_revisions, selected)
    pods = await claim(seen.daemonset, seen.owned, seen.orphans, selected)
    return await construct_history(seen.daemonset, revisions, pods)


async def _sync(seen: Seen, history: History, now: datetime) -> Verdict:
    daemonset = seen.daemonset
    nodes = group_by_node(seen.fits, history.pods)
    unknown = [node.node for node in nodes if not node.fit.known]
    managed = manage(daemonset, nodes, history.hash, seen.failures, now)
    changes = managed.changes.without(unknown)
    failure: ApiError | InvalidSpec | None = None
    if not changes and daemonset.spec.updateStrategy.type == "RollingUpdate":
        try:
            changes = rolling_update(daemonset, nodes, history.hash, now).without(unknown)
        except InvalidSpec as invalid:
            failure = invalid
    synced = await sync_nodes(daemonset, changes, history.hash)
    failure = failure or synced.failure
    if failure is None and synced.done and synced.complete:
        # differs: upstream writes the status from before the pods changed, and again when it sees the change.
        # The cache shows it in a moment; the next round writes the status once and cleans up the history.
        deleted = len(changes.finished) + len(changes.delete)
        return Rest(f"created {len(changes.create)} and deleted {deleted} daemon pods")
    failure = failure or await cleanup_history(daemonset, history)
    status = new_status(daemonset, nodes, history.hash, now)
    try:
        await UpdateStatus(daemonset, status)
    except ApiError as error:
        failure = failure or error
    if failure is not None:
        raise failure
    pods = (pod for node in nodes for pod in node.pods)
    available = next_available(pods, daemonset.spec.minReadySeconds, now)
    return _verdict(status, [wait for wait in (managed.wait, available) if wait is not None], unknown)


def new_status(daemonset: DaemonSet, nodes: Iterable[NodePods], hash_: str, now: datetime) -> DaemonSetStatus:
    """The status. Of several pods on a node the first one counts."""
    generation, min_ready_seconds = generation_of(daemonset), daemonset.spec.minReadySeconds
    desired = current = misscheduled = ready = updated = available = 0
    for node in nodes:
        if not node.exists:
            continue
        if not node.fit.should_run:
            misscheduled += bool(node.pods)
            continue
        desired += 1
        if node.pods:
            pod = node.pods[0]
            current += 1
            if is_ready(pod):
                ready += 1
                available += is_available(pod, min_ready_seconds, now)
            updated += is_updated(pod, hash_, generation)
    return replace(
        daemonset.status,
        observedGeneration=daemonset.metadata.generation,
        desiredNumberScheduled=desired,
        currentNumberScheduled=current,
        numberMisscheduled=misscheduled,
        numberReady=ready,
        updatedNumberScheduled=updated,
        numberAvailable=available,
        numberUnavailable=desired - available,
    )


def _verdict(status: DaemonSetStatus, waits: list[timedelta], unknown: list[str]) -> Verdict:
    desired = status.desiredNumberScheduled
    because = f"{status.numberAvailable} of {desired} daemon pods available"
    if status.updatedNumberScheduled < desired:
        because += f", {status.updatedNumberScheduled} updated"
    if unknown:
        because += f"; nodes that cannot be decoded keep their pods: {', '.join(unknown[:NAMED])}"
        because += ", …" * (len(unknown) > NAMED)
    if not waits:
        return Rest(because)
    return Wake(min(waits), f"{because}; waiting for minReadySeconds or the backoff of a failed pod")


# -- declaration ------------------------------------------------------------------------------


def enqueue_for_node(caches: Caches, change: Change[Node], config: Config = Config()) -> Iterator[Key]:
    """Enqueues the DaemonSets for which the node's fit has changed. Nearly all changes of nodes are heartbeats.

    differs: upstream does not enqueue when a node is deleted, nor when a node that has the pod is tainted so that
    it would not get one: the counts in its status stay behind.
    """
    old, new = change.old, change.new
    if old is not None and new is not None and _same_scheduling(old, new):
        return
    numeric = config.numeric_tolerations
    for daemonset in caches[DAEMONSETS].list():
        requirements = requirements_of(daemonset.spec.template.spec)
        before = requirements.fit(old, numeric=numeric) if old is not None else SHOULD_NOT_RUN
        after = requirements.fit(new, numeric=numeric) if new is not None else SHOULD_NOT_RUN
        if before != after:
            yield daemonset.key


def _same_scheduling(old: Node, new: Node) -> bool:
    return old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints


def configure(settings: Settings) -> Controller[Seen]:
    config = Config(numeric_tolerations=settings.enabled("TaintTolerationComparisonOperators"))
    return Controller(
        name="daemonset-controller",
        aliases=("daemonset",),
        service_account="daemon-set-controller",
        event_component="daemonset-controller",
        watches=(
            Watch(DAEMONSETS),
            Watch(PODS, to=enqueue_owner(DAEMONSETS, selects), indexes=CONTROLLED),
            Watch(CONTROLLERREVISIONS, to=enqueue_revision_owner(DAEMONSETS, selects), indexes=CONTROLLED),
            Watch(NODES, to=partial(enqueue_for_node, config=config)),
        ),
        works_on=(DAEMONSETS,),
        workers=Flag("concurrent-daemonset-syncs", 2),
        observe=partial(observe, config=config),
        decide=decide,
        configure=configure,
        memory=FailureMemory,
        coalesce_within=COALESCE_WITHIN,
    )


controller = configure(DEFAULTS)
