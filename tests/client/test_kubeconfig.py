from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.client.config import (
    AuthInfo,
    ClientConfig,
    ConfigError,
    ExecPlugin,
    Impersonation,
    Pem,
    TlsConfig,
)
from steersman.client.kubeconfig import from_flags, in_cluster, load
from tests.harness.ca import CertificateAuthority

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"


def config(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "one", "user": "me"}}],
        "clusters": [{"name": "one", "cluster": {"server": "https://api.example:6443", **(cluster or {})}}],
        "users": [{"name": "me", "user": user or {}}],
        **more,
    }


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("ca.crt", "client.crt", "client.key"):
        (tmp_path / name).write_text(f"content of {name}")
    (tmp_path / "token").write_text("from-file\n")
    return tmp_path


def write(home: Path, content: Any, name: str = "config") -> str:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_a_server_and_a_token_make_a_connection(home: Path) -> None:
    path = write(home, config(user={"token": "secret"}))
    assert load(path, environ={}) == ClientConfig(
        "https://api.example:6443", user=AuthInfo(token="secret"), origin=path
    )


def test_nothing_secret_shows_in_a_repr(home: Path) -> None:
    user = {
        "username": "u",
        "password": "hidden-password",
        "client-certificate": "client.crt",
        "client-key-data": encoded("hidden-key"),
    }
    shown = repr(load(write(home, config(user=user)), environ={}))
    shown += repr(load(write(home, config(user={"token": "hidden-token"})), environ={}))
    plugin = {"command": "c", "apiVersion": BETA, "env": [{"name": "A", "value": "hidden-env"}]}
    shown += repr(load(write(home, config(user={"exec": plugin})), environ={}))
    assert "hidden" not in shown
    assert "aGlkZGVu" not in shown


@pytest.mark.parametrize(
    ("cluster", "tls"),
    [
        ({"certificate-authority": "ca.crt"}, lambda home: TlsConfig(ca=Pem(path=str(home / "ca.crt")))),
        ({"certificate-authority-data": encoded("pem")}, lambda home: TlsConfig(ca=Pem(data=b"pem"))),
        ({"insecure-skip-tls-verify": True}, lambda home: TlsConfig(insecure=True)),
        ({"tls-server-name": "other"}, lambda home: TlsConfig(server_name="other")),
    ],
)
def test_a_cluster_says_whom_to_trust(home: Path, cluster: dict[str, Any], tls: Any) -> None:
    assert load(write(home, config(cluster)), environ={}).tls == tls(home)


def test_paths_are_relative_to_the_file_they_stand_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = {"client-certificate": "../client.crt", "client-key": str(home / "client.key")}
    write(home, config({"certificate-authority": "../ca.crt"}, user), "below/config")
    monkeypatch.chdir(home)
    tls = load("below/config", environ={}).tls
    for pem, name in ((tls.ca, "ca.crt"), (tls.cert, "client.crt"), (tls.key, "client.key")):
        assert os.path.isabs(pem.path)
        assert Path(pem.path).read_text() == f"content of {name}"


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({}, AuthInfo()),
        ({"username": "u", "password": "p"}, AuthInfo(username="u", password="p")),
        ({"token": "t", "tokenFile": "token"}, AuthInfo(token="t", token_file="HOME/token")),
        ({"tokenFile": "token"}, AuthInfo(token_file="HOME/token")),
    ],
)
def test_a_user_says_how_to_prove_who_we_are(home: Path, user: dict[str, Any], expected: AuthInfo) -> None:
    got = load(write(home, config(user=user)), environ={}).user
    assert got == AuthInfo(
        expected.token, expected.token_file.replace("HOME", str(home)), expected.username, expected.password
    )


def test_a_token_written_as_a_block_ends_before_the_line_break(home: Path) -> None:
    assert load(write(home, config(user={"token": "secret\n"})), environ={}).user == AuthInfo(token="secret")


def test_over_plain_http_nothing_that_proves_who_we_are_is_sent(home: Path) -> None:
    user = {"token": "t", "client-certificate": "client.crt", "client-key": "client.key", "as": "other"}
    got = load(write(home, config({"server": "http://api.example:8080"}, user)), environ={})
    assert got.user == AuthInfo()
    assert got.tls == TlsConfig()
    assert got.impersonate == Impersonation("other")


def test_impersonation_is_read_in_full(home: Path) -> None:
    user = {
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"scopes": ["a", "b"], "reason": ["c"]},
    }
    assert load(write(home, config(user=user)), environ={}).impersonate == Impersonation(
        "jane", "7", ("dev", "ops"), (("reason", ("c",)), ("scopes", ("a", "b")))
    )


