"""The outcome of a rehearsal: what did not converge and why, and the capacity that is missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from steersman.api.generated import core_v1 as v1
from steersman.api.quantity import Format, Quantity
from steersman.explain.collect import ENDPOINT_SLICES, INGRESS_CLASSES, KINDS
from steersman.explain.explanation import explain
from steersman.explain.model import Document, Explanation, Finding, Snapshot, Weight
from steersman.explain.owners import holder
from steersman.plan.model import MissingCapacity, NotConverged, ObjectRef
from steersman.plan.recording import Write
from steersman.plan.timeline import kind_of
from steersman.server.codec.convert import to_document
from steersman.server.server import Server
from steersman.server.storage.store import object_key
from steersman.server.storage.watch import Selection
from steersman.sim.kubelet.node import is_ready
from steersman.sim.nodes import stays_in_drain
from steersman.sim.scheduler.requirements import requests
from steersman.testing import Cluster
from steersman.testing.narration import EVENTS

MAX_TARGETS = 2000
"""Objects that are explained."""
NEVER_TARGETS = (
    "EndpointSlice",
    "Endpoints",
    "ControllerRevision",
    "Lease",
    "Event",
    "ConfigMap",
    "Secret",
    "ServiceAccount",
)
"""Kinds whose objects have no state to converge to."""
FINALIZERS = "the program that owns a finalizer has to run and remove it"
BYTES = ("memory", "ephemeral-storage", "hugepages-")
"""Resources whose amounts are bytes."""
AS_ASKED = frozenset({"scaled-to-zero", "pdb", "pdb-no-pods", "pdb-overlap"})
"""Findings that answer a question and are no failure: a workload without pods, or a budget that refuses evictions, is as its spec asks."""
STARTING = frozenset({"starting", "readiness"})
"""Findings about a pod that end by themselves while its containers have not had the time that they are assumed to take."""
MAX_CAUSES = 5
_EXPLAINED = frozenset(kind.name for kind in KINDS)


class Outcome:
    """The objects of a cluster at the end of a rehearsal, for explanations."""

    def __init__(
        self, cluster: Cluster, namespaces: Iterable[str], kinds: Mapping[str, str], *, start: float = 0.0
    ) -> None:
        """``namespaces`` are those that the change has touched: objects of others are not looked at. ``kinds`` are the custom
        kinds by resource. ``start`` are the seconds from the binding of a pod until its containers are ready."""
        self._kinds = kinds
        self._start = start
        self._server: Server = cluster.world.server
        self._now = cluster.now
        self._namespaces = frozenset(namespaces)
        self._snapshot = Snapshot(cluster.now, self._documents())

    def _documents(self) -> Iterator[Document]:
        for kind in (*KINDS, ENDPOINT_SLICES, INGRESS_CLASSES):
            for obj in self._server.store.table(kind.resource).select(Selection()):
                namespace = obj.metadata.namespace
                if namespace and namespace not in self._namespaces:
                    continue
                yield {**to_document(kind.api_version, kind.name, obj), "kind": kind.name}

    def roots(self, writes: Iterable[Write]) -> tuple[ObjectRef, ...]:
        """The objects that were written, as the topmost owners that exist; each once."""
        found: dict[ObjectRef, None] = {}
        for write in writes:
            commit = write.commit
            if commit.resource in EVENTS:
                continue
            meta = commit.obj.metadata
            kind = kind_of(commit.resource, self._kinds)
            about = self._root(ObjectRef(kind, meta.namespace, meta.name), commit.obj)
            if about is not None and about.kind not in NEVER_TARGETS:
                found[about] = None
        return tuple(found)

    def _root(self, about: ObjectRef, obj: Any) -> ObjectRef | None:
        seen = {about}
        owners = [(each.kind, each.name) for each in obj.metadata.ownerReferences if each.controller]
        while owners:
            above = ObjectRef(owners[0][0], about.namespace, owners[0][1])
            document = self._snapshot.get(above.kind, above.namespace, above.name)
            if document is None or above in seen:
                break
            about = above
            seen.add(above)
            owners = [
                (each.get("kind", ""), each.get("name", ""))
                for each in document["metadata"].get("ownerReferences") or ()
                if each.get("controller")
            ]
        return about

    def not_converged(
        self, targets: Iterable[ObjectRef], given: Iterable[ObjectRef] = ()
    ) -> dict[ObjectRef, NotConverged]:
        """The targets that are not as they should be, without ``given``: nodes that the change itself fails."""
        skipped = frozenset(given)
        found: dict[ObjectRef, NotConverged] = {}
        for about in targets:
            if about in skipped:
                continue
            made = self._one(about)
            if made is not None:
                found[about] = made
        return found

    def _one(self, about: ObjectRef) -> NotConverged | None:
        document = self._snapshot.get(about.kind, about.namespace, about.name)
        if document is None:
            return self._terminating(about)
        told = explain(self._snapshot, document)
        own = [
            each
            for each in told.findings
            if each.depth == 0 and each.weight > Weight.NOTE and each.code not in AS_ASKED
        ]
        # A workload with all its replicas has converged, even if an old pod of it cannot end; a budget, once it is computed.
        converged = told.tree[0].well or about.kind == "PodDisruptionBudget"
        if told.well or (converged and not own):
            return None
        return self._told(about, told)

    def _told(self, about: ObjectRef, told: Explanation) -> NotConverged:
        shown = [each for each in told.findings if each.weight > Weight.NOTE] or list(told.findings)
        first = shown[0] if shown else None
        return NotConverged(
            about,
            told.summary,
            tuple(each.sentence for each in shown[:MAX_CAUSES]),
            first.controller if first is not None else "",
            first.next if first is not None else "",
            first.remedy if first is not None else "",
            first is not None and (first.weight is Weight.WAITS or self._starts(first)),
        )

    def _starts(self, finding: Finding) -> bool:
        """Whether a finding is about a pod whose containers take longer than the plan looks ahead."""
        if finding.code not in STARTING:
            return False
        _, namespace, name = finding.subject
        pod = self._server.store.table("pods").get(object_key(namespace, name))
        bound = [
            each.lastTransitionTime
            for each in (pod.status.conditions if pod is not None else ())
            if each.type == "PodScheduled" and each.lastTransitionTime is not None
        ]
        return any((self._now - each).total_seconds() < self._start for each in bound)

    def _terminating(self, about: ObjectRef) -> NotConverged | None:
        """An object of a kind that explanations do not cover, such as a custom resource, and that finalizers keep."""
        if about.kind in _EXPLAINED:
            return None
        for table in self._server.store.tables():
            obj = table.get(f"{about.namespace}/{about.name}" if about.namespace else about.name)
            if obj is None or kind_of(table.resource, self._kinds) != about.kind:
                continue
            meta = obj.metadata
            if meta.deletionTimestamp is None or not meta.finalizers:
                return None
            return NotConverged(
                about,
                f"{about} is being deleted and still there",
                (f"it {_finalizers(meta.finalizers)}",),
                remedy=FINALIZERS,
            )
        return None

    # -- drains -------------------------------------------------------------------------------

    def undrained(self, name: str, last: datetime, patience: float) -> NotConverged:
        """A node whose drain has not ended, with the pods that are left; those that finalizers keep come first.

        A disruption budget slows a drain down or stops it: it goes on if the ``last`` eviction is at most ``patience``
        seconds ago, in which another pod can take the place of an evicted one.
        """
        pods = [
            pod
            for pod in self._server.store.table("pods").select(Selection())
            if pod.spec.nodeName == name and not stays_in_drain(pod)
        ]
        pods.sort(key=lambda pod: (not _is_kept(pod), str(pod.key)))
        node = self._server.store.table("nodes").get(name)
        ends = node is not None and is_ready(node)
        kept = any(map(_is_kept, pods))
        all_stop = all(pod.metadata.deletionTimestamp is not None for pod in pods)
        goes_on = (self._now - last).total_seconds() <= patience
        causes = [_left(pod) for pod in pods[:MAX_CAUSES]]
        if len(pods) > MAX_CAUSES:
            causes.append(f"and {len(pods) - MAX_CAUSES} more pods")
        return NotConverged(
            ObjectRef("Node", "", name),
            "its drain does not end",
            tuple(causes),
            remedy=FINALIZERS if kept else "",
            waits=ends and not kept and (goes_on or all_stop),
        )

    # -- capacity -----------------------------------------------------------------------------

    def unscheduled(self) -> dict[ObjectRef, tuple[str, Mapping[str, Quantity]]]:
        """The pods that no node has room for, each with the scheduler's message and its requests."""
        found: dict[ObjectRef, tuple[str, Mapping[str, Quantity]]] = {}
        for pod in self._server.store.table("pods").select(Selection()):
            if (
                pod.spec.nodeName
                or pod.metadata.deletionTimestamp is not None
                or pod.status.phase not in ("", "Pending")
            ):
                continue
            for condition in pod.status.conditions:
                if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
                    about = ObjectRef("Pod", pod.metadata.namespace, pod.metadata.name)
                    found[about] = condition.message, _requests(pod)
        return found


