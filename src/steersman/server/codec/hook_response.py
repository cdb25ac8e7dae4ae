"""The response of a webhook as a document, and the errors that Go's client gives for one that is none."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from steersman.api.go_yaml import MalformedDocument
from steersman.server.calls import MAX_RESPONSE, Answer, Call
from steersman.server.codec.json_yaml import decode_json
from steersman.server.status_errors import quote

_MOST_TEXT = 2048
"""Bytes of an error response that a message shows."""
_ERRORS: Mapping[int, str] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_ERRORS_WITH_TEXT: Mapping[int, str] = {
    403: "forbidden",
    406: "the server was unable to respond with a content type that the client supports",
    415: "the server was unable to respond with a content type that the client supports",
}
_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


class InvalidResponse(Exception):
    """A webhook was asked, and there is no response, or none that can be used. The text is upstream's."""


class StatusResponse(InvalidResponse):
    """A webhook answered with a Status of its own."""


def response_document(
    call: Call, answer: Answer, default: tuple[str, str], known: Collection[tuple[str, str]]
) -> dict[str, Any]:
    """The document that answers a call. Raises `InvalidResponse`.

    ``default`` is the apiVersion and kind of a document that states none; ``known`` are those that are accepted.
    """
    if answer.error:
        raise InvalidResponse(f'Post "{call.url}": {answer.error}')
    if not 200 <= answer.code <= 206:
        raise InvalidResponse(_http_error(answer))
    if not answer.body:
        raise InvalidResponse(
            f"0-length response with status code: {answer.code} and content type: {answer.content_type}"
        )
    if len(answer.body) > MAX_RESPONSE:
        raise InvalidResponse(f"the response has more than {MAX_RESPONSE} bytes")
    try:
        document = decode_json(answer.body)
    except MalformedDocument as error:
        raise InvalidResponse(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(document, dict):
        raise InvalidResponse(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{json_type(document)} into Go value of type {_TYPE_META}"
        )
    for name in ("apiVersion", "kind"):
        if not isinstance(document.get(name, ""), str | None):
            raise InvalidResponse(
                "couldn't get version/kind; json parse error: json: cannot unmarshal "
                f"{json_type(document[name])} into Go struct field .{name} of type string"
            )
    given = document.get("apiVersion") or default[0], document.get("kind") or default[1]
    if given[1] == "Status":
        raise StatusResponse(str(document.get("message") or "unknown"))
    if given not in known:
        raise InvalidResponse(
            f"no kind {quote(given[1])} is registered for version {quote(given[0])} "
            'in scheme "pkg/runtime/scheme.go:110"'
        )
    return document


def json_type(value: object) -> str:
    """The type of a JSON value as Go names it."""
    if isinstance(value, bool):
        return "bool"
    for type_, name in ((str, "string"), (dict, "object"), (list, "array")):
        if isinstance(value, type_):
            return name
    return "null" if value is None else "number"


def _http_error(answer: Answer) -> str:
    """The words of Go's client for a response that is an error."""
    text = "unknown"
    media_type = answer.content_type.partition(";")[0].strip().lower()
    if not media_type or media_type.startswith("text/"):
        text = answer.body[:_MOST_TEXT].decode("utf-8", "replace").strip()
    try:
        document = decode_json(answer.body)
    except MalformedDocument:
        document = None
    if isinstance(document, Mapping) and document.get("kind") == "Status" and document.get("message"):
        return str(document["message"])
    if answer.code in _ERRORS_WITH_TEXT:
        return text or _ERRORS_WITH_TEXT[answer.code]
    if answer.code in _ERRORS:
        return _ERRORS[answer.code]
    if answer.code >= 500:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {answer.code} but did not return more details"
