"""Handlers of resource requests: from an HTTP request to a REST `Request`, and from its result to a response."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from steersman.http.target import first, flag
from steersman.server import status_errors
from steersman.server.apply.options import APPLY_YAML, validate_patch_options
from steersman.server.codec.convert import CODECS
from steersman.server.http import query_options, request_body
from steersman.server.http.context import Context
from steersman.server.http.query_options import WriteOptions
from steersman.server.http.responses import (
    Response,
    deleted_response,
    document_response,
    list_response,
    object_response,
    review_response,
    routing_error,
    scale_response,
)
from steersman.server.registry.resources import REVIEWS, Resource
from steersman.server.rest import patch as patching
from steersman.server.rest.listing import get, list_objects
from steersman.server.rest.perform import body_type, perform
from steersman.server.rest.request import ListOptions, Request, Result
from steersman.server.rest.scale import get_scale, patched_scale
from steersman.server.rest.subresources import KUBELET_SUBRESOURCES
from steersman.server.rest.warnings import deletion_warnings, write_warnings
from steersman.server.storage.store import object_key

_SHOWN_WHEN_DELETED = frozenset(
    {
        "csidrivers.storage.k8s.io",
        "csinodes.storage.k8s.io",
        "deviceclasses.resource.k8s.io",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourcequotas",
        "resourceslices.resource.k8s.io",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattachments.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    }
)
"""Resources whose deletion is answered with the object; the others are answered with a Status."""


# -- reading ----------------------------------------------------------------------------------


def handle_get(ctx: Context, resource: Resource) -> Response:
    """GET of an object or a subresource."""
    request = _request(ctx, resource)
    if ctx.info.subresource == "scale":
        return scale_response(ctx, get_scale(ctx.server, request))
    return object_response(ctx, resource, get(ctx.server, request))


def handle_list(ctx: Context, resource: Resource) -> Response:
    """GET of a collection, or a page of it."""
    request = list_request(ctx, resource, query_options.list_options(ctx.query))
    return list_response(ctx, resource, list_objects(ctx.server, request))


def list_request(ctx: Context, resource: Resource, options: ListOptions) -> Request:
    """The `Request` of a list or watch."""
    info = ctx.info
    return Request(ctx.user, info.verb, resource, _scope(ctx, resource), info.name, list_options=options)


def _request(ctx: Context, resource: Resource) -> Request:
    info = ctx.info
    namespace = info.namespace if resource.namespaced else ""
    if ctx.query and not info.subresource:
        options = ListOptions(resource_version=first(ctx.query, "resourceVersion"))
        return Request(ctx.user, info.verb, resource, namespace, info.name, list_options=options)
    return Request(ctx.user, info.verb, resource, namespace, info.name, info.subresource)


def _scope(ctx: Context, resource: Resource) -> str:
    """The namespace of a request; none for cluster-scoped resources."""
    return ctx.info.namespace if resource.namespaced else ""


# -- writing ----------------------------------------------------------------------------------


def handle_write(ctx: Context, resource: Resource, body: bytes) -> Response:
    """POST, PUT, PATCH or DELETE. Its warnings are sent also where it is refused."""
    # A client that accepts no representation of the result is refused before anything is written.
    ctx.choice(custom=resource.type in CODECS)
    warnings = ctx.server.request_warnings
    warnings.clear()
    try:
        return _write(ctx, resource, body)
    finally:
        if warnings:
            ctx.warnings += warnings


def _write(ctx: Context, resource: Resource, body: bytes) -> Response:
    match ctx.info.verb:
        case "create":
            return _create(ctx, resource, body)
        case "update":
            return _update(ctx, resource, body)
        case "patch":
            return _patch(ctx, resource, body)
        case "delete":
            return _delete(ctx, resource, body)
        case "deletecollection":
            return _delete_collection(ctx, resource, body)
    return routing_error(405)


def is_served(resource: Resource, subresource: str) -> bool:
    """Whether a subresource has a handler."""
    return (
        subresource in ("binding", "eviction", "scale", "status", "token", *KUBELET_SUBRESOURCES)
        or subresource in resource.strategy.subresource_updates
    )


def _create(ctx: Context, resource: Resource, raw: bytes) -> Response:
    options = query_options.write_options(ctx.query, "CreateOptions")
    body = _decoded(ctx, resource, raw, options)
    request = _write_request(ctx, resource, options)
    result = perform(ctx.server, request, body)
    ctx.warnings += write_warnings(ctx.server, request, result, None)
    if isinstance(result.obj, Mapping):
        return document_response(ctx, result.obj, 201)
    if resource.id in REVIEWS or request.subresource:
        return review_response(ctx, body_type(resource, request.subresource), result.obj)
    return object_response(ctx, resource, result.obj, 201)


def _update(ctx: Context, resource: Resource, raw: bytes) -> Response:
    options = query_options.write_options(ctx.query, "UpdateOptions")
    body = _decoded(ctx, resource, raw, options)
    request = _write_request(ctx, resource, options)
    return _written(ctx, request, body)


def _patch(ctx: Context, resource: Resource, raw: bytes) -> Response:
    info, patch_type = ctx.info, request_body.media_type(ctx.content_type)
    if patch_type not in patching.PATCH_TYPES:
        if resource.type in CODECS:
            raise status_errors.unsupported_media_type(patching.JSON, patching.MERGE, APPLY_YAML)
        return routing_error(415)
    options = query_options.write_options(ctx.query, "PatchOptions")
    validate_patch_options(patch_type, options.field_manager, options.force)
    is_apply, is_scale = patch_type == APPLY_YAML, info.subresource == "scale"
    # A missing object is refused before the patch is read.
    old = None if is_apply else ctx.server.get(resource, _scope(ctx, resource), info.name)
    request = _write_request(ctx, resource, options, patch_type)
    body = request_body.decode_patch(
        raw,
        ctx.field_checks(options.field_validation),
        partial(
            patching.unknown_scale_fields,
            partial(patched_scale, ctx.server, request),
            content_type=patch_type,
        )
        if is_scale
        else partial(patching.unknown_fields, resource, old, content_type=patch_type),
        is_apply=is_apply,
        is_list=patch_type == patching.JSON,
    )
    return _written(ctx, request, body)


def _written(ctx: Context, request: Request, body: Any) -> Response:
    """Carries out an update or patch."""
    old = ctx.server.table(request.resource).get(object_key(request.namespace, request.name))
    result = perform(ctx.server, request, body)
    if request.subresource == "scale":
        return scale_response(ctx, result.obj)
    ctx.warnings += write_warnings(ctx.server, request, result, old)
    return object_response(ctx, request.resource, result.obj, 201 if result.created else 200)


def _decoded(ctx: Context, resource: Resource, raw: bytes, options: WriteOptions) -> Any:
    """The body of a create or update."""
    checks = ctx.field_checks(options.field_validation)
    kind = body_type(resource, ctx.info.subresource)
    if kind.type is not resource.type:
        body = request_body.decode(*kind, raw, ctx.content_type, checks)
    else:
        body = request_body.decode_object(resource, raw, ctx.content_type, checks)
    if ctx.audit is not None:
        ctx.audit.request_object(body)
    return body


def _write_request(ctx: Context, resource: Resource, options: WriteOptions, patch_type: str = "") -> Request:
    info = ctx.info
    return Request(
        ctx.user,
        info.verb,
        resource,
        _scope(ctx, resource),
        info.name,
        info.subresource,
        options.dry_run,
        ctx.field_manager(options.field_manager),
        patch_type,
        bool(options.force),
        options.field_validation,
        named_manager=options.field_manager,
    )


# -- deleting ---------------------------------------------------------------------------------


def _delete(ctx: Context, resource: Resource, raw: bytes) -> Response:
    request, accepted = _delete_request(ctx, resource, raw)
    result: Result = perform(ctx.server, request)
    if result.deleted and resource.id not in _SHOWN_WHEN_DELETED:
        return deleted_response(ctx, resource, result.obj)
    return object_response(ctx, resource, result.obj, 202 if accepted and not result.deleted else 200)


def _delete_collection(ctx: Context, resource: Resource, raw: bytes) -> Response:
    request, _ = _delete_request(ctx, resource, raw)
    return list_response(ctx, resource, perform(ctx.server, request).obj)


def _delete_request(ctx: Context, resource: Resource, raw: bytes) -> tuple[Request, bool]:
    """The request, and whether a deletion that must wait is answered with 202."""
    info = ctx.info
    listed = ListOptions()
    if info.verb != "delete":
        listed = query_options.list_options(ctx.query, watch=flag(ctx.query, "watch"))
    options = query_options.delete_options(ctx.query, raw)
    request = Request(
        ctx.user,
        info.verb,
        resource,
        _scope(ctx, resource),
        info.name,
        dry_run=options.dry_run,
        list_options=listed,
        deletion=options.deletion,
    )
    ctx.warnings += deletion_warnings(request)
    return request, options.accepted
