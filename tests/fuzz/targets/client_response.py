"""Responses as the client reads them: an object, a list or an `ApiError`, whatever a server or proxy sends.

aiohttp parses the bytes; an input is the status code, header lines, an empty line, and the body.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
from hypothesis import strategies as st
from multidict import CIMultiDict

from steersman.api.errors import ApiError, from_status, to_status
from steersman.api.kinds import NAMESPACES, PODS
from steersman.api.scheme import Kind, encode_hook
from steersman.client.api import UndecodableObject
from steersman.client.decode import Decoder
from steersman.client.request_errors import error_from_response, retry_after
from tests.fuzz.event_loop import run
from tests.fuzz.target import Target
from tests.fuzz.targets.watch_frames import OBJECTS, STATUS

KINDS: tuple[Kind[Any], ...] = (PODS, PODS.untyped, NAMESPACES)
DECODER = Decoder()
REQUEST = ("POST", "/api/v1/namespaces/default/pods")


def check(data: bytes) -> None:
    head, _, body = data.partition(b"\n\n")
    status, *lines = head.decode("utf-8", "surrogateescape").split("\n")
    headers: CIMultiDict[str] = CIMultiDict()
    for line in lines:
        name, _, value = line.partition(":")
        headers.add(name, value.strip())
    code = int(status) if status.isascii() and status.isdigit() and len(status) == 3 else 0
    code = code if code >= 100 else 500
    seconds = retry_after(headers)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))
    check_error(error_from_response(*REQUEST, code, headers, body), code, body)
    for kind in KINDS:
        check_object(kind, body)
        run(check_list(kind, body))


def check_error(error: ApiError, code: int, body: bytes) -> None:
    assert error.message
    again = from_status(msgspec.json.decode(msgspec.json.encode(to_status(error))))
    assert (type(again), again.code, again.reason, again.message) == (
        type(error),
        error.code,
        error.reason,
        error.message,
    )
    assert error.retry_after is None or (error.retry_after >= 0 and math.isfinite(error.retry_after))
    document = decoded(body)
    if not isinstance(document, dict) or document.get("kind") != "Status":
        assert error.message.endswith(" (post pods)")
        assert error.uncertain == (code >= 500)


def decoded(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_int=float)
    except (ValueError, RecursionError):
        return None


def check_object(kind: Kind[Any], body: bytes) -> None:
    try:
        obj = DECODER.for_kind(kind).decode_object(body, wrote=True)
    except ApiError as error:
        assert error.uncertain
        return
    msgspec.json.encode(obj, enc_hook=encode_hook)
    assert isinstance(json.loads(body.decode("utf-8", "replace"), parse_int=float), dict)


async def check_list(kind: Kind[Any], body: bytes) -> None:
    try:
        page = await DECODER.for_kind(kind).decode_list(kind, body)
    except ApiError:
        return
    document = json.loads(body.decode("utf-8", "replace"), parse_int=float)
    assert len(page.items) == len(document.get("items") or [])
    for item in page.items:
        assert isinstance(item, UndecodableObject | dict) or item.metadata is not None
        assert not isinstance(item, UndecodableObject) or item.error
    metadata = document.get("metadata", {})
    assert page.resource_version == metadata.get("resourceVersion", "")
    assert page.continue_ == (metadata.get("continue") or "")


LISTS = st.tuples(
    st.sampled_from(
        [
            b'{"resourceVersion":"7"}',
            b'{"resourceVersion":"7","continue":"abc"}',
            b'{"continue":null}',
            b"null",
            b"{}",
            b'{"resourceVersion":7}',
        ]
    ),
    st.lists(st.one_of(OBJECTS, STATUS), max_size=3).map(b",".join),
).map(lambda pair: b'{"kind":"PodList","metadata":%b,"items":[%b]}' % pair)
ERRORS = STATUS.map(
    lambda status: status.replace(b"{", b'{"kind":"Status",', 1) if status.startswith(b'{"') else status
)
HEADERS = st.lists(
    st.sampled_from(
        [
            b"Retry-After: 1",
            b"retry-after: 0",
            b"Retry-After: " + b"9" * 400,
            b"Retry-After: -1",
            b"Retry-After: \xc2\xb2",
            b"Retry-After: soon",
        ]
    ),
    max_size=2,
).map(lambda lines: b"".join(b"\n" + line for line in lines))

TARGET = Target(
    name="client_response",
    check=check,
    seeds=(
        b'404\n\n{"kind":"Status","status":"Failure","message":"pods \\"a\\" not found","reason":"NotFound","details":{"name":"a"},"code":404}',
        b'429\nRetry-After: 1\n\n{"kind":"Status","code":429,"details":{"retryAfterSeconds":1,"causes":[{"reason":"a","message":"b","field":"c"}]}}',
        b'200\n\n{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"x"},"items":[{"metadata":{"name":"a"},"spec":{"nodeName":"n"}}]}',
        b'200\nContent-Type: application/json\n\n{"metadata":{"name":"a","labels":{"b":"c"}},"status":{"phase":"Running"}}',
        b"502\n\n<html>bad gateway</html>",
    ),
    strategy=st.tuples(
        st.sampled_from([b"200", b"201", b"400", b"409", b"429", b"500", b"503", b"504"]), HEADERS, st.just(b"\n\n"), st.one_of(LISTS, OBJECTS, ERRORS)
    ).map(b"".join),
    dictionary=(
        b'"kind":"Status"', b'"code":', b'"details":', b'"retryAfterSeconds":', b'"causes":[', b'"reason":', b'"message":', b'"items":[', b'"metadata":',
        b'"continue":', b'"resourceVersion":', b'"labels":', b"null", b"{}", b"[]", b"{", b"}", b",", b"Retry-After: ", b"\n\n", b"\\ud800", b"\xff", b"1e999", b"9" * 400,
    ),
    max_bytes=8192,
)  # fmt: skip
