"""A chapter of the scenario: conversion webhooks, good and bad, and what reads and writes of two versions see of them.

Each case is a definition of its own with the versions v1, which is stored, and v2. ``<<hooks>>`` serves `HANDLERS` to both servers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.harness.webhook_server import Handler, Reply
from tests.real.scenario import CRDS, JSONPATCH, MERGE, TABLE, Ask, delete, doc, get, here, patch, post

GROUP = "conv.test"
Change = Callable[[dict[str, Any]], Any]


def convert(obj: Mapping[str, Any], wanted: str) -> dict[str, Any]:
    """v1 has ``spec.address``, v2 has ``spec.host`` and ``spec.port``."""
    made = {**copy.deepcopy(dict(obj)), "apiVersion": wanted}
    spec = made.get("spec", {})
    if wanted.endswith("v2") and "address" in spec:
        spec["host"], _, spec["port"] = spec.pop("address").partition(":")
    elif wanted.endswith("v1") and "host" in spec:
        spec["address"] = f"{spec.pop('host')}:{spec.pop('port', '')}"
    return made


def converting(change: Change = lambda obj: obj) -> Handler:
    """Makes a function that converts each object and then changes it."""

    def handle(review: dict[str, Any]) -> Reply:
        asked = review["request"]
        objects = [change(convert(obj, asked["desiredAPIVersion"])) for obj in asked["objects"]]
        return _answered(review, convertedObjects=objects)

    return handle


def _answered(review: Mapping[str, Any], **response: Any) -> dict[str, Any]:
    made = {"uid": review["request"]["uid"], "result": {"status": "Success"}, **response}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": made}


def _failing(result: Any) -> Handler:
    return lambda review: _answered(review, result=result, convertedObjects=[])


def _setting(path: str, value: Any) -> Handler:
    """Makes a function whose objects have another value at a dotted path; None removes it."""

    def change(obj: dict[str, Any]) -> Any:
        *parents, last = path.split(".")
        place = obj
        for name in parents:
            place = place.setdefault(name, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
        return obj

    return converting(change)


def _hang_up(review: dict[str, Any]) -> Any:
    raise ConnectionError


CASES: Mapping[str, tuple[str, Handler]] = {
    "good": ("converts", converting()),
    "fails": ("fails", _failing({"status": "Failure", "message": "not today"})),
    "mute": ("fails without a message", _failing({"status": "Failure"})),
    "unsure": ("says neither success nor failure", _failing({})),
    "uid": ("answers another", lambda review: _answered(review, uid="x", convertedObjects=[])),
    "few": ("loses objects", lambda review: _answered(review, convertedObjects=[])),
    "many": ("has an object too many", lambda review: _answered(review, convertedObjects=[*review["request"]["objects"], {}])),
    "same": ("leaves them as they are", lambda review: _answered(review, convertedObjects=review["request"]["objects"])),
    "null": ("answers nulls", converting(lambda obj: None)),
    "numbers": ("answers numbers", converting(lambda obj: 1)),
    "kind": ("changes the kind", _setting("kind", "Other")),
    "version": ("converts to a third version", _setting("apiVersion", f"{GROUP}/v3")),
    "name": ("changes names", _setting("metadata.name", "other")),
    "space": ("changes namespaces", _setting("metadata.namespace", "other")),
    "identity": ("changes uids", _setting("metadata.uid", "11111111-1111-1111-1111-111111111111")),
    "label": ("sets labels", _setting("metadata.labels", {"a": "b"})),
    "note": ("sets annotations", _setting("metadata.annotations", {"a": "b"})),
    "badlabel": ("sets labels that are none", _setting("metadata.labels", {"a b": "!"})),
    "notext": ("sets labels that are no text", _setting("metadata.labels", {"a": 1})),
    "meta": ("loses the metadata", _setting("metadata", None)),
    "finalizer": ("sets finalizers", _setting("metadata.finalizers", ["a.b/c"])),
    "garbage": ("answers garbage", lambda review: b"{garbage"),
    "empty": ("answers nothing", lambda review: b""),
    "list": ("answers a list", lambda review: b"[]"),
    "review": ("answers no review", lambda review: {"apiVersion": "v1", "kind": "Status", "status": "Failure"}),
    "noresponse": ("answers without a response", lambda review: {**review, "response": None}),
    "refused": ("refuses", lambda review: (403, "text/plain", b"go away")),
    "broken": ("is broken", lambda review: (500, "text/plain", b"broken")),
    "hangup": ("hangs up", _hang_up),
}  # fmt: skip
HANDLERS: Mapping[str, Handler] = {f"/convert/{name}": handler for name, (_, handler) in CASES.items()}

ADDRESS = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"address": {"type": "string"}}}}}  # fmt: skip
HOST = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"host": {"type": "string"}, "port": {"type": "string"}}}}}  # fmt: skip
COLUMN = {"name": "Host", "type": "string", "jsonPath": ".spec.host"}


def definition(plural: str, conversion: Any) -> dict[str, Any]:
    spec = {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": plural.capitalize()},
        "conversion": conversion,
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": ADDRESS}},
            {
                "name": "v2",
                "served": True,
                "storage": False,
                "schema": {"openAPIV3Schema": HOST},
                "additionalPrinterColumns": [COLUMN],
            },
        ],
    }
    return doc("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{GROUP}", spec=spec)


def hook(client: Any, **more: Any) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"], **more}}  # fmt: skip


def by_url(path: str) -> dict[str, Any]:
    return {"url": f"https://<<hooks>>{path}", "caBundle": "<<bundle>>"}


def _object(plural: str, version: str, name: str, spec: Any) -> dict[str, Any]:
    return doc(f"{GROUP}/{version}", plural.capitalize(), name, spec=spec)


def _case(plural: str, title: str, conversion: Any) -> Iterator[Ask]:
    first, second = here(plural, GROUP, "v1"), here(plural, GROUP, "v2")
    yield post(f"{title}: define", CRDS, definition(plural, conversion), head=True)
    yield get(f"{title}: served", first, until=200, head=True)
    yield get(f"{title}: served, in the other version", second, until=200, head=True)
    yield post(f"{title}: create as stored", first, _object(plural, "v1", "a", {"address": "x:1"}))
    yield get(f"{title}: get as stored", f"{first}/a")
    yield get(f"{title}: get converted", f"{second}/a")
    yield get(f"{title}: list converted", second)
    yield post(f"{title}: create converted", second, _object(plural, "v2", "b", {"host": "y", "port": "2"}))
    yield patch(f"{title}: patch converted", f"{second}/a", {"spec": {"port": "3"}}, MERGE)
    yield delete(f"{title}: delete converted", f"{second}/a")


def _good(plural: str) -> Iterator[Ask]:
    """More requests of the case that works."""
    first, second = here(plural, GROUP, "v1"), here(plural, GROUP, "v2")
    yield get("a table", second, accept=TABLE)
    yield get("watched", f"{second}?watch=1&resourceVersion=0", lines=1)
    yield patch("a JSON patch", f"{second}/b", [{"op": "replace", "path": "/spec/host", "value": "z"}], JSONPATCH)  # fmt: skip
    yield get("as it is stored", f"{first}/b")
    yield post("of another version", second, _object(plural, "v1", "c", {"address": "x:1"}))
    yield delete("all, converted", second)


def _asks() -> Iterator[Ask]:
    bad: Mapping[str, Any] = {
        "no strategy": {"strategy": "Magic"},
        "a webhook without the strategy": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}},
        "the strategy without a webhook": {"strategy": "Webhook"},
        "no versions": hook(by_url("/"), conversionReviewVersions=[]),
        "no version that is known": hook(by_url("/"), conversionReviewVersions=["v3", "v4"]),
        "a version twice": hook(by_url("/"), conversionReviewVersions=["v1", "v1"]),
        "a version that is no name": hook(by_url("/"), conversionReviewVersions=["v1", "0?"]),
        "no client": hook({}),
        "neither client": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}},
        "both clients": hook({"url": "https://a.test/", "service": {"namespace": "a", "name": "b"}}),
        "no https": hook({"url": "http://a.test/"}),
        "no host": hook({"url": "https:///a"}),
        "a query": hook({"url": "https://a.test/?a=b"}),
        "a fragment": hook({"url": "https://a.test/#a"}),
        "a user": hook({"url": "https://me@a.test/"}),
        "no service": hook({"service": {"namespace": "a", "name": ""}}),
        "no port": hook({"service": {"namespace": "a", "name": "b", "port": 0}}),
        "a path that is none": hook({"service": {"namespace": "a", "name": "b", "path": "a/b"}}),
        "a path that goes up": hook({"service": {"namespace": "a", "name": "b", "path": "/a/../b"}}),
        "a bundle that is none": hook({"url": "https://a.test/", "caBundle": "AAAA"}),
    }  # fmt: skip
    for title, conversion in bad.items():
        yield post(f"a definition with {title}", CRDS, definition("bads", conversion))
    for name, (title, _) in CASES.items():
        yield from _case(f"{name}s", title, hook(by_url(f"/convert/{name}")))
        if name == "good":
            yield from _good("goods")
    yield from _case("goners", "is not there", hook(by_url("/convert/nowhere")))
    missing = {"service": {"namespace": "<<ns>>", "name": "none", "path": "/x"}}
    yield from _case("lones", "has no service", hook(missing))
    yield from _case("distrusteds", "is not trusted", hook({"url": "https://<<hooks>>/convert/good"}))
    yield from _case("nones", "is not asked", {"strategy": "None"})


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {"conversion": tuple(_asks())}