def missing_capacity(
    after: Mapping[ObjectRef, tuple[str, Mapping[str, Quantity]]], before: Iterable[ObjectRef]
) -> tuple[MissingCapacity, ...]:
    """The capacity that unschedulable pods lack, by the scheduler's message; pods that were so ``before`` do not count."""
    known = frozenset(before)
    groups: dict[str, list[ObjectRef]] = {}
    for about, (message, _) in after.items():
        if about not in known:
            groups.setdefault(message, []).append(about)
    found = []
    for message, pods in groups.items():
        total: dict[str, Quantity] = {}
        for pod in pods:
            for name, amount in after[pod][1].items():
                total[name] = total[name] + amount if name in total else amount
        found.append(
            MissingCapacity(tuple(pods), {name: str(amount) for name, amount in total.items()}, message)
        )
    return tuple(found)


def _requests(pod: v1.Pod) -> Mapping[str, Quantity]:
    """The requests that the scheduler looks for room for."""
    return {name: _amount(name, amount) for name, amount in requests(pod.spec).items()}


def _amount(name: str, amount: int) -> Quantity:
    if name == "cpu":
        return Quantity.of_milli(amount)
    return Quantity.of(amount, Format.BINARY_SI if name.startswith(BYTES) else Format.DECIMAL_SI)


def _is_kept(pod: v1.Pod) -> bool:
    """Whether finalizers keep a pod that is being deleted."""
    return pod.metadata.deletionTimestamp is not None and bool(pod.metadata.finalizers)


def _left(pod: v1.Pod) -> str:
    """The reason that a drain still waits for a pod, in words."""
    about = f"Pod {pod.key}"
    if _is_kept(pod):
        return f"{about} {_finalizers(pod.metadata.finalizers)}"
    return (
        f"{about} is not evicted" if pod.metadata.deletionTimestamp is None else f"{about} is still stopping"
    )


def _finalizers(names: Iterable[str]) -> str:
    return f"waits for its finalizers: {', '.join(f'{each} ({holder(each)})' for each in names)}"
