"""Create, update, patch and delete."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from steersman.api.generated.certificates_v1 import CertificateSigningRequest
from steersman.server.apply.field_manager import field_manager_for
from steersman.server.apply.options import APPLY_YAML, validate_patch_options
from steersman.server.apply.schema import TypedSchema
from steersman.server.http import query_options, request_body
from steersman.server.http.context import Context
from steersman.server.http.responses import Answer, deleted, many, one, unrouted
from steersman.server.http.warnings import remark
from steersman.server.registry.resources import Resource
from steersman.server.rest import patch as patching
from steersman.server.rest import verbs
from steersman.server.rest.apply import apply
from steersman.server.rest.list import Listing
from steersman.server.storage.selection import select
from steersman.server.storage.store import object_key

_SHOWN = frozenset(
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
"""What is shown a last time when it is gone; of the others only a Status says so."""


def scope(ctx: Context, resource: Resource) -> str:
    """The namespace of a request."""
    return ctx.asked.namespace if resource.namespaced else ""


def create(ctx: Context, resource: Resource, body: bytes) -> Answer:
    """Store a new object."""
    how = query_options.writing(ctx.query, "CreateOptions")
    obj = request_body.obj(resource, body, ctx.content_type, ctx.reading(how.validation))
    if resource.type is CertificateSigningRequest:
        obj = _signed(ctx, obj)
    manager = ctx.manager(how.manager)
    made = verbs.create(
        _server(ctx, how), resource, ctx.asked.namespace, obj, user=ctx.user.name, manager=manager
    )
    remark(ctx, "CREATE", resource, made, None)
    return one(ctx, resource, made, 201)


def _signed(ctx: Context, csr: CertificateSigningRequest) -> CertificateSigningRequest:
    """A request for a certificate says who made it, and only the server can know."""
    user = ctx.user
    spec = replace(csr.spec, username=user.name, uid=user.uid, groups=user.groups, extra=user.extra)
    return replace(csr, spec=spec)


def update(ctx: Context, resource: Resource, body: bytes) -> Answer:
    """Replace an object."""
    how = query_options.writing(ctx.query, "UpdateOptions")
    obj = request_body.obj(resource, body, ctx.content_type, ctx.reading(how.validation))
    namespace, name = scope(ctx, resource), ctx.asked.name
    server = _server(ctx, how)
    old = server.table(resource).get(object_key(namespace, name))
    manager = ctx.manager(how.manager)
    made = verbs.update(server, resource, namespace, name, obj, user=ctx.user.name, manager=manager)
    remark(ctx, "UPDATE", resource, made, old)
    return one(ctx, resource, made, 201 if old is None else 200)


def patch(ctx: Context, resource: Resource, body: bytes, subresource: str = "") -> Answer:
    """Change an object, or its status."""
    if request_body.media_type(ctx.content_type) not in PATCHES:
        return unrouted(415)
    how = query_options.writing(ctx.query, "PatchOptions")
    server, namespace, name = _server(ctx, how), scope(ctx, resource), ctx.asked.name
    form, change = parsed(ctx, resource, body, how)
    old = server.table(resource).get(object_key(namespace, name))
    if form == APPLY_YAML:
        answer = apply(
            server,
            resource,
            namespace,
            name,
            change,
            manager=how.manager,
            force=bool(how.force),
            subresource=subresource,
            user=ctx.user.name,
        )
        remark(ctx, "CREATE" if answer.created else "UPDATE", resource, answer.obj, old)
        return one(ctx, resource, answer.obj, 201 if answer.created else 200)
    made = verbs.patch(
        server,
        resource,
        namespace,
        name,
        lambda old: patching.patched(resource, old, change, form),
        subresource=subresource,
        user=ctx.user.name,
        manager=ctx.manager(how.manager),
    )
    remark(ctx, "UPDATE", resource, made, old)
    return one(ctx, resource, made)


def parsed(
    ctx: Context,
    resource: Resource,
    body: bytes,
    how: query_options.Writing,
    schema: TypedSchema | None = None,
) -> tuple[str, Any]:
    """The media type of a patch, and the patch as plain data. Raises `NotFound`, `BadRequest` or `Invalid`.

    ``schema`` is what is patched, where that is not the object itself.
    """
    form = request_body.media_type(ctx.content_type)
    validate_patch_options(form, how.manager, how.force)
    shown = None
    if form != APPLY_YAML:
        # Nobody looks at a patch of nothing.
        old = ctx.server.get(resource, scope(ctx, resource), ctx.asked.name)
        if schema is None:
            shown = lambda change: patching.shown(resource, old, change, form)  # noqa: E731
    return form, request_body.patch(
        body,
        field_manager_for(resource).resource_schema.schema if schema is None else schema,
        ctx.reading(how.validation),
        applied=form == APPLY_YAML,
        listed=form == patching.JSON,
        shown=shown,
    )


PATCHES = (patching.JSON, patching.MERGE, patching.STRATEGIC, APPLY_YAML)


def delete(ctx: Context, resource: Resource, body: bytes) -> Answer:
    """Delete an object, or begin to."""
    how = query_options.deleting(ctx.query, body)
    _orphaning(ctx, resource, how)
    server = ctx.plant.rehearsal() if how.dry else ctx.server
    obj, gone = verbs.delete(
        server, resource, scope(ctx, resource), ctx.asked.name, how.options, user=ctx.user.name
    )
    if gone and resource.id not in _SHOWN:
        return deleted(ctx, resource, obj)
    return one(ctx, resource, obj, 202 if how.waits and not gone else 200)


def _orphaning(ctx: Context, resource: Resource, how: query_options.Deleting) -> None:
    if resource.id == "jobs.batch" and how.options.propagation is None:
        ctx.warnings.append(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to "
            "remove them or set propagationPolicy=Orphan to suppress this warning"
        )


def delete_collection(ctx: Context, resource: Resource, body: bytes) -> Answer:
    """Delete all objects of a selection."""
    how = query_options.deleting(ctx.query, body)
    _orphaning(ctx, resource, how)
    asked = query_options.listing(ctx.query)
    server = ctx.plant.rehearsal() if how.dry else ctx.server
    selection = select(resource, scope(ctx, resource), asked.labels, asked.fields)
    found = verbs.delete_collection(server, resource, selection, how.options, user=ctx.user.name)
    return many(ctx, resource, Listing(found, server.store.revision))


def _server(ctx: Context, how: query_options.Writing) -> Any:
    return ctx.plant.rehearsal() if how.dry else ctx.server
