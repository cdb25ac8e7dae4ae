"""Autoscalers on a real API server: steersman and kube-controller-manager scale alike, and say the same of it.

The metrics APIs are served from here, to both at once, through the API server. What pods use never changes, and
nobody makes pods, so every autoscaler comes to rest: at what its metrics, its bounds and its rules allow.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from steersman.api.errors import ApiError, ServiceUnavailable
from steersman.api.generated import load
from steersman.api.kinds import DEPLOYMENTS, PODS, Object
from steersman.api.kinds.autoscaling import HORIZONTALPODAUTOSCALERS, HorizontalPodAutoscaler
from steersman.api.scheme import Kind
from tests.harness.ca import CertificateAuthority

Document = dict[str, Any]
SERVICES = load("", "v1", "Service")
APISERVICES: Kind[Document] = Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", False, dict)
GAMES: Kind[Object] = Kind("example.com", "v1", "Game", "games", True, Object)
FORMER: Kind[Document] = Kind(
    "autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, dict
)
NAMESPACE = "scaled"
SERVER = f"metrics.{NAMESPACE}.svc"
LONG = "1800"
HOUR = timedelta(hours=1)


# -- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class App:
    """Some pods, and what each of them uses; None is not measured."""

    replicas: int
    cpu: tuple[str | None, ...] = ()
    request: str = "1"
    unready: int = 0
    """So many of the last are not ready, and have never been."""
    kind: str = "Deployment"
    selector: bool = True


APPS = {
    "up": App(2, ("800m", "600m")),
    "near": App(2, ("500m", "520m")),
    "held": App(4, ("100m",) * 4),
    "down": App(4, ("100m",) * 4),
    "memory": App(2, ("1", "1")),
    "container": App(2, ("400m", "500m")),
    "pods": App(2, ("1", "1")),
    "object": App(2, ("1", "1")),
    "shared": App(2, ("1", "1")),
    "outside": App(2, ("1", "1")),
    "portion": App(2, ("1", "1")),
    "most": App(2, ("800m", "600m")),
    "partly-up": App(2, ("800m", "600m")),
    "partly-down": App(4, ("100m",) * 4),
    "missing-up": App(3, ("900m", "900m", None)),
    "missing-down": App(4, ("100m", "100m", "100m", None)),
    "unready": App(3, ("900m", "900m", "900m"), unready=1),
    "steps": App(2, ("1", "1")),
    "shares": App(4, ("1",) * 4),
    "smaller": App(4, ("1",) * 4),
    "disabled": App(4, ("100m",) * 4),
    "capped": App(2, ("1", "1")),
    "floored": App(4, ("100m",) * 4),
    "above": App(9, ("500m",) * 2),
    "below": App(1, ("500m",)),
    "zero": App(0),
    "tolerant": App(2, ("800m", "600m")),
    "strict": App(2, ("520m", "520m")),
    "unmeasured": App(2, (None, None)),
    "unasked": App(1, ("500m",), request=""),
    "game": App(2, ("800m", "600m"), kind="Game"),
    "odd": App(2, ("800m", "600m"), kind="Game", selector=False),
    "rivals": App(2, ("500m", "520m")),
}
CUSTOM = {"requests": "300", "queue": "30", "errors": "5"}
"""What each pod, or object, says of itself."""
OUTSIDE = {"tickets": ("20", "10"), "silence": ("0",)}
"""What is said outside, in so many parts."""


def metrics_of(app: str) -> Iterator[Document]:
    """As metrics-server says it; every pod has a second container that uses nothing."""
    for number, level in enumerate(APPS[app].cpu):
        if level is not None:
            usage = {"cpu": level, "memory": "300Mi"}
            idle = {"name": "idle", "usage": {"cpu": "0", "memory": "0"}}
            yield {
                "metadata": {"name": f"{app}-{number}", "namespace": NAMESPACE, "labels": {"app": app}},
                "timestamp": stamp(),
                "window": "30s",
                "containers": [{"name": "main", "usage": usage}, idle],
            }


def value_of(metric: str, reference: Document, value: str) -> Document:
    return {
        "describedObject": {"namespace": NAMESPACE, **reference},
        "metric": {"name": metric},
        "timestamp": stamp(),
        "value": value,
    }


def answer(path: str, query: dict[str, list[str]]) -> Document | None:
    """What is served under a path; None where nothing is."""
    match path.strip("/").split("/"):
        case ["apis", group, version]:
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{group}/{version}",
                "resources": served(group),
            }
        case ["apis", "metrics.k8s.io", version, "namespaces", _, "pods"]:
            (selector,) = query["labelSelector"]
            items = list(metrics_of(selector.partition("=")[2]))
            return {
                "kind": "PodMetricsList",
                "apiVersion": f"metrics.k8s.io/{version}",
                "metadata": {},
                "items": items,
            }
        case ["apis", "custom.metrics.k8s.io" as group, version, "namespaces", _, "pods", "*", metric] if (
            metric in CUSTOM
        ):
            (selector,) = query["labelSelector"]
            app = selector.partition("=")[2]
            items = [
                value_of(
                    metric, {"kind": "Pod", "apiVersion": "v1", "name": f"{app}-{number}"}, CUSTOM[metric]
                )
                for number in range(len(APPS[app].cpu))
            ]
            return {
                "kind": "MetricValueList",
                "apiVersion": f"{group}/{version}",
                "metadata": {},
                "items": items,
            }
        case [
            "apis",
            "custom.metrics.k8s.io" as group,
            version,
            "namespaces",
            _,
            "services",
            name,
            metric,
        ] if metric in CUSTOM:
            one = value_of(metric, {"kind": "Service", "apiVersion": "v1", "name": name}, CUSTOM[metric])
            items = [one] * (2 if metric == "errors" else 1)
            return {
                "kind": "MetricValueList",
                "apiVersion": f"{group}/{version}",
                "metadata": {},
                "items": items,
            }
        case ["apis", "external.metrics.k8s.io" as group, version, "namespaces", _, metric] if (
            metric in OUTSIDE
        ):
            items = [
                {"metricName": metric, "metricLabels": {}, "timestamp": stamp(), "value": one}
                for one in OUTSIDE[metric]
            ]
            return {
                "kind": "ExternalMetricValueList",
                "apiVersion": f"{group}/{version}",
                "metadata": {},
                "items": items,
            }
    return None


def served(group: str) -> list[Document]:
    if group != "metrics.k8s.io":
        return []
    return [
        {
            "name": "pods",
            "singularName": "",
            "namespaced": True,
            "kind": "PodMetrics",
            "verbs": ["get", "list"],
        }
    ]


class Handler(BaseHTTPRequestHandler):
    """Serves what is measured."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        found = answer(unquote(address.path), parse_qs(address.query))
        missing = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "reason": "NotFound",
            "message": "nobody measures that",
            "code": 404,
        }
        body = json.dumps(missing if found is None else found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


@dataclass(frozen=True)
class Measured:
    """Where the metrics are served, and whom to trust."""

    port: int
    authority: bytes


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    authority = CertificateAuthority("metrics")
    pair = authority.serving((SERVER,), ("127.0.0.1",), name=SERVER)
    file: Path = tmp_path_factory.mktemp("metrics") / "serving.pem"
    file.write_bytes(pair.cert + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Measured(server.server_port, authority.pair.cert)
    server.shutdown()
    server.server_close()


def api_service(group: str, version: str, at: Measured) -> Document:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 20 if version == "v1beta2" else 10,
            "service": {"namespace": NAMESPACE, "name": "metrics", "port": at.port},
            "caBundle": base64.b64encode(at.authority).decode(),
        },
    }


