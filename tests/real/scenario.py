"""One scenario of requests over HTTP, as plain data: all verbs, good and bad, on all sorts of resources.

`scenario_play` sends it to a server, `scenario_plain` takes out of the answers what differs by nature. ``scenario.txt`` is
what a real kube-apiserver 1.36 answered; `scenario_differences` lists where the embedded server answers differently, and
`scenarios` has this one and all others.

``<<name>>`` in a path, a header or a body stands for something an earlier answer said (see `Ask.keep`); ``<<ns>>`` is
the namespace of the chapter, where a ServiceAccount ``default`` is waiting.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.real import scenario_webhooks

JSON = "application/json"
YAML = "application/yaml"
CBOR = "application/cbor"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSONPATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PARTIALS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
ZERO = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Ask:
    """One request, and how to look at its answer."""

    title: str
    method: str
    path: str
    body: Any = None
    """A document, or the very bytes of the body; a number is so many bytes."""
    user: str = "admin"
    """Whose certificate is shown: ``admin`` may do everything, the empty one is nobody's."""
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    """What to remember of the answer, by dotted path."""
    head: bool = False
    """Whether only the code and the headers count."""
    lines: int = 0
    """Of a watch: how many lines to read before hanging up; 0 is to the end."""
    unordered: bool = False
    """Whether a real server tells it in no particular order."""
    until: int = 0
    """A code to wait for, where a real server takes a moment: asked again until it comes."""
    settled: str = ""
    """The dotted path of a field to wait for in the same way."""


def ask(title: str, method: str, path: str, body: Any = None, **more: Any) -> Ask:
    """A request; ``type`` and ``accept`` are headers."""
    headers = dict(more.pop("headers", {}))
    if body is not None:
        headers["Content-Type"] = more.pop("type", JSON)
    if accept := more.pop("accept", ""):
        headers["Accept"] = accept
    return Ask(title, method, path, body, headers=headers, **more)


def get(title: str, path: str, **more: Any) -> Ask:
    return ask(title, "GET", path, **more)


def post(title: str, path: str, body: Any, **more: Any) -> Ask:
    return ask(title, "POST", path, body, **more)


def put(title: str, path: str, body: Any, **more: Any) -> Ask:
    return ask(title, "PUT", path, body, **more)


def patch(title: str, path: str, body: Any, type_: str = MERGE, **more: Any) -> Ask:
    return ask(title, "PATCH", path, body, type=type_, **more)


def delete(title: str, path: str, body: Any = None, **more: Any) -> Ask:
    return ask(title, "DELETE", path, body, **more)


def here(plural: str, group: str = "", version: str = "v1") -> str:
    """Where a resource is served in the namespace of the chapter."""
    return (
        f"/apis/{group}/{version}/namespaces/<<ns>>/{plural}"
        if group
        else f"/api/v1/namespaces/<<ns>>/{plural}"
    )


CMS, SECRETS, PODS, SERVICES, ACCOUNTS = map(
    here, ("configmaps", "secrets", "pods", "services", "serviceaccounts")
)
CONTROLLERS, QUOTAS, LIMITS, EVENTS, CLAIMS = map(
    here, ("replicationcontrollers", "resourcequotas", "limitranges", "events", "persistentvolumeclaims")
)
DEPLOYMENTS, SETS, STATEFUL, DAEMONS = (
    here(plural, "apps") for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")
)
JOBS, CRONJOBS = here("jobs", "batch"), here("cronjobs", "batch")
HPAS = here("horizontalpodautoscalers", "autoscaling", "v2")
HPAS1 = here("horizontalpodautoscalers", "autoscaling", "v1")
BUDGETS = here("poddisruptionbudgets", "policy")
INGRESSES, POLICIES = here("ingresses", "networking.k8s.io"), here("networkpolicies", "networking.k8s.io")
LEASES, SLICES = here("leases", "coordination.k8s.io"), here("endpointslices", "discovery.k8s.io")
NEWEVENTS = here("events", "events.k8s.io")
ROLES, BINDINGS = (
    here("roles", "rbac.authorization.k8s.io"),
    here("rolebindings", "rbac.authorization.k8s.io"),
)
NAMESPACES, NODES, VOLUMES = "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/persistentvolumes"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
STORAGES = "/apis/storage.k8s.io/v1/storageclasses"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


# -- documents --------------------------------------------------------------------------------


def doc(api_version: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    meta = {"name": name, **more.pop("metadata", {})} if name else more.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **more}


def cm(name: str, **more: Any) -> dict[str, Any]:
    return doc("v1", "ConfigMap", name, **more)


def pod(name: str, meta: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.test/app:1"}]
    full = {"automountServiceAccountToken": False, "containers": containers, **spec}
    return doc("v1", "Pod", name, metadata=dict(meta or {}), spec=full)


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "app"}]},
}
RICH: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "serviceAccountName": "sa",
        "containers": [
            {
                "name": "main",
                "image": "registry.test:5000/app@sha256:" + "0" * 64,
                "ports": [{"containerPort": 80}],
                "env": [
                    {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                ],
                "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
                "livenessProbe": {"httpGet": {"port": 80}},
                "readinessProbe": {"grpc": {"port": 81}},
                "startupProbe": {"exec": {"command": ["true"]}},
                "lifecycle": {"preStop": {"httpGet": {"port": 82}}},
                "volumeMounts": [{"name": "e", "mountPath": "/e"}],
                "securityContext": {},
            }
        ],
        "volumes": [
            {"name": "e"},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "c", "configMap": {"name": "c"}},
            {"name": "h", "hostPath": {"path": "/h"}},
            {
                "name": "d",
                "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "name": "m",
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        }
                    }
                },
            },
        ],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        ],
    },
}


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    base = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    return doc("apps/v1", kind, name, spec={**base, **spec})


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    return workload("Deployment", name, **spec)


def job(name: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "j:latest"}], "restartPolicy": "Never"}}
    return doc("batch/v1", "Job", name, spec={"template": template, **spec})


def token(revision: int, start: str) -> str:
    """A continue token as servers write it."""
    raw = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


REQUEST = """-----BEGIN CERTIFICATE REQUEST-----
MIHcMIGDAgEAMCExDjAMBgNVBAMMBWFsaWNlMQ8wDQYDVQQKDAZwZW9wbGUwWTAT
BgcqhkjOPQIBBggqhkjOPQMBBwNCAAS3WWaq/U0lO8Xzrnj4495CWDHdmNFft4ot
lFZHr1JYUpDiGZyMRXK16xwePOeEYGfuzWs3Daz58FtOqmsFhgEAoAAwCgYIKoZI
zj0EAwIDSAAwRQIgCSozK0fNx/qHllQog8bR2OEhsfN7CF2/I4omXspepckCIQD4
ZLtJJBjtgKHmuYix4mJTF2/xqqBmk9hYPjZjEvyXug==
-----END CERTIFICATE REQUEST-----
"""
CSR = {"request": base64.b64encode(REQUEST.encode()).decode(), "signerName": "example.com/signer"}
"""Who asks is alice, of people."""


# -- chapters ---------------------------------------------------------------------------------

# fmt: off
# One request is one line.

