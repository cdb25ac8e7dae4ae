"""AdmissionReview: the question to a webhook as a document, and the checks of its answer."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import msgspec

from steersman.api.errors import ApiError, from_status
from steersman.api.generated.meta_v1 import ListMeta
from steersman.api.kinds import EMPTY, Struct
from steersman.server.calls import Answer, Call
from steersman.server.codec.convert import to_builtins, to_struct
from steersman.server.codec.go_decode_errors import go_decode_error
from steersman.server.codec.hook_response import InvalidResponse, response_document
from steersman.server.status_errors import quote

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")


# -- the question -----------------------------------------------------------------------------


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
