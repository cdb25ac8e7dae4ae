"""Expressions that cost much: the event loop turns meanwhile, and the answer is the one that it would have been."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.cel.policy_expressions import VARIABLES, Composition, policy_environment
from steersman.api.cel.program import Allowance, lazy
from steersman.api.cel.runtime.values import EvaluationError
from steersman.api.clock import RealClock
from steersman.api.errors import ApiError, ServerTimeout
from steersman.api.generated.core_v1 import Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.scheme import Kind
from steersman.server import admission, crd
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.evaluation import SLICE, UNLIMITED, EvaluationThread
from steersman.server.local import LocalApi
from steersman.server.rest import restart
from steersman.server.server import Server
from tests.harness import verbs

GROUP = "admissionregistration.k8s.io"
CONFIGMAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}
CUBIC = "object.data.all(k, object.data.all(l, object.data.all(m, k + l != m)))"
"""Costs some 600,000 with the keys of `LARGE`."""
LARGE = {f"key-{number:02}": "" for number in range(40)}
OUT_OF_BUDGET = "running out of cost budget"
MANY_TURNS = 100
"""Turns of the event loop that can only have been made while expressions were evaluated: a request itself takes a handful."""


def kind(plural: str, api_version: str, name: str, namespaced: bool = True) -> Kind[dict[str, Any]]:
    group, _, version = api_version.rpartition("/")
    return Kind(group, version, name, plural, namespaced, dict)


CM = kind("configmaps", "v1", "ConfigMap")


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(RealClock())
    server.extend(admission.standalone())
    server.extend(crd.install)
    namespaces = server.registry.find("", "v1", "namespaces")
    verbs.create(server, namespaces, "", Namespace(metadata=ObjectMeta(name="default")))
    thread = server.evaluation_thread = EvaluationThread()
    yield server
    thread.close()


async def write(server: Server, plural: str, name: str, spec: dict[str, Any], api: str = GROUP) -> None:
    found = kind(plural, f"{api}/v1", server.registry.find(api, "v1", plural).kind, False)
    await LocalApi(server).create(found, "", {"metadata": {"name": name}, "spec": spec})


async def policy(server: Server, which: str, spec: dict[str, Any]) -> None:
    constraints = {"resourceRules": [CONFIGMAPS], "namespaceSelector": {}, "objectSelector": {}}
    base = {"matchConstraints": {**constraints, "matchPolicy": "Equivalent"}, "failurePolicy": "Fail"}
    await write(server, f"{which}admissionpolicies", "p", {**base, **spec})
    actions = {"validationActions": ["Deny"]} if which == "validating" else {}
    await write(server, f"{which}admissionpolicybindings", "p", {"policyName": "p", **actions})


async def turns_of(request: Any) -> tuple[int, Any]:
    """How often the event loop turned during a request, and its result or error."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    try:
        results: Any = await asyncio.gather(request, return_exceptions=True)
        return turns, results[0]
    finally:
        counting.cancel()


def create(server: Server, name: str = "large", data: dict[str, str] = LARGE) -> Any:
    return LocalApi(server).create(CM, "default", {"metadata": {"name": name}, "data": data})


async def test_the_loop_turns_while_a_policy_uses_up_its_budget(server: Server) -> None:
    await policy(server, "validating", {"validations": [{"expression": CUBIC}] * 25})
    turns, refused = await turns_of(create(server))
    assert isinstance(refused, ApiError)
    assert OUT_OF_BUDGET in refused.message
    assert turns > MANY_TURNS
    server.evaluation_thread = None
    _, at_once = await turns_of(create(server))
    assert at_once.message == refused.message


async def test_a_costly_policy_keeps_every_object_of_a_collection_that_it_denies_to_delete(
    server: Server,
) -> None:
    cubic = CUBIC.replace("object", "oldObject")
    rules = {"resourceRules": [{**CONFIGMAPS, "operations": ["DELETE"]}], "matchPolicy": "Equivalent"}
    kept = f"{cubic} && oldObject.metadata.name.startsWith('free')"
    await policy(server, "validating", {"matchConstraints": rules, "validations": [{"expression": kept}]})
    for name in ("free-1", "free-2", "kept-1", "kept-2"):
        await create(server, name)
    turns, refused = await turns_of(LocalApi(server).delete_collection(CM, "default"))
    assert isinstance(refused, ApiError)
    assert "denied request" in refused.message
    assert turns > MANY_TURNS
    left = await LocalApi(server).list(CM, "default")
    # As upstream, which deletes up to the first refusal.
    assert [each["metadata"]["name"] for each in left.items] == ["kept-1", "kept-2"]