def test_an_exec_plugin_is_read_in_full(home: Path) -> None:
    plugin = {
        "apiVersion": V1,
        "command": "./bin/login",
        "args": ["--quiet"],
        "env": [{"name": "REGION", "value": "eu"}],
        "installHint": "install it",
        "provideClusterInfo": True,
        "interactiveMode": "Never",
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}
    path = write(home, config({"extensions": [extension]}, {"exec": plugin}))
    assert load(path, environ={}).user.plugin == ExecPlugin(
        command=str(home / "bin/login"),
        api_version=V1,
        args=("--quiet",),
        env=(("REGION", "eu"),),
        install_hint="install it",
        provide_cluster_info=True,
        interactive="Never",
        config=b'{"audience":"x"}',
    )


def test_a_plugin_named_without_a_path_is_looked_for_on_the_path(home: Path) -> None:
    plugin = {"apiVersion": BETA, "command": "aws"}
    got = load(write(home, config(user={"exec": plugin})), environ={}).user.plugin
    assert got is not None
    assert (got.command, got.interactive) == ("aws", "IfAvailable")


@pytest.mark.parametrize(
    "other",
    [
        {"token": "t"},
        {"username": "u", "password": "p"},
        {"client-certificate": "client.crt", "client-key": "client.key"},
    ],
)
def test_a_plugin_is_not_asked_where_something_else_proves_who_we_are(
    home: Path, other: dict[str, Any]
) -> None:
    user = {"exec": {"apiVersion": BETA, "command": "aws"}, **other}
    assert load(write(home, config(user=user)), environ={}).user.plugin is None


def test_a_context_names_the_namespace(home: Path) -> None:
    context = {"name": "here", "context": {"cluster": "one", "user": "me", "namespace": "prod"}}
    assert load(write(home, config(contexts=[context])), environ={}).namespace == "prod"


def test_a_context_can_be_chosen_by_name(home: Path) -> None:
    content = config(
        clusters=[
            {"name": "one", "cluster": {"server": "https://one"}},
            {"name": "two", "cluster": {"server": "https://two/prefix/"}},
        ],
        contexts=[
            {"name": "here", "context": {"cluster": "one", "user": "me"}},
            {"name": "there", "context": {"cluster": "two", "user": "me"}},
        ],
    )
    path = write(home, content)
    assert load(path, environ={}).server == "https://one"
    assert load(path, context="there", environ={}).server == "https://two/prefix"


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://api.example", "https://api.example"),
        ("https://api.example/", "https://api.example"),
        ("https://api.example/k8s/clusters/c-1", "https://api.example/k8s/clusters/c-1"),
        ("https://[::1]:6443", "https://[::1]:6443"),
        ("localhost:8080", "http://localhost:8080"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("https://api.example/?x=1#y", "https://api.example"),
    ],
)
def test_a_server_is_a_url_or_a_host_and_port(home: Path, server: str, expected: str) -> None:
    assert load(write(home, config({"server": server})), environ={}).server == expected


# -- several files ----------------------------------------------------------------------------


def test_the_first_file_to_name_a_thing_wins_and_its_context_too(home: Path) -> None:
    first = write(home, {"users": [{"name": "me", "user": {"token": "first"}}]}, "first")
    second = config(user={"token": "second", "as": "ignored"})
    away: dict[str, Any] = {"current-context": "elsewhere"}
    third = config({"server": "https://third"}, **away)
    listed = os.pathsep.join(
        [first, "", str(home / "missing"), write(home, second, "second"), write(home, third, "third")]
    )
    got = load(environ={"KUBECONFIG": listed})
    assert got.server == "https://api.example:6443"
    assert got.user == AuthInfo(token="first")
    assert got.impersonate is None, "entries of one name are not mixed"


def test_each_entrys_paths_are_relative_to_its_own_file(home: Path) -> None:
    (home / "b").mkdir()
    (home / "b" / "ca.crt").write_text("other")
    users = write(home, {"users": [{"name": "me", "user": {"tokenFile": "token"}}]}, "users")
    rest = write(home, config({"certificate-authority": "ca.crt"}), "b/config")
    got = load(environ={"KUBECONFIG": f"{users}{os.pathsep}{rest}"})
    assert got.user.token_file == str(home / "token")
    assert got.tls.ca.path == str(home / "b" / "ca.crt")


def test_without_a_word_it_is_the_file_at_home(home: Path) -> None:
    write(home, config(), ".kube/config")
    assert load(environ={"HOME": str(home)}).server == "https://api.example:6443"


