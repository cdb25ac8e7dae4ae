"""NodeRestriction, by the rows of upstream's tests: what a node may write, and the words of each refusal."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, Forbidden, NotFound
from steersman.api.generated import load
from steersman.client.api import Api
from steersman.server.auth.tokens import TokenIssuer
from steersman.server.auth.users import authenticated, node_user
from steersman.server.authorized_api import AuthorizedApi
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server

NODES, PODS, LEASES = (
    load("", "v1", "Node"),
    load("", "v1", "Pod"),
    load("coordination.k8s.io", "v1", "Lease"),
)
CLAIMS, ACCOUNTS = load("", "v1", "PersistentVolumeClaim"), load("", "v1", "ServiceAccount")
CSINODES, SLICES = load("storage.k8s.io", "v1", "CSINode"), load("resource.k8s.io", "v1", "ResourceSlice")
MIRROR = {"kubernetes.io/config.mirror": "x"}


class Plane:
    """A server with an administrator, and the kubelet of a node ``mynode``."""

    def __init__(self) -> None:
        clock = RealClock()
        self.server = Server(clock)
        authorizer = bootstrap_server(self.server)
        boot = Bootstrap.generate(clock.now)
        self.server.token_issuer = TokenIssuer(boot.keys, boot.issuer, (boot.issuer,))
        self.admin: Api = LocalApi(self.server)
        self.node: Api = AuthorizedApi(LocalApi(self.server, authenticated(node_user("mynode"))), authorizer)

    async def set_up(self) -> None:
        await self.admin.create(ACCOUNTS, "default", {"metadata": {"name": "default"}})
        for name in ("mynode", "other"):
            await self.admin.create(NODES, "", {"metadata": {"name": name, "labels": {"a": "b"}}})
            await self.admin.create(PODS, "default", {"metadata": {"name": f"on-{name}"}, "spec": spec(name)})
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await self.admin.create(CLAIMS, "default", {"metadata": {"name": "claim"}, "spec": claim})

    async def owner(self, **fields: Any) -> dict[str, Any]:
        node = await self.admin.get(NODES, "", "mynode")
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "mynode",
            "uid": node.metadata.uid,
            "controller": True,
        }
        return {key: value for key, value in {**owner, **fields}.items() if value is not None}


def spec(node: str, **fields: Any) -> dict[str, Any]:
    volume = {"name": "claim", "persistentVolumeClaim": {"claimName": "claim"}}
    return {"containers": [{"name": "c", "image": "i"}], "nodeName": node, "volumes": [volume], **fields}


@pytest.fixture
async def plane() -> Plane:
    made = Plane()
    await made.set_up()
    return made


async def refusal(call: Any) -> str:
    """What a request is refused with, without the object's name; empty where it is allowed."""
    try:
        await call
    except Forbidden as error:
        return error.message.partition(" is forbidden: ")[2]
    except ApiError as error:
        return f"{error.code} {error.message}"
    return ""


# -- mirror pods ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, ""),
        ({"annotations": {}}, 'pod does not have "kubernetes.io/config.mirror" annotation, node "mynode" can only create mirror pods'),
        ({"node": "other"}, 'node "mynode" can only create pods with spec.nodeName set to itself'),
        ({"owners": []}, 'node "mynode" can only create pods with an owner reference set to itself'),
        ({"owners": [{}, {"name": "b", "controller": False}]}, 'node "mynode" can only create pods with a single owner reference set to itself'),
        ({"owners": [{"name": "other"}]}, 'node "mynode" can only create pods with an owner reference set to itself'),
        ({"owners": [{"kind": "Pod"}]}, 'node "mynode" can only create pods with an owner reference set to itself'),
        ({"owners": [{"controller": None}]}, 'node "mynode" can only create pods with a controller owner reference set to itself'),
        ({"owners": [{"blockOwnerDeletion": True}]}, 'node "mynode" must not set blockOwnerDeletion on an owner reference'),
        ({"spec": {"resourceClaims": [{"name": "r", "resourceClaimName": "r"}]}}, 'node "mynode" can not create pods that reference resourceclaims'),
        ({"spec": {"volumes": [{"name": "p", "csi": {"driver": "d"}}]}}, 'node "mynode" can not create pods that reference csidrivers (via CSI volumes)'),
    ],
)  # fmt: skip
async def test_a_node_creates_mirror_pods_of_itself_only(
    plane: Plane, change: dict[str, Any], why: str
) -> None:
    owners = [await plane.owner(**each) for each in change.get("owners", [{}])]
    metadata = {"name": "new", "annotations": change.get("annotations", MIRROR), "ownerReferences": owners}
    body = {
        "metadata": metadata,
        "spec": spec(change.get("node", "mynode"), volumes=[]) | change.get("spec", {}),
    }
    assert await refusal(plane.node.create(PODS, "default", body)) == why


