"""Twelve changes on a real cluster, planned first and made then: the plan's end state, events and refusals are the real ones.

kube-apiserver, kube-controller-manager and kube-scheduler are real, the nodes are simulated kubelets. One snapshot is read by a user
with the rights of deploy/rbac-read-only.yaml; all plans are made from it before anything is changed. Each change has a namespace,
and nodes of its own where it needs some.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, NotFound
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.explore.normalize import normalise
from steersman.plan.assumptions import Assumptions, Load
from steersman.plan.change import Apply, Delete, Drain, Fail, Scale, SetImage, Step
from steersman.plan.model import Report
from steersman.plan.rehearsal import Rehearsal
from steersman.sim.kubelet import Kubelets, KubeletSettings, Shape
from steersman.sim.kubelet.node import node as node_object
from steersman.sim.nodes import drain
from steersman.snapshot.loading import StoreBuilder
from steersman.snapshot.model import LoadedSnapshot
from steersman.snapshot.read_cluster import read_cluster
from steersman.snapshot.redaction import Redactor
from tests.harness.audit import AuditEntry
from tests.harness.ca import CertificateAuthority
from tests.harness.child_process import Child, tail
from tests.harness.custom_resources import DEFINITION
from tests.harness.envtest import ASSETS, SCHEDULER, RealPlane
from tests.harness.follow import beside

Document = dict[str, Any]
ROLE = Path(__file__).parents[2] / "deploy" / "rbac-read-only.yaml"
READER = "plan-reader"
PATIENCE = 150.0
QUIET = 4.0
BAD = "app:bad"
POOLS = {
    "work-1": "work",
    "work-2": "work",
    "drain-1": "drain",
    "drain-2": "drain",
    "fail-1": "fail",
    "fail-2": "fail",
    "small-1": "small",
}
SMALL = Shape(capacity={"cpu": "2", "memory": "4Gi", "ephemeral-storage": "1Ti", "pods": "110"})
MANAGER = (
    "--use-service-account-credentials=true",
    "--leader-elect=false",
    "--node-monitor-period=1s",
    "--node-monitor-grace-period=12s",
    "--horizontal-pod-autoscaler-sync-period=3s",
    "--kube-api-qps=200",
    "--kube-api-burst=300",
)


def _kind(group: str, version: str, name: str, plural: str, namespaced: bool = True) -> Kind[Document]:
    return Kind(group, version, name, plural, namespaced, dict)


KINDS = (
    _kind("apps", "v1", "Deployment", "deployments"),
    _kind("apps", "v1", "ReplicaSet", "replicasets"),
    _kind("apps", "v1", "StatefulSet", "statefulsets"),
    _kind("apps", "v1", "ControllerRevision", "controllerrevisions"),
    _kind("", "v1", "Pod", "pods"),
    _kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    _kind("", "v1", "ResourceQuota", "resourcequotas"),
    _kind("", "v1", "ConfigMap", "configmaps"),
    _kind("", "v1", "ServiceAccount", "serviceaccounts"),
    _kind("batch", "v1", "Job", "jobs"),
    _kind("batch", "v1", "CronJob", "cronjobs"),
    _kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    _kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    _kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    _kind("example.com", "v1", "Widget", "widgets"),
)
EVENTS = _kind("", "v1", "Event", "events")
NODES = _kind("", "v1", "Node", "nodes", False)
NAMESPACES = _kind("", "v1", "Namespace", "namespaces", False)
VOLUMES = _kind("", "v1", "PersistentVolume", "persistentvolumes", False)
DEFINITIONS = _kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False
)

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(
        not os.access(Path(os.environ.get(ASSETS, ""), SCHEDULER), os.X_OK), reason=f"needs {SCHEDULER}"
    ),
]


# -- what there is ----------------------------------------------------------------------------


def template(pool: str, image: str = "app:1", **spec: Any) -> Document:
    resources = spec.pop("resources", {})
    labels = spec.pop("labels")
    return {
        "metadata": {"labels": labels},
        "spec": {
            "nodeSelector": {"pool": pool},
            "terminationGracePeriodSeconds": 1,
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 2,
                }
                for key in ("not-ready", "unreachable")
            ],
            "containers": [{"name": "main", "image": image, "resources": resources}],
            **spec,
        },
    }


def workload(
    kind: str,
    name: str,
    replicas: int,
    pool: str = "work",
    image: str = "app:1",
    resources: Any = None,
    **spec: Any,
) -> Document:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": template(pool, image, labels=labels, resources=resources or {}),
            **spec,
        },
    }


ONE_BY_ONE = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
SERVICE: Document = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}


def widget(name: str, **meta: Any) -> Document:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **meta},
        "spec": {"a": 1},
    }


def quota(pods: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"pods": str(pods)}},
    }


def budget(**spec: Any) -> Document:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def scaler() -> Document:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}],
        },
    }


def cron(minute: int, suspend: bool) -> Document:
    pod = template("work", labels={"app": "tick"}, restartPolicy="Never")
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick"},
        "spec": {
            "schedule": f"{minute} * * * *",
            "suspend": suspend,
            "jobTemplate": {"spec": {"template": pod}},
        },
    }


def stateful(image: str = "app:1") -> Document:
    made = workload("StatefulSet", "db", 2, image=image, serviceName="db", podManagementPolicy="OrderedReady")
    made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "data", "mountPath": "/data"}
    ]
    made["spec"]["volumeClaimTemplates"] = [
        {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
    ]
    return made


def volume(number: int) -> Document:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"volume-{number}"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/volumes/{number}"},
            "claimRef": {"namespace": "stateful", "name": f"data-db-{number}"},
        },
    }


@dataclass(frozen=True)
class Change:
    """A change: what there is before, what is done, and how far the plan looks."""

    name: str
    before: tuple[Document, ...]
    steps: tuple[Step, ...]
    seconds: float = 600.0
    assumptions: Assumptions = Assumptions(start=0.2, missing_images=(BAD,))
    without: tuple[str, ...] = ()
    """Plurals that are not compared, with the reason in the guide."""


def changes(minute: int) -> tuple[Change, ...]:
    web = workload("Deployment", "web", 3, strategy=ONE_BY_ONE)
    patient = {**web, "spec": {**web["spec"], "progressDeadlineSeconds": 6}}
    load = Load("scaled", "web", memory=150 * 1024 * 1024, shared=True)
    return (
        Change("roll", (web, SERVICE), (SetImage("deploy", "web", "app:2"),)),
        Change("bad-roll", (patient,), (SetImage("deploy", "web", BAD),)),
        Change("cascade", (web, SERVICE), (Delete("deploy", "web"),)),
        Change(
            "drained",
            (workload("Deployment", "web", 3, "drain"), budget(minAvailable=3)),
            (Drain("drain-1"),),
            seconds=60,
        ),
        Change("quota", (web, quota(4)), (Scale("deploy", "web", 6),)),
        Change(
            "capacity",
            (workload("Deployment", "web", 2, "small", resources={"requests": {"cpu": "500m"}}),),
            (Scale("deploy", "web", 6),),
        ),
        Change(
            "widgets",
            (DEFINITION, widget("one"), widget("held", finalizers=["example.com/hold"])),
            (Delete("crd", "widgets.example.com"),),
            seconds=60,
        ),
        Change("old", (web, SERVICE), (Delete("ns", "old"),)),
        Change(
            "scaled",
            (workload("Deployment", "web", 1, resources={"requests": {"memory": "100Mi"}}),),
            (Apply(scaler()),),
            assumptions=Assumptions(start=0.2, loads=(load,)),
        ),
        Change("cron", (cron(minute, True),), (Apply(cron(minute, False)),), seconds=240),
        Change("failing", (workload("Deployment", "web", 2, "fail"),), (Fail("fail-1"),)),
        Change("stateful", (volume(0), volume(1), stateful()), (Apply(stateful("app:2")),)),
    )


NAMES = tuple(each.name for each in changes(0))


# -- a metrics-server -------------------------------------------------------------------------


class Metrics:
    """metrics.k8s.io: the pods of the Deployment web in namespace scaled share a load."""

    total = 150 * 1024 * 1024

    def __init__(self, directory: Path) -> None:
        self.pods: list[str] = []
        self.authority = CertificateAuthority("metrics")
        pair = self.authority.serving(("metrics.scaled.svc",), ("127.0.0.1",), name="metrics.scaled.svc")
        file = directory / "serving.pem"
        file.write_bytes(pair.cert + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                body = json.dumps(outer.answer(self.path.partition("?")[0].strip("/").split("/"))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, path: list[str]) -> Document:
        if len(path) < 5:
            pods = {
                "name": "pods",
                "singularName": "",
                "namespaced": True,
                "kind": "PodMetrics",
                "verbs": ["get", "list"],
            }
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": "metrics.k8s.io/v1beta1",
                "resources": [pods],
            }
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pods_now = list(self.pods)
        items = [
            {
                "metadata": {"name": name, "namespace": "scaled", "labels": {"app": "web"}},
                "timestamp": now,
                "window": "30s",
                "containers": [
                    {"name": "main", "usage": {"cpu": "0", "memory": str(self.total // len(pods_now))}}
                ],
            }
            for name in pods_now
        ]
        return {
            "kind": "PodMetricsList",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {},
            "items": items,
        }

    def documents(self) -> tuple[Document, ...]:
        """The Service and the APIService."""
        import base64

        port = self.server.server_port
        return (
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "metrics", "namespace": "scaled"},
                "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": "v1beta1.metrics.k8s.io"},
                "spec": {
                    "group": "metrics.k8s.io",
                    "version": "v1beta1",
                    "groupPriorityMinimum": 100,
                    "versionPriority": 10,
                    "service": {"namespace": "scaled", "name": "metrics", "port": port},
                    "caBundle": base64.b64encode(self.authority.pair.cert).decode(),
                },
            },
        )

    async def follow(self, api: Api) -> None:
        """Measure the pods that run."""
        kind = _kind("", "v1", "Pod", "pods")
        while True:
            page = await api.list(kind, "scaled")
            self.pods = [
                each["metadata"]["name"]
                for each in page.items
                if isinstance(each, dict)
                and each["status"].get("phase") == "Running"
                and "deletionTimestamp" not in each["metadata"]
            ]
            await asyncio.sleep(0.5)


# -- the story --------------------------------------------------------------------------------


@dataclass
class Told:
    """How the changes ended, in the plan and really."""

    reports: dict[str, Report] = field(default_factory=dict)
    planned: dict[str, Any] = field(default_factory=dict)
    real: dict[str, Any] = field(default_factory=dict)
    requests: list[AuditEntry] = field(default_factory=list)
    afterwards: list[AuditEntry] = field(default_factory=list)
    """Requests since the first change."""
    unread: Mapping[str, str] = field(default_factory=dict)
    command: subprocess.CompletedProcess[str] | None = None
    """The same from the command line, by the same user."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with RealPlane.start() as plane:
        metrics = Metrics(tmp_path_factory.mktemp("metrics"))
        try:
            yield asyncio.run(_tell(plane, metrics))
        finally:
            metrics.server.shutdown()
            metrics.server.server_close()


