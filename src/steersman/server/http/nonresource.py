"""Paths that are no resources: discovery, OpenAPI, version, OpenID keys, health, metrics, and the index of them."""

from __future__ import annotations

import platform
import sys
from typing import Any

import msgspec

from steersman.api.errors import ApiError, NotAcceptable, NotFound
from steersman.api.prometheus import CONTENT_TYPE
from steersman.http.target import first
from steersman.server.auth.attributes import escape_html
from steersman.server.codec.encoding import dump
from steersman.server.codec.negotiation import JSON, YAML
from steersman.server.discovery import documents
from steersman.server.discovery.documents import AGGREGATED, EncodedDocument
from steersman.server.http.context import Context
from steersman.server.http.responses import END, Response, document_response, encoded, routing_error
from steersman.server.status_errors import quote

VERSION = "v1.36.4"
"""The version of Kubernetes that this server implements."""

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_PATHS = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
)


_ANY_METHOD = ("healthz", "livez", "metrics", "readyz")
"""Paths that upstream serves whatever the method is."""


def handle_nonresource(ctx: Context) -> Response:
    """Any request that is not for a resource."""
    path = ctx.info.path
    parts = path.strip("/").split("/")
    if ctx.info.verb not in ("get", "head") and parts[0] not in _ANY_METHOD:
        return routing_error(405) if parts[0] in ("api", "apis", "version") else not_found()
    match parts:
        case [""]:
            return _indented({"paths": _paths(ctx)})
        case ["api" | "apis"]:
            return _root(ctx, parts[0])
        case ["api", version]:
            return _discovered(ctx, "", version)
        case ["apis", group]:
            return _found(ctx, lambda: ctx.state.discovery.discovery.group(group))
        case ["apis", group, version]:
            return _discovered(ctx, group, version)
        case ["version"]:
            accept = ctx.http.headers.get("Accept", "")
            types = [clause.partition(";")[0].strip() for clause in accept.split(",")] if accept else ["*/*"]
            if not any(each in ("*/*", JSON) for each in types):
                return routing_error(406, served=JSON)
            return _indented(version_info())
        case [("healthz" | "livez" | "readyz") as name, *check] if len(check) < 2:
            return _health(ctx, name, "".join(check)) or not_found()
        case ["metrics"]:
            return _metrics(ctx)
        case ["openapi", "v2"]:
            return _v2(ctx)
        case ["openapi", "v3", *name]:
            return _v3(ctx, "/".join(name))
    if (make := ctx.state.documents.get(path)) is not None:
        return Response(make(ctx.query), 200, JSON, _PLAIN)
    document = ctx.state.openid.get(path)
    if document is not None:
        headers = (("Cache-Control", document.cache_control),)
        return Response(document.body, 200, document.content_type, headers)
    return not_found()


def not_found() -> Response:
    """The plain 404 of a path that is not served."""
    headers = (("X-Content-Type-Options", "nosniff"),)
    return Response(b"404 page not found\n", 404, "text/plain; charset=utf-8", headers)


def unknown_request(target: str, why: str) -> Response:
    """The plain 500 of a path of which neither the verb nor the resource can be told."""
    text = f"Internal Server Error: {quote(target)}: failed to create RequestInfo: {why}, {target}\n"
    headers = (("X-Content-Type-Options", "nosniff"),)
    return Response(escape_html(text).encode(), 500, "text/plain; charset=utf-8", headers)


def _indented(made: Any) -> Response:
    return Response(msgspec.json.format(dump(made), indent=2))


def _paths(ctx: Context) -> list[str]:
    found = dict.fromkeys((*_PATHS, *ctx.state.documents))
    if ctx.state.site is not None:
        found[f"{ctx.state.site.prefix}/"] = None
    for group in ctx.state.discovery.discovery.apis()["groups"]:
        found[f"/apis/{group['name']}"] = None
        for version in group["versions"]:
            found[f"/apis/{version['groupVersion']}"] = None
    for name in ("healthz", "livez", "readyz"):
        found |= dict.fromkeys(f"/{name}/{check}" for check in CHECKS)
    return sorted(found)


def version_info() -> dict[str, str]:
    """``/version``."""
    major, minor, _ = VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"{VERSION}+steersman",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": sys.implementation.name,
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


# -- discovery --------------------------------------------------------------------------------


def _root(ctx: Context, name: str) -> Response:
    found = ctx.state.discovery.discovery
    choice = documents.negotiate_discovery(ctx.http.headers.get("Accept", ""))
    if choice.target == AGGREGATED:
        tagged = found.aggregated_api if name == "api" else found.aggregated_apis
        return _tagged(ctx, tagged, _AGGREGATED, ("Cache-Control", "public"), end=END)
    made = found.api(ctx.state.address) if name == "api" else found.apis()
    return encoded(ctx, choice, dump(made))