async def test_a_mirror_pod_names_the_node_of_its_uid(plane: Plane) -> None:
    metadata = {"name": "new", "annotations": MIRROR, "ownerReferences": [await plane.owner(uid="stale")]}
    body = {"metadata": metadata, "spec": spec("mynode", volumes=[])}
    assert (await refusal(plane.node.create(PODS, "default", body))).startswith(
        "node mynode UID mismatch: expected stale got "
    )


async def test_a_node_deletes_and_evicts_its_own_pods_only(plane: Plane) -> None:
    node = plane.node
    assert await refusal(node.delete(PODS, "default", "on-other")) == (
        'node "mynode" can only delete pods with spec.nodeName set to itself'
    )
    body = {"metadata": {"name": "on-other"}}
    assert await refusal(node.subresource(PODS, "default", "on-other", "eviction", body)) == (
        "node mynode can only evict pods with spec.nodeName set to itself"
    )
    body = {"metadata": {"name": "none"}}
    assert (
        await refusal(node.subresource(PODS, "default", "none", "eviction", body))
        == '404 pod "none" not found'
    )
    body = {"metadata": {"name": "on-mynode"}}
    assert await refusal(node.subresource(PODS, "default", "on-mynode", "eviction", body)) == ""
    with pytest.raises(NotFound):
        await node.delete(PODS, "default", "none")


@pytest.mark.parametrize(
    ("name", "patch", "why"),
    [
        ("on-mynode", {"status": {"phase": "Running"}}, ""),
        ("on-other", {"status": {"phase": "Running"}}, 'node "mynode" can only update pod status for pods with spec.nodeName set to itself'),
        ("on-mynode", {"metadata": {"labels": {"a": "b"}}}, 'node "mynode" cannot update labels through pod status'),
        ("on-mynode", {"status": {"resourceClaimStatuses": [{"name": "r"}]}}, 'node "mynode" cannot update resource claim statues'),
        ("on-mynode", {"status": {"extendedResourceClaimStatus": {"resourceClaimName": "r", "requestMappings": []}}}, 'node "mynode" cannot update extended resource claim status'),
    ],
)  # fmt: skip
async def test_a_node_reports_the_status_of_its_own_pods(
    plane: Plane, name: str, patch: dict[str, Any], why: str
) -> None:
    assert await refusal(plane.node.patch(PODS, "default", name, patch, subresource="status")) == why


# -- nodes ------------------------------------------------------------------------------------

TAINT = {"key": "k", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("name", "patch", "why"),
    [
        ("mynode", {"metadata": {"annotations": {"a": "b"}}}, ""),
        ("mynode", {"metadata": {"labels": {"a": "c", "example.com/x": "y"}}}, ""),
        ("mynode", {"metadata": {"labels": {"kubernetes.io/arch": "x", "kubelet.kubernetes.io/a": "b", "a.node.kubernetes.io/x": ""}}}, ""),
        ("mynode", {"metadata": {"labels": {"kubernetes.io/x": "y", "foo.k8s.io/x": "y"}}}, "is not allowed to modify labels: foo.k8s.io/x, kubernetes.io/x"),
        ("mynode", {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}}, "is not allowed to modify labels: node-restriction.kubernetes.io/x"),
        ("mynode", {"metadata": {"labels": {"x.node-restriction.kubernetes.io/x": "y"}}}, "is not allowed to modify labels: x.node-restriction.kubernetes.io/x"),
        ("mynode", {"spec": {"taints": [TAINT]}}, 'node "mynode" is not allowed to modify taints'),
        ("mynode", {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}}, 'node "mynode" is not allowed to modify ownerReferences'),
        ("other", {"metadata": {"annotations": {"a": "b"}}}, 'node "mynode" is not allowed to modify node "other"'),
    ],
)  # fmt: skip
async def test_a_node_changes_itself_within_limits(
    plane: Plane, name: str, patch: dict[str, Any], why: str
) -> None:
    assert await refusal(plane.node.patch(NODES, "", name, patch)) == why


async def test_a_node_registers_itself_with_labels_it_may_have(plane: Plane) -> None:
    node = plane.node
    body: dict[str, Any] = {"metadata": {"name": "third", "labels": {}}}
    assert (
        await refusal(node.create(NODES, "", body)) == 'node "mynode" is not allowed to modify node "third"'
    )
    await plane.admin.delete(NODES, "", "mynode")
    body = {"metadata": {"name": "mynode", "labels": {"k8s.io/x": "", "a": "b"}}}
    assert await refusal(node.create(NODES, "", body)) == (
        'node "mynode" is not allowed to set the following labels: k8s.io/x'
    )
    body = {"metadata": {"name": "mynode", "labels": {"kubernetes.io/hostname": "mynode"}}}
    assert await refusal(node.create(NODES, "", body)) == ""


