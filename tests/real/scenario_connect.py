"""A chapter about CONNECT: what admission is shown of exec, attach, port forwarding and proxying, and how it refuses them.

``/echo`` denies with the review it was sent, so that the answer shows what both servers ask.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.harness.webhook_server import Handler, answered, patching
from tests.real.scenario import Ask, ask, here, pod, post
from tests.real.scenario_policies import (
    GROUP,
    MUTATING,
    MUTATING_BINDINGS,
    VALIDATING,
    VALIDATING_BINDINGS,
    applied,
    bound,
    json_patch,
    mutating,
    rule,
    validating,
)
from tests.real.scenario_webhooks import HANDLERS as OTHERS

PODS = here("pods")
CONFIGURATIONS = f"/apis/{GROUP}/v1"


def echo(review: dict[str, Any]) -> Any:
    request = dict(review["request"])
    del request["uid"]
    user = dict(request["userInfo"])
    # A real server adds where the credential came from.
    request["userInfo"] = {name: user[name] for name in ("username", "groups") if name in user}
    return answered(
        review, allowed=False, status={"message": json.dumps(request, sort_keys=True), "code": 418}
    )


HANDLERS: Mapping[str, Handler] = {
    **OTHERS,
    "/echo": echo,
    "/another-command": patching({"op": "replace", "path": "/command", "value": ["changed"]}),
}


def webhook(name: str, path: str, resource: str, *operations: str, **more: Any) -> dict[str, Any]:
    return {
        "name": f"{name}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"https://<<hooks>>{path}", "caBundle": "<<bundle>>"},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": [resource],
                "operations": list(operations or ("CONNECT",)),
            }
        ],
        **more,
    }


def configured(kind: str, name: str, *webhooks: Mapping[str, Any]) -> Ask:
    made = {"metadata": {"name": name}, "webhooks": list(webhooks)}
    return post(f"{name}: configure", f"{CONFIGURATIONS}/{kind}webhookconfigurations", made)


CASES: tuple[tuple[str, str, str, str], ...] = (
    (
        "exec",
        "POST",
        "pods/exec",
        f"{PODS}/p/exec?command=a&command=b&stdin=true&stdout=1&stderr=false&tty=0&container=c",
    ),
    ("exec by GET", "GET", "pods/exec", f"{PODS}/p/exec?command=a&stdout=true"),
    ("exec without a command", "POST", "pods/exec", f"{PODS}/p/exec"),
    ("exec in no pod", "POST", "pods/exec", f"{PODS}/nothing/exec?command=a"),
    ("attach", "POST", "pods/attach", f"{PODS}/p/attach?stdin=true&container=c"),
    ("attach to whatever", "GET", "pods/attach", f"{PODS}/p/attach"),
    ("forward", "POST", "pods/portforward", f"{PODS}/p/portforward?ports=80&ports=81,82"),
    ("forward no port", "GET", "pods/portforward", f"{PODS}/p/portforward"),
    ("pod", "GET", "pods/proxy", f"{PODS}/p/proxy/some/path"),
    ("pod with a slash", "PUT", "pods/proxy", f"{PODS}/p/proxy/"),
    ("pod by port", "PATCH", "pods/proxy", f"{PODS}/http:p:80/proxy/x/?q=1&path=other"),
    ("service", "DELETE", "services/proxy", f"{here('services')}/s:web/proxy/x"),
    ("service alone", "GET", "services/proxy", f"{here('services')}/s/proxy"),
    ("node", "GET", "nodes/proxy", "/api/v1/nodes/n/proxy/pods"),
    ("node by port", "POST", "nodes/proxy", "/api/v1/nodes/n:10250/proxy"),
)
WRONG: tuple[tuple[str, str, str], ...] = (
    ("a dry run", "POST", f"{PODS}/p/exec?command=a&dryRun=All"),
    ("a port that is none", "POST", f"{PODS}/p/portforward?ports=a"),
    ("a port that is too large", "POST", f"{PODS}/p/portforward?ports=80,70000"),
    ("an empty port", "POST", f"{PODS}/p/portforward?ports="),
    ("a pod without a node", "POST", f"{PODS}/p/exec?command=a&container=c"),
    ("a container that is not there", "POST", f"{PODS}/p/exec?command=a&container=d"),
    ("no pod", "POST", f"{PODS}/nothing/attach"),
    ("no service", "GET", f"{here('services')}/nothing/proxy/"),
)


def rows() -> Iterator[Ask]:
    yield post("a pod", PODS, pod("p"))
    for title, method, path in WRONG:
        yield ask(f"without webhooks, {title}", method, path)
    resources = dict.fromkeys(resource for _, _, resource, _ in CASES)
    yield configured(
        "validating",
        "echoes",
        *(webhook(resource.replace("/", "-"), "/echo", resource) for resource in resources),
    )
    for title, method, _, path in CASES:
        # The first answer of each may come before the webhook is known.
        yield ask(f"echoed, {title}", method, path, until=418)
    for title, method, path in WRONG[:3]:
        yield ask(f"echoed, {title}", method, path)
    yield configured("mutating", "changes", webhook("changes", "/another-command", "pods/exec"))
    yield configured("mutating", "later", webhook("later", "/probe", "pods/attach"))
    yield ask("later, known", "POST", f"{PODS}/p/attach", until=418)
    yield ask("a command that a webhook changes", "POST", f"{PODS}/p/exec?command=a")
    yield from _policies()


def _policies() -> Iterator[Ask]:
    for kind in ("validating", "mutating"):
        for name in ("echoes",) if kind == "validating" else ("changes", "later"):
            yield ask(
                f"{kind} webhooks {name} gone",
                "DELETE",
                f"{CONFIGURATIONS}/{kind}webhookconfigurations/{name}",
            )
    rules = [rule("pods/exec", "CONNECT")]
    yield post(
        "a policy for commands",
        VALIDATING,
        validating(
            "no-shell",
            {
                "expression": "!('sh' in object.command)",
                "messageExpression": "request.operation + ' ' + request.kind.kind + ' ' + object.kind + ' ' + request.subResource + ' ' + string(oldObject == null)",
                "reason": "Forbidden",
            },
            rules=rules,
        ),
    )
    yield post("a policy for commands, bound", VALIDATING_BINDINGS, bound("no-shell"))
    yield ask("a shell", "POST", f"{PODS}/p/exec?command=sh", until=403)
    yield ask("no shell", "POST", f"{PODS}/p/exec?command=ls&container=c")
    yield ask("no command", "POST", f"{PODS}/p/exec")
    patched = mutating(
        "other-command",
        json_patch("[JSONPatch{op: 'replace', path: '/command', value: ['sh']}]"),
        rules=[rule("pods/exec", "CONNECT")],
        matchConditions=[{"name": "m", "expression": "'mutate' in object.command"}],
    )
    yield post("a policy that changes commands", MUTATING, patched)
    yield post(
        "a policy that changes commands, bound", MUTATING_BINDINGS, bound("other-command", kind="Mutating")
    )
    yield ask("a shell by a policy", "POST", f"{PODS}/p/exec?command=mutate", until=403)
    merged = mutating(
        "other-container",
        applied("Object{container: 'other'}"),
        rules=[rule("pods/attach", "CONNECT")],
    )
    yield post("a policy that applies", MUTATING, merged)
    yield post("a policy that applies, bound", MUTATING_BINDINGS, bound("other-container", kind="Mutating"))
    yield ask("a container by a policy", "POST", f"{PODS}/p/attach?container=c", until=403)


CHAPTERS = {"connect": tuple(rows())}
