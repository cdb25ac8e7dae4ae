"""One story told to any manager: the manifests, what is done to them, and how it ends.

The steps wait for each other by watching, so that what a manager does next never depends on how
fast it is; what is left at the end is comparable between managers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from steersman.api.clock import RealClock
from steersman.api.kinds import (
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    SERVICEACCOUNTS,
    Deployment,
)
from steersman.api.scheme import Kind
from steersman.client.api import Api, EventType
from steersman.explore.normalize import Document, normalise
from steersman.sim.kubelet import Kubelets, KubeletSettings
from steersman.sim.kubelet.behaviour import NEVER_READY
from tests.harness.child_process import Child, tail
from tests.harness.convergence import deployment_settled, replicas_settled
from tests.harness.envtest import MANAGER, Binary, RealPlane
from tests.harness.follow import beside, follow, until

NAMESPACE = "same"
QUOTAS: Kind[Document] = Kind("", "v1", "ResourceQuota", "resourcequotas", True, dict)
PATIENCE = 60.0
QUIET = 1.5
KINDS: tuple[Kind[Any], ...] = (
    DEPLOYMENTS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    PODS,
    JOBS,
    SERVICEACCOUNTS,
    Kind("", "v1", "Event", "events", True, dict),
)
FLAGS = (
    "--controllers=replicaset-controller,deployment-controller,replicationcontroller-controller,"
    "ttl-after-finished-controller,serviceaccount-controller",
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--kube-api-qps=200",
    "--kube-api-burst=300",
)


def template(app: str, **annotations: str) -> Document:
    return {
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {
            "nodeName": "node-1",
            "terminationGracePeriodSeconds": 7,
            "containers": [
                {"name": "main", "image": "example/app:1", "env": [{"name": "APP", "value": app}]}
            ],
        },
    }


def workload(kind: Kind[Any], name: str, replicas: int, pod: Document | None = None, **spec: Any) -> Document:
    selector: Document = {"app": name} if kind is REPLICATIONCONTROLLERS else {"matchLabels": {"app": name}}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {
            "name": name,
            "labels": {"tier": "test"},
            "annotations": {"example/note": f"about {name}"},
        },
        "spec": {"replicas": replicas, "selector": selector, "template": pod or template(name), **spec},
    }


ONE_BY_ONE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
"""The one rolling strategy whose steps do not depend on when pods become ready."""

FIRST: tuple[tuple[Kind[Any], Document], ...] = (
    (DEPLOYMENTS, workload(DEPLOYMENTS, "rolling", 2, strategy=ONE_BY_ONE, revisionHistoryLimit=1)),
    (DEPLOYMENTS, workload(DEPLOYMENTS, "recreate", 2, strategy={"type": "Recreate"})),
    (DEPLOYMENTS, workload(DEPLOYMENTS, "paused", 2, paused=True)),
    (DEPLOYMENTS, workload(DEPLOYMENTS, "halted", 2)),
    (DEPLOYMENTS, workload(DEPLOYMENTS, "slow", 2, minReadySeconds=2)),
    (
        DEPLOYMENTS,
        workload(
            DEPLOYMENTS, "stuck", 1, template("stuck", **{NEVER_READY: "yes"}), progressDeadlineSeconds=2
        ),
    ),
    (REPLICASETS, workload(REPLICASETS, "plain", 3)),
    (REPLICASETS, workload(REPLICASETS, "tight", 2, template("tight"))),
    (REPLICATIONCONTROLLERS, workload(REPLICATIONCONTROLLERS, "classic", 2)),
)
FIRST[-2][1]["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi"}}

QUOTA: Document = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    # Only pods that ask for something fall under it, and only those of "tight" do.
    "spec": {"hard": {"pods": "1"}, "scopes": ["NotBestEffort"]},
}


class Story:
    """Tells the story to one manager and keeps what it knows of the objects."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._objects: dict[Kind[Any], dict[str, Any]] = {kind: {} for kind in KINDS[:5]}
        self._changed = asyncio.Event()

    async def look(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for kind in self._objects:
                tasks.create_task(self._look(kind))

    async def _look(self, kind: Kind[Any]) -> None:
        async for event, obj in follow(self._api, kind, NAMESPACE):
            if event is EventType.DELETED:
                self._objects[kind].pop(obj.metadata.name, None)
            else:
                self._objects[kind][obj.metadata.name] = obj
            self._changed.set()

    async def _until(self, what: str, ready: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not ready():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not in {PATIENCE:g} s: {what}") from None

    async def tell(self) -> None:
        for name in ("default", "kube-system"):
            await until(self._api, SERVICEACCOUNTS, NAMESPACE if name == "default" else name, "default", bool)
        await self._api.delete(SERVICEACCOUNTS, NAMESPACE, "default")
        await until(self._api, SERVICEACCOUNTS, NAMESPACE, "default", bool)
        await self._begin()
        await self._go_on()
        await self._end()

    async def _begin(self) -> None:
        """Everything is created; an orphan waits to be adopted."""
        orphan = {"apiVersion": "v1", "kind": "Pod", **template("plain")}
        orphan["metadata"]["name"] = "orphan"
        # Of pods as old and as ready as each other any may go; the one with a price stays.
        orphan["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "100"}
        await self._api.create(PODS, NAMESPACE, orphan)
        await self._until("the orphan runs", lambda: self._running("orphan"))
        await self._api.create(QUOTAS, NAMESPACE, QUOTA)
        usage = {"status": {"hard": {"pods": "1"}, "used": {"pods": "0"}}}
        await self._api.patch(QUOTAS, NAMESPACE, "small", usage, subresource="status")
        for kind, document in FIRST:
            await self._api.create(kind.untyped, NAMESPACE, document)
        done: Document = {"ttlSecondsAfterFinished": 0, "template": template("job"), "backoffLimit": 0}
        done["template"]["spec"]["restartPolicy"] = "Never"
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "brief"}, "spec": done}
        await self._api.create(JOBS, NAMESPACE, job)
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        conditions = [
            {"type": type_, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
            for type_ in ("SuccessCriteriaMet", "Complete")
        ]
        status = {"startTime": now, "completionTime": now, "conditions": conditions}
        await self._api.patch(JOBS, NAMESPACE, "brief", {"status": status}, subresource="status")
        await self._until("all is rolled out", lambda: self._settled("rolling", "recreate", "halted", "slow"))
        await self._until("the sets are full", self._sets_settled)
        await self._until("the one without quota says so", self._refused)
        await self._until("the paused one is seen", lambda: self._observed("paused"))
        await self._until("the stuck one is given up", self._given_up)
        await self._until("the finished job is deleted", self._job_goes)

    async def _go_on(self) -> None:
        """Templates and numbers change."""
        roll = {"spec": {"template": {"metadata": {"annotations": {"example/roll": "1"}}}}}
        await self._change(DEPLOYMENTS, "rolling", roll)
        await self._change(DEPLOYMENTS, "recreate", roll)
        await self._change(DEPLOYMENTS, "slow", {"spec": {"replicas": 1}})
        await self._change(DEPLOYMENTS, "halted", {"spec": {"paused": True}})
        await self._until("the halted one is seen", lambda: self._observed("halted"))
        await self._change(DEPLOYMENTS, "halted", {**roll, "spec": {**roll["spec"], "replicas": 3}})
        await self._change(REPLICASETS, "plain", {"spec": {"replicas": 1}})
        await self._change(REPLICATIONCONTROLLERS, "classic", {"spec": {"replicas": 3}})
        await self._until("all is rolled out", lambda: self._settled("rolling", "recreate", "slow"))
        await self._until("the sets are full", self._sets_settled)
        await self._until("the halted one is scaled", lambda: self._halted(3))

    async def _end(self) -> None:
        """A second roll drops the oldest revision; a pod leaves its controller; one is killed."""
        again = {"spec": {"template": {"metadata": {"annotations": {"example/roll": "2"}}}}}
        await self._change(DEPLOYMENTS, "rolling", again)
        await self._until("all is rolled out", lambda: self._settled("rolling"))
        await self._until("the oldest is dropped", lambda: len(self._owned("rolling")) == 2)
        first, second = sorted(self._pods("classic"))[:2]
        await self._change(PODS, first, {"metadata": {"labels": {"app": "free"}}})
        await self._until("it is replaced", lambda: len(self._pods("classic")) == 3 and self._sets_settled())
        await self._api.delete(PODS, NAMESPACE, second)
        await self._until("it is gone", lambda: second not in self._objects[PODS])
        await self._until("it is replaced", lambda: len(self._pods("classic")) == 3 and self._sets_settled())
        await self._until("it is let go", lambda: not self._objects[PODS][first].metadata.ownerReferences)

    async def _change(self, kind: Kind[Any], name: str, body: Document) -> None:
        made = await self._api.patch(kind, NAMESPACE, name, body)
        # What is known must not be older than what was written, or it looks settled already.
        version = int(made.metadata.resourceVersion)
        await self._until(
            "a change is seen", lambda: int(self._objects[kind][name].metadata.resourceVersion) >= version
        )

    # -- what is known --------------------------------------------------------------------------

    def _deployment(self, name: str) -> Deployment | None:
        found: Deployment | None = self._objects[DEPLOYMENTS].get(name)
        return found

    def _owned(self, name: str) -> list[Any]:
        return [
            found
            for found in self._objects[REPLICASETS].values()
            if any(owner.name == name for owner in found.metadata.ownerReferences)
        ]

    def _settled(self, *names: str) -> bool:
        found = [(self._deployment(name), self._owned(name)) for name in names]
        return all(one is not None and deployment_settled(one, sets) for one, sets in found)

    def _observed(self, name: str) -> bool:
        found = self._deployment(name)
        return found is not None and found.status.observedGeneration == found.metadata.generation

    def _halted(self, replicas: int) -> bool:
        found = self._deployment("halted")
        return (
            found is not None
            and self._observed("halted")
            and found.status.availableReplicas == replicas
            and all(map(replicas_settled, self._owned("halted")))
        )

    def _given_up(self) -> bool:
        found = self._deployment("stuck")
        conditions = found.status.conditions if found is not None else ()
        return any(condition.reason == "ProgressDeadlineExceeded" for condition in conditions)

    def _refused(self) -> bool:
        found = self._objects[REPLICASETS].get("tight")
        return (
            found is not None
            and found.status.availableReplicas == 1
            and any(condition.type == "ReplicaFailure" for condition in found.status.conditions)
        )

    def _sets_settled(self) -> bool:
        found = (
            self._objects[REPLICASETS].get("plain"),
            self._objects[REPLICATIONCONTROLLERS].get("classic"),
        )
        return all(one is not None and replicas_settled(one) for one in found)

    def _pods(self, owner: str) -> list[str]:
        return [
            name
            for name, pod in self._objects[PODS].items()
            if pod.metadata.deletionTimestamp is None
            and any(reference.name == owner for reference in pod.metadata.ownerReferences)
        ]

    def _running(self, name: str) -> bool:
        pod = self._objects[PODS].get(name)
        return pod is not None and pod.status.phase == "Running"

    def _job_goes(self) -> bool:
        job = self._objects[JOBS].get("brief")
        return job is None or job.metadata.deletionTimestamp is not None


async def watchdog(manager: Child) -> None:
    await manager.exited()
    raise AssertionError(f"the manager ended with code {manager.code}:\n{tail(manager)}")


async def quiet(plane: RealPlane) -> None:
    """Wait until the managers have asked for nothing for a while: events come after the fact."""
    loop = asyncio.get_running_loop()
    mark, deadline = plane.mark(), loop.time() + QUIET
    while loop.time() < deadline:
        await asyncio.sleep(0.1)
        entries, mark = plane.audit(mark), plane.mark()
        if any(e.user == MANAGER or e.user.startswith("system:serviceaccount:") for e in entries):
            deadline = loop.time() + QUIET


async def collect(api: Api) -> dict[str, list[Document]]:
    """What the story has left behind."""
    found: dict[str, list[Document]] = {}
    for kind in KINDS:
        page = await api.list(kind.untyped, NAMESPACE)
        found[kind.plural] = [item for item in page.items if isinstance(item, dict)]
    return found


async def outcome(plane: RealPlane, binary: Binary) -> dict[str, Any]:
    """Tell a manager the story on a plane of its own; what is left, in a comparable form."""
    async with plane.connect() as api:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await api.create(NAMESPACES, "", space)
        manager = plane.manager(*FLAGS, binary=binary)
        story = Story(api)
        # An image that does not come is said so once, however long a manager takes.
        settings = KubeletSettings(pull_error=0.0)
        nodes = Kubelets(api, RealClock(), ("node-1",), settings=settings, register=False)
        async with beside(watchdog(manager), nodes.run(), story.look()):
            await story.tell()
            await quiet(plane)
            found = await collect(api)
        manager.stop()
        return normalise(found)