def test_the_variables_of_a_policy_share_one_slice() -> None:
    # Each costs less than a slice. Together they would hold up the loop for dozens of slices before the sum was known.
    environment, composition = policy_environment(params=False, authorizer=False), Composition()
    names = [f"v{number}" for number in range(40)]
    for name in names:
        composition.declare(name, "object.all(k, object.all(l, k + l >= 0))", environment)
    expression = composition.compile(" && ".join(f"variables.{name}" for name in names), environment, None)
    allowance = Allowance(SLICE)
    cells = [
        lazy(each.name, each.program, allowance) for each in composition.variables if each.program is not None
    ]
    values = [list(range(60)), *[None] * (len(VARIABLES) - 1)]
    assert expression.program is not None
    with pytest.raises(EvaluationError) as stopped:
        expression.program.evaluate_in([0, 0, *values, *cells])
    assert SLICE < stopped.value.cost < 2 * SLICE
    free = [
        lazy(each.name, each.program, Allowance(UNLIMITED)) for each in composition.variables if each.program
    ]
    value, cost = expression.program.evaluate_in([0, 0, *values, *free])
    assert value is True
    assert cost > 10 * SLICE


async def test_cheap_expressions_are_evaluated_at_once(server: Server) -> None:
    await policy(server, "validating", {"validations": [{"expression": CUBIC}] * 25})
    turns, made = await turns_of(create(server, data={"a": "b"}))
    assert made["metadata"]["name"] == "large"
    assert turns < MANY_TURNS
    assert server.evaluation_thread is not None
    assert server.evaluation_thread._executor is None


async def test_a_costly_policy_that_admits_has_its_messages_variables_and_match_conditions(
    server: Server,
) -> None:
    await policy(
        server,
        "validating",
        {
            "matchConditions": [{"name": "m", "expression": CUBIC}],
            "variables": [{"name": "fine", "expression": CUBIC}],
            "validations": [
                {"expression": "variables.fine"},
                {
                    "expression": "object.metadata.name != 'bad'",
                    "messageExpression": "'it is ' + object.metadata.name",
                },
            ],
        },
    )
    turns, made = await turns_of(create(server))
    assert made["data"] == LARGE
    assert turns > MANY_TURNS
    _, refused = await turns_of(create(server, "bad"))
    assert refused.message.endswith("denied request: it is bad")


async def test_the_loop_turns_while_a_mutating_policy_is_evaluated(server: Server) -> None:
    patch = f"{CUBIC} ? [JSONPatch{{op: 'add', path: '/data/made', value: 'yes'}}] : []"
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}]
    await policy(server, "mutating", {"mutations": mutations, "reinvocationPolicy": "Never"})
    turns, made = await turns_of(create(server))
    assert made["data"]["made"] == "yes"
    assert turns > MANY_TURNS


async def test_the_loop_turns_while_the_rules_of_a_custom_resource_are_evaluated(server: Server) -> None:
    rule = "self.all(k, self.all(l, self.all(m, k + l != m)))"
    items = {"type": "array", "maxItems": 60, "items": {"type": "string", "maxLength": 8}}
    many = {**items, "x-kubernetes-validations": [{"rule": rule}]}
    # As many as a definition may have, by their estimates.
    properties = {f"many{number}": many for number in range(3)}
    await write(
        server,
        "customresourcedefinitions",
        "widgets.example.com",
        {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
        "apiextensions.k8s.io",
    )
    widgets = kind("widgets", "example.com/v1", "Widget")
    body = {"metadata": {"name": "w"}, **{key: list(LARGE) for key in properties}}
    turns, made = await turns_of(LocalApi(server).create(widgets, "default", body))
    assert made["many2"] == list(LARGE)
    assert turns > MANY_TURNS


async def test_an_authorizer_is_asked_on_the_thread_of_the_loop(server: Server) -> None:
    asked: list[int] = []

    class Recording:
        def authorize(self, attributes: Attributes) -> Decision:
            asked.append(threading.get_ident())
            return Decision(attributes.verb == "get", "")

    check = "authorizer.group('').resource('pods').check('get').allowed()"
    await policy(server, "validating", {"validations": [{"expression": f"{check} && {CUBIC}"}]})
    server.authorizer = Recording()  # type: ignore[assignment]
    _, made = await turns_of(create(server, data=LARGE))
    assert made["metadata"]["name"] == "large"
    assert asked
    assert set(asked) == {threading.get_ident()}


async def test_expressions_that_take_longer_than_a_request_may_end_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await policy(server, "validating", {"validations": [{"expression": CUBIC}] * 25})
    monkeypatch.setattr(restart, "TIMEOUT", 1e-3)
    _, refused = await turns_of(create(server))
    assert isinstance(refused, ServerTimeout)
