"""How to reach an API server and as whom: the value a client is made from.

`steersman.client.kubeconfig` makes one from files, flags or a pod's surroundings;
`steersman.client.http` takes it. Values are frozen and compare by content, so clients that would
open the same kind of socket can share it. Nothing secret shows in a repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace


class ConfigError(Exception):
    """A configuration nobody can work with. The message names the file, the entry and the way out."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


@dataclass(frozen=True, slots=True)
class Pem:
    """PEM text: given inline, or as a file that may be replaced while we run."""

    data: bytes = field(default=b"", repr=False)
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom to trust, and the certificate to show."""

    ca: Pem = Pem()
    """Empty: the system's authorities."""
    cert: Pem = Pem()
    key: Pem = Pem()
    insecure: bool = False
    """Do not check the server's certificate."""
    server_name: str = ""
    """The name the server's certificate must be for, where it is not the host of the URL."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """A command that prints credentials (an *exec plugin*)."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive: str = "IfAvailable"
    """``Never``, ``IfAvailable`` or ``Always``: whether it gets our standard input."""
    config: bytes = b""
    """JSON of the cluster's ``client.authentication.k8s.io/exec`` extension, passed to the plugin."""


@dataclass(frozen=True, slots=True)
class User:
    """What proves who we are, besides a client certificate."""

    token: str = field(default="", repr=False)
    token_file: str = ""
    """Read again when it changes; what it holds goes before ``token``."""
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: Plugin | None = None


@dataclass(frozen=True, slots=True)
class Impersonation:
    """As whom to act, where the user may do that."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and one identity."""

    server: str
    """``https://host:port``, with a path prefix where a proxy puts the API below one."""
    tls: Tls = Tls()
    user: User = User()
    impersonate: Impersonation | None = None
    proxy: str = field(default="", repr=False)
    """The HTTP proxy to go through; empty goes straight to the server."""
    compression: bool = True
    namespace: str = "default"
    origin: str = ""
    """Where this was read, for messages."""

    @property
    def secure(self) -> bool:
        return self.server.startswith("https://")

    def anonymous(self) -> Connection:
        """The same server with no identity at all, for a client that brings its own."""
        tls = replace(self.tls, cert=Pem(), key=Pem())
        return replace(self, tls=tls, user=User(), impersonate=None)
