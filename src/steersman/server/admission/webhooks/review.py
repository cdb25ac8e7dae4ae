"""AdmissionReview: the question to a webhook as a document, and the checks of its answer."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from steersman.api.errors import ApiError, from_status
from steersman.api.generated.meta_v1 import ListMeta
from steersman.api.kinds import EMPTY, Struct
from steersman.server.auth.users import User
from steersman.server.calls import Answer, Call
from steersman.server.codec.convert import to_builtins, to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.codec.hook_response import InvalidResponse, response_document
from steersman.server.registry.resources import Resource
from steersman.server.server import AdmissionAttributes, RequestOptions
from steersman.server.status_errors import quote

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")


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


# -- the question -----------------------------------------------------------------------------


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


def review_version(accepted: tuple[str, ...]) -> str:
    """The first version a webhook accepts that is known; empty if there is none."""
    return next((version for version in accepted if version in VERSIONS), "")


def encode_review(version: str, request: Mapping[str, Any]) -> bytes:
    """The body of a call."""
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}
    )


# -- the answer -------------------------------------------------------------------------------


class StatusDetails(Struct, frozen=True):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Any, ...] = ()
    retryAfterSeconds: int = 0


class Status(Struct, frozen=True):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0


class AdmissionResponse(Struct, frozen=True):
    """The response of a webhook."""

    uid: str = ""
    allowed: bool = False
    status: Status | None = None
    patch: str = ""
    patchType: str | None = None
    auditAnnotations: Mapping[str, str] = EMPTY
    warnings: tuple[str, ...] = ()


class AdmissionReview(Struct, frozen=True):
    """The review that a webhook answers with."""

    apiVersion: str = ""
    kind: str = ""
    response: AdmissionResponse | None = None


def read_response(call: Call, answer: Answer, version: str) -> AdmissionReview:
    """The review that answers a call. Raises `InvalidResponse`."""
    known = tuple((f"{GROUP}/{one}", "AdmissionReview") for one in VERSIONS)
    document = response_document(call, answer, (f"{GROUP}/{version}", "AdmissionReview"), known)
    if wrong := go_decode_error(AdmissionReview, document):
        raise InvalidResponse(wrong)
    try:
        review: AdmissionReview = to_struct(AdmissionReview, document)
    except ValueError as error:
        raise InvalidResponse(str(error)) from None
    return review


def verify_response(review: AdmissionReview, uid: str, version: str, *, mutating: bool) -> bytes:
    """Checks the response of a webhook; returns its patch. Raises `InvalidResponse`."""
    response = review.response
    if response is None:
        raise InvalidResponse("webhook response was absent")
    patch = _base64(response.patch)
    if version == "v1beta1":
        return patch if mutating else b""
    if response.uid != uid:
        raise InvalidResponse(f"expected response.uid={quote(uid)}, got {quote(response.uid)}")
    group, slash, rest = review.apiVersion.partition("/")
    group, given_version = (group, rest) if slash else ("", group)
    if (group, given_version, review.kind) != (GROUP, "v1", "AdmissionReview"):
        got = f"{group}/{given_version}, Kind={review.kind}"
        raise InvalidResponse(f"expected webhook response of {GROUP}/v1, Kind=AdmissionReview, got {got}")
    if not mutating:
        if patch:
            raise InvalidResponse("validating webhook may not return response.patch")
        if response.patchType is not None:
            raise InvalidResponse("validating webhook may not return response.patchType")
        return b""
    if patch and response.patchType is None:
        raise InvalidResponse("webhook returned response.patch but not response.patchType")
    if not patch and response.patchType is not None:
        raise InvalidResponse("webhook returned response.patchType but not response.patch")
    if response.patchType == "":
        raise InvalidResponse('webhook returned invalid response.patchType of ""')
    return patch


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise InvalidResponse("illegal base64 data at input byte 0") from None


def rejection(webhook: str, status: Status | None) -> ApiError:
    """The error of a request that a webhook denies."""
    given: dict[str, Any] = {} if status is None else to_builtins(status)
    denied = f"admission webhook {quote(webhook)} denied the request"
    message = given.get("message") or given.get("reason")
    given["code"] = max(given.get("code", 0), 400)
    given["message"] = f"{denied}: {message}" if message else f"{denied} without explanation"
    return from_status(given)
