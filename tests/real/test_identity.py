"""Certificates, tokens and trust on a real API server: what this manager signs is accepted there.

Each controller has just its bootstrap rights.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from steersman.api.errors import Forbidden
from steersman.api.jwt import encode
from steersman.api.kinds import SERVICEACCOUNTS
from steersman.api.kinds.certificates import CERTIFICATESIGNINGREQUESTS, CertificateSigningRequest
from steersman.api.kinds.config import CONFIGMAPS, SECRETS, Secret, plain
from steersman.api.kinds.rbac import CLUSTERROLES
from steersman.api.signing_keys import KeySet
from steersman.controllers.bootstrap import signature
from steersman.controllers.serviceaccounttoken import claims
from tests.harness.child_process import Child
from tests.harness.envtest import RealPlane
from tests.harness.follow import gone, until

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture(scope="module")
def manager(plane: RealPlane) -> Iterator[Child]:
    mark = plane.mark()
    child = plane.manager(
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        "--controllers=*,bootstrapsigner,tokencleaner",
        f"--root-ca-file={plane.ca}",
        f"--service-account-private-key-file={plane.service_account_key}",
        f"--cluster-signing-cert-file={plane.ca}",
        f"--cluster-signing-key-file={plane.ca_key}",
        "--kube-api-qps=500",
        "--kube-api-burst=500",
        "-v=10",
    )
    yield child
    child.stop()
    ours = [one for one in plane.audit(mark) if one.user.startswith("system:serviceaccount:kube-system:")]
    assert [one for one in ours if one.code == 403] == []
    said = child.log()
    assert "Traceback" not in said
    for secret in (plane.ca_key, plane.service_account_key):
        body = "".join(secret.read_text().splitlines()[1:-1])
        assert body[:40] not in said
    assert "eyJhbGciOi" not in said, "a token was logged"


def whoami(plane: RealPlane, *, token: str = "", pair: Path | None = None) -> tuple[int, str]:
    """Who the API server takes one for."""
    context = ssl.create_default_context(cafile=str(plane.ca))
    if pair is not None:
        context.load_cert_chain(pair)
    connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=context, timeout=10)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    try:
        connection.request("POST", WHOAMI, json.dumps(REVIEW), headers)
        answer = connection.getresponse()
        document = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status != 201:
        return answer.status, ""
    return answer.status, document["status"]["userInfo"]["username"]


async def accepted(plane: RealPlane, token: str) -> str:
    """Who the API server takes the bearer of a Secret's token for, once it knows the token.

    The server compares a token with the Secret in its own informer, which may not have the token yet although every
    client can read it: it says 401 until its watch has delivered the update.
    """
    while True:
        code, user = await asyncio.to_thread(whoami, plane, token=token)
        if code == 201:
            return user
        assert code == 401


def pkcs10(user: str, *organizations: str) -> tuple[bytes, bytes]:
    """A PKCS #10 request, and the key it is for, both in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, user)]))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return request.public_bytes(Encoding.PEM), private


CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = "kubernetes.io/kube-apiserver-client-kubelet"


def csr(name: str, pem: bytes, signer: str) -> dict[str, Any]:
    """A CertificateSigningRequest for a client's certificate."""
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": signer,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": 3600,
        },
    }


def issued(request: CertificateSigningRequest) -> bool:
    return bool(request.status.certificate)


async def test_a_secret_gets_a_token_that_is_accepted_and_goes_with_its_account(
    plane: RealPlane, namespace: str, manager: Child
) -> None:
    async with plane.connect() as api, asyncio.timeout(60):
        account = await api.create(SERVICEACCOUNTS, namespace, {"metadata": {"name": "bot"}})
        annotations = {"kubernetes.io/service-account.name": "bot"}
        body = {
            "metadata": {"name": "bot-token", "annotations": annotations},
            "type": "kubernetes.io/service-account-token",
        }
        await api.create(SECRETS, namespace, body)

        def filled(secret: Secret) -> bool:
            return bool(secret.data.get("token"))

        secret = await until(api, SECRETS, namespace, "bot-token", filled)
        assert plain(secret, "namespace").decode() == namespace
        assert plain(secret, "ca.crt") == plane.ca.read_bytes()
        token = plain(secret, "token").decode()
        assert await accepted(plane, token) == f"system:serviceaccount:{namespace}:bot"
        forged = encode(claims(account, "bot-token"), KeySet.generate().signer)
        assert whoami(plane, token=forged)[0] == 401
        other = encode(claims(account, "another"), KeySet.load(plane.service_account_key.read_bytes()).signer)
        assert whoami(plane, token=other)[0] == 401
        await api.delete(SERVICEACCOUNTS, namespace, "bot")
        # The server remembers for ten seconds that a token was good; that its secret is gone is ours to show.
        await gone(api, SECRETS, namespace, "bot-token")


