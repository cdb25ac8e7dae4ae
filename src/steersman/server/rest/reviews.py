"""Reviews and TokenRequests: created, answered, and never stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from msgspec.structs import replace

from steersman.api.errors import NotFound
from steersman.api.generated.authentication_v1 import TokenRequest
from steersman.server import status_errors
from steersman.server.apply.field_manager import FieldManager, document_reader, field_manager_for
from steersman.server.apply.ownership import ResourceSchema
from steersman.server.apply.structs import typed_schema_of
from steersman.server.auth import reviews
from steersman.server.auth.attributes import AlwaysAllow, Authorizer
from steersman.server.auth.lookup import ObjectGetter, ObjectLookup
from steersman.server.rest.create import admit_body
from steersman.server.rest.request import Request, Result
from steersman.server.server import Server
from steersman.server.storage.store import object_key

_TRACKED = frozenset(
    {
        "localsubjectaccessreviews.authorization.k8s.io",
        "selfsubjectaccessreviews.authorization.k8s.io",
        "subjectaccessreviews.authorization.k8s.io",
        "tokenreviews.authentication.k8s.io",
    }
)
"""The reviews that are answered with ``managedFields``."""


def review(server: Server, request: Request, body: Any) -> Result:
    """Answers a review."""
    body = admit_body(server, request, request.resource, request.name, body)
    answer = _REVIEWS[request.resource.id](server, request, body)
    if request.resource.id in _TRACKED:
        answer = _with_owners(server, request, field_manager_for(request.resource), body, answer)
    return Result(answer, created=True)


def request_token(server: Server, request: Request, body: TokenRequest) -> Result:
    """Issues a token of a ServiceAccount."""
    issuer, clock = server.token_issuer, server.clock
    if issuer is None:
        raise NotFound("the server could not find the requested resource", reason="NotFound")
    body = admit_body(server, request, request.resource, request.name, body)
    issued = issuer.request(
        body, request.namespace, request.name, objects_of(server), clock.now(), clock.random
    )
    granted = issued.answer.spec.expirationSeconds
    body = replace(body, spec=replace(body.spec, expirationSeconds=granted))
    answer = _with_owners(server, request, _token_request_owning(), body, issued.answer)
    return Result(answer, created=True, warnings=issued.warnings)


def objects_of(server: Server) -> ObjectGetter:
    """The objects that tokens are issued for and bound to, looked up in a server's store."""
    return ObjectLookup(
        lambda resource, namespace, name: server.store.table(resource).get(object_key(namespace, name))
    )


@cache
def _token_request_owning() -> FieldManager:
    read = document_reader("authentication.k8s.io/v1", "TokenRequest")
    schema = ResourceSchema(
        "authentication.k8s.io/v1", "TokenRequest", typed_schema_of(TokenRequest), "token"
    )
    return FieldManager(schema, read, read(TokenRequest()), TokenRequest())


def _with_owners(server: Server, request: Request, ownership: FieldManager, body: Any, answer: Any) -> Any:
    owners = ownership.created(body, request.field_manager, server.now())
    return replace(answer, metadata=replace(answer.metadata, managedFields=owners))


def _authorizer(server: Server) -> Authorizer:
    return AlwaysAllow() if server.authorizer is None else server.authorizer


def _subject_access(server: Server, request: Request, body: Any) -> Any:
    return reviews.subject_access_review(body, _authorizer(server))


def _local_subject_access(server: Server, request: Request, body: Any) -> Any:
    return reviews.local_subject_access_review(body, request.namespace, _authorizer(server))


def _self_subject_access(server: Server, request: Request, body: Any) -> Any:
    return reviews.self_subject_access_review(body, request.user, _authorizer(server))


def _self_subject_rules(server: Server, request: Request, body: Any) -> Any:
    if server.authorizer is None:
        raise status_errors.internal("this server has no authorizer: every request is allowed")
    return reviews.self_subject_rules_review(body, request.user, server.authorizer)


def _self_subject(server: Server, request: Request, body: Any) -> Any:
    return reviews.self_subject_review(request.user, server.clock.now())


def _token(server: Server, request: Request, body: Any) -> Any:
    if server.authenticator is None:
        raise status_errors.internal("this server has no authenticator: it cannot review tokens")
    return reviews.token_review(body, server.authenticator, server.clock.now())


_REVIEWS: Mapping[str, Callable[[Server, Request, Any], Any]] = {
    "localsubjectaccessreviews.authorization.k8s.io": _local_subject_access,
    "selfsubjectaccessreviews.authorization.k8s.io": _self_subject_access,
    "selfsubjectreviews.authentication.k8s.io": _self_subject,
    "selfsubjectrulesreviews.authorization.k8s.io": _self_subject_rules,
    "subjectaccessreviews.authorization.k8s.io": _subject_access,
    "tokenreviews.authentication.k8s.io": _token,
}
