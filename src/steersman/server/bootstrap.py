"""Bootstrap of a control plane: its keys and certificates, bootstrap objects, and the administrator's kubeconfig.

::

    bootstrap = Bootstrap.generate(server.clock.now)
    authorizer = bootstrap_server(server)
    api_server = await bootstrap.serve(server, authorizer)
    write_private(Path("kubeconfig"), bootstrap.kubeconfig(api_server.url))
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from steersman.api.generated.apiregistration_v1 import APIService, APIServiceSpec
from steersman.api.generated.core_v1 import ConfigMap, Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.signing_keys import KeySet
from steersman.client.certificates import load_certificate
from steersman.http.client_certs import ClientCertContexts
from steersman.http.limits import MAX_WATCHES, Limits
from steersman.server import admission, crd
from steersman.server.auth.authentication import Authenticator
from steersman.server.auth.bootstrap_policy import node_rules
from steersman.server.auth.ca import CertificateAuthority, CertificatePair, self_signed, write_private
from steersman.server.auth.cert_verify import ClientCAs
from steersman.server.auth.node_authorizer import NodeAuthorizer
from steersman.server.auth.node_graph import NodeGraph
from steersman.server.auth.rbac import RBACAuthorizer, follow
from steersman.server.auth.service_accounts import LAST_USED, LegacyUse
from steersman.server.auth.tokens import JWKS_PATH, TokenIssuer, openid_documents
from steersman.server.auth.users import MASTERS, User
from steersman.server.bootstrap_objects import create_bootstrap_objects, install_roles
from steersman.server.http.app import ApiServer, serve
from steersman.server.rest.create import create_as_server
from steersman.server.rest.reviews import objects_of
from steersman.server.server import Server
from steersman.server.storage.store import object_key

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_TOKEN_TRACKING = "kube-apiserver-legacy-service-account-token-tracking"
EXTENSION_AUTHENTICATION = "extension-apiserver-authentication"
FRONT_PROXY = "front-proxy-client"
"""The common name of the certificate that the aggregator shows to extension API servers."""
_PRIORITIES = {
    ("", "v1"): (18000, 1),
    ("apps", "v1"): (17800, 15),
    ("events.k8s.io", "v1"): (17750, 15),
    ("authentication.k8s.io", "v1"): (17700, 15),
    ("authorization.k8s.io", "v1"): (17600, 15),
    ("autoscaling", "v1"): (17500, 15),
    ("autoscaling", "v2"): (17500, 30),
    ("batch", "v1"): (17400, 15),
    ("certificates.k8s.io", "v1"): (17300, 15),
    ("networking.k8s.io", "v1"): (17200, 15),
    ("policy", "v1"): (17100, 15),
    ("rbac.authorization.k8s.io", "v1"): (17000, 15),
    ("storage.k8s.io", "v1"): (16800, 15),
    ("apiextensions.k8s.io", "v1"): (16700, 15),
    ("admissionregistration.k8s.io", "v1"): (16700, 15),
    ("scheduling.k8s.io", "v1"): (16600, 15),
    ("coordination.k8s.io", "v1"): (16500, 15),
    ("node.k8s.io", "v1"): (16300, 15),
    ("discovery.k8s.io", "v1"): (16200, 15),
    ("resource.k8s.io", "v1"): (16200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1"): (16100, 21),
}
"""The priorities of APIServices, of groups and of their versions, as upstream has them."""
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
SERVICE_ADDRESS = str(next(ip_network(admission.CIDR).hosts()))
"""The cluster IP of the Service ``kubernetes``."""

_HOSTS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_ADDRESSES = ("127.0.0.1", "::1", SERVICE_ADDRESS)
"""The names and addresses of every serving certificate, besides the host to listen on."""


# -- server -----------------------------------------------------------------------------------


def bootstrap_server(
    server: Server,
    *,
    client_ca: bytes = b"",
    disabled_plugins: Sequence[str] = (),
    cidr: str = admission.CIDR,
) -> RBACAuthorizer:
    """Installs what kube-apiserver has: custom resources, admission, RBAC, and its bootstrap objects.

    ``client_ca`` is the CA certificate of client certificates (PEM), published for extension API servers.
    ``disabled_plugins`` names admission plugins to leave out; ``cidr`` is the range of cluster IPs. Returns the authorizer.
    """
    server.extend(crd.install)
    server.extend(_follow_roles)
    server.extend(admission.default(cidr=cidr).without(*disabled_plugins))
    for name in NAMESPACES:
        _create(server, "namespaces", "", Namespace(metadata=ObjectMeta(name=name)))
    install_roles(server)
    create_bootstrap_objects(server, cidr=cidr)
    if client_ca:
        meta = ObjectMeta(name=EXTENSION_AUTHENTICATION, namespace="kube-system")
        data = {"client-ca-file": client_ca.decode()}
        _create(server, "configmaps", "kube-system", ConfigMap(metadata=meta, data=data))
    # The day since which the use of legacy tokens is recorded; kube-controller-manager removes tokens unused since then.
    meta = ObjectMeta(name=LEGACY_TOKEN_TRACKING, namespace="kube-system")
    since = {"since": f"{server.now():%Y-%m-%d}"}
    _create(server, "configmaps", "kube-system", ConfigMap(metadata=meta, data=since))
    _create_api_services(server)
    assert server.authorizer is not None
    return server.authorizer


def _create_api_services(server: Server) -> None:
    """Creates the APIServices of the built-in group versions, which clients list to see what is served."""
    resource = server.registry.find("apiregistration.k8s.io", "v1", "apiservices")
    for group, version in dict.fromkeys((row.group, row.version) for row in server.registry.rows()):
        name = f"{version}.{group}"
        if group == "apiregistration.k8s.io" or server.table(resource).get(name) is not None:
            continue
        priority, version_priority = _PRIORITIES.get((group, version), (10000, 10))
        spec = APIServiceSpec(
            group=group,
            version=version,
            groupPriorityMinimum=priority,
            versionPriority=version_priority,
        )
        meta = ObjectMeta(name=name, labels={"kube-aggregator.kubernetes.io/automanaged": "onstart"})
        create_as_server(server, resource, "", APIService(metadata=meta, spec=spec))


def _publish_front_proxy(server: Server, client_ca: bytes, front_proxy_ca: bytes) -> None:
    """Publishes how extension API servers recognise this one, and the users it passes on. Each start has a new authority."""
    data = {
        "client-ca-file": client_ca.decode(),
        "requestheader-allowed-names": f'["{FRONT_PROXY}"]',
        "requestheader-client-ca-file": front_proxy_ca.decode(),
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-username-headers": '["X-Remote-User"]',
    }
    resource = server.registry.find("", "v1", "configmaps")
    meta = ObjectMeta(name=EXTENSION_AUTHENTICATION, namespace="kube-system")
    _create(server, "configmaps", "kube-system", ConfigMap(metadata=meta, data=data))
    server.rewrite(resource, "kube-system", EXTENSION_AUTHENTICATION, lambda old: replace(old, data=data))


def _follow_roles(server: Server) -> None:
    """Authorizes by the roles and bindings of a server. A fork follows its own."""
    server.authorizer = follow(server.store)
    server.authorizer.nodes = NodeAuthorizer(NodeGraph(server.store), node_rules())


def _create(server: Server, plural: str, namespace: str, obj: Any) -> None:
    resource = server.registry.find("", "v1", plural)
    if server.table(resource).get(object_key(namespace, obj.metadata.name)) is None:
        create_as_server(server, resource, namespace, obj)


# -- keys and certificates --------------------------------------------------------------------


class Bootstrap(msgspec.Struct, frozen=True, eq=False):
    """The certificate authority and the signing keys of a control plane, and what is made with them."""

    authority: CertificateAuthority
    keys: KeySet
    """The keys that sign ServiceAccount tokens."""
    now: Callable[[], datetime]
    issuer: str = ISSUER

    @classmethod
    def generate(cls, now: Callable[[], datetime]) -> Bootstrap:
        """Generates a new authority and new keys."""
        return cls(CertificateAuthority(self_signed("steersman", now()), now), KeySet.generate(), now)

    @classmethod
    def load_or_generate(cls, directory: Path, now: Callable[[], datetime]) -> Bootstrap:
        """Loads the authority and keys of a directory; generates and writes them if they are missing."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        names = ("ca.crt", "ca.key", "sa.key")
        files = [directory / name for name in names]
        if not all(file.is_file() for file in files):
            pair, keys = self_signed("steersman", now()), KeySet.generate()
            for file, data in zip(files, (pair.cert, pair.key, keys.pem), strict=True):
                write_private(file, data)
        cert, key, signing = (file.read_bytes() for file in files)
        return cls(CertificateAuthority(CertificatePair(cert, key), now), KeySet.load(signing), now)

    def tls(self, host: str) -> ClientCertContexts:
        """The TLS contexts of a server that listens on a host. Client certificates are optional; the authenticator verifies them."""
        names, addresses = dict.fromkeys(_HOSTS), dict.fromkeys(_ADDRESSES)
        (addresses if _is_address(host) else names)[host] = None
        pair = self.authority.serving(names, addresses)

        def make() -> ssl.SSLContext:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.set_alpn_protocols(["http/1.1"])
            # Tells clients which of their certificates to send.
            context.load_verify_locations(cadata=self.authority.pair.cert.decode())
            load_certificate(context, pair.cert, pair.key)
            return context

        return ClientCertContexts(make)

    def authenticator(self, server: Server, tokens: dict[str, User] | None = None) -> Authenticator:
        """The authenticator of this control plane; ``tokens`` are static bearer tokens."""

        def note_use(use: LegacyUse) -> None:
            meta = use.secret.metadata
            server.rewrite(
                server.registry.find("", "v1", "secrets"),
                meta.namespace,
                meta.name,
                lambda old: _with_label(old, LAST_USED, use.day),
            )

        return Authenticator(
            objects_of(server),
            keys=self.keys,
            issuers=(self.issuer,),
            tokens=tokens,
            used=note_use,
            client_cas=ClientCAs(self.authority.pair.cert),
        )

    async def serve(
        self,
        server: Server,
        authorizer: RBACAuthorizer,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: dict[str, User] | None = None,
        durable: Callable[[], Awaitable[None]] | None = None,
        limits: Limits = Limits(),
        max_watches: int = MAX_WATCHES,
        audit_log: Path | None = None,
    ) -> ApiServer:
        """Serves a server over TLS, with authentication and RBAC.

        ``durable`` is awaited before a write is acknowledged. ``max_watches`` is how many watches may be open at once.
        """
        server.authenticator = self.authenticator(server, tokens)
        server.authorizer = authorizer
        server.token_issuer = TokenIssuer(self.keys, self.issuer, (self.issuer,))
        front_proxy = CertificateAuthority(self_signed("steersman-front-proxy", self.now()), self.now)
        _publish_front_proxy(server, self.authority.pair.cert, front_proxy.pair.cert)
        api_server = await serve(
            server,
            tls=self.tls(host),
            host=host,
            port=port,
            durable=durable,
            limits=limits,
            max_watches=max_watches,
            front_proxy=lambda: front_proxy.client(FRONT_PROXY, ()),
            audit_log=audit_log,
        )
        api_server.state.openid = openid_documents(self.keys, self.issuer, f"{api_server.url}{JWKS_PATH}")
        return api_server

    def kubeconfig(
        self,
        url: str,
        user: str = "steersman-admin",
        groups: Sequence[str] = (MASTERS,),
        name: str = "steersman",
    ) -> bytes:
        """A kubeconfig with a new client certificate, by default of the administrator."""
        pair = self.authority.client(user, groups)
        cluster = {"server": url, "certificate-authority-data": _base64(self.authority.pair.cert)}
        credentials = {"client-certificate-data": _base64(pair.cert), "client-key-data": _base64(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        }
        return msgspec.json.format(msgspec.json.encode(config), indent=2)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _with_label(obj: Any, name: str, value: str) -> Any:
    meta = obj.metadata
    return replace(obj, metadata=replace(meta, labels={**meta.labels, name: value}))
