"""What is below objects, and what is no object at all: subresources, reviews, bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import NotFound, ServerError
from steersman.api.generated.authentication_v1 import TokenRequest
from steersman.api.generated.autoscaling_v1 import Scale
from steersman.api.generated.core_v1 import Binding
from steersman.api.generated.meta_v1 import ListMeta
from steersman.api.generated.policy_v1 import Eviction
from steersman.server import status_errors, tables
from steersman.server.apply.field_manager import FieldManager, document_reader, field_manager_for
from steersman.server.apply.options import APPLY_YAML
from steersman.server.apply.ownership import ResourceSchema
from steersman.server.apply.structs import typed_schema_of
from steersman.server.auth import access_reviews, authentication_reviews
from steersman.server.auth.rbac import Authorizer
from steersman.server.codec.convert import FORMS, adopt, document
from steersman.server.codec.convert import plain as builtins
from steersman.server.http import kubelet_proxy, query_options, request_body
from steersman.server.http.context import Context
from steersman.server.http.encoding import dump, whole
from steersman.server.http.request_info import first
from steersman.server.http.responses import Answer, finished, one, plain, unrouted
from steersman.server.http.writing import PATCHES, parsed, patch, scope
from steersman.server.registry.resources import Resource
from steersman.server.rest import patch as patching
from steersman.server.rest import subresources, verbs
from steersman.server.server import Server


def serve(ctx: Context, resource: Resource, body: bytes) -> Answer:
    """A request for a subresource."""
    asked = ctx.asked
    name = asked.subresource
    if name in kubelet_proxy.SUBRESOURCES:
        return kubelet_proxy.answer(ctx, resource, scope(ctx, resource))
    if asked.verb == "patch" and request_body.media_type(ctx.content_type) not in PATCHES:
        if resource.type in FORMS:
            raise patching.unknown(patching.JSON, patching.MERGE, APPLY_YAML)
        return unrouted(415)
    match name, asked.verb:
        case "scale", _:
            return _scale(ctx, resource, body)
        case _, "get":
            found = ctx.server.get(resource, scope(ctx, resource), asked.name)
            return one(ctx, resource, found)
        case _, "update" if _changes(resource, name):
            return _update(ctx, resource, body)
        case _, "patch" if _changes(resource, name):
            return patch(ctx, resource, body, name)
        case "binding", "create":
            return _bind(ctx, resource, asked.name, body)
        case "eviction", "create":
            return _evict(ctx, resource, body)
        case "token", "create":
            return _token(ctx, body)
    return unrouted(404)


def _changes(resource: Resource, name: str) -> bool:
    """Whether a subresource is a part of its object."""
    return name == "status" or name in resource.strategy.parts


def _server(ctx: Context, how: query_options.Writing) -> Server:
    return ctx.plant.rehearsal() if how.dry else ctx.server


def _update(ctx: Context, resource: Resource, body: bytes) -> Answer:
    how = query_options.writing(ctx.query, "UpdateOptions")
    server = _server(ctx, how)
    obj = request_body.obj(resource, body, ctx.content_type, ctx.reading(how.validation))
    name, user, manager = ctx.asked.name, ctx.user.name, ctx.manager(how.manager)
    if ctx.asked.subresource == "finalize":
        return one(ctx, resource, verbs.finalize(server, resource, name, obj, user=user, manager=manager))
    namespace, part = scope(ctx, resource), ctx.asked.subresource
    if part == "status":
        made = verbs.update_status(server, resource, namespace, name, obj, user=user, manager=manager)
    else:
        made = verbs.patch(
            server, resource, namespace, name, lambda old: obj, subresource=part, user=user, manager=manager
        )
    return one(ctx, resource, made)


def _scale(ctx: Context, resource: Resource, body: bytes) -> Answer:
    namespace, name, user = scope(ctx, resource), ctx.asked.name, ctx.user.name
    match ctx.asked.verb:
        case "get":
            return _shown(ctx, subresources.scale(ctx.server, resource, namespace, name, None, user))
        case "update":
            how = query_options.writing(ctx.query, "UpdateOptions")
            wanted = request_body.made(Scale, "autoscaling", "v1", "Scale", body, ctx.content_type)
            change: Callable[[Scale], object] = lambda old: wanted  # noqa: E731
        case _:
            how = query_options.writing(ctx.query, "PatchOptions")
            if resource.type in FORMS and request_body.media_type(ctx.content_type) == patching.STRATEGIC:
                raise patching.unknown(patching.JSON, patching.MERGE, APPLY_YAML)
            form, said = parsed(ctx, resource, body, how, typed_schema_of(Scale))
            if form == APPLY_YAML:
                if resource.type in FORMS:
                    raise ServerError(_UNAPPLIED)
                scale = subresources.apply_scale(
                    _server(ctx, how),
                    resource,
                    namespace,
                    name,
                    said,
                    manager=how.manager,
                    force=bool(how.force),
                    user=user,
                )
                return _shown(ctx, document("autoscaling/v1", "Scale", scale))
            change = lambda old: patching.applied(old, said, form)  # noqa: E731
    server, manager = _server(ctx, how), ctx.manager(how.manager)
    return _shown(ctx, subresources.scale(server, resource, namespace, name, change, user, manager))


_UNAPPLIED = (
    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) "
    "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)
"""What upstream says to who applies the scale of a custom resource."""


def _shown(ctx: Context, scale: dict[str, Any]) -> Answer:
    """A scale, in whichever form the client asks for."""
    choice = ctx.choice()
    if choice.target is None:
        return plain(ctx, scale)
    obj = adopt(Scale, scale)
    if choice.target.kind != "Table":
        return finished(ctx, choice, dump(tables.partial(obj, choice.target.version)))
    made = tables.lay_out(
        tables.SCALE,
        (obj,),
        ctx.server.clock.now(),
        api_version="autoscaling/v1",
        kind="Scale",
        include=tables.include_of(first(ctx.query, "includeObject")),
        metadata=ListMeta(resourceVersion=obj.metadata.resourceVersion),
        version=choice.target.version,
    )
    return finished(ctx, choice, dump(made))


def _bind(ctx: Context, pods: Resource, name: str, body: bytes) -> Answer:
    server = _server(ctx, query_options.writing(ctx.query, "CreateOptions"))
    binding = request_body.made(Binding, "", "v1", "Binding", body, ctx.content_type)
    where, name = ctx.asked.namespace, name or binding.metadata.name
    made = subresources.bind(server, pods, where, name, binding, ctx.user.name)
    return plain(ctx, made, 201)


def _evict(ctx: Context, pods: Resource, body: bytes) -> Answer:
    eviction = request_body.made(Eviction, "policy", "v1", "Eviction", body, ctx.content_type)
    wish = eviction.deleteOptions
    how = query_options.writing(ctx.query, "CreateOptions")
    dry = how.dry or bool(wish is not None and wish.dryRun)
    server = ctx.plant.rehearsal() if dry else ctx.server
    made = subresources.call(
        server,
        pods,
        ctx.asked.namespace,
        ctx.asked.name,
        "eviction",
        "create",
        builtins(eviction),
        ctx.user.name,
    )
    return plain(ctx, made, 201)


def _token(ctx: Context, body: bytes) -> Answer:
    mint = ctx.plant.mint
    if mint is None:
        raise NotFound("the server could not find the requested resource", reason="NotFound")
    asked, clock = ctx.asked, ctx.server.clock
    request = request_body.made(
        TokenRequest, "authentication.k8s.io", "v1", "TokenRequest", body, ctx.content_type
    )
    minted = mint.request(request, asked.namespace, asked.name, ctx.plant.objects, clock.now(), clock.random)
    ctx.warnings += minted.warnings
    asked_for = replace(
        request, spec=replace(request.spec, expirationSeconds=minted.answer.spec.expirationSeconds)
    )
    answer = _owned(ctx, _TOKENS, asked_for, minted.answer)
    made = whole("authentication.k8s.io/v1", "TokenRequest", answer)
    return finished(ctx, ctx.choice(meta=False), made, 201)


# -- what is only ever created ----------------------------------------------------------------


def create_only(ctx: Context, resource: Resource, body: bytes) -> Answer | None:
    """A request for what is not stored; None where it is."""
    handler = _REVIEWS.get(resource.id)
    if handler is None:
        return None
    if resource.id == "bindings":
        return _bind(ctx, ctx.server.registry.find("", "v1", "pods"), "", body)
    asked = request_body.obj(resource, body, ctx.content_type)
    made = handler(ctx, asked)
    if resource.id in _TRACKED:
        made = _owned(ctx, field_manager_for(resource), asked, made)
    answer = whole(resource.api_version, resource.kind, made)
    return finished(ctx, ctx.choice(meta=False), answer, 201)


_TRACKED = frozenset(
    {
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "tokenreviews.authentication.k8s.io",
    }
)
"""What tells who owns it, though it is gone at once."""
_TOKENS = FieldManager(
    ResourceSchema("authentication.k8s.io/v1", "TokenRequest", typed_schema_of(TokenRequest), "token"),
    document_reader("authentication.k8s.io/v1", "TokenRequest"),
    document_reader("authentication.k8s.io/v1", "TokenRequest")(TokenRequest()),
    TokenRequest(),
)


def _owned(ctx: Context, follows: FieldManager, asked: Any, made: Any) -> Any:
    manager = ctx.manager(first(ctx.query, "fieldManager"))
    owners = follows.created(asked, manager, ctx.server.now())
    return replace(made, metadata=replace(made.metadata, managedFields=owners))


def _authorizer(ctx: Context) -> Authorizer:
    authorizer = ctx.plant.authorizer
    if authorizer is None:
        raise status_errors.internal("this server lets everybody do anything")
    return authorizer


def _local(ctx: Context, body: Any) -> Any:
    return access_reviews.local_subject_access_review(body, ctx.asked.namespace, _authorizer(ctx))


_REVIEWS: Mapping[str, Callable[[Context, Any], Any]] = {
    "bindings": lambda ctx, body: None,
    "localsubjectaccessreviews.authorization.k8s.io": _local,
    "selfsubjectaccessreviews.authorization.k8s.io": lambda ctx, body: (
        access_reviews.self_subject_access_review(body, ctx.user, _authorizer(ctx))
    ),
    "selfsubjectreviews.authentication.k8s.io": lambda ctx, body: authentication_reviews.self_subject_review(
        ctx.user, ctx.server.clock.now()
    ),
    "selfsubjectrulesreviews.authorization.k8s.io": lambda ctx, body: (
        access_reviews.self_subject_rules_review(body, ctx.user, _authorizer(ctx))
    ),
    "subjectaccessreviews.authorization.k8s.io": lambda ctx, body: access_reviews.subject_access_review(
        body, _authorizer(ctx)
    ),
    "tokenreviews.authentication.k8s.io": lambda ctx, body: authentication_reviews.token_review(
        body, ctx.plant.authenticator, ctx.server.clock.now()
    ),
}
