"""Kubeconfig files: any file gives a configuration or `ConfigError`, whose message has no secret of the file."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from steersman.api import go_yaml
from steersman.client.config import ConfigError
from steersman.client.kubeconfig import load
from tests.fuzz.documents import encoded
from tests.fuzz.target import Target

_SECRET = "hunter2hunter2"
_folder = tempfile.TemporaryDirectory()
_FILE = Path(_folder.name, "config")


def check(data: bytes) -> None:
    _FILE.write_bytes(data)
    try:
        config = load(str(_FILE), environ={})
    except ConfigError as error:
        message = str(error)
    else:
        assert config.server.startswith(("http://", "https://"))
        message = repr(config)
    for secret in _secrets(data):
        assert secret not in message, f"a secret is shown: {message}"


def _secrets(data: bytes) -> Iterator[str]:
    """Yield the secrets of a file that occur in it once: as a name or a path the same text may be shown."""
    text = data.decode("utf-8", "replace")
    try:
        document, _ = go_yaml.decode(data)
    except go_yaml.MalformedDocument:
        # Where the secret stands in such a file is not known, so it may not be shown at all.
        yield _SECRET
        return
    for user in _objects(document, "users"):
        entry = user.get("user")
        fields = (
            [entry.get(name) for name in ("token", "password", "client-key-data")]
            if isinstance(entry, dict)
            else []
        )
        yield from (
            field
            for field in fields
            if isinstance(field, str) and _SECRET in field and text.count(_SECRET) == 1
        )
    for cluster in _objects(document, "clusters"):
        entry = cluster.get("cluster")
        server = entry.get("server") if isinstance(entry, dict) else None
        if isinstance(server, str) and f":{_SECRET}@" in server and text.count(_SECRET) == 1:
            yield _SECRET


def _objects(document: Any, section: str) -> list[dict[str, Any]]:
    listed = document.get(section) if isinstance(document, dict) else None
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


# -- inputs -----------------------------------------------------------------------------------


def _config(cluster: Any, user: Any, context: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": context}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }


_data = st.sampled_from((base64.b64encode(b"x").decode(), "%%", "é", "", None, 1))
_paths = st.sampled_from(("config", "missing", "", "\x00", "a\nb", None, 5, ["x"]))
_texts: st.SearchStrategy[Any] = st.sampled_from((_SECRET, "", "a\nb", None, True, {"x": []}, "é"))
_servers = st.sampled_from(
    (
        "https://h:1", "h:1", "https://[::1", "https://h:99999", f"https://u:{_SECRET}@h:x", f"u:{_SECRET}@h", "ftp://x", "https://h:٣",
        "https://", "//h", "http://h/p", "https://h\n", 1, None,
    )
)  # fmt: skip
_clusters = st.fixed_dictionaries(
    {"server": _servers},
    optional={
        "certificate-authority": _paths,
        "certificate-authority-data": _data,
        "insecure-skip-tls-verify": st.sampled_from((True, False, "x")),
        "proxy-url": st.sampled_from(("http://p", "http://[", "socks5://p", f"u:{_SECRET}@p", "", 1)),
        "tls-server-name": _texts,
        "extensions": st.sampled_from(
            (None, [], [{"name": "client.authentication.k8s.io/exec", "extension": {"a": [1]}}], [1])
        ),
    },
)
_exec = st.fixed_dictionaries(
    {"command": st.sampled_from(("x", "./x", "", 1))},
    optional={
        "apiVersion": st.sampled_from(
            ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1", "v1")
        ),
        "interactiveMode": st.sampled_from(("Never", "x")),
        "env": st.sampled_from(([{"name": "a", "value": "b"}], [{}], {"a": "b"})),
        "args": st.sampled_from((["a"], [1], "a")),
        "provideClusterInfo": st.sampled_from((True, "yes")),
    },
)
_users = st.fixed_dictionaries(
    {},
    optional={
        "token": _texts,
        "tokenFile": _paths,
        "username": _texts,
        "password": _texts,
        "client-certificate": _paths,
        "client-certificate-data": _data,
        "client-key": _paths,
        "client-key-data": _data | st.just(_SECRET + "%"),
        "as": _texts,
        "as-groups": st.sampled_from(([], ["a\n"], "x", None)),
        "as-user-extra": st.sampled_from(({"a": ["b"]}, {"a": 1}, [])),
        "exec": _exec,
        "auth-provider": st.sampled_from((None, {})),
    },
)
_contexts = st.fixed_dictionaries(
    {"cluster": st.sampled_from(("k", "x", 1)), "user": st.sampled_from(("u", None))}
)

TARGET = Target(
    name="kubeconfig",
    check=check,
    seeds=(
        json.dumps(_config({"server": "https://h:1"}, {"token": _SECRET}, {"cluster": "k", "user": "u"})).encode(),
        b"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\n"
        b"clusters:\n- name: k\n  cluster:\n    server: https://h:1\n    certificate-authority-data: eA==\nusers:\n"
        b"- name: u\n  user:\n    password: hunter2hunter2\n    username: x\n",
        b"users: [{name: u, user: {password: *hunter2hunter2}}]\n",
        b"users: [{name: u, user: {password: !hunter2hunter2 x}}]\n",
        b"a: !!bool x\n",
        b"a: !!int ''\n",
        b"a: !!timestamp x\n",
        b"- " * 40,
    ),
    strategy=encoded(st.builds(_config, _clusters, _users, _contexts)),
    dictionary=(
        b"hunter2hunter2", b"*a", b"&a ", b"!!binary ", b"!!int ", b"\\0", b"current-context: c\n", b"- name: ", b"user: {", b"cluster: {",
        b"exec: {command: x}", b"token: ", b"server: https://h\n", b"null", b"[", b"{", b": ", b"\n  ",
    ),
    # The same limits as for bodies: aliases may multiply the nodes of any document.
    seconds_per_byte=1e-3,
    memory_per_byte=40_000,
)  # fmt: skip