PATHS = (
    get("root", "/", head=True),
    get("nowhere", "/nope"),
    get("no such resource", "/api/v1/nope"),
    get("no such resource in a namespace", "/api/v1/namespaces/<<ns>>/nope"),
    get("no such group", "/apis/nope.io"),
    get("no such version of no group", "/apis/nope.io/v1"),
    get("a resource of no group", "/apis/nope.io/v1/x"),
    get("a resource of no version", "/apis/apps/v9/deployments"),
    get("a doubled slash", "//api/v1/namespaces"),
    get("too deep", f"{CMS}/x/y/z"),
    get("no such subresource", f"{CMS}/x/status"),
    get("a cluster's thing in a namespace", "/api/v1/namespaces/<<ns>>/nodes"),
    get("a namespace's thing without one", "/api/v1/pods/x"),
    ask("POST without a namespace", "POST", "/api/v1/pods", pod("x")),
    ask("PUT of many", "PUT", CMS, cm("x")),
    ask("POST of one", "POST", f"{CMS}/x", cm("x")),
    ask("DELETE of all namespaces", "DELETE", NAMESPACES),
    ask("PATCH of many", "PATCH", CMS, {}, type=MERGE),
    ask("OPTIONS", "OPTIONS", "/api/v1/pods"),
    ask("HEAD", "HEAD", "/api/v1/namespaces/<<ns>>"),
    ask("HEAD of nothing", "HEAD", f"{CMS}/nope"),
    ask("a verb of nobody's", "BREW", f"{CMS}/x"),
    ask("POST to the version", "POST", "/version", {}),
    get("version", "/version", head=True),
    get("healthz", "/healthz"),
    get("livez", "/livez"),
    get("readyz", "/readyz"),
    get("readyz, in words", "/readyz?verbose"),
    get("livez of a part", "/livez/ping"),
    get("livez of no part", "/livez/nope"),
    get("readyz without a part", "/readyz?exclude=ping"),
    get("metrics", "/metrics", head=True),
    get("openapi v2", "/openapi/v2", head=True),
    get("openapi v3", "/openapi/v3", head=True),
    get("openapi v3 of a group", "/openapi/v3/apis/apps/v1", head=True),
    get("openapi v3 of nothing", "/openapi/v3/nope"),
    get("openid configuration", "/.well-known/openid-configuration"),
    get("api", "/api"),
    get("apis", "/apis"),
    get("a group", "/apis/apps"),
    get("a version of a group", "/apis/apps/v1"),
    get("core resources", "/api/v1"),
    get("autoscaling v1", "/apis/autoscaling/v1"),
    get("api, aggregated", "/api", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    get("apis, aggregated", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    get("apis, aggregated once", "/apis", accept="application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"),
    get("component statuses", "/api/v1/componentstatuses/nope"),
    get("reviews are not read", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
)

CREATING = (
    post("create", CMS, cm("c", metadata={"labels": {"a": "b"}}, data={"k": "v"}, binaryData={"b": "AAE="})),
    post("again", CMS, cm("c")),
    post("in another namespace", CMS, cm("d", metadata={"namespace": "x"})),
    post("in no namespace there is", "/api/v1/namespaces/nowhere/configmaps", cm("d")),
    post("nameless", CMS, cm("")),
    post("a bad name", CMS, cm("Bad_Name")),
    post("bad in many ways", CMS, cm("x" * 254, metadata={"labels": {"a b": "c d"}, "annotations": {"-": "x"}})),
    post("with a version", CMS, cm("f", metadata={"resourceVersion": "5"})),
    post("a name of the server's", CMS, cm("", metadata={"generateName": "gen-"})),
    post("a bad name of the server's", CMS, cm("", metadata={"generateName": "Bad_gen-"})),
    post("a name and a prefix", CMS, cm("both", metadata={"generateName": "gen-"})),
    post("what only the server says", CMS, cm("g", metadata={"uid": ZERO, "generation": 7, "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x"})),
    post("two controllers", CMS, cm("h", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in ("one", "two")]})),
    post("an owner that is none", CMS, cm("h", metadata={"ownerReferences": [{"kind": "Pod"}]})),
    post("bad finalizers", CMS, cm("h", metadata={"finalizers": ["plain", "a b"]})),
    post("a bad key of data", CMS, cm("h", data={"a/b": "x"}, binaryData={"..": "AAE="})),
    post("a key twice", CMS, cm("h", data={"k": "x"}, binaryData={"k": "AAE="})),
    post("rehearsed", f"{CMS}?dryRun=All", cm("dry")),
    get("and not there", f"{CMS}/dry"),
    post("rehearsed in part", f"{CMS}?dryRun=Some", cm("dry")),
    post("a bad manager", f"{CMS}?fieldManager={'x' * 129}", cm("dry")),
    post("a manager", f"{CMS}?fieldManager=me", cm("managed", data={"k": "v"})),
    get("read", f"{CMS}/c"),
    get("read what is not there", f"{CMS}/missing"),
    get("read what is not there in a group", f"{DEPLOYMENTS}/missing"),
    post("a cluster's thing", PRIORITIES, doc("scheduling.k8s.io/v1", "PriorityClass", "p", value=7)),
    post("a cluster's thing again", PRIORITIES, doc("scheduling.k8s.io/v1", "PriorityClass", "p", value=7)),
    get("read a cluster's thing", f"{PRIORITIES}/p"),
    delete("delete a cluster's thing", f"{PRIORITIES}/p"),
    post("a node", NODES, doc("v1", "Node", "scene-node", status={"capacity": {"pods": "9"}})),
    patch("a node's status", f"{NODES}/scene-node/status", {"status": {"phase": "Running"}}),
    patch("a node is cordoned", f"{NODES}/scene-node", {"spec": {"unschedulable": True}}),
    delete("delete a node", f"{NODES}/scene-node"),
)

BODIES = (
    post("malformed", CMS, b"{bad"),
    post("cut off", CMS, b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"'),
    post("a list", CMS, b"[]"),
    post("a number", CMS, b"7"),
    post("text", CMS, b'"x"'),
    post("null", CMS, b"null"),
    post("nothing", CMS, b""),
    post("two documents", CMS, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"two"}} {}'),
    post("bad encoding", CMS, b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"\xff"}}'),
    post("another kind", CMS, doc("v1", "Secret", "b")),
    post("another version", CMS, {**cm("b"), "apiVersion": "v2"}),
    post("another group", DEPLOYMENTS, doc("extensions/v1beta1", "Deployment", "b")),
    post("a kind of nobody's", CMS, {**cm("b"), "kind": "Nope"}),
    post("without kind and version", CMS, {"metadata": {"name": "plain"}}),
    post("a list of them", CMS, {"apiVersion": "v1", "kind": "ConfigMapList", "items": [cm("x")]}),
    post("a wrong type", CMS, cm("b", data={"k": 1})),
    post("a wrong type deep down", PODS, pod("b", containers=[{"name": "c", "image": "i", "ports": [{"containerPort": "x"}]}])),
    post("a list for a map", CMS, cm("b", data=["x"])),
    post("text for metadata", CMS, {**cm("b"), "metadata": "x"}),
    post("a number for text", CMS, {**cm("b"), "metadata": {"name": 7}}),
    post("a fraction for a number", DEPLOYMENTS, deployment("b", replicas=1.5)),
    post("too large a number", DEPLOYMENTS, deployment("b", replicas=1 << 40)),
    post("a bad time", CMS, cm("b", metadata={"creationTimestamp": "yesterday"})),
    post("a bad quantity", PODS, pod("b", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "x"}}}])),
    post("bad base64", SECRETS, doc("v1", "Secret", "b", data={"k": "!"})),
    post("nulls", CMS, {**cm("nulls"), "data": None}),
    post("an unknown field", CMS, {**cm("warned"), "x": 1}),
    post("an unknown field, minded", f"{CMS}?fieldValidation=Strict", {**cm("b"), "x": 1, "y": {}}),
    post("an unknown field, not minded", f"{CMS}?fieldValidation=Ignore", {**cm("silent"), "x": 1}),
    post("a field twice", CMS, b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice","name":"twice"}}'),
    post("a field twice, minded", f"{CMS}?fieldValidation=Strict", b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","name":"b"}}'),
    post("another case of a field", f"{CMS}?fieldValidation=Strict", {**cm("b"), "Data": {}}),
    post("unknown fields deep down", f"{DEPLOYMENTS}?fieldValidation=Strict", deployment("b", typo=1, template={**TEMPLATE, "x": 2})),
    post("a way of minding that is none", f"{CMS}?fieldValidation=Nope", cm("b")),
    post("text/plain", CMS, cm("b"), type="text/plain"),
    post("a form with parameters", CMS, cm("charset"), type="application/json; charset=utf-8"),
    post("no form", CMS, cm("formless"), headers={}, type=""),
    post("YAML", CMS, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: 'yes'}\n", type=YAML),
    post("bad YAML", CMS, b"a: b: c", type=YAML),
    post("YAML with a field twice", CMS, b"kind: ConfigMap\nmetadata:\n  name: y2\n  name: y2\nx: 1\n", type=YAML),
    post("YAML with a wrong type", CMS, b"kind: ConfigMap\nmetadata: {name: y3}\ndata: {a: yes}\n", type=YAML),
    post("bad protobuf", CMS, b"k8s\0\xff\xff\xff", type=PROTOBUF),
    post("no protobuf at all", CMS, b"{}", type=PROTOBUF),
    post("CBOR", CMS, bytes.fromhex("d9d9f7a0"), type=CBOR),
    post("deeper than anybody needs", CMS, b'{"metadata":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001),
    post("as large as may be", CMS, cm("large", data={"k": "x" * 1_048_577})),
    post("a hundred megabytes", CMS, 100_000_000),
    patch("a large patch", f"{CMS}/plain", 4_000_000),
    post("maps of nothing", PODS, {**pod("empty", nodeSelector={}, containers=[{"name": "c", "image": "i", "resources": {"limits": {}}, "env": []}]), "metadata": {"name": "empty", "labels": {}, "annotations": {}}}),
    get("as YAML", f"{CMS}/plain", accept=YAML),
    get("as anything", f"{CMS}/plain", accept="*/*"),
    get("as application/*", f"{CMS}/plain", accept="application/*"),
    get("as the first that is known", f"{CMS}/plain", accept="text/html,application/json;q=0.5"),
    get("as HTML", f"{CMS}/plain", accept="text/html"),
    get("as protobuf only", f"{CMS}/plain", accept=PROTOBUF),
    get("as CBOR only", f"{CMS}/plain", accept=CBOR),
    get("as protobuf or JSON", f"{CMS}/plain", accept=f"{PROTOBUF},{JSON}"),
    get("pretty", f"{CMS}/plain?pretty=true"),
    get("as a table", f"{CMS}/plain", accept=TABLE),
    get("as a table without objects", f"{CMS}?includeObject=None&fieldSelector=metadata.name=plain", accept=TABLE),
    get("as a table with objects", f"{CMS}?includeObject=Object&fieldSelector=metadata.name=plain", accept=TABLE),
    get("as a table with what is none", f"{CMS}?includeObject=Nope", accept=TABLE),
    get("many as a table", f"{CMS}?limit=2", accept=TABLE),
    get("as a table of nobody's", f"{CMS}/plain", accept="application/json;as=Table;v=v9;g=meta.k8s.io"),
    get("metadata", f"{CMS}/plain", accept=PARTIAL),
    get("metadata of many", f"{CMS}?fieldSelector=metadata.name=plain", accept=PARTIALS),
    get("metadata of one as of many", f"{CMS}/plain", accept=PARTIALS),
    get("a table of pods or JSON", PODS, accept=f"{TABLE},{JSON}"),
    get("a table of what is not there", f"{CMS}/nope", accept=TABLE),
)

READING = (
    *(post(f"secret {name}", SECRETS, doc("v1", "Secret", name, metadata={"labels": {"n": name}}, type=f"t/{name}")) for name in "abcd"),
    get("all", SECRETS, keep={"now": "metadata.resourceVersion"}),
    get("limit", f"{SECRETS}?limit=2", keep={"more": "metadata.continue"}),
    get("the rest", f"{SECRETS}?limit=2&continue=<<more>>"),
    get("a continue and a version", f"{SECRETS}?limit=2&continue=<<more>>&resourceVersion=<<now>>"),
    get("a continue and a match", f"{SECRETS}?limit=2&continue=<<more>>&resourceVersionMatch=Exact"),
    get("limit with a selector", f"{SECRETS}?limit=1&labelSelector=n!%3Db"),
    get("no continue", f"{SECRETS}?continue=x"),
    get("a continue without a start", f"{SECRETS}?continue={token(5, '')}"),
    get("a continue without a version", f"{SECRETS}?continue={token(0, 'x')}"),
    get("a continue out of the way", f"{SECRETS}?limit=1&continue={token(5, '../x')}"),
    get("a bad limit", f"{SECRETS}?limit=x"),
    get("a limit below zero", f"{SECRETS}?limit=-1"),
    get("version 0", f"{SECRETS}?resourceVersion=0"),
    get("not older", f"{SECRETS}?resourceVersion=<<now>>&resourceVersionMatch=NotOlderThan"),
    delete("one goes", f"{SECRETS}/d"),
    get("exactly then", f"{SECRETS}?resourceVersion=<<now>>&resourceVersionMatch=Exact"),
    get("at least then", f"{SECRETS}?resourceVersion=<<now>>"),
    get("exactly then, by a limit", f"{SECRETS}?resourceVersion=<<now>>&limit=3"),
    get("a version to come", f"{SECRETS}?resourceVersion=9999999999"),
    get("exactly a version to come", f"{SECRETS}?resourceVersion=9999999999&resourceVersionMatch=Exact"),
    get("a bad version", f"{SECRETS}?resourceVersion=x"),
    get("a match without a version", f"{SECRETS}?resourceVersionMatch=Exact"),
    get("a match of nobody's", f"{SECRETS}?resourceVersion=5&resourceVersionMatch=Nope"),
    get("exactly version 0", f"{SECRETS}?resourceVersion=0&resourceVersionMatch=Exact"),
    get("initial events of a list", f"{SECRETS}?sendInitialEvents=true"),
    get("one at a version", f"{SECRETS}/a?resourceVersion=0"),
    get("one at a bad version", f"{SECRETS}/a?resourceVersion=x"),
    get("one at a version to come", f"{SECRETS}/a?resourceVersion=9999999999"),
    get("by labels", f"{SECRETS}?labelSelector=n+in+(a,b),n!%3Da"),
    get("by a label that is there", f"{SECRETS}?labelSelector=n,!x"),
    get("by a label that is greater", f"{SECRETS}?labelSelector=n%3E5"),
    get("by bad labels", f"{SECRETS}?labelSelector=a+in+b"),
    get("by bad label values", f"{SECRETS}?labelSelector=a%3Db%20c!"),
    get("by fields", f"{SECRETS}?fieldSelector=type%3Dt/b"),
    get("by name", f"{SECRETS}?fieldSelector=metadata.name%3Dc"),
    get("by other names", f"{SECRETS}?fieldSelector=metadata.name!%3Dc,type!%3Dt/a"),
    get("by a field there is not", f"{SECRETS}?fieldSelector=data%3Dx"),
    get("by a field of a plain kind", f"{CMS}?fieldSelector=data%3Dx"),
    get("by a malformed field", f"{SECRETS}?fieldSelector=type"),
    get("by a name in another namespace", f"{SECRETS}?fieldSelector=metadata.namespace%3Dother"),
    get("pods by fields", f"{PODS}?fieldSelector=spec.nodeName%3Dn1,status.phase!%3DFailed"),
    get("pods by a bad field", f"{PODS}?fieldSelector=spec.priority%3D1"),
    get("everywhere by name", "/api/v1/secrets?fieldSelector=metadata.name%3Da,metadata.namespace%3D<<ns>>"),
    ask("COMPACT", "COMPACT", ""),
    get("what is forgotten", f"{SECRETS}?limit=2&continue=<<more>>", keep={"inexact": "metadata.continue"}),
    get("what is forgotten, inexactly", f"{SECRETS}?limit=2&continue=<<inexact>>"),
    get("exactly what is forgotten", f"{SECRETS}?resourceVersion=2&resourceVersionMatch=Exact"),
    get("a watch from what is forgotten", f"{EVENTS}?watch=1&resourceVersion=2", lines=1),
)

UPDATING = (
    post("made", CMS, cm("u", data={"k": "1"}), keep={"v": "metadata.resourceVersion", "uid": "metadata.uid"}),
    put("no change is no write", f"{CMS}/u", cm("u", data={"k": "1"}, metadata={"uid": "<<uid>>", "resourceVersion": "<<v>>"})),
    put("changed", f"{CMS}/u", cm("u", data={"k": "2"}, metadata={"resourceVersion": "<<v>>"})),
    put("outdated", f"{CMS}/u", cm("u", data={"k": "3"}, metadata={"resourceVersion": "<<v>>"})),
    put("a bad version", f"{CMS}/u", cm("u", data={"k": "3"}, metadata={"resourceVersion": "x"})),
    put("whatever it was", f"{CMS}/u", cm("u", data={"k": "4"})),
    put("another name", f"{CMS}/u", cm("v")),
    put("no name", f"{CMS}/u", cm("")),
    put("another namespace", f"{CMS}/u", cm("u", metadata={"namespace": "x"})),
    put("another uid", f"{CMS}/u", cm("u", metadata={"uid": ZERO})),
    put("what is not there", f"{CMS}/missing", cm("missing")),
    put("another kind", f"{CMS}/u", doc("v1", "Secret", "u")),
    put("rehearsed", f"{CMS}/u?dryRun=All", cm("u", data={"k": "dry"})),
    get("and as before", f"{CMS}/u"),
    put("a bad label", f"{CMS}/u", cm("u", metadata={"labels": {"a": "b c"}})),
    put("made immutable", f"{CMS}/u", cm("u", data={"k": "4"}, immutable=True)),
    put("immutable", f"{CMS}/u", cm("u", data={"k": "5"})),
    patch("immutable for good", f"{CMS}/u", {"immutable": False}),
    put("made by PUT", f"{LEASES}/l", doc("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "me", "leaseDurationSeconds": 15})),
    put("a lease without a version", f"{LEASES}/l", doc("coordination.k8s.io/v1", "Lease", "l", spec={"holderIdentity": "you"})),
    put("made by PUT with a uid", f"{LEASES}/n", doc("coordination.k8s.io/v1", "Lease", "n", metadata={"uid": ZERO})),
    patch("a moment", f"{LEASES}/l", {"spec": {"renewTime": "2020-01-01T00:00:00.5+01:00"}}),
)

PATCHING = (
    post("deployment", DEPLOYMENTS, deployment("p")),
    patch("merge", f"{DEPLOYMENTS}/p", {"metadata": {"labels": {"x": "y"}}}),
    patch("a spec", f"{DEPLOYMENTS}/p", {"spec": {"replicas": 2}}),
    patch("an annotation", f"{DEPLOYMENTS}/p", {"metadata": {"annotations": {"x": "y"}}}),
    patch("null", f"{DEPLOYMENTS}/p", {"metadata": {"labels": None}}),
    patch("nothing", f"{DEPLOYMENTS}/p", {}),
    patch("strategic", f"{DEPLOYMENTS}/p", {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}}}, STRATEGIC),
    patch("strategic, taken away", f"{DEPLOYMENTS}/p", {"spec": {"template": {"spec": {"containers": [{"$patch": "delete", "name": "side"}]}}}}, STRATEGIC),
    patch("strategic, replaced", f"{DEPLOYMENTS}/p", {"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}, STRATEGIC),
    patch("strategic of no key", f"{DEPLOYMENTS}/p", {"spec": {"template": {"spec": {"containers": [{"image": "s:1"}]}}}}, STRATEGIC),
    patch("strategic of nobody's", f"{DEPLOYMENTS}/p", {"spec": {"strategy": {"$patch": "nope"}}}, STRATEGIC),
    patch("strategic order", f"{DEPLOYMENTS}/p", {"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "main"}]}}}}, STRATEGIC),
    patch("json", f"{DEPLOYMENTS}/p", [{"op": "replace", "path": "/spec/replicas", "value": 5}], JSONPATCH),
    patch("json that does not hold", f"{DEPLOYMENTS}/p", [{"op": "test", "path": "/spec/replicas", "value": 6}], JSONPATCH),
    patch("json of nothing", f"{DEPLOYMENTS}/p", [{"op": "remove", "path": "/spec/nothing"}], JSONPATCH),
    patch("json of no operation", f"{DEPLOYMENTS}/p", [{"op": "nope", "path": "/spec"}], JSONPATCH),
    patch("json that is no list", f"{DEPLOYMENTS}/p", {"op": "add"}, JSONPATCH),
    patch("json of the root", f"{DEPLOYMENTS}/p", [{"op": "replace", "path": "", "value": 7}], JSONPATCH),
    patch("json that moves", f"{DEPLOYMENTS}/p", [{"op": "add", "path": "/metadata/labels", "value": {"a~b": "1"}}, {"op": "copy", "from": "/metadata/labels/a~0b", "path": "/metadata/labels/c"}], JSONPATCH),
    patch("outdated", f"{DEPLOYMENTS}/p", {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 9}}),
    patch("another uid", f"{DEPLOYMENTS}/p", {"metadata": {"uid": ZERO}, "spec": {"replicas": 9}}),
    patch("another name", f"{DEPLOYMENTS}/p", {"metadata": {"name": "q"}}),
    patch("another kind", f"{DEPLOYMENTS}/p", {"kind": "StatefulSet"}),
    patch("what is not there", f"{DEPLOYMENTS}/missing", {"spec": {"replicas": 1}}),
    patch("what is not there, malformed", f"{DEPLOYMENTS}/missing", b"{bad"),
    patch("what is not there, strategic of nobody's", f"{DEPLOYMENTS}/missing", {"spec": {"$patch": "nope"}}, STRATEGIC),
    patch("malformed", f"{DEPLOYMENTS}/p", b"{bad"),
    patch("a list to merge", f"{DEPLOYMENTS}/p", []),
    patch("a wrong type", f"{DEPLOYMENTS}/p", {"spec": {"replicas": "x"}}),
    patch("a wrong type, strategic", f"{DEPLOYMENTS}/p", {"spec": {"replicas": "x"}}, STRATEGIC),
    patch("not valid", f"{DEPLOYMENTS}/p", {"spec": {"replicas": -1, "minReadySeconds": -1}}),
    patch("an unknown field", f"{DEPLOYMENTS}/p", {"spec": {"typo": 1}}),
    patch("an unknown field, minded", f"{DEPLOYMENTS}/p?fieldValidation=Strict", {"spec": {"typo": 1}}),
    patch("forced", f"{DEPLOYMENTS}/p?force=true", {"spec": {"replicas": 1}}),
    patch("rehearsed", f"{DEPLOYMENTS}/p?dryRun=All", {"spec": {"replicas": 77}}),
    patch("of no kind", f"{DEPLOYMENTS}/p", {}, JSON),
    patch("as CBOR", f"{DEPLOYMENTS}/p", b"\xa0", "application/apply-patch+cbor"),
    patch("strategic of a Service", f"{SERVICES}/nope", {}, STRATEGIC),
    patch("selector", f"{DEPLOYMENTS}/p", {"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
    get("read", f"{DEPLOYMENTS}/p"),
)

APPLYING = (
    patch("without a manager", f"{CMS}/a", cm("a"), APPLY),
    patch("make", f"{CMS}/a?fieldManager=one", cm("a", data={"k": "1", "m": "1"}), APPLY),
    patch("again", f"{CMS}/a?fieldManager=one", cm("a", data={"k": "1", "m": "1"}), APPLY),
    patch("share", f"{CMS}/a?fieldManager=two", cm("a", data={"k": "1", "n": "2"}), APPLY),
    patch("conflict", f"{CMS}/a?fieldManager=two", cm("a", data={"k": "2", "m": "2", "n": "2"}), APPLY),
    patch("force", f"{CMS}/a?fieldManager=two&force=true", cm("a", data={"k": "2", "n": "2"}), APPLY),
    patch("let go", f"{CMS}/a?fieldManager=one", cm("a"), APPLY),
    patch("YAML", f"{CMS}/a?fieldManager=yaml", b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {y: z}\n", APPLY),
    patch("bad YAML", f"{CMS}/a?fieldManager=yaml", b"a: b: c", APPLY),
    patch("a field twice", f"{CMS}/a?fieldManager=yaml", b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata: {y: z, y: z}\n", APPLY),
    patch("an unknown field", f"{CMS}/a?fieldManager=one", {**cm("a"), "x": 1}, APPLY),
    patch("without a kind", f"{CMS}/a?fieldManager=one", {"metadata": {"name": "a"}}, APPLY),
    patch("another kind", f"{CMS}/a?fieldManager=one", doc("v1", "Secret", "a"), APPLY),
    patch("another version", f"{CMS}/a?fieldManager=one", doc("v2", "ConfigMap", "a"), APPLY),
    patch("another name", f"{CMS}/a?fieldManager=one", cm("b"), APPLY),
    patch("no name", f"{CMS}/a?fieldManager=one", cm(""), APPLY),
    patch("with managed fields", f"{CMS}/a?fieldManager=one", cm("a", metadata={"managedFields": [{"manager": "x"}]}), APPLY),
    patch("a wrong type", f"{CMS}/a?fieldManager=one", cm("a", data={"k": 1}), APPLY),
    patch("outdated", f"{CMS}/a?fieldManager=one", cm("a", metadata={"resourceVersion": "1"}, data={"z": "1"}), APPLY),
    patch("rehearsed", f"{CMS}/a?fieldManager=dry&dryRun=All", cm("a", data={"dry": "1"}), APPLY),
    patch("a Deployment", f"{DEPLOYMENTS}/d?fieldManager=one", deployment("d", replicas=1), APPLY),
    patch("a container more", f"{DEPLOYMENTS}/d?fieldManager=two", doc("apps/v1", "Deployment", "d", spec={"template": {"spec": {"containers": [{"name": "side", "image": "s"}]}}}), APPLY),
    patch("two conflicts", f"{DEPLOYMENTS}/d?fieldManager=three", deployment("d", replicas=3, template={**TEMPLATE, "spec": {"containers": [{"name": "main", "image": "b"}]}}), APPLY),
    patch("a key twice", f"{DEPLOYMENTS}/d?fieldManager=three", deployment("d", template={**TEMPLATE, "spec": {"containers": [{"name": "m"}, {"name": "m"}]}}), APPLY),
    patch("not valid", f"{DEPLOYMENTS}/d?fieldManager=three&force=true", deployment("d", replicas=-3), APPLY),
    patch("a status", f"{DEPLOYMENTS}/d/status?fieldManager=boss", doc("apps/v1", "Deployment", "d", status={"replicas": 1}), APPLY),
    patch("a scale", f"{DEPLOYMENTS}/d/scale?fieldManager=scaler", doc("autoscaling/v1", "Scale", "d", spec={"replicas": 4}), APPLY),
    patch("a scale by force", f"{DEPLOYMENTS}/d/scale?fieldManager=scaler&force=true", doc("autoscaling/v1", "Scale", "d", spec={"replicas": 4}), APPLY),
    patch("a scale by merge", f"{DEPLOYMENTS}/d/scale?fieldManager=merger", {"spec": {"replicas": 6}}),
    get("its scale", f"{DEPLOYMENTS}/d/scale"),
    get("its owners", f"{DEPLOYMENTS}/d"),
    patch("a scale of nothing", f"{DEPLOYMENTS}/nope/scale?fieldManager=s", doc("autoscaling/v1", "Scale", "nope", spec={"replicas": 4}), APPLY),
    patch("a scale of another kind", f"{DEPLOYMENTS}/d/scale?fieldManager=s", deployment("d"), APPLY),
    post("a pod", PODS, pod("p", nodeName="n1")),
    patch("ephemeral containers", f"{PODS}/p/ephemeralcontainers?fieldManager=dbg", doc("v1", "Pod", "p", spec={"ephemeralContainers": [{"name": "e", "image": "i"}]}), APPLY),
    patch("a size", f"{PODS}/p/resize?fieldManager=size", doc("v1", "Pod", "p", spec={"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}), APPLY),
    post("a request", CSRS, doc("certificates.k8s.io/v1", "CertificateSigningRequest", "applied", spec={**CSR, "usages": ["client auth"]})),
    patch("an approval", f"{CSRS}/applied/approval?fieldManager=boss", doc("certificates.k8s.io/v1", "CertificateSigningRequest", "applied", status={"conditions": [{"type": "Approved", "status": "True", "reason": "Fine", "message": "ok"}]}), APPLY),
    patch("a Service", f"{SERVICES}/s?fieldManager=one", doc("v1", "Service", "s", spec={"ports": [{"port": 80}], "selector": {"a": "b"}}), APPLY),
    patch("a port more", f"{SERVICES}/s?fieldManager=two", doc("v1", "Service", "s", spec={"ports": [{"port": 81, "protocol": "TCP", "name": "x"}]}), APPLY),
    delete("gone", f"{CMS}/a"),
    patch("with a uid", f"{CMS}/a?fieldManager=one", cm("a", metadata={"uid": ZERO}), APPLY),
)

DELETING = (
    post("held", CMS, cm("held", metadata={"finalizers": ["example.com/hold"]}), keep={"uid": "metadata.uid", "v": "metadata.resourceVersion"}),
    delete("another uid", f"{CMS}/held", {"preconditions": {"uid": ZERO}}),
    delete("another version", f"{CMS}/held", {"preconditions": {"resourceVersion": "1"}}),
    delete("exactly this", f"{CMS}/held", {"preconditions": {"uid": "<<uid>>", "resourceVersion": "<<v>>"}}),
    get("waits for its finalizer", f"{CMS}/held"),
    delete("again", f"{CMS}/held"),
    post("made meanwhile", CMS, cm("held")),
    patch("no further finalizers", f"{CMS}/held", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
    patch("the last finalizer", f"{CMS}/held", {"metadata": {"finalizers": None}}),
    get("gone", f"{CMS}/held"),
    delete("what is not there", f"{CMS}/held"),
    post("plain", CMS, cm("plain")),
    delete("a policy of nobody's", f"{CMS}/plain?propagationPolicy=Nope"),
    delete("two policies", f"{CMS}/plain", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    delete("a bad grace", f"{CMS}/plain?gracePeriodSeconds=x"),
    delete("malformed", f"{CMS}/plain", b"{bad"),
    delete("options of another kind", f"{CMS}/plain", {"kind": "Nope", "apiVersion": "v1"}),
    delete("options of meta", f"{CMS}/plain?dryRun=All", {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]}),
    delete("rehearsed", f"{CMS}/plain?dryRun=All"),
    delete("for good", f"{CMS}/plain"),
    *(each for policy in ("Foreground", "Orphan", "Background") for each in (post(f"to go {policy}", DEPLOYMENTS, deployment(f"dep-{policy.lower()}")), delete(f"goes {policy}", f"{DEPLOYMENTS}/dep-{policy.lower()}", {"propagationPolicy": policy}), get(f"gone {policy}", f"{DEPLOYMENTS}/dep-{policy.lower()}"))),
    post("a job", JOBS, job("j")),
    delete("a job goes", f"{JOBS}/j"),
    get("a job orphans by default", f"{JOBS}/j"),
    post("a controller", CONTROLLERS, doc("v1", "ReplicationController", "rc", spec={"template": TEMPLATE})),
    delete("a controller goes", f"{CONTROLLERS}/rc?orphanDependents=false"),
    *(post(f"secret {i}", SECRETS, doc("v1", "Secret", f"s{i}", metadata={"labels": {"odd": str(i % 2)}})) for i in range(4)),
    delete("a collection, rehearsed", f"{SECRETS}?labelSelector=odd%3D0&dryRun=All"),
    delete("a collection", f"{SECRETS}?labelSelector=odd%3D0"),
    get("what is left", SECRETS),
    delete("a collection by a bad selector", f"{SECRETS}?labelSelector=a+in+b"),
    delete("a collection of nothing", f"{SECRETS}?labelSelector=odd%3D7"),
    delete("a collection by name", f"{SECRETS}?fieldSelector=metadata.name%3Ds1", {"propagationPolicy": "Background"}),
    delete("a ServiceAccount", f"{ACCOUNTS}/default"),
)

RUNNING = [{"type": "Ready", "status": "True"}]
PODS_ = (
    post("a pod", PODS, pod("bound")),
    post("bind", f"{PODS}/bound/binding", doc("v1", "Binding", "bound", target={"kind": "Node", "name": "n1"})),
    get("bound", f"{PODS}/bound"),
    post("bind again", f"{PODS}/bound/binding", doc("v1", "Binding", "bound", target={"kind": "Node", "name": "n1"})),
    post("bind nobody", f"{PODS}/nobody/binding", doc("v1", "Binding", "nobody", target={"kind": "Node", "name": "n1"})),
    post("bind another", f"{PODS}/bound/binding", doc("v1", "Binding", "other", target={"kind": "Node", "name": "n1"})),
    post("bind to nothing", f"{PODS}/bound/binding", doc("v1", "Binding", "bound", target={"kind": "Nope"})),
    post("bind the old way", here("bindings"), doc("v1", "Binding", "bound", target={"kind": "Node", "name": "n1"})),
    get("a binding is not read", f"{PODS}/bound/binding"),
    patch("status", f"{PODS}/bound/status", {"status": {"phase": "Running", "conditions": RUNNING}}),
    put("status without a spec", f"{PODS}/bound/status", doc("v1", "Pod", "bound", status={"phase": "Running", "podIP": "10.1.2.3"})),
    patch("a bad status", f"{PODS}/bound/status", {"status": {"phase": "Running", "podIP": "x", "containerStatuses": [{"name": "x", "state": {}}]}}),
    get("as a table", PODS, accept=TABLE),
    patch("what may not change", f"{PODS}/bound", {"spec": {"nodeName": "n2", "hostname": "h"}}),
    patch("an image may", f"{PODS}/bound", {"spec": {"containers": [{"name": "main", "image": "registry.test/app:2"}]}}, STRATEGIC),
    patch("a toleration may", f"{PODS}/bound", [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k", "operator": "Exists"}}], JSONPATCH),
    patch("a resize", f"{PODS}/bound/resize", {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}}, STRATEGIC),
    patch("a resize of something else", f"{PODS}/bound/resize", {"spec": {"containers": [{"name": "main", "image": "x"}]}}, STRATEGIC),
    get("resized", f"{PODS}/bound/resize"),
    patch("an ephemeral container", f"{PODS}/bound/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "dbg"}]}}, STRATEGIC),
    patch("an ephemeral container changed", f"{PODS}/bound/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "e", "image": "other"}]}}, STRATEGIC),
    patch("an ephemeral container with ports", f"{PODS}/bound/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "f", "image": "i", "ports": [{"containerPort": 1}]}]}}, STRATEGIC),
    get("ephemeral containers", f"{PODS}/bound/ephemeralcontainers"),
    get("logs of nobody", f"{PODS}/nobody/log"),
    get("bad logs", f"{PODS}/bound/log?tailLines=-1"),
    post("exec into nobody", f"{PODS}/nobody/exec?command=x", b""),
    delete("graceful", f"{PODS}/bound?gracePeriodSeconds=20"),
    get("going", f"{PODS}/bound"),
    delete("longer is no change", f"{PODS}/bound?gracePeriodSeconds=60"),
    delete("sooner", f"{PODS}/bound", {"gracePeriodSeconds": 10}),
    post("bind what goes", f"{PODS}/bound/binding", doc("v1", "Binding", "bound", target={"kind": "Node", "name": "n1"})),
    delete("now", f"{PODS}/bound?gracePeriodSeconds=0"),
    get("gone", f"{PODS}/bound"),
    post("unscheduled", PODS, pod("free")),
    delete("goes at once", f"{PODS}/free"),
    post("done", PODS, pod("done", nodeName="n1")),
    patch("succeeded", f"{PODS}/done/status", {"status": {"phase": "Succeeded"}}),
    delete("needs no grace", f"{PODS}/done"),
    post("held", PODS, pod("held", {"finalizers": ["example.com/hold"]}, nodeName="n1")),
    delete("held goes", f"{PODS}/held"),
    delete("held goes now", f"{PODS}/held?gracePeriodSeconds=0"),
    patch("let go", f"{PODS}/held", {"metadata": {"finalizers": None}}),
    post("a budget", BUDGETS, doc("policy/v1", "PodDisruptionBudget", "pdb", spec={"minAvailable": 1, "selector": {"matchLabels": {"g": "y"}}})),
    *(each for name in ("e1", "e2") for each in (post(f"guarded {name}", PODS, pod(name, {"labels": {"g": "y"}}, nodeName="n1")), patch(f"running {name}", f"{PODS}/{name}/status", {"status": {"phase": "Running", "conditions": RUNNING}}))),
    post("evicted too early", f"{PODS}/e1/eviction", doc("policy/v1", "Eviction", "e1")),
    patch("counted", f"{BUDGETS}/pdb/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}}),
    post("evicted, rehearsed", f"{PODS}/e1/eviction?dryRun=All", doc("policy/v1", "Eviction", "e1")),
    post("evicted", f"{PODS}/e1/eviction", doc("policy/v1", "Eviction", "e1")),
    get("spent", f"{BUDGETS}/pdb"),
    post("exhausted", f"{PODS}/e2/eviction", doc("policy/v1", "Eviction", "e2")),
    post("nobody evicted", f"{PODS}/nobody/eviction", doc("policy/v1", "Eviction", "nobody")),
    post("evicted under another name", f"{PODS}/e2/eviction", doc("policy/v1", "Eviction", "e1")),
    post("evicted by a bad policy", f"{PODS}/e2/eviction", doc("policy/v1", "Eviction", "e2", deleteOptions={"propagationPolicy": "Nope"})),
    post("no eviction", f"{PODS}/e2/eviction", cm("e2")),
    post("of a class there is not", PODS, pod("x", priorityClassName="nope")),
    post("with a priority", PODS, pod("x", priority=5)),
    post("of an account there is not", PODS, pod("x", serviceAccountName="nope")),
    post("mounted", PODS, pod("mounted", automountServiceAccountToken=True)),
    post("a mirror", PODS, pod("x", {"annotations": {"kubernetes.io/config.mirror": "1"}})),
)

BELOW = (
    post("a deployment", DEPLOYMENTS, deployment("sc", replicas=2)),
    get("scale", f"{DEPLOYMENTS}/sc/scale", keep={"v": "metadata.resourceVersion"}),
    put("scale it", f"{DEPLOYMENTS}/sc/scale", doc("autoscaling/v1", "Scale", "sc", spec={"replicas": 4})),
    put("scale it again", f"{DEPLOYMENTS}/sc/scale", doc("autoscaling/v1", "Scale", "sc", metadata={"resourceVersion": "<<v>>"}, spec={"replicas": 5})),
    put("below zero", f"{DEPLOYMENTS}/sc/scale", doc("autoscaling/v1", "Scale", "sc", spec={"replicas": -1})),
    put("another name", f"{DEPLOYMENTS}/sc/scale", doc("autoscaling/v1", "Scale", "other", spec={"replicas": 1})),
    put("another kind", f"{DEPLOYMENTS}/sc/scale", deployment("sc")),
    put("another uid", f"{DEPLOYMENTS}/sc/scale", doc("autoscaling/v1", "Scale", "sc", metadata={"uid": ZERO}, spec={"replicas": 1})),
    patch("merge", f"{DEPLOYMENTS}/sc/scale", {"spec": {"replicas": 6}}),
    patch("json", f"{DEPLOYMENTS}/sc/scale", [{"op": "replace", "path": "/spec/replicas", "value": 7}], JSONPATCH),
    patch("strategic", f"{DEPLOYMENTS}/sc/scale", {"spec": {"replicas": 8}}, STRATEGIC),
    patch("a bad patch", f"{DEPLOYMENTS}/sc/scale", {"spec": {"replicas": "x"}}),
    patch("no patch", f"{DEPLOYMENTS}/sc/scale", {"spec": {"replicas": 8}}, "text/plain"),
    get("no scale", f"{DEPLOYMENTS}/nope/scale"),
    get("no scale of a DaemonSet", f"{DAEMONS}/x/scale"),
    get("scale as a table", f"{DEPLOYMENTS}/sc/scale", accept=TABLE),
    post("a set", SETS, {**workload("ReplicaSet", "r"), "status": {"replicas": 7}}),
    get("scale of a set", f"{SETS}/r/scale"),
    put("status of a set", f"{SETS}/r/status", {**workload("ReplicaSet", "r", replicas=9), "metadata": {"name": "r", "labels": {"l": "1"}}, "status": {"replicas": 3, "observedGeneration": 1}}),
    put("what is missing is wiped", f"{SETS}/r/status", doc("apps/v1", "ReplicaSet", "r", status={"replicas": 2})),
    put("a bad status", f"{SETS}/r/status", doc("apps/v1", "ReplicaSet", "r", status={"replicas": 2, "readyReplicas": 3, "availableReplicas": -1})),
    patch("a status is left alone", f"{SETS}/r", {"status": {"replicas": 99}}),
    get("read a status", f"{SETS}/r/status"),
    delete("a status is not deleted", f"{SETS}/r/status"),
    post("a status is not created", f"{SETS}/r/status", {}),
    patch("a deployment's status keeps labels", f"{DEPLOYMENTS}/sc/status", {"metadata": {"labels": {"x": "y"}}, "status": {"replicas": 1}, "spec": {"replicas": 8}}),
    patch("status of nothing", f"{DEPLOYMENTS}/nope/status", {"status": {}}),
    post("a stateful set", STATEFUL, workload("StatefulSet", "st", serviceName="s")),
    patch("scaled", f"{STATEFUL}/st/scale", {"spec": {"replicas": 3}}),
    get("scale of a stateful set", f"{STATEFUL}/st/scale"),
    post("a controller", CONTROLLERS, doc("v1", "ReplicationController", "rc", spec={"template": TEMPLATE})),
    put("scale of a controller", f"{CONTROLLERS}/rc/scale", doc("autoscaling/v1", "Scale", "rc", spec={"replicas": 2})),
    post("a request", CSRS, doc("certificates.k8s.io/v1", "CertificateSigningRequest", "scene", spec={**CSR, "usages": ["client auth"]})),
    put("approve", f"{CSRS}/scene/approval", doc("certificates.k8s.io/v1", "CertificateSigningRequest", "scene", spec={**CSR, "usages": ["client auth"]}, status={"conditions": [{"type": "Approved", "status": "True", "reason": "Fine"}]})),
    patch("deny", f"{CSRS}/scene/approval", [{"op": "add", "path": "/status/conditions/-", "value": {"type": "Denied", "status": "True"}}], JSONPATCH),
    patch("approve no more", f"{CSRS}/scene/approval", {"status": {"conditions": []}}),
    patch("a certificate that is none", f"{CSRS}/scene/status", {"status": {"certificate": "eA=="}}),
    get("approval", f"{CSRS}/scene/approval"),
    post("an account", ACCOUNTS, doc("v1", "ServiceAccount", "acc")),
    post("a token", f"{ACCOUNTS}/acc/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}),
    post("a short token", f"{ACCOUNTS}/acc/token", {"spec": {"expirationSeconds": 5}}),
    post("a token for nobody", f"{ACCOUNTS}/nope/token", {"spec": {}}),
    post("a token bound to nothing", f"{ACCOUNTS}/acc/token", {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}}),
    post("a token bound to what it cannot be", f"{ACCOUNTS}/acc/token", {"spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "nope"}}}),
    get("a token is not read", f"{ACCOUNTS}/acc/token"),
    post("may I", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
    post("may I what", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}),
    post("may they", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "eve", "nonResourceAttributes": {"verb": "get", "path": "/x"}}}),
    post("may they here", here("localsubjectaccessreviews", "authorization.k8s.io"), {"spec": {"user": "eve", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "<<ns>>"}}}),
    post("who am I", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}),
    post("whose token", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}),
    post("nobody's token", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {}}),
)

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
RULE = [
    {
        "host": "h.test",
        "http": {
            "paths": [
                {
                    "path": "/",
                    "pathType": "Prefix",
                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                }
            ]
        },
    }
]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
GOOD = (
    ("pod", PODS, pod("rich", **{**RICH["spec"], "serviceAccountName": "default"})),
    ("deployment", DEPLOYMENTS, deployment("d")),
    ("rich deployment", DEPLOYMENTS, deployment("rich", template=RICH)),
    ("replicaset", SETS, workload("ReplicaSet", "r")),
    ("statefulset", STATEFUL, workload("StatefulSet", "s", volumeClaimTemplates=[{"metadata": {"name": "v"}, "spec": CLAIM}])),
    ("daemonset", DAEMONS, workload("DaemonSet", "d")),
    ("controller", CONTROLLERS, doc("v1", "ReplicationController", "rc", spec={"template": TEMPLATE})),
    ("job", JOBS, job("j")),
    ("indexed job", JOBS, job("i", completionMode="Indexed", completions=2, backoffLimitPerIndex=1)),
    ("cronjob", CRONJOBS, doc("batch/v1", "CronJob", "c", spec={"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job("")["spec"]["template"]}}})),
    ("hpa", HPAS, doc("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}})),
    ("hpa v1", HPAS1, doc("autoscaling/v1", "HorizontalPodAutoscaler", "h1", spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50})),
    ("budget", BUDGETS, doc("policy/v1", "PodDisruptionBudget", "p", spec={"maxUnavailable": "25%", "selector": {}})),
    ("claim", CLAIMS, doc("v1", "PersistentVolumeClaim", "c", spec=CLAIM)),
    ("volume", VOLUMES, doc("v1", "PersistentVolume", "scene", spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}})),
    ("ingress", INGRESSES, doc("networking.k8s.io/v1", "Ingress", "i", spec={"rules": RULE})),
    ("policy", POLICIES, doc("networking.k8s.io/v1", "NetworkPolicy", "n", spec={"ingress": [{"ports": [{"port": 80}]}], "egress": [{}]})),
    ("lease", LEASES, doc("coordination.k8s.io/v1", "Lease", "l", spec={"renewTime": "2020-01-01T00:00:00.000000Z"})),
    ("slice", SLICES, doc("discovery.k8s.io/v1", "EndpointSlice", "e", addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}], ports=[{"port": 80}])),
    ("priority", PRIORITIES, doc("scheduling.k8s.io/v1", "PriorityClass", "scene", value=1000)),
    ("storage", STORAGES, doc("storage.k8s.io/v1", "StorageClass", "scene", provisioner="example.com/p")),
    ("request", CSRS, doc("certificates.k8s.io/v1", "CertificateSigningRequest", "defaulted", spec={**CSR, "usages": ["digital signature", "client auth"]})),
    ("secret", SECRETS, doc("v1", "Secret", "s", stringData={"a": "b"}, data={"c": "ZA=="})),
    ("quota", QUOTAS, doc("v1", "ResourceQuota", "q", spec={"hard": {"cpu": "100", "pods": "100"}})),
    ("limits", LIMITS, doc("v1", "LimitRange", "l", spec={"limits": [{"type": "Container", "max": {"cpu": "2"}}]})),
    ("endpoints", here("endpoints"), doc("v1", "Endpoints", "e", subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}])),
    ("service", SERVICES, doc("v1", "Service", "s", spec={"ports": [{"port": 80}]})),
    ("role", ROLES, doc("rbac.authorization.k8s.io/v1", "Role", "r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])),
    ("rolebinding", BINDINGS, doc("rbac.authorization.k8s.io/v1", "RoleBinding", "r", roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}])),
    ("runtime class", "/apis/node.k8s.io/v1/runtimeclasses", doc("node.k8s.io/v1", "RuntimeClass", "scene", handler="h")),
    ("webhook", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", doc("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "scene", webhooks=[{"name": "a.b.c", "clientConfig": {"url": "https://x.test"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]}])),
)
def every(kinds: Sequence[tuple[str, str, dict[str, Any]]]) -> tuple[Ask, ...]:
    """All verbs on objects of some kinds: made, shown as a table, written over without a version, patched, deleted."""
    verbs: list[Ask] = [post(title, path, document) for title, path, document in kinds]
    for title, path, document in kinds:
        name = document["metadata"]["name"]
        labelled = {**document, "metadata": {**document["metadata"], "labels": {"scene": "yes"}}}
        verbs += (
            get(f"table of a {title}", f"{path}?fieldSelector=metadata.name%3D{name}", accept=TABLE),
            put(f"put a {title}", f"{path}/{name}", labelled),
            patch(f"patch a {title}", f"{path}/{name}", {"metadata": {"annotations": {"scene": "yes"}}}, STRATEGIC),
            patch(f"status of a {title}", f"{path}/{name}/status", {"metadata": {"labels": {"scene": "no"}}, "status": {}}),
        )
    return (*verbs, *(delete(f"delete a {title}", f"{path}/{document['metadata']['name']}") for title, path, document in kinds))


DEFAULTING = every(GOOD)

STORAGE, RESOURCES = "/apis/storage.k8s.io/v1", "/apis/resource.k8s.io/v1"
POLICY, FLOWS = "/apis/admissionregistration.k8s.io/v1", "/apis/flowcontrol.apiserver.k8s.io/v1"
DEVICES = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "scene.test"}}]}}
OTHERS = (
    ("driver", f"{STORAGE}/csidrivers", doc("storage.k8s.io/v1", "CSIDriver", "scene.test")),
    ("csi node", f"{STORAGE}/csinodes", doc("storage.k8s.io/v1", "CSINode", "scene", spec={"drivers": []})),
    ("attachment", f"{STORAGE}/volumeattachments", doc("storage.k8s.io/v1", "VolumeAttachment", "scene", spec={"attacher": "scene.test", "nodeName": "n", "source": {"persistentVolumeName": "v"}})),
    ("attributes class", f"{STORAGE}/volumeattributesclasses", doc("storage.k8s.io/v1", "VolumeAttributesClass", "scene", driverName="scene.test", parameters={"a": "b"})),
    ("capacity", here("csistoragecapacities", "storage.k8s.io"), doc("storage.k8s.io/v1", "CSIStorageCapacity", "c", storageClassName="scene", capacity="1Gi")),
    ("ingress class", "/apis/networking.k8s.io/v1/ingressclasses", doc("networking.k8s.io/v1", "IngressClass", "scene", spec={"controller": "scene.test/c"})),
    ("address", "/apis/networking.k8s.io/v1/ipaddresses", doc("networking.k8s.io/v1", "IPAddress", "192.168.7.7", spec={"parentRef": {"resource": "services", "name": "s", "namespace": "n"}})),
    ("range", "/apis/networking.k8s.io/v1/servicecidrs", doc("networking.k8s.io/v1", "ServiceCIDR", "scene", spec={"cidrs": ["192.168.8.0/24"]})),
    ("admission policy", f"{POLICY}/validatingadmissionpolicies", doc("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "scene", spec={"matchConstraints": {"resourceRules": [{"apiGroups": ["scene.test"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]}, "validations": [{"expression": "true"}]})),
    ("policy binding", f"{POLICY}/validatingadmissionpolicybindings", doc("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "scene", spec={"policyName": "scene", "validationActions": ["Deny"]})),
    ("mutating webhook", f"{POLICY}/mutatingwebhookconfigurations", doc("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "scene")),
    ("device class", f"{RESOURCES}/deviceclasses", doc("resource.k8s.io/v1", "DeviceClass", "scene.test", spec={})),
    ("resource claim", here("resourceclaims", "resource.k8s.io"), doc("resource.k8s.io/v1", "ResourceClaim", "c", spec=DEVICES)),
    ("claim template", here("resourceclaimtemplates", "resource.k8s.io"), doc("resource.k8s.io/v1", "ResourceClaimTemplate", "t", spec={"spec": DEVICES})),
    ("resource slice", f"{RESOURCES}/resourceslices", doc("resource.k8s.io/v1", "ResourceSlice", "scene", spec={"driver": "scene.test", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}, "devices": [{"name": "d"}]})),
    ("priority level", f"{FLOWS}/prioritylevelconfigurations", doc("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "scene", spec={"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}})),
    ("API service", "/apis/apiregistration.k8s.io/v1/apiservices", doc("apiregistration.k8s.io/v1", "APIService", "v1.nothing.scene.test", spec={"group": "nothing.scene.test", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10})),
    ("revision", here("controllerrevisions", "apps"), doc("apps/v1", "ControllerRevision", "r", data={"a": 1}, revision=1)),
    ("pod template", here("podtemplates"), doc("v1", "PodTemplate", "t", template=TEMPLATE)),
    ("account", ACCOUNTS, doc("v1", "ServiceAccount", "a", secrets=[{"name": "s"}])),
    ("cluster role", "/apis/rbac.authorization.k8s.io/v1/clusterroles", doc("rbac.authorization.k8s.io/v1", "ClusterRole", "scene", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})),
    ("cluster binding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", doc("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "scene", roleRef={"kind": "ClusterRole", "name": "scene", "apiGroup": "rbac.authorization.k8s.io"}, subjects=[{"kind": "Group", "name": "g"}])),
    ("namespace", NAMESPACES, doc("v1", "Namespace", "scene-of-its-own")),
    ("node", NODES, doc("v1", "Node", "scene-other", spec={"podCIDR": "10.9.0.0/24", "taints": [{"key": "a", "effect": "NoSchedule"}]})),
    ("event", EVENTS, doc("v1", "Event", "e", involvedObject={"kind": "Pod", "namespace": "<<ns>>", "name": "p"}, reason="R", type="Normal")),
)
EVERYTHING = every(OTHERS)

BAD = (
    ("pod", PODS, pod("x", containers=[{"name": "A", "image": ""}, {"name": "b", "image": "b", "ports": [{"containerPort": 0}], "env": [{"name": ""}], "volumeMounts": [{"name": "v", "mountPath": ""}]}], restartPolicy="Sometimes", dnsPolicy="x")),
    ("empty pod", PODS, doc("v1", "Pod", "x")),
    ("deployment", DEPLOYMENTS, deployment("x", replicas=-1, selector={"matchLabels": {"app": "other"}}, strategy={"type": "Nope"})),
    ("empty deployment", DEPLOYMENTS, doc("apps/v1", "Deployment", "x")),
    ("replicaset", SETS, workload("ReplicaSet", "x", replicas=-1, minReadySeconds=-1, selector={})),
    ("statefulset", STATEFUL, workload("StatefulSet", "x", replicas=-1, podManagementPolicy="Nope", updateStrategy={"type": "Nope"})),
    ("daemonset", DAEMONS, workload("DaemonSet", "x", updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}, template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}})),
    ("controller", CONTROLLERS, doc("v1", "ReplicationController", "x", spec={"replicas": -2})),
    ("job", JOBS, job("x", parallelism=-1, completions=-1, backoffLimit=-1, completionMode="Nope", template=TEMPLATE)),
    ("cronjob", CRONJOBS, doc("batch/v1", "CronJob", "x" * 60, spec={"schedule": "bad", "concurrencyPolicy": "Nope", "startingDeadlineSeconds": -1, "timeZone": "No/Where"})),
    ("hpa", HPAS, doc("autoscaling/v2", "HorizontalPodAutoscaler", "x", spec={"minReplicas": 0, "maxReplicas": 0, "metrics": [{"type": "Nope"}]})),
    ("hpa v1", HPAS1, doc("autoscaling/v1", "HorizontalPodAutoscaler", "x", spec={"scaleTargetRef": {"kind": "D"}, "maxReplicas": 0, "targetCPUUtilizationPercentage": -5})),
    ("budget", BUDGETS, doc("policy/v1", "PodDisruptionBudget", "x", spec={"maxUnavailable": "x", "minAvailable": -1, "unhealthyPodEvictionPolicy": "Nope"})),
    ("claim", CLAIMS, doc("v1", "PersistentVolumeClaim", "x", spec={"accessModes": ["Nope"], "volumeMode": "Nope"})),
    ("volume", VOLUMES, doc("v1", "PersistentVolume", "x", spec={"persistentVolumeReclaimPolicy": "Nope"})),
    ("ingress", INGRESSES, doc("networking.k8s.io/v1", "Ingress", "x", spec={"rules": [{"host": "*", "http": {"paths": [{"path": "x", "pathType": "Nope", "backend": {}}]}}]})),
    ("empty ingress", INGRESSES, doc("networking.k8s.io/v1", "Ingress", "x")),
    ("policy", POLICIES, doc("networking.k8s.io/v1", "NetworkPolicy", "x", spec={"policyTypes": ["Nope"], "ingress": [{"from": [{"ipBlock": {"cidr": "x", "except": ["y"]}}, {}], "ports": [{"port": 0, "protocol": "X"}]}]})),
    ("lease", LEASES, doc("coordination.k8s.io/v1", "Lease", "x", spec={"leaseDurationSeconds": 0, "leaseTransitions": -1})),
    ("slice", SLICES, doc("discovery.k8s.io/v1", "EndpointSlice", "x", addressType="Nope", endpoints=[{"addresses": []}], ports=[{"name": "A_"}, {"name": "A_"}])),
    ("priority", PRIORITIES, doc("scheduling.k8s.io/v1", "PriorityClass", "system-x", value=2_000_000_001, preemptionPolicy="Nope")),
    ("storage", STORAGES, doc("storage.k8s.io/v1", "StorageClass", "x", provisioner="", reclaimPolicy="Nope", volumeBindingMode="Nope")),
    ("request", CSRS, doc("certificates.k8s.io/v1", "CertificateSigningRequest", "x", spec={"request": "eA==", "signerName": "x", "usages": ["Nope", "Nope"], "expirationSeconds": 5})),
    ("secret", SECRETS, doc("v1", "Secret", "x", type="kubernetes.io/tls", data={"a/b": "ZA=="})),
    ("account's secret", SECRETS, doc("v1", "Secret", "x", type="kubernetes.io/service-account-token")),
    ("service", SERVICES, doc("v1", "Service", "x", spec={"type": "Nope", "ports": [{"port": 0, "protocol": "X"}, {"port": 70_000}], "clusterIP": "x", "sessionAffinity": "Nope"})),
    ("service name", SERVICES, doc("v1", "Service", "9x", spec={})),
    ("quota", QUOTAS, doc("v1", "ResourceQuota", "x", spec={"hard": {"cpu": "-1", "no pe": "1"}, "scopes": ["Nope"]})),
    ("limits", LIMITS, doc("v1", "LimitRange", "x", spec={"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}, {"type": "Container"}]})),
    ("endpoints", here("endpoints"), doc("v1", "Endpoints", "x", subsets=[{"addresses": [{"ip": "x"}, {"ip": "127.0.0.1"}], "ports": [{"port": 0}, {"port": 1}]}])),
    ("role", ROLES, doc("rbac.authorization.k8s.io/v1", "Role", "x", rules=[{"verbs": []}, {"verbs": ["get"], "nonResourceURLs": ["/x"]}])),
    ("rolebinding", BINDINGS, doc("rbac.authorization.k8s.io/v1", "RoleBinding", "x", roleRef={"kind": "Nope"}, subjects=[{"kind": "Nope"}])),
    ("node", NODES, doc("v1", "Node", "x_", spec={"podCIDRs": ["x"], "taints": [{"key": "a b", "effect": "Nope"}]})),
    ("namespace", NAMESPACES, doc("v1", "Namespace", "a.b", spec={"finalizers": ["x"]})),
    ("account", ACCOUNTS, doc("v1", "ServiceAccount", "Bad_")),
    ("runtime class", "/apis/node.k8s.io/v1/runtimeclasses", doc("node.k8s.io/v1", "RuntimeClass", "x", handler="H_")),
    ("webhook", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", doc("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "x", webhooks=[{"name": "a", "clientConfig": {}, "failurePolicy": "Nope"}])),
)
REFUSING = tuple(post(title, path, document, unordered=title == "quota") for title, path, document in BAD)

CHANGING = (
    post("a deployment", DEPLOYMENTS, deployment("d")),
    patch("a label is no generation", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}}),
    patch("an annotation is one", f"{DEPLOYMENTS}/d", {"metadata": {"annotations": {"a": "b"}}}),
    patch("its selector", f"{DEPLOYMENTS}/d", {"spec": {"selector": {"matchLabels": {"new": "x"}}}}),
    post("a stateful set", STATEFUL, workload("StatefulSet", "s")),
    patch("its service", f"{STATEFUL}/s", {"spec": {"serviceName": "other", "podManagementPolicy": "Parallel"}}),
    patch("its replicas", f"{STATEFUL}/s", {"spec": {"replicas": 2}}),
    post("a daemon set", DAEMONS, workload("DaemonSet", "d")),
    patch("its template", f"{DAEMONS}/d", {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}),
    patch("its own selector", f"{DAEMONS}/d", {"spec": {"selector": {"matchLabels": {"app": "z"}}}}),
    post("a job", JOBS, job("j")),
    patch("its work", f"{JOBS}/j", {"spec": {"completions": 5, "template": {"metadata": {"labels": {"x": "y"}}}}}),
    patch("suspended", f"{JOBS}/j", {"spec": {"suspend": True}}),
    post("a claim", CLAIMS, doc("v1", "PersistentVolumeClaim", "c", spec=CLAIM)),
    patch("more room", f"{CLAIMS}/c", {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}),
    patch("another class", f"{CLAIMS}/c", {"spec": {"storageClassName": "x", "accessModes": ["ReadWriteMany"]}}),
    post("a class", STORAGES, doc("storage.k8s.io/v1", "StorageClass", "fixed", provisioner="example.com/p")),
    patch("its provisioner", f"{STORAGES}/fixed", {"provisioner": "example.com/q", "parameters": {"a": "b"}}),
    post("a priority", PRIORITIES, doc("scheduling.k8s.io/v1", "PriorityClass", "fixed", value=5)),
    patch("its value", f"{PRIORITIES}/fixed", {"value": 6, "preemptionPolicy": "Never"}),
    post("a binding", BINDINGS, doc("rbac.authorization.k8s.io/v1", "RoleBinding", "r", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"})),
    patch("its role", f"{BINDINGS}/r", {"roleRef": {"name": "other"}}),
    post("a secret", SECRETS, doc("v1", "Secret", "s", type="a/b", immutable=True)),
    patch("its type", f"{SECRETS}/s", {"type": "c/d", "data": {"x": "eA=="}}),
    post("a slice", SLICES, doc("discovery.k8s.io/v1", "EndpointSlice", "e", addressType="IPv4", endpoints=[])),
    patch("its addresses", f"{SLICES}/e", {"addressType": "IPv6"}),
    post("a request", CSRS, doc("certificates.k8s.io/v1", "CertificateSigningRequest", "fixed", spec={**CSR, "usages": ["client auth"]})),
    patch("its signer", f"{CSRS}/fixed", {"spec": {"signerName": "example.com/other"}}),
    post("a budget", BUDGETS, doc("policy/v1", "PodDisruptionBudget", "p", spec={"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}})),
    patch("its numbers", f"{BUDGETS}/p", {"spec": {"maxUnavailable": 2}}),
    put("without a version", f"{BUDGETS}/p", doc("policy/v1", "PodDisruptionBudget", "p", spec={"maxUnavailable": 3})),
    post("a cron job", CRONJOBS, doc("batch/v1", "CronJob", "c", spec={"schedule": "@hourly", "jobTemplate": {"spec": {"template": job("")["spec"]["template"]}}})),
    patch("its time zone", f"{CRONJOBS}/c", {"spec": {"timeZone": "Europe/Athens", "schedule": "1 2 3 4 5"}}),
    patch("its time zone, badly", f"{CRONJOBS}/c", {"spec": {"schedule": "TZ=Europe/Athens 1 2 3 4 5"}}),
)

ODD_POD: dict[str, Any] = {
    "nodeSelector": {"beta.kubernetes.io/os": "linux"},
    "terminationGracePeriodSeconds": -1,
    "hostAliases": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.4"}],
    "imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}],
    "containers": [
        {
            "name": "a",
            "image": "i",
            "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}, {"name": "X", "value": "$(X)3"}],
            "ports": [{"containerPort": 80, "name": "p"}, {"containerPort": 80, "protocol": "UDP"}],
            "resources": {"limits": {"memory": "1.5"}},
        },
        {"name": "b", "image": "i", "ports": [{"containerPort": 80, "name": "p"}]},
    ],
    "volumes": [{"name": "g", "gitRepo": {"repository": "https://x.test/r"}}],
    "affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}
            ]
        },
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "operator": "Exists"}]}]
            }
        },
    },
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "failure-domain.beta.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    ],
}
ODD = (
    post("pod", PODS, pod("odd", {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "runtime/default", "scheduler.alpha.kubernetes.io/critical-pod": ""}}, **ODD_POD)),
    post("template", DEPLOYMENTS, deployment("odd", template={"metadata": TEMPLATE["metadata"], "spec": ODD_POD})),
    patch("label of a template's owner", f"{DEPLOYMENTS}/odd", {"metadata": {"labels": {"a": "b"}}}),
    patch("replicas of a template's owner", f"{DEPLOYMENTS}/odd", {"spec": {"replicas": 2}}),
    post("template of a cron job", CRONJOBS, doc("batch/v1", "CronJob", "odd", spec={"schedule": "@hourly", "jobTemplate": {"spec": {"template": {"spec": {**ODD_POD, "restartPolicy": "Never"}}}}})),
    post("ingress of a class by annotation", INGRESSES, doc("networking.k8s.io/v1", "Ingress", "odd", metadata={"annotations": {"kubernetes.io/ingress.class": "x"}}, spec={"rules": RULE})),
    post("job of many", JOBS, job("odd", completionMode="Indexed", completions=200_000, parallelism=10_000)),
    post("job with a long name", JOBS, job("x" * 63, completionMode="Indexed", completions=2)),
    post("claim of a class by annotation", CLAIMS, doc("v1", "PersistentVolumeClaim", "odd", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5"}}})),
    post("volume", VOLUMES, doc("v1", "PersistentVolume", "odd", metadata={"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}, spec={"capacity": {"storage": "1.5"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Recycle", "hostPath": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "beta.kubernetes.io/os", "operator": "Exists"}]}]}}})),
    post("node", NODES, doc("v1", "Node", "odd", spec={"externalID": "x"})),
    post("storage class", STORAGES, doc("storage.k8s.io/v1", "StorageClass", "odd", provisioner="x.test/p", allowedTopologies=[{"matchLabelExpressions": [{"key": "failure-domain.beta.kubernetes.io/zone", "values": ["a"]}]}])),
    post("runtime class", "/apis/node.k8s.io/v1/runtimeclasses", doc("node.k8s.io/v1", "RuntimeClass", "odd", handler="h", scheduling={"nodeSelector": {"beta.kubernetes.io/os": "linux"}})),
    post("headless service", SERVICES, doc("v1", "Service", "odd", spec={"clusterIP": "None", "sessionAffinity": "ClientIP", "ports": [{"port": 80}], "externalIPs": ["1.2.3.4"], "loadBalancerIP": "1.2.3.4"})),
    post("balancer", SERVICES, doc("v1", "Service", "odd2", metadata={"annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}}, spec={"type": "LoadBalancer", "loadBalancerIP": "1.2.3.4", "externalIPs": ["1.2.3.4"], "ports": [{"port": 80}]})),
    post("stateful set", STATEFUL, workload("StatefulSet", "odd", revisionHistoryLimit=-1)),
    post("set", SETS, workload("ReplicaSet", "odd", template={"metadata": TEMPLATE["metadata"], "spec": ODD_POD})),
    post("budget", BUDGETS, doc("policy/v1", "PodDisruptionBudget", "odd", spec={"minAvailable": 1})),
    post("account", ACCOUNTS, doc("v1", "ServiceAccount", "odd", metadata={"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}})),
    post("secret", SECRETS, doc("v1", "Secret", "odd", type="kubernetes.io/dockercfg", data={".dockercfg": "e30="})),
    post("finalizer", CMS, cm("odd", metadata={"finalizers": ["example.com/x", "orphan"]})),
    post("priority", PRIORITIES, doc("scheduling.k8s.io/v1", "PriorityClass", "odd", value=5, globalDefault=False)),
    post("policy", POLICIES, doc("networking.k8s.io/v1", "NetworkPolicy", "odd", spec={"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}]})),
    post("endpoints", here("endpoints"), doc("v1", "Endpoints", "odd")),
    post("autoscaler", HPAS, doc("autoscaling/v2", "HorizontalPodAutoscaler", "odd", spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "minReplicas": 3})),
    post("namespace", NAMESPACES, doc("v1", "Namespace", "odd", metadata={"labels": {"pod-security.kubernetes.io/enforce": "nope"}})),
    post("cron job", CRONJOBS, doc("batch/v1", "CronJob", "odd2", spec={"schedule": "0 0 31 2 *", "jobTemplate": {"spec": {"template": job("")["spec"]["template"]}}})),
)

OWN = f"{NAMESPACES}/<<ns>>-own"
LIVING = (
    post("a namespace", NAMESPACES, doc("v1", "Namespace", "<<ns>>-own")),
    post("again", NAMESPACES, doc("v1", "Namespace", "<<ns>>-own")),
    post("a thing in it", f"{OWN}/configmaps", cm("c")),
    patch("labelled", OWN, {"metadata": {"labels": {"a": "b"}}}),
    get("as a table", OWN, accept=TABLE),
    delete("immortal", f"{NAMESPACES}/kube-system"),
    delete("goes", OWN),
    get("terminating", OWN),
    get("by phase", f"{NAMESPACES}?fieldSelector=status.phase%3DTerminating"),
    delete("goes again", OWN),
    post("nothing new", f"{OWN}/configmaps", cm("d"), until=403),
    post("nothing generated", f"{OWN}/configmaps", cm("", metadata={"generateName": "gen-"})),
    post("nothing in a group", OWN.replace("/api/v1", "/apis/apps/v1") + "/deployments", deployment("d")),
    patch("changes are welcome", f"{OWN}/configmaps/c", {"data": {"k": "v"}}),
    patch("an update keeps its finalizers", OWN, {"spec": {"finalizers": None}}),
    delete("so are deletions", f"{OWN}/configmaps/c"),
    put("finalize another", f"{OWN}/finalize", doc("v1", "Namespace", "other", spec={})),
    get("finalize is not read", f"{OWN}/finalize"),
    put("finalize", f"{OWN}/finalize", doc("v1", "Namespace", "<<ns>>-own", spec={"finalizers": []})),
    get("gone", OWN),
)

SERVING = (
    post("a service", SERVICES, doc("v1", "Service", "s", spec={"ports": [{"port": 80}], "selector": {"a": "b"}}), keep={"ip": "spec.clusterIP"}),
    post("the same address", SERVICES, doc("v1", "Service", "t", spec={"clusterIP": "<<ip>>", "ports": [{"port": 80}]})),
    post("an address out of range", SERVICES, doc("v1", "Service", "t", spec={"clusterIP": "192.168.0.1", "ports": [{"port": 80}]})),
    post("an address of its own", SERVICES, doc("v1", "Service", "fixed", spec={"clusterIP": "10.0.0.10", "ports": [{"port": 80}]})),
    post("none", SERVICES, doc("v1", "Service", "headless", spec={"clusterIP": "None", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]})),
    post("outside", SERVICES, doc("v1", "Service", "out", spec={"type": "ExternalName", "externalName": "x.test"})),
    post("outside without a name", SERVICES, doc("v1", "Service", "out2", spec={"type": "ExternalName"})),
    post("a node port", SERVICES, doc("v1", "Service", "np", spec={"type": "NodePort", "ports": [{"port": 80}]})),
    post("this node port", SERVICES, doc("v1", "Service", "np2", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30023}]})),
    post("the same node port", SERVICES, doc("v1", "Service", "np3", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 30023}]})),
    post("a node port out of range", SERVICES, doc("v1", "Service", "np3", spec={"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]})),
    post("a balancer", SERVICES, doc("v1", "Service", "lb", spec={"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}, {"name": "b", "port": 80}]})),
    post("a balancer indeed", SERVICES, doc("v1", "Service", "lb", spec={"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"name": "a", "port": 80}]})),
    post("two families", SERVICES, doc("v1", "Service", "dual", spec={"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]})),
    post("two families, if there are", SERVICES, doc("v1", "Service", "dual", spec={"ipFamilyPolicy": "PreferDualStack", "ports": [{"port": 80}]})),
    patch("another address", f"{SERVICES}/s", {"spec": {"clusterIP": "10.0.0.78"}}),
    patch("to a node port", f"{SERVICES}/s", {"spec": {"type": "NodePort"}}),
    patch("and back", f"{SERVICES}/s", {"spec": {"type": "ClusterIP", "ports": None}}),
    patch("and back indeed", f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}}),
    patch("without an address", f"{SERVICES}/s", {"spec": {"type": "ExternalName", "externalName": "x.test"}}),
    patch("a status", f"{SERVICES}/lb/status", {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
    post("rehearsed", f"{SERVICES}?dryRun=All", doc("v1", "Service", "dry", spec={"ports": [{"port": 80}]})),
    put("made by PUT", f"{SERVICES}/put", doc("v1", "Service", "put", spec={"ports": [{"port": 80}]})),
    get("as a table", SERVICES, accept=TABLE),
    get("by type", f"{SERVICES}?fieldSelector=spec.type%3DExternalName"),
    delete("a service goes", f"{SERVICES}/fixed"),
    get("a proxy to nothing", f"{SERVICES}/nope/proxy/"),
)

LIMITING = (
    post("a quota", QUOTAS, doc("v1", "ResourceQuota", "q", spec={"hard": {"configmaps": "1", "requests.cpu": "1", "count/secrets": "0"}})),
    patch("counted", f"{QUOTAS}/q/status", {"status": {"hard": {"configmaps": "1", "requests.cpu": "1", "count/secrets": "0"}, "used": {"configmaps": "0", "requests.cpu": "0", "count/secrets": "0"}}}),
    post("no secrets", SECRETS, doc("v1", "Secret", "s"), until=403),
    post("one config map", CMS, cm("a")),
    post("not two", CMS, cm("b")),
    get("used", f"{QUOTAS}/q"),
    get("as a table", f"{QUOTAS}/q", accept=TABLE),
    post("a pod that does not say", PODS, pod("x")),
    post("a pod that says too much", PODS, pod("x", containers=[{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}}}])),
    post("a pod that fits", PODS, pod("fits", containers=[{"name": "a", "image": "i", "resources": {"requests": {"cpu": "500m"}}}])),
    delete("quota goes", f"{QUOTAS}/q"),
    post("limits", LIMITS, doc("v1", "LimitRange", "l", spec={"limits": [{"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "200m"}, "maxLimitRequestRatio": {"cpu": "4"}}, {"type": "Pod", "max": {"memory": "1Gi"}}, {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}}]})),
    post("too little room", CLAIMS, doc("v1", "PersistentVolumeClaim", "c", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}), until=403),
    post("too much", PODS, pod("x", containers=[{"name": "a", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3", "memory": "2Gi"}}}])),
    post("limited by default", PODS, pod("mild", containers=[{"name": "a", "image": "i", "resources": {"limits": {"memory": "1Mi"}}}])),
    patch("a strict namespace", "/api/v1/namespaces/<<ns>>", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}}}),
    post("a careless pod", PODS, pod("x", hostNetwork=True, containers=[{"name": "a", "image": "i", "securityContext": {"privileged": True}, "resources": {"limits": {"memory": "1Mi"}}}]), until=403),
    post("a careless template", DEPLOYMENTS, deployment("warned")),
)

WATCH = f"{CMS}?watch=1&resourceVersion=<<begin>>"
WATCHING = (
    get("where we are", CMS, keep={"begin": "metadata.resourceVersion"}, head=True),
    post("x", CMS, cm("x", metadata={"labels": {"in": "yes"}}), keep={"x": "metadata.resourceVersion"}),
    post("y", CMS, cm("y", metadata={"labels": {"in": "no"}})),
    patch("x leaves", f"{CMS}/x", {"metadata": {"labels": {"in": "no"}}}),
    patch("y enters", f"{CMS}/y", {"metadata": {"labels": {"in": "yes"}}}),
    patch("y changes", f"{CMS}/y", {"data": {"k": "v"}}),
    delete("x goes", f"{CMS}/x"),
    delete("y goes", f"{CMS}/y"),
    post("z", CMS, cm("z", metadata={"labels": {"in": "yes"}})),
    get("all", WATCH, lines=8),
    get("selected", f"{WATCH}&labelSelector=in%3Dyes", lines=6),
    get("one", f"{WATCH}&fieldSelector=metadata.name%3Dx", lines=3),
    get("from a later version", f"{CMS}?watch=1&resourceVersion=<<x>>", lines=7),
    get("the old way", "/api/v1/watch/namespaces/<<ns>>/configmaps/x?resourceVersion=<<begin>>", lines=3),
    get("from now", f"{CMS}?watch=1", lines=1),
    get("from any", f"{CMS}?watch=1&resourceVersion=0", lines=1),
    get("initial events", f"{CMS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", lines=2),
    get("initial events of nothing", f"{SECRETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", lines=1),
    get("initial events without a match", f"{CMS}?watch=1&sendInitialEvents=true"),
    get("a match without initial events", f"{CMS}?watch=1&resourceVersionMatch=NotOlderThan"),
    get("initial events exactly", f"{CMS}?watch=1&sendInitialEvents=true&resourceVersionMatch=Exact"),
    get("as tables", WATCH, accept=TABLE, lines=2),
    get("as metadata", WATCH, accept=PARTIAL, lines=2),
    get("as YAML", WATCH, accept=YAML, head=True, lines=1),
    get("as protobuf", WATCH, accept=PROTOBUF, head=True, lines=1),
    get("for a second", f"{CMS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Dz"),
    get("for a bad while", f"{CMS}?watch=1&timeoutSeconds=x"),
    get("from a bad version", f"{CMS}?watch=1&resourceVersion=x"),
    get("by a bad selector", f"{CMS}?watch=1&labelSelector=a+in+b"),
    get("by a bad field", f"{CMS}?watch=1&fieldSelector=data%3Dx"),
    get("where is nothing", "/api/v1/namespaces/nowhere/configmaps?watch=1&timeoutSeconds=1"),
    get("what cannot be watched", "/api/v1/componentstatuses?watch=1"),
    get("one by its path", f"{CMS}/z?watch=1&resourceVersion=<<x>>", lines=1),
)

OBJECT = {"apiVersion": "v1", "kind": "Pod", "namespace": "<<ns>>", "name": "p", "uid": ZERO}
SHARING = (
    post("an event", EVENTS, doc("v1", "Event", "e", involvedObject=OBJECT, reason="R", message="M", type="Normal", source={"component": "c", "host": "h"}, firstTimestamp="2020-01-01T00:00:00Z", lastTimestamp="2020-01-01T00:00:00Z", count=3)),
    get("the event, new", f"{NEWEVENTS}/e"),
    post("a new event", NEWEVENTS, doc("events.k8s.io/v1", "Event", "n", regarding=OBJECT, reason="R", note="N", type="Warning", action="A", eventTime="2020-01-01T00:00:00.000001Z", reportingController="example.com/c", reportingInstance="i")),
    get("the new event, old", f"{EVENTS}/n"),
    get("events, old", EVENTS),
    get("events, new", NEWEVENTS),
    get("events as a table", EVENTS, accept=TABLE),
    get("new events as a table", NEWEVENTS, accept=TABLE),
    get("by reason", f"{EVENTS}?fieldSelector=reason%3DR,involvedObject.name%3Dp,type%3DWarning"),
    get("new by reason", f"{NEWEVENTS}?fieldSelector=reason%3DR,regarding.name%3Dp"),
    get("new by what is old", f"{NEWEVENTS}?fieldSelector=involvedObject.name%3Dp"),
    patch("an old event changes", f"{EVENTS}/e", {"count": 4}),
    patch("a new event changes", f"{NEWEVENTS}/n", {"series": {"count": 2, "lastObservedTime": "2020-01-01T00:00:00.000002Z"}}),
    patch("a new event changes in the old way", f"{EVENTS}/n", {"message": "other"}),
    patch("a new event changes what it may not", f"{NEWEVENTS}/n", {"note": "other", "reason": "S"}),
    patch("applied, new", f"{NEWEVENTS}/e?fieldManager=app", doc("events.k8s.io/v1", "Event", "e", metadata={"labels": {"x": "y"}}), APPLY),
    get("its owners, old", f"{EVENTS}/e"),
    post("a bad event", EVENTS, doc("v1", "Event", "b", involvedObject={**OBJECT, "namespace": "other"})),
    post("a bad new event", NEWEVENTS, doc("events.k8s.io/v1", "Event", "b", regarding=OBJECT, type="Nope")),
    get("watch", f"{EVENTS}?watch=1&resourceVersion=0", lines=2),
    get("watch new", f"{NEWEVENTS}?watch=1&resourceVersion=0", lines=2),
    delete("deleted, new", f"{NEWEVENTS}/e"),
    get("gone, old", f"{EVENTS}/e"),
    delete("all deleted", EVENTS),
    get("none new", NEWEVENTS),
    post("an autoscaler", HPAS1, doc("autoscaling/v1", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50})),
    get("v2 of it", f"{HPAS}/h"),
    patch("a metric more", f"{HPAS}/h", [{"op": "add", "path": "/spec/metrics/-", "value": {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}}], JSONPATCH),
    get("v1 of that", f"{HPAS1}/h"),
    patch("a behavior", f"{HPAS}/h", {"spec": {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}}}}),
    get("v1 of that behavior", f"{HPAS1}/h"),
    patch("changed in v1", f"{HPAS1}/h", {"spec": {"maxReplicas": 7, "targetCPUUtilizationPercentage": 60}}),
    get("v2 of that change", f"{HPAS}/h"),
    put("a status", f"{HPAS1}/h/status", doc("autoscaling/v1", "HorizontalPodAutoscaler", "h", spec={"scaleTargetRef": TARGET, "maxReplicas": 7}, status={"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 33})),
    get("v2 of that status", f"{HPAS}/h"),
    patch("a status in v2", f"{HPAS}/h/status", {"status": {"conditions": [{"type": "AbleToScale", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2020-01-01T00:00:00Z"}], "currentMetrics": [{"type": "Resource", "resource": {"name": "memory", "current": {"averageValue": "1Gi"}}}]}}),
    get("v1 of that status in v2", f"{HPAS1}/h"),
    patch("applied in v1", f"{HPAS1}/h?fieldManager=one&force=true", doc("autoscaling/v1", "HorizontalPodAutoscaler", "h", spec={"minReplicas": 2, "targetCPUUtilizationPercentage": 70}), APPLY),
    patch("applied in v2", f"{HPAS}/h?fieldManager=two&force=true", doc("autoscaling/v2", "HorizontalPodAutoscaler", "h", spec={"maxReplicas": 9}), APPLY),
    get("both in v1", HPAS1),
    get("both in v2", HPAS),
    get("a table in v1", HPAS1, accept=TABLE),
    get("a table in v2", HPAS, accept=TABLE),
    get("watched in v1", f"{HPAS1}?watch=1&resourceVersion=0", lines=1),
    post("another in v2", HPAS, doc("autoscaling/v2", "HorizontalPodAutoscaler", "h2", spec={"scaleTargetRef": TARGET, "maxReplicas": 3, "metrics": [{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}}}]})),
    get("another in v1", f"{HPAS1}/h2"),
    post("in v1 with what only v2 knows", HPAS1, doc("autoscaling/v1", "HorizontalPodAutoscaler", "h3", metadata={"annotations": {"autoscaling.alpha.kubernetes.io/metrics": '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"5Mi"}}]', "autoscaling.alpha.kubernetes.io/behavior": '{"ScaleDown":{"StabilizationWindowSeconds":7}}'}}, spec={"scaleTargetRef": TARGET, "maxReplicas": 3})),
    get("that in v2", f"{HPAS}/h3"),
    delete("deleted in v1", f"{HPAS1}/h"),
    get("gone in v2", f"{HPAS}/h"),
)


def definition(plural: str, kind: str, **more: Any) -> dict[str, Any]:
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "scene.test", "scope": "Namespaced", "names": names, **more}
    return doc("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.scene.test", spec=spec)


SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 10},
                "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
                "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                "replicas": {"type": "integer"},
                "parts": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                    },
                },
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "phase": {"type": "string"},
                "selector": {"type": "string"},
            },
        },
    },
}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "description": "how it is"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
SCALED = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}
VERSION = {
    "name": "v1",
    "served": True,
    "storage": True,
    "schema": {"openAPIV3Schema": SCHEMA},
    "subresources": SCALED,
    "additionalPrinterColumns": COLUMNS,
    "selectableFields": [{"jsonPath": ".spec.color"}],
}
OLDER = {
    "name": "v1beta1",
    "served": True,
    "storage": False,
    "deprecated": True,
    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
}
WIDGETS = here("widgets", "scene.test")


def widget(name: str, spec: Any = None, **more: Any) -> dict[str, Any]:
    return doc("scene.test/v1", "Widget", name, spec={"size": 1} if spec is None else spec, **more)


CUSTOM = (
    post("no definition", CRDS, definition("bads", "Bad", versions=[])),
    post("a definition of another name", CRDS, {**definition("widgets", "Widget", versions=[VERSION]), "metadata": {"name": "x"}}),
    post("a definition without a schema", CRDS, definition("bads", "Bad", versions=[{"name": "v1", "served": True, "storage": True}])),
    post("a definition that is not structural", CRDS, definition("bads", "Bad", versions=[{**OLDER, "storage": True, "schema": {"openAPIV3Schema": {"properties": {"a": {"items": {"type": "x"}}}}}}])),
    get("not served yet", WIDGETS),
    post("a definition", CRDS, definition("widgets", "Widget", versions=[VERSION, OLDER])),
    get("none yet", WIDGETS, until=200),
    get("established", f"{CRDS}/widgets.scene.test"),
    get("its group", "/apis/scene.test", until=200),
    get("its version", "/apis/scene.test/v1", until=200),
    post("one", WIDGETS, widget("a", {"size": 3, "parts": [{"name": "p", "x": 1}], "any": {"x": 1}}, status={"phase": "no"}), until=201),
    post("again", WIDGETS, widget("a")),
    post("a bad name", WIDGETS, widget("Bad_")),
    post("a name of the server's", WIDGETS, widget("", metadata={"generateName": "gen-"})),
    post("wrong in many ways", WIDGETS, widget("b", {"size": 11, "color": "green", "name": "UPPER9", "parts": [{"n": "x"}]}), unordered=True),
    post("without what it must have", WIDGETS, widget("b", {})),
    post("keys twice", WIDGETS, widget("b", {"size": 1, "parts": [{"name": "p"}, {"name": "p"}]})),
    post("another kind", WIDGETS, {**widget("b"), "kind": "Other"}),
    post("another version", WIDGETS, {**widget("b"), "apiVersion": "scene.test/v9"}),
    post("without a kind", WIDGETS, {"metadata": {"name": "b"}}),
    post("an unknown field", WIDGETS, widget("warned", {"size": 1, "typo": 1})),
    post("an unknown field, minded", f"{WIDGETS}?fieldValidation=Strict", widget("b", {"size": 1, "typo": 1})),
    post("as protobuf", WIDGETS, b"k8s\0", type=PROTOBUF),
    post("malformed", WIDGETS, b"{bad"),
    get("read", f"{WIDGETS}/a"),
    get("nothing", f"{WIDGETS}/nope"),
    get("no subresource", f"{WIDGETS}/a/nope"),
    get("a table", WIDGETS, accept=TABLE),
    get("metadata", f"{WIDGETS}/a", accept=PARTIAL),
    get("as protobuf only", f"{WIDGETS}/a", accept=PROTOBUF),
    get("by color", f"{WIDGETS}?fieldSelector=spec.color%3Dred"),
    get("by size", f"{WIDGETS}?fieldSelector=spec.size%3D3"),
    get("the other version", WIDGETS.replace("/v1/", "/v1beta1/") + "/a"),
    get("no version", WIDGETS.replace("/v1/", "/v9/") + "/a"),
    put("without a version", f"{WIDGETS}/a", widget("a")),
    patch("merge", f"{WIDGETS}/a", {"spec": {"size": 5, "typo": 2}}),
    patch("json", f"{WIDGETS}/a", [{"op": "replace", "path": "/spec/size", "value": 6}], JSONPATCH),
    patch("strategic", f"{WIDGETS}/a", {"spec": {"size": 5}}, STRATEGIC),
    patch("not valid", f"{WIDGETS}/a", {"spec": {"size": 50}}),
    patch("apply", f"{WIDGETS}/a?fieldManager=one", doc("scene.test/v1", "Widget", "a", spec={"parts": [{"name": "q", "n": 1}]}), APPLY),
    patch("a conflict", f"{WIDGETS}/a?fieldManager=two", doc("scene.test/v1", "Widget", "a", spec={"size": 2, "parts": [{"name": "q", "n": 2}]}), APPLY, unordered=True),
    patch("apply in the other version", WIDGETS.replace("/v1/", "/v1beta1/") + "/a?fieldManager=old", doc("scene.test/v1beta1", "Widget", "a", spec={"name": "abc"}), APPLY),
    patch("a status", f"{WIDGETS}/a/status", {"status": {"phase": "Up", "replicas": 2, "selector": "a=b"}, "spec": {"size": 9}}),
    patch("a bad status", f"{WIDGETS}/a/status", {"status": {"phase": 7}}),
    put("a status without a version", f"{WIDGETS}/a/status", widget("a", status={})),
    get("a scale", f"{WIDGETS}/a/scale"),
    put("scaled", f"{WIDGETS}/a/scale", doc("autoscaling/v1", "Scale", "a", spec={"replicas": 4})),
    patch("a scale patched", f"{WIDGETS}/a/scale", {"spec": {"replicas": 5}}),
    patch("a scale patched strategically", f"{WIDGETS}/a/scale", {"spec": {"replicas": 5}}, STRATEGIC),
    patch("a scale patched by no patch", f"{WIDGETS}/a/scale", {"spec": {"replicas": 5}}, JSON),
    patch("a scale applied", f"{WIDGETS}/a/scale?fieldManager=sc&force=true", doc("autoscaling/v1", "Scale", "a", spec={"replicas": 6}), APPLY),
    put("scaled below zero", f"{WIDGETS}/a/scale", doc("autoscaling/v1", "Scale", "a", spec={"replicas": -1})),
    get("no scale", f"{WIDGETS}/nope/scale"),
    get("its owners", f"{WIDGETS}/a"),
    get("a watch", f"{WIDGETS}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Da", lines=1),
    get("exactly the table of one", f"{WIDGETS}/a", accept=TABLE),
    delete("gone", f"{WIDGETS}/a"),
    delete("a collection", WIDGETS),
    patch("no more of a version", f"{CRDS}/widgets.scene.test", [{"op": "remove", "path": "/spec/versions/1"}], JSONPATCH),
    get("and not served", WIDGETS.replace("/v1/", "/v1beta1/"), until=404),
    patch("another scope", f"{CRDS}/widgets.scene.test", {"spec": {"scope": "Cluster"}}),
    delete("no more definition", f"{CRDS}/widgets.scene.test"),
    get("no more of them", WIDGETS, until=404),
)

BEARER = {"Authorization": "Bearer <<token>>"}
KNOWING = (
    get("nobody", CMS, user=""),
    get("nobody reads the version", "/version", user="", head=True),
    get("nobody reads health", "/healthz", user=""),
    get("nobody asks for a path", "/metrics", user=""),
    post("nobody writes", CMS, cm("x"), user=""),
    get("a bad token", CMS, user="", headers={"Authorization": "Bearer nonsense"}),
    get("an expired token", CMS, user="", headers={"Authorization": "Bearer <<expired>>"}),
    get("a bad token beside a certificate", CMS, headers={"Authorization": "Bearer nonsense"}, head=True),
    get("basic", CMS, user="", headers={"Authorization": "Basic eDp5"}),
    get("alice may not list", CMS, user="alice"),
    get("alice may not list everywhere", "/api/v1/configmaps", user="alice"),
    get("alice may not read", f"{CMS}/x", user="alice"),
    get("alice may not watch", f"{CMS}?watch=1", user="alice"),
    post("alice may not write", DEPLOYMENTS, deployment("x"), user="alice"),
    patch("alice may not patch", f"{DEPLOYMENTS}/x/scale", {}, user="alice"),
    delete("alice may not delete", f"{NODES}/x", user="alice"),
    delete("alice may not delete them all", f"{PODS}", user="alice"),
    get("alice may not see what is not there", "/apis/nope.io/v1/x", user="alice"),
    get("alice may not see paths", "/nope", user="alice"),
    post("what may alice", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "<<ns>>"}}, user="alice", unordered=True),
    post("who is alice", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user="alice"),
    post("a role", ROLES, doc("rbac.authorization.k8s.io/v1", "Role", "reader", rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}])),
    post("a binding", BINDINGS, doc("rbac.authorization.k8s.io/v1", "RoleBinding", "reader", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}, subjects=[{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "<<ns>>"}])),
    get("alice may list", CMS, user="alice", until=200),
    post("alice may still not write", CMS, cm("x"), user="alice"),
    get("alice may not be bob", CMS, user="alice", headers={"Impersonate-User": "bob"}),
    get("admin may be bob", CMS, headers={"Impersonate-User": "bob"}),
    get("admin may be alice", CMS, headers={"Impersonate-User": "alice", "Impersonate-Group": "people"}),
    post("who is bob", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, headers={"Impersonate-User": "bob", "Impersonate-Group": "people", "Impersonate-Uid": "7", "Impersonate-Extra-Scopes": "view"}),
    get("groups of nobody", CMS, headers={"Impersonate-Group": "people"}),
    post("a role of more than one has", ROLES, doc("rbac.authorization.k8s.io/v1", "Role", "more", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]), headers={"Impersonate-User": "alice"}),
    post("an account", ACCOUNTS, doc("v1", "ServiceAccount", "robot")),
    post("its token", f"{ACCOUNTS}/robot/token", {"spec": {}}, keep={"token": "status.token"}),
    get("the robot lists", CMS, user="", headers=BEARER),
    get("the robot may not more", SECRETS, user="", headers=BEARER),
    post("who is the robot", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, user="", headers=BEARER),
    post("whose token is it", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "<<token>>"}}),
    post("whose token is it elsewhere", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "<<token>>", "audiences": ["other"]}}),
    delete("the robot goes", f"{ACCOUNTS}/robot"),
    get("its token is nothing", CMS, user="", headers=BEARER, until=401),
)
# fmt: on


