"""What nodes may do, by the rows of upstream's tests: own objects, and those of the pods that are bound to them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.clock import RealClock
from steersman.api.generated.core_v1 import PodSpec
from steersman.server.auth.attributes import Attributes
from steersman.server.auth.users import User, node_user
from steersman.server.bootstrap import bootstrap_server
from steersman.server.codec.convert import to_struct
from steersman.server.rest.create import create_as_server
from steersman.server.server import Server
from steersman.server.storage.store import object_key

NODE = node_user("node0")
NONE = "no relationship found between node 'node0' and this object"


def create(server: Server, group: str, plural: str, namespace: str, name: str, **fields: Any) -> None:
    version = "v1"
    resource = server.registry.find(group, version, plural)
    document = {"metadata": {"name": name, **fields.pop("metadata", {})}, **fields}
    create_as_server(server, resource, namespace, to_struct(resource.type, document))


def pod(server: Server, node: str, name: str, **spec: Any) -> None:
    fields = {
        "containers": [{"name": "c", "image": "i", **spec.pop("container", {})}],
        "nodeName": node,
        **spec,
    }
    create(server, "", "pods", "ns0", name, spec=fields, metadata=fields.pop("metadata", {}))


@pytest.fixture(scope="module")
def server() -> Server:
    made = Server(RealClock())
    bootstrap_server(made, disabled_plugins=("ServiceAccount",))
    create(made, "", "namespaces", "", "ns0")
    for index in (0, 1):
        node = f"node{index}"
        create(made, "", "nodes", "", node)
        pod(
            made,
            node,
            f"pod-{node}",
            serviceAccountName=f"sa-{node}",
            imagePullSecrets=[{"name": f"pull-{node}"}],
            container={
                "envFrom": [
                    {"secretRef": {"name": f"env-{node}"}},
                    {"configMapRef": {"name": f"envmap-{node}"}},
                ],
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": f"key-{node}", "key": "k"}}}],
            },
            volumes=[
                {"name": "s", "secret": {"secretName": f"secret-{node}"}},
                {"name": "shared", "secret": {"secretName": "shared"}},
                {"name": "m", "configMap": {"name": f"map-{node}"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": f"claim-{node}"}},
                {
                    "name": "e",
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1"}},
                            }
                        }
                    },
                },
                {"name": "p", "projected": {"sources": [{"secret": {"name": f"projected-{node}"}}]}},
            ],
            resourceClaims=[{"name": "r", "resourceClaimName": f"device-{node}"}],
        )
        create(
            made, "", "persistentvolumes", "", f"pv-{node}",
            spec={
                "capacity": {"storage": "1"}, "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": f"csi-{node}", "namespace": "ns0"}},
                "claimRef": {"namespace": "ns0", "name": f"claim-{node}"},
            },
        )  # fmt: skip
        attached = {"attacher": "d", "nodeName": node, "source": {"persistentVolumeName": f"pv-{node}"}}
        create(made, "storage.k8s.io", "volumeattachments", "", f"attached-{node}", spec=attached)
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        slices = {"driver": "d.example.com", "nodeName": node, "pool": pool}
        create(made, "resource.k8s.io", "resourceslices", "", f"slice-{node}", spec=slices)
    owner = {"apiVersion": "v1", "kind": "Node", "name": "node0", "uid": "u", "controller": True}
    metadata = {"annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]}
    pod(made, "node0", "mirror", metadata=metadata)
    # Admission refuses a mirror pod with references: even so, it must not give access to what it refers to.
    stolen = to_struct(PodSpec, {"nodeName": "node0", "imagePullSecrets": [{"name": "stolen"}]})
    pods = made.registry.find("", "v1", "pods")
    made.rewrite(pods, "ns0", "mirror", lambda old: replace(old, spec=stolen))
    return made


def ask(
    text: str, name: str = "", namespace: str = "ns0", selector: str = "", user: User = NODE
) -> Attributes:
    """A request: ``get secrets``, ``create serviceaccounts/token``, ``get leases.coordination.k8s.io``."""
    verb, _, resource = text.partition(" ")
    resource, _, subresource = resource.partition("/")
    plural, _, group = resource.partition(".")
    return Attributes(user, verb, group, plural, subresource, namespace, name, field_selector=selector)


SLICES, LEASES, CSI = (
    "resourceslices.resource.k8s.io",
    "leases.coordination.k8s.io",
    "csinodes.storage.k8s.io",
)
OWN = "spec.nodeName=node0"

ALLOWED = [
    *(ask(f"{verb} secrets", "secret-node0") for verb in ("get", "list", "watch")),
    *(ask("get secrets", f"{name}-node0") for name in ("pull", "env", "key", "projected", "csi")),
    ask("get secrets", "shared"),
    *(ask("get configmaps", f"{name}-node0") for name in ("map", "envmap")),
    ask("get persistentvolumeclaims", "claim-node0"),
    ask("get persistentvolumeclaims", "pod-node0-e"),
    ask("update persistentvolumeclaims/status", "claim-node0"),
    ask("patch persistentvolumeclaims/status", "claim-node0"),
    ask("get persistentvolumes", "pv-node0", ""),
    ask("get resourceclaims.resource.k8s.io", "device-node0"),
    ask("get volumeattachments.storage.k8s.io", "attached-node0", ""),
    ask("get serviceaccounts", "sa-node0"),
    ask("create serviceaccounts/token", "sa-node0"),
    *(ask(f"{verb} {LEASES}", "node0", "kube-node-lease") for verb in ("get", "create", "update", "patch", "delete")),
    *(ask(f"{verb} {CSI}", "node0", "") for verb in ("get", "create", "update", "patch", "delete")),
    *(ask(f"{verb} {SLICES}", "slice-node0", "") for verb in ("get", "update", "patch", "delete", "create")),
    *(ask(f"{verb} {SLICES}", "", "", OWN) for verb in ("list", "watch", "deletecollection")),
    ask("get pods", "pod-node0"),
    ask("get pods", "mirror"),
    *(ask(f"{verb} pods", "", "", f"status.phase=Running,{OWN}") for verb in ("list", "watch")),
    *(ask(f"{verb} pods", "pod-node0") for verb in ("list", "watch")),
    *(ask(f"{verb} pods", "pod-node1") for verb in ("create", "delete")),
    *(ask(f"{verb} pods/status", "pod-node1") for verb in ("update", "patch")),
    ask("create pods/eviction", "pod-node1"),
    *(ask(f"{verb} nodes", "node0", "") for verb in ("get", "list", "watch", "create", "update", "patch")),
    *(ask(f"{verb} nodes/status", "node0", "") for verb in ("update", "patch")),
    ask("get nodes", "unregistered", "", user=node_user("unregistered")),
    ask("list services", "", ""),
    ask("create events", "", "default"),
    ask("get endpoints", "e"),
    ask("create certificatesigningrequests.certificates.k8s.io", "", ""),
    ask("list csidrivers.storage.k8s.io", "", ""),
    ask("watch runtimeclasses.node.k8s.io", "", ""),
]  # fmt: skip


@pytest.mark.parametrize("request_", ALLOWED, ids=lambda each: " ".join(each[1:7]))
def test_a_node_may(server: Server, request_: Attributes) -> None:
    assert server.authorizer is not None
    assert server.authorizer.authorize(request_).allowed


REFUSED = [
    (ask("get secrets", "secret-node1"), NONE),
    (ask("get secrets", "stolen"), NONE),
    (ask("get secrets", "csi-node1"), NONE),
    (ask("get secrets", "secret-node0", "ns1"), NONE),
    (ask("get secrets", "none"), NONE),
    (ask("list secrets"), "No Object name found"),
    (ask("list secrets", "secret-node0", ""), "can only read namespaced object of this type"),
    (ask("update secrets", "secret-node0"), "can only read resources of this type"),
    (ask("get secrets/status", "secret-node0"), "cannot read subresource"),
    (ask("get configmaps", "map-node1"), NONE),
    (ask("get persistentvolumeclaims", "claim-node1"), NONE),
    (ask("list persistentvolumeclaims", "claim-node0"), "can only get individual resources of this type"),
    (ask("get persistentvolumeclaims/status", "claim-node0"), "can only get/update/patch this type"),
    (ask("update persistentvolumeclaims/status", "claim-node1"), NONE),
    (ask("get persistentvolumes", "pv-node1", ""), NONE),
    (ask("get persistentvolumes/status", "pv-node0", ""), "cannot get subresource"),
    (ask("get resourceclaims.resource.k8s.io", "device-node1"), NONE),
    (ask("get volumeattachments.storage.k8s.io", "attached-node1", ""), NONE),
    (ask("get serviceaccounts", "sa-node1"), NONE),
    (ask("list serviceaccounts", "sa-node0"), "can only create tokens for individual service accounts"),
    (ask("create serviceaccounts/token", "sa-node1"), NONE),
    (ask("create serviceaccounts", "sa-node0"), "can only create token subresource of serviceaccount"),
    (ask(f"get {LEASES}", "node0", "foo"), 'can only access leases in the "kube-node-lease" system namespace'),
    (ask(f"get {LEASES}", "node1", "kube-node-lease"), "can only access node lease with the same name as the requesting node"),
    (ask(f"list {LEASES}", "", "kube-node-lease"), "can only get, create, update, patch, or delete a node lease"),
    (ask(f"get {CSI}/csidrivers", "node0", ""), "cannot authorize CSINode subresources"),
    (ask(f"get {CSI}", "node1", ""), "can only access CSINode with the same name as the requesting node"),
    (ask(f"list {CSI}", "", ""), "can only get, create, update, patch, or delete a CSINode"),
    (ask(f"get {SLICES}/other", "slice-node0", ""), "cannot authorize ResourceSlice subresources"),
    (ask(f"get {SLICES}", "slice-node1", ""), NONE),
    (ask(f"list {SLICES}", "", ""), "can only list/watch/deletecollection resourceslices with nodeName field selector"),
    (ask(f"frob {SLICES}", "", ""), "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection"),
    (ask("get pods", "pod-node1"), NONE),
    (ask("list pods"), "can only list/watch pods with spec.nodeName field selector"),
    (ask("watch pods", "", "", "spec.nodeName=node1"), "can only list/watch pods with spec.nodeName field selector"),
    (ask("watch pods", "", "", "spec.nodeName!=node0"), "can only list/watch pods with spec.nodeName field selector"),
    (ask("watch pods", "", "", "a"), "can only list/watch pods with spec.nodeName field selector"),
    (ask("list pods", "pod-node1"), NONE),
    (ask("create pods/proxy", "pod-node0"), ""),
    (ask("get pods/status", "pod-node0"), ""),
    (ask("delete nodes", "node0", ""), ""),
    (ask("get nodes", "node1", ""), "node 'node0' cannot read 'node1', only its own Node object"),
    (ask("list nodes", "", ""), "node 'node0' cannot read all nodes, only its own Node object"),
    (ask("get deployments.apps", "web"), ""),
    (ask("get secrets", "secret-node0", user=node_user("")), 'unknown node for user "system:node:"'),
    (ask("get secrets", "secret-node0", user=User("system:node:node0")), ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "reason"),
    REFUSED,
    ids=lambda each: " ".join(each[1:7]) if isinstance(each, Attributes) else "",
)
def test_a_node_may_not(server: Server, request_: Attributes, reason: str) -> None:
    assert server.authorizer is not None
    assert server.authorizer.authorize(request_) == (False, reason)


def test_the_relations_of_a_node_follow_its_pods() -> None:
    server = Server(RealClock())
    authorizer = bootstrap_server(server, disabled_plugins=("ServiceAccount",))
    create(server, "", "namespaces", "", "ns0")
    secret = ask("get secrets", "late")
    assert not authorizer.authorize(secret).allowed
    pod(server, "node0", "p", imagePullSecrets=[{"name": "late"}])
    assert authorizer.authorize(secret).allowed
    server.remove(server.registry.find("", "v1", "pods"), object_key("ns0", "p"))
    assert not authorizer.authorize(secret).allowed
    fork = server.fork()
    pod(fork, "node0", "q", imagePullSecrets=[{"name": "late"}])
    assert fork.authorizer is not None
    assert fork.authorizer.authorize(secret).allowed
    assert not authorizer.authorize(secret).allowed
