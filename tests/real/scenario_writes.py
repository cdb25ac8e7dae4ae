"""Chapters of the scenario about odd writes: patches that change the type or add unknown fields, owners of replicas that are
scaled, names that make bad hostnames, duplicate owners, evictions and tokens with odd options, nulls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.real.scenario import (
    ACCOUNTS,
    APPLY,
    CMS,
    CONTROLLERS,
    CRDS,
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    JSONPATCH,
    PODS,
    PRIORITIES,
    SETS,
    STATEFUL,
    STRATEGIC,
    TEMPLATE,
    YAML,
    Ask,
    cm,
    delete,
    doc,
    get,
    here,
    patch,
    pod,
    post,
    put,
)

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
GADGETS = here("gadgets", "writes.test")


def obj(properties: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


OPEN = obj({"known": obj({"a": STRING})}, **{"x-kubernetes-preserve-unknown-fields": True})
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
SCHEMA = obj(
    {
        "spec": obj(
            {
                "replicas": INTEGER,
                "a": STRING,
                "list": {"type": "array", "items": obj({"x": STRING})},
                "open": OPEN,
                "embedded": {**EMBEDDED, "x-kubernetes-preserve-unknown-fields": True},
            }
        ),
        "status": obj({"replicas": INTEGER}),
    }
)
SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
DEFINITION = doc(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "gadgets.writes.test",
    spec={
        "group": "writes.test",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}, "scale": SCALE},
            }
        ],
    },
)


def gadget(name: str, **spec: Any) -> dict[str, Any]:
    return doc("writes.test/v1", "Gadget", name, spec=spec)


def scale(name: str, replicas: int) -> dict[str, Any]:
    return doc("autoscaling/v1", "Scale", name, spec={"replicas": replicas})


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE, **spec}
    return doc("apps/v1", "Deployment", name, spec=spec)


def op(op: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "path": path, **more}


G, C, D = f"{GADGETS}/g", f"{CMS}/c", f"{DEPLOYMENTS}/d"
DUPLICATES = b'{"apiVersion":"writes.test/v1","kind":"Gadget","metadata":{"name":"x","name":"x","zz":1},"spec":{"foo":1,"a":"b","a":"b"}}'
DUPLICATES_YAML = (
    b"apiVersion: writes.test/v1\nkind: Gadget\nmetadata: {name: x, zz: z}\nspec:\n  a: x\n  a: z\n  foo: z\n"
)
UNKNOWN = {"foo": 1, "list": [{"z": 1}], "open": {"x": 1, "known": {"q": 1}}}
# fmt: off
PATCHES = (
    post("definition", CRDS, DEFINITION, head=True),
    get("it is served", GADGETS, until=200, head=True),
    post("gadget", GADGETS, gadget("g", a="x", replicas=1)),
    post("config map", CMS, cm("c", data={"a": "b"}), head=True),
    post("deployment", DEPLOYMENTS, deployment("d"), head=True),
    patch("merge another kind", G, {"kind": "Foo"}),
    patch("merge no kind", G, {"kind": None}, head=True),
    patch("merge another version", G, {"apiVersion": "v1"}),
    patch("json another kind", G, [op("replace", "/kind", value="Foo")], JSONPATCH),
    patch("json no kind", G, [op("remove", "/kind")], JSONPATCH, head=True),
    patch("json that tests the kind", G, [op("test", "/kind", value="Gadget"), op("replace", "/spec/a", value="y")], JSONPATCH),
    patch("merge no kind of a config map", C, {"kind": None}),
    patch("merge an empty kind of a config map", C, {"kind": ""}),
    patch("json another kind of a config map", C, [op("replace", "/kind", value="Foo")], JSONPATCH),
    patch("json no kind of a config map", C, [op("remove", "/kind")], JSONPATCH),
    patch("strategic another kind of a config map", C, {"kind": "Foo"}, STRATEGIC),
    patch("json the kind of another", D, [op("replace", "/kind", value="StatefulSet")], JSONPATCH),
    patch("json another group", D, [op("replace", "/apiVersion", value="batch/v1")], JSONPATCH),
    patch("json that tests the type", D, [op("test", "/kind", value="Deployment"), op("test", "/apiVersion", value="apps/v1"), op("replace", "/spec/paused", value=True)], JSONPATCH),
    patch("json that tests another type", D, [op("test", "/kind", value="X")], JSONPATCH),
    patch("json that copies the kind", D, [op("add", "/metadata/labels", value={}), op("copy", "/metadata/labels/k", **{"from": "/kind"})], JSONPATCH),
    patch("json of a scale that tests the kind", f"{D}/scale", [op("test", "/kind", value="Scale"), op("replace", "/spec/replicas", value=3)], JSONPATCH),
    patch("json an unknown field", C, [op("add", "/foo", value=1)], JSONPATCH),
    patch("json an unknown field, minded", f"{C}?fieldValidation=Strict", [op("add", "/foo", value=1)], JSONPATCH),
    patch("json an unknown field, not minded", f"{C}?fieldValidation=Ignore", [op("add", "/foo", value=1)], JSONPATCH),
    patch("json an unknown field that is gone", C, [op("add", "/foo", value=1), op("remove", "/foo")], JSONPATCH),
    patch("json unknown fields deep down", D, [op("add", "/spec/template/spec/foo", value=1), op("add", "/spec/template/spec/containers/0/bar", value=1)], JSONPATCH),
    patch("merge an unknown field that is null", D, {"spec": {"foo": None}}),
    patch("strategic an unknown field that is null", D, {"spec": {"foo": None}}, STRATEGIC),
    patch("strategic an unknown field", D, {"spec": {"foo": 1, "$setElementOrder/template": []}}, STRATEGIC, head=True),
    patch("json an unknown field of a gadget", G, [op("add", "/spec/foo", value=1)], JSONPATCH),
    patch("json an unknown field of a gadget, minded", f"{G}?fieldValidation=Strict", [op("add", "/spec/foo", value=1)], JSONPATCH),
    patch("merge unknown fields of a gadget", G, {"spec": UNKNOWN}),
    patch("merge unknown fields of a gadget, minded", f"{G}?fieldValidation=Strict", {"spec": UNKNOWN}),
    patch("merge a duplicate and an unknown field", G, b'{"spec":{"foo":1,"a":"b","a":"b"}}'),
    post("unknown fields of a gadget", f"{GADGETS}?dryRun=All", gadget("x", **UNKNOWN)),
    post("unknown fields of a gadget, minded", f"{GADGETS}?dryRun=All&fieldValidation=Strict", gadget("x", **UNKNOWN, embedded={"apiVersion": "v1", "kind": "Pod", "metadata": {"foo": 1}})),
    post("duplicate and unknown fields", f"{GADGETS}?dryRun=All", DUPLICATES),
    post("duplicate and unknown fields in YAML", f"{GADGETS}?dryRun=All", DUPLICATES_YAML, type=YAML),
    post("a number for a label", GADGETS, doc("writes.test/v1", "Gadget", "x", metadata={"labels": {"a": 1}})),
    post("a list for labels", GADGETS, doc("writes.test/v1", "Gadget", "x", metadata={"labels": []})),
    post("a text for a generation", GADGETS, doc("writes.test/v1", "Gadget", "x", metadata={"generation": "x"})),
    post("a bad time", GADGETS, doc("writes.test/v1", "Gadget", "x", metadata={"creationTimestamp": "x"})),
    post("a list for metadata", GADGETS, {**gadget("x"), "metadata": []}),
    post("a number for a label of an embedded object", GADGETS, gadget("x", embedded={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5, "labels": {"a": 1}}})),
    post("a list for metadata of an embedded object", GADGETS, gadget("x", embedded={"apiVersion": "v1", "kind": "Pod", "metadata": []})),
    patch("merge a number for a label", G, {"metadata": {"labels": {"a": 1}}}),
    patch("merge a list for labels", G, {"metadata": {"labels": []}}),
)
SCALES = (
    post("definition", CRDS, DEFINITION, until=409, head=True),
    get("it is served", GADGETS, until=200, head=True),
    patch("apply replicas", f"{GADGETS}/two?fieldManager=me", gadget("two", a="x", replicas=1), APPLY, head=True),
    put("as many", f"{GADGETS}/two/scale?fieldManager=autoscaler", scale("two", 1)),
    get("whose they are", f"{GADGETS}/two"),
    put("more", f"{GADGETS}/two/scale?fieldManager=autoscaler", scale("two", 2)),
    get("whose they are now", f"{GADGETS}/two"),
    patch("apply others", f"{GADGETS}/two?fieldManager=me", gadget("two", a="x", replicas=1), APPLY),
    patch("apply none", f"{GADGETS}/two?fieldManager=me", gadget("two", a="x"), APPLY),
    patch("none", f"{GADGETS}/two/scale?fieldManager=autoscaler", {"spec": {"replicas": 0}}),
    get("whose none are", f"{GADGETS}/two"),
    put("by another name", f"{GADGETS}/two/scale", scale("three", 2)),
    post("no replicas", GADGETS, gadget("free", a="x"), head=True),
    patch("free replicas", f"{GADGETS}/free/scale?fieldManager=autoscaler", {"spec": {"replicas": 2}}),
    get("whose free replicas are", f"{GADGETS}/free"),
    patch("apply a deployment", f"{DEPLOYMENTS}/a?fieldManager=me", deployment("a"), APPLY, head=True),
    put("scale it", f"{DEPLOYMENTS}/a/scale?fieldManager=autoscaler", scale("a", 3)),
    get("replicas without an owner", f"{DEPLOYMENTS}/a"),
    patch("apply a deployment with replicas", f"{DEPLOYMENTS}/b?fieldManager=me", deployment("b", replicas=2), APPLY, head=True),
    put("scale that", f"{DEPLOYMENTS}/b/scale?fieldManager=autoscaler", scale("b", 3)),
    get("the autoscaler's replicas", f"{DEPLOYMENTS}/b"),
    patch("scale that to none", f"{DEPLOYMENTS}/b/scale?fieldManager=autoscaler", {"spec": {"replicas": 0}}),
    get("whose no replicas are", f"{DEPLOYMENTS}/b"),
    patch("scale that again", f"{DEPLOYMENTS}/b/scale?fieldManager=autoscaler", {"spec": {"replicas": 4}}),
    get("without an owner from then on", f"{DEPLOYMENTS}/b"),
)
# fmt: on
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]}}}
CRON = {"schedule": "* * * * *", "jobTemplate": {"spec": JOB}}
WORK = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}


def _names() -> Iterator[Ask]:
    for what, name in {
        "a dot": "a.b",
        "many letters": "a" * 64,
        "both": "a" * 60 + ".b.cdef",
    }.items():
        for kind, path, api, spec in (
            ("Deployment", DEPLOYMENTS, "apps/v1", WORK),
            ("ReplicaSet", SETS, "apps/v1", WORK),
            ("StatefulSet", STATEFUL, "apps/v1", {**WORK, "serviceName": "x"}),
            ("ReplicationController", CONTROLLERS, "v1", {"selector": {"app": "web"}, "template": TEMPLATE}),
            ("Job", JOBS, "batch/v1", JOB),
            ("CronJob", CRONJOBS, "batch/v1", CRON),
        ):
            body = doc(api, kind, name, spec=spec)
            yield post(f"{kind} with {what}", f"{path}?dryRun=All", body, head=True)
        yield post(f"Pod with {what}", f"{PODS}?dryRun=All", pod(name), head=True)
    yield post("Pod", PODS, pod("p.q"), head=True)
    yield patch("Pod again", f"{PODS}/p.q", {"metadata": {"labels": {"a": "b"}}}, head=True)
    yield post(
        "unprintable characters",
        f"{CMS}?dryRun=All",
        cm("a\x00\x1fb\u200b\xa0c"),
    )
    yield post("a control character in a manager", f"{CMS}?dryRun=All&fieldManager=a%00b", cm("m"))


def owner(uid: str = "x", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid, **more}


def owned(name: str, *owners: Any) -> dict[str, Any]:
    return cm(name, metadata={"ownerReferences": [*owners]})


# fmt: off
OWNERS = (
    post("twice", CMS, owned("a", owner(), owner())),
    patch("twice by a merge", f"{CMS}/a", {"metadata": {"ownerReferences": [owner(), owner("y"), owner(), owner("y", name="b")]}}),
    patch("twice by a JSON patch", f"{CMS}/a", [op("add", "/metadata/ownerReferences/-", value=owner())], JSONPATCH),
    put("twice by an update", f"{CMS}/a", owned("a", owner(), owner("w"), owner("w"))),
    post("not the same", CMS, owned("b", owner(), owner(name="other", controller=True))),
    post("a version with two slashes", CMS, owned("c", owner(apiVersion="a/b/c"))),
    post("a version without a name", CMS, owned("c", owner(apiVersion="a/"))),
    post("an event", CMS, owned("c", owner(apiVersion="/v1", kind="Event"))),
)


def eviction(api_version: str = "policy/v1", name: str = "p", **more: Any) -> dict[str, Any]:
    return doc(api_version, "Eviction", name, **more)


def tokens(seconds: int) -> dict[str, Any]:
    return doc("authentication.k8s.io/v1", "TokenRequest", "", spec={"expirationSeconds": seconds})


EVICT, TOKEN = f"{PODS}/p/eviction", f"{ACCOUNTS}/default/token"
EVICTIONS = (
    post("pod", PODS, pod("p"), head=True),
    post("an older version", f"{EVICT}?dryRun=All", eviction("policy/v1beta1")),
    post("an older version of another kind", f"{EVICT}?dryRun=All", {**eviction("policy/v1beta1"), "kind": "Foo"}),
    post("a version to come", f"{EVICT}?dryRun=All", eviction("policy/v2")),
    post("another namespace", EVICT, eviction(metadata={"namespace": "other"})),
    post("no name", EVICT, eviction(name="")),
    post("a bad dry run", EVICT, eviction(deleteOptions={"dryRun": ["Foo"]})),
    post("a bad policy", EVICT, eviction(deleteOptions={"propagationPolicy": "Foo"})),
    post("two policies", EVICT, eviction(deleteOptions={"orphanDependents": True, "propagationPolicy": "Orphan"})),
    post("no grace", f"{EVICT}?dryRun=All", eviction(deleteOptions={"gracePeriodSeconds": -1})),
    get("it is still there", f"{PODS}/p", head=True),
    post("a long token", TOKEN, tokens(4294967295), head=True),
    post("too long a token", TOKEN, tokens(99999999999)),
    delete("a system priority", f"{PRIORITIES}/system-cluster-critical"),
    delete("a system priority, rehearsed", f"{PRIORITIES}/system-node-critical?dryRun=All"),
)
NULLS = (
    post("of a text", CMS, cm("d", data={"a": None, "b": "c"})),
    post("of a label", CMS, cm("e", metadata={"labels": {"a": None}})),
    post("of all data", CMS, cm("f", data=None)),
    post("of a container", PODS, pod("p", containers=[None, {"name": "a", "image": "b"}])),
    post("of a variable", PODS, pod("p", containers=[{"name": "a", "image": "b", "env": [None]}])),
    post("of an argument", PODS, pod("p", containers=[{"name": "a", "image": "b", "args": [None, "x"]}])),
    post("of a resource", PODS, pod("q", containers=[{"name": "a", "image": "b", "resources": {"requests": {"cpu": None}}}])),
    post("of a selector", PODS, pod("r", nodeSelector={"a": None})),
    patch("of a text that is applied", f"{CMS}/g?fieldManager=me", cm("g", data={"a": None}), APPLY),
)
# fmt: on
CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "patches": PATCHES,
    "scales": SCALES,
    "hostnames": tuple(_names()),
    "owners": OWNERS,
    "evictions": EVICTIONS,
    "nulls": NULLS,
}