async def _tell(plane: RealPlane, metrics: Metrics) -> Told:
    told = Told()
    # The CronJob fires once, some time after all plans are made.
    minute = (datetime.now(UTC) + timedelta(minutes=3)).minute
    wanted = changes(minute)
    async with plane.connect() as api, cluster(plane, api) as kubelets:
        await set_up(plane, api, wanted, metrics)
        async with beside(metrics.follow(api)):
            await rest(api, wanted)
            mark = plane.mark()
            loaded = await read_only(plane, told)
            told.command = await asyncio.to_thread(command, plane)
            told.requests = plane.audit(mark)
            for change in wanted:
                told.reports[change.name], told.planned[change.name] = await asyncio.to_thread(
                    planned, loaded, change
                )
            nodes = tuple(change for change in wanted if isinstance(change.steps[0], Drain | Fail))
            others = tuple(change for change in wanted if change not in nodes)
            mark = plane.mark()
            # What is done to nodes comes last: the scheduler tells of all nodes to every pod that it cannot place.
            for stage in (others, nodes):
                begin, earlier = datetime.now(UTC), await _event_counts(api)
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(make(plane, api, kubelets, change)) for change in stage]
                    await settle(api, stage, told, begin, earlier)
                    for task in tasks:
                        task.cancel()
            told.afterwards = plane.audit(mark)
    return told