async def test_a_node_is_approved_and_signed_and_is_that_node_to_the_server(
    plane: RealPlane, tmp_path: Path, manager: Child
) -> None:
    plane.kubectl(
        "create", "clusterrolebinding", "nodes-renew",
        "--clusterrole=system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "--group=system:nodes",
    )  # fmt: skip
    node = "system:node:identity-1"
    pem, key = pkcs10(node, "system:nodes")
    async with (
        plane.connect(node, ("system:nodes",)) as kubelet,
        plane.connect() as api,
        asyncio.timeout(60),
    ):
        await kubelet.create(CERTIFICATESIGNINGREQUESTS.untyped, "", csr("renewal", pem, KUBELET))
        done = await until(api, CERTIFICATESIGNINGREQUESTS, "", "renewal", issued)
    assert [(one.type, one.reason, one.message) for one in done.status.conditions] == [
        (
            "Approved",
            "AutoApproved",
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        )
    ]
    certificate = base64.b64decode(done.status.certificate)
    found = x509.load_pem_x509_certificate(certificate)
    assert found.not_valid_after_utc - datetime.now(UTC) <= timedelta(hours=1)
    pair = tmp_path / "node.pem"
    pair.write_bytes(certificate + key)
    assert whoami(plane, pair=pair) == (201, node)


async def test_what_breaks_its_signers_rules_fails_even_when_somebody_approves_it(
    plane: RealPlane, manager: Child
) -> None:
    pem, _ = pkcs10("system:node:x", "system:masters")
    async with plane.connect() as api, asyncio.timeout(60):
        await api.create(CERTIFICATESIGNINGREQUESTS.untyped, "", csr("impostor", pem, KUBELET))
        plane.kubectl("certificate", "approve", "impostor")

        def failed(one: CertificateSigningRequest) -> bool:
            return any(condition.type == "Failed" for condition in one.status.conditions)

        done = await until(api, CERTIFICATESIGNINGREQUESTS, "", "impostor", failed)
    assert done.status.certificate == ""
    condition = done.status.conditions[-1]
    assert condition.reason == "SignerValidationFailure"
    assert condition.message == "subject organization is not system:nodes"


async def test_a_client_somebody_approved_is_that_user(
    plane: RealPlane, tmp_path: Path, manager: Child
) -> None:
    pem, key = pkcs10("jane", "devs")
    async with plane.connect() as api, asyncio.timeout(60):
        await api.create(CERTIFICATESIGNINGREQUESTS.untyped, "", csr("jane", pem, CLIENT))
        plane.kubectl("certificate", "approve", "jane")
        done = await until(api, CERTIFICATESIGNINGREQUESTS, "", "jane", issued)
    pair = tmp_path / "jane.pem"
    pair.write_bytes(base64.b64decode(done.status.certificate) + key)
    assert whoami(plane, pair=pair) == (201, "jane")


