"""Owners of fields and merged objects: the embedded server's beside a real one's, step by step.

Each story is told twice, through the in-process client and over HTTP, by several managers. After each step
the whole object with its ``managedFields``, or the whole refusal, must be the same; times aside.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any, TypeAlias

import pytest

from steersman.api.errors import ApiError
from steersman.api.generated import load, resources
from steersman.api.scheme import Kind
from steersman.client.api import Api
from steersman.client.http import HttpApi, SharedClientState
from steersman.client.kubeconfig import load as load_kubeconfig
from steersman.server.apply.openapi import schemas_by_name
from steersman.server.apply.schema import TypedSchema
from steersman.server.apply.structs import typed_schema_of
from steersman.server.local import LocalApi
from steersman.sim.world import World
from tests.harness.custom_resources import WIDGETS, definition
from tests.harness.envtest import RealPlane

APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"

DEPLOYMENTS = load("apps", "v1", "Deployment").untyped
SERVICES = load("", "v1", "Service").untyped
CONFIGMAPS = load("", "v1", "ConfigMap").untyped
PODS = load("", "v1", "Pod").untyped
NAMESPACES = load("", "v1", "Namespace").untyped
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition").untyped

Document: TypeAlias = dict[str, Any]

_VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "selfLink", "namespace")
_ADMITTED = ("priority", "preemptionPolicy", "serviceAccount", "serviceAccountName", "tolerations")
_ALLOCATED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
"""What plugins and allocators of the real server fill in; nobody owns it there."""


def respecified(spec: object, live: dict[str, Any]) -> None:
    """Gives a live document another spec."""
    live["spec"] = spec


class Story:
    """What several managers do to objects, and what is answered."""

    def __init__(self, connect: Callable[[str], Api], namespace: str) -> None:
        self.connect = connect
        self.namespace = namespace
        self.told: list[tuple[str, Any]] = []

    async def tell(self, title: str, request: Awaitable[Any]) -> Any:
        """Do something, and note what is answered."""
        try:
            answer = await request
        except ApiError as error:
            causes = sorted((cause.field, cause.message, cause.reason) for cause in error.causes)
            self.told.append((title, (error.code, error.reason, error.message, causes)))
            return None
        self.told.append((title, normal(answer)))
        return answer

    async def applies(
        self,
        manager: str,
        kind: Kind[Document],
        body: Document,
        *,
        force: bool = False,
        subresource: str = "",
        title: str = "",
    ) -> Any:
        body = {"apiVersion": kind.api_version, "kind": kind.name, **body}
        name = body["metadata"]["name"]
        request = self.connect(manager).patch(
            kind,
            self.namespace if kind.namespaced else "",
            name,
            body,
            content_type=APPLY,
            field_manager=manager,
            force=force,
            subresource=subresource,
        )
        return await self.tell(title or f"{manager} applies {body}", request)

    async def patches(
        self,
        manager: str,
        kind: Kind[Document],
        name: str,
        body: Any,
        content_type: str = MERGE,
        subresource: str = "",
    ) -> Any:
        request = self.connect(manager).patch(
            kind, self.namespace, name, body, content_type=content_type, subresource=subresource
        )
        return await self.tell(f"{manager} patches {body}", request)

    async def updates(
        self, manager: str, kind: Kind[Document], name: str, change: Callable[[Document], None]
    ) -> Any:
        live = await self.connect(manager).get(kind, self.namespace, name)
        change(live)
        request = self.connect(manager).update(kind, self.namespace, name, live)
        return await self.tell(f"{manager} updates", request)


Tale: TypeAlias = Callable[[Story], Awaitable[None]]


def normal(document: Any) -> Any:
    """A document without what differs by nature. Of times only remains that there is one."""
    if not isinstance(document, dict) or "metadata" not in document:
        return document
    document = deepcopy(document)
    metadata = document["metadata"]
    for name in _VOLATILE:
        metadata.pop(name, None)
    owners = metadata.get("managedFields", [])
    for entry in owners:
        # The real server forgets when something was scaled.
        entry["time"] = "time" in entry and entry.get("subresource") != "scale"
    # Entries of one second are in the order of their names; whether it is one second is chance.
    owners.sort(key=lambda entry: (entry["operation"], entry["manager"], entry.get("subresource", "")))
    spec = document.get("spec", {})
    if document.get("kind") == "Widget":
        metadata.pop("generation", None)
    if document.get("kind") == "Pod":
        for name in _ADMITTED:
            spec.pop(name, None)
        document.pop("status", None)
    for name in _ALLOCATED if document.get("kind") == "Service" else ():
        spec.pop(name, None)
    return document


# -- stories ----------------------------------------------------------------------------------


def template(**container: Any) -> Document:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "main:1", **container}]},
    }


def web(**spec: Any) -> Document:
    return {
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec},
    }


async def a_deployment_is_created_by_apply_and_shared(story: Story) -> None:
    kind = DEPLOYMENTS
    await story.applies("one", kind, web(replicas=2))
    await story.applies("one", kind, web(replicas=2), title="again")
    await story.applies("two", kind, {"metadata": {"name": "web", "labels": {"two": "2"}}})
    await story.applies("two", kind, {"metadata": {"name": "web"}, "spec": {"replicas": 5}}, title="conflict")
    shared = {"metadata": {"name": "web"}, "spec": {"replicas": 2}}
    await story.applies("two", kind, shared, title="co-owner; the label goes")
    await story.applies("one", kind, web(replicas=3), title="both own it")
    await story.applies("one", kind, web(replicas=3), force=True)
    await story.applies("one", kind, web(), title="given up")
    await story.applies("two", kind, {"metadata": {"name": "web"}}, title="nothing left")
    sidecar = {"containers": [{"name": "side", "image": "side:1", "ports": [{"containerPort": 80}]}]}
    await story.applies("side", kind, {"metadata": {"name": "web"}, "spec": {"template": {"spec": sidecar}}})
    main = {"containers": [{"name": "main", "image": "other:1"}]}
    await story.applies("side", kind, {"metadata": {"name": "web"}, "spec": {"template": {"spec": main}}})
    await story.applies(
        "side", kind, {"metadata": {"name": "web"}, "spec": {"template": {"spec": main}}}, force=True
    )
    await story.applies("one", kind, web(template=template(env=[{"name": "A", "value": "1"}])))


async def a_deployment_is_written_by_others(story: Story) -> None:
    kind = DEPLOYMENTS
    body = {**web(replicas=1), "metadata": {"name": "web", "labels": {"a": "1"}, "annotations": {"x": "y"}}}
    await story.tell("create", story.connect("maker").create(kind, story.namespace, body))
    await story.patches("scaler", kind, "web", {"spec": {"replicas": 4}})
    await story.patches("scaler", kind, "web", {"spec": {"replicas": 4}})
    await story.patches("maker", kind, "web", {"metadata": {"labels": {"a": None, "b": "2"}}})
    image = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "main:2"}]}}}}
    await story.patches("roller", kind, "web", image, STRATEGIC)
    remove = [{"op": "remove", "path": "/metadata/annotations/x"}]
    await story.patches("cleaner", kind, "web", remove, JSON)
    await story.applies("one", kind, web(replicas=7), title="conflicts with three")
    await story.applies("one", kind, web(replicas=7), force=True)

    def pause(live: Document) -> None:
        live["spec"]["paused"] = True
        live["metadata"].setdefault("labels", {})["p"] = "1"

    await story.updates("pauser", kind, "web", pause)
    status = {"status": {"replicas": 3, "observedGeneration": 2, "conditions": []}}
    await story.patches("controller", kind, "web", status, subresource="status")
    condition = {"type": "Available", "status": "True", "reason": "r", "message": "m"}
    await story.patches(
        "controller", kind, "web", {"status": {"conditions": [condition]}}, subresource="status"
    )
    applied = {"metadata": {"name": "web"}, "status": {"readyReplicas": 2}}
    await story.applies("readier", kind, applied, subresource="status")
    await story.applies("readier", kind, {**applied, "spec": {"replicas": 1}}, title="status is not taken")
    scale = {"metadata": {"name": "web", "namespace": story.namespace}, "spec": {"replicas": 9}}
    await story.connect("hpa").subresource(kind, story.namespace, "web", "scale", scale, verb="update")
    await story.tell("scaled", story.connect("x").get(kind, story.namespace, "web"))
    await story.patches("resetter", kind, "web", {"metadata": {"managedFields": [{}]}})
    await story.patches("nobody", kind, "web", {"spec": {"replicas": 10}})
    await story.applies("first", kind, web(replicas=11), title="before-first-apply")
    await story.applies("first", kind, web(replicas=11), force=True)


async def a_service_has_ports_with_keys(story: Story) -> None:
    kind = SERVICES

    def ports(*numbers: Document) -> Document:
        return {"metadata": {"name": "svc"}, "spec": {"ports": list(numbers), "selector": {"a": "b"}}}

    http, dns = {"name": "http", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}
    await story.applies("one", kind, ports(http, dns))
    await story.applies("two", kind, ports({"name": "dns-tcp", "port": 53}))
    named = {"name": "tcp", "port": 53}
    await story.applies("two", kind, {"metadata": {"name": "svc"}, "spec": {"ports": [named]}})
    await story.applies("one", kind, ports(dns, http), title="another order")
    await story.applies("one", kind, ports(dns))
    await story.applies("one", kind, ports(dns, {**dns, "name": "again"}), title="twice")
    await story.applies("one", kind, {"metadata": {"name": "svc"}, "spec": {"selector": {"c": "d"}}})
    await story.applies("two", kind, {"metadata": {"name": "svc"}, "spec": {"ports": [{"port": "x"}]}})


async def a_configmap_is_a_map(story: Story) -> None:
    kind = CONFIGMAPS

    def data(**values: str) -> Document:
        return {"metadata": {"name": "cm"}, "data": values}

    await story.applies("one", kind, data(a="1", b="2"))
    await story.applies("two", kind, data(b="2", c="3"))
    await story.applies("two", kind, data(b="9"))
    await story.patches("three", kind, "cm", {"data": {"a": "8", "d": "4"}})
    await story.applies("one", kind, data(b="2"), title="a is another's now")
    await story.applies("two", kind, {"metadata": {"name": "cm"}}, title="c goes, b is still one's")
    await story.applies("one", kind, {"metadata": {"name": "cm"}, "data": None}, title="null")
    await story.applies("one", kind, {"metadata": {"name": "cm"}, "data": {}}, title="empty")
    await story.applies("one", kind, {"metadata": {"name": "cm"}, "spec": {}}, title="no such field")
    await story.applies("one", kind, {"metadata": {"name": "cm"}, "data": {"a": 1}}, title="wrong type")
    owned = {"metadata": {"name": "cm", "managedFields": []}}
    await story.applies("one", kind, owned, title="no managed fields in a patch")
    away = {"metadata": {"name": "cm", "resourceVersion": "1"}, "data": {"z": "1"}}
    await story.applies("one", kind, away, title="outdated")
    await story.applies("", kind, data(a="1"), title="who?")
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cm"}}
    await story.applies("one", kind, body, title="another kind")
    finalizers = {"metadata": {"name": "cm", "finalizers": ["example.com/a"]}}
    await story.applies("one", kind, finalizers)
    finalizers = {"metadata": {"name": "cm", "finalizers": ["example.com/b"]}}
    await story.applies("two", kind, finalizers)
    await story.applies("one", kind, {"metadata": {"name": "cm"}})


async def many_managers_are_put_together(story: Story) -> None:
    bare = {"metadata": {"name": "bare"}}
    await story.tell("bare", story.connect("m00").create(CONFIGMAPS, story.namespace, bare))
    await story.patches("m00", CONFIGMAPS, "bare", {"data": {"a": "nobody keeps track"}})
    many = {"metadata": {"name": "many"}, "data": {"k0": "v"}}
    await story.tell("many", story.connect("m00").create(CONFIGMAPS, story.namespace, many))
    for number in range(1, 14):
        await story.patches(f"m{number:02}", CONFIGMAPS, "many", {"data": {f"k{number}": "v"}})


async def kubectl_comes_from_the_client_side(story: Story) -> None:
    kind = CONFIGMAPS
    last = "kubectl.kubernetes.io/last-applied-configuration"
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cm"},"data":{"a":"1","b":"2"}}'
    body = {"metadata": {"name": "cm", "annotations": {last: text}}, "data": {"a": "1", "b": "2"}}
    maker = story.connect("kubectl-client-side-apply")
    await story.tell("create", maker.create(kind, story.namespace, body))
    await story.applies("other", kind, {"metadata": {"name": "cm"}, "data": {"a": "5"}})
    await story.applies("kubectl", kind, {"metadata": {"name": "cm"}, "data": {"a": "7", "b": "2"}})
    await story.patches("editor", kind, "cm", {"data": {"b": "9"}})
    await story.applies("kubectl", kind, {"metadata": {"name": "cm"}, "data": {"a": "7", "b": "3"}})


async def a_pod_has_lists_in_lists(story: Story) -> None:
    kind = PODS
    accounts = load("", "v1", "ServiceAccount").untyped
    await story.connect("maker").create(accounts, story.namespace, {"metadata": {"name": "default"}})

    def pod(**spec: Any) -> Document:
        return {"metadata": {"name": "pod"}, "spec": spec}

    main = {
        "name": "main",
        "image": "main:1",
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
        "resources": {"limits": {"cpu": "1"}},
    }
    node = {"nodeSelector": {"a": "b"}, "volumes": [{"name": "v", "emptyDir": {}}]}
    automount = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0}
    await story.applies("one", kind, pod(containers=[main], **node, **automount))
    other = {"name": "main", "image": "main:1", "ports": [{"containerPort": 80}]}
    await story.applies("two", kind, pod(containers=[other]))
    await story.applies("two", kind, pod(containers=[{**other, "image": "main:2"}]), force=True)
    status: Document = {"phase": "Running", "podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}]}
    status["conditions"] = [{"type": "Ready", "status": "True"}]
    await story.patches("kubelet", kind, "pod", {"status": status}, subresource="status")
    status = {"conditions": [{"type": "Ready", "status": "False"}, {"type": "X", "status": "True"}]}
    await story.patches("kubelet", kind, "pod", {"status": status}, STRATEGIC, subresource="status")


async def words_are_drawn(story: Story, seed: int) -> None:
    """Random applies and updates of a Deployment by a few managers."""
    draw = random.Random(seed)
    kind = DEPLOYMENTS

    def some(**parts: Any) -> Document:
        return {name: part for name, part in parts.items() if draw.random() < 0.6 and part != {}}

    def container(name: str) -> Document:
        envs = [{"name": each, "value": draw.choice("12")} for each in draw.sample("ABC", draw.randint(0, 2))]
        ports = [
            {"containerPort": port, **some(protocol=draw.choice(["TCP", "UDP"]), hostIP="10.0.0.1")}
            for port in draw.sample([80, 81, 8080], draw.randint(0, 2))
        ]
        image = f"{name}:{draw.randint(1, 2)}"
        resources = some(limits=some(cpu=draw.choice("12"), memory="1Gi"))
        return {"name": name, "image": image, **some(env=envs, ports=ports, resources=resources)}

    def body() -> Document:
        sides = [container(name) for name in draw.sample(["a", "b"], draw.randint(0, 2))]
        containers = [container("main"), *sides]
        draw.shuffle(containers)
        pod = some(nodeSelector=some(x="1", y="2"), hostAliases=[{"ip": "10.0.0.1", "hostnames": ["h"]}])
        meta = some(labels=some(l="1", m=draw.choice("12")), annotations=some(n=draw.choice("12")))
        return {
            "metadata": {"name": "web", **meta},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": containers, **pod},
                },
                **some(replicas=draw.randint(1, 3), minReadySeconds=draw.randint(0, 2), strategy=None),
            },
        }

    await story.applies("one", kind, body())
    for number in range(12):
        manager = draw.choice(["one", "two", "three"])
        what = draw.choice(["apply", "force", "update", "merge", "strategic"])
        if what in ("apply", "force"):
            title = f"{number}. {manager} applies"
            await story.applies(manager, kind, body(), force=what == "force", title=title)
            continue
        given = body()
        if what == "update":
            await story.updates(manager, kind, "web", partial(respecified, given["spec"]))
        else:
            await story.patches(manager, kind, "web", given, STRATEGIC if what == "strategic" else MERGE)


def seeded(seed: int) -> Tale:
    async def tale(story: Story) -> None:
        await words_are_drawn(story, seed)

    tale.__name__ = f"words_are_drawn_with_{seed}"
    return tale


# -- custom resources -------------------------------------------------------------------------

SCHEMA: Document = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "port": {"x-kubernetes-int-or-string": True},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "words": {"type": "array", "items": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["number", "protocol"],
                    "items": {
                        "type": "object",
                        "required": ["number"],
                        "properties": {
                            "number": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "note": {"type": "string"},
                        },
                    },
                },
                "limits": {"type": "object", "additionalProperties": {"type": "string"}},
                "colour": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"r": {"type": "integer"}, "g": {"type": "integer"}},
                },
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"size": {"type": "integer"}, "word": {"type": "string"}}},
    },
}

DEFINITION = definition(WIDGETS, SCHEMA, subresources={"status": {}})


async def a_custom_resource_has_its_own_schema(story: Story) -> None:
    kind = WIDGETS

    def widget(**spec: Any) -> Document:
        return {"metadata": {"name": "w"}, "spec": spec}

    tags, words = {"tags": ["a", "b"]}, {"words": ["x"]}
    await story.applies("one", kind, widget(size=1, port="http", **tags, **words))
    await story.applies("two", kind, widget(tags=["c", "b"], limits={"cpu": "1"}))
    await story.applies("one", kind, widget(size=1, tags=["b"], words=["x"]), title="a goes, and the port")
    await story.applies("two", kind, widget(words=["x", "y"]), title="lists are atomic")
    await story.applies("two", kind, widget(size=2), force=True)
    number = {"number": 80}
    await story.applies("two", kind, widget(ports=[number, {"number": 80, "protocol": "UDP", "note": "n"}]))
    await story.applies("three", kind, widget(ports=[{"number": 80, "note": "mine"}]))
    await story.applies("two", kind, widget(ports=[number]))
    await story.applies("three", kind, widget(colour={"r": 1, "g": 2}, anything={"a": {"b": [1]}, "c": 1}))
    await story.applies("one", kind, widget(colour={"r": 1}), title="atomic")
    await story.applies("one", kind, widget(anything={"a": {"d": 2}}), title="deduced")
    await story.applies("one", kind, widget(anything={"a": "text"}), title="another sort")
    await story.applies("one", kind, widget(anything={"a": "text"}), force=True)
    await story.applies("one", kind, widget(unknown=1))
    await story.applies("one", kind, widget(size="x"))
    await story.applies("one", kind, widget(tags=["a", "a"]))
    await story.patches("four", kind, "w", {"spec": {"size": 7, "limits": {"memory": "2", "cpu": None}}})
    await story.patches("five", kind, "w", {"status": {"size": 1, "word": "w"}}, subresource="status")
    status = {"metadata": {"name": "w"}, "status": {"size": 2}}
    await story.applies("six", kind, status, subresource="status")
    await story.applies("six", kind, status, subresource="status", force=True)
    await story.applies("six", kind, {**status, "spec": {"size": 3}}, title="no status here", force=True)

    def shrink(live: Document) -> None:
        live["spec"] = {"size": 1}

    await story.updates("seven", kind, "w", shrink)
    made = {"apiVersion": "example.com/v1", "kind": "Widget", **widget(size=1)}
    made["metadata"] = {"name": "made", "labels": {"a": "b"}}
    await story.tell("create", story.connect("maker").create(kind, story.namespace, made))


# -- telling them twice -----------------------------------------------------------------------

STORIES: tuple[Tale, ...] = (
    a_deployment_is_created_by_apply_and_shared,
    a_deployment_is_written_by_others,
    a_service_has_ports_with_keys,
    a_configmap_is_a_map,
    many_managers_are_put_together,
    kubectl_comes_from_the_client_side,
    a_pod_has_lists_in_lists,
    a_custom_resource_has_its_own_schema,
    *map(seeded, range(4)),
)


def embedded(tale: Tale, namespace: str) -> list[tuple[str, Any]]:
    """How the embedded server tells a story."""
    with World(seed=1) as world:
        world.run(world.api().create(NAMESPACES, "", {"metadata": {"name": namespace}}))
        world.run(world.api().create(DEFINITIONS, "", DEFINITION))
        story = Story(lambda manager: LocalApi(world.server, manager=manager), namespace)
        world.run(_of(tale, story))
    return story.told


async def real(tale: Tale, plane: RealPlane, namespace: str) -> list[tuple[str, Any]]:
    """How a real one does."""
    shared = SharedClientState()
    connection = load_kubeconfig(str(plane.admin))
    apis: dict[str, HttpApi] = {}

    def connect(manager: str) -> HttpApi:
        if manager not in apis:
            apis[manager] = HttpApi(connection, qps=0, user_agent=f"{manager}/test", shared=shared)
        return apis[manager]

    story = Story(connect, namespace)
    try:
        await tale(story)
    finally:
        for api in apis.values():
            await api.close()
    return story.told


async def _of(tale: Tale, story: Story) -> None:
    await tale(story)


@pytest.fixture(scope="module")
def widgets(plane: RealPlane) -> None:
    """The definition of the custom resource, in place."""
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(DEFINITION))
    plane.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")


@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("tale", STORIES, ids=lambda tale: tale.__name__)
def test_owners_and_objects_are_those_of_a_real_server(tale: Tale, plane: RealPlane, namespace: str) -> None:
    ours, theirs = embedded(tale, namespace), asyncio.run(real(tale, plane, namespace))
    for mine, other in zip(ours, theirs, strict=True):
        assert mine == other


# -- schemas ----------------------------------------------------------------------------------


def differences(
    ours: TypedSchema, theirs: TypedSchema, path: str, seen: set[tuple[int, ...]]
) -> Iterator[str]:
    """Where two shapes are not the same; each pair of maps or lists is looked at once."""
    pair = tuple(map(id, (ours.map, theirs.map, ours.list, theirs.list)))
    if pair in seen:
        return
    seen.add(pair)
    if ours.scalar != theirs.scalar:
        yield f"{path}: {ours.scalar} and {theirs.scalar}"
    if ours.map is not None and theirs.map is not None:
        if ours.map.atomic != theirs.map.atomic:
            yield f"{path}: atomic {ours.map.atomic} and {theirs.map.atomic}"
        for name in sorted({*ours.map.names, *theirs.map.names}):
            if ours.map.declares(name) and theirs.map.declares(name):
                yield from differences(ours.map.at(name), theirs.map.at(name), f"{path}.{name}", seen)
            else:
                yield f"{path}.{name}: only one has it"
        if ours.map.values is not None and theirs.map.values is not None:
            yield from differences(ours.map.values, theirs.map.values, f"{path}.*", seen)
        elif ours.map.values is not theirs.map.values:
            yield f"{path}: {ours.map.values} and {theirs.map.values} of others"
    elif ours.map is not theirs.map:
        yield f"{path}: only one is a map"
    if ours.list is not None and theirs.list is not None:
        for name in ("atomic", "keys", "defaults"):
            mine, other = getattr(ours.list, name), getattr(theirs.list, name)
            if mine != other:
                yield f"{path}: {name} {mine} and {other}"
        yield from differences(ours.list.item, theirs.list.item, f"{path}[]", seen)
    elif ours.list is not theirs.list:
        yield f"{path}: only one is a list"


def test_every_built_in_kind_has_the_shape_that_a_real_server_publishes(plane: RealPlane) -> None:
    connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=plane.tls(), timeout=30)

    def get(path: str) -> Any:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())

    schemas: dict[str, Any] = {}
    rows = resources()
    for version in dict.fromkeys(row.api_version for row in rows):
        group = f"apis/{version}" if "/" in version else f"api/{version}"
        schemas |= get(f"/openapi/v3/{group}")["components"]["schemas"]
    connection.close()
    names = {
        (said["group"], said["version"], said["kind"]): name
        for name, schema in schemas.items()
        for said in schema.get("x-kubernetes-group-version-kind", ())
    }
    theirs = schemas_by_name(schemas)
    seen: set[tuple[int, ...]] = set()
    found = [
        difference
        for row in rows
        for difference in differences(
            typed_schema_of(load(row.group, row.version, row.kind).type),
            theirs(names[row.group, row.version, row.kind]),
            row.kind,
            seen,
        )
        # Nobody owns the entries that say who owns what.
        if ".managedFields[]" not in difference
    ]
    assert found == []
    assert len(rows) > 60