@asynccontextmanager
async def cluster(plane: RealPlane, api: Api) -> AsyncIterator[Kubelets]:
    now = datetime.now(UTC).replace(microsecond=0)
    for number, (name, pool) in enumerate(POOLS.items(), 1):
        shape = SMALL if pool == "small" else Shape()
        made = node_object(name, number, Shape(shape.capacity, labels={"pool": pool}), now)
        created = await api.create(_typed_nodes(), "", made)
        from msgspec.structs import replace

        await api.update_status(_typed_nodes(), "", name, replace(created, status=made.status))
    manager = plane.manager(
        *MANAGER,
        f"--root-ca-file={plane.ca}",
        f"--service-account-private-key-file={plane.service_account_key}",
        binary="kube-controller-manager",
    )
    plane.scheduler("--leader-elect=false")
    kubelets = Kubelets(
        api, RealClock(), POOLS, register=False, settings=KubeletSettings(start_delay=0.2, lease_interval=3.0)
    )
    async with beside(kubelets.run(), _watch(manager)):
        yield kubelets


def _typed_nodes() -> Any:
    from steersman.api.generated import load

    return load("", "v1", "Node")


async def _watch(manager: Child) -> None:
    while True:
        assert manager.code is None, tail(manager)
        await asyncio.sleep(1)


