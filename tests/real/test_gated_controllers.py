"""Controllers of APIs behind feature gates, told to both managers on real API servers: trust bundles, storage versions and their
migration, requests of pods for certificates.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from steersman.api.generated import load
from steersman.api.kinds.certificates import CLUSTERTRUSTBUNDLES, PODCERTIFICATEREQUESTS
from steersman.api.kinds.storageversions import (
    STORAGEVERSIONMIGRATIONS,
    STORAGEVERSIONS,
    StorageVersionMigration,
)
from steersman.api.scheme import Kind
from steersman.controllers.clustertrustbundlepublisher import bundle_name
from tests.harness.envtest import RealPlane
from tests.harness.follow import gone, until

Document = dict[str, Any]
DEFINITIONS = load("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
RELICS: Kind[Document] = Kind("example.com", "v1", "Relic", "relics", True, dict)
GATES = (
    "--feature-gates=ClusterTrustBundle=true,StorageVersionAPI=true,StorageVersionMigrator=true,"
    "PodCertificateRequest=true"
)
APISERVER = (
    GATES,
    "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true,"
    "certificates.k8s.io/v1beta1/podcertificaterequests=true,"
    "internal.apiserver.k8s.io/v1alpha1=true,storagemigration.k8s.io/v1beta1=true",
)
CONTROLLERS = (
    "kube-apiserver-serving-clustertrustbundle-publisher-controller",
    "storageversion-garbage-collector-controller",
    "storage-version-migrator-controller",
    "podcertificaterequest-cleaner-controller",
    # Without its cache, upstream's migrator panics.
    "garbage-collector-controller",
)
UID = "0d3b9b7e-0000-4000-8000-000000000000"


def flags(plane: RealPlane) -> tuple[str, ...]:
    return f"--root-ca-file={plane.ca}", GATES


# -- the story --------------------------------------------------------------------------------


async def tell(stage: Any) -> Document:
    bundles = await _trust_bundles(stage)
    await _storage_versions(stage)
    await _migrations(stage)
    await _pod_requests(stage)
    await stage.quiet()
    api = stage.api
    live = await api.get(DEFINITIONS.untyped, "", "relics.example.com")
    return {
        "bundles": bundles,
        "versions": [
            (one["metadata"]["name"], _version(one["status"]))
            for one in (await api.list(STORAGEVERSIONS.untyped)).items
            if one["metadata"]["name"].startswith("example.com.")
        ],
        "migrations": {
            one["metadata"]["name"]: _untimed(one["status"]["conditions"])
            for one in (await api.list(STORAGEVERSIONMIGRATIONS.untyped)).items
        },
        "stored versions": live["status"]["storedVersions"],
        "pod requests": [
            one["metadata"]["name"]
            for one in (await api.list(PODCERTIFICATEREQUESTS.untyped, stage.namespace)).items
        ],
    }


def _untimed(conditions: list[Document]) -> list[Document]:
    return [{key: value for key, value in one.items() if not key.endswith("Time")} for one in conditions]


def _version(status: Document) -> Document:
    """What is left of a storage version, without the name of the server, which differs."""
    versions = [{**one, "apiServerID": "the server"} for one in status["storageVersions"]]
    return {**status, "storageVersions": versions, "conditions": _untimed(status.get("conditions", []))}


async def _trust_bundles(stage: Any) -> list[Document]:
    """The bundle of the server's CA: published, restored, and others of its signer removed."""
    api, own = stage.api, bundle_name(stage.plane.ca.read_bytes())
    made = await until(api, CLUSTERTRUSTBUNDLES, "", own, lambda found: True)
    old = {
        "metadata": {"name": "kubernetes.io:kube-apiserver-serving:old"},
        "spec": {"signerName": made.spec.signerName, "trustBundle": stage.plane.ca.read_text()},
    }
    await api.create(CLUSTERTRUSTBUNDLES.untyped, "", old)
    await api.delete(CLUSTERTRUSTBUNDLES, "", own)
    await until(api, CLUSTERTRUSTBUNDLES, "", own, lambda found: found.metadata.uid != made.metadata.uid)
    await gone(api, CLUSTERTRUSTBUNDLES, "", old["metadata"]["name"])
    return [
        {
            "own name": one["metadata"]["name"] == own,
            "signer": one["spec"]["signerName"],
            "own CA": one["spec"]["trustBundle"] == stage.plane.ca.read_text(),
        }
        for one in (await api.list(CLUSTERTRUSTBUNDLES.untyped)).items
    ]