# -- other objects ----------------------------------------------------------------------------

OWN_LEASE = "can only access node lease with the same name as the requesting node"
SLICE = {"driver": "d.example.com", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}

CALLS: list[tuple[Callable[[Api], Any], str]] = [
    (lambda node: node.create(LEASES, "kube-node-lease", {"metadata": {"name": "mynode"}}), ""),
    (lambda node: node.create(LEASES, "kube-node-lease", {"metadata": {"name": "other"}}), OWN_LEASE),
    (lambda node: node.create(CSINODES, "", {"metadata": {"name": "mynode"}, "spec": {"drivers": []}}), ""),
    (
        lambda node: node.create(CSINODES, "", {"metadata": {"name": "other"}, "spec": {"drivers": []}}),
        "can only access CSINode with the same name as the requesting node",
    ),
    (lambda node: node.create(SLICES, "", {"metadata": {"name": "s"}, "spec": {**SLICE, "nodeName": "mynode"}}), ""),
    (
        lambda node: node.create(SLICES, "", {"metadata": {"name": "s"}, "spec": {**SLICE, "nodeName": "other"}}),
        "can only create ResourceSlice with the same NodeName as the requesting node",
    ),
    (
        lambda node: node.patch(CLAIMS, "default", "claim", {"status": {"capacity": {"storage": "2Gi"}}}, subresource="status"),
        "",
    ),
    (
        lambda node: node.patch(CLAIMS, "default", "claim", {"status": {"phase": "Lost"}}, subresource="status"),
        'node "mynode" is not allowed to update fields other than status.quantity and status.conditions',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "why"), CALLS)
async def test_a_node_writes_objects_of_its_own(plane: Plane, call: Callable[[Api], Any], why: str) -> None:
    assert await refusal(call(plane.node)) == why


async def test_a_node_requests_tokens_bound_to_its_own_pods(plane: Plane) -> None:
    mine, other = [await plane.admin.get(PODS, "default", name) for name in ("on-mynode", "on-other")]

    async def token(bound: Any, **fields: Any) -> str:
        body = {"spec": {"audiences": [], "boundObjectRef": bound, **fields}}
        return await refusal(plane.node.subresource(ACCOUNTS, "default", "default", "token", body))

    def to(pod: Any, **fields: str) -> dict[str, str]:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod.metadata.name,
            "uid": pod.metadata.uid,
            **fields,
        }

    assert await token(None) == "node requested token not bound to a pod"
    assert await token(to(mine, kind="Secret")) == "node requested token not bound to a pod"
    assert await token(to(mine, uid="")) == "node requested token with a pod binding without a uid"
    assert (await token(to(mine, uid="x"))).startswith(
        "the UID in the bound object reference (x) does not match"
    )
    assert await token(to(mine, name="none")) == '404 pod "none" not found'
    assert await token(to(other)) == "node requested token bound to a pod scheduled on a different node"
    assert await token(to(mine), audiences=["a", "b"]) == "node may only request 0 or 1 audiences"
    assert await token(to(mine), audiences=["vault"]) == (
        'audience "vault" not found in pod spec volume, '
        "system:node:mynode is not authorized to request tokens for this audience"
    )
    assert await token(to(mine)) == ""


@pytest.mark.parametrize(
    ("common_name", "signer", "why"),
    [
        ("system:node:mynode", "kubernetes.io/kubelet-serving", ""),
        (
            "system:node:other",
            "kubernetes.io/kubelet-serving",
            "can only create a node CSR with CN=system:node:mynode",
        ),
        ("system:node:other", "example.com/other", ""),
    ],
)
async def test_a_node_requests_certificates_of_its_own(
    plane: Plane, common_name: str, signer: str, why: str
) -> None:
    body = {
        "metadata": {"name": "csr"},
        "spec": {
            "request": signing_request(common_name),
            "signerName": signer,
            "usages": ["digital signature", "key encipherment", "server auth"],
        },
    }
    requests = load("certificates.k8s.io", "v1", "CertificateSigningRequest")
    assert await refusal(plane.node.create(requests, "", body)) == why


def signing_request(common_name: str) -> str:
    names = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    key = ec.generate_private_key(ec.SECP256R1())
    made = x509.CertificateSigningRequestBuilder().subject_name(names).sign(key, hashes.SHA256())
    return b64encode(made.public_bytes(Encoding.PEM)).decode()
