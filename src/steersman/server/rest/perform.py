"""perform: carries out a request that writes, whichever verb it has."""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.api.generated.authentication_v1 import TokenRequest
from steersman.api.generated.autoscaling_v1 import Scale
from steersman.api.generated.core_v1 import Binding
from steersman.api.generated.policy_v1 import Eviction
from steersman.server import status_errors
from steersman.server.registry.resources import REVIEWS, Resource
from steersman.server.rest import eviction, scale, subresources
from steersman.server.rest.create import create
from steersman.server.rest.delete import delete, delete_collection
from steersman.server.rest.dry_run import DryRunServer
from steersman.server.rest.patch import patch
from steersman.server.rest.request import Request, Result
from steersman.server.rest.update import update
from steersman.server.server import Server


class BodyType(NamedTuple):
    """The kind of the body of a create or update, and its struct."""

    type: type[Any]
    group: str
    version: str
    kind: str


_BODIES = {
    "binding": BodyType(Binding, "", "v1", "Binding"),
    "eviction": BodyType(Eviction, "policy", "v1", "Eviction"),
    "scale": BodyType(Scale, "autoscaling", "v1", "Scale"),
    "token": BodyType(TokenRequest, "authentication.k8s.io", "v1", "TokenRequest"),
}


def body_type(resource: Resource, subresource: str) -> BodyType:
    """The kind of body that creating or updating a resource or subresource takes."""
    found = _BODIES.get(subresource) if subresource else None
    return found or BodyType(resource.type, resource.group, resource.version, resource.kind)


def perform(server: Server, request: Request, body: Any = None) -> Result:
    """Carries out a create, update, patch, delete or deletecollection.

    ``body`` is a struct of `body_type`, or a patch as plain data. Dry run is decided here, for every verb.
    """
    server.request_warnings.clear()
    if request.dry_run or (isinstance(body, Eviction) and eviction.is_dry_run(body)):
        server = DryRunServer(server)
    if request.subresource in _BODIES:
        return _subresource(server, request, body)
    match request.verb:
        case "update":
            return update(server, request, body)
        case "patch":
            return patch(server, request, body)
        case "create" if not request.subresource:
            return _create(server, request, body)
        case "delete" if not request.subresource:
            return delete(server, request)
        case "deletecollection":
            return Result(delete_collection(server, request))
    raise _unsupported(request)


def _create(server: Server, request: Request, body: Any) -> Result:
    resource = request.resource
    if resource.id in REVIEWS:
        # Imported when first needed, which is never in most processes.
        from steersman.server.rest.reviews import review

        return review(server, request, body)
    if resource.id == "bindings":
        return Result(subresources.bind(server, request, body), created=True)
    return Result(create(server, request, body), created=True)


def _subresource(server: Server, request: Request, body: Any) -> Result:
    match request.subresource, request.verb:
        case "scale", "update":
            return Result(scale.update_scale(server, request, body))
        case "scale", "patch":
            return Result(scale.patch_scale(server, request, body))
        case "binding", "create":
            return Result(subresources.bind(server, request, body), created=True)
        case "eviction", "create":
            return Result(eviction.evict(server, request, body), created=True)
        case "token", "create":
            from steersman.server.rest.reviews import request_token

            return request_token(server, request, body)
    raise _unsupported(request)


def _unsupported(request: Request) -> Exception:
    resource = request.resource
    plural = f"{resource.plural}/{request.subresource}" if request.subresource else resource.plural
    return status_errors.unsupported(resource.group, plural, request.verb)
