"""What a URL asks for."""

from __future__ import annotations

import pytest

from steersman.http.target import flag, parse_target, wants_pretty
from steersman.server.http.request_info import RequestInfo, UnknownRequest, request_info


def asked(method: str, target: str) -> RequestInfo:
    path, query = parse_target(target)
    return request_info(method, path, query)


ROWS = {
    "HEAD /api/v1/namespaces/a/pods/b": ("get", "", "v1", "a", "pods", "b", ""),
    "HEAD /api/v1/pods": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/proxy/namespaces/a/pods/b/log": ("proxy", "", "v1", "a", "pods", "b", ""),
    "POST /api/v1/watch/pods": ("watch", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?limit=few&fieldSelector=metadata.name%3Db": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?labelSelector=)&fieldSelector=metadata.name%3Db": (
        "list",
        "",
        "v1",
        "",
        "pods",
        "",
        "",
    ),
    "GET /api/v1/pods": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=true": ("watch", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=false": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=true;": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=true;x=1&watch=true": ("watch", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=%zz": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=": ("watch", "", "v1", "", "pods", "", ""),
    "GET /api/v1/namespaces/a/pods/b": ("get", "", "v1", "a", "pods", "b", ""),
    "GET /api/v1/namespaces/a/pods/b?watch=1": ("get", "", "v1", "a", "pods", "b", ""),
    "PUT /api/v1/namespaces/a/pods/b/status": ("update", "", "v1", "a", "pods", "b", "status"),
    "POST /apis/apps/v1/namespaces/a/deployments": ("create", "apps", "v1", "a", "deployments", "", ""),
    "DELETE /apis/apps/v1/namespaces/a/deployments": (
        "deletecollection",
        "apps",
        "v1",
        "a",
        "deployments",
        "",
        "",
    ),
    "GET /api/v1/namespaces": ("list", "", "v1", "", "namespaces", "", ""),
    "GET /api/v1/namespaces/a": ("get", "", "v1", "a", "namespaces", "a", ""),
    "PUT /api/v1/namespaces/a/finalize": ("update", "", "v1", "a", "namespaces", "a", "finalize"),
    "PATCH /api/v1/namespaces/a/status": ("patch", "", "v1", "a", "namespaces", "a", "status"),
    "GET /api/v1/watch/namespaces/a/pods": ("watch", "", "v1", "a", "pods", "", ""),
    "GET /api/v1/pods?fieldSelector=metadata.name%3Db": ("list", "", "v1", "", "pods", "b", ""),
    "GET /api/v1/pods?fieldSelector=metadata.name%3D%3Db,spec.nodeName%3Dn": (
        "list",
        "",
        "v1",
        "",
        "pods",
        "b",
        "",
    ),
    "GET /api/v1/pods?fieldSelector=metadata.name%3Dx%5C%2Cmetadata.name%3Db": (
        "list",
        "",
        "v1",
        "",
        "pods",
        "",
        "",
    ),
    "GET /api/v1/pods?fieldSelector=metadata.name%3Da%2Fb": ("list", "", "v1", "", "pods", "", ""),
    "GET /api/v1/pods?watch=1&fieldSelector=metadata.name%3Db": ("watch", "", "v1", "", "pods", "b", ""),
    "GET /api/v1/watch/namespaces/a/pods/b?fieldSelector=metadata.name%3Dc": (
        "watch",
        "",
        "v1",
        "a",
        "pods",
        "b",
        "",
    ),
    "GET /api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name%3Dc": (
        "watch",
        "",
        "v1",
        "a",
        "pods",
        "",
        "",
    ),
    "DELETE /api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db": (
        "deletecollection",
        "",
        "v1",
        "a",
        "pods",
        "",
        "",
    ),
    "GET /api/v1/pods?fieldSelector=metadata.name!%3Db": ("list", "", "v1", "", "pods", "", ""),
    "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode": (
        "get",
        "rbac.authorization.k8s.io",
        "v1",
        "",
        "clusterroles",
        "system:node",
        "",
    ),
}


@pytest.mark.parametrize("request_", ROWS)
def test_a_path_is_taken_apart_as_upstream_does(request_: str) -> None:
    method, _, target = request_.partition(" ")
    made = asked(method, target)
    assert made.resource
    assert (
        made.verb,
        made.group,
        made.version,
        made.namespace,
        made.plural,
        made.name,
        made.subresource,
    ) == ROWS[request_]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/version",
        "/healthz/x/y",
    ],
)
def test_other_paths_are_for_no_resource(path: str) -> None:
    assert asked("GET", path) == RequestInfo("get", path, False)


def test_two_slashes_at_the_beginning_are_authorized_as_one_and_not_found() -> None:
    made = asked("GET", "//api/v1/pods")
    assert (made.resource, made.verb, made.plural, made.routed) == (True, "list", "pods", False)
    assert asked("GET", "/api/v1/pods").routed


@pytest.mark.parametrize("path", ["/api/v1/watch", "/apis/apps/v1/proxy/"])
def test_a_verb_alone_is_no_request(path: str) -> None:
    with pytest.raises(UnknownRequest, match="unable to determine kind and namespace from url"):
        asked("GET", path)


@pytest.mark.parametrize(
    ("query", "says"),
    [("", False), ("a", True), ("a=", True), ("a=0", False), ("a=False", False), ("a=x", True)],
)
def test_only_zero_and_false_are_false(query: str, says: bool) -> None:
    assert flag(parse_target(f"/?{query}")[1], "a") is says


@pytest.mark.parametrize(
    ("agent", "query", "pretty"),
    [
        ("curl/8", "", True),
        ("curl/8", "pretty=", True),
        ("curl/8", "pretty=x", False),
        ("kubectl", "pretty=T", True),
        ("kubectl", "pretty=tRuE", False),
        ("kubectl", "pretty=2", False),
        ("kubectl", "pretty=", False),
    ],
)
def test_json_is_indented_for_what_go_reads_as_true(agent: str, query: str, pretty: bool) -> None:
    assert wants_pretty(agent, parse_target(f"/?{query}")[1]) is pretty
