"""The rehearsal of a change: a cluster rebuilt in memory under virtual time, with and without the change.

::

    loaded snapshot -> settle -> fork ---------------> let time pass    (without the change: what happens anyway)
                          \\
                           make the change ----------> let time pass    (what the change causes)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from steersman.plan.apply import EVICTION_RETRY, ChangeMaker
from steersman.plan.assumptions import Assumptions
from steersman.plan.change import Apply, Drain, Fail, Step, in_order
from steersman.plan.load import assumed_loads, measure
from steersman.plan.model import ObjectRef, Report
from steersman.plan.outcome import MAX_TARGETS, Outcome, missing_capacity
from steersman.plan.recording import Recording, Write
from steersman.plan.timeline import cluster_events, entries, refusals, split
from steersman.server.calls import Answer, Call, answer_in_process
from steersman.sim import metrics
from steersman.sim.volume_names import ATTACHER
from steersman.sim.world import NotSettled
from steersman.snapshot.model import LoadedSnapshot
from steersman.testing import Cluster, credentials
from steersman.testing.options import plan as cluster_plan
from steersman.testing.template import loaded_world

SETTLE_LIMIT = 300.0
"""Seconds of cluster time that the control loops get before the change."""
SLICES = 12
"""Parts of the time to look ahead, for progress. At the end of each the heartbeats of all nodes are written."""

Progress = Callable[[str, float], None]
"""Told the phase and the share that is done."""


class Rehearsal:
    """Tries a change on a copy of a cluster."""

    def __init__(
        self,
        loaded: LoadedSnapshot,
        steps: Sequence[Step],
        *,
        seconds: float,
        namespace: str = "default",
        assumptions: Assumptions = Assumptions(),
        force: bool = False,
        flags: Mapping[str, Any] | None = None,
        seed: int = 0,
        max_explained: int = MAX_TARGETS,
        progress: Progress = lambda phase, share: None,
    ) -> None:
        """``flags`` are those of the cluster's manager, without the dashes; None where they are not known. Of the objects that
        the change touches at most ``max_explained`` are looked at in the end."""
        self._max_explained = max_explained
        self._flags = flags
        self._loaded = loaded
        self._steps = tuple(sorted(steps, key=in_order))
        self._seconds = seconds
        self._namespace = namespace
        self._assumptions = assumptions
        self._force = force
        self._progress = progress
        self._webhooks = AbsentWebhooks()
        self._cluster = self._build(seed)
        self._change = ChangeMaker(self._cluster, self._steps, namespace, force=force, unread=loaded.unread)

    @property
    def cluster(self) -> Cluster:
        """The cluster with the change; after `run` as it is in the end."""
        return self._cluster

    def __enter__(self) -> Rehearsal:
        return self

    def __exit__(self, *exception: object) -> None:
        self._cluster.close()

    def run(self) -> Report:
        """Rehearse the change. Raises `ChangeError` where it cannot be made at all."""
        self._change.check()
        self._change.restore_ownership()
        cluster = self._cluster
        recording = Recording(cluster)
        self._progress("settling", 0.0)
        try:
            cluster.settle(limit=SETTLE_LIMIT)
        except NotSettled:
            pass  # control loops that never rest do not keep the plan from its answer
        settling = recording.writes
        without = cluster.fork()
        try:
            beside = Recording(without)
            recording.restart(cluster.now)
            self._change.make(recording)
            self._advance(cluster, "with the change", 0.1, 0.6)
            self._advance(without, "without the change", 0.6, 0.9)
            self._progress("explaining", 0.9)
            return self._report(recording, settling, without, beside)
        finally:
            without.close()

    # -- building -----------------------------------------------------------------------------

    def _build(self, seed: int) -> Cluster:
        made = cluster_plan(
            {
                "snapshot": self._loaded,
                "settings": self._assumptions.settings,
                "flags": {**(self._flags or {}), "allocate-node-cidrs": False},
            }
        )
        # Clouds and drivers of volumes are outside the cluster: load balancers stay as they are, and volumes are attached at once.
        loops = tuple(each for each in made.controllers if each.cloud is None and each.name != ATTACHER)
        made = replace(made, controllers=loops, files=self._file, any_provisioner=True)
        world = loaded_world(made, self._loaded, seed)
        server = world.server
        server.outgoing = self._webhooks
        loads = assumed_loads(server.store, self._assumptions)

        def install_metrics(server: Any) -> None:
            metrics.install(server, measure(server.store, loads))

        server.extend(install_metrics)
        return Cluster.of(made, world)

    def _file(self, path: str) -> bytes:
        """A file of the manager. Its CA is the cluster's own, so that the ConfigMaps which publish the CA stay as they are."""
        if path == "ca.crt":
            published = self._loaded.store.table("configmaps").get("kube-system/kube-root-ca.crt")
            text: str | None = published.data.get("ca.crt") if published is not None else None
            if text:
                return text.encode()
        return bytes(credentials.read(path))

    def _advance(self, cluster: Cluster, phase: str, begin: float, end: float) -> None:
        for done in range(SLICES):
            self._progress(phase, begin + (end - begin) * done / SLICES)
            cluster.advance(seconds=self._seconds / SLICES)

    # -- reporting ----------------------------------------------------------------------------

    def _report(
        self, recording: Recording, settling: list[Write], without: Cluster, beside: Recording
    ) -> Report:
        caused, anyway = split(recording.writes, beside.writes)
        timeline = entries(caused, recording)
        before = replace_begin(settling, recording)
        happens = entries((*before, *anyway), recording, len(timeline) + 1)
        touched = {write.commit.obj.metadata.namespace for write in caused} | {self._namespace}
        start = self._assumptions.start + self._assumptions.ready
        with_change, as_is = (
            Outcome(each, touched, recording.kinds, start=start) for each in (self._cluster, without)
        )
        touched_objects = with_change.roots(caused)
        targets = touched_objects[: self._max_explained]
        failed = [ObjectRef("Node", "", step.node) for step in self._steps if isinstance(step, Drain | Fail)]
        stuck = with_change.not_converged(targets, failed)
        stuck_before = as_is.not_converged(targets)
        new = [made for about, made in stuck.items() if about not in stuck_before]
        new += [
            made
            for about, made in stuck.items()
            if about in stuck_before and made.causes != stuck_before[about].causes
        ]
        patience = start + self._assumptions.shutdown + EVICTION_RETRY
        new += [with_change.undrained(*drain, patience) for drain in sorted(recording.draining.items())]
        return Report(
            tuple(map(str, self._steps)),
            recording.begin,
            self._seconds,
            timeline,
            happens,
            cluster_events(caused, recording.begin),
            refusals(recording, recording.accepted, beside),
            tuple(new),
            tuple(
                made
                for about, made in stuck_before.items()
                if about in stuck and made.causes == stuck[about].causes
            ),
            missing_capacity(with_change.unscheduled(), as_is.unscheduled()),
            self._assumptions.described(),
            tuple(self._unknown(caused, len(touched_objects) - len(targets))),
        )

    def _is_hashed(self, document: Mapping[str, Any]) -> bool:
        """Whether a document is that of a Secret or ConfigMap that the cluster has."""
        table = {"Secret": "secrets", "ConfigMap": "configmaps"}.get(document["kind"])
        meta = document["metadata"]
        key = f"{meta.get('namespace') or self._namespace}/{meta.get('name', '')}"
        return table is not None and self._loaded.store.table(table).get(key) is not None

    def _unknown(self, caused: Iterable[Write], unexplained: int) -> Iterable[str]:
        loaded, store = self._loaded, self._loaded.store
        if unexplained:
            yield (
                f"whether {unexplained:,} more objects that the change touches converge: "
                f"the first {self._max_explained:,} were looked at"
            )
        yield "what containers do on real kubelets: here they start, become ready and end as assumed"
        if self._webhooks.asked:
            named = ", ".join(sorted(self._webhooks.asked))
            yield f"the answers of admission webhooks, which were not called and are taken for yes: {named}"
        if len(store.table("horizontalpodautoscalers.autoscaling")) and self._assumptions.loads is None:
            yield "the load: autoscalers see the usage that they saw last, divided among the pods (--assume metrics=FILE)"
        if len(store.table("storageclasses.storage.k8s.io")):
            yield "provisioners and drivers of volumes: here new claims get volumes, and volumes are attached at once"
        others = {
            pod.spec.schedulerName
            for pod in (each.commit.obj for each in caused if each.commit.resource == "pods")
            if pod.spec.schedulerName not in ("", "default-scheduler")
        }
        if others:
            yield f"other schedulers, whose pods stay unscheduled here: {', '.join(sorted(others))}"
        hashed = [
            f"{step.document['kind']} {step.document['metadata'].get('name', '')}"
            for step in self._steps
            if isinstance(step, Apply) and self._is_hashed(step.document)
        ]
        if loaded.redacted and hashed:
            yield f"whether their data change, since the cluster's are read as hashes: {', '.join(hashed)}"
        if self._flags is None:
            yield "the flags of the cluster's manager: here they are kube-controller-manager's defaults"
        yield "other profiles and plugins of the scheduler, and controllers other than kube-controller-manager's"
        for resource, why in sorted({**loaded.unread, **loaded.unknown}.items()):
            yield f"{resource}, which could not be read: {why}"


def replace_begin(writes: Iterable[Write], recording: Recording) -> list[Write]:
    """Writes from before the change, dated to the moment of the change."""
    return [write._replace(at=recording.begin) for write in writes]


class AbsentWebhooks:
    """A client for webhooks that calls none: every admission review is allowed, every object converted by its version."""

    def __init__(self) -> None:
        self.asked: dict[str, None] = {}
        """The webhooks that would have been called."""

    def time(self) -> float:
        return 0.0

    async def ask(self, calls: Sequence[Call]) -> Sequence[Answer]:
        for call in calls:
            self.asked[call.endpoint.url.partition("?")[0]] = None
        return [
            answer_in_process(call._replace(endpoint=call.endpoint._replace(serves=_allowed)))
            for call in calls
        ]


def _allowed(review: Mapping[str, Any]) -> Mapping[str, Any]:
    request = review.get("request") or {}
    if review.get("kind") == "ConversionReview":
        version = request.get("desiredAPIVersion")
        converted = [{**each, "apiVersion": version} for each in request.get("objects") or ()]
        return {"uid": request.get("uid"), "result": {"status": "Success"}, "convertedObjects": converted}
    return {"uid": request.get("uid"), "allowed": True}
