"""The same requests to a real kube-apiserver: the same codes, refusals, warnings and lines."""

from __future__ import annotations

import json
import os
import re
import ssl
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from steersman.client.kubeconfig import load
from steersman.testing.plane import ASSETS, RealPlane

pytestmark = [
    pytest.mark.skipif(not os.environ.get(ASSETS), reason=f"needs a real kube-apiserver: set {ASSETS}"),
    pytest.mark.xdist_group("real"),
]

CM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a"},
    "data": {"k": "v"},
}
HERE = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


class Ask(NamedTuple):
    method: str
    target: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = ""


ASKED = (
    Ask("GET", "/nope"),
    Ask("GET", "/api/v1/nope"),
    Ask("GET", "/apis/nope.io/v1/x"),
    Ask("GET", "/apis/apps/v9/x"),
    Ask("GET", "/apis/nope.io"),
    Ask("GET", "/apis/nope.io/v1"),
    Ask("GET", "//api/v1/namespaces"),
    Ask("GET", "/openapi/v3/nope"),
    Ask("POST", "/version", {}),
    Ask("GET", "/healthz"),
    Ask("GET", "/livez/ping"),
    Ask("GET", "/readyz/nope"),
    Ask("OPTIONS", "/api/v1/pods"),
    Ask("HEAD", "/api/v1/namespaces/default"),
    Ask("POST", "/api/v1/pods", CM),
    Ask("DELETE", "/api/v1/namespaces"),
    Ask("PUT", HERE, CM),
    Ask("POST", f"{HERE}/x", CM),
    Ask("GET", "/api/v1/namespaces/default/nodes"),
    Ask("GET", "/api/v1/pods/foo"),
    Ask("GET", f"{HERE}/x/y"),
    Ask("POST", HERE, CM),
    Ask("POST", HERE, CM),
    Ask("POST", f"{HERE}?dryRun=All", {**CM, "metadata": {"name": "dry"}}),
    Ask("GET", f"{HERE}/dry"),
    Ask("POST", f"{HERE}?dryRun=Some", CM),
    Ask("POST", f"{HERE}?fieldValidation=Nope", CM),
    Ask("POST", HERE, b"{bad"),
    Ask("POST", HERE, b"[]"),
    Ask("POST", HERE, b""),
    Ask("POST", HERE, {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "b"}}),
    Ask("POST", HERE, {**CM, "apiVersion": "v2"}),
    Ask("POST", f"{HERE}?fieldValidation=Strict", {**CM, "x": 1, "metadata": {"name": "b"}}),
    Ask("POST", HERE, {**CM, "x": 1, "metadata": {"name": "b"}}),
    Ask("POST", HERE, {**CM, "data": {"k": 1}}),
    Ask("POST", HERE, CM, "text/plain"),
    Ask("PATCH", f"{HERE}/a", {"data": {"z": "1"}}),
    Ask("PATCH", f"{HERE}/a", {"data": {"z": "1"}}, MERGE),
    Ask("PATCH", f"{HERE}/a?force=true", {"data": {"z": "2"}}, MERGE),
    Ask("PATCH", f"{HERE}/a", b"{bad", MERGE),
    Ask("PATCH", f"{HERE}/a?dryRun=All", {"data": {"z": "2"}}, MERGE),
    Ask("GET", f"{HERE}/a"),
    Ask("GET", f"{HERE}/a", accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    Ask(
        "GET",
        f"{HERE}?fieldSelector=metadata.name=a",
        accept="application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    ),
    Ask("GET", f"{HERE}?fieldSelector=metadata.name=a"),
    Ask("GET", f"{HERE}?limit=x"),
    Ask("GET", f"{HERE}?resourceVersion=x"),
    Ask("GET", f"{HERE}?resourceVersionMatch=Exact"),
    Ask("GET", f"{HERE}?labelSelector=a+in+b"),
    Ask("GET", f"{HERE}?sendInitialEvents=true"),
    Ask("GET", f"{HERE}?watch=1&resourceVersion=x"),
    Ask("GET", f"{HERE}?watch=1&sendInitialEvents=true&timeoutSeconds=1"),
    Ask("GET", f"{HERE}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=a"),
    Ask(
        "GET",
        f"{HERE}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        "&timeoutSeconds=1&fieldSelector=metadata.name=a",
    ),
    Ask("GET", "/api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=1"),
    Ask("DELETE", f"{HERE}/a?propagationPolicy=Nope"),
    Ask("DELETE", f"{HERE}/a", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    Ask("DELETE", f"{HERE}/a?dryRun=All"),
    Ask("DELETE", f"{HERE}/a", b"{bad"),
    Ask("DELETE", f"{HERE}/a", {"preconditions": {"uid": "x"}}),
    Ask("DELETE", f"{HERE}/a"),
    Ask("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}}),
    Ask("DELETE", "/api/v1/namespaces/default/secrets"),
    Ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "s"}}),
    Ask("DELETE", "/api/v1/namespaces/default/serviceaccounts/s"),
    Ask("PUT", f"{HERE}/new", {"metadata": {"name": "new"}}),
    Ask(
        "PUT",
        f"{LEASES}/new",
        {"metadata": {"name": "new"}, "spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}},
    ),
    Ask("PATCH", f"{LEASES}/new?dryRun=All", {"spec": {"holderIdentity": "x"}}, MERGE),
    Ask("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    Ask(
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    ),
    Ask("GET", "/api/v1/namespaces/default/pods/x/log"),
)

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_VERSION = re.compile(r'"resourceVersion": "\d+"')


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value) if key != "managedFields"}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _plain(text: str) -> str:
    """An answer without what differs by nature; times keep how many digits they have."""
    try:
        text = "\n".join(json.dumps(_sorted(json.loads(line))) for line in text.splitlines())
    except ValueError:
        pass  # not JSON in lines: compared as it is
    text = _TIME.sub(lambda found: f"<time{'.' * len(found[1] or '')}>", text)
    return _VERSION.sub('"resourceVersion": "<rv>"', _UID.sub("<uid>", text))


async def _told(session: aiohttp.ClientSession, server: str, ask: Ask) -> tuple[Any, ...]:
    headers = {"Accept": ask.accept} if ask.accept else {}
    data = None
    if ask.body is not None:
        data = ask.body if isinstance(ask.body, bytes) else json.dumps(ask.body).encode()
        headers["Content-Type"] = ask.content_type
    async with session.request(ask.method, server + ask.target, data=data, headers=headers) as answer:
        text = _plain(await answer.text())
        return (
            answer.status,
            answer.headers.get("Content-Type") or "",
            answer.headers.getall("Warning", []),
            text,
        )


def _session(kubeconfig: Path, where: Path) -> aiohttp.ClientSession:
    connection = load(str(kubeconfig))
    context = ssl.create_default_context(cadata=connection.tls.ca.data.decode())
    where.mkdir()
    (where / "cert").write_bytes(connection.tls.cert.data)
    (where / "key").write_bytes(connection.tls.key.data)
    context.load_cert_chain(where / "cert", where / "key")
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))


async def test_requests_are_answered_as_a_real_server_answers_them(plane: Any, tmp_path: Path) -> None:
    ours, theirs = [], []
    with RealPlane.start() as real:
        async with (
            _session(plane.kubeconfig(), tmp_path / "ours") as one,
            _session(real.admin, tmp_path / "theirs") as other,
        ):
            for ask in ASKED:
                theirs.append((ask, *await _told(other, real.url, ask)))
                ours.append((ask, *await _told(one, plane.edge.url, ask)))
    for mine, real_one in zip(ours, theirs, strict=True):
        assert mine == real_one
