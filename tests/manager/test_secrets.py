"""A whole manager at its most talkative says nothing that anybody could use."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from steersman.api.clock import RealClock
from steersman.api.kinds import SERVICEACCOUNTS
from steersman.api.kinds.certificates import CERTIFICATESIGNINGREQUESTS
from steersman.api.kinds.config import CONFIGMAPS, SECRETS, plain
from steersman.server.auth.users import User
from steersman.server.bootstrap import Bootstrap, bootstrap_server
from steersman.server.local import LocalApi
from steersman.server.server import Server
from tests.harness.child_process import Child, tail
from tests.harness.follow import until

TOKEN = "hunter2-the-manager"
PASSWORD = "hunter2-the-password"
BOOTSTRAP = "hunter2bootstrap"
FLAGS = (
    "-v=10",
    "--secure-port=0",
    "--use-service-account-credentials=true",
    "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
    "--kube-api-qps=500",
    "--kube-api-burst=500",
)


def secret(name: str, kind: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "type": kind,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def request() -> tuple[dict[str, Any], str]:
    """A request for a certificate that somebody has approved, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jane")])
    csr = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    body = {
        "metadata": {"name": "jane"},
        "spec": {
            "request": base64.b64encode(csr.public_bytes(Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"],
        },
    }
    return body, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


async def live(api: LocalApi) -> str:
    """Have every controller that deals with secrets deal with some; answers the token one of them made."""
    await api.create(SECRETS, "default", secret("plain", "Opaque", password=PASSWORD))
    bootstrap = secret(
        "bootstrap-token-abcdef",
        "bootstrap.kubernetes.io/token",
        "kube-system",
        **{"token-id": "abcdef", "token-secret": BOOTSTRAP, "usage-bootstrap-signing": "true"},
    )
    await api.create(SECRETS, "kube-system", bootstrap)
    info = {"metadata": {"name": "cluster-info"}, "data": {"kubeconfig": "clusters: []"}}
    await api.create(CONFIGMAPS, "kube-public", info)
    await api.create(SERVICEACCOUNTS, "default", {"metadata": {"name": "bot"}})
    legacy = secret("bot-token", "kubernetes.io/service-account-token")
    legacy["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "bot"}
    await api.create(SECRETS, "default", legacy)
    filled = await until(api, SECRETS, "default", "bot-token", lambda found: bool(found.data.get("token")))
    await until(
        api, CONFIGMAPS, "kube-public", "cluster-info", lambda found: "jws-kubeconfig-abcdef" in found.data
    )
    return plain(filled, "token").decode()


async def certify(api: LocalApi) -> str:
    """Have a certificate signed; answers its key."""
    body, key = request()
    created = await api.create(CERTIFICATESIGNINGREQUESTS.untyped, "", body)
    approved = {"type": "Approved", "status": "True", "reason": "Test", "message": "by the test"}
    created["status"] = {"conditions": [approved]}
    await api.subresource(CERTIFICATESIGNINGREQUESTS, "", "jane", "approval", created, verb="update")
    await until(api, CERTIFICATESIGNINGREQUESTS, "", "jane", lambda found: bool(found.status.certificate))
    return key


def told(text: str) -> list[str]:
    """The ways in which a text could be told: as it is, as base64, and line by line."""
    lines = [line for line in text.splitlines() if len(line) > 15 and not line.startswith("---")] or [text]
    return [text, base64.b64encode(text.encode()).decode(), *lines]


async def test_no_secret_token_or_key_is_ever_logged(tmp_path: Path) -> None:
    clock = RealClock()
    boot = Bootstrap.generate(clock.now)
    server = Server(clock)
    authorizer = bootstrap_server(server, client_ca=boot.authority.pair.cert)
    edge = await boot.serve(server, authorizer, tokens={TOKEN: User("system:kube-controller-manager")})
    config = json.loads(boot.kubeconfig(edge.url, "system:kube-controller-manager"))
    config["users"][0]["user"] = {"token": TOKEN}
    (tmp_path / "config").write_text(json.dumps(config))
    for name, data in (
        ("ca.crt", boot.authority.pair.cert),
        ("ca.key", boot.authority.pair.key),
        ("sa.key", boot.keys.pem),
    ):
        (tmp_path / name).write_bytes(data)
    command = [
        *(sys.executable, "-m", "steersman.manager.cli", "run", f"--kubeconfig={tmp_path / 'config'}"),
        *(*FLAGS, f"--root-ca-file={tmp_path / 'ca.crt'}"),
        f"--service-account-private-key-file={tmp_path / 'sa.key'}",
        f"--cluster-signing-cert-file={tmp_path / 'ca.crt'}",
        f"--cluster-signing-key-file={tmp_path / 'ca.key'}",
    ]
    manager = Child(command, tmp_path / "log")
    try:
        async with asyncio.timeout(60):
            api = LocalApi(server)
            token = await live(api)
            key = await certify(api)
            manager.kill(signal.SIGTERM)
            assert await manager.exited() == 0, tail(manager)
    finally:
        manager.end()
        await edge.close()
    said = manager.log()
    assert "/serviceaccounts/root-ca-cert-publisher/token" in said, "requests are logged"
    assert "Authorization: <masked>" in said
    secrets = [
        TOKEN,
        PASSWORD,
        BOOTSTRAP,
        token,
        key,
        boot.authority.pair.key.decode(),
        boot.keys.pem.decode(),
    ]
    for one in (way for secret in secrets for way in told(secret)):
        assert one not in said
    assert not re.search(r"eyJ[\w-]{8,}\.", said), "a token was logged"
    assert "PRIVATE KEY" not in said
