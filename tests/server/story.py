"""One story of requests, told through any `Api`: what is answered, with what differs by nature left out.

In process and over HTTP it must be told alike; that HTTP is answered as a real server answers it is what the scenario
of ``tests/real`` sees to.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from steersman.api.errors import ApiError
from steersman.api.generated import load
from steersman.api.scheme import Kind
from steersman.client.api import Api

STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json-patch+json"

DEPLOYMENTS = load("apps", "v1", "Deployment").untyped
REPLICASETS = load("apps", "v1", "ReplicaSet").untyped
CONTROLLERS = load("", "v1", "ReplicationController").untyped
PODS = load("", "v1", "Pod").untyped
CONFIGMAPS = load("", "v1", "ConfigMap").untyped
SECRETS = load("", "v1", "Secret").untyped
NAMESPACES = load("", "v1", "Namespace").untyped
LEASES = load("coordination.k8s.io", "v1", "Lease").untyped
JOBS = load("batch", "v1", "Job").untyped
ACCOUNTS = load("", "v1", "ServiceAccount").untyped
BUDGETS = load("policy", "v1", "PodDisruptionBudget").untyped

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SUFFIX = re.compile(r"\b(gen-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_VERSIONS = re.compile(r"(ResourceVersion in [a-z ]+[:(] ?|in record \(|in the precondition \()\d+")


_HIDDEN = ("managedFields", "resourceVersion", "selfLink")
_ADMITTED = ("preemptionPolicy", "priority", "serviceAccount", "serviceAccountName", "tolerations")
"""What admission plugins put into pods."""


class Story:
    """Records one line for each thing that was tried."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api = api
        self.namespace = namespace
        self.lines: list[str] = []
        self._uids: dict[str, str] = {}

    async def tell(self, title: str, request: Awaitable[Any]) -> Any:
        try:
            answer = await request
        except ApiError as error:
            hidden = ("causes", "retryAfterSeconds")
            details = {k: v for k, v in sorted(error.details.items()) if k not in hidden}
            # The real server checks metadata twice, once for all kinds and once for each.
            causes = list(dict.fromkeys((cause.reason, cause.field, cause.message) for cause in error.causes))
            told = (
                f"{error.code} {error.reason} | {error.message} | {details} | {causes} | {error.retry_after}"
            )
            self.lines.append(f"{title}: {self._plain(told)}")
            return None
        self.lines.append(f"{title}: {self._plain(repr(self._object(answer)))}")
        return answer

    def _object(self, value: Any) -> Any:
        """A document in a stable order, without what differs by nature."""
        if isinstance(value, dict):
            hidden = _ADMITTED if "containers" in value and "enableServiceLinks" in value else _HIDDEN
            return {k: self._object(v) for k, v in sorted(value.items()) if k not in hidden}
        if isinstance(value, list):
            return [self._object(item) for item in value]
        return value

    def _plain(self, text: str) -> str:
        text = _UID.sub(lambda found: self._uids.setdefault(found[0], f"<uid {len(self._uids)}>"), text)
        text = _VERSIONS.sub(r"\1<rv>", _SUFFIX.sub(r"\1<name>", _TIME.sub("<time>", text)))
        return text.replace(self.namespace, "<ns>")


def pod(name: str = "", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name} if name else {"generateName": "gen-"},
        "spec": {
            "containers": [{"name": "main", "image": "registry.test/app:1"}],
            "automountServiceAccountToken": False,
            **spec,
        },
    }


def template() -> dict[str, Any]:
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    }


def workload(name: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, "template": template(), **spec}}


