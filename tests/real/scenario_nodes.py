"""Chapters of the scenario about nodes: what their users may do, and what is refused before a kubelet is asked.

``system:node:NAME`` is a kubelet's user, in the group ``system:nodes``. A real server notices a moment later that a pod refers to
something: such a request is sent until it is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.real.scenario import (
    CLAIMS,
    CMS,
    CSRS,
    MERGE,
    NAMESPACES,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    STRATEGIC,
    VOLUMES,
    Ask,
    ask,
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

A, B = "system:node:scene-a", "system:node:scene-b"
ACCOUNTS = here("serviceaccounts")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
CSINODES = "/apis/storage.k8s.io/v1/csinodes"
RESOURCE_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}
VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "hostPath": {"path": "/x"},
    "claimRef": {"namespace": "<<ns>>", "name": "data"},
}
CLAIM = {"accessModes": ["ReadWriteOnce"], "volumeName": "scene-data", "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
MOUNTS = [
    {"name": "s", "secret": {"secretName": "used"}},
    {"name": "c", "configMap": {"name": "used"}},
    {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
]


def node(name: str, **meta: Any) -> dict[str, Any]:
    return doc("v1", "Node", name, metadata=meta)


def mirror(name: str, host: str, **spec: Any) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Node", "name": host, "uid": "<<node>>", "controller": True}
    return pod(name, {**MIRROR, "ownerReferences": [owner]}, nodeName=host, **spec)


def bound(name: str, uid: str) -> dict[str, Any]:
    return {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": name, "uid": uid}}}


# fmt: off
RIGHTS = (
    # -- nodes
    post("a node of its own", NODES, node("scene-a"), user=A, keep={"node": "metadata.uid"}),
    post("a node of another", NODES, node("scene-b"), user=A),
    post("a node with a label it may have", NODES, node("scene-b", labels={"kubernetes.io/hostname": "b", "example.com/x": "y"}), user=B),
    post("a node with a label it may not have", NODES, node("scene-c", labels={"node-restriction.kubernetes.io/x": "y"}), user="system:node:scene-c"),
    post("a node with a role", NODES, node("scene-c", labels={"node-role.kubernetes.io/master": ""}), user="system:node:scene-c"),
    post("a node with taints", NODES, {**node("scene-c"), "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, user="system:node:scene-c"),
    post("a node with a config source", NODES, {**node("scene-d"), "spec": {"configSource": {"configMap": {"namespace": "a", "name": "b", "kubeletConfigKey": "c"}}}}, user="system:node:scene-d"),
    post("a node for a user without the group", NODES, node("ungrouped"), user="system:node:ungrouped"),
    post("a node for a user of the group with another name", NODES, node("scene-e"), user="misnamed"),
    get("itself", f"{NODES}/scene-a", user=A),
    get("another", f"{NODES}/scene-b", user=A),
    get("all nodes", NODES, user=A),
    get("itself in a list", f"{NODES}?fieldSelector=metadata.name%3Dscene-a", user=A),
    get("another in a list", f"{NODES}?fieldSelector=metadata.name%3Dscene-b", user=A),
    get("itself in a watch", f"{NODES}?watch=1&fieldSelector=metadata.name%3Dscene-a&timeoutSeconds=1&resourceVersion=0", user=A, lines=1),
    patch("a label of its own", f"{NODES}/scene-a", {"metadata": {"labels": {"example.com/a": "b"}}}, user=A),
    patch("a label for others", f"{NODES}/scene-a", {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "b"}}}, user=A),
    patch("a label of Kubernetes", f"{NODES}/scene-a", {"metadata": {"labels": {"foo.k8s.io/a": "b"}}}, user=A),
    patch("a label of kubelets", f"{NODES}/scene-a", {"metadata": {"labels": {"foo.kubelet.kubernetes.io/a": "b"}}}, user=A),
    patch("taints", f"{NODES}/scene-a", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}, user=A),
    patch("unschedulable", f"{NODES}/scene-a", {"spec": {"unschedulable": True}}, user=A),
    patch("owners", f"{NODES}/scene-a", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]}}, user=A),
    patch("a label of another", f"{NODES}/scene-b", {"metadata": {"labels": {"a": "b"}}}, user=A),
    patch("its status", f"{NODES}/scene-a/status", {"status": {"phase": "Running"}}, user=A),
    patch("its status, strategically", f"{NODES}/scene-a/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC, user=A),
    patch("the status of another", f"{NODES}/scene-b/status", {"status": {"phase": "Running"}}, user=A),
    put("itself without a version", f"{NODES}/scene-a", node("scene-a"), user=A),
    put("another without a version", f"{NODES}/scene-b", node("scene-b"), user=A),
    delete("delete itself", f"{NODES}/scene-a", user=A),
    delete("delete another", f"{NODES}/scene-b", user=A),
    delete("delete all nodes", NODES, user=A),
    get("proxy to itself", f"{NODES}/scene-a/proxy/healthz", user=A),
    # -- what pods refer to
    post("a secret that is used", SECRETS, doc("v1", "Secret", "used")),
    post("a secret that is not used", SECRETS, doc("v1", "Secret", "other"), head=True),
    post("a config that is used", CMS, cm("used"), head=True),
    post("a config that is not used", CMS, cm("other"), head=True),
    post("a volume", VOLUMES, doc("v1", "PersistentVolume", "scene-data", spec=VOLUME), head=True),
    post("a claim", CLAIMS, doc("v1", "PersistentVolumeClaim", "data", spec=CLAIM), head=True),
    get("a secret before", f"{SECRETS}/used", user=A),
    post("a pod", PODS, pod("p", nodeName="scene-a", volumes=MOUNTS, serviceAccountName="default"), keep={"pod": "metadata.uid"}, head=True),
    post("a pod of another", PODS, pod("q", nodeName="scene-b"), keep={"other": "metadata.uid"}, head=True),
    get("its secret", f"{SECRETS}/used", user=A, until=200),
    get("its config", f"{CMS}/used", user=A, until=200),
    get("its claim", f"{CLAIMS}/data", user=A, until=200, head=True),
    get("its volume", f"{VOLUMES}/scene-data", user=A, until=200, head=True),
    get("its account", f"{ACCOUNTS}/default", user=A, until=200, head=True),
    get("another secret", f"{SECRETS}/other", user=A),
    get("another config", f"{CMS}/other", user=A),
    get("its secret for another", f"{SECRETS}/used", user=B),
    get("its volume for another", f"{VOLUMES}/scene-data", user=B),
    get("a secret that is not there", f"{SECRETS}/none", user=A),
    get("all secrets", SECRETS, user=A),
    get("all secrets of the cluster", "/api/v1/secrets", user=A),
    get("its secret in a list", f"{SECRETS}?fieldSelector=metadata.name%3Dused", user=A),
    get("another secret in a list", f"{SECRETS}?fieldSelector=metadata.name%3Dother", user=A),
    get("its secret in a watch", f"{SECRETS}?watch=1&fieldSelector=metadata.name%3Dused&timeoutSeconds=1&resourceVersion=0", user=A, lines=1),
    put("write its secret", f"{SECRETS}/used", doc("v1", "Secret", "used"), user=A),
    delete("delete its secret", f"{SECRETS}/used", user=A),
    patch("the status of its claim", f"{CLAIMS}/data/status", {"metadata": {"annotations": {"a": "b"}}}, user=A, head=True),
    patch("capacity in the status of its claim", f"{CLAIMS}/data/status", {"status": {"capacity": {"storage": "2Gi"}}}, user=A),
    patch("the status of a claim for another", f"{CLAIMS}/data/status", {"status": {}}, user=B),
    # -- tokens
    post("a token without a pod", f"{ACCOUNTS}/default/token", {"spec": {}}, user=A),
    post("a token for its pod", f"{ACCOUNTS}/default/token", bound("p", "<<pod>>"), user=A, head=True),
    post("a token for its pod with another uid", f"{ACCOUNTS}/default/token", bound("p", "x"), user=A),
    post("a token for its pod without a uid", f"{ACCOUNTS}/default/token", bound("p", ""), user=A),
    post("a token for a pod of another", f"{ACCOUNTS}/default/token", bound("q", "<<other>>"), user=A),
    post("a token for no pod", f"{ACCOUNTS}/default/token", bound("none", "x"), user=A),
    post("a token for a secret", f"{ACCOUNTS}/default/token", {"spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "used"}}}, user=A),
    post("a token for a node", f"{ACCOUNTS}/default/token", {"spec": {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "scene-a", "uid": "<<node>>"}}}, user=A),
    post("a token for other audiences", f"{ACCOUNTS}/default/token", {"spec": {**bound("p", "<<pod>>")["spec"], "audiences": ["elsewhere"]}}, user=A),
    post("a token of another account", f"{ACCOUNTS}/none/token", bound("p", "<<pod>>"), user=A),
    # -- pods
    get("all pods", PODS, user=A),
    get("all pods of the cluster", "/api/v1/pods", user=A),
    get("its pods", f"{PODS}?fieldSelector=spec.nodeName%3Dscene-a", user=A, head=True),
    get("its pods of the cluster", "/api/v1/pods?fieldSelector=spec.nodeName%3Dscene-a", user=A, head=True),
    get("pods of another", f"{PODS}?fieldSelector=spec.nodeName%3Dscene-b", user=A),
    get("pods of both", f"{PODS}?fieldSelector=spec.nodeName!%3Dscene-b", user=A),
    get("a pod of its own", f"{PODS}/p", user=A, until=200, head=True),
    get("a pod of another's", f"{PODS}/q", user=A),
    get("no pod", f"{PODS}/none", user=A),
    post("a pod that mirrors nothing", PODS, pod("m", nodeName="scene-a"), user=A),
    post("a mirror pod", PODS, mirror("m", "scene-a"), user=A, head=True),
    post("a mirror pod without an owner", PODS, pod("m1", MIRROR, nodeName="scene-a"), user=A),
    post("a mirror pod of another", PODS, mirror("m2", "scene-b"), user=A),
    post("a mirror pod without a node", PODS, pod("m3", MIRROR), user=A),
    post("a mirror pod with an account", PODS, mirror("m4", "scene-a", serviceAccountName="default"), user=A),
    post("a mirror pod with a secret", PODS, mirror("m5", "scene-a", volumes=[{"name": "s", "secret": {"secretName": "used"}}]), user=A),
    post("a mirror pod with a config", PODS, mirror("m6", "scene-a", volumes=[{"name": "s", "configMap": {"name": "used"}}]), user=A),
    post("a mirror pod with a claim", PODS, mirror("m7", "scene-a", volumes=[{"name": "s", "persistentVolumeClaim": {"claimName": "data"}}]), user=A),
    post("a mirror pod with a token", PODS, mirror("m8", "scene-a", volumes=[{"name": "s", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]), user=A),
    post("a mirror pod with claims of resources", PODS, mirror("m9", "scene-a", resourceClaims=[{"name": "r", "resourceClaimName": "r"}]), user=A),
    post("a pod with an odd mirror annotation", PODS, mirror("m10", "scene-a", containers=[{"name": "c", "image": "i", "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "used", "key": "k"}}}]}]), user=A),
    patch("the status of its pod", f"{PODS}/p/status", {"status": {"phase": "Running"}}, STRATEGIC, user=A, head=True),
    patch("labels with the status of its pod", f"{PODS}/p/status", {"metadata": {"labels": {"a": "b"}}}, STRATEGIC, user=A),
    patch("the status of another's pod", f"{PODS}/q/status", {"status": {"phase": "Running"}}, STRATEGIC, user=A),
    patch("claims with the status of its pod", f"{PODS}/p/status", {"status": {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "y"}]}}, MERGE, user=A),
    patch("its pod", f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}, user=A),
    post("bind a pod", f"{PODS}/q/binding", {"target": {"kind": "Node", "name": "scene-a"}}, user=A),
    post("evict another's pod", f"{PODS}/q/eviction", {"metadata": {"name": "q"}}, user=A),
    post("evict its pod, dry", f"{PODS}/p/eviction?dryRun=All", {"metadata": {"name": "p"}}, user=A),
    post("evict its pod by another name", f"{PODS}/p/eviction", {"metadata": {"name": "q"}}, user=A),
    post("evict no pod", f"{PODS}/none/eviction", {"metadata": {"name": "none"}}, user=A),
    delete("delete another's pod", f"{PODS}/q", user=A),
    delete("delete its pod, dry", f"{PODS}/p?dryRun=All", user=A, head=True),
    delete("delete no pod", f"{PODS}/none", user=A),
    delete("delete all pods", PODS, user=A),
    # -- leases, CSINodes, slices, certificates
    post("its lease", LEASES, doc("coordination.k8s.io/v1", "Lease", "scene-a"), user=A, head=True),
    post("a lease of another", LEASES, doc("coordination.k8s.io/v1", "Lease", "scene-b"), user=A),
    post("a lease elsewhere", here("leases", "coordination.k8s.io"), doc("coordination.k8s.io/v1", "Lease", "scene-a"), user=A),
    get("get its lease", f"{LEASES}/scene-a", user=A, head=True),
    get("get a lease of another", f"{LEASES}/scene-b", user=A),
    get("all leases", LEASES, user=A),
    patch("patch its lease", f"{LEASES}/scene-a", {"spec": {"holderIdentity": "a"}}, user=A, head=True),
    delete("delete its lease", f"{LEASES}/scene-a", user=A, head=True),
    delete("delete a lease of another", f"{LEASES}/scene-b", user=A),
    post("its CSINode", CSINODES, doc("storage.k8s.io/v1", "CSINode", "scene-a", spec={"drivers": []}), user=A, head=True),
    post("a CSINode of another", CSINODES, doc("storage.k8s.io/v1", "CSINode", "scene-b", spec={"drivers": []}), user=A),
    get("get its CSINode", f"{CSINODES}/scene-a", user=A, head=True),
    get("all CSINodes", CSINODES, user=A),
    delete("delete its CSINode", f"{CSINODES}/scene-a", user=A, head=True),
    post("its slice of resources", RESOURCE_SLICES, doc("resource.k8s.io/v1", "ResourceSlice", "scene-a-x", spec={"driver": "d.test", "nodeName": "scene-a", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}), user=A, head=True),
    post("a slice of another", RESOURCE_SLICES, doc("resource.k8s.io/v1", "ResourceSlice", "scene-b-x", spec={"driver": "d.test", "nodeName": "scene-b", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}), user=A),
    post("a slice of all nodes", RESOURCE_SLICES, doc("resource.k8s.io/v1", "ResourceSlice", "all-x", spec={"driver": "d.test", "allNodes": True, "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}), user=A),
    get("its slices", f"{RESOURCE_SLICES}?fieldSelector=spec.nodeName%3Dscene-a", user=A, head=True),
    get("slices of another", f"{RESOURCE_SLICES}?fieldSelector=spec.nodeName%3Dscene-b", user=A),
    get("all slices", RESOURCE_SLICES, user=A),
    delete("delete its slice", f"{RESOURCE_SLICES}/scene-a-x", user=A, head=True),
    delete("delete its slices", f"{RESOURCE_SLICES}?fieldSelector=spec.nodeName%3Dscene-a", user=A, head=True),
    get("a claim of resources", here("resourceclaims", "resource.k8s.io") + "/none", user=A),
    get("services", SERVICES, user=A, head=True),
    post("services made", SERVICES, doc("v1", "Service", "s", spec={"ports": [{"port": 1}]}), user=A),
    get("namespaces", NAMESPACES, user=A),
    get("certificates", CSRS, user=A),
    post("an event", here("events"), doc("v1", "Event", "e", metadata={"namespace": "<<ns>>"}, involvedObject={"namespace": "<<ns>>"}, reason="x"), user=A, head=True),
    post("a review of access", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {"user": "x", "resourceAttributes": {"verb": "get", "resource": "pods"}}}, user=A, head=True),
    post("a review of a token", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}}, user=A, head=True),
    get("attachments", "/apis/storage.k8s.io/v1/volumeattachments", user=A),
    get("no attachment", "/apis/storage.k8s.io/v1/volumeattachments/none", user=A),
    get("drivers", "/apis/storage.k8s.io/v1/csidrivers", user=A, head=True),
    get("runtime classes", "/apis/node.k8s.io/v1/runtimeclasses", user=A, head=True),
    get("roles", "/apis/rbac.authorization.k8s.io/v1/clusterroles", user=A),
    delete("clean up: its pod", f"{PODS}/p?gracePeriodSeconds=0", head=True),
    delete("clean up: its node", f"{NODES}/scene-a", head=True),
    delete("clean up: another node", f"{NODES}/scene-b", head=True),
)
# fmt: on


def _two() -> list[dict[str, Any]]:
    return [{"name": "one", "image": "i"}, {"name": "two", "image": "i"}]


def _verbs(title: str, path: str, **more: Any) -> Iterator[Ask]:
    """What a kubelet is asked, and none answers here."""
    yield get(f"{title}: logs", f"{path}/log", **more)
    yield ask(f"{title}: exec", "POST", f"{path}/exec?command=ls&stdout=1", **more)
    yield ask(f"{title}: attach", "POST", f"{path}/attach?stdout=1", **more)
    yield ask(f"{title}: port-forward", "POST", f"{path}/portforward?ports=80", **more)
    yield get(f"{title}: proxy", f"{path}/proxy/x", **more)


def _kubelets() -> Iterator[Ask]:
    yield post("a pod without a node", PODS, pod("lone"), head=True)
    yield post("a pod of two containers", PODS, pod("two", containers=_two(), initContainers=[{"name": "first", "image": "i"}]), head=True)  # fmt: skip
    preferred = {"annotations": {"kubectl.kubernetes.io/default-container": "two"}}
    yield post("a pod that prefers one", PODS, pod("prefers", preferred, containers=_two()), head=True)
    yield post("a pod on a node that is not there", PODS, pod("astray", nodeName="nowhere"), head=True)
    yield post("a node without addresses", NODES, node("scene-bare"), head=True)
    yield post("a pod on it", PODS, pod("bare", nodeName="scene-bare"), head=True)
    yield from _verbs("no pod", f"{PODS}/none")
    yield from _verbs("without a node", f"{PODS}/lone")
    yield from _verbs("two containers", f"{PODS}/two")
    yield from _verbs("prefers one", f"{PODS}/prefers")
    yield from _verbs("no such node", f"{PODS}/astray")
    yield from _verbs("a node without addresses", f"{PODS}/bare")
    yield from _verbs("refused", f"{PODS}/lone", user="stranger")
    yield from _verbs("nobody's", f"{PODS}/lone", user="")
    for name in ("none", "first", "one", ""):
        yield get(f"logs of {name or 'the empty one'}", f"{PODS}/two/log?container={name}")
        yield get(
            f"exec in {name or 'the empty one'}", f"{PODS}/two/exec?command=ls&stdout=1&container={name}"
        )
        yield get(f"attach to {name or 'the empty one'}", f"{PODS}/two/attach?stdout=1&container={name}")
    queries = {
        "no number of lines": "tailLines=x",
        "less than no lines": "tailLines=-1",
        "no bytes": "limitBytes=0",
        "less than no bytes": "limitBytes=-1",
        "no seconds": "sinceSeconds=0",
        "less than no seconds": "sinceSeconds=-5",
        "seconds and a time": "sinceSeconds=5&sinceTime=2026-01-02T03:04:05Z",
        "no time": "sinceTime=yesterday",
        "an unknown stream": "stream=Stdmiddle",
        "lines of one stream": "stream=Stdout&tailLines=5",
        "an unknown option": "nonesuch=1",
        "follow that is no bool": "follow=perhaps",
        "previous": "previous=true",
        "timestamps": "timestamps=true",
    }
    for title, query in queries.items():
        yield get(f"logs with {title}", f"{PODS}/lone/log?{query}")
    for verb in ("POST", "PUT", "DELETE", "PATCH"):
        yield ask(f"{verb} logs", verb, f"{PODS}/lone/log")
    for verb in ("PUT", "DELETE", "PATCH"):
        yield ask(f"{verb} exec", verb, f"{PODS}/lone/exec?command=ls")
    yield ask("exec of no command", "POST", f"{PODS}/lone/exec?stdout=1")
    yield ask("exec without any stream", "POST", f"{PODS}/lone/exec?command=ls")
    yield ask("exec of a terminal with errors apart", "POST", f"{PODS}/lone/exec?command=ls&tty=1&stdin=1&stdout=1&stderr=1")  # fmt: skip
    yield ask("attach without any stream", "POST", f"{PODS}/lone/attach")
    yield ask("port-forward without ports", "POST", f"{PODS}/lone/portforward")
    yield ask("port-forward to no port", "POST", f"{PODS}/lone/portforward?ports=x")
    yield get("below logs", f"{PODS}/lone/log/x")
    yield get("below exec", f"{PODS}/lone/exec/x?command=ls")
    yield get("logs of all pods", f"{PODS}/log")
    # -- proxies
    yield post("a service", SERVICES, doc("v1", "Service", "s", spec={"ports": [{"name": "web", "port": 80}]}), head=True)  # fmt: skip
    for title, name in {
        "no service": "none",
        "a service without endpoints": "s",
        "its port": "s:80",
        "its port by name": "s:web",
        "another port": "s:81",
        "another port by name": "s:other",
        "over TLS": "https:s:web",
        "a scheme that is none": "ftp:s:web",
        "a name that is none": "s:web:x:y",
    }.items():
        yield get(f"proxy to {title}", f"{SERVICES}/{name}/proxy/x")
    for title, name in {
        "no pod": "none:80",
        "a port of a pod": "lone:80",
        "a port of a pod over TLS": "https:lone:80",
        "a port by name": "lone:web",
        "a scheme that is none": "ftp:lone:80",
    }.items():
        yield get(f"proxy to a pod, {title}", f"{PODS}/{name}/proxy/x")
    for title, name in {
        "no node": "none",
        "a port of no node": "none:10250",
        "a node without addresses": "scene-bare",
        "a port of a node": "scene-bare:10250",
        "a scheme that is none": "ftp:scene-bare:1",
    }.items():
        yield get(f"proxy to a node, {title}", f"{NODES}/{name}/proxy/healthz")
    yield get("proxy without a slash", f"{SERVICES}/s/proxy")
    yield get("proxy refused", f"{SERVICES}/s/proxy/", user="stranger")
    yield delete("clean up", f"{NODES}/scene-bare", head=True)


RESOURCE_CLAIMS = here("resourceclaims", "resource.k8s.io")
RESULT = {"request": "r", "driver": "d.test", "pool": "p", "device": "x"}
DEVICE = {"driver": "d.test", "pool": "p", "device": "x"}


def _devices() -> Iterator[Ask]:
    """The status of ResourceClaims: what is allocated, by whom it is reserved, and what drivers report."""
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    yield post("a claim", RESOURCE_CLAIMS, doc("resource.k8s.io/v1", "ResourceClaim", "c", spec=spec))
    path = f"{RESOURCE_CLAIMS}/c/status"
    statuses: Mapping[str, Any] = {
        "a result without a driver": {"allocation": {"devices": {"results": [{**RESULT, "driver": ""}]}}},
        "a driver that is no name": {"allocation": {"devices": {"results": [{**RESULT, "driver": "D!"}]}}},
        "a pool that is no name": {"allocation": {"devices": {"results": [{**RESULT, "pool": "a//b"}]}}},
        "a device that is no name": {"allocation": {"devices": {"results": [{**RESULT, "device": "X!"}]}}},
        "a request that is not there": {"allocation": {"devices": {"results": [{**RESULT, "request": "s"}]}}},
        "a device that is not allocated": {"devices": [DEVICE]},
        "a reservation without an allocation": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
        "too many results": {"allocation": {"devices": {"results": [{**RESULT, "device": f"x{n}"} for n in range(33)]}}},
        "an allocation": {"allocation": {"devices": {"results": [RESULT]}}},
        "another allocation": {"allocation": {"devices": {"results": [{**RESULT, "device": "y"}]}}},
        "a reservation without a name": {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [{"resource": "pods", "name": "", "uid": "u"}]},
        "a reservation without a uid": {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [{"resource": "pods", "name": "p", "uid": ""}]},
        "a reservation twice": {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}] * 2},
        "a reservation": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
        "a report": {"devices": [{**DEVICE, "conditions": [{"type": "Ready", "status": "True", "reason": "Good", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}]},
        "a report with a condition that is none": {"devices": [{**DEVICE, "conditions": [{"type": "", "status": "Perhaps", "reason": "", "message": "", "lastTransitionTime": None}]}]},
        "a report with an address that is none": {"devices": [{**DEVICE, "networkData": {"ips": ["1.2.3.4"], "interfaceName": "e" * 300}}]},
        "a report twice": {"devices": [DEVICE, DEVICE]},
        "no allocation while it is reserved": {"allocation": None},
    }  # fmt: skip
    for title, status in statuses.items():
        yield patch(title, path, {"status": status})
    yield patch("a spec with the status", path, {"spec": {"devices": {"requests": []}}})
    yield patch("no reservation", path, {"status": {"reservedFor": None}})
    yield patch("no allocation", path, {"status": {"allocation": None, "devices": None}})
    yield delete("clean up the claim", f"{RESOURCE_CLAIMS}/c", head=True)


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "rights": RIGHTS,
    "kubelets": tuple(_kubelets()),
    "devices": tuple(_devices()),
}