async def set_up(plane: RealPlane, api: Api, wanted: tuple[Change, ...], metrics: Metrics) -> None:
    for change in wanted:
        await api.create(
            NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": change.name}}
        )
    for change in wanted:
        await asyncio.to_thread(
            plane.kubectl,
            "wait",
            "--for=create",
            "serviceaccount/default",
            f"-n{change.name}",
            "--timeout=50s",
        )
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(change.before[:1])})
        await asyncio.to_thread(plane.kubectl, "apply", f"-n{change.name}", "-f", "-", stdin=text)
        if change.name == "widgets":
            await asyncio.to_thread(
                plane.kubectl,
                "wait",
                "--for=condition=Established",
                "crd/widgets.example.com",
                "--timeout=50s",
            )
        if change.before[1:]:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(change.before[1:])})
            await asyncio.to_thread(plane.kubectl, "apply", f"-n{change.name}", "-f", "-", stdin=text)
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(metrics.documents())})
    await asyncio.to_thread(plane.kubectl, "apply", "-f", "-", stdin=text)
    await asyncio.to_thread(plane.kubectl, "apply", "-f", str(ROLE))
    role = yaml.safe_load(ROLE.read_text())["metadata"]["name"]
    await asyncio.to_thread(
        plane.kubectl, "create", "clusterrolebinding", "plan", f"--clusterrole={role}", f"--user={READER}"
    )
    # The role says where to add the groups of custom resources.
    custom = ("--verb=get,list,watch", "--resource=*.example.com")
    await asyncio.to_thread(plane.kubectl, "create", "clusterrole", "custom", *custom)
    await asyncio.to_thread(
        plane.kubectl, "create", "clusterrolebinding", "custom", "--clusterrole=custom", f"--user={READER}"
    )


async def rest(api: Api, wanted: tuple[Change, ...]) -> None:
    """Wait until nothing has changed for a while."""
    await _stable(lambda: _versions(api, wanted))


async def _stable(look: Callable[[], Any]) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(PATIENCE):
        last, since = None, loop.time()
        while loop.time() - since < QUIET:
            now = await look()
            if now != last:
                last, since = now, loop.time()
            await asyncio.sleep(0.5)


