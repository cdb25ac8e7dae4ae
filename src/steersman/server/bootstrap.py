"""A control plane's beginnings: keys and certificates, namespaces, roles, and who is its administrator.

::

    boot = Boot.fresh(server.clock.now)
    authorizer = equip(server)                  # what every cluster has
    edge = await boot.serve(server, authorizer)
    Path("kubeconfig").write_bytes(boot.kubeconfig(edge.url))
"""

from __future__ import annotations

import ssl
import tempfile
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.generated.core_v1 import ConfigMap, Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.signing_keys import Keys
from steersman.server import admission
from steersman.server.admission.certificates import allowed_by
from steersman.server.admission.role_escalation import RoleEscalation
from steersman.server.auth import openid
from steersman.server.auth.authentication import Authenticator
from steersman.server.auth.ca import Authority, Pair, self_signed, write_private
from steersman.server.auth.rbac import Authorizer, follow
from steersman.server.auth.service_accounts import LAST_USED, LegacyUse
from steersman.server.auth.tokens import Mint
from steersman.server.auth.users import MASTERS, User
from steersman.server.bootstrap_objects import create_bootstrap_objects, install_roles
from steersman.server.crd import establishing
from steersman.server.http.app import ApiServer, serve
from steersman.server.rest.create import create_as_server
from steersman.server.rest.reviews import objects_of
from steersman.server.server import Server
from steersman.server.storage.store import object_key

ISSUER = "https://kubernetes.default.svc.cluster.local"
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
SERVICE_ADDRESS = str(next(ip_network(admission.CIDR).hosts()))
"""Of the service ``kubernetes``."""

_HOSTS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)


# -- what every cluster has -------------------------------------------------------------------


def equip(server: Server, *, authority: bytes = b"", without: Sequence[str] = ()) -> Authorizer:
    """Give a server all that a real one has: custom resources, admission, and what it creates for itself.

    ``without`` names admission plugins to leave out. ``authority`` is the certificate clients are recognised by, told to those who serve APIs of their own.
    Answers with who decides what clients may do.
    """
    server.extend(establishing.install)
    authorizer = server.authorizer = follow(server.store)
    plugins = admission.default(allows=allowed_by(authorizer)).without(*without).plugins
    server.extend(admission.Plugins((*plugins, RoleEscalation(authorizer))))
    for name in NAMESPACES:
        _create(server, "namespaces", "", Namespace(metadata=ObjectMeta(name=name)))
    install_roles(server)
    create_bootstrap_objects(server)
    if authority:
        meta = ObjectMeta(name="extension-apiserver-authentication", namespace="kube-system")
        data = {"client-ca-file": authority.decode()}
        _create(server, "configmaps", "kube-system", ConfigMap(metadata=meta, data=data))
    return authorizer


def _create(server: Server, plural: str, namespace: str, obj: Any) -> None:
    resource = server.registry.find("", "v1", plural)
    if server.table(resource).get(object_key(namespace, obj.metadata.name)) is None:
        create_as_server(server, resource, namespace, obj)


# -- keys and certificates --------------------------------------------------------------------


class Boot(msgspec.Struct, frozen=True, eq=False):
    """What a control plane trusts, and is trusted by."""

    authority: Authority
    keys: Keys
    """What the tokens of ServiceAccounts are signed with."""
    now: Callable[[], datetime]
    issuer: str = ISSUER

    @classmethod
    def fresh(cls, now: Callable[[], datetime]) -> Boot:
        """With new keys."""
        return cls(Authority(self_signed("steersman", now()), now), Keys.generate(), now)

    @classmethod
    def kept(cls, directory: Path, now: Callable[[], datetime]) -> Boot:
        """With the keys of a directory, which are made there if there are none yet."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = ("ca.crt", "ca.key", "sa.key")
        files = [directory / name for name in names]
        if not all(file.is_file() for file in files):
            pair, keys = self_signed("steersman", now()), Keys.generate()
            for file, data in zip(files, (pair.cert, pair.key, keys.pem), strict=True):
                write_private(file, data)
        cert, key, signing = (file.read_bytes() for file in files)
        return cls(Authority(Pair(cert, key), now), Keys.load(signing), now)

    def tls(self, addresses: Iterable[str] = ("127.0.0.1", "::1", SERVICE_ADDRESS)) -> ssl.SSLContext:
        """What the server shows to clients, and asks of them: a certificate of ours, or none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_verify_locations(cadata=self.authority.pair.cert.decode())
        # differs: upstream hears a client with a certificate of nobody's, and refuses it with a 401; here
        # no connection comes about.
        context.verify_mode = ssl.CERT_OPTIONAL
        pair = self.authority.serving(_HOSTS, addresses)
        with tempfile.TemporaryDirectory() as where:
            # Python reads these from files only.
            cert = write_private(Path(where, "cert"), pair.cert)
            context.load_cert_chain(cert, write_private(Path(where, "key"), pair.key))
        return context

    def authenticator(self, server: Server, tokens: dict[str, User] | None = None) -> Authenticator:
        """What recognises this control plane's clients; ``tokens`` are static ones."""

        def used(use: LegacyUse) -> None:
            meta = use.secret.metadata
            server.rewrite(
                server.registry.find("", "v1", "secrets"),
                meta.namespace,
                meta.name,
                lambda old: _labelled(old, LAST_USED, use.day),
            )

        return Authenticator(
            objects_of(server), keys=self.keys, issuers=(self.issuer,), tokens=tokens, used=used
        )

    async def serve(
        self,
        server: Server,
        authorizer: Authorizer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: dict[str, User] | None = None,
        durable: Callable[[], Awaitable[None]] | None = None,
    ) -> ApiServer:
        """Serve a server that was equipped, with RBAC and over TLS.

        ``durable`` is waited for before a write is acknowledged.
        """
        server.authenticator = self.authenticator(server, tokens)
        server.authorizer = authorizer
        server.token_issuer = Mint(self.keys, self.issuer, (self.issuer,))
        edge = await serve(
            server,
            tls=self.tls(dict.fromkeys((host, "127.0.0.1", "::1", SERVICE_ADDRESS))),
            host=host,
            port=port,
            durable=durable,
        )
        edge.state.openid = openid.documents(self.keys, self.issuer, f"{edge.url}{openid.KEYSET}")
        return edge

    def kubeconfig(
        self,
        url: str,
        user: str = "steersman-admin",
        groups: Sequence[str] = (MASTERS,),
        name: str = "steersman",
    ) -> bytes:
        """A kubeconfig of somebody, the administrator if not said otherwise, with a new certificate."""
        pair = self.authority.client(user, groups)
        cluster = {"server": url, "certificate-authority-data": _base64(self.authority.pair.cert)}
        proof = {"client-certificate-data": _base64(pair.cert), "client-key-data": _base64(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user, "user": proof}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        }
        return msgspec.json.format(msgspec.json.encode(config), indent=2)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _labelled(obj: Any, name: str, value: str) -> Any:
    meta = obj.metadata
    return replace(obj, metadata=replace(meta, labels={**meta.labels, name: value}))
