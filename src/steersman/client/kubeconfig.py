"""Loads a `ClientConfig` from kubeconfig files, flags, or a pod's service account.

As upstream there are two entry points: `from_flags` for server components (``--kubeconfig`` and ``--master``, else
the pod's service account), and `load` for command-line tools (``$KUBECONFIG`` or ``~/.kube/config``). Every error is
raised as `ConfigError`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from steersman.client.config import (
    AuthInfo,
    ClientConfig,
    ConfigError,
    ExecPlugin,
    Impersonation,
    Pem,
    TlsConfig,
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
) -> ClientConfig:
    """Return the config of a server component started with these flags.

    Without either flag the pod's service account is used. As upstream, ``~/.kube/config`` is never read: a
    controller manager must not take over the cluster that a user happened to use last.
    """
    if kubeconfig:
        return _client_config(MergedKubeconfig.read([kubeconfig], explicit=True), "", master, environ)
    if master:
        return _without_credentials(master, environ)
    if _in_pod(environ):
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
) -> ClientConfig:
    """Return the config of a command-line tool: from the given file, ``$KUBECONFIG``, or ``~/.kube/config``.

    Without any of these the pod's service account is used.
    """
    paths = _search_path(environ)
    config = (
        MergedKubeconfig.read([kubeconfig], explicit=True) if kubeconfig else MergedKubeconfig.read(paths)
    )
    if config.empty and not context:
        if master:
            return _without_credentials(master, environ)
        if _in_pod(environ):
            return in_cluster(environ, service_account)
    if not config.files:
        raise ConfigError(
            f"no kubeconfig found at {', '.join(paths)}: create one, point KUBECONFIG at one, "
            "or pass --kubeconfig"
        )
    return _client_config(config, context, master, environ)


def in_cluster(
    environ: Mapping[str, str] = os.environ, service_account: Path = SERVICE_ACCOUNT
) -> ClientConfig:
    """Return the config of the pod's service account: its token and CA."""
    if not _in_pod(environ):
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
    return ClientConfig(
        server=server,
        # As upstream, a missing CA file is no error: the server may have a publicly trusted certificate.
        tls=TlsConfig(ca=Pem(path=str(ca)) if ca.is_file() else Pem()),
        user=AuthInfo(token_file=str(token)),
        proxy=proxy_for(server, environ),
        namespace=environ.get("POD_NAMESPACE") or namespace or "default",
        origin=str(service_account),
    )


@dataclass(frozen=True, slots=True)
class MergedKubeconfig:
    """Several kubeconfig files merged into one: the first file to define an entry wins."""

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
    def read(cls, paths: Sequence[str], *, explicit: bool = False) -> MergedKubeconfig:
        """Read and merge files. Missing files are skipped, unless they were named explicitly."""
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


def _client_config(
    kubeconfig: MergedKubeconfig, context: str, master: str, environ: Mapping[str, str]
) -> ClientConfig:
    """Return the validated client config of one context."""
    name = context or kubeconfig.current
    if not name:
        if master and kubeconfig.empty:
            return _without_credentials(master, environ)
        raise ConfigError(
            f"{kubeconfig.origin}: no current-context is set{_available(kubeconfig.contexts)}; "
            'set one with "kubectl config use-context NAME"'
        )
    if name not in kubeconfig.contexts:
        raise ConfigError(
            f'{kubeconfig.origin}: context "{name}" does not exist{_available(kubeconfig.contexts)}; '
            'set one that does with "kubectl config use-context NAME"'
        )
    chosen = kubeconfig.contexts[name]
    cluster = _lookup(chosen, "cluster", kubeconfig.clusters)
    user = _lookup(chosen, "user", kubeconfig.users)
    server = _server(master or cluster.text("server"), "--master" if master else cluster.where)
    explicit_proxy = cluster.text("proxy-url")
    config = ClientConfig(
        server=server,
        tls=_tls(cluster, master),
        impersonate=_impersonation(user),
        proxy=_proxy(cluster, explicit_proxy) if explicit_proxy else proxy_for(server, environ),
        compression=not cluster.flag("disable-compression"),
        namespace=chosen.text("namespace") or "default",
        origin=cluster.file,
    )
    auth = _user(user, cluster)
    cert, key = _certificate(user)
    if not config.secure:
        # As upstream, credentials are not sent over plain HTTP.
        return config
    if auth.token or auth.token_file or auth.username or cert:
        # As upstream, an exec plugin is used only without any other credential.
        auth = replace(auth, plugin=None)
    return replace(config, tls=replace(config.tls, cert=cert, key=key), user=auth)