async def creation(s: Story) -> None:
    api, ns = s.api, s.namespace
    cm = {"metadata": {"name": "c", "labels": {"a": "b"}}, "data": {"k": "v"}}
    await s.tell("create", api.create(CONFIGMAPS, ns, cm))
    await s.tell("again", api.create(CONFIGMAPS, ns, cm))
    await s.tell("nowhere", api.create(CONFIGMAPS, "nowhere", cm))
    await s.tell("other namespace", api.create(CONFIGMAPS, ns, {"metadata": {"name": "d", "namespace": "x"}}))
    await s.tell("nameless", api.create(CONFIGMAPS, ns, {"metadata": {}}))
    await s.tell("bad name", api.create(CONFIGMAPS, ns, {"metadata": {"name": "Bad_Name"}}))
    await s.tell("bad label", api.create(CONFIGMAPS, ns, {"metadata": {"name": "e", "labels": {"a": "b c"}}}))
    versioned = {"metadata": {"name": "f", "resourceVersion": "5"}}
    await s.tell("with a version", api.create(CONFIGMAPS, ns, versioned))
    await s.tell("generated", api.create(CONFIGMAPS, ns, {"metadata": {"generateName": "gen-"}}))
    says = {"name": "g", "uid": "00000000-0000-0000-0000-000000000000", "generation": 7}
    says["deletionTimestamp"] = "2020-01-01T00:00:00Z"
    await s.tell("what only the server says", api.create(CONFIGMAPS, ns, {"metadata": says}))
    two = [
        {"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in ("one", "two")
    ]
    owned = {"metadata": {"name": "h", "ownerReferences": two}}
    await s.tell("two controllers", api.create(CONFIGMAPS, ns, owned))
    await s.tell("get", api.get(CONFIGMAPS, ns, "c"))
    await s.tell("get missing", api.get(CONFIGMAPS, ns, "missing"))
    await s.tell("get missing in a group", api.get(DEPLOYMENTS, ns, "missing"))


async def updating(s: Story) -> None:
    api, ns = s.api, s.namespace
    made = await api.create(CONFIGMAPS, ns, {"metadata": {"name": "u"}, "data": {"k": "1"}})
    version = made["metadata"]["resourceVersion"]
    same = await api.update(CONFIGMAPS, ns, "u", made)
    s.lines.append(f"no change is no write: {same['metadata']['resourceVersion'] == version}")
    made["data"] = {"k": "2"}
    await s.tell("update", api.update(CONFIGMAPS, ns, "u", made))
    await s.tell("outdated", api.update(CONFIGMAPS, ns, "u", {**made, "data": {"k": "3"}}))
    bare = {"metadata": {"name": "u"}, "data": {"k": "4"}}
    await s.tell("unconditional", api.update(CONFIGMAPS, ns, "u", bare))
    await s.tell("other name", api.update(CONFIGMAPS, ns, "u", {"metadata": {"name": "v"}}))
    other = {"metadata": {"name": "u", "uid": "00000000-0000-0000-0000-000000000000"}}
    await s.tell("other uid", api.update(CONFIGMAPS, ns, "u", other))
    await s.tell("missing", api.update(CONFIGMAPS, ns, "missing", {"metadata": {"name": "missing"}}))
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}
    await s.tell("created by update", api.update(LEASES, ns, "l", lease))
    await s.tell("a lease without a version", api.update(LEASES, ns, "l", lease))


async def patching(s: Story) -> None:
    api, ns = s.api, s.namespace
    await s.tell("deployment", api.create(DEPLOYMENTS, ns, workload("p")))
    await s.tell("merge", api.patch(DEPLOYMENTS, ns, "p", {"metadata": {"labels": {"x": "y"}}}))
    await s.tell("spec", api.patch(DEPLOYMENTS, ns, "p", {"spec": {"replicas": 2}}))
    await s.tell("annotation", api.patch(DEPLOYMENTS, ns, "p", {"metadata": {"annotations": {"x": "y"}}}))
    await s.tell("null", api.patch(DEPLOYMENTS, ns, "p", {"metadata": {"labels": None}}))
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}}}
    await s.tell("strategic", api.patch(DEPLOYMENTS, ns, "p", sidecar, content_type=STRATEGIC))
    ops = [{"op": "replace", "path": "/spec/replicas", "value": 5}]
    await s.tell("json", api.patch(DEPLOYMENTS, ns, "p", ops, content_type=JSON))
    test = [{"op": "test", "path": "/spec/replicas", "value": 6}]
    await s.tell("json that does not apply", api.patch(DEPLOYMENTS, ns, "p", test, content_type=JSON))
    version = {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 9}}
    await s.tell("outdated", api.patch(DEPLOYMENTS, ns, "p", version))
    uid = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "spec": {"replicas": 9}}
    await s.tell("other uid", api.patch(DEPLOYMENTS, ns, "p", uid))
    await s.tell("other name", api.patch(DEPLOYMENTS, ns, "p", {"metadata": {"name": "q"}}))
    await s.tell("missing", api.patch(DEPLOYMENTS, ns, "missing", {"spec": {"replicas": 1}}))


