"""Chapters of the scenario about odd values in all kinds of writes: nulls in custom resources, scales that are applied, base64 that is none,
values of wrong types, behaviors of autoscalers, slices of devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.real.scenario import (
    APPLY,
    CMS,
    CONTROLLERS,
    CRDS,
    CSRS,
    DEPLOYMENTS,
    HPAS,
    JSONPATCH,
    MERGE,
    SECRETS,
    STATEFUL,
    STRATEGIC,
    TEMPLATE,
    ZERO,
    Ask,
    cm,
    deployment,
    doc,
    get,
    here,
    patch,
    post,
    put,
    workload,
)
from tests.real.scenario_writes import INTEGER, STRING, obj, op, scale

OPEN = "x-kubernetes-preserve-unknown-fields"
LIST = "x-kubernetes-list-type"
THINGS, SCALED = here("things", "values.test"), here("scaleds", "values.test")
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
THING = obj(
    {
        "spec": obj(
            {
                "text": STRING,
                "count": INTEGER,
                "list": {"type": "array", "items": STRING},
                "object": obj({"x": STRING}),
                "nullable": {"type": "string", "nullable": True},
                "default": {"type": "string", "default": "d"},
                "map": {"type": "object", "additionalProperties": STRING},
                "keyed": {
                    "type": "array",
                    "items": obj({"k": STRING, "v": STRING}, required=["k"]),
                    LIST: "map",
                    "x-kubernetes-list-map-keys": ["k"],
                },
                "open": {"type": "object", OPEN: True},
                "needed": obj({"a": STRING}, required=["a"]),
            }
        ),
        "status": obj({"text": STRING}),
    }
)


def definition(kind: str, schema: Any, **subresources: Any) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "values.test", "scope": "Namespaced", "names": names}
    versions = [{**version, "subresources": {"status": {}, **subresources}}]
    return doc(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.values.test",
        spec={**spec, "versions": versions},
    )


def thing(name: str, **more: Any) -> dict[str, Any]:
    return doc("values.test/v1", "Thing", name, **more)


NULL_SPECS: Mapping[str, dict[str, Any]] = {
    "text": {"text": None},
    "count": {"count": None},
    "list": {"list": None},
    "item": {"list": ["a", None]},
    "object": {"object": None},
    "field": {"object": {"x": None}},
    "nullable": {"nullable": None},
    "default": {"default": None},
    "value": {"map": {"a": None, "b": "c"}},
    "keyed": {"keyed": [{"k": "a", "v": None}]},
    "key": {"keyed": [{"k": None, "v": "x"}]},
    "open": {"open": {"x": None}},
    "needed": {"needed": {"a": None}},
    "unknown": {"zzz": None},
}


def _nulls() -> Iterator[Ask]:
    yield post("definition", CRDS, definition("Thing", THING), head=True)
    yield get("it is served", THINGS, until=200, head=True)
    for name, spec in NULL_SPECS.items():
        yield post(f"{name}: create", THINGS, thing(f"c-{name}", spec=spec))
        yield patch(
            f"{name}: apply a new one",
            f"{THINGS}/a-{name}?fieldManager=me",
            thing(f"a-{name}", spec=spec),
            APPLY,
        )
        base = {"text": "x", "object": {"x": "y"}, "keyed": [{"k": "a", "v": "b"}], "map": {"a": "b"}}
        yield post(f"{name}: what is changed", THINGS, thing(f"b-{name}", spec=base), head=True)
        changed = f"{THINGS}/b-{name}"
        yield patch(f"{name}: merge", changed, {"spec": spec})
        force = f"{changed}?fieldManager=me&force=true"
        yield patch(f"{name}: apply", force, thing(f"b-{name}", spec=spec), APPLY)
    yield post("status: what is changed", THINGS, thing("s", spec={"text": "x"}), head=True)
    status = f"{THINGS}/s/status"
    yield patch("status: merge", status, {"status": {"text": None}})
    yield patch("status: apply", f"{status}?fieldManager=me", thing("s", status={"text": None}), APPLY)
    yield patch("status: unknown fields", status, {"status": {"text": "x", "zzz": 1}})


def _scales() -> Iterator[Ask]:
    schema = obj(
        {"spec": obj({"replicas": INTEGER, "a": STRING}), "status": obj({"replicas": INTEGER, "sel": STRING})}
    )
    paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    made = definition("Scaled", schema, scale={**paths, "labelSelectorPath": ".status.sel"})
    yield post("definition", CRDS, made, head=True)
    yield get("it is served", SCALED, until=200, head=True)
    controller = doc(
        "v1", "ReplicationController", "x", spec={"selector": {"app": "web"}, "template": TEMPLATE}
    )
    for kind, path, body in (
        ("custom", SCALED, doc("values.test/v1", "Scaled", "x", spec={"replicas": 1})),
        ("deployment", DEPLOYMENTS, deployment("x", replicas=1)),
        ("stateful set", STATEFUL, workload("StatefulSet", "x", serviceName="x", replicas=1)),
        ("controller", CONTROLLERS, controller),
    ):
        yield post(kind, path, body, head=True)
        for title, query, applied in _applied_scales(body):
            yield patch(f"{kind}: apply {title}", f"{path}/x/scale?fieldManager=me{query}", applied, APPLY)
        yield patch(
            f"{kind}: apply one that is missing", f"{path}/no/scale?fieldManager=me", scale("no", 1), APPLY
        )
        yield get(f"{kind}: whose the replicas are", f"{path}/x")
        for title, change in {
            "a text": {"spec": {"replicas": "x"}},
            "too many": {"spec": {"replicas": 2**40}},
            "half a replica": {"spec": {"replicas": 1.5}},
            "another kind": {"kind": "Foo"},
            "another version": {"apiVersion": "v1"},
            "another uid": {"metadata": {"uid": ZERO}},
        }.items():
            yield patch(f"{kind}: merge {title}", f"{path}/x/scale", change)
        strict = f"{path}/x/scale?fieldValidation=Strict"
        yield patch(f"{kind}: merge an unknown field, minded", strict, {"spec": {"foo": 1}})
        yield put(f"{kind}: put", f"{path}/x/scale", scale("x", 3))
        yield get(f"{kind}: whose they are now", f"{path}/x")
        another = doc("autoscaling/v1", "Scale", "x", metadata={"uid": ZERO})
        yield put(f"{kind}: put another uid", f"{path}/x/scale", another)


def _applied_scales(body: Any) -> Iterator[tuple[str, str, Any]]:
    def one(**more: Any) -> dict[str, Any]:
        return doc("autoscaling/v1", "Scale", "x", **more)

    yield "replicas of another", "", scale("x", 2)
    yield "by force", "&force=true", scale("x", 3)
    yield "as many", "", scale("x", 3)
    yield "another kind", "", {**scale("x", 2), "kind": "Foo"}
    yield "the object", "", body
    yield "no spec", "", one()
    yield "a null", "", one(spec={"replicas": None})
    yield "a text", "", one(spec={"replicas": "2"})
    yield "less than none", "&force=true", scale("x", -2)
    yield "half a replica", "&force=true", one(spec={"replicas": 1.5})
    yield "an unknown field", "&force=true", one(spec={"replicas": 2, "foo": 1})
    yield "a status", "&force=true", one(spec={"replicas": 2}, status={"replicas": 9})
    yield "labels", "&force=true", one(metadata={"labels": {"a": "b"}}, spec={"replicas": 2})
    yield "another uid", "&force=true", one(metadata={"uid": ZERO}, spec={"replicas": 2})
    yield "a list", "", b"[]"
    yield "a list for a spec", "", one(spec=[])
    yield "none", "&force=true", scale("x", 0)


TEXTS: Mapping[str, Any] = {
    "none at all": "!!!!",
    "no padding": "abc",
    "padding in between": "ab=c",
    "a line break": "YWJj\nZGVm",
    "a number": 5,
    "a null": None,
    "an object": {},
}


def _base64() -> Iterator[Ask]:
    yield post("secret", SECRETS, doc("v1", "Secret", "s", data={"a": "YQ=="}))
    yield post("config map", CMS, cm("c", binaryData={"a": "YQ=="}))
    for title, text in TEXTS.items():
        data = doc("v1", "Secret", "s", data={"a": text})
        yield post(f"create with {title}", f"{SECRETS}?dryRun=All", {**data, "metadata": {"name": "n"}})
        yield put(f"put {title}", f"{SECRETS}/s?dryRun=All", data)
        for sort, name in ((MERGE, "merge"), (STRATEGIC, "strategic merge")):
            yield patch(f"{name} {title}", f"{SECRETS}/s?dryRun=All", {"data": {"a": text}}, sort)
            binary = {"binaryData": {"a": text}}
            yield patch(f"{name} {title} of a config map", f"{CMS}/c?dryRun=All", binary, sort)
        yield patch(f"json {title}", f"{SECRETS}/s?dryRun=All", [op("add", "/data/b", value=text)], JSONPATCH)
        yield patch(f"apply {title}", f"{SECRETS}/s?dryRun=All&fieldManager=me&force=true", data, APPLY)
        bundle = {"url": "https://x.test/", "caBundle": text}
        hook = {"name": "a.b.c", "clientConfig": bundle, "sideEffects": "None"}
        made = doc(
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            "h",
            webhooks=[{**hook, "admissionReviewVersions": ["v1"]}],
        )
        yield post(f"webhook with {title}", f"{WEBHOOKS}?dryRun=All", made)
        if text is not None:
            asked = {"request": text, "signerName": "a.b/c", "usages": ["client auth"]}
            csr = doc("certificates.k8s.io/v1", "CertificateSigningRequest", "c", spec=asked)
            yield post(f"certificate request with {title}", f"{CSRS}?dryRun=All", csr)
        crd = definition("Conv", obj({}))
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": bundle}
        crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
        yield post(f"definition with {title}", f"{CRDS}?dryRun=All", crd, head=True)


VALUES: Mapping[str, Any] = {
    "a text": "x",
    "an integer": 5,
    "a fraction": 1.5,
    "2.0": 2.0,
    "true": True,
    "a list": ["x"],
    "an object": {"a": "b"},
    "2^40": 2**40,
    "an empty text": "",
}
FIELDS = (
    ("replicas", "spec.replicas"),
    ("a flag", "spec.paused"),
    ("a bound", "spec.strategy.rollingUpdate.maxSurge"),
    ("labels", "metadata.labels"),
    ("a time", "metadata.creationTimestamp"),
    ("a selector", "spec.selector"),
    ("an image", "spec.template.spec.containers.image"),
    ("arguments", "spec.template.spec.containers.args"),
    ("a quantity", "spec.template.spec.containers.resources.limits.cpu"),
)


def _nested(path: str, value: Any) -> Any:
    for name in reversed(path.split(".")):
        value = [{"name": "main", **value}] if name == "containers" else {name: value}
        if name == "containers":
            value = {name: value}
    return value


def _wrong_types() -> Iterator[Ask]:
    yield post("deployment", DEPLOYMENTS, deployment("d", replicas=1), head=True)
    where = f"{DEPLOYMENTS}/d?dryRun=All"
    for field, path in FIELDS:
        for title, value in VALUES.items():
            change = _nested(path, value)
            yield patch(f"strategic merge of {title} for {field}", where, change, STRATEGIC)
            yield patch(f"merge of {title} for {field}", where, change)
            meta = {"name": "d", **change.get("metadata", {})}
            applied = {"apiVersion": "apps/v1", "kind": "Deployment", **change, "metadata": meta}
            yield patch(f"apply {title} for {field}", f"{where}&fieldManager=me&force=true", applied, APPLY)


def autoscaler(name: str, **behavior: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, "behavior": behavior}
    return doc("autoscaling/v2", "HorizontalPodAutoscaler", name, spec=spec)


def _autoscalers() -> Iterator[Ask]:
    yield post("autoscaler", HPAS, autoscaler("b"))
    behaviors: dict[str, dict[str, Any]] = {
        "no policies up": {"scaleUp": {"policies": []}},
        "no policies at all": {"scaleUp": {"policies": []}, "scaleDown": {"policies": []}},
        "a null": {"scaleUp": {"policies": None}},
        "no rules": {"scaleUp": {}},
        "off, without policies": {"scaleDown": {"selectPolicy": "Disabled", "policies": []}},
        "an empty policy": {"scaleDown": {"policies": [{}]}},
    }
    for title, behavior in behaviors.items():
        yield post(f"create with {title}", f"{HPAS}?dryRun=All", autoscaler("n", **behavior))
        yield patch(f"merge {title}", f"{HPAS}/b?dryRun=All", {"spec": {"behavior": behavior}})
        yield patch(
            f"apply {title}", f"{HPAS}/b?dryRun=All&fieldManager=me", autoscaler("b", **behavior), APPLY
        )


def _slices() -> Iterator[Ask]:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    base = {"driver": "values.test", "nodeName": "n", "pool": pool, "devices": [{"name": "d"}]}
    taint = {"key": "a", "effect": "NoSchedule"}
    for title, spec in {
        "good": base,
        "nothing": {},
        "a bad pool": {**base, "pool": {"name": "Bad_", "generation": -1, "resourceSliceCount": 0}},
        "a bad node": {**base, "nodeName": "a b"},
        "an empty node": {**base, "nodeName": ""},
        "two ways": {**base, "allNodes": True},
        "no node": {**base, "nodeName": None, "allNodes": False},
        "a nameless device": {**base, "devices": [{}]},
        "a device twice": {**base, "devices": [{"name": "d"}, {"name": "d"}]},
        "many devices": {**base, "devices": [{"name": f"d{i}"} for i in range(129)]},
        "a node of a device": {**base, "devices": [{"name": "d", "nodeName": "n"}]},
        "nodes by device": {**base, "nodeName": None, "perDeviceNodeSelection": True},
        "a taint": {**base, "devices": [{"name": "d", "taints": [taint]}]},
        "a bad taint": {**base, "devices": [{"name": "d", "taints": [{"key": "a b", "value": "c d"}]}]},
    }.items():
        made = doc("resource.k8s.io/v1", "ResourceSlice", "s", spec=spec)
        yield post(title, f"{SLICES}?dryRun=All", made)


def _others() -> Iterator[Ask]:
    yield post("config map", CMS, cm("c", data={"a": "b"}))
    none: dict[str, Any] = {"metadata": {"managedFields": []}}
    yield patch("no managers, as a rehearsal", f"{CMS}/c?dryRun=All", none)
    yield patch("a null for managers", f"{CMS}/c", {"metadata": {"managedFields": None}})
    yield patch("no managers", f"{CMS}/c", none)
    yield patch("no managers any more", f"{CMS}/c", {"data": {"c": "d"}})
    yield patch("apply a list", f"{CMS}/c?fieldManager=me", b"[]", APPLY)
    yield patch("apply a text", f"{CMS}/c?fieldManager=me", b'"x"', APPLY)
    typed = {
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}, "applyConfiguration": {}}]
    }
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "reinvocationPolicy": "Never", **typed}
    policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    policy = doc("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", "p", spec=spec)
    yield post("a policy with two forms", f"{policies}?dryRun=All", policy)
    long = deployment(
        "long",
        template={
            "spec": {"containers": [{"name": "c", "image": "x" * 256}]},
            "metadata": TEMPLATE["metadata"],
        },
    )
    yield post("a long image", f"{DEPLOYMENTS}?dryRun=All", long)
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "", "backend": backend}]
    ingress = doc("networking.k8s.io/v1", "Ingress", "i", spec={"rules": [{"http": {"paths": paths}}]})
    yield post("an empty type of path", f"{here('ingresses', 'networking.k8s.io')}?dryRun=All", ingress)
    validating = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "a b"}]}
    policy = doc("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "p", spec=validating)
    yield post("one word too many", f"{policies.replace('mutating', 'validating')}?dryRun=All", policy)


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "null-fields": tuple(_nulls()),
    "applied-scales": tuple(_scales()),
    "base64": tuple(_base64()),
    "wrong-types": tuple(_wrong_types()),
    "autoscalers": tuple(_autoscalers()),
    "device-slices": tuple(_slices()),
    "other-values": tuple(_others()),
}