async def _storage_versions(stage: Any) -> None:
    """Versions of servers that are gone are removed, and a resource that only they served goes."""
    api = stage.api
    lease = "coordination.k8s.io", "v1", "Lease"
    alive = (
        await api.list(load(*lease).untyped, "kube-system", label_selector="apiserver.kubernetes.io/identity")
    ).items
    server = alive[0]["metadata"]["name"]
    for name, servers in (("ghosts", ("gone",)), ("mixed", ("gone", server))):
        full = f"example.com.{name}"
        await api.create(STORAGEVERSIONS.untyped, "", {"metadata": {"name": full}, "spec": {}})
        live = await api.get(STORAGEVERSIONS.untyped, "", full)
        versions = [
            {
                "apiServerID": each,
                "encodingVersion": "v1" if each == server else "v2",
                "decodableVersions": ["v1", "v2"],
            }
            for each in servers
        ]
        common = {"commonEncodingVersion": "v2"} if len(servers) == 1 else {}
        live["status"] = {"storageVersions": versions, **common}
        await api.update_status(STORAGEVERSIONS.untyped, "", full, live)
    # Deleting the lease of a server that is gone is what makes the collector look.
    await api.create(
        load(*lease).untyped,
        "kube-system",
        {"metadata": {"name": "gone", "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}},
    )
    await api.delete(load(*lease), "kube-system", "gone")
    await gone(api, STORAGEVERSIONS, "", "example.com.ghosts")
    await until(
        api, STORAGEVERSIONS, "", "example.com.mixed", lambda found: len(found.status.storageVersions) == 1
    )


async def _migrations(stage: Any) -> None:
    api = stage.api
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}

    def versions(stored: str) -> list[Document]:
        return [
            {"name": name, "served": True, "storage": name == stored, "schema": schema}
            for name in ("v1", "v2")
        ]

    names = {"plural": "relics", "singular": "relic", "kind": "Relic"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions("v1")}
    await api.create(DEFINITIONS.untyped, "", {"metadata": {"name": "relics.example.com"}, "spec": spec})
    await until(api, DEFINITIONS, "", "relics.example.com", _established)
    for number in range(3):
        await stage.create(
            RELICS, {"apiVersion": "example.com/v1", "kind": "Relic", "metadata": {"name": f"r{number}"}}
        )
    await api.patch(DEFINITIONS.untyped, "", "relics.example.com", {"spec": {"versions": versions("v2")}})
    for name, resource in (("relics", "relics"), ("nothing", "nothings")):
        body = {
            "metadata": {"name": name},
            "spec": {"resource": {"group": "example.com", "resource": resource}},
        }
        await api.create(STORAGEVERSIONMIGRATIONS.untyped, "", body)
    await until(api, STORAGEVERSIONMIGRATIONS, "", "relics", _has("Succeeded"))
    await until(api, STORAGEVERSIONMIGRATIONS, "", "nothing", _has("Failed"))


def _established(found: Any) -> bool:
    conditions = found.status.conditions or () if found.status is not None else ()
    return any(one.type == "Established" and one.status == "True" for one in conditions)


def _has(type_: str) -> Callable[[StorageVersionMigration], bool]:
    return lambda found: any(one.type == type_ and one.status == "True" for one in found.status.conditions)


async def _pod_requests(stage: Any) -> None:
    """A request that is younger than a quarter of an hour, which stays."""
    key = ec.generate_private_key(ec.SECP256R1())
    pkix = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    proof = key.sign(UID.encode(), ec.ECDSA(hashes.SHA256()))
    body = {
        "metadata": {"name": "of-a-pod"},
        "spec": {
            "signerName": "example.com/signer",
            "podName": "pod",
            "podUID": UID,
            "serviceAccountName": "default",
            "serviceAccountUID": UID,
            "nodeName": "node",
            "nodeUID": UID,
            "maxExpirationSeconds": 3600,
            "pkixPublicKey": base64.b64encode(pkix).decode(),
            "proofOfPossession": base64.b64encode(proof).decode(),
        },
    }
    await stage.create(PODCERTIFICATEREQUESTS, body)


# -- comparison -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, "gated", controllers=CONTROLLERS, kinds=(), flags=flags, apiserver=APISERVER
    )
    return found


@pytest.mark.parametrize("what", ["bundles", "versions", "migrations", "stored versions", "pod requests"])
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)
