"""What is served besides resources: discovery, OpenAPI, version, keys, and the list of all these paths."""

from __future__ import annotations

import platform
import sys
from typing import Any

import msgspec

from steersman.api.errors import NotAcceptable, NotFound
from steersman.server.codec.negotiation import JSON, YAML
from steersman.server.discovery import documents
from steersman.server.discovery.documents import AGGREGATED, Tagged
from steersman.server.discovery.openapi import binary
from steersman.server.http import health
from steersman.server.http.context import Context
from steersman.server.http.encoding import dump
from steersman.server.http.request_info import first
from steersman.server.http.responses import END, Answer, finished, plain, unrouted

VERSION = "v1.36.4"
"""The Kubernetes we are."""

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


def serve(ctx: Context) -> Answer:
    """A request that is for no resource."""
    path = ctx.asked.path
    parts = path.strip("/").split("/")
    if ctx.asked.verb not in ("get", "head"):
        return unrouted(405) if parts[0] in ("api", "apis", "version") else nothing()
    match parts:
        case [""]:
            return _for_people({"paths": _paths(ctx)})
        case ["api" | "apis"]:
            return _root(ctx, parts[0])
        case ["api", version]:
            return _discovered(ctx, "", version)
        case ["apis", group]:
            return _found(ctx, lambda: ctx.plant.catalogue.discovery.group(group))
        case ["apis", group, version]:
            return _discovered(ctx, group, version)
        case ["version"]:
            return _for_people(version_info())
        case [("healthz" | "livez" | "readyz") as name, *check] if len(check) < 2:
            return health.serve(ctx, name, "".join(check)) or nothing()
        case ["metrics"]:
            return health.metrics(ctx)
        case ["openapi", "v2"]:
            return _v2(ctx)
        case ["openapi", "v3", *name]:
            return _v3(ctx, "/".join(name))
    document = ctx.plant.openid.get(path)
    if document is not None:
        headers = (("Cache-Control", document.cache_control),)
        return Answer(document.body, 200, document.content_type, headers)
    return nothing()


def nothing() -> Answer:
    """What there is where there is nothing."""
    headers = (("X-Content-Type-Options", "nosniff"),)
    return Answer(b"404 page not found\n", 404, "text/plain; charset=utf-8", headers)


def _for_people(made: Any) -> Answer:
    return Answer(msgspec.json.format(dump(made), indent=2))


def _paths(ctx: Context) -> list[str]:
    found = dict.fromkeys(_PATHS)
    for group in ctx.plant.catalogue.discovery.apis()["groups"]:
        found[f"/apis/{group['name']}"] = None
        for version in group["versions"]:
            found[f"/apis/{version['groupVersion']}"] = None
    for name in ("healthz", "livez", "readyz"):
        found |= dict.fromkeys(f"/{name}/{check}" for check in health.CHECKS)
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


def _root(ctx: Context, name: str) -> Answer:
    found = ctx.plant.catalogue.discovery
    choice = documents.choose(ctx.request.headers.get("Accept", ""))
    if choice.target == AGGREGATED:
        tagged = found.aggregated_api if name == "api" else found.aggregated_apis
        return _tagged(ctx, tagged, _AGGREGATED, ("Cache-Control", "public"), end=END)
    made = found.api(ctx.plant.address) if name == "api" else found.apis()
    return finished(ctx, choice, dump(made))


def _discovered(ctx: Context, group: str, version: str) -> Answer:
    return _found(ctx, lambda: ctx.plant.catalogue.discovery.resources(group, version))


def _found(ctx: Context, make: Any) -> Answer:
    try:
        made = make()
    except NotFound:
        return nothing()
    return plain(ctx, made)


def _tagged(
    ctx: Context, tagged: Tagged, content_type: str, *headers: tuple[str, str], end: bytes = b""
) -> Answer:
    """A document that clients keep, and ask for again only if it has changed."""
    told = (("ETag", tagged.etag), ("Vary", "Accept"), *headers)
    if ctx.request.headers.get("If-None-Match") == tagged.etag:
        return Answer(b"", 304, content_type, told)
    return Answer(tagged.body + end, 200, content_type, told)


# -- OpenAPI ----------------------------------------------------------------------------------


def _takes_json(ctx: Context) -> None:
    """Clients that want protobuf here say so in media types of their own. Raises `NotAcceptable`."""
    accept = ctx.request.headers.get("Accept", "")
    for clause in accept.split(",") if accept else ("*/*",):
        if clause.partition(";")[0].strip() in ("*/*", "application/*", JSON, YAML):
            return
    raise NotAcceptable(f"only the following media types are accepted: {JSON}", reason="NotAcceptable")


def _v2(ctx: Context) -> Answer:
    openapi = ctx.plant.catalogue.openapi
    if ctx.request.headers.get("Accept", "").startswith(binary.ACCEPTED):
        return _tagged(ctx, openapi.v2_binary(), binary.RETURNED)
    _takes_json(ctx)
    return _tagged(ctx, openapi.v2(), JSON)


def _v3(ctx: Context, name: str) -> Answer:
    openapi = ctx.plant.catalogue.openapi
    if not name:
        # Nobody upstream says what it is, so it is told by its first bytes.
        return Answer(dump(openapi.index()), 200, "text/plain; charset=utf-8")
    found = openapi.v3(name)
    if found is None:
        return Answer(b"", 404, "")
    _takes_json(ctx)
    asked, current = first(ctx.query, "hash"), found.etag.strip('"')
    if not asked:
        return _tagged(ctx, found, JSON)
    if asked != current:
        return Answer(b"", 301, JSON, (("Location", f"/openapi/v3/{name}?hash={current}"),))
    # Who names the hash can keep what it got for good.
    return _tagged(ctx, found, JSON, ("Cache-Control", "public, immutable"))