async def status(s: Story) -> None:
    api, ns = s.api, s.namespace
    made = await api.create(REPLICASETS, ns, {**workload("r"), "status": {"replicas": 7}})
    s.lines.append(f"no status at birth: {made['status']}")
    body = {
        "metadata": {**made["metadata"], "labels": {"l": "1"}, "annotations": {"a": "1"}},
        "spec": {"replicas": 9},
        "status": {"replicas": 3, "observedGeneration": 1},
    }
    await s.tell("status of a ReplicaSet", api.update_status(REPLICASETS, ns, "r", body))
    bare = {"metadata": {"name": "r"}, "status": {"replicas": 2}}
    await s.tell("metadata that is missing is wiped", api.update_status(REPLICASETS, ns, "r", bare))
    live = await api.get(REPLICASETS, ns, "r")
    live["status"] = {"replicas": 99}
    await s.tell("an update leaves the status", api.update(REPLICASETS, ns, "r", live))
    labelled = {**workload("d")}
    labelled["metadata"] = {"name": "d", "labels": {"keep": "me"}, "annotations": {"keep": "me"}}
    await api.create(DEPLOYMENTS, ns, labelled)
    bare = {"metadata": {"name": "d"}, "status": {"replicas": 1, "observedGeneration": 1}}
    await s.tell("status of a Deployment keeps labels", api.update_status(DEPLOYMENTS, ns, "d", bare))
    patch = {"status": {"readyReplicas": 1}, "spec": {"replicas": 8}}
    await s.tell("patched", api.patch(DEPLOYMENTS, ns, "d", patch, subresource="status"))
    await s.tell("no such subresource", api.patch(CONFIGMAPS, ns, "d", patch, subresource="status"))


async def deleting(s: Story) -> None:
    api, ns = s.api, s.namespace
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    made = await api.create(CONFIGMAPS, ns, held)
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    zero = "00000000-0000-0000-0000-000000000000"
    await s.tell("other uid", api.delete(CONFIGMAPS, ns, "held", uid=zero))
    await s.tell("other version", api.delete(CONFIGMAPS, ns, "held", resource_version="1"))
    await s.tell("exact", api.delete(CONFIGMAPS, ns, "held", uid=uid, resource_version=version))
    await s.tell("waits for its finalizer", api.get(CONFIGMAPS, ns, "held"))
    await s.tell("created meanwhile", api.create(CONFIGMAPS, ns, {"metadata": {"name": "held"}}))
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    await s.tell("no further finalizers", api.patch(CONFIGMAPS, ns, "held", more))
    await s.tell("last finalizer", api.patch(CONFIGMAPS, ns, "held", {"metadata": {"finalizers": None}}))
    await s.tell("gone", api.get(CONFIGMAPS, ns, "held"))
    await s.tell("delete missing", api.delete(CONFIGMAPS, ns, "held"))
    for propagation in ("Foreground", "Orphan", "Background", None):
        name = f"dep-{str(propagation).lower()}"
        await api.create(DEPLOYMENTS, ns, workload(name))
        await s.tell(f"delete {propagation}", api.delete(DEPLOYMENTS, ns, name, propagation=propagation))
        await s.tell(f"after {propagation}", api.get(DEPLOYMENTS, ns, name))
    await api.create(CONTROLLERS, ns, {"metadata": {"name": "rc"}, "spec": {"template": template()}})
    await s.tell("delete rc", api.delete(CONTROLLERS, ns, "rc"))
    await s.tell("an rc orphans by default", api.get(CONTROLLERS, ns, "rc"))
    for i in range(3):
        await api.create(SECRETS, ns, {"metadata": {"name": f"s{i}", "labels": {"odd": str(i % 2)}}})
    await s.tell("collection", api.delete_collection(SECRETS, ns, label_selector="odd=0"))
    left = await api.list(SECRETS, ns)
    s.lines.append(f"left: {[item['metadata']['name'] for item in left.items]}")