def _without_credentials(master: str, environ: Mapping[str, str]) -> ClientConfig:
    """Return the config of a server without credentials, for ``--master`` alone."""
    server = _server(master, "--master")
    return ClientConfig(server=server, proxy=proxy_for(server, environ), origin="--master")


def _lookup(context: Entry, what: str, entries: Mapping[str, Entry]) -> Entry:
    name = context.text(what)
    if not name:
        raise context.error(f"{what} is missing; name one of the file's {what}s")
    if name not in entries:
        raise context.error(
            f'{what} "{name}" does not exist{_available(entries)}; correct the name or add it'
        )
    return entries[name]


def _server(server: str, where: str) -> str:
    """Return the server's URL. As upstream, a bare ``host:port`` means plain HTTP."""
    if not server:
        raise ConfigError(f"{where}: server is missing; give the API server's URL")
    url = server if "://" in server else f"http://{server}"
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        parts.port  # noqa: B018  (accessing it validates it)
    except ValueError:
        valid = False
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise ConfigError(f"{where}: server contains a password; put it into the user entry instead")
    if not valid or ("://" not in server and parts.path not in ("", "/")):
        # What has an @ may be a URL with a password after all.
        shown = "" if "@" in server else f' "{server}"'
        raise ConfigError(f"{where}: server{shown} is not a URL; write https://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _proxy(cluster: Entry, proxy: str) -> str:
    try:
        scheme = urlsplit(proxy).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        # differs: upstream also supports socks5.
        raise cluster.error(f'proxy-url has the scheme "{scheme}"; use an http:// or https:// proxy')
    return proxy


def _tls(cluster: Entry, master: str) -> TlsConfig:
    ca = cluster.pem("certificate-authority")
    insecure = cluster.flag("insecure-skip-tls-verify")
    if ca and insecure:
        raise cluster.error(
            "certificate-authority and insecure-skip-tls-verify exclude each other; remove one"
        )
    # The file's tls-server-name does not belong to a server given on the command line.
    name = "" if master else cluster.text("tls-server-name")
    return TlsConfig(ca=ca, insecure=insecure, server_name=name)


def _certificate(user: Entry) -> tuple[Pem, Pem]:
    cert, key = user.pem("client-certificate"), user.pem("client-key")
    if cert and not key:
        raise user.error("client-certificate needs client-key or client-key-data as well; add it")
    return (cert, key) if cert else (Pem(), Pem())


def _user(user: Entry, cluster: Entry) -> AuthInfo:
    if user.get("auth-provider") is not None:
        # differs: upstream still supports the oidc provider.
        raise user.error("auth-provider is not supported; use an exec plugin, such as kubelogin for OIDC")
    # A token written as a YAML block ends with a line break that is not part of it.
    token, username, password = user.text("token").strip(), user.text("username"), user.text("password")
    if not token.isprintable():
        raise user.error("token contains a line break; a token must be one line")
    if token and (username or password):
        raise user.error("both token and username/password are given; keep one")
    token_file = user.path("tokenFile")
    if token_file and not token:
        user.readable("tokenFile", token_file)
    return AuthInfo(token, token_file, username, password, _plugin(user, cluster))


def _plugin(user: Entry, cluster: Entry) -> ExecPlugin | None:
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
    return ExecPlugin(
        # A plain name is looked up on the PATH; with a slash it is a path.
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
    texts = (name, uid, *groups, *(text for key, values in extra for text in (key, *values)))
    if not all(text.isprintable() for text in texts):
        raise user.error("as, as-uid, as-groups and as-user-extra must not contain line breaks; remove them")
    return Impersonation(name, uid, groups, extra)


def _in_pod(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("KUBERNETES_SERVICE_HOST") and environ.get("KUBERNETES_SERVICE_PORT"))


def _search_path(environ: Mapping[str, str]) -> list[str]:
    listed = environ.get("KUBECONFIG", "")
    if listed:
        return [path for path in listed.split(os.pathsep) if path]
    return [str(Path(environ.get("HOME") or Path.home()) / ".kube" / "config")]


def _available(entries: Mapping[str, Entry]) -> str:
    return f" (available: {', '.join(entries)})" if entries else ""