# -- protobuf ---------------------------------------------------------------------------------

GO = f"{PROTOBUF},{JSON}"
PB_PARTIAL = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
PB_PARTIALS = f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PB_OLD_PARTIAL = PB_PARTIAL.replace("v=v1", "v=v1beta1")
PB_TABLE = f"{PROTOBUF};as=Table;g=meta.k8s.io;v=v1"
_POD = {
    "containers": [
        {"name": "c", "image": "i", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "0.5"}}}
    ]
}
_WORK = {
    "selector": {"matchLabels": {"a": "b"}},
    "template": {"metadata": {"labels": {"a": "b"}}, "spec": _POD},
}
_SPOKEN: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "config map": (CMS, {"data": {"b": "1", "a": ""}, "binaryData": {"c": "AAE="}}),
    "secret": (SECRETS, {"stringData": {"k": "v"}}),
    "service": (SERVICES, {"spec": {"ports": [{"port": 80, "targetPort": "web"}]}}),
    "claim": (
        CLAIMS,
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500Mi"}}}},
    ),
    "deployment": (DEPLOYMENTS, {"spec": _WORK}),
    "stateful set": (STATEFUL, {"spec": {**_WORK, "serviceName": "s"}}),
    "cron job": (
        CRONJOBS,
        {
            "spec": {
                "schedule": "0 0 * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**_POD, "restartPolicy": "Never"}}}},
            }
        },
    ),
    "autoscaler": (
        HPAS,
        {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            }
        },
    ),
    "budget": (BUDGETS, {"spec": {"minAvailable": "50%"}}),
    "ingress": (INGRESSES, {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 8}}}}}),
    "lease": (LEASES, {"spec": {"holderIdentity": "x", "renewTime": "2026-01-02T03:04:05.000600Z"}}),
    "quota": (QUOTAS, {"spec": {"hard": {"pods": "10"}}}),
}
_THINGS = "/apis/wire.example.com/v1/namespaces/<<ns>>/things"
_THING_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.wire.example.com"},
    "spec": {
        "group": "wire.example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
WIRE = (
    *(
        post(f"create a {name}", path, {"metadata": {"name": "w"}, **body}, accept=GO)
        for name, (path, body) in _SPOKEN.items()
    ),
    *(get(f"a {name}", f"{path}/w", accept=PROTOBUF) for name, (path, _) in _SPOKEN.items()),
    *(
        get(f"the metadata of a {name}", f"{path}/w", accept=PB_PARTIAL)
        for name, (path, _) in _SPOKEN.items()
    ),
    *(
        get(f"all of {name}", f"{path}?fieldSelector=metadata.name%3Dw", accept=GO)
        for name, (path, _) in _SPOKEN.items()
    ),
    *(
        get(f"all metadata of {name}", f"{path}?fieldSelector=metadata.name%3Dw", accept=PB_PARTIALS)
        for name, (path, _) in _SPOKEN.items()
    ),
    get("old metadata", f"{CMS}/w", accept=PB_OLD_PARTIAL),
    get("a table, which has no message", f"{CMS}/w", accept=PB_TABLE),
    get("a table or else JSON", f"{CMS}/w", accept=f"{PB_TABLE},{JSON}"),
    get("metadata of a list as of an object", CMS, accept=PB_PARTIAL),
    get("a list of an object", f"{CMS}/w", accept=PB_PARTIALS),
    get("less than JSON", f"{CMS}/w", accept=f"{PROTOBUF};q=0.5,{JSON};q=0.9"),
    get("more than JSON", f"{CMS}/w", accept=f"{JSON};q=0.5,{PROTOBUF};q=0.9"),
    get("pretty", f"{CMS}/w?pretty=true", accept=PROTOBUF),
    get("no such", f"{CMS}/none", accept=GO),
    get("no such in YAML", f"{CMS}/none", accept=YAML),
    get("no such resource", here("nothings"), accept=GO),
    get("a bad selector", f"{CMS}?labelSelector=a+in+b", accept=GO),
    post("there already", CMS, {"metadata": {"name": "w"}}, accept=GO),
    post("invalid", CMS, {"metadata": {"name": "W!"}}, accept=GO),
    post("invalid in YAML", CMS, {"metadata": {"name": "W!"}}, accept=YAML),
    get("nobody's", CMS, user="", accept=GO),
    get("refused", CMS, user="stranger", accept=GO),
    get("CBOR or protobuf", f"{CMS}/w", accept=f"{CBOR},{PROTOBUF}"),
    patch("patch", f"{CMS}/w", {"data": {"b": "2"}}, accept=GO),
    patch("patch again", f"{CMS}/w", {"data": {"z": "1"}}, accept=GO),
    get("a scale", f"{DEPLOYMENTS}/w/scale", accept=GO),
    patch("change a scale", f"{DEPLOYMENTS}/w/scale", {"spec": {"replicas": 3}}, accept=GO),
    post(
        "may I",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        accept=GO,
    ),
    post("who am I", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, accept=GO, head=True),
    get("the versions", "/api", accept=PROTOBUF),
    get("a group", "/apis/apps", accept=PROTOBUF),
    get("resources of a group", "/apis/batch/v1", accept=PROTOBUF),
    post("define", CRDS, _THING_CRD, accept=JSON, head=True),
    get("until they are served", _THINGS, until=200, head=True),
    post(
        "create a thing",
        _THINGS,
        {
            "apiVersion": "wire.example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "t", "labels": {"a": "b"}},
            "spec": 1,
        },
        accept=GO,
    ),
    post(
        "create a thing for protobuf",
        _THINGS,
        {"apiVersion": "wire.example.com/v1", "kind": "Thing", "metadata": {"name": "u"}},
        accept=PROTOBUF,
    ),
    get("no thing for protobuf", f"{_THINGS}/u", accept=GO),
    get("a thing", f"{_THINGS}/t", accept=PROTOBUF),
    get("a thing or JSON", f"{_THINGS}/t", accept=GO),
    get("the metadata of a thing", f"{_THINGS}/t", accept=PB_PARTIAL),
    get("the metadata of things", _THINGS, accept=PB_PARTIALS),
    get("no such thing", f"{_THINGS}/none", accept=GO),
    get("things watched", f"{_THINGS}?watch=1&resourceVersion=0", accept=PROTOBUF),
    get("things watched by metadata", f"{_THINGS}?watch=1&resourceVersion=0", accept=PB_PARTIAL, lines=1),
    delete("delete a thing", f"{_THINGS}/t", accept=GO),
    get("watched", f"{CMS}?watch=1&fieldSelector=metadata.name%3Dw&resourceVersion=0", accept=GO, lines=1),
    get(
        "watched by metadata",
        f"{CMS}?watch=1&fieldSelector=metadata.name%3Dw&resourceVersion=0",
        accept=PB_PARTIAL,
        lines=1,
    ),
    get(
        "watched from the beginning",
        f"{CMS}?watch=1&fieldSelector=metadata.name%3Dw&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        accept=GO,
        lines=2,
    ),
    get("watched as tables", f"{CMS}?watch=1", accept=PB_TABLE),
    get("watched as YAML", f"{CMS}?watch=1", accept=YAML),
    *(delete(f"delete a {name}", f"{path}/w", accept=GO) for name, (path, _) in _SPOKEN.items()),
    delete("delete all", f"{SECRETS}?labelSelector=a%3Db", accept=GO),
)

CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "paths": PATHS,
    "creating": CREATING,
    "bodies": BODIES,
    "reading": READING,
    "updating": UPDATING,
    "patching": PATCHING,
    "applying": APPLYING,
    "deleting": DELETING,
    "pods": PODS_,
    "below": BELOW,
    "defaulting": DEFAULTING,
    "everything": EVERYTHING,
    "refusing": REFUSING,
    "changing": CHANGING,
    "odd": ODD,
    "living": LIVING,
    "serving": SERVING,
    "limiting": LIMITING,
    "watching": WATCHING,
    "sharing": SHARING,
    "custom": CUSTOM,
    "knowing": KNOWING,
    "wire": WIRE,
    "webhooks": tuple(Ask(**row) for row in scenario_webhooks.rows()),
}
"""By name, in order. Requests are called ``chapter: title``."""