async def pods(s: Story) -> None:
    api, ns = s.api, s.namespace
    await api.create(PODS, ns, pod("free"))
    await s.tell("unscheduled", api.delete(PODS, ns, "free"))
    await s.tell("goes at once", api.get(PODS, ns, "free"))
    await s.tell("create", api.create(PODS, ns, pod("bound")))
    body = {"metadata": {"name": "bound"}, "target": {"kind": "Node", "name": "n1"}}
    await s.tell("bind", api.subresource(PODS, ns, "bound", "binding", body))
    await s.tell("bound", api.get(PODS, ns, "bound"))
    await s.tell("bind again", api.subresource(PODS, ns, "bound", "binding", body))
    nobody = {"metadata": {"name": "nobody"}, "target": {"kind": "Node", "name": "n1"}}
    await s.tell("bind missing", api.subresource(PODS, ns, "nobody", "binding", nobody))
    live = await api.get(PODS, ns, "bound")
    live["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "00000000-0000-0000-0000-000000000000"}
    ]
    live["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await s.tell("status keeps owners", api.update_status(PODS, ns, "bound", live))
    await s.tell("graceful", api.delete(PODS, ns, "bound", grace=20))
    await s.tell("going", api.get(PODS, ns, "bound"))
    await s.tell("longer is no change", api.delete(PODS, ns, "bound", grace=60))
    await s.tell("still going", api.get(PODS, ns, "bound"))
    await s.tell("sooner", api.delete(PODS, ns, "bound", grace=10))
    await s.tell("going sooner", api.get(PODS, ns, "bound"))
    await s.tell("bind what goes", api.subresource(PODS, ns, "bound", "binding", body))
    await s.tell("now", api.delete(PODS, ns, "bound", grace=0))
    await s.tell("gone", api.get(PODS, ns, "bound"))
    await api.create(PODS, ns, pod("done", nodeName="n1"))
    done = {"metadata": {"name": "done"}, "status": {"phase": "Succeeded"}}
    await api.update_status(PODS, ns, "done", done)
    await s.tell("a pod that is done", api.delete(PODS, ns, "done"))
    await s.tell("needs no grace", api.get(PODS, ns, "done"))
    held = pod("held", nodeName="n1")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(PODS, ns, held)
    await s.tell("held", api.delete(PODS, ns, "held"))
    await s.tell("held, going", api.get(PODS, ns, "held"))
    await s.tell("held, now", api.delete(PODS, ns, "held", grace=0))
    await s.tell("held, still there", api.get(PODS, ns, "held"))
    await s.tell("let go", api.patch(PODS, ns, "held", {"metadata": {"finalizers": None}}))
    await s.tell("held, gone", api.get(PODS, ns, "held"))
    for cpu, memory in (("1", "1Gi"), ("1", None)):
        limits = {k: v for k, v in (("cpu", cpu), ("memory", memory)) if v}
        made = pod(f"qos-{len(limits)}")
        made["spec"]["containers"][0]["resources"] = {"limits": limits}
        answer = await api.create(PODS, ns, made)
        kept = answer["spec"]["containers"][0]["resources"]
        s.lines.append(f"qos {answer['status']['qosClass']} {s._object(kept)}")


async def evicting(s: Story) -> None:
    api, ns = s.api, s.namespace

    def evict(name: str) -> Awaitable[Any]:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": ns}}
        return api.subresource(PODS, ns, name, "eviction", body)

    guarded = {
        "metadata": {"name": "pdb"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"g": "y"}}},
    }
    await s.tell("budget", api.create(BUDGETS, ns, guarded))
    for name in ("e1", "e2"):
        made = pod(name, nodeName="n1")
        made["metadata"]["labels"] = {"g": "y"}
        await api.create(PODS, ns, made)
        ready = [{"type": "Ready", "status": "True"}]
        live = {
            "metadata": {"name": name, "labels": {"g": "y"}},
            "status": {"phase": "Running", "conditions": ready},
        }
        await api.update_status(PODS, ns, name, live)
    fresh = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
    fresh["expectedPods"] = 2
    await api.patch(BUDGETS, ns, "pdb", {"status": fresh}, subresource="status")
    await s.tell("allowed", evict("e1"))
    await s.tell("evicted", api.get(PODS, ns, "e1"))
    await s.tell("spent", api.get(BUDGETS, ns, "pdb"))
    await s.tell("exhausted", evict("e2"))
    await s.tell("missing", evict("nobody"))


