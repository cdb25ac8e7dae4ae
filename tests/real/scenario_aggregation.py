"""A chapter of the scenario: APIServices of another server, good and bad, and requests that are passed on to it.

``<<extension>>`` is the port of an `ExtensionServer` on loopback, which answers with what it was asked; ``<<authority>>`` is its authority.
The Service is an ExternalName, which a real server reaches without a network of pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.real.scenario import JSONPATCH, PROTOBUF, SERVICES, TABLE, Ask, ask, delete, doc, get, patch, post

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
THINGS = "/apis/ext.test/v1/namespaces/<<ns>>/things"
PORT: Any = "<<#extension>>"
EXTENSION = {"namespace": "<<ns>>", "name": "ext", "port": PORT}


def api_service(name: str = "", service: Any = EXTENSION, **spec: Any) -> dict[str, Any]:
    version, _, group = name.partition(".")
    made = {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 10}
    if service is not None:
        made |= {"service": service, "caBundle": "<<authority>>"}
    made = {key: value for key, value in {**made, **spec}.items() if value is not None}
    return doc("apiregistration.k8s.io/v1", "APIService", name, spec=made)


def _bad() -> Iterator[Ask]:
    good = "v1.bad.test"
    cases: Mapping[str, dict[str, Any]] = {
        "another name": {**api_service(good), "metadata": {"name": "v1.other.test"}},
        "no name": {**api_service(good), "metadata": {}},
        "no version": api_service(good, version=""),
        "a version that is none": api_service("V!.bad.test"),
        "a group that is none": api_service("v1.Bad_test"),
        "a priority of nothing": api_service(good, groupPriorityMinimum=0),
        "a priority too high": api_service(good, groupPriorityMinimum=20001),
        "a version's priority of nothing": api_service(good, versionPriority=0),
        "a version's priority too high": api_service(good, versionPriority=1001),
        "a bundle and no verification": api_service(good, insecureSkipTLSVerify=True),
        "no service but a bundle": api_service(good, None, caBundle="AAAA"),
        "no service and no verification": api_service(good, None, insecureSkipTLSVerify=True),
        "a service without a name": api_service(good, {"namespace": "a", "name": ""}),
        "a service without a namespace": api_service(good, {"namespace": "", "name": "a"}),
        "port 0": api_service(good, {"namespace": "a", "name": "b", "port": 0}),
        "port 65536": api_service(good, {"namespace": "a", "name": "b", "port": 65536}),
        "a spec of nothing": {**api_service(good), "spec": {}},
        "a bundle that is no base64": api_service(good, caBundle="!"),
        "a bundle that is no certificate": api_service(good, caBundle="AAAA"),
    }
    for title, body in cases.items():
        yield post(f"an APIService with {title}", f"{APISERVICES}?dryRun=All", body)


def _requests() -> Iterator[Ask]:
    yield get("passed on", f"{THINGS}/x")
    yield get("with a query", f"{THINGS}?limit=5&a=b%20c&a=d&labelSelector=x%3Dy,z")
    yield get("with an odd query", f"{THINGS}?b=2&a=1&&c&d=%2F&e=+")
    yield get("with an odd path", f"{THINGS}/a%2Fb%20c")
    yield get("as a table", f"{THINGS}/x", accept=TABLE)
    yield get("as protobuf", f"{THINGS}/x", accept=PROTOBUF)
    yield post("a body", THINGS, {"metadata": {"name": "x"}})
    yield ask("another body", "PUT", f"{THINGS}/x", b"not even JSON", type="text/plain")
    yield patch("a patch", f"{THINGS}/x", [{"op": "add"}], JSONPATCH)
    yield delete("a deletion", f"{THINGS}/x", {"gracePeriodSeconds": 1})
    yield ask("a head", "HEAD", f"{THINGS}/x", head=True)
    yield ask("options", "OPTIONS", f"{THINGS}/x")
    yield get("for a stranger", f"{THINGS}/x", user="stranger")
    yield get("for nobody", f"{THINGS}/x", user="")
    yield get("for another", f"{THINGS}/x", headers={"Impersonate-User": "admin", "Impersonate-Group": "system:masters"})  # fmt: skip
    yield get(
        "for another with extras",
        f"{THINGS}/x",
        headers={
            "Impersonate-User": "jane",
            "Impersonate-Group": "system:masters",
            "Impersonate-Uid": "u1",
            "Impersonate-Extra-Scopes": "view",
            "Impersonate-Extra-Example.com%2Fteam": "blue",
        },
    )
    forged = {"X-Remote-User": "root", "X-Remote-Group": "system:masters", "X-Remote-Extra-A": "b", "X-Remote-Uid": "1"}  # fmt: skip
    yield get("with headers of a front proxy", f"{THINGS}/x", headers=forged)
    forwarded = {"X-Forwarded-For": "1.2.3.4", "X-Forwarded-Host": "a.test", "X-Forwarded-Proto": "http"}
    yield get("with headers of another proxy", f"{THINGS}/x", headers=forwarded)
    yield get("with headers of its own", f"{THINGS}/x", headers={"X-Own": "a", "Authorization": "", "Cookie": "a=b"})  # fmt: skip
    yield get("a watch", f"{THINGS}?watch=1&timeoutSeconds=1", head=True)
    for code in (400, 401, 403, 404, 409, 410, 418, 429, 500, 503):
        yield get(f"that answers {code}", f"{THINGS}/{code}")
    yield get("that answers nothing", f"{THINGS}/nothing")
    yield get("that answers with headers", f"{THINGS}/headers")
    yield get("that moved", f"{THINGS}/moved")
    yield get("that hangs up", f"{THINGS}/hang-up")
    yield get("another group's path", "/apis/ext.test/v3/things")
    yield get("the group", "/apis/ext.test")
    yield get("its resources", "/apis/ext.test/v1")
    yield get("its resources for a stranger", "/apis/ext.test/v1", user="stranger")
    yield get("a path below its group without a version", "/apis/ext.test/things")


def _states() -> Iterator[Ask]:
    """APIServices that are not available, each with the request that shows it and its condition."""
    yield post("a service inside", SERVICES, doc("v1", "Service", "inside", spec={"ports": [{"port": 443}]}), head=True)  # fmt: skip
    cases: Mapping[str, tuple[str, dict[str, Any]]] = {
        "without a service": ("v1.lost.test", {"service": {"namespace": "<<ns>>", "name": "none"}}),
        "on another port": ("v1.port.test", {"service": {"namespace": "<<ns>>", "name": "inside", "port": 444}}),
        "that is not trusted": ("v1.distrusted.test", {"caBundle": "<<bundle>>"}),
        "that is broken": ("v2.ext.test", {}),
        "that is not there": ("v1.absent.test", {}),
    }  # fmt: skip
    for title, (name, spec) in cases.items():
        version, _, group = name.partition(".")
        yield post(f"one {title}", APISERVICES, api_service(name, **spec))
        yield get(f"one {title}: asked", f"/apis/{group}/{version}/things", until=503)
        yield get(f"one {title}: its resources", f"/apis/{group}/{version}")
        yield get(
            f"one {title}: its condition", f"{APISERVICES}/{name}", settled="status.conditions.0.reason"
        )
        yield delete(f"one {title}: deleted", f"{APISERVICES}/{name}", head=True)


def _asks() -> Iterator[Ask]:
    yield from _bad()
    external = {"type": "ExternalName", "externalName": "localhost"}
    yield post("a service elsewhere", SERVICES, doc("v1", "Service", "ext", spec=external))
    yield get("before", "/apis/ext.test/v1")
    yield post("an APIService", APISERVICES, api_service("v1.ext.test"))
    yield get("served", f"{THINGS}/x", until=200, head=True)
    yield get("available", f"{APISERVICES}/v1.ext.test")
    yield get("its table", f"{APISERVICES}/v1.ext.test", accept=TABLE)
    yield from _requests()
    yield patch("without verification", f"{APISERVICES}/v1.ext.test", {"spec": {"caBundle": None, "insecureSkipTLSVerify": True}}, head=True)  # fmt: skip
    yield get("served without verification", f"{THINGS}/x", until=200, head=True)
    yield from _states()
    yield patch("another group", f"{APISERVICES}/v1.ext.test", {"spec": {"group": "other.test"}})
    yield delete("no more APIService", f"{APISERVICES}/v1.ext.test", head=True)
    yield get("not served any more", f"{THINGS}/x", until=404)


CHAPTERS: Mapping[str, tuple[Ask, ...]] = {"aggregation": tuple(_asks())}