def _discovered(ctx: Context, group: str, version: str) -> Response:
    return _found(ctx, lambda: ctx.state.discovery.discovery.resources(group, version))


def _found(ctx: Context, make: Any) -> Response:
    try:
        made = make()
    except NotFound:
        return not_found()
    return document_response(ctx, made)


def _tagged(
    ctx: Context, tagged: EncodedDocument, content_type: str, *more_headers: tuple[str, str], end: bytes = b""
) -> Response:
    """A document with an ETag, so that clients fetch it again only if it has changed."""
    headers = (("ETag", tagged.etag), ("Vary", "Accept"), *more_headers)
    if ctx.http.headers.get("If-None-Match") == tagged.etag:
        return Response(b"", 304, content_type, headers)
    return Response(tagged.body + end, 200, content_type, headers)


# -- OpenAPI ----------------------------------------------------------------------------------


def _check_accepts_json(ctx: Context) -> None:
    """Raises `NotAcceptable` for clients that do not accept JSON. Protobuf has media types of its own here."""
    accept = ctx.http.headers.get("Accept", "")
    for clause in accept.split(",") if accept else ("*/*",):
        if clause.partition(";")[0].strip() in ("*/*", "application/*", JSON, YAML):
            return
    raise NotAcceptable(f"only the following media types are accepted: {JSON}", reason="NotAcceptable")


def _v2(ctx: Context) -> Response:
    from steersman.server.discovery.openapi import binary

    openapi = ctx.state.discovery.openapi
    if ctx.http.headers.get("Accept", "").startswith(binary.ACCEPT_TYPE):
        return _tagged(ctx, openapi.v2_binary(), binary.CONTENT_TYPE)
    _check_accepts_json(ctx)
    return _tagged(ctx, openapi.v2(), JSON)


def _v3(ctx: Context, name: str) -> Response:
    openapi = ctx.state.discovery.openapi
    if not name:
        # Upstream sets no content type, so that Go guesses it from the first bytes.
        return Response(dump(openapi.index()), 200, "text/plain; charset=utf-8")
    found = openapi.v3(name)
    if found is None:
        return Response(b"", 404, "")
    _check_accepts_json(ctx)
    given, current = first(ctx.query, "hash"), found.etag.strip('"')
    if not given:
        return _tagged(ctx, found, JSON)
    if given != current:
        return Response(b"", 301, JSON, (("Location", f"/openapi/v3/{name}?hash={current}"),))
    # A document with a given hash never changes.
    return _tagged(ctx, found, JSON, ("Cache-Control", "public, immutable"))


# -- health and metrics -----------------------------------------------------------------------

CHECKS = ("ping", "store", "crd-informer-synced")

_TEXT = "text/plain; charset=utf-8"
_PLAIN = (("X-Content-Type-Options", "nosniff"),)


def _health(ctx: Context, name: str, check: str) -> Response | None:
    """``/healthz``, ``/livez``, ``/readyz`` and each of their checks; None for an unknown check."""
    failed = _failed_checks(ctx)
    if check:
        if check not in CHECKS:
            return None
        return _failure(failed[check]) if check in failed else Response(b"ok", 200, _TEXT)
    excluded = ctx.query.get("exclude", ())
    failing = [each for each in CHECKS if each in failed and each not in excluded]
    if "verbose" not in ctx.query and not failing:
        return Response(b"ok", 200, _TEXT, _PLAIN)
    lines = [_check_line(each, each in excluded, each in failed) for each in CHECKS]
    unknown = [each for each in sorted(dict.fromkeys(excluded)) if each not in CHECKS]
    if unknown:
        names = ",".join(f'"{each}"' for each in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    lines.append(f"{name} check {'failed' if failing else 'passed'}")
    return Response("".join(f"{line}\n" for line in lines).encode(), 500 if failing else 200, _TEXT, _PLAIN)


def _check_line(check: str, excluded: bool, failed: bool) -> str:
    if excluded:
        return f"[+]{check} excluded: ok"
    # Anonymous users may ask, so the reason is in the log only.
    return f"[-]{check} failed: reason withheld" if failed else f"[+]{check} ok"


def _failed_checks(ctx: Context) -> dict[str, str]:
    """The checks that fail, with their reasons."""
    gate = ctx.state.server.store.write_gate
    try:
        if gate is not None:
            gate()
    except ApiError as error:
        return {"store": error.message}
    return {}


def _failure(why: str) -> Response:
    return Response(f"internal server error: {why}\n".encode(), 500, _TEXT, _PLAIN)


def _metrics(ctx: Context) -> Response:
    """``/metrics``."""
    state = ctx.state
    text = state.metrics.text(state.server.store, state.watches.resources())
    return Response(text, 200, CONTENT_TYPE)