async def scaling(s: Story) -> None:
    api, ns = s.api, s.namespace
    await api.create(DEPLOYMENTS, ns, workload("sc", replicas=2))
    await s.tell("read", api.subresource(DEPLOYMENTS, ns, "sc", "scale", verb="get"))
    scale = {"metadata": {"name": "sc", "namespace": ns}, "spec": {"replicas": 4}}
    await s.tell("set", api.subresource(DEPLOYMENTS, ns, "sc", "scale", scale, verb="update"))
    scaled = await api.get(DEPLOYMENTS, ns, "sc")
    s.lines.append(f"scaled {scaled['spec']['replicas']} generation {scaled['metadata']['generation']}")
    await s.tell("patch", api.patch(DEPLOYMENTS, ns, "sc", {"spec": {"replicas": 6}}, subresource="scale"))
    negative = {"metadata": {"name": "sc", "namespace": ns}, "spec": {"replicas": -1}}
    await s.tell("negative", api.subresource(DEPLOYMENTS, ns, "sc", "scale", negative, verb="update"))
    outdated = {"metadata": {"name": "sc", "namespace": ns, "resourceVersion": "1"}, "spec": {"replicas": 1}}
    await s.tell("outdated", api.subresource(DEPLOYMENTS, ns, "sc", "scale", outdated, verb="update"))
    await s.tell("missing", api.subresource(DEPLOYMENTS, ns, "nobody", "scale", verb="get"))


