"""Requests, and what the audit log of a server has of each of them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from tests.harness.webhook_server import Handler, WebhookServer, answered
from tests.real.scenario_play import Target
from tests.real.scenario_policies import (
    VALIDATING,
    VALIDATING_BINDINGS,
    bound,
    rule,
    validating,
)

CMS = "/api/v1/namespaces/default/configmaps"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Row:
    """One request."""

    title: str
    method: str
    path: str
    body: Any = None
    user: str = "admin"
    headers: Mapping[str, str] = field(default_factory=dict)
    until: int = 0
    """A code to wait for: a real server takes a moment to notice a webhook or policy."""


def cm(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}}


def _hook(name: str, path: str, case: str, **more: Any) -> dict[str, Any]:
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    ]
    return {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"https://<<hooks>>{path}", "caBundle": "<<bundle>>"},
        "objectSelector": {"matchLabels": {"case": case}},
        "rules": rules,
        **more,
    }


def _configuration(kind: str, *webhooks: Mapping[str, Any]) -> Row:
    body = {"metadata": {"name": kind}, "webhooks": list(webhooks)}
    return Row(f"{kind} webhooks", "POST", f"{HOOKS}/{kind}webhookconfigurations", body)


def _annotated(review: dict[str, Any]) -> Any:
    return answered(review, allowed=True, auditAnnotations={"seen": "yes", "by": "the webhook"})


def _patched(review: dict[str, Any]) -> Any:
    import base64

    patch = base64.b64encode(b'[{"op":"add","path":"/metadata/labels/hooked","value":"yes"}]').decode()
    return answered(review, allowed=True, patchType="JSONPatch", patch=patch, auditAnnotations={"a": "b"})


def _denied(review: dict[str, Any]) -> Any:
    return answered(review, allowed=False, status={"code": 418}, auditAnnotations={"denied": "yes"})


HANDLERS: Mapping[str, Handler] = {
    "/annotate": _annotated,
    "/patch": _patched,
    "/deny": _denied,
    "/broken": lambda review: (500, "text/plain", b"broken"),
}
POLICY = validating(
    "audited",
    {"expression": "object.metadata.name != 'bad'", "message": "not this"},
    {"expression": "object.metadata.name != 'worse'", "message": "nor this"},
    rules=[rule("configmaps", "CREATE")],
    constraints={"objectSelector": {"matchLabels": {"case": "policy"}}},
    auditAnnotations=[
        {"key": "name", "valueExpression": "'  it is ' + object.metadata.name"},
        {"key": "none", "valueExpression": "object.metadata.name == 'bad' ? 'bad' : null"},
    ],
)
ROWS: tuple[Row, ...] = (
    Row("a create", "POST", CMS, cm("a")),
    Row("a generated name", "POST", CMS, {"metadata": {"generateName": "a-"}}),
    Row("a create that is refused", "POST", CMS, {"metadata": {"name": "A"}}),
    Row("one that is there", "POST", CMS, cm("a")),
    Row("a get", "GET", f"{CMS}/a"),
    Row("nothing", "GET", f"{CMS}/nothing"),
    Row("a list", "GET", "/api/v1/configmaps?limit=1"),
    Row("a selector", "GET", f"{CMS}?fieldSelector=metadata.name%3Da"),
    Row("a watch", "GET", "/api/v1/configmaps?watch=1&timeoutSeconds=1"),
    Row("an update", "PUT", f"{CMS}/a", cm("a", x="y")),
    Row(
        "an update of another",
        "PUT",
        f"{CMS}/a",
        {"metadata": {"name": "a", "uid": "other", "resourceVersion": "1"}},
    ),
    Row("a patch", "PATCH", f"{CMS}/a", {"data": {"x": "y"}}, headers={"Content-Type": MERGE}),
    Row("a group", "GET", "/apis/apps/v1/namespaces/default/deployments/web/scale"),
    Row("a subresource that is not there", "PUT", f"{CMS}/a/status", {}),
    Row("a health check", "GET", "/readyz"),
    Row("a path that is not there", "GET", "/nothing"),
    Row("a command", "POST", "/api/v1/namespaces/default/pods/x/exec?command=a"),
    Row("another user", "GET", "/api/v1/pods", headers={"Impersonate-User": "bob", "Impersonate-Group": "g"}),
    Row("by nobody", "GET", "/api/v1/pods", user=""),
    Row("by nobody, allowed", "GET", "/version", user=""),
    Row("a delete", "DELETE", f"{CMS}/a"),
    Row("a delete of nothing", "DELETE", f"{CMS}/a"),
    _configuration(
        "mutating",
        _hook("annotates", "/annotate", "annotated"),
        _hook("patches", "/patch", "patched", reinvocationPolicy="IfNeeded"),
        _hook("breaks", "/broken", "broken", failurePolicy="Ignore"),
        _hook("denies", "/deny", "denied"),
    ),
    Row("known", "POST", CMS, cm("m", case="denied"), until=418),
    Row("annotated by a webhook", "POST", CMS, cm("annotated", case="annotated")),
    Row("patched by a webhook", "POST", CMS, cm("patched", case="patched")),
    Row("a webhook that breaks", "POST", CMS, cm("broken", case="broken")),
    _configuration(
        "validating",
        _hook("annotates", "/annotate", "annotated-later"),
        _hook("breaks", "/broken", "broken-later", failurePolicy="Ignore"),
        _hook("denies", "/deny", "denied-later"),
    ),
    Row("known later", "POST", CMS, cm("m", case="denied-later"), until=418),
    Row("annotated later", "POST", CMS, cm("later", case="annotated-later")),
    Row("breaks later", "POST", CMS, cm("broken-later", case="broken-later")),
    Row("a policy", "POST", VALIDATING, POLICY),
    Row("a policy bound", "POST", VALIDATING_BINDINGS, bound("audited", "", "Audit", "Warn", here=False)),
    Row(
        "a policy that denies",
        "POST",
        VALIDATING,
        {
            **POLICY,
            "metadata": {"name": "denying"},
            "spec": {
                **POLICY["spec"],
                "validations": [{"expression": "object.metadata.name != 'probe'"}],
                "auditAnnotations": [],
            },
        },
    ),
    Row("bound to deny", "POST", VALIDATING_BINDINGS, bound("denying", here=False)),
    Row("known by policy", "POST", CMS, cm("probe", case="policy"), until=422),
    Row("good by policy", "POST", CMS, cm("good", case="policy")),
    Row("bad by policy", "POST", CMS, cm("bad", case="policy")),
    Row("worse by policy", "POST", CMS, cm("worse", case="policy")),
)


async def audited(target: Target, log: Path) -> dict[str, Any]:
    """The entries of all rows, by their titles."""
    async with AsyncExitStack() as stack:
        hooks = stack.enter_context(WebhookServer(HANDLERS))
        for number, row in enumerate(ROWS):
            session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=target.context(row.user)))
            )
            text = (
                json.dumps(row.body)
                .replace("<<hooks>>", hooks.address)
                .replace("<<bundle>>", hooks.ca_bundle)
            )
            headers = {"User-Agent": f"row/{number}", "Content-Type": "application/json", **row.headers}
            data = text if row.body is not None else None
            async with asyncio.timeout(30):
                while True:
                    async with session.request(
                        row.method, target.url + row.path, data=data, headers=headers
                    ) as answer:
                        await answer.read()
                    if row.until in (0, answer.status):
                        break
        async with asyncio.timeout(10):
            while len(found := dict(_entries(log))) < len(ROWS):
                await asyncio.sleep(0.05)
        replace = _replacer({hooks.address: "<webhooks>"})
    return {ROWS[number].title: replace(entry) for number, entry in sorted(found.items())}


def _entries(log: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        agent = entry.get("userAgent", "")
        if agent.startswith("row/") and entry["stage"] == "ResponseComplete":
            yield int(agent[4:]), entry


_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"[0-9]{4}-[0-9-]+T[0-9:.]+Z")
_CREDENTIAL = re.compile(r"X509SHA256=[0-9a-f]+")


def _replacer(known: Mapping[str, str]) -> Callable[[Any], Any]:
    """Replaces what differs from run to run by its kind."""

    def text(value: str) -> str:
        for one, name in known.items():
            value = value.replace(one, name)
        for pattern, name in ((_UID, "<uid>"), (_TIME, "<time>"), (_CREDENTIAL, "<credential>")):
            value = pattern.sub(name, value)
        return value

    def replace(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: replace(each) for key, each in sorted(value.items())}
        if isinstance(value, list):
            return [replace(each) for each in value]
        return text(value) if isinstance(value, str) else value

    return replace
