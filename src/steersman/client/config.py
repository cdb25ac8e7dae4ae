"""`ClientConfig`: server address, TLS settings and credentials of a client, as client-go's rest.Config.

`steersman.client.kubeconfig` creates one from kubeconfig files, flags or a pod's service account;
`steersman.client.http` uses it. Values are frozen and compare by content, so that clients with equal settings can
share connections. No repr shows a secret.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


class ConfigError(Exception):
    """An invalid configuration. The message names the file and the entry, and says how to correct it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM data: given inline, or as a file that may be replaced at any time."""

    data: bytes = field(default=b"", repr=False)
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """The CA to trust, and the client certificate to present."""

    ca: Pem = Pem()
    """Empty trusts the system's CAs."""
    cert: Pem = Pem()
    key: Pem = Pem()
    insecure: bool = False
    """Skip the verification of the server's certificate."""
    server_name: str = ""
    """The host name expected in the server's certificate, if it differs from the URL's host."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials (``client.authentication.k8s.io``)."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive: str = "IfAvailable"
    """``Never``, ``IfAvailable`` or ``Always``: whether the plugin inherits standard input."""
    config: bytes = b""
    """JSON of the cluster's ``client.authentication.k8s.io/exec`` extension, passed to the plugin."""


@dataclass(frozen=True, slots=True)
class AuthInfo:
    """The credentials of a kubeconfig user, besides a client certificate."""

    token: str = field(default="", repr=False)
    token_file: str = ""
    """Reread when it changes; takes precedence over ``token``."""
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | None = None


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user to impersonate."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """One API server, and one identity to use it with."""

    server: str
    """``https://host:port``, with a path prefix if a proxy serves the API under one."""
    tls: TlsConfig = TlsConfig()
    user: AuthInfo = AuthInfo()
    impersonate: Impersonation | None = None
    proxy: str = field(default="", repr=False)
    """URL of the HTTP proxy; empty connects directly."""
    compression: bool = True
    namespace: str = "default"
    origin: str = ""
    """The file or flag this was read from, for messages."""

    @property
    def secure(self) -> bool:
        """The server is reached through TLS."""
        return self.server.startswith("https://")

    def anonymous(self) -> ClientConfig:
        """Return the config of the same server without any credentials."""
        tls = replace(self.tls, cert=Pem(), key=Pem())
        return replace(self, tls=tls, user=AuthInfo(), impersonate=None)