# -- what is scaled -------------------------------------------------------------------------------


def stamp(ago: timedelta = timedelta()) -> str:
    return (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%SZ")


async def make(stage: Any, name: str, app: App) -> None:
    """What is to be scaled, and the pods it would have."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "example/app:1"}]},
    }
    spec: Document = {
        "replicas": app.replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
    }
    if app.kind == "Deployment":
        document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
        await stage.create(DEPLOYMENTS, document)
        status: Document = {"replicas": app.replicas, "observedGeneration": 1}
        await stage.patch(DEPLOYMENTS, name, {"status": status}, subresource="status")
    else:
        spec = {"players": app.replicas}
        document = {"apiVersion": "example.com/v1", "kind": "Game", "metadata": {"name": name}, "spec": spec}
        await stage.create(GAMES, document)
        status = {"players": app.replicas, **({"selector": f"app={name}"} if app.selector else {})}
        await stage.patch(GAMES, name, {"status": status}, subresource="status")
    for number in range(len(app.cpu)):
        await stage.create(PODS, pod(name, number, app))
        ready = number < len(app.cpu) - app.unready
        await stage.patch(PODS, f"{name}-{number}", {"status": running(ready)}, subresource="status")


def pod(name: str, number: int, app: App) -> Document:
    containers: list[Document] = [{"name": one, "image": "example/app:1"} for one in ("main", "idle")]
    containers[1]["resources"] = {"requests": {"cpu": "0", "memory": "0"}}
    if app.request:
        containers[0]["resources"] = {"requests": {"cpu": app.request, "memory": "400Mi"}}
    meta = {"name": f"{name}-{number}", "labels": {"app": name}}
    spec = {"nodeName": "no-such", "containers": containers}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def running(ready: bool) -> Document:
    since = stamp(HOUR) if ready else stamp()
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
    return {"phase": "Running", "startTime": since, "conditions": [condition]}


# -- what scales it -------------------------------------------------------------------------------


def resource(name: str = "cpu", **target: Any) -> Document:
    target = target or {"type": "Utilization", "averageUtilization": 50}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


CPU = resource()
MISSING = {
    "type": "Pods",
    "pods": {"metric": {"name": "nothing"}, "target": {"type": "AverageValue", "averageValue": "1"}},
}


def rules(*policies: tuple[str, int], select: str = "Max", window: int = 0, **more: Any) -> Document:
    listed = [{"type": type_, "value": value, "periodSeconds": int(LONG)} for type_, value in policies]
    made = {"selectPolicy": select, "stabilizationWindowSeconds": window, **more}
    return {**made, "policies": listed} if listed else made


def outside(metric: str, **target: Any) -> Document:
    named = {"name": metric, "selector": {"matchLabels": {"zone": "a"}}}
    return {"type": "External", "external": {"metric": named, "target": target}}


def of_service(metric: str, **target: Any) -> Document:
    described = {"apiVersion": "v1", "kind": "Service", "name": "front"}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": metric}, "target": target},
    }


def of_unicorn(metric: str, **target: Any) -> Document:
    made = of_service(metric, **target)
    made["object"]["describedObject"] = {"apiVersion": "example.com/v1", "kind": "Unicorn", "name": "u"}
    return made


def scaler(
    name: str,
    *metrics: Document,
    target: str = "",
    kind: str = "",
    least: int = 1,
    most: int = 10,
    **behavior: Any,
) -> Document:
    target = target or name
    kind = kind or (APPS[target].kind if target in APPS else "Deployment")
    version = "apps/v1" if kind in ("Deployment", "DaemonSet") else "example.com/v1"
    spec: Document = {
        "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": target},
        "minReplicas": least,
        "maxReplicas": most,
        "metrics": list(metrics or (CPU,)),
    }
    if behavior:
        spec["behavior"] = behavior
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": spec,
    }


ALL_AT_ONCE = rules(("Percent", 100))
PER_CONTAINER = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "main",
        "target": {"type": "Utilization", "averageUtilization": 30},
    },
}
PER_POD = {
    "type": "Pods",
    "pods": {"metric": {"name": "requests"}, "target": {"type": "AverageValue", "averageValue": "100"}},
}
RESTING: dict[str, tuple[Document, int]] = {
    "up": (scaler("up"), 3),
    "near": (scaler("near"), 2),
    "held": (scaler("held"), 4),
    "down": (scaler("down", scaleDown=ALL_AT_ONCE), 1),
    "memory": (scaler("memory", resource("memory", type="AverageValue", averageValue="100Mi")), 6),
    "container": (scaler("container", PER_CONTAINER), 3),
    "pods": (scaler("pods", PER_POD), 6),
    "object": (scaler("object", of_service("queue", type="Value", value="10")), 6),
    "shared": (scaler("shared", of_service("queue", type="AverageValue", averageValue="10")), 3),
    "outside": (scaler("outside", outside("tickets", type="Value", value="10")), 6),
    "portion": (scaler("portion", outside("tickets", type="AverageValue", averageValue="10")), 3),
    "most": (scaler("most", CPU, PER_POD), 6),
    "partly-up": (scaler("partly-up", CPU, MISSING), 3),
    "missing-up": (scaler("missing-up"), 4),
    "missing-down": (scaler("missing-down", scaleDown=ALL_AT_ONCE), 3),
    "unready": (scaler("unready"), 4),
    "steps": (scaler("steps", PER_POD, scaleUp=rules(("Pods", 1))), 3),
    "shares": (scaler("shares", PER_POD, scaleUp=rules(("Pods", 1), ("Percent", 50))), 6),
    "smaller": (scaler("smaller", PER_POD, scaleUp=rules(("Pods", 1), ("Percent", 50), select="Min")), 5),
    "disabled": (scaler("disabled", scaleDown=rules(select="Disabled")), 4),
    "capped": (scaler("capped", PER_POD, most=4), 4),
    "floored": (scaler("floored", least=2, scaleDown=ALL_AT_ONCE), 2),
    "above": (scaler("above", most=5), 5),
    "below": (scaler("below", least=3), 3),
    "zero": (scaler("zero"), 0),
    "tolerant": (scaler("tolerant", scaleUp=rules(("Pods", 9), tolerance="0.5")), 2),
    "strict": (scaler("strict", scaleUp=rules(("Pods", 9), tolerance="0.01")), 3),
    "game": (scaler("game"), 3),
}
"""Autoscalers, and how many replicas each comes to rest at."""
FAILING: dict[str, tuple[Document, str]] = {
    "partly-down": (scaler("partly-down", CPU, MISSING, scaleDown=ALL_AT_ONCE), "FailedGetPodsMetric"),
    "unmeasured": (scaler("unmeasured"), "FailedGetResourceMetric"),
    "unasked": (scaler("unasked"), "FailedGetResourceMetric"),
    "unserved": (
        scaler("unserved", outside("nothing", type="Value", value="1"), target="near-too"),
        "FailedGetExternalMetric",
    ),
    "unserved-each": (
        scaler(
            "unserved-each", outside("nothing", type="AverageValue", averageValue="1"), target="near-four"
        ),
        "FailedGetExternalMetric",
    ),
    "unseen-each": (
        scaler(
            "unseen-each", of_service("nothing", type="AverageValue", averageValue="1"), target="near-five"
        ),
        "FailedGetObjectMetric",
    ),
    "unseen": (
        scaler("unseen", of_service("nothing", type="Value", value="1"), target="near-three"),
        "FailedGetObjectMetric",
    ),
    "twice": (
        scaler("twice", of_service("errors", type="Value", value="1"), target="near-six"),
        "FailedGetObjectMetric",
    ),
    "unmapped": (
        scaler("unmapped", of_unicorn("queue", type="Value", value="1"), target="near-seven"),
        "FailedGetObjectMetric",
    ),
    "lost": (scaler("lost", target="no-such"), "FailedGetScale"),
    "fabled": (scaler("fabled", target="any", kind="Unicorn"), "FailedGetScale"),
    "unscaled": (scaler("unscaled", target="unscaled", kind="DaemonSet"), "FailedGetScale"),
    "odd": (scaler("odd"), "InvalidSelector"),
    "rivals": (scaler("rivals"), "AmbiguousSelector"),
}
"""Autoscalers that cannot, and the reason each gives."""
NEAR = ("near-too", "near-three", "near-four", "near-five", "near-six", "near-seven")
APPS |= dict.fromkeys(NEAR, APPS["near"])


def at_rest(replicas: int) -> Callable[[HorizontalPodAutoscaler], bool]:
    """Scaled, and looked at once more since."""

    def met(one: HorizontalPodAutoscaler) -> bool:
        status = one.status
        said = any(condition.type == "ScalingActive" for condition in status.conditions)
        return (status.currentReplicas, status.desiredReplicas) == (replicas, replicas) and said

    return met


def gives(reason: str) -> Callable[[HorizontalPodAutoscaler], bool]:
    return lambda one: any(condition.reason == reason for condition in one.status.conditions)


async def prepare(stage: Any, at: Measured, apps: tuple[str, ...]) -> None:
    """Before a manager looks: what there is to scale, and to measure it by."""
    await stage.establish("games")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "metrics"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": at.port}]},
    }
    await stage.create(SERVICES, service)
    groups = ("metrics", "custom.metrics", "external.metrics")
    offered = [(f"{group}.k8s.io", "v1beta1") for group in groups] + [("custom.metrics.k8s.io", "v1beta2")]
    await stage.create(APISERVICES, *(api_service(group, version, at) for group, version in offered))
    for group, version in offered:
        await available(stage, group, version)
    for name in apps:
        await make(stage, name, APPS[name])


async def available(stage: Any, group: str, version: str) -> None:
    """Wait until the API server passes on what is asked: that it could is said a little earlier."""
    async with asyncio.timeout(60):
        while True:
            try:
                await stage.api.document(f"/apis/{group}/{version}")
            except ApiError:
                await asyncio.sleep(0.1)
            else:
                return


async def tell(stage: Any) -> Document:
    # Whoever comes first knows of no rival yet.
    await stage.create(HORIZONTALPODAUTOSCALERS, scaler("rival", target="rivals"))
    await stage.until(HORIZONTALPODAUTOSCALERS, "rival", at_rest(2))
    every = {**RESTING, **FAILING}
    await stage.create(HORIZONTALPODAUTOSCALERS, *(document for document, _ in every.values()))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(stage.told("FailedComputeMetricsReplicas", "rival"))
        tasks.create_task(stage.until(HORIZONTALPODAUTOSCALERS, "rival", gives("AmbiguousSelector")))
        for name, (_, replicas) in RESTING.items():
            tasks.create_task(stage.until(HORIZONTALPODAUTOSCALERS, name, at_rest(replicas)))
        for name, (_, reason) in FAILING.items():
            tasks.create_task(stage.until(HORIZONTALPODAUTOSCALERS, name, gives(reason)))
            if reason != "FailedGetScale":
                tasks.create_task(stage.told("FailedComputeMetricsReplicas", name))
    page = await stage.api.list(FORMER, stage.namespace)
    return {"annotations": {one["metadata"]["name"]: annotations_of(one) for one in page.items}}


def annotations_of(former: Document) -> Document:
    """What the older version of an autoscaler says in annotations, but when."""
    found = former["metadata"].get("annotations", {})
    return {key: timeless(json.loads(value)) for key, value in found.items()}


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if not key.endswith("Time")}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


IDLE = ("asleep", "woken", "raised", "put-out")
"""Deployments that nobody asks anything of."""
APPS |= dict.fromkeys(IDLE[:3], App(2, ("1", "1")))
APPS["put-out"] = App(0)


async def tell_of_zero(stage: Any) -> None:
    """Down to nothing and up again, behind its gate. What somebody else has put out stays out."""
    silence = outside("silence", type="Value", value="10")
    idle = [scaler(name, silence, least=0, scaleDown=ALL_AT_ONCE) for name in IDLE]
    await stage.create(HORIZONTALPODAUTOSCALERS, *idle)
    for name in IDLE:
        await stage.until(HORIZONTALPODAUTOSCALERS, name, at_rest(0))
    tickets = {"spec": {"metrics": [outside("tickets", type="Value", value="10")]}}
    await stage.patch(HORIZONTALPODAUTOSCALERS, "woken", tickets)
    await stage.patch(HORIZONTALPODAUTOSCALERS, "put-out", tickets)
    await stage.patch(HORIZONTALPODAUTOSCALERS, "raised", {"spec": {"minReplicas": 2}})
    await stage.until(HORIZONTALPODAUTOSCALERS, "woken", at_rest(6))
    await stage.until(HORIZONTALPODAUTOSCALERS, "raised", at_rest(2))


UNREGISTERED: dict[str, tuple[Document, str]] = {
    "usage": (scaler("usage"), "FailedGetResourceMetric"),
    "pods": (scaler("pods", PER_POD), "FailedGetPodsMetric"),
    "object": (scaler("object", of_service("queue", type="Value", value="10")), "FailedGetObjectMetric"),
    "outside": (scaler("outside", outside("tickets", type="Value", value="10")), "FailedGetExternalMetric"),
}
"""Autoscalers where no metrics API is registered, or none answers, and the reason each gives."""
APPS["usage"] = APPS["near"]


async def tell_of_silence(stage: Any) -> None:
    """Nobody serves metrics."""
    every = UNREGISTERED.items()
    await stage.create(HORIZONTALPODAUTOSCALERS, *(document for _, (document, _) in every))
    async with asyncio.TaskGroup() as tasks:
        for name, (_, reason) in every:
            tasks.create_task(stage.until(HORIZONTALPODAUTOSCALERS, name, gives(reason)))
            tasks.create_task(stage.told("FailedComputeMetricsReplicas", name))


async def prepare_apps(stage: Any) -> None:
    await stage.establish("games")
    for name in UNREGISTERED:
        await make(stage, name, APPS[name])


async def prepare_unavailable(stage: Any, at: Measured) -> None:
    """The metrics APIs are registered, and their server is not there."""
    await prepare_apps(stage)
    groups = ("metrics", "custom.metrics", "external.metrics")
    services = [api_service(f"{group}.k8s.io", "v1beta1", at) for group in groups]
    await stage.create(APISERVICES, *services)
    for one in services:
        async with asyncio.timeout(60):
            while True:
                try:
                    await stage.api.document(f"/apis/{one['spec']['group']}/v1beta1")
                except ServiceUnavailable:
                    break
                except ApiError:
                    await asyncio.sleep(0.1)


def played(
    both: Callable[..., Any],
    before: Callable[[Any], Any],
    story: Any,
    gates: tuple[str, ...] = (),
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        story,
        NAMESPACE,
        before=before,
        controllers=("horizontal-pod-autoscaler-controller",),
        kinds=(HORIZONTALPODAUTOSCALERS, DEPLOYMENTS, GAMES),
        flags=("--horizontal-pod-autoscaler-sync-period=1s", *gates),
        apiserver=gates,
    )
    return {binary: json.loads(_RIVALS.sub(in_order, json.dumps(end))) for binary, end in found.items()}


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any], measured: Measured) -> dict[str, dict[str, Any]]:
    apps = tuple(name for name in APPS if name not in IDLE)
    return played(both, lambda stage: prepare(stage, measured, apps), tell)


@pytest.fixture(scope="module")
def zeros(both: Callable[..., Any], measured: Measured) -> dict[str, dict[str, Any]]:
    gates = ("--feature-gates=HPAScaleToZero=true",)
    return played(both, lambda stage: prepare(stage, measured, IDLE), tell_of_zero, gates)


@pytest.fixture(scope="module", params=["unregistered", "unavailable"])
def silences(
    both: Callable[..., Any], measured: Measured, request: pytest.FixtureRequest
) -> dict[str, dict[str, Any]]:
    if request.param == "unregistered":
        return played(both, prepare_apps, tell_of_silence)
    return played(both, lambda stage: prepare_unavailable(stage, measured), tell_of_silence)


_RIVALS = re.compile(r"multiple HPAs: \[([^]]*)\]")


def in_order(rivals: re.Match[str]) -> str:
    """The reference manager names rivals in any order."""
    return f"multiple HPAs: [{' '.join(sorted(rivals[1].split()))}]"


def test_every_autoscaler_comes_to_rest_where_its_metrics_and_rules_allow(
    ends: dict[str, dict[str, Any]],
) -> None:
    found = ends["steersman"]
    assert found["games"]["game"]["spec"]["players"] == 3
    for name, (_, replicas) in RESTING.items():
        if APPS[name].kind == "Deployment":
            assert found["deployments"][name]["spec"]["replicas"] == replicas, name


@pytest.mark.parametrize(
    "what", ["horizontalpodautoscalers", "deployments", "games", "annotations", "events"]
)
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


@pytest.mark.parametrize("what", ["horizontalpodautoscalers", "deployments", "events"])
def test_both_managers_scale_to_zero_alike_behind_its_gate(
    zeros: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    wanted = {name: one["spec"]["replicas"] for name, one in zeros["steersman"]["deployments"].items()}
    assert wanted == {"asleep": 0, "woken": 6, "raised": 2, "put-out": 0}
    alike(zeros, what)


@pytest.mark.parametrize("what", ["horizontalpodautoscalers", "events"])
def test_both_managers_say_the_same_where_no_metrics_are_served(
    silences: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(silences, what)


PREFIX = "horizontal_pod_autoscaler_controller_"
OUTCOMES = ("scale_up none", "scale_down none", "none none", "none internal", "scale_up internal")


def test_both_managers_show_what_is_wanted_and_count_what_came_of_looks(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None]
) -> None:
    for end in ends.values():
        # How often one looked is a matter of time.
        assert all(end["counters"][f"{PREFIX}reconciliations_total {outcome}"] for outcome in OUTCOMES)
        assert end["counters"][f"{PREFIX}metric_computation_total none internal External"]

    def gauges(end: dict[str, Any]) -> dict[str, float]:
        found: dict[str, float] = end["counters"]
        return {key: value for key, value in found.items() if key.startswith(PREFIX) and "_total" not in key}

    assert len(gauges(ends["steersman"])) > len(RESTING), "one for each, and how many there are"
    alike(ends, gauges)