async def test_the_request_that_kubectl_shows_is_the_one_signed(
    plane: RealPlane, tmp_path: Path, manager: Child
) -> None:
    evil, _ = pkcs10("evil", "system:masters")
    jane, key = pkcs10("dev-jane", "devs")
    requests = {
        # The approving controller reads this one before any approval.
        "many-headers": b"-----BEGIN A-----\n" + b"::\n" * 44 + b"!\n" + jane,
        # Go sees no block that begins inside a line, so admission lets this pass.
        "hidden": b"x" + evil + jane,
    }
    async with plane.connect() as api, asyncio.timeout(60):
        with pytest.raises(Forbidden, match="system:masters group is not allowed"):
            await api.create(CERTIFICATESIGNINGREQUESTS.untyped, "", csr("evil", evil, CLIENT))
        for name, pem in requests.items():
            await api.create(CERTIFICATESIGNINGREQUESTS.untyped, "", csr(name, pem, CLIENT))
        for name in reversed(requests):
            shown = plane.kubectl("describe", "csr", name)
            assert "dev-jane" in shown
            assert "evil" not in shown
            plane.kubectl("certificate", "approve", name)
            done = await until(api, CERTIFICATESIGNINGREQUESTS, "", name, issued)
            certificate = base64.b64decode(done.status.certificate)
            found = x509.load_pem_x509_certificate(certificate)
            assert found.subject.rfc4514_string() == "CN=dev-jane,O=devs"
            pair = tmp_path / f"{name}.pem"
            pair.write_bytes(certificate + key)
            assert whoami(plane, pair=pair) == (201, "dev-jane")


async def test_every_namespace_has_the_servers_ca_and_keeps_it(
    plane: RealPlane, namespace: str, manager: Child
) -> None:
    name = "kube-root-ca.crt"
    ca = plane.ca.read_text()
    async with plane.connect() as api, asyncio.timeout(60):
        first = await until(api, CONFIGMAPS, namespace, name, lambda one: one.data.get("ca.crt") == ca)
        await api.patch(CONFIGMAPS, namespace, name, {"data": {"ca.crt": "mine"}})
        await until(api, CONFIGMAPS, namespace, name, lambda one: one.data.get("ca.crt") == ca)
        await api.delete(CONFIGMAPS, namespace, name)
        await until(api, CONFIGMAPS, namespace, name, lambda one: one.metadata.uid != first.metadata.uid)


async def test_a_role_is_aggregated_and_let_go_again(plane: RealPlane, manager: Child) -> None:
    rule = {"apiGroups": ["example.com"], "resources": ["gadgets"], "verbs": ["get"]}
    labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    async with plane.connect() as api, asyncio.timeout(60):
        await api.create(
            CLUSTERROLES, "", {"metadata": {"name": "gadgets", "labels": labels}, "rules": [rule]}
        )

        def has(role: Any) -> bool:
            return any("gadgets" in one.resources for one in role.rules)

        for name in ("view", "edit", "admin"):
            await until(api, CLUSTERROLES, "", name, has)
        await api.delete(CLUSTERROLES, "", "gadgets")
        for name in ("view", "edit", "admin"):
            await until(api, CLUSTERROLES, "", name, lambda role: not has(role))


async def test_bootstrap_tokens_vouch_for_cluster_info_until_they_expire(
    plane: RealPlane, manager: Child
) -> None:
    def token(id: str, **data: str) -> dict[str, Any]:
        values = {
            "token-id": id,
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-signing": "true",
            **data,
        }
        return {
            "metadata": {"name": f"bootstrap-token-{id}"},
            "type": "bootstrap.kubernetes.io/token",
            "stringData": values,
        }

    past = (datetime.now(UTC) - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    async with plane.connect() as api, asyncio.timeout(60):
        info = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "content"}}
        await api.create(CONFIGMAPS, "kube-public", info)
        await api.create(SECRETS, "kube-system", token("abcdef"))
        await api.create(SECRETS, "kube-system", token("expird", expiration=past))
        right = signature("content", "abcdef", b"0123456789abcdef")
        done = await until(
            api,
            CONFIGMAPS,
            "kube-public",
            "cluster-info",
            lambda one: one.data.get("jws-kubeconfig-abcdef") == right,
        )
        assert "jws-kubeconfig-expird" not in done.data
        await gone(api, SECRETS, "kube-system", "bootstrap-token-expird")
        await api.delete(SECRETS, "kube-system", "bootstrap-token-abcdef")
        await until(
            api,
            CONFIGMAPS,
            "kube-public",
            "cluster-info",
            lambda one: "jws-kubeconfig-abcdef" not in one.data,
        )
        await api.delete(CONFIGMAPS, "kube-public", "cluster-info")