def test_kubeconfig_goes_before_the_file_at_home(home: Path) -> None:
    write(home, config(), ".kube/config")
    other = write(home, config({"server": "https://other"}), "other")
    assert load(environ={"HOME": str(home), "KUBECONFIG": other}).server == "https://other"


# -- flags and pods ---------------------------------------------------------------------------


@pytest.fixture
def account(tmp_path: Path) -> Path:
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    (directory / "token").write_text("t")
    (directory / "ca.crt").write_text("ca")
    (directory / "namespace").write_text("kube-system\n")
    return directory


INSIDE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod_the_service_account_is_used_and_its_token_read_from_the_file(account: Path) -> None:
    assert in_cluster(INSIDE, account) == ClientConfig(
        "https://10.0.0.1:443",
        tls=TlsConfig(ca=Pem(path=str(account / "ca.crt"))),
        user=AuthInfo(token_file=str(account / "token")),
        namespace="kube-system",
        origin=str(account),
    )


def test_in_a_pod_with_ipv6_the_host_is_put_in_brackets(account: Path) -> None:
    assert (
        in_cluster({**INSIDE, "KUBERNETES_SERVICE_HOST": "fd00::1"}, account).server
        == "https://[fd00::1]:443"
    )


def test_in_a_pod_the_namespace_may_come_from_the_environment(account: Path) -> None:
    assert in_cluster({**INSIDE, "POD_NAMESPACE": "mine"}, account).namespace == "mine"


def test_without_an_authority_in_the_pod_the_systems_are_trusted(account: Path) -> None:
    (account / "ca.crt").unlink()
    assert in_cluster(INSIDE, account).tls == TlsConfig()


def test_flags_prefer_the_kubeconfig_then_the_master_then_the_pod(home: Path, account: Path) -> None:
    path = write(home, config())
    assert from_flags(path, environ=INSIDE, service_account=account).origin == path
    assert from_flags("", "https://m", environ=INSIDE).server == "https://m"
    assert from_flags(environ=INSIDE, service_account=account).origin == str(account)


def test_a_master_replaces_the_server_and_the_name_its_certificate_was_for(home: Path) -> None:
    cluster = {"tls-server-name": "other", "certificate-authority": "ca.crt"}
    got = from_flags(write(home, config(cluster, {"token": "t"})), "https://m:1", environ={})
    assert got.server == "https://m:1"
    assert got.tls == TlsConfig(ca=Pem(path=str(home / "ca.crt")))
    assert got.user == AuthInfo(token="t")


def test_a_server_component_never_takes_the_cluster_a_person_last_used(home: Path) -> None:
    write(home, config(), ".kube/config")
    with pytest.raises(ConfigError, match="pass --kubeconfig or --master"):
        from_flags(environ={"HOME": str(home), "KUBECONFIG": str(home / ".kube/config")})


def test_a_person_in_a_pod_without_a_kubeconfig_uses_the_pods_account(home: Path, account: Path) -> None:
    got = load(environ={**INSIDE, "HOME": str(home)}, service_account=account)
    assert got.origin == str(account)


def test_a_proxy_comes_from_the_cluster_or_else_from_the_environment(home: Path) -> None:
    environ = {"HTTPS_PROXY": "http://env:1"}
    assert load(write(home, config()), environ=environ).proxy == "http://env:1"
    named = write(home, config({"proxy-url": "http://named:1"}))
    assert load(named, environ=environ).proxy == "http://named:1"


def test_compression_can_be_switched_off(home: Path) -> None:
    assert load(write(home, config()), environ={}).compression
    assert not load(write(home, config({"disable-compression": True})), environ={}).compression


# -- what is wrong ----------------------------------------------------------------------------

