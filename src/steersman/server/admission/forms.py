"""AdmissionForm: the objects of a request as webhooks and policies see them, and the request itself as a document.

An object is shown at the version that the rules of a webhook or policy match; of a subresource, its own view or body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from steersman.api.generated.authentication_v1 import TokenRequest
from steersman.api.generated.core_v1 import Binding
from steersman.api.generated.policy_v1 import Eviction
from steersman.server import status_errors
from steersman.server.auth.users import User
from steersman.server.codec.convert import to_document, to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes, RequestOptions


class GVK(NamedTuple):
    """A kind, as a review names it."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def document(self) -> dict[str, str]:
        return self._asdict()


def requested_resource(request: AdmissionAttributes) -> Resource:
    """The resource at the version that the client has asked for."""
    options = request.options
    return (options.requested if options is not None else None) or request.resource


# -- objects ----------------------------------------------------------------------------------


_BODIES: Mapping[type[Any], GVK] = {
    Binding: GVK("", "v1", "Binding"),
    Eviction: GVK("policy", "v1", "Eviction"),
    TokenRequest: GVK("authentication.k8s.io", "v1", "TokenRequest"),
}
"""The bodies of subresources that are kinds of their own."""


class AdmissionForm(msgspec.Struct, frozen=True):
    """The form in which a webhook is shown the objects of a request, and the way back."""

    kind: GVK
    type: type[Any]
    matched: Resource
    requested: Resource

    @classmethod
    def of(cls, request: AdmissionAttributes, matched: Resource) -> AdmissionForm:
        view, obj, resource = request.view, request.obj, request.resource
        if view is not None:
            return cls(GVK(view.group, view.version, view.kind), view.type, resource, resource)
        own = _BODIES.get(type(obj)) if request.subresource else None
        if own is not None:
            return cls(own, type(obj), resource, resource)
        if request.operation == "CONNECT" and obj is not None:
            return cls(GVK("", "v1", type(obj).__name__), type(obj), resource, resource)
        return cls(GVK(matched.group, matched.version, matched.kind), matched.type, matched, resource)

    def document(self, obj: Any, request: AdmissionAttributes, *, new: bool = True) -> dict[str, Any]:
        """An object as a document; a new one with the metadata it will have."""
        if new and hasattr(obj, "metadata"):
            meta = obj.metadata
            owners = meta.managedFields if request.owners is None else request.owners
            space = request.namespace if request.resource.namespaced else ""
            obj = replace(obj, metadata=replace(meta, namespace=space, managedFields=owners))
        if request.view is not None:
            obj = request.view.read(obj)
        elif self.matched is not self.requested:
            obj = _converted(obj, self.requested, self.matched)
        return to_document(self.kind.api_version, self.kind.kind, obj)

    def read(self, document: Any, request: AdmissionAttributes) -> Any:
        """The object of a document that a webhook has patched, with defaults, at the version of the request."""
        wrong = go_decode_error(self.type, document)
        try:
            made = to_struct(self.type, document)
        except ValueError as error:
            raise status_errors.internal(wrong or str(error)) from None
        if hasattr(made, "metadata"):
            # differs: a webhook cannot change managedFields; upstream lets it, where the result is valid.
            made = replace(
                made, metadata=replace(made.metadata, managedFields=request.obj.metadata.managedFields)
            )
        if request.view is not None:
            return request.view.write(request.obj, made)
        if type(made) in _BODIES or request.operation == "CONNECT":
            return made
        strategy = self.matched.strategy
        made = strategy.status_default(made) if request.subresource == "status" else strategy.default(made)
        return made if self.matched is self.requested else _converted(made, self.matched, self.requested)


def _converted(obj: Any, source: Resource, target: Resource) -> Any:
    """An object of one served version as one of another."""
    if source.convert is not None:
        return source.convert(obj, target)
    if source.store is not None:
        obj = source.store(obj)
    return obj if target.serve is None else target.serve(obj)


# -- the request ------------------------------------------------------------------------------


def admission_request(
    request: AdmissionAttributes,
    kind: GVK,
    resource: Resource,
    requested_kind: GVK,
    requested: Resource,
    obj: Mapping[str, Any] | None,
    old: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The ``request`` of a review, without its uid. ``kind`` and ``resource`` are those that the webhook's rules match."""
    made: dict[str, Any] = {
        "uid": "",
        "kind": kind.document(),
        "resource": _gvr(resource),
        "requestKind": requested_kind.document(),
        "requestResource": _gvr(requested),
        "operation": request.operation,
        "userInfo": _user_info(request.user),
        "object": obj,
        "oldObject": old,
        "dryRun": request.dry_run,
        "options": _options(request),
    }
    if request.subresource:
        made["subResource"] = made["requestSubResource"] = request.subresource
    if request.name:
        made["name"] = request.name
    if namespace := review_namespace(request):
        made["namespace"] = namespace
    return made


def review_namespace(request: AdmissionAttributes) -> str:
    """The namespace of a request. As upstream, a Namespace is in itself."""
    return request.name if request.resource.id == "namespaces" else request.namespace


def _gvr(resource: Resource) -> dict[str, str]:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user_info(user: User) -> dict[str, Any]:
    made: dict[str, Any] = {"username": user.name, "uid": user.uid, "groups": user.groups}
    made["extra"] = {key: list(values) for key, values in user.extra.items()}
    return {name: value for name, value in made.items() if value}


def _options(request: AdmissionAttributes) -> dict[str, Any] | None:
    """The options of a request, as the document of upstream's type."""
    options = request.options
    if request.operation == "CONNECT":
        return None
    if request.operation == "DELETE":
        found = {} if options is None else _delete_options(options)
        kind = "DeleteOptions"
    else:
        # An update or patch that creates an object is admitted with the options of a create.
        kind = "CreateOptions"
        if request.operation == "UPDATE":
            kind = "PatchOptions" if options is not None and options.verb == "patch" else "UpdateOptions"
        found = {} if options is None else _write_options(options, kind)
    if request.dry_run:
        found["dryRun"] = ["All"]
    return {"kind": kind, "apiVersion": "meta.k8s.io/v1", **found}


def _write_options(options: RequestOptions, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if options.named_manager:
        found["fieldManager"] = options.named_manager
    if options.field_validation:
        found["fieldValidation"] = options.field_validation
    if options.force and kind == "PatchOptions":
        found["force"] = True
    return found


def _delete_options(options: RequestOptions) -> dict[str, Any]:
    given = options.deletion
    found: dict[str, Any] = {}
    if given.grace_period is not None:
        found["gracePeriodSeconds"] = given.grace_period
    preconditions = {"uid": given.uid, "resourceVersion": given.resource_version}
    if any(preconditions.values()):
        found["preconditions"] = {name: value for name, value in preconditions.items() if value}
    if given.propagation is not None:
        found["propagationPolicy"] = given.propagation
    return found
