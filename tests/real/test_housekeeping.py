"""Quotas, old requests and old tokens on a real API server, each controller with just its bootstrap rights."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from steersman.api.clock import RealClock
from steersman.api.kinds import PODS, SERVICEACCOUNTS
from steersman.api.kinds.certificates import (
    CERTIFICATESIGNINGREQUESTS,
    CLUSTERTRUSTBUNDLES,
    PODCERTIFICATEREQUESTS,
)
from steersman.api.kinds.config import CONFIGMAPS, SECRETS
from steersman.api.kinds.quota import RESOURCEQUOTAS
from steersman.api.kinds.services import SERVICES
from steersman.api.kinds.storageversions import (
    CUSTOMRESOURCEDEFINITIONS,
    STORAGEVERSIONMIGRATIONS,
    STORAGEVERSIONS,
    StorageVersionMigration,
)
from steersman.api.scheme import Kind
from steersman.client.http import HttpApi
from steersman.controllers.certificates import cleaner
from steersman.controllers.clustertrustbundlepublisher import bundle_name
from steersman.controllers.legacyserviceaccounttoken import INVALID_SINCE, TRACKING
from steersman.intent.settings import Settings
from steersman.manager.client_builder import ClientBuilder
from steersman.runtime.controller_group import ControllerGroup
from steersman.runtime.trace import Round, Trace
from tests.harness.child_process import Child
from tests.harness.custom_resources import definition
from tests.harness.envtest import RealPlane
from tests.harness.follow import gone, until

COMMON = (
    "--leader-elect=false",
    "--use-service-account-credentials=true",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
)


def ended(plane: RealPlane, manager: Child, mark: int) -> None:
    """End a manager that was refused nothing."""
    manager.stop()
    ours = [one for one in plane.audit(mark) if one.user.startswith("system:serviceaccount:kube-system:")]
    assert [one for one in ours if one.code == 403] == []
    assert "Traceback" not in manager.log()


@pytest.fixture
def manager(plane: RealPlane) -> Iterator[Child]:
    mark = plane.mark()
    child = plane.manager(*COMMON, f"--root-ca-file={plane.ca}")
    yield child
    ended(plane, child, mark)


def used(quota: Any) -> dict[str, str]:
    return dict(quota.status.used)


async def test_a_quota_says_what_is_used_of_every_sort_and_gives_back_what_goes(
    plane: RealPlane, namespace: str, manager: Child
) -> None:
    definitions = CUSTOMRESOURCEDEFINITIONS.untyped
    gizmos: Kind[dict[str, Any]] = Kind("quota.example.com", "v1", "Gizmo", "gizmos", True, dict)
    pod = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "300m"}}}]},
    }
    service = {
        "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}, {"name": "b", "port": 81}]},
    }
    service["spec"]["ports"][0]["name"] = "a"
    hard = {
        "pods": "5",
        "requests.cpu": "2",
        "services.nodeports": "5",
        "count/secrets": "9",
        "count/gizmos.quota.example.com": "7",
    }
    async with plane.connect() as api, asyncio.timeout(90):
        await api.create(definitions, "", definition(gizmos))
        await api.create(SERVICEACCOUNTS, namespace, {"metadata": {"name": "x"}})
        await until(api, SERVICEACCOUNTS, namespace, "default", lambda one: True)
        await api.create(RESOURCEQUOTAS, namespace, {"metadata": {"name": "q"}, "spec": {"hard": hard}})
        counted = {"pods", "requests.cpu", "services.nodeports", "count/secrets"}
        await until(api, RESOURCEQUOTAS, namespace, "q", lambda one: counted <= set(used(one)))
        await api.create(PODS.untyped, namespace, pod)
        await api.create(SERVICES.untyped, namespace, service)
        await api.create(SECRETS.untyped, namespace, {"metadata": {"name": "t"}})
        want = {"pods": "1", "requests.cpu": "300m", "services.nodeports": "2", "count/secrets": "1"}
        await until(api, RESOURCEQUOTAS, namespace, "q", lambda one: want.items() <= used(one).items())
        await until(
            api, RESOURCEQUOTAS, namespace, "q", lambda one: "count/gizmos.quota.example.com" in used(one)
        )
        await api.create(
            gizmos,
            namespace,
            {"apiVersion": "quota.example.com/v1", "kind": "Gizmo", "metadata": {"name": "g"}},
        )
        await until(
            api,
            RESOURCEQUOTAS,
            namespace,
            "q",
            lambda one: used(one)["count/gizmos.quota.example.com"] == "1",
        )
        await api.delete(PODS, namespace, "p", grace=0)
        await api.delete(SERVICES, namespace, "s")
        await api.delete(SECRETS, namespace, "t")
        await api.delete(gizmos, namespace, "g")
        nothing = dict.fromkeys(hard, "0")
        await until(api, RESOURCEQUOTAS, namespace, "q", lambda one: used(one) == nothing)


def request(name: str) -> dict[str, Any]:
    made = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    )
    return {
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(made.public_bytes(Encoding.PEM)).decode(),
            "signerName": "example.com/nobody",
            "usages": ["client auth"],
        },
    }


async def test_a_request_that_was_denied_long_ago_is_forgotten_and_others_stay(
    plane: RealPlane, manager: Child
) -> None:
    requests = CERTIFICATESIGNINGREQUESTS.untyped
    async with plane.connect() as api, asyncio.timeout(60):
        for name in ("old", "young"):
            body = request(name)
            made = await api.create(requests, "", body)
            ago = timedelta(hours=2 if name == "old" else 0)
            made["status"] = {
                "conditions": [
                    {
                        "type": "Denied",
                        "status": "True",
                        "reason": "Test",
                        "lastUpdateTime": (datetime.now(UTC) - ago).strftime("%Y-%m-%dT%H:%M:%SZ"),
                    }
                ]
            }
            await api.subresource(requests, "", name, "approval", made, verb="update")
        await gone(api, CERTIFICATESIGNINGREQUESTS, "", "old")
        assert (await api.get(requests, "", "young"))["metadata"]["name"] == "young"
        await api.delete(requests, "", "young")


async def test_a_token_nobody_uses_is_invalidated_and_then_deleted(plane: RealPlane, namespace: str) -> None:
    flags = (
        *COMMON,
        "--controllers=legacy-serviceaccount-token-cleaner-controller",
        "--legacy-service-account-token-clean-up-period=1ms",
    )
    async with plane.connect() as api, asyncio.timeout(90):
        await until(api, CONFIGMAPS, TRACKING.namespace, TRACKING.name, lambda one: "since" in one.data)
        await api.patch(CONFIGMAPS, TRACKING.namespace, TRACKING.name, {"data": {"since": "2020-01-01"}})
        annotations = {"kubernetes.io/service-account.name": "bot"}
        await api.create(
            SERVICEACCOUNTS.untyped, namespace, {"metadata": {"name": "bot"}, "secrets": [{"name": "t"}]}
        )
        secret = {
            "metadata": {"name": "t", "annotations": annotations},
            "type": "kubernetes.io/service-account-token",
        }
        await api.create(SECRETS.untyped, namespace, secret)
        mark = plane.mark()
        first = plane.manager(*flags)
        marked = await until(api, SECRETS, namespace, "t", lambda one: INVALID_SINCE in one.metadata.labels)
        assert marked.metadata.labels[INVALID_SINCE] == datetime.now(UTC).strftime("%Y-%m-%d")
        ended(plane, first, mark)
        label = {"metadata": {"labels": {INVALID_SINCE: "2020-01-01"}}}
        await api.patch(SECRETS, namespace, "t", label)
        mark = plane.mark()
        second = plane.manager(*flags)
        await gone(api, SECRETS, namespace, "t")
        ended(plane, second, mark)


async def _migrated(api: HttpApi) -> None:
    """Two migrations of a custom resource: one after the other, and old versions are dropped."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}

    def versions(stored: str) -> list[dict[str, Any]]:
        return [
            {"name": name, "served": True, "storage": name == stored, "schema": schema}
            for name in ("v1", "v2")
        ]

    names = {"plural": "relics", "singular": "relic", "kind": "Relic"}
    body = {
        "metadata": {"name": "relics.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions("v1")},
    }
    definitions = CUSTOMRESOURCEDEFINITIONS.untyped
    await api.create(definitions, "", body)
    await until(
        api,
        CUSTOMRESOURCEDEFINITIONS,
        "",
        "relics.example.com",
        lambda one: any(c.type == "Established" and c.status == "True" for c in one.status.conditions or ()),
    )
    relics: Kind[dict[str, Any]] = Kind("example.com", "v1", "Relic", "relics", True, dict)
    for number in range(3):
        await api.create(
            relics,
            "default",
            {"apiVersion": "example.com/v1", "kind": "Relic", "metadata": {"name": f"r{number}"}},
        )
    await api.patch(definitions, "", "relics.example.com", {"spec": {"versions": versions("v2")}})
    for name in ("first", "second"):
        await api.create(
            STORAGEVERSIONMIGRATIONS,
            "",
            {
                "metadata": {"name": name},
                "spec": {"resource": {"group": "example.com", "resource": "relics"}},
            },
        )

    def done(one: StorageVersionMigration) -> bool:
        states = {condition.type: condition.status for condition in one.status.conditions}
        assert states.get("Failed") != "True", one.status
        return states.get("Succeeded") == "True" and states.get("Running") == "False"

    for name in ("first", "second"):
        await until(api, STORAGEVERSIONMIGRATIONS, "", name, done)
    live = await api.get(definitions, "", "relics.example.com")
    assert live["status"]["storedVersions"] == ["v2"]


CLEANER = ":podcertificaterequestcleaner"


class Ahead(RealClock):
    """A clock that runs ahead: the server says when a request was made, and has just done so."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._ahead


class Looked(Trace):
    """Says when a first round has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.once = asyncio.Event()

    def record(self, round_: Round) -> None:
        super().record(round_)
        self.once.set()


async def _pods_requests_forgotten(api: HttpApi) -> None:
    """Requests of pods go after a quarter of an hour, and not before."""
    key = ec.generate_private_key(ec.SECP256R1())
    uid = "0d3b9b7e-0000-4000-8000-000000000000"
    pkix = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    body = {
        "apiVersion": PODCERTIFICATEREQUESTS.api_version,
        "kind": PODCERTIFICATEREQUESTS.name,
        "metadata": {"name": "of-a-pod"},
        "spec": {
            "signerName": "example.com/signer",
            "podName": "pod",
            "podUID": uid,
            "serviceAccountName": "default",
            "serviceAccountUID": uid,
            "nodeName": "node",
            "nodeUID": uid,
            "maxExpirationSeconds": 3600,
            "pkixPublicKey": base64.b64encode(pkix).decode(),
            "proofOfPossession": base64.b64encode(key.sign(uid.encode(), ec.ECDSA(hashes.SHA256()))).decode(),
        },
    }
    await api.create(PODCERTIFICATEREQUESTS.untyped, "default", body)
    gates = Settings(gates={"PodCertificateRequest": True})
    accounts = ClientBuilder(api, use_service_accounts=True)
    for seconds in (14 * 60, 16 * 60):
        looked = Looked()
        fleet = ControllerGroup(
            (cleaner.pod_requests,), api, Ahead(seconds), api_of=accounts.client, settings=gates, trace=looked
        )
        running = asyncio.create_task(fleet.run())
        if seconds < 15 * 60:
            await looked.once.wait()
            await api.get(PODCERTIFICATEREQUESTS.untyped, "default", "of-a-pod")
        else:
            await gone(api, PODCERTIFICATEREQUESTS, "default", "of-a-pod")
        running.cancel()
        await asyncio.wait((running,))
    await accounts.close()


async def test_controllers_behind_gates_run_where_their_apis_are_served() -> None:
    with RealPlane.start(
        apiserver=(
            "--feature-gates=ClusterTrustBundle=true,StorageVersionAPI=true,StorageVersionMigrator=true,"
            "PodCertificateRequest=true",
            "--runtime-config=certificates.k8s.io/v1beta1/clustertrustbundles=true,"
            "certificates.k8s.io/v1beta1/podcertificaterequests=true,"
            "internal.apiserver.k8s.io/v1alpha1=true,storagemigration.k8s.io/v1beta1=true",
        )
    ) as plane:
        mark = plane.mark()
        manager = plane.manager(
            *COMMON,
            f"--root-ca-file={plane.ca}",
            "--feature-gates=ClusterTrustBundle=true,StorageVersionAPI=true,"
            "StorageVersionMigrator=true,PodCertificateRequest=true",
        )
        name = bundle_name(plane.ca.read_bytes())
        async with plane.connect() as api, asyncio.timeout(90):
            made = await until(api, CLUSTERTRUSTBUNDLES, "", name, lambda one: True)
            assert made.spec.trustBundle == plane.ca.read_text()
            await api.delete(CLUSTERTRUSTBUNDLES, "", name)
            await until(api, CLUSTERTRUSTBUNDLES, "", name, lambda one: one.metadata.uid != made.metadata.uid)
            ghost = {
                "apiVersion": STORAGEVERSIONS.api_version,
                "kind": STORAGEVERSIONS.name,
                "metadata": {"name": "example.com.ghosts"},
                "spec": {},
            }
            await api.create(STORAGEVERSIONS.untyped, "", ghost)
            stale = {"apiServerID": "gone", "encodingVersion": "v1", "decodableVersions": ["v1"]}
            live = await api.get(STORAGEVERSIONS.untyped, "", "example.com.ghosts")
            live["status"] = {"storageVersions": [stale], "commonEncodingVersion": "v1"}
            await api.update_status(STORAGEVERSIONS.untyped, "", "example.com.ghosts", live)
            await gone(api, STORAGEVERSIONS, "", "example.com.ghosts")
            await _migrated(api)
        ended(plane, manager, mark)
        assert "podcertificaterequest-cleaner-controller does not start yet" not in manager.log()
        async with plane.connect() as api, asyncio.timeout(60):
            await _pods_requests_forgotten(api)
        assert [one for one in plane.audit(mark) if one.user.endswith(CLEANER) and one.code == 403] == []