async def _versions(api: Api, wanted: tuple[Change, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind in KINDS:
        try:
            page = await api.list(kind)
        except NotFound:
            continue
        for each in page.items:
            assert isinstance(each, dict)
            if kind.plural != "endpointslices":
                found[f"{kind.plural} {each['metadata']['namespace']}/{each['metadata']['name']}"] = each[
                    "metadata"
                ]["resourceVersion"]
            if kind.plural == "pods":
                assert each["status"].get("phase"), "pods have a phase"
    assert len(found) > 20
    return found


async def read_only(plane: RealPlane, told: Told) -> LoadedSnapshot:
    """The cluster as a user reads it that may do nothing else."""
    builder = StoreBuilder()
    async with plane.connect(READER) as api:
        found = await read_cluster(api, builder, redactor=Redactor())
    told.unread = found.unread
    return LoadedSnapshot(
        builder.build(), datetime.now(UTC).replace(microsecond=0), found.server, found.unread, builder.unknown
    )


def command(plane: RealPlane) -> subprocess.CompletedProcess[str]:
    words = (
        "plan",
        f"--kubeconfig={plane.kubeconfig(READER)}",
        "-nroll",
        "--set-image=deploy/web=app:2",
        "-ojson",
    )
    return subprocess.run(
        [sys.executable, "-m", "steersman.manager.cli", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def planned(loaded: LoadedSnapshot, change: Change) -> tuple[Report, Any]:
    with Rehearsal(
        loaded,
        change.steps,
        seconds=change.seconds,
        namespace=change.name,
        assumptions=change.assumptions,
        force=True,
    ) as rehearsal:
        report = rehearsal.run()
        api = rehearsal.cluster.world.api()
        found = rehearsal.cluster.run(_found(api, change.name, datetime.min.replace(tzinfo=UTC)))
        return report, normalise(found)


async def make(plane: RealPlane, api: Api, kubelets: Kubelets, change: Change) -> None:
    """Make a change as a person would, with kubectl."""
    where = f"-n{change.name}"
    for step in change.steps:
        match step:
            case Apply(document):
                await asyncio.to_thread(plane.kubectl, "apply", where, "-f", "-", stdin=json.dumps(document))
            case Delete(kind, name):
                await asyncio.to_thread(plane.kubectl, "delete", where, kind, name, "--wait=false")
            case Scale(kind, name, replicas):
                await asyncio.to_thread(
                    plane.kubectl, "scale", where, f"{kind}/{name}", f"--replicas={replicas}"
                )
            case SetImage(kind, name, image):
                await asyncio.to_thread(
                    plane.kubectl, "set", "image", where, f"{kind}/{name}", f"main={image}"
                )
            case Fail(node):
                kubelets.fail(node)
            case Drain(node):
                await drain(api, node, force=True, output=lambda line: None)


async def settle(
    api: Api, wanted: tuple[Change, ...], told: Told, begin: datetime, earlier: Mapping[str, int]
) -> None:
    """Read how the changes end: when it is as planned, or when time is up."""
    left = {change.name: change for change in wanted}
    loop = asyncio.get_running_loop()
    end = loop.time() + PATIENCE + 120
    while left and loop.time() < end:
        for name in tuple(left):
            told.real[name] = normalise(await _found(api, name, begin, earlier))
            if told.real[name] == told.planned[name]:
                del left[name]
        await asyncio.sleep(1)


async def _event_counts(api: Api) -> dict[str, int]:
    """How often each event had happened before the change."""
    page = await api.list(EVENTS)
    return {each["metadata"]["uid"]: each.get("count") or 1 for each in page.items if isinstance(each, dict)}


async def _found(
    api: Api, namespace: str, begin: datetime, earlier: Mapping[str, int] | None = None
) -> dict[str, list[Document]]:
    found: dict[str, list[Document]] = {}
    for kind in KINDS:
        try:
            page = await api.list(kind, namespace)
        except (NotFound, ApiError):
            found[kind.plural] = []
            continue
        found[kind.plural] = [_comparable(each) for each in page.items if isinstance(each, dict)]
    spaces = await api.list(NAMESPACES)
    found["namespaces"] = [
        each for each in spaces.items if isinstance(each, dict) and each["metadata"]["name"] == namespace
    ]
    page = await api.list(EVENTS, namespace)
    found["events"] = [
        {**each, "count": (each.get("count") or 1) - (earlier or {}).get(each["metadata"]["uid"], 0)}
        for each in page.items
        if isinstance(each, dict) and _counts(each, begin)
    ]
    return found


def _comparable(document: Document) -> Document:
    """A document without what a plan cannot know, and what kubectl leaves in annotations."""
    annotations = document["metadata"].get("annotations")
    if annotations is not None:
        annotations = {
            name: text for name, text in annotations.items() if not name.startswith("kubectl.kubernetes.io/")
        }
        document = {**document, "metadata": {**document["metadata"], "annotations": annotations}}
        if not annotations:
            del document["metadata"]["annotations"]
    if "data" in document:
        document = {**document, "data": sorted(document["data"] or ())}
    if document.get("ports", ()) is None:
        document = {**document, "ports": []}  # null and an empty list are the same to every reader
    if "nodeName" in document.get("spec", {}):
        document = {**document, "spec": {**document["spec"], "nodeName": "a node"}}
    return document


def _counts(event: Document, begin: datetime) -> bool:
    """Whether an event is of the time after the change, and of a control loop."""
    component = event.get("source", {}).get("component") or event.get("reportingComponent", "")
    if component == "kubelet" or event.get("reason") in ("Scheduled", "RegisteredNode"):
        return False
    text = event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(text.replace("Z", "+00:00")) >= begin.replace(microsecond=0)


# -- what holds -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_planned_end_state_and_events_are_the_real_ones(told: Told, name: str) -> None:
    planned, real = told.planned[name], told.real[name]
    found = [f"{plural}{each}" for plural in planned for each in differences(real[plural], planned[plural])]
    assert not found, "\n".join(found)


def differences(real: Any, planned: Any, path: str = "") -> Iterator[str]:
    """Where two documents differ, one line each."""
    if isinstance(real, dict) and isinstance(planned, dict):
        for key in sorted({*real, *planned}):
            yield from differences(real.get(key), planned.get(key), f"{path}.{key}")
    elif isinstance(real, list) and isinstance(planned, list) and len(real) == len(planned):
        for number, (one, other) in enumerate(zip(real, planned, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif isinstance(real, list) and isinstance(planned, list):
        yield from (f"{path}: only real: {each}" for each in real if each not in planned)
        yield from (f"{path}: only planned: {each}" for each in planned if each not in real)
    elif real != planned:
        yield f"{path}: {real!r}, planned {planned!r}"


REFUSED = {"drained": "PodDisruptionBudget", "quota": "ResourceQuota"}
STUCK = {
    "drained": "Node",
    "cascade": "Service",
    "bad-roll": "Deployment",
    "quota": "Deployment",
    "capacity": "Deployment",
    "widgets": "CustomResourceDefinition",
}


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_says_what_is_refused_and_what_never_converges(told: Told, name: str) -> None:
    report = told.reports[name]
    assert [each.by for each in report.refusals if not each.resolved][:1] == (
        [REFUSED[name]] if name in REFUSED else []
    )
    kinds = {each.object.kind for each in report.not_converged}
    assert (STUCK[name] in kinds) if name in STUCK else not kinds, report.not_converged
    assert report.exit_code == (2 if name in REFUSED or name in STUCK else 0)


REQUESTS = {"ResourceQuota": ("pods", 403), "PodDisruptionBudget": ("pods/eviction", 429)}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "old"])
def test_the_server_refuses_what_the_plan_says_and_nothing_else(told: Told, name: str) -> None:
    """In a namespace that is being deleted, creations are refused as long as it takes: no plan tells of them."""
    real = {
        (entry.target, entry.code)
        for entry in told.afterwards
        if entry.namespace == name and entry.code in (403, 422, 429)
    }
    assert real == {REQUESTS[each.by] for each in told.reports[name].refusals}


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("widgets", "old", "cascade", "drained")]
)
def test_there_are_events_to_compare(told: Told, name: str) -> None:
    """Control loops record none of deletions and of refused evictions."""
    assert told.planned[name]["events"]


def test_a_plan_reads_and_never_writes(told: Told) -> None:
    mine = [entry for entry in told.requests if entry.user == READER]
    assert len(mine) > 30
    assert {entry.verb for entry in mine} <= {"get", "list"}
    assert {entry.code for entry in mine} <= {200}, [entry for entry in mine if entry.code != 200]
    assert not told.unread
    assert told.command is not None
    assert told.command.returncode == 0, told.command.stderr
    assert json.loads(told.command.stdout)["converged"]
