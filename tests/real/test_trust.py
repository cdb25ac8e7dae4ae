"""Tokens, certificates, trust, roles and quotas, told to both managers on real API servers: what they leave is the same.

Each plane has keys of its own, so that certificates and tokens are compared by what they say.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from steersman.api.generated import load
from steersman.api.kinds import SERVICEACCOUNTS
from steersman.api.kinds.certificates import CERTIFICATESIGNINGREQUESTS
from steersman.api.kinds.config import CONFIGMAPS, SECRETS
from steersman.api.kinds.quota import RESOURCEQUOTAS
from steersman.api.kinds.rbac import CLUSTERROLES
from steersman.controllers.legacyserviceaccounttoken import INVALID_SINCE, TRACKING
from tests.harness.envtest import RealPlane
from tests.harness.follow import gone, until

Document = dict[str, Any]
PODS = load("", "v1", "Pod")
SERVICES = load("", "v1", "Service")
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING = "kubernetes.io/kubelet-serving"
CONTROLLERS = (
    "serviceaccount-token-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "bootstrap-signer-controller",
    "token-cleaner-controller",
    "certificatesigningrequest-approving-controller",
    "certificatesigningrequest-signing-controller",
    "certificatesigningrequest-cleaner-controller",
    "resourcequota-controller",
)
NAMESPACE = "trust"
AGGREGATE = "trust.example.com/aggregate"


def flags(plane: RealPlane) -> tuple[str, ...]:
    return (
        f"--root-ca-file={plane.ca}",
        f"--service-account-private-key-file={plane.service_account_key}",
        f"--cluster-signing-cert-file={plane.ca}",
        f"--cluster-signing-key-file={plane.ca_key}",
    )


# -- what is asked for ------------------------------------------------------------------------


def csr(
    name: str, signer: str, user: str, *groups: str, usages: tuple[str, ...] = ("client auth",)
) -> Document:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject.append(x509.NameAttribute(x509.NameOID.COMMON_NAME, user))
    request = (
        x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject)).sign(key, hashes.SHA256())
    )
    spec = {
        "request": base64.b64encode(request.public_bytes(Encoding.PEM)).decode(),
        "signerName": signer,
        "usages": ["digital signature", *usages],
        "expirationSeconds": 7200,
    }
    return {"metadata": {"name": name}, "spec": spec}


def token_secret(name: str, account: str, **labels: str) -> Document:
    annotations = {"kubernetes.io/service-account.name": account}
    meta = {"name": name, "annotations": annotations, "labels": labels}
    return {"metadata": meta, "type": "kubernetes.io/service-account-token"}


def bootstrap_token(id: str, **data: str) -> Document:
    values = {"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true", **data}
    return {
        "metadata": {"name": f"bootstrap-token-{id}"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": values,
    }


def role(name: str, resource: str, *, selects: str = "") -> Document:
    if selects:
        rule = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE: selects}}]}
        return {"metadata": {"name": name}, "aggregationRule": rule}
    rules = [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}]
    return {"metadata": {"name": name, "labels": {AGGREGATE: "all"}}, "rules": rules}


async def judge(stage: Any, name: str, type_: str) -> None:
    """Approve or deny a request."""
    requests = CERTIFICATESIGNINGREQUESTS.untyped
    found = await stage.api.get(requests, "", name)
    found["status"] = {"conditions": [{"type": type_, "status": "True", "reason": "Test"}]}
    await stage.api.subresource(requests, "", name, "approval", found, verb="update")


# -- the story --------------------------------------------------------------------------------


async def tell(stage: Any) -> Document:
    api, namespace = stage.api, stage.namespace
    # Tokens of an account, given and given back, and gone with it.
    await stage.create(SERVICEACCOUNTS, {"metadata": {"name": "robot"}}, {"metadata": {"name": "leaving"}})
    await stage.create(SECRETS, token_secret("robot", "robot"), token_secret("leaving", "leaving"))
    await stage.create(SECRETS, token_secret("stranger", "nobody"))
    for name in ("robot", "leaving"):
        await stage.until(SECRETS, name, lambda found: "token" in found.data)
    await stage.patch(SECRETS, "robot", {"data": {"token": None, "ca.crt": None}})
    await stage.until(SECRETS, "robot", lambda found: {"token", "ca.crt"} <= found.data.keys())
    await api.delete(SERVICEACCOUNTS, namespace, "leaving")
    await stage.gone(SECRETS, "leaving")
    await stage.gone(SECRETS, "stranger")
    # The root CA, restored.
    root = await stage.until(CONFIGMAPS, "kube-root-ca.crt", lambda found: "ca.crt" in found.data)
    await stage.patch(CONFIGMAPS, "kube-root-ca.crt", {"data": {"ca.crt": "tampered", "more": "data"}})
    await stage.until(CONFIGMAPS, "kube-root-ca.crt", lambda found: found.data == root.data)
    # Roles, aggregated in order and followed.
    await stage.create(
        CLUSTERROLES, role("trust-b", "pods"), role("trust-a", "secrets"), role("trust-c", "nodes")
    )
    await stage.create(CLUSTERROLES, role("trust-all", "", selects="all"))
    await stage.until(CLUSTERROLES, "trust-all", lambda found: len(found.rules or ()) == 3)
    await api.delete(CLUSTERROLES, "", "trust-c")
    await stage.until(CLUSTERROLES, "trust-all", lambda found: len(found.rules or ()) == 2)
    await _certificates(stage)
    await _bootstrap_tokens(stage)
    await _quota(stage)
    await stage.quiet()
    return {
        "secrets told": {
            one["metadata"]["name"]: _secret(one)
            for one in (await api.list(SECRETS.untyped, namespace)).items
        },
        "config maps told": {
            one["metadata"]["name"]: _config_map(one, stage.plane)
            for space in (namespace, "kube-public")
            for one in (await api.list(CONFIGMAPS.untyped, space)).items
        },
        "requests told": {
            one["metadata"]["name"]: _request(one)
            for one in (await api.list(CERTIFICATESIGNINGREQUESTS.untyped)).items
        },
        "roles told": {
            one["metadata"]["name"]: one.get("rules")
            for one in (await api.list(CLUSTERROLES.untyped)).items
            if one["metadata"]["name"].startswith("trust-")
        },
        "bootstrap tokens": sorted(
            one["metadata"]["name"]
            for one in (await api.list(SECRETS.untyped, "kube-system")).items
            if one["type"] == "bootstrap.kubernetes.io/token"
        ),
    }


async def _certificates(stage: Any) -> None:
    node, group = "system:node:node-1", "system:nodes"
    await stage.create(
        CERTIFICATESIGNINGREQUESTS,
        csr("kubelet", KUBELET, node, group),
        csr("kubelet-of-others", KUBELET, "node-1", group),
        csr("client", CLIENT, "jane", "devs"),
        csr("wrong-usage", CLIENT, "jane", usages=("server auth",)),
        csr("not-serving", SERVING, "node-1", group, usages=("server auth",)),
        csr("waiting", CLIENT, "jane"),
        csr("denied", CLIENT, "jane"),
    )
    # The cleaner leaves all of these for an hour or more. When it removes old ones cannot be compared: upstream's first look may
    # come before its cache is filled, and the second comes after an hour.
    await judge(stage, "denied", "Denied")
    await judge(stage, "client", "Approved")
    for name in ("wrong-usage", "not-serving", "kubelet-of-others"):
        await judge(stage, name, "Approved")
    for name in ("kubelet", "client"):
        await stage.until(CERTIFICATESIGNINGREQUESTS, name, lambda found: bool(found.status.certificate))
    for name in ("wrong-usage", "not-serving", "kubelet-of-others"):
        await stage.until(
            CERTIFICATESIGNINGREQUESTS,
            name,
            lambda found: any(one.type == "Failed" for one in found.status.conditions),
        )


async def _bootstrap_tokens(stage: Any) -> None:
    api, past = stage.api, (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    info = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "content"}}
    await api.create(CONFIGMAPS.untyped, "kube-public", info)
    for made in (
        bootstrap_token("abcdef"),
        bootstrap_token("fedcba"),
        bootstrap_token("expird", expiration=past),
        bootstrap_token("nosign", **{"usage-bootstrap-signing": "false"}),
    ):
        await api.create(SECRETS.untyped, "kube-system", made)

    def signed(*ids: str) -> Callable[[Any], bool]:
        wanted = {f"jws-kubeconfig-{id}" for id in ids}
        return lambda found: {name for name in found.data if name.startswith("jws-")} == wanted

    await until(api, CONFIGMAPS, "kube-public", "cluster-info", signed("abcdef", "fedcba"))
    await gone(api, SECRETS, "kube-system", "bootstrap-token-expird")
    await api.delete(SECRETS, "kube-system", "bootstrap-token-fedcba")
    await until(api, CONFIGMAPS, "kube-public", "cluster-info", signed("abcdef"))


async def _quota(stage: Any) -> None:
    resources = {"requests": {"cpu": "300m", "memory": "64Mi"}, "limits": {"cpu": "1"}}
    pod = {
        "metadata": {"name": "counted"},
        "spec": {
            "schedulerName": "none",
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "app:1", "resources": resources}],
        },
    }
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    await stage.create(PODS, pod, {**pod, "metadata": {"name": "passing"}})
    await stage.create(SERVICES, {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": ports}})
    hard = {
        "pods": "5",
        "requests.cpu": "2",
        "limits.cpu": "4",
        "requests.memory": "1Gi",
        "services": "3",
        "services.nodeports": "5",
        "count/deployments.apps": "2",
    }
    await stage.create(
        RESOURCEQUOTAS,
        {"metadata": {"name": "all"}, "spec": {"hard": hard}},
        {"metadata": {"name": "best-effort"}, "spec": {"hard": {"pods": "1"}, "scopes": ["BestEffort"]}},
    )

    def used(**wanted: str) -> Callable[[Any], bool]:
        return lambda found: wanted.items() <= dict(found.status.used).items()

    await stage.until(RESOURCEQUOTAS, "all", used(pods="2"))
    await stage.api.delete(PODS, stage.namespace, "passing", grace=0)
    await stage.until(RESOURCEQUOTAS, "all", used(pods="1", services="1"))
    await stage.until(RESOURCEQUOTAS, "best-effort", used(pods="0"))


# -- what is compared -------------------------------------------------------------------------


def _secret(found: Document) -> Document:
    meta, data = found["metadata"], found.get("data", {})
    labels = dict(meta.get("labels", {}))
    token = base64.b64decode(data.get("token", ""))
    told: Document = {}
    if token:
        payload = token.split(b".")[1]
        told = json.loads(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))
        told.pop("kubernetes.io/serviceaccount/service-account.uid")
    return {
        "type": found["type"],
        "labels": labels,
        "annotations": sorted(meta.get("annotations", {})),
        "data": sorted(data),
        "token": told,
    }


def _config_map(found: Document, plane: RealPlane) -> Document:
    own = plane.ca.read_text()
    data = {
        key: "the CA of the plane" if value == own else value for key, value in found.get("data", {}).items()
    }
    return {"annotations": found["metadata"].get("annotations"), "data": data}


def _request(found: Document) -> Document:
    status = found.get("status", {})
    conditions = [
        {key: value for key, value in each.items() if not key.endswith("Time")}
        for each in status.get("conditions", ())
    ]
    return {"conditions": conditions, "certificate": _certificate(status.get("certificate", ""))}


def _certificate(text: str) -> Document | None:
    if not text:
        return None
    found = x509.load_pem_x509_certificate(base64.b64decode(text))
    life = found.not_valid_after_utc - found.not_valid_before_utc
    return {
        "subject": found.subject.rfc4514_string(),
        "life": life.total_seconds(),
        "extensions": {
            one.oid.dotted_string: (one.critical, type(one.value).__name__)
            if isinstance(one.value, x509.AuthorityKeyIdentifier)
            else (one.critical, repr(one.value))
            for one in found.extensions
        },
    }


@pytest.fixture(scope="module")
def ends(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        tell, NAMESPACE, controllers=CONTROLLERS, kinds=(RESOURCEQUOTAS,), flags=flags
    )
    return found


@pytest.mark.parametrize(
    "what",
    [
        "secrets told",
        "config maps told",
        "requests told",
        "roles told",
        "bootstrap tokens",
        "resourcequotas",
    ],
)
def test_both_managers_leave_the_same(
    ends: dict[str, dict[str, Any]], alike: Callable[..., None], what: str
) -> None:
    alike(ends, what)


# -- tokens that are not used -----------------------------------------------------------------


async def before_cleaning(stage: Any) -> None:
    """Old tokens, which the cleaner looks at when it begins and a day later."""
    await until(stage.api, CONFIGMAPS, *TRACKING, lambda found: "since" in found.data)
    await stage.api.patch(CONFIGMAPS, *TRACKING, {"data": {"since": "2020-01-01"}})
    bot = {"metadata": {"name": "bot"}, "secrets": [{"name": "unused"}, {"name": "invalid"}]}
    await stage.create(SERVICEACCOUNTS, bot)
    await stage.create(SECRETS, token_secret("unused", "bot"))
    await stage.create(SECRETS, token_secret("invalid", "bot", **{INVALID_SINCE: "2020-01-01"}))


async def clean(stage: Any) -> Document:
    await stage.gone(SECRETS, "invalid")
    await stage.until(SECRETS, "unused", lambda found: INVALID_SINCE in found.metadata.labels)
    secrets = (await stage.api.list(SECRETS.untyped, stage.namespace)).items
    return {"secrets told": {one["metadata"]["name"]: _secret(one) for one in secrets}}


@pytest.fixture(scope="module")
def cleaned(both: Callable[..., Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = both(
        clean,
        NAMESPACE,
        before=before_cleaning,
        controllers=("legacy-serviceaccount-token-cleaner-controller",),
        kinds=(),
        flags=("--legacy-service-account-token-clean-up-period=1ms",),
    )
    return found


def test_both_managers_leave_the_same_tokens(
    cleaned: dict[str, dict[str, Any]], alike: Callable[..., None]
) -> None:
    alike(cleaned, "secrets told")