PLUGIN = {"apiVersion": V1, "command": "c", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a: b: c", r"not YAML at line 1, column 5: mapping values"),
        ("{", "not YAML"),
        ("\x00", "not YAML"),
        ("a: !!bool maybe", "not YAML for a kubeconfig"),
        ("a: !!int ''", "not YAML for a kubeconfig"),
        ("a: !!timestamp never", "not YAML for a kubeconfig"),
        ("[" * 100_000, "not YAML for a kubeconfig"),
        ("a: &a [*a]", "not YAML for a kubeconfig"),
        ("- a", "its content must be a mapping"),
        ("just text", "its content must be a mapping"),
        ({"apiVersion": "v1", "kind": "Pod"}, "is a v1 Pod, not a kubeconfig"),
        ({**config(), "clusters": {}}, "clusters must be a list"),
        ({**config(), "clusters": [3]}, "clusters must be a list of mappings"),
        ({**config(), "users": [{"user": {}}]}, r"users\[0\]: name is missing"),
        ({**config(), "users": [{"name": "me", "user": "x"}]}, r"users\[0\]: user must be a mapping"),
        (config(users=[{"name": "me"}, {"name": "me"}]), 'users: "me" is defined twice; remove one'),
        ({**config(), "current-context": "nowhere"}, r'context "nowhere" does not exist \(available: here\)'),
        ({**config(), "current-context": ""}, r"no current-context is set \(available: here\)"),
        (
            config(contexts=[{"name": "here", "context": {"user": "me"}}]),
            'context "here": cluster is missing',
        ),
        (
            config(contexts=[{"name": "here", "context": {"cluster": "one", "user": "you"}}]),
            r'context "here": user "you" does not exist \(available: me\)',
        ),
        (config({"server": ""}), 'cluster "one": server is missing'),
        (config({"server": "ftp://x"}), 'server "ftp://x" is not a URL; write https://HOST:PORT'),
        (config({"server": "https://"}), "is not a URL"),
        (config({"server": "https://h:port"}), "is not a URL"),
        (config({"server": "host/path"}), "is not a URL"),
        (config({"server": "https://u:p@h"}), "server contains a password"),
        (config({"server": "https://u:p@h:port"}), "server contains a password"),
        (config({"server": "https://u:p/q@h"}), "server is not a URL"),
        (config({"certificate-authority": "a\0b"}), "certificate-authority is not a path"),
        (config({"certificate-authority-data": "é"}), "certificate-authority-data is not base64"),
        (config({"server": 3}), 'cluster "one": server must be a string; put it in quotes'),
        (config({"certificate-authority": "gone.crt"}), "certificate-authority: .*gone.crt: no such file"),
        (config({"certificate-authority-data": "%%"}), "certificate-authority-data is not base64"),
        (
            config({"certificate-authority": "ca.crt", "certificate-authority-data": encoded("x")}),
            "certificate-authority and certificate-authority-data are both given; keep one",
        ),
        (
            config({"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True}),
            "exclude each other; remove one",
        ),
        (config({"insecure-skip-tls-verify": "yes"}), "insecure-skip-tls-verify must be true or false"),
        (config({"proxy-url": "socks5://p"}), 'proxy-url has the scheme "socks5"'),
        (config(user={"token": 12345}), 'user "me": token must be a string; put it in quotes'),
        (
            config(user={"token": "t", "username": "u"}),
            "both token and username/password are given; keep one",
        ),
        (config(user={"tokenFile": "gone"}), "tokenFile: .*gone: no such file"),
        (config(user={"client-certificate": "client.crt"}), "client-certificate needs client-key"),
        (config(user={"as-groups": ["a"]}), "as-uid, as-groups and as-user-extra need as"),
        (config(user={"as": "a", "as-groups": "b"}), "as-groups must be a list of strings"),
        (config(user={"as": "a", "as-user-extra": {"k": "v"}}), "as-user-extra: k must be a list of strings"),
        (config(user={"token": "a\nb"}), "token contains a line break; a token must be one line"),
        (config(user={"as": "a\nb"}), "must not contain line breaks"),
        (config(user={"as": "a", "as-user-extra": {"k": ["a\nb"]}}), "must not contain line breaks"),
        (
            config(user={"auth-provider": {"name": "oidc"}}),
            "auth-provider is not supported; use an exec plugin",
        ),
        (config(user={"exec": {**PLUGIN, "command": ""}}), 'user "me": exec: command is missing'),
        (
            config(user={"exec": {**PLUGIN, "apiVersion": "v1alpha1"}}),
            'apiVersion "v1alpha1" is not known; use',
        ),
        (config(user={"exec": {**PLUGIN, "interactiveMode": None}}), "must be Never, IfAvailable or Always"),
        (config(user={"exec": {**PLUGIN, "env": [{"value": "x"}]}}), r"exec: env\[0\]: name is missing"),
        (config(user={"exec": {**PLUGIN, "args": [1]}}), "args must be a list of strings"),
    ],
)
def test_whatever_is_wrong_is_one_error_that_names_the_file_and_the_entry(
    home: Path, content: Any, says: str
) -> None:
    path = write(home, content)
    with pytest.raises(ConfigError, match=says) as caught:
        load(path, environ={})
    assert path in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file_that_was_asked_for_is_an_error(home: Path) -> None:
    for read in (load, from_flags):
        with pytest.raises(ConfigError, match="the kubeconfig file does not exist"):
            read(str(home / "gone"), environ={})


def test_a_directory_is_no_kubeconfig(home: Path) -> None:
    with pytest.raises(ConfigError, match="is a directory"):
        load(str(home), environ={})


def test_no_file_anywhere_is_an_error_that_says_where_it_looked(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"no kubeconfig found at .*\.kube/config: create one"):
        load(environ={"HOME": str(home)})


def test_an_empty_file_has_no_context(home: Path) -> None:
    with pytest.raises(ConfigError, match="no current-context is set"):
        load(write(home, ""), environ={})


def test_in_a_pod_without_a_token_the_error_says_what_to_do(account: Path) -> None:
    (account / "token").unlink()
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        in_cluster(INSIDE, account)


def test_outside_a_pod_there_is_no_pods_account(account: Path) -> None:
    with pytest.raises(ConfigError, match="not in a pod"):
        in_cluster({}, account)


# -- beside the official client ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"server": "https://api.example:6443"}, {"token": "t"}),
        ({"server": "https://api.example/prefix"}, {"token": "t"}),
        ({"insecure-skip-tls-verify": True}, {"username": "u", "password": "p"}),
        (
            {"certificate-authority": "ca.crt"},
            {"client-certificate": "client.crt", "client-key": "client.key"},
        ),
        (
            {"certificate-authority-data": encoded("ca")},
            {"client-certificate-data": encoded("cert"), "client-key-data": encoded("key")},
        ),
        ({"tls-server-name": "other"}, {"tokenFile": "token"}),
        ({"proxy-url": "http://proxy:3128"}, {}),
    ],
)
def test_it_reads_what_the_official_client_reads(
    home: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    kube_config = pytest.importorskip("kubernetes.config.kube_config")
    client = pytest.importorskip("kubernetes.client")
    path = write(home, config(cluster, user))
    theirs = client.Configuration()
    kube_config.load_kube_config(path, client_configuration=theirs, persist_config=False)
    ours = load(path, environ={})

    def content(pem: Pem) -> bytes | None:
        return pem.data or (Path(pem.path).read_bytes() if pem.path else None)

    def their(file: str | None) -> bytes | None:
        return Path(file).read_bytes() if file else None

    assert ours.server == theirs.host
    assert (not ours.tls.insecure) == theirs.verify_ssl
    assert content(ours.tls.ca) == their(theirs.ssl_ca_cert)
    assert content(ours.tls.cert) == their(theirs.cert_file)
    assert content(ours.tls.key) == their(theirs.key_file)
    assert (ours.tls.server_name or None) == theirs.tls_server_name
    assert (ours.proxy or None) == theirs.proxy
    token = ours.user.token or (
        Path(ours.user.token_file).read_text().strip() if ours.user.token_file else ""
    )
    basic = encoded(f"{ours.user.username}:{ours.user.password}") if ours.user.username else ""
    header = f"Bearer {token}" if token else f"Basic {basic}" if basic else None
    # Releases differ in what they call it; there is only ever one.
    said = next(iter(theirs.api_key.values()), None)
    assert header == (said.strip() if said else None)


def test_certificates_given_inline_are_kept_as_they_are(home: Path) -> None:
    authority = CertificateAuthority("x")
    pair = authority.client("admin", ("system:masters",))
    user = {
        "client-certificate-data": base64.b64encode(pair.cert).decode(),
        "client-key-data": base64.b64encode(pair.key).decode(),
    }
    ca = base64.b64encode(authority.pair.cert).decode()
    got = load(write(home, config({"certificate-authority-data": ca}, user)), environ={})
    assert got.tls == TlsConfig(
        ca=Pem(data=authority.pair.cert), cert=Pem(data=pair.cert), key=Pem(data=pair.key)
    )


@pytest.mark.parametrize(
    "content",
    [
        config({"server": "https://u:hunter2@h:port"}),
        config({"server": "https://u:hunter2/x@h"}),
        "users: [{name: u, user: {password: *hunter2}}]",
        "users: [{name: u, user: {password: !hunter2 x}}]",
        "users: [{name: u, user: {password: hunter2, a: !!int hunter2}}]",
        config(user={"client-key-data": "hunter2é"}),
    ],
)
def test_no_error_shows_a_secret(home: Path, content: Any) -> None:
    with pytest.raises(ConfigError) as refused:
        load(write(home, content), environ={})
    assert "hunter2" not in str(refused.value)


def test_an_extension_with_aliases_does_not_become_a_billion_values(home: Path) -> None:
    lines = ["a: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match="not YAML for a kubeconfig"):
        load(write(home, "\n".join(lines)), environ={})
