"""Targets of requests: path, query and the options in it are read, or refused with a Status that can be sent."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from hypothesis import strategies as st

from steersman.api.errors import ApiError
from steersman.http.head import MalformedRequest, parse_header_block, parse_request_line
from steersman.http.target import Query, parse_target
from steersman.server.http.query_options import delete_options, list_options, write_options
from steersman.server.http.request_info import UnknownRequest, request_info
from steersman.server.http.responses import error_response
from steersman.server.rest.listing import decode_token, encode_token, parse_version
from tests.fuzz.target import Target

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
INT64 = range(-(2**63), 2**63)


def check(data: bytes) -> None:
    try:
        head = parse_request_line(b"GET " + data + b" HTTP/1.1", parse_header_block(b"Host: a"))
    except MalformedRequest:
        return
    path, query = parse_target(head.target)
    check_again(path, query)
    for method in METHODS:
        try:
            info = request_info(method, path, query)
        except UnknownRequest:
            continue
        assert info.resource or not info.plural
    for watch in (False, True):
        try:
            options = list_options(query, watch=watch)
        except ApiError as error:
            check_refusal(error)
            continue
        assert options.limit in INT64
        assert options.timeout_seconds is None or options.timeout_seconds in INT64
        check_version(options.resource_version)
        if options.continue_:
            check_token(options.continue_)
    for kind in ("CreateOptions", "PatchOptions"):
        try:
            write_options(query, kind)
        except ApiError as error:
            check_refusal(error)
    try:
        delete_options(query, b"")
    except ApiError as error:
        check_refusal(error)


def check_again(path: str, query: Query) -> None:
    """What was read, escaped and read again is the same."""
    escaped = "&".join(
        f"{quote(name, safe='', errors='surrogateescape')}={quote(value, safe='', errors='surrogateescape')}"
        for name, values in query.items()
        for value in values
    )
    assert parse_target(f"{quote(path, errors='surrogateescape')}?{escaped}") == (path, query)


def check_refusal(error: ApiError) -> None:
    response = error_response(error)
    assert 400 <= response.status < 500
    status = msgspec.json.decode(response.body)
    assert status["code"] == response.status


def check_version(text: str) -> None:
    try:
        assert 0 <= parse_version(text) < 2**64
    except ApiError as error:
        check_refusal(error)


def check_token(text: str) -> None:
    try:
        revision, start = decode_token(text)
    except ApiError as error:
        check_refusal(error)
        return
    assert revision in INT64
    assert decode_token(encode_token(revision, start)) == (revision, start)


NUMBERS = (
    "0",
    "1",
    "-1",
    "+1",
    "500",
    "00",
    "1.5",
    "0x1",
    "1_0",
    "9223372036854775807",
    "9223372036854775808",
    "9" * 30,
    "9" * 5000,
    "٣",
    "",
    " 1",
)
TOKENS = (
    encode_token(7, "default/a"), encode_token(-1, "a"), encode_token(2**63 - 1, "\xe9"), encode_token(7, "../a"), encode_token(0, "a"), "e30", "e30=", "AAAA", "A", "bnVsbA",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MWU5OTksInN0YXJ0IjoiYSJ9",
)  # fmt: skip
OPTIONS = st.one_of(
    st.tuples(st.sampled_from(["limit", "timeoutSeconds", "resourceVersion", "gracePeriodSeconds"]), st.sampled_from(NUMBERS)),
    st.tuples(st.just("continue"), st.sampled_from(TOKENS)),
    st.tuples(st.sampled_from(["watch", "allowWatchBookmarks", "sendInitialEvents", "force", "orphanDependents"]), st.sampled_from(["", "1", "0", "true", "False", "x"])),
    st.tuples(st.just("resourceVersionMatch"), st.sampled_from(["Exact", "NotOlderThan", "Other", ""])),
    st.tuples(st.sampled_from(["dryRun", "fieldManager", "fieldValidation", "propagationPolicy"]), st.sampled_from(["All", "Strict", "Orphan", "", "a" * 200, "\udcff", "é"])),
    st.tuples(st.sampled_from(["labelSelector", "fieldSelector"]), st.sampled_from(["a=b", "a in (b,c)", "metadata.name=a", "metadata.name=a,metadata.name=b", "=", "!", "\udcff"])),
)  # fmt: skip


@st.composite
def targets(draw: st.DrawFn) -> bytes:
    path = draw(
        st.sampled_from(
            [
                "/api/v1/pods",
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "/api/v1/watch/pods",
                "/healthz",
                "/api/v1/namespaces/%2f/pods",
                "/%zz",
                "/api//v1",
            ]
        )
    )
    options = draw(st.lists(OPTIONS, max_size=4))
    escape = draw(st.booleans())
    query = "&".join(
        f"{name}={quote(value, safe='', errors='surrogateescape') if escape else value}"
        for name, value in options
    )
    return f"{path}?{query}".encode("utf-8", "surrogateescape")


TARGET = Target(
    name="list_options",
    check=check,
    seeds=(
        b"/api/v1/pods?limit=500&resourceVersion=7&resourceVersionMatch=Exact",
        b"/api/v1/namespaces/default/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=30&labelSelector=a%3Db",
        f"/apis/apps/v1/deployments?limit=2&continue={TOKENS[0]}".encode(),
        b"/api/v1/namespaces/a/pods/b?dryRun=All&fieldManager=c&fieldValidation=Strict&force=true&propagationPolicy=Orphan",
        b"/api/v1/pods?fieldSelector=metadata.name%3Da%2Cspec.nodeName!%3Db&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    ),
    strategy=targets(),
    dictionary=(
        b"limit=", b"continue=", b"resourceVersion=", b"resourceVersionMatch=", b"timeoutSeconds=", b"labelSelector=", b"fieldSelector=", b"watch=1", b"dryRun=All",
        b"gracePeriodSeconds=", b"&", b"=", b"?", b"%", b"%2f", b"%00", b"%ff", b"%ed%a0%80", b"+", b";", b"\xff", b"\xc3\xa9", b"//", b"/..", b"/watch/", b"namespaces/", *(token.encode() for token in TOKENS),
    ),
    max_bytes=8192,
)  # fmt: skip
