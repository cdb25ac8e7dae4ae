"""Chapters of the scenario about pages of lists, which expire, and about what cannot be read or written in protobuf."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from tests.real.scenario import (
    CBOR,
    CMS,
    DEPLOYMENTS,
    JSON,
    NAMESPACES,
    PARTIALS,
    PROTOBUF,
    TABLE,
    Ask,
    ask,
    cm,
    delete,
    get,
    patch,
    post,
    put,
    token,
)


def _raw_token(document: Any) -> str:
    raw = json.dumps(document, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


LABELLED = {"labels": {"half": "yes"}}
# fmt: off
PAGES = (
    *(post(f"create {name}", CMS, cm(name, metadata=LABELLED if name in "ace" else {}), head=True) for name in "abcdef"),
    get("the first page", f"{CMS}?limit=2", keep={"second": "metadata.continue", "now": "metadata.resourceVersion"}),
    get("the second page", f"{CMS}?limit=2&continue=<<second>>", keep={"third": "metadata.continue"}),
    get("the last page", f"{CMS}?limit=2&continue=<<third>>"),
    get("the rest without a limit", f"{CMS}?continue=<<second>>"),
    get("the rest in one page that just fits", f"{CMS}?limit=4&continue=<<second>>"),
    get("a page with a selector", f"{CMS}?limit=2&labelSelector=half%3Dyes", keep={"half": "metadata.continue"}),
    get("the next page with the selector", f"{CMS}?limit=2&labelSelector=half%3Dyes&continue=<<half>>"),
    get("the next page with another selector", f"{CMS}?limit=2&labelSelector=half&continue=<<half>>"),
    get("the next page without a selector", f"{CMS}?limit=2&continue=<<half>>"),
    get("a page by field", f"{CMS}?limit=1&fieldSelector=metadata.name!%3Da", keep={"field": "metadata.continue"}),
    get("the next page by field", f"{CMS}?limit=1&fieldSelector=metadata.name!%3Da&continue=<<field>>"),
    get("the next page of another resource", f"{DEPLOYMENTS}?limit=2&continue=<<second>>"),
    get("the next page of all namespaces", "/api/v1/configmaps?limit=2&continue=<<second>>", head=True),
    get("the next page as a table", f"{CMS}?limit=2&continue=<<second>>", accept=TABLE),
    get("the next page as metadata", f"{CMS}?limit=2&continue=<<second>>", accept=PARTIALS),
    get("a page of none", f"{CMS}?limit=0"),
    get("a page of less than none", f"{CMS}?limit=-1"),
    get("a page of text", f"{CMS}?limit=two"),
    get("a page of too much", f"{CMS}?limit=99999999999999999999"),
    get("a page from the cache", f"{CMS}?limit=2&resourceVersion=0"),
    get("a page not older", f"{CMS}?limit=2&resourceVersion=<<now>>&resourceVersionMatch=NotOlderThan"),
    get("a page as it was", f"{CMS}?limit=2&resourceVersion=<<now>>&resourceVersionMatch=Exact", keep={"exact": "metadata.continue"}),
    get("a page as it was at no time", f"{CMS}?limit=2&resourceVersion=0&resourceVersionMatch=Exact"),
    get("a match without a version", f"{CMS}?limit=2&resourceVersionMatch=Exact"),
    get("an unknown match", f"{CMS}?limit=2&resourceVersion=<<now>>&resourceVersionMatch=About"),
    get("a continue with version 0", f"{CMS}?limit=2&continue=<<second>>&resourceVersion=0"),
    get("a continue with a version", f"{CMS}?limit=2&continue=<<second>>&resourceVersion=<<now>>"),
    get("a continue with a match", f"{CMS}?limit=2&continue=<<second>>&resourceVersionMatch=NotOlderThan"),
    get("a continue of a watch", f"{CMS}?watch=1&continue=<<second>>&timeoutSeconds=1"),
    get("a limit of a watch", f"{CMS}?watch=1&limit=1&resourceVersion=<<now>>&timeoutSeconds=1"),
    get("a token that is no base64", f"{CMS}?continue=%21%21"),
    get("a token that is no JSON", f"{CMS}?continue=AAAA"),
    get("a token of another version", f"{CMS}?continue={_raw_token({'v': 'v9', 'rv': 5, 'start': 'a'})}"),
    get("a token without a version", f"{CMS}?continue={_raw_token({'rv': 5, 'start': 'a'})}"),
    get("a token whose revision is text", f"{CMS}?continue={_raw_token({'v': 'meta.k8s.io/v1', 'rv': 'x', 'start': 'a'})}"),
    get("a token that goes up", f"{CMS}?continue={token(5, '../../secrets')}"),
    get("a token that goes up in the middle", f"{CMS}?continue={token(5, 'a/../b')}"),
    get("a token of the future", f"{CMS}?continue={token(999_999_999, 'a')}"),
    get("a token of a list that is a number", f"{CMS}?continue={_raw_token(5)}"),
    post("one more after the first page", CMS, cm("bb"), head=True),
    delete("one less after the first page", f"{CMS}/f", head=True),
    get("the second page as it was", f"{CMS}?limit=2&continue=<<second>>"),
    get("the third page as it was", f"{CMS}?limit=9&continue=<<third>>"),
    get("the next page as it was at a version", f"{CMS}?limit=9&continue=<<exact>>"),
    ask("", "COMPACT", ""),
    get("the second page, too late", f"{CMS}?limit=2&continue=<<second>>", keep={"inexact": "metadata.continue"}),
    get("the third page, too late", f"{CMS}?limit=2&continue=<<third>>"),
    get("too late as a table", f"{CMS}?limit=2&continue=<<second>>", accept=TABLE),
    get("too late in protobuf", f"{CMS}?limit=2&continue=<<second>>", accept=PROTOBUF),
    get("too late with a selector", f"{CMS}?limit=2&labelSelector=half%3Dyes&continue=<<half>>", keep={"inexacthalf": "metadata.continue"}),
    get("on from where it was, as it is now", f"{CMS}?limit=2&continue=<<inexact>>", keep={"newer": "metadata.continue"}),
    get("and on", f"{CMS}?limit=2&continue=<<newer>>"),
    get("on from there with the selector", f"{CMS}?limit=2&labelSelector=half%3Dyes&continue=<<inexacthalf>>"),
    get("on from there with a version", f"{CMS}?limit=2&continue=<<inexact>>&resourceVersion=<<now>>"),
    get("on from there without a limit", f"{CMS}?continue=<<inexact>>"),
    get("as it was at a version, too late", f"{CMS}?resourceVersion=<<now>>&resourceVersionMatch=Exact"),
    delete("all of a page", f"{CMS}?limit=1&labelSelector=half%3Dyes"),
    get("what is left", CMS, head=True),
)


def envelope(api_version: str, kind: str, raw: bytes = b"", content_type: bytes = b"") -> bytes:
    """An object in protobuf as the API has it on the wire: magic, and an Unknown with its type and bytes."""
    meta = b"".join(_field(number, text.encode()) for number, text in ((1, api_version), (2, kind)) if text)
    return b"k8s\x00" + _field(1, meta) + _field(2, raw) + (_field(4, content_type) if content_type else b"")


def _field(number: int, raw: bytes) -> bytes:
    assert len(raw) < 128, "one byte of length"
    return bytes([number << 3 | 2, len(raw)]) + raw


NAMED = _field(1, _field(1, b"p"))
"""A message whose first field is metadata with a name."""
GOOD = envelope("v1", "ConfigMap", NAMED)
CUT = envelope("v1", "ConfigMap", b"\x0a\x7f" + b"p")
PLAIN_PROTOBUF = "application/x-protobuf"
MESSAGES = (
    post("no body", CMS, b"", type=PROTOBUF),
    post("no magic", CMS, b"\x0a\x00", type=PROTOBUF),
    post("JSON for protobuf", CMS, b'{"metadata":{"name":"p"}}', type=PROTOBUF),
    post("protobuf for JSON", CMS, GOOD, type=JSON),
    post("only the magic", CMS, b"k8s\x00", type=PROTOBUF),
    post("an envelope that is cut off", CMS, b"k8s\x00\x0a\x7f", type=PROTOBUF),
    post("an object that is cut off", CMS, CUT, type=PROTOBUF),
    post("no type", CMS, envelope("", "", NAMED), type=PROTOBUF),
    post("another kind", CMS, envelope("v1", "Secret", NAMED), type=PROTOBUF),
    post("an unknown kind", CMS, envelope("v1", "Nonesuch", NAMED), type=PROTOBUF),
    post("an unknown group", CMS, envelope("nonesuch.test/v1", "ConfigMap", NAMED), type=PROTOBUF),
    post("another version", CMS, envelope("v2", "ConfigMap", NAMED), type=PROTOBUF),
    post("JSON inside", CMS, envelope("v1", "ConfigMap", b'{"metadata":{"name":"p"}}', b"application/json"), type=PROTOBUF),
    post("a wire type that is none", CMS, envelope("v1", "ConfigMap", b"\x0f"), type=PROTOBUF),
    post("a text that is no UTF-8", CMS, envelope("v1", "ConfigMap", _field(1, _field(1, b"\xff"))), type=PROTOBUF, head=True),
    post("no name", CMS, envelope("v1", "ConfigMap", _field(1, b"")), type=PROTOBUF),
    post("good", CMS, GOOD, type=PROTOBUF),
    post("good, and there already", CMS, GOOD, type=PROTOBUF, accept=PROTOBUF),
    post("an unknown field", CMS, envelope("v1", "ConfigMap", _field(1, _field(1, b"q")) + _field(15, b"x")), type=PROTOBUF),
    post("an unknown field, strictly", f"{CMS}?fieldValidation=Strict", envelope("v1", "ConfigMap", _field(1, _field(1, b"r")) + _field(15, b"x")), type=PROTOBUF),
    put("put", f"{CMS}/p", GOOD, type=PROTOBUF),
    put("put under another name", f"{CMS}/o", GOOD, type=PROTOBUF),
    patch("a patch in protobuf", f"{CMS}/p", GOOD, PROTOBUF),
    delete("delete options that are cut off", f"{CMS}/p", b"k8s\x00\x0a\x7f", type=PROTOBUF),
    delete("delete options of another kind", f"{CMS}/p", envelope("v1", "ConfigMap", NAMED), type=PROTOBUF),
    delete("delete with options", f"{CMS}/p?dryRun=All", envelope("v1", "DeleteOptions"), type=PROTOBUF),
    post("protobuf by its other name", CMS, GOOD, type=PLAIN_PROTOBUF),
    post("protobuf for a delegated version", NAMESPACES, envelope("v1", "ConfigMap", NAMED), type=PROTOBUF),
    get("as protobuf by its other name", f"{CMS}/p", accept=PLAIN_PROTOBUF),
    get("as protobuf of another group", f"{CMS}/p", accept=f"{PROTOBUF};as=PartialObjectMetadata;g=other.test;v=v1"),
    get("as protobuf of another version", f"{CMS}/p", accept=f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v9"),
    get("as protobuf of another kind", f"{CMS}/p", accept=f"{PROTOBUF};as=Nonesuch;g=meta.k8s.io;v=v1"),
    get("as a stream", f"{CMS}/p", accept=f"{PROTOBUF};stream=watch"),
    get("as anything of applications", f"{CMS}/p", accept="application/*"),
    get("as text", f"{CMS}/p", accept="text/plain"),
    get("as anything else than JSON", f"{CMS}/p", accept=f"{PROTOBUF};q=0,text/html"),
    get("as nothing that can be read", f"{CMS}/p", accept=";;,,"),
    get("as CBOR", f"{CMS}/p", accept=CBOR),
    get("a watch as text", f"{CMS}?watch=1", accept="text/plain"),
    get("a watch as CBOR", f"{CMS}?watch=1", accept=CBOR),
    get("a watch as a list of metadata", f"{CMS}?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dp", accept=f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", lines=1),
    get("a version as protobuf", "/version", accept=PROTOBUF, head=True),
    get("health as protobuf", "/healthz", accept=PROTOBUF),
    get("no path as protobuf", "/apis/none.test/v1/things", accept=PROTOBUF),
    post("a review in protobuf", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", envelope("authorization.k8s.io/v1", "SelfSubjectRulesReview", _field(2, _field(1, b"default"))), type=PROTOBUF, head=True),
    post("a review that is another", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview"), type=PROTOBUF),
)
# fmt: on
CHAPTERS: Mapping[str, tuple[Ask, ...]] = {"pages": PAGES, "messages": MESSAGES}
