"""Kubeconfig files, a pod's service account, and flags, read into a `Connection`.

Two ways in, as upstream has them: `from_flags` is a server component's (``--kubeconfig`` and
``--master``, else the pod it runs in); `load` is a person's (``$KUBECONFIG`` or ``~/.kube/config``).
All that can be wrong is one `ConfigError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from steersman.client.connection import (
    ConfigError,
    Connection,
    Impersonation,
    Pem,
    Plugin,
    Tls,
    User,
)
from steersman.client.kubeconfig_schema import Entry, named, read
from steersman.client.proxy import proxy_for

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


def from_flags(
    kubeconfig: str = "",
    master: str = "",
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection of a server component started with these flags.

    Neither flag means the pod's own service account. As upstream, ``~/.kube/config`` is never
    used here: a controller manager must not start steering whatever cluster a person last used.
    """
    if kubeconfig:
        return _connection(Config.read([kubeconfig], explicit=True), "", master, environ)
    if master:
        return _bare(master, environ)
    if _inside(environ):
        return in_cluster(environ, service_account)
    raise ConfigError(
        "no cluster is configured: pass --kubeconfig or --master, or run in a pod with a service account"
    )


def load(
    kubeconfig: str = "",
    *,
    context: str = "",
    master: str = "",
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The connection a person means: the named file, else ``$KUBECONFIG``, else ``~/.kube/config``.

    Without any of these, the service account of the pod this runs in.
    """
    paths = _search_path(environ)
    config = Config.read([kubeconfig], explicit=True) if kubeconfig else Config.read(paths)
    if config.empty and not context:
        if master:
            return _bare(master, environ)
        if _inside(environ):
            return in_cluster(environ, service_account)
    if not config.files:
        raise ConfigError(
            f"no kubeconfig found at {', '.join(paths)}: create one, point KUBECONFIG at one, "
            "or pass --kubeconfig"
        )
    return _connection(config, context, master, environ)


def in_cluster(
    environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> Connection:
    """The connection of the pod this runs in: its service account's token and authority."""
    if not _inside(environ):
        raise ConfigError(
            "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; pass --kubeconfig"
        )
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    token, ca = service_account / "token", service_account / "ca.crt"
    if not token.is_file():
        raise ConfigError(
            f"{token}: the pod has no service account token; "
            "leave automountServiceAccountToken on, or pass --kubeconfig"
        )
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    try:
        namespace = (service_account / "namespace").read_text().strip()
    except OSError:
        namespace = ""
    return Connection(
        server=server,
        # As upstream, a missing authority is not fatal: the server may have a public certificate.
        tls=Tls(ca=Pem(path=str(ca)) if ca.is_file() else Pem()),
        user=User(token_file=str(token)),
        proxy=proxy_for(server, environ),
        namespace=environ.get("POD_NAMESPACE") or namespace or "default",
        origin=str(service_account),
    )


@dataclass(frozen=True, slots=True)
class Config:
    """Some kubeconfig files as one: the first to name a thing wins."""

    files: tuple[str, ...]
    current: str
    clusters: Mapping[str, Entry]
    users: Mapping[str, Entry]
    contexts: Mapping[str, Entry]

    @property
    def empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current)

    @property
    def origin(self) -> str:
        return ", ".join(self.files)

    @classmethod
    def read(cls, paths: Sequence[str], *, explicit: bool = False) -> Config:
        """Read and merge. Files that are not there are passed over, unless asked for by name."""
        files: list[str] = []
        current = ""
        merged: dict[str, dict[str, Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
        for path in dict.fromkeys(paths):
            document = read(path, missing_ok=not explicit)
            if document is None:
                continue
            files.append(path)
            current = current or document.text("current-context")
            for section, into in merged.items():
                for name, entry in named(document, section).items():
                    into.setdefault(name, entry)
        return cls(tuple(files), current, merged["clusters"], merged["users"], merged["contexts"])


def _connection(config: Config, context: str, master: str, environ: Mapping[str, str]) -> Connection:
    """One context of the config as a connection, checked through."""
    name = context or config.current
    if not name:
        if master and config.empty:
            return _bare(master, environ)
        raise ConfigError(
            f"{config.origin}: no current-context is set{_among(config.contexts)}; "
            'set one with "kubectl config use-context NAME"'
        )
    if name not in config.contexts:
        raise ConfigError(
            f'{config.origin}: context "{name}" does not exist{_among(config.contexts)}; '
            'set one that does with "kubectl config use-context NAME"'
        )
    chosen = config.contexts[name]
    cluster = _referred(chosen, "cluster", config.clusters)
    user = _referred(chosen, "user", config.users)
    server = _server(master or cluster.text("server"), "--master" if master else cluster.where)
    explicit_proxy = cluster.text("proxy-url")
    connection = Connection(
        server=server,
        tls=_trust(cluster, master),
        impersonate=_impersonation(user),
        proxy=_proxy(cluster, explicit_proxy) if explicit_proxy else proxy_for(server, environ),
        compression=not cluster.flag("disable-compression"),
        namespace=chosen.text("namespace") or "default",
        origin=cluster.file,
    )
    proof = _user(user, cluster)
    cert, key = _certificate(user)
    if not connection.secure:
        # As upstream: nothing that proves who we are goes over a wire anybody can read.
        return connection
    if proof.token or proof.token_file or proof.username or cert:
        # As upstream: a plugin is only asked where nothing else proves who we are.
        proof = replace(proof, plugin=None)
    return replace(connection, tls=replace(connection.tls, cert=cert, key=key), user=proof)


def _bare(master: str, environ: Mapping[str, str]) -> Connection:
    """A server and nothing else, as ``--master`` alone gives."""
    server = _server(master, "--master")
    return Connection(server=server, proxy=proxy_for(server, environ), origin="--master")


def _referred(context: Entry, what: str, entries: Mapping[str, Entry]) -> Entry:
    name = context.text(what)
    if not name:
        raise context.error(f"{what} is missing; name one of the file's {what}s")
    if name not in entries:
        raise context.error(f'{what} "{name}" does not exist{_among(entries)}; correct the name or add it')
    return entries[name]


def _server(server: str, where: str) -> str:
    """The server as a URL. A bare ``host:port`` is plain HTTP, as upstream takes it."""
    if not server:
        raise ConfigError(f"{where}: server is missing; give the API server's URL")
    url = server if "://" in server else f"http://{server}"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError:
        valid = False
    if not valid or ("://" not in server and parts.path not in ("", "/")):
        raise ConfigError(f'{where}: server "{server}" is not a URL; write https://HOST:PORT')
    if parts.username or parts.password:
        raise ConfigError(f"{where}: server carries a password; put it into the user entry instead")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _proxy(cluster: Entry, proxy: str) -> str:
    try:
        scheme = urlsplit(proxy).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        # differs: upstream also speaks socks5.
        raise cluster.error(f'proxy-url has the scheme "{scheme}"; use an http:// or https:// proxy')
    return proxy


def _trust(cluster: Entry, master: str) -> Tls:
    ca = cluster.pem("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if ca and insecure:
        raise cluster.error(
            "certificate-authority and insecure-skip-tls-verify exclude each other; remove one"
        )
    # A server given on the command line is not the one the name in the file was meant for.
    name = "" if master else cluster.text("tls-server-name")
    return Tls(ca=ca, insecure=insecure, server_name=name)


def _certificate(user: Entry) -> tuple[Pem, Pem]:
    cert, key = user.pem("client-certificate"), user.pem("client-key")
    if cert and not key:
        raise user.error("client-certificate needs client-key or client-key-data as well; add it")
    return (cert, key) if cert else (Pem(), Pem())


def _user(user: Entry, cluster: Entry) -> User:
    if user.get("auth-provider") is not None:
        # differs: upstream still has the oidc provider, as a plugin of kubectl.
        raise user.error("auth-provider is not supported; use an exec plugin, such as kubelogin for OIDC")
    # A token written as a YAML block ends with a line break, which is not part of it.
    token, username, password = user.text("token").strip(), user.text("username"), user.text("password")
    if not token.isprintable():
        raise user.error("token has a line break in it; a token is one line")
    if token and (username or password):
        raise user.error("both token and username/password are given; keep one")
    token_file = user.path("tokenFile")
    if token_file and not token:
        user.readable("tokenFile", token_file)
    return User(token, token_file, username, password, _plugin(user, cluster))


def _plugin(user: Entry, cluster: Entry) -> Plugin | None:
    entry = user.child("exec")
    if entry is None:
        return None
    command, version = entry.text("command"), entry.text("apiVersion")
    if not command:
        raise entry.error("command is missing; name the program that prints credentials")
    if version not in EXEC_VERSIONS:
        raise entry.error(f'apiVersion "{version}" is not known; use {" or ".join(EXEC_VERSIONS)}')
    mode = entry.text("interactiveMode") or ("IfAvailable" if version.endswith("v1beta1") else "")
    if mode not in ("Never", "IfAvailable", "Always"):
        raise entry.error(f'interactiveMode "{mode}" must be Never, IfAvailable or Always')
    env = []
    for variable in entry.children("env"):
        if not variable.text("name"):
            raise variable.error("name is missing; name the variable or remove it")
        env.append((variable.text("name"), variable.text("value")))
    extension = named(cluster, "extensions").get(EXEC_EXTENSION)
    return Plugin(
        # A plain name is looked up on the PATH; anything with a slash is a path.
        command=entry.path("command") if os.sep in command else command,
        api_version=version,
        args=entry.texts("args"),
        env=tuple(env),
        install_hint=entry.text("installHint"),
        provide_cluster_info=entry.flag("provideClusterInfo"),
        interactive=mode,
        config=msgspec.json.encode(extension.fields) if extension is not None else b"",
    )


def _impersonation(user: Entry) -> Impersonation | None:
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    entry = user.child("as-user-extra")
    extra = tuple((key, entry.texts(key)) for key in sorted(entry.fields)) if entry is not None else ()
    if not name:
        if uid or groups or extra:
            raise user.error("as-uid, as-groups and as-user-extra need as; name the user to act as")
        return None
    said = (name, uid, *groups, *(text for key, values in extra for text in (key, *values)))
    if not all(text.isprintable() for text in said):
        raise user.error("as and its companions cannot have line breaks in them; remove them")
    return Impersonation(name, uid, groups, extra)


def _inside(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def _search_path(environ: Mapping[str, str]) -> list[str]:
    listed = environ.get("KUBECONFIG", "")
    if listed:
        return [path for path in listed.split(os.pathsep) if path]
    return [str(Path(environ.get("HOME") or Path.home()) / ".kube" / "config")]


def _among(entries: Mapping[str, Entry]) -> str:
    return f" (there are: {', '.join(entries)})" if entries else ""