async def defaults(s: Story) -> None:
    api, ns = s.api, s.namespace
    await s.tell("replicaset", api.create(REPLICASETS, ns, workload("rs")))
    await s.tell(
        "rc", api.create(CONTROLLERS, ns, {"metadata": {"name": "rc2"}, "spec": {"template": template()}})
    )
    await s.tell("recreate", api.create(DEPLOYMENTS, ns, workload("re", strategy={"type": "Recreate"})))
    full = template()
    full["spec"] = {
        "containers": [
            {
                "name": "main",
                "image": "registry.test:5000/app@sha256:" + "0" * 64,
                "ports": [{"containerPort": 80}],
                "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "livenessProbe": {"httpGet": {"port": 80}},
                "readinessProbe": {"grpc": {"port": 81}},
                "lifecycle": {"preStop": {"httpGet": {"port": 82}}},
                "volumeMounts": [{"name": "e", "mountPath": "/e"}],
            }
        ],
        "volumes": [
            {"name": "e"},
            {"name": "s", "secret": {"secretName": "s"}},
            {"name": "h", "hostPath": {"path": "/h"}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        ],
        "serviceAccountName": "sa",
    }
    await s.tell("template", api.create(DEPLOYMENTS, ns, workload("full", template=full)))
    job = {"spec": {"containers": [{"name": "c", "image": "j:latest"}], "restartPolicy": "Never"}}
    await s.tell("job", api.create(JOBS, ns, {"metadata": {"name": "job"}, "spec": {"template": job}}))


async def selecting(s: Story) -> None:
    api, ns = s.api, s.namespace
    for name in ("a", "b", "c"):
        await api.create(
            SECRETS, ns, {"metadata": {"name": name, "labels": {"n": name}}, "type": "t/" + name}
        )

    async def names(kind: Kind[dict[str, Any]], **options: str) -> list[str]:
        found = await api.list(kind, ns, **options)  # type: ignore[arg-type]
        return [item["metadata"]["name"] for item in found.items]

    await s.tell("labels", names(SECRETS, label_selector="n in (a,b),n!=a"))
    await s.tell("fields", names(SECRETS, field_selector="type=t/b"))
    await s.tell("name", names(SECRETS, field_selector="metadata.name=c"))
    await s.tell("not name", names(SECRETS, field_selector="metadata.name!=c,type!=t/a"))
    await s.tell("bad field", names(SECRETS, field_selector="data=x"))
    await s.tell("bad field of a plain kind", names(CONFIGMAPS, field_selector="data=x"))
    await s.tell("bad labels", names(SECRETS, label_selector="a in b"))
    await s.tell("bad version", names(SECRETS, resource_version="x"))


async def namespaces(s: Story) -> None:
    api = s.api
    name = f"{s.namespace}-own"
    await s.tell("create", api.create(NAMESPACES, "", {"metadata": {"name": name}}))
    await api.create(CONFIGMAPS, name, {"metadata": {"name": "c"}})
    await s.tell("immortal", api.delete(NAMESPACES, "", "kube-system"))
    await s.tell("delete", api.delete(NAMESPACES, "", name))
    await s.tell("terminating", api.get(NAMESPACES, "", name))
    await s.tell("nothing new", api.create(CONFIGMAPS, name, {"metadata": {"name": "d"}}))
    await s.tell("nothing generated", api.create(CONFIGMAPS, name, {"metadata": {"generateName": "gen-"}}))
    await s.tell("changes are welcome", api.patch(CONFIGMAPS, name, "c", {"data": {"k": "v"}}))
    live = await api.get(NAMESPACES, "", name)
    live["spec"] = {}
    await s.tell("an update keeps its finalizers", api.update(NAMESPACES, "", name, live))
    live = await api.get(NAMESPACES, "", name)
    live["spec"] = {"finalizers": []}
    await s.tell("finalize", api.subresource(NAMESPACES, "", name, "finalize", live, verb="update"))
    await s.tell("gone", api.get(NAMESPACES, "", name))


async def watching(s: Story) -> None:
    api, ns = s.api, s.namespace
    await api.create(CONFIGMAPS, ns, {"metadata": {"name": "old", "labels": {"in": "yes"}}})
    begin = (await api.list(CONFIGMAPS, ns)).resource_version

    async def follow(kind: Kind[dict[str, Any]], until: str, **options: Any) -> list[str]:
        """What a watch tells, up to the deletion of an object, or to its initial end."""
        told = []
        async for event in api.watch(kind, ns, **options):
            obj = event.obj
            if obj is None:
                if event.initial_end:
                    told.append("initial end")
                    if not until:
                        break
                continue
            assert isinstance(obj, dict)
            meta = obj["metadata"]
            same = meta["resourceVersion"] == event.resource_version
            going = " going" if "deletionTimestamp" in meta else ""
            told.append(f"{event.type.value} {meta['name']} {meta.get('labels')}{going} {same}")
            if meta["name"] == until and event.type.value == "DELETED":
                break
        return told

    async def label(name: str, value: str | None) -> None:
        await api.patch(CONFIGMAPS, ns, name, {"metadata": {"labels": {"in": value}}})

    for name, labels in (("x", {"in": "yes"}), ("y", {"in": "no"})):
        await api.create(CONFIGMAPS, ns, {"metadata": {"name": name, "labels": labels}})
    await label("x", "no")
    await label("y", "yes")
    await label("y", None)
    await label("y", "yes")
    await api.patch(CONFIGMAPS, ns, "y", {"data": {"k": "v"}})
    await api.patch(CONFIGMAPS, ns, "y", {"data": {"k": "v"}})
    await api.delete(CONFIGMAPS, ns, "x")
    await api.delete(CONFIGMAPS, ns, "y")
    await s.tell("all", follow(CONFIGMAPS, "y", resource_version=begin))
    await s.tell("selected", follow(CONFIGMAPS, "y", resource_version=begin, label_selector="in=yes"))
    await s.tell("one", follow(CONFIGMAPS, "x", resource_version=begin, field_selector="metadata.name=x"))
    await s.tell("initial", follow(CONFIGMAPS, "", send_initial_events=True))
    begin = (await api.list(PODS, ns)).resource_version
    await api.create(PODS, ns, pod("free"))
    await api.delete(PODS, ns, "free")
    await s.tell("a pod nobody has", follow(PODS, "free", resource_version=begin))
    begin = (await api.list(PODS, ns)).resource_version
    await api.create(PODS, ns, pod("held", nodeName="n1"))
    await api.delete(PODS, ns, "held")
    await api.delete(PODS, ns, "held", grace=0)
    await s.tell("a pod on a node", follow(PODS, "held", resource_version=begin))


CHAPTERS: tuple[Callable[[Story], Awaitable[None]], ...] = (
    creation,
    updating,
    patching,
    status,
    deleting,
    pods,
    evicting,
    scaling,
    defaults,
    selecting,
    namespaces,
    watching,
)


async def told(api: Api) -> list[str]:
    """The whole story."""
    lines: list[str] = []
    for chapter in CHAPTERS:
        namespace = f"story-{chapter.__name__}"
        await api.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        await api.create(ACCOUNTS, namespace, {"metadata": {"name": "default"}})
        story = Story(api, namespace)
        await chapter(story)
        lines += [f"{chapter.__name__}: {line}" for line in story.lines]
    return lines
