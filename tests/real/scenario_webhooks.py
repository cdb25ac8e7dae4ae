"""A chapter of the scenario: admission and conversion webhooks of all sorts, good and bad, and the requests they see.

``<<hooks>>`` is the address of a webhook server on loopback, which serves `HANDLERS` to both servers; ``<<bundle>>`` is its authority. Each
case has webhooks of its own, for objects with its label. A real server takes a moment to notice a configuration: its last webhook refuses
a probe with 418, and the probe is sent until it does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.harness.webhook_server import Handler, allow, answered, denying, patching

JSON = "application/json"
MERGE = "application/merge-patch+json"
CMS = "/api/v1/namespaces/<<ns>>/configmaps"
GROUP = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def _raw(patch: bytes, **more: Any) -> Handler:
    text = base64.b64encode(patch).decode()
    return lambda review: answered(review, allowed=True, patch=text, **more)


def _hang_up(review: dict[str, Any]) -> Any:
    raise ConnectionError


def _with_uid(uid: str) -> Handler:
    return lambda review: answered({**review, "request": {"uid": uid}}, allowed=True)


def _of_kind(api_version: str, kind: str) -> Handler:
    return lambda review: answered({**review, "apiVersion": api_version, "kind": kind}, allowed=True)


def _add(path: str, value: Any) -> Handler:
    return patching({"op": "add", "path": path, "value": value})


HANDLERS: Mapping[str, Handler] = {
    "/probe": denying("a probe", code=418, reason="Probe"),
    "/allow": allow,
    "/deny": denying("not today", code=403, reason="Forbidden"),
    "/deny-plainly": lambda review: answered(review, allowed=False),
    "/deny-by-reason": lambda review: answered(review, allowed=False, status={"reason": "Because"}),
    "/deny-with-success": lambda review: answered(
        review, allowed=False, status={"status": "Success", "code": 200, "message": "well"}
    ),
    "/deny-with-details": denying(
        "look",
        code=422,
        reason="Invalid",
        details={"name": "n", "kind": "K", "causes": [{"reason": "R", "message": "m", "field": "f"}]},
    ),
    "/warn": lambda review: answered(review, allowed=True, warnings=["careful", "now", "careful"]),
    "/warn-and-deny": lambda review: answered(review, allowed=False, warnings=["told you"]),
    "/label": _add("/metadata/labels/hooked", "yes"),
    "/data": _add("/data", {"hooked": "yes"}),
    "/bad-data": _add("/data", {"no such/key": "x"}),
    "/rename": patching({"op": "replace", "path": "/metadata/name", "value": "renamed"}),
    "/namespace": _add("/metadata/namespace", "kube-system"),
    "/wrong-type": _add("/data", {"a": 1}),
    "/remove-nothing": patching({"op": "remove", "path": "/data/nothing"}),
    "/test-fails": patching({"op": "test", "path": "/kind", "value": "Secret"}),
    "/no-operation": patching({"op": "dance", "path": "/kind"}),
    "/empty-patch": _raw(b"[]", patchType="JSONPatch"),
    "/no-type": _raw(b"[]"),
    "/strange-type": _raw(b'[{"op":"remove","path":"/data"}]', patchType="Strange"),
    "/object-patch": _raw(b"{}", patchType="JSONPatch"),
    "/garbage-patch": _raw(b"nothing", patchType="JSONPatch"),
    "/type-alone": lambda review: answered(review, allowed=True, patchType="JSONPatch"),
    "/garbage": lambda review: b"nothing",
    "/array": lambda review: b"[]",
    "/empty": lambda review: b"",
    "/nothing": lambda review: b"{}",
    "/null-response": lambda review: {**answered(review), "response": None},
    "/wrong-uid": _with_uid("other"),
    "/wrong-kind": _of_kind("admission.k8s.io/v1", "Pod"),
    "/wrong-version": _of_kind("admission.k8s.io/v1beta1", "AdmissionReview"),
    "/no-kind": _of_kind("", ""),
    "/hang-up": _hang_up,
    "/500": lambda review: (500, "text/plain", b"broken\n"),
    "/503": lambda review: (503, "text/plain", b""),
    "/403": lambda review: (403, "text/plain", b"go away\n"),
}
MUTATING: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("labels", "/label", {}),
    ("data", "/data", {"reinvocationPolicy": "IfNeeded"}),
    ("invalid data", "/bad-data", {}),
    ("another namespace", "/namespace", {}),
    ("a patch that does not fit", "/remove-nothing", {}),
    ("a test that fails", "/test-fails", {}),
    ("an unknown operation", "/no-operation", {}),
    ("an empty patch", "/empty-patch", {}),
    ("a patch without a type", "/no-type", {}),
    ("a patch of a strange type", "/strange-type", {}),
    ("a patch that is an object", "/object-patch", {}),
    ("a type without a patch", "/type-alone", {}),
    ("a failure that is ignored", "/500", {"failurePolicy": "Ignore"}),
    ("a denial that is not ignored", "/deny", {"failurePolicy": "Ignore"}),
    ("v1beta1", "/no-type", {"admissionReviewVersions": ["v1beta1", "v1"]}),
)
VALIDATING: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("allows", "/allow", {}),
    ("denies", "/deny", {}),
    ("denies plainly", "/deny-plainly", {}),
    ("denies by its reason", "/deny-by-reason", {}),
    ("denies with success", "/deny-with-success", {}),
    ("denies with details", "/deny-with-details", {}),
    ("warns", "/warn", {}),
    ("warns and denies", "/warn-and-deny", {}),
    ("patches", "/label", {}),
    ("answers an array", "/array", {}),
    ("answers nothing", "/nothing", {}),
    ("is empty", "/empty", {}),
    ("has no response", "/null-response", {}),
    ("answers another", "/wrong-uid", {}),
    ("has no kind", "/no-kind", {}),
    ("is not there", "/404", {}),
    ("is broken", "/500", {}),
    ("is unavailable", "/503", {}),
    ("is forbidden", "/403", {}),
    ("hangs up", "/hang-up", {}),
    ("is broken and ignored", "/garbage", {"failurePolicy": "Ignore"}),
)


def rows() -> Iterator[dict[str, Any]]:
    """The requests of the chapter, as arguments of `scenario.Ask`."""
    for kind, cases in (("Mutating", MUTATING), ("Validating", VALIDATING)):
        for number, (title, path, more) in enumerate(cases):
            yield from _case(kind, f"{kind.lower()[0]}{number}", title, path, more)


def _case(kind: str, name: str, title: str, path: str, more: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    title = f"{kind.lower()}, {title}"
    made = {"metadata": {"name": name}, "webhooks": [_webhook(name, path, name, more), _probe(name)]}
    yield _ask(f"{title}: configure", "POST", f"{GROUP}/{kind.lower()}webhookconfigurations", made)
    probe = {"metadata": {"name": f"probe-{name}", "labels": {"probe": name}}}
    yield _ask(f"{title}: probe", "POST", CMS, probe, until=418)
    body = {"metadata": {"name": name, "labels": {"case": name}}, "data": {"a": "b"}}
    yield _ask(f"{title}: dry run", "POST", f"{CMS}?dryRun=All", body)
    yield _ask(f"{title}: create", "POST", CMS, body)
    patch = {"metadata": {"annotations": {"again": "yes"}}}
    yield _ask(f"{title}: patch", "PATCH", f"{CMS}/{name}", patch, MERGE)
    yield _ask(f"{title}: delete", "DELETE", f"{CMS}/{name}")


def _webhook(name: str, path: str, case: str, more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"https://<<hooks>>{path}", "caBundle": "<<bundle>>"},
        "objectSelector": {"matchLabels": {"case": case}},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE"],
            }
        ],
        **more,
    }


def _probe(name: str) -> dict[str, Any]:
    return {
        **_webhook(f"probe.{name}", "/probe", name, {}),
        "objectSelector": {"matchLabels": {"probe": name}},
    }


def _ask(
    title: str, method: str, path: str, body: Any = None, type_: str = JSON, until: int = 0
) -> dict[str, Any]:
    headers = {"Content-Type": type_} if body is not None else {}
    return {
        "title": title,
        "method": method,
        "path": path,
        "body": json.loads(json.dumps(body)) if body is not None else None,
        "headers": headers,
        "until": until,
    }
