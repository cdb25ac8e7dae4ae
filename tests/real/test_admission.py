"""Admission decides as kube-apiserver's does: the same requests, the same answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from steersman.api.errors import ApiError, NotFound
from steersman.api.generated import load
from steersman.client.api import Api
from steersman.server import admission
from steersman.sim.world import World
from tests.harness.envtest import RealPlane

CIDR = "10.0.0.0/24"
"""As `RealPlane` has it."""

TRIES = 300
"""How often a real server is asked: its plugins look at caches that lag behind what was written."""


def metadata(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def pod(
    name: str = "p", requests: Any = None, limits: Any = None, meta: Any = None, **spec: Any
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "i:1"}
    if requests or limits:
        container["resources"] = {"requests": requests or {}, "limits": limits or {}}
    body = {"containers": [container], "automountServiceAccountToken": False, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(name, **(meta or {})), "spec": body}


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    body = {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": body}


def quota(hard: dict[str, str], used: dict[str, str], name: str = "q", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard, **spec},
        "status": {"hard": hard, "used": used},
    }


def limits(**item: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l"},
        "spec": {"limits": [item]},
    }


def claim(size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": body}


def cluster(api_version: str, kind: str, name: str, annotations: Any = None, **body: Any) -> dict[str, Any]:
    meta = metadata(name, annotations=annotations or {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}


def secure(level: str, **labels: str) -> dict[str, str]:
    return {"pod-security.kubernetes.io/enforce": level, **labels}


@dataclass(frozen=True)
class Case:
    name: str
    request: dict[str, Any]
    given: tuple[dict[str, Any], ...] = ()
    labels: Any = None
    """Of the namespace."""
    change: Any = None
    """A merge patch of what was created: its answer counts."""
    account: bool = True


GOOD: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "c",
            "image": "i:1",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
BAD: dict[str, Any] = {
    "hostNetwork": True,
    "hostPID": True,
    "securityContext": {"runAsUser": 0, "sysctls": [{"name": "kernel.sem", "value": "1"}]},
    "volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "nfs": {"server": "s", "path": "/"}}],
    "containers": [
        {
            "name": "c",
            "image": "i:1",
            "ports": [{"containerPort": 80, "hostPort": 80}],
            "securityContext": {
                "privileged": True,
                "capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN"]},
                "seccompProfile": {"type": "Unconfined"},
                "seLinuxOptions": {"type": "t", "user": "u"},
                "appArmorProfile": {"type": "Unconfined"},
            },
        },
        {"name": "d", "image": "i:1", "livenessProbe": {"tcpSocket": {"port": 1, "host": "h"}}},
    ],
}
HUNDRED = {"cpu": "100m", "memory": "100Mi"}
RUNTIME = cluster(
    "node.k8s.io/v1",
    "RuntimeClass",
    "kata",
    handler="k",
    overhead={"podFixed": {"cpu": "10m"}},
    scheduling={"nodeSelector": {"k": "v"}, "tolerations": [{"key": "t", "operator": "Exists"}]},
)
HIGH = cluster("scheduling.k8s.io/v1", "PriorityClass", "high", value=7, preemptionPolicy="Never")
NORM = cluster("scheduling.k8s.io/v1", "PriorityClass", "norm", value=5, globalDefault=True)
FAST = cluster(
    "storage.k8s.io/v1",
    "StorageClass",
    "fast",
    {"storageclass.kubernetes.io/is-default-class": "true"},
    provisioner="p",
)
NGINX = cluster(
    "networking.k8s.io/v1",
    "IngressClass",
    "nginx",
    {"ingressclass.kubernetes.io/is-default-class": "true"},
    spec={"controller": "a/b"},
)
INGRESS = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "Ingress",
    "metadata": {"name": "i"},
    "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
}

CASES = (
    # accounts
    Case("no account", pod(), account=False),
    Case("an account that is not there", pod(serviceAccountName="x")),
    Case("a generated name", {**pod(), "metadata": {"generateName": "web-"}}, account=False),
    Case("a token", pod(automountServiceAccountToken=True)),
    Case(
        "a mirror pod",
        pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}}, serviceAccountName="a"),
    ),
    # priority, tolerations, runtime classes
    Case("nothing special", pod()),
    Case("tolerates all", pod(tolerations=[{"operator": "Exists"}])),
    Case("tolerates one", pod(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])),
    Case("no such class", pod(priorityClassName="nope")),
    Case("a class of the system", pod(priorityClassName="system-node-critical")),
    Case("a number", pod(priority=3)),
    Case("a class", pod(priorityClassName="high"), (HIGH,)),
    Case(
        "a class and another policy",
        pod(priorityClassName="high", preemptionPolicy="PreemptLowerPriority"),
        (HIGH,),
    ),
    Case("the default class", pod(), (NORM,)),
    Case(
        "a second default class",
        cluster("scheduling.k8s.io/v1", "PriorityClass", "other", value=6, globalDefault=True),
        (NORM,),
    ),
    Case("no such runtime class", pod(runtimeClassName="nope")),
    Case("a runtime class", pod(runtimeClassName="kata"), (RUNTIME,)),
    Case(
        "a runtime class and another node", pod(runtimeClassName="kata", nodeSelector={"k": "w"}), (RUNTIME,)
    ),
    Case("overhead of its own", pod(overhead={"cpu": "1"})),
    # limits
    Case(
        "default limits", pod(), (limits(type="Container", default=HUNDRED, defaultRequest={"cpu": "50m"}),)
    ),
    Case("too little", pod(requests={"cpu": "10m"}), (limits(type="Container", min={"cpu": "20m"}),)),
    Case("no limit", pod(requests={"cpu": "1m"}), (limits(type="Pod", max={"cpu": "20m"}),)),
    Case("too much", pod(limits={"cpu": "2"}), (limits(type="Pod", max={"cpu": "1"}),)),
    Case(
        "out of ratio",
        pod(requests={"cpu": "100m"}, limits={"cpu": "1"}),
        (limits(type="Pod", maxLimitRequestRatio={"cpu": "3"}),),
    ),
    Case("too large a claim", claim("2Gi"), (limits(type="PersistentVolumeClaim", max={"storage": "1Gi"}),)),
    Case("too small a claim", claim("1Mi"), (limits(type="PersistentVolumeClaim", min={"storage": "1Gi"}),)),
    # quotas
    Case("too many pods", pod(), (quota({"pods": "2"}, {"pods": "2"}),)),
    Case(
        "too many of a template",
        {**pod("x"), "metadata": {"name": "x"}},
        (quota({"count/pods": "1"}, {"count/pods": "1"}),),
    ),
    Case(
        "too much of two things",
        pod(requests={"cpu": "1500m", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"}),
        (
            quota(
                {"requests.cpu": "2", "memory": "1Gi", "limits.cpu": "9"},
                {"requests.cpu": "700m", "memory": "512Mi", "limits.cpu": "1"},
            ),
        ),
    ),
    Case(
        "nothing said",
        pod(),
        (quota({"limits.cpu": "1", "memory": "1"}, {"limits.cpu": "0", "memory": "0"}),),
    ),
    Case("nothing known", pod(), (quota({"pods": "2"}, {}),)),
    Case("best effort", pod(), (quota({"pods": "0"}, {"pods": "0"}, scopes=["BestEffort"]),)),
    Case("not best effort", pod(), (quota({"pods": "0"}, {"pods": "0"}, scopes=["NotBestEffort"]),)),
    Case(
        "with a deadline",
        pod(activeDeadlineSeconds=9),
        (quota({"pods": "0"}, {"pods": "0"}, scopes=["Terminating"]),),
    ),
    Case(
        "of a class",
        pod(priorityClassName="high"),
        (
            HIGH,
            quota(
                {"pods": "0"},
                {"pods": "0"},
                scopeSelector={
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                },
            ),
        ),
    ),
    Case(
        "node ports",
        service(type="NodePort"),
        (quota({"services.nodeports": "0"}, {"services.nodeports": "0"}),),
    ),
    Case(
        "load balancers",
        service(type="LoadBalancer"),
        (
            quota(
                {"services.loadbalancers": "0", "services": "5"},
                {"services.loadbalancers": "0", "services": "1"},
            ),
        ),
    ),
    Case("storage", claim("3Gi"), (quota({"requests.storage": "5Gi"}, {"requests.storage": "4Gi"}),)),
    Case(
        "objects",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}},
        (quota({"count/configmaps": "0"}, {"count/configmaps": "0"}),),
    ),
    # security
    Case("restricted and good", pod(**GOOD), labels=secure("restricted")),
    Case("restricted and plain", pod(), labels=secure("restricted")),
    Case("restricted and bad", pod(**BAD), labels=secure("restricted")),
    Case("baseline and plain", pod(), labels=secure("baseline")),
    Case("baseline and bad", pod(**BAD), labels=secure("baseline")),
    Case(
        "an old baseline",
        pod(**BAD),
        labels=secure("baseline", **{"pod-security.kubernetes.io/enforce-version": "v1.25"}),
    ),
    Case(
        "a level nobody knows",
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": metadata(
                "adm-wrong", labels=secure("strict", **{"pod-security.kubernetes.io/warn-version": "1"})
            ),
        },
    ),
    # storage, ingress, nodes
    Case("a claim", claim()),
    Case("a claim with a default class", claim(), (FAST,)),
    Case(
        "a claim that may not grow",
        {**claim(), "status": {"phase": "Bound"}},
        change={"spec": {"resources": {"requests": {"storage": "2Gi"}}}},
    ),
    Case("an ingress", INGRESS),
    Case("an ingress with a default class", INGRESS, (NGINX,)),
    Case("a node", cluster("v1", "Node", "adm-node")),
    # services
    Case("a service", service()),
    Case("headless", service(clusterIP="None")),
    Case("headless without a selector", service(clusterIP="None", selector={})),
    Case("an address", service(clusterIP="10.0.0.77")),
    Case("an address that is taken", service(clusterIP="10.0.0.78"), (service("t", clusterIP="10.0.0.78"),)),
    Case("an address out of range", service(clusterIP="10.9.0.1")),
    Case("a node port", service(type="NodePort")),
    Case("this node port", service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}])),
    Case(
        "a node port that is taken",
        service(type="NodePort", ports=[{"port": 80, "nodePort": 30081}]),
        (service("t", type="NodePort", ports=[{"port": 80, "nodePort": 30081}]),),
    ),
    Case("a node port out of range", service(type="NodePort", ports=[{"port": 80, "nodePort": 80}])),
    Case("a local balancer", service(type="LoadBalancer", externalTrafficPolicy="Local")),
    Case("a balancer without node ports", service(type="LoadBalancer", allocateLoadBalancerNodePorts=False)),
    Case("two families", service(ipFamilyPolicy="RequireDualStack")),
    Case("any families", service(ipFamilyPolicy="PreferDualStack")),
    Case("the other family", service(ipFamilies=["IPv6"])),
    Case("an external name", service(type="ExternalName", externalName="x.example.com")),
    Case(
        "becomes external",
        service(),
        change={"spec": {"type": "ExternalName", "externalName": "x.example.com"}},
    ),
    Case(
        "becomes internal",
        service(type="ExternalName", externalName="x.example.com"),
        change={"spec": {"type": "ClusterIP", "externalName": None}},
    ),
    Case("loses its node port", service(type="NodePort"), change={"spec": {"type": "ClusterIP"}}),
    Case("gets a node port", service(), change={"spec": {"type": "NodePort"}}),
)


# -- telling ----------------------------------------------------------------------------------

_NAMED = re.compile(r"kube-api-access-[a-z0-9]{5}")
_GENERATED = re.compile(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
_PORT = re.compile(r"\b3[0-2]\d{3}\b")


def told(answer: dict[str, Any] | ApiError, case: Case, namespace: str) -> str:
    """An answer without what differs by nature."""
    asked = json.dumps([case.request, case.given])
    if isinstance(answer, ApiError):
        text = f"{answer.code} {answer.reason}: {answer.message}"
    else:
        meta = answer["metadata"]
        kept = {name: meta.get(name) or None for name in ("annotations", "finalizers", "labels")}
        body = {
            name: value
            for name, value in answer.items()
            if name not in ("metadata", "status", "kind", "apiVersion")
        }
        text = json.dumps({**kept, **body}, sort_keys=True)
    text = _GENERATED.sub("web-<name>", _NAMED.sub("<token>", text.replace(namespace, "<ns>")))
    for pattern in (_ADDRESS, _PORT):
        text = pattern.sub(lambda found: found[0] if found[0] in asked else "<drawn>", text)
    return text


class Teller:
    """Asks one server."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace

    async def create(self, document: dict[str, Any]) -> dict[str, Any]:
        kind = self._kind(document)
        body = {name: value for name, value in document.items() if name != "status"}
        made: dict[str, Any] = await self.api.create(kind, self.namespace if kind.namespaced else "", body)
        if "status" in document:
            name = made["metadata"]["name"]
            changed = {**made, "status": document["status"]}
            made = await self.api.update_status(kind, self.namespace, name, changed)
        return made

    async def drop(self, document: dict[str, Any], name: str) -> None:
        kind = self._kind(document)
        where = self.namespace if kind.namespaced else ""
        try:
            await self.api.delete(kind, where, name, grace=0)
            finalizers = {"metadata": {"finalizers": None}}
            await self.api.patch(kind, where, name, finalizers, content_type="application/merge-patch+json")
        except NotFound:
            pass  # it had no finalizers

    async def answer(self, case: Case) -> dict[str, Any] | ApiError:
        name = ""
        try:
            made: dict[str, Any] = await self.create(case.request)
            name = made["metadata"]["name"]
            if case.change:
                kind = self._kind(case.request)
                made = await self.api.patch(
                    kind, self.namespace, name, case.change, content_type="application/merge-patch+json"
                )
            return made
        except ApiError as error:
            return error
        finally:
            if name:
                await self.drop(case.request, name)

    async def begin(self, case: Case) -> None:
        labels = case.labels or {}
        await self.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(self.namespace, labels=labels)}
        )
        if case.account:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            await self.create(account)
        for document in case.given:
            await self.create(document)

    async def end(self, case: Case) -> None:
        for document in case.given:
            await self.drop(document, document["metadata"]["name"])

    @staticmethod
    def _kind(document: dict[str, Any]) -> Any:
        group, _, version = document["apiVersion"].rpartition("/")
        return load(group, version, document["kind"]).untyped


@pytest.fixture(scope="module")
def own_plane() -> Any:
    """A plane of our own: classes that are the default are so for everybody."""
    with RealPlane.start() as plane:
        yield plane


@pytest.fixture
async def real(own_plane: RealPlane) -> AsyncIterator[Api]:
    api = own_plane.connect()
    try:
        yield api
    finally:
        await api.close()


def ours(case: Case, namespace: str) -> str:
    async def ask() -> str:
        teller = Teller(world.api(), namespace)
        await teller.begin(case)
        return told(await teller.answer(case), case, namespace)

    with World(seed=1, plugins=admission.default(cidr=CIDR)) as world:
        return world.run(ask())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_request_is_answered_as_a_real_server_answers_it(real: Api, case: Case) -> None:
    namespace = f"adm-{CASES.index(case)}"
    expected = await asyncio.to_thread(ours, case, namespace)
    teller = Teller(real, namespace)
    await teller.begin(case)
    answer = ""
    try:
        for _ in range(TRIES):
            answer = told(await teller.answer(case), case, namespace)
            if answer == expected:
                break
    finally:
        await teller.end(case)
    assert expected == answer
