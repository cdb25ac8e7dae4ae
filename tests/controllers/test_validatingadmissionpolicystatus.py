"""validatingadmissionpolicy-status, row by row, and in a cluster."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.api.discovery import ApiResource, DiscoveryResult
from steersman.api.errors import NotFound, ServiceUnavailable
from steersman.api.kinds import ObjectMeta
from steersman.api.kinds.admission import (
    MatchResources,
    ParamKind,
    Rule,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec,
    ValidatingAdmissionPolicyStatus,
    Validation,
    Variable,
)
from steersman.controllers.validatingadmissionpolicystatus import MAX_KINDS, controller, decide, matched_kinds
from steersman.intent.actions import Discover, Patch, PatchType, ReadDocument
from steersman.intent.verdict import Rest
from steersman.sim.faults.requests import ErrorResponse
from steersman.testing import Cluster
from steersman.testing.decision_driver import USUAL, walk

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVED = DiscoveryResult(
    (
        ApiResource("", "v1", "Pod", "pods", True),
        ApiResource("", "v1", "Event", "events", True),
        ApiResource("", "v1", "ConfigMap", "configmaps", True),
        ApiResource("apps", "v1", "Deployment", "deployments", True),
        ApiResource("apps", "v1beta1", "Deployment", "deployments", True),
        ApiResource("events.k8s.io", "v1", "Event", "events", True),
        *(ApiResource("many.example.com", "v1", f"Kind{n:02}", f"kind{n:02}s", True) for n in range(12)),
    )
)


def rule(groups: str, versions: str, *resources: str) -> Rule:
    return Rule(tuple(groups.split("|")), tuple(versions.split("|")), resources)


def policy(
    *rules: Rule, expression: str = "true", message: str = "", **spec: Any
) -> ValidatingAdmissionPolicy:
    return ValidatingAdmissionPolicy(
        metadata=ObjectMeta(name="p", uid="p", generation=2),
        spec=ValidatingAdmissionPolicySpec(
            matchConstraints=MatchResources(rules),
            validations=(Validation(expression, message),),
            **spec,
        ),
        status=ValidatingAdmissionPolicyStatus(observedGeneration=1),
    )


DEPLOYMENTS = rule("apps", "v1", "deployments")
PODS = rule("", "v1", "pods")


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        ((), []),
        ((DEPLOYMENTS,), ["apps/v1 Deployment"]),
        ((DEPLOYMENTS, PODS), ["v1 Pod", "apps/v1 Deployment"]),
        ((DEPLOYMENTS, DEPLOYMENTS), ["apps/v1 Deployment"]),
        ((rule("apps", "v1|v1beta1", "deployments"),), ["apps/v1 Deployment", "apps/v1beta1 Deployment"]),
        ((rule("apps", "v1", "Deployment"),), ["apps/v1 Deployment"]),
        ((rule("apps", "v1", "*"),), []),
        ((rule("apps", "v1", "pods/*", "deployments/scale"),), []),
        ((rule("apps", "v1", "*", "deployments"),), ["apps/v1 Deployment"]),
        ((DEPLOYMENTS, rule("apps", "*", "deployments")), ["apps/v1 Deployment"]),
        ((rule("*", "v1", "deployments"),), []),
        ((rule("apps", "v1", "nothings"), rule("apps", "v2", "deployments")), []),
        # Who leaves the group out is given what any group has of that name.
        ((rule("", "v1", "events"),), ["v1 Event", "events.k8s.io/v1 Event"]),
        ((rule("events.k8s.io", "v1", "events"),), ["events.k8s.io/v1 Event"]),
    ],
)
def test_a_policy_matches_what_it_names(rules: tuple[Rule, ...], kinds: list[str]) -> None:
    assert [f"{one.api_version} {one.kind}" for one in matched_kinds(policy(*rules), SERVED)] == kinds


def test_a_rule_is_checked_with_ten_kinds_and_ends_the_list_then() -> None:
    many = rule("many.example.com", "v1", *(f"kind{n:02}s" for n in reversed(range(12))))
    found = [one.kind for one in matched_kinds(policy(PODS, many, DEPLOYMENTS), SERVED)]
    assert found == ["Pod", *(f"Kind{n:02}" for n in range(MAX_KINDS))]


def test_a_policy_without_constraints_matches_nothing() -> None:
    bare = ValidatingAdmissionPolicy(metadata=ObjectMeta(name="p", generation=1))
    assert matched_kinds(bare, SERVED) == ()


# -- what is decided --------------------------------------------------------------------------


def schema(group: str, version: str, kind: str, **properties: Any) -> dict[str, Any]:
    gvk = {"group": group, "version": version, "kind": kind}
    return {"type": "object", "properties": properties, "x-kubernetes-group-version-kind": [gvk]}


SPEC = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
DOCUMENTS = {
    "/openapi/v3/apis/apps/v1": {
        "components": {"schemas": {"D": schema("apps", "v1", "Deployment", spec=SPEC)}},
    },
    "/openapi/v3/api/v1": {
        "components": {
            "schemas": {
                "P": schema("", "v1", "Pod", spec={"type": "object"}),
                "C": schema(
                    "", "v1", "ConfigMap", data={"type": "object", "additionalProperties": {"type": "string"}}
                ),
            }
        },
    },
}


def answer(action: Any) -> Any:
    if isinstance(action, ReadDocument):
        return DOCUMENTS.get(action.path) or NotFound("nothing here")
    return SERVED if isinstance(action, Discover) else USUAL


def decided(seen: ValidatingAdmissionPolicy) -> tuple[list[str], dict[str, Any]]:
    """What was read, and the status that was applied."""
    actions, _ = walk(decide(seen, NOW), answer)
    applied = actions[-1]
    assert isinstance(applied, Patch)
    assert (applied.type, applied.subresource, applied.field_manager, applied.force) == (
        PatchType.APPLY,
        "status",
        "validatingadmissionpolicy-status",
        True,
    )
    assert {key: value for key, value in applied.body.items() if key != "status"} == {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
    }
    return [one.path for one in actions if isinstance(one, ReadDocument)], dict(applied.body["status"])


def test_a_policy_that_is_right_is_applied_as_seen() -> None:
    read, status = decided(policy(DEPLOYMENTS, expression="object.spec.replicas > 1"))
    assert status == {"observedGeneration": 2, "typeChecking": {}}
    assert read == ["/openapi/v3/apis/apps/v1"]


def test_what_is_wrong_is_said_of_each_field() -> None:
    _, status = decided(
        policy(DEPLOYMENTS, expression="object.replicas > 1", message="1 + object.spec.replicas + 'a'")
    )
    words = "found no matching overload for '_+_' applied to '(int, string)'"
    assert status["typeChecking"]["expressionWarnings"] == [
        {
            "fieldRef": "spec.validations[0].expression",
            "warning": "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n"
            " | object.replicas > 1\n | ......^\n",
        },
        {
            "fieldRef": "spec.validations[0].messageExpression",
            "warning": f"apps/v1, Kind=Deployment: ERROR: <input>:1:26: {words}\n"
            " | 1 + object.spec.replicas + 'a'\n | .........................^\n",
        },
    ]


def test_each_document_is_read_once() -> None:
    parameters = ParamKind("v1", "ConfigMap")
    read, status = decided(
        policy(
            PODS,
            DEPLOYMENTS,
            rule("", "v1", "configmaps"),
            expression="params.data.x == 1",
            paramKind=parameters,
        )
    )
    assert read == ["/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"]
    [warning] = status["typeChecking"]["expressionWarnings"]
    assert warning["warning"].count("'(string, int)'") == 3


def test_parameters_are_never_of_the_type_of_the_objects() -> None:
    _, status = decided(policy(PODS, expression="params == object", paramKind=ParamKind("v1", "Pod")))
    [warning] = status["typeChecking"]["expressionWarnings"]
    assert "'(Pod1, Pod)'" in warning["warning"]


def test_what_the_server_does_not_describe_is_not_checked() -> None:
    unknown = rule("events.k8s.io", "v1", "events")
    _, status = decided(policy(unknown, expression="object.x.y == 1"))
    assert status == {"observedGeneration": 2, "typeChecking": {}}
    nowhere = ParamKind("nowhere.example.com/v1", "Nothing")
    _, status = decided(policy(DEPLOYMENTS, expression="params.x.y == 1", paramKind=nowhere))
    assert status == {"observedGeneration": 2, "typeChecking": {}}


def test_variables_are_known_to_expressions_and_wrong_ones_are_no_warning() -> None:
    variables = (Variable("many", "object.spec.replicas"), Variable("wrong", "object.nothing"))
    _, status = decided(
        policy(DEPLOYMENTS, expression="variables.many == 'a' || variables.wrong", variables=variables)
    )
    [warning] = status["typeChecking"]["expressionWarnings"]
    assert "'(int, string)'" in warning["warning"]
    assert "undefined" not in warning["warning"]


def test_nothing_is_read_for_a_policy_that_matches_nothing() -> None:
    read, status = decided(policy(rule("*", "*", "*"), expression="object.x == 1"))
    assert (read, status) == ([], {"observedGeneration": 2, "typeChecking": {}})


def test_a_server_that_does_not_answer_is_asked_again() -> None:
    with pytest.raises(ServiceUnavailable):
        walk(decide(policy(DEPLOYMENTS), NOW), {Discover: SERVED, ReadDocument: ServiceUnavailable("later")})


def test_a_policy_that_was_checked_is_left_alone() -> None:
    seen = policy(DEPLOYMENTS)
    done = ValidatingAdmissionPolicy(
        metadata=seen.metadata, spec=seen.spec, status=ValidatingAdmissionPolicyStatus(observedGeneration=2)
    )
    assert walk(decide(done, NOW)) == ([], Rest("expressions already checked"))
    [watch] = controller.watches
    assert watch.when is not None
    assert [watch.when(one) for one in (seen, done)] == [True, False]


def test_a_policy_that_is_gone_needs_no_status() -> None:
    _, verdict = walk(decide(policy(DEPLOYMENTS), NOW), {Patch: NotFound("gone")})
    assert verdict == Rest("policy already gone")


# -- upstream's tables ----------------------------------------------------------------------------

STRING, INTEGER = {"type": "string"}, {"type": "integer", "format": "int64"}
FOO = {"type": "object", "properties": {"foo": STRING}}
FOO_NUMBER = {"type": "object", "properties": {"foo": INTEGER}}
EXPRESSION, MESSAGE = "spec.validations[0].expression", "spec.validations[0].messageExpression"
REPRODUCER = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"text": STRING}},
        "status": {
            "type": "object",
            "properties": {"problematicProperty": {"type": "object", "additionalProperties": True}},
        },
    },
}


def warned(schema: dict[str, Any] | None, *validations: Validation, **spec: Any) -> list[tuple[str, str]]:
    """The warnings about a policy for Deployments, where each kind has the same schema."""
    seen = policy(DEPLOYMENTS, **spec)
    seen = replace(seen, spec=replace(seen.spec, validations=validations))
    kinds = [("apps", "v1", "Deployment"), ("", "v1", "DoesNotMatter"), ("", "v1", "Config")]

    def describe(action: Any) -> Any:
        if not isinstance(action, ReadDocument):
            return SERVED if isinstance(action, Discover) else USUAL
        if schema is None:
            return NotFound("nothing here")
        names = ("group", "version", "kind")
        tagged = {
            kind[2]: {**schema, "x-kubernetes-group-version-kind": [dict(zip(names, kind, strict=True))]}
            for kind in kinds
        }
        return {"components": {"schemas": tagged}}

    actions, _ = walk(decide(seen, NOW), describe)
    checking = actions[-1].body["status"]["typeChecking"]  # type: ignore[attr-defined]
    return [(one["fieldRef"], one["warning"]) for one in checking.get("expressionWarnings", ())]


IS_BAR = Validation("object.foo == 'bar'")
CONFIG = ParamKind("v1", "Config")


@pytest.mark.parametrize(
    ("schema", "validations", "spec", "expected"),
    [
        (None, [IS_BAR], {}, []),
        (FOO, [IS_BAR], {}, []),
        (
            {"type": "object", "properties": {"bar": STRING}},
            [IS_BAR],
            {},
            [(EXPRESSION, "undefined field 'foo'")],
        ),
        (FOO_NUMBER, [IS_BAR], {}, [(EXPRESSION, "found no matching overload")]),
        (
            FOO,
            [Validation("object.foo == params.bar")],
            {"paramKind": ParamKind("v1", "DoesNotMatter")},
            [(EXPRESSION, "undefined field 'bar'")],
        ),
        ({}, [Validation("params != null")], {"paramKind": CONFIG}, []),
        (
            FOO,
            [IS_BAR, Validation("object.bar == 'foo'")],
            {},
            [("spec.validations[1].expression", "undefined field 'bar'")],
        ),
        (
            FOO,
            [Validation("object.foo == 'bar'", "object.foo + 114514")],
            {},
            [(MESSAGE, "found no matching overload for '_+_'")],
        ),
        (
            FOO,
            [Validation("authorizer.group('').resource('endpoints').check('create').allowed()")],
            {},
            [],
        ),
        (
            FOO,
            [Validation("authorizer.allowed()")],
            {},
            [
                (
                    EXPRESSION,
                    "found no matching overload for 'allowed' applied to 'kubernetes.authorization.Authorizer",
                )
            ],
        ),
        (REPRODUCER, [Validation("has(object.spec.text)")], {}, []),
        ({}, [Validation("true")], {}, []),
        (FOO_NUMBER, [Validation("variables.works")], {"variables": (Variable("works", "true"),)}, []),
        (
            FOO_NUMBER,
            [Validation("variables.nonExisting")],
            {"variables": (Variable("works", "true"),)},
            [(EXPRESSION, "undefined field 'nonExisting'")],
        ),
        (
            FOO_NUMBER,
            [Validation("variables.name == object.foo")],
            {"variables": (Variable("name", "'something'"),)},
            [(EXPRESSION, "found no matching overload for '_==_' applied to '(string, int)")],
        ),
        (
            FOO_NUMBER,
            [Validation("variables.name == object.foo")],
            {"variables": (Variable("name", "object.foo == 'str'"),)},
            [],
        ),
    ],
    ids=[
        "no schema",
        "right",
        "undefined field",
        "wrong type",
        "params",
        "params without a type",
        "several expressions",
        "message expression",
        "authorizer",
        "authorizer used wrongly",
        "additionalProperties: true",
        "schema without a type",
        "variable",
        "undefined variable",
        "variable of another type",
        "error in a variable",
    ],
)
def test_expressions_are_warned_of(
    schema: dict[str, Any] | None,
    validations: list[Validation],
    spec: dict[str, Any],
    expected: list[tuple[str, str]],
) -> None:
    found = warned(schema, *validations, **spec)
    assert [field for field, _ in found] == [field for field, _ in expected]
    for (_, warning), (_, part) in zip(found, expected, strict=True):
        assert part in warning


CONFUSED = "found no matching overload for '_>_' applied to '(int, string)'"


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        (["object.spec.replicas > 1"], {}),
        (["object.spec.replicas < 100", "object.spec.replicas > '1'"], {1: [CONFUSED]}),
        (
            ["object.spec.nonExistingFirst > 1", "object.spec.replicas > '1'"],
            {0: ["undefined field 'nonExistingFirst'"], 1: [CONFUSED]},
        ),
        (
            [
                "object.spec.replicas < 100",
                "object.spec.replicas > '1' && object.spec.nonExisting == 1",
            ],
            {1: ["undefined field 'nonExisting'", CONFUSED]},
        ),
    ],
)
def test_a_policy_for_deployments_is_warned_of(
    expressions: list[str], expected: dict[int, list[str]]
) -> None:
    schema = {"type": "object", "properties": {"spec": SPEC}}
    found = warned(schema, *map(Validation, expressions))
    assert [field for field, _ in found] == [f"spec.validations[{index}].expression" for index in expected]
    for (_, warning), parts in zip(found, expected.values(), strict=True):
        assert all(part in warning for part in parts)


# -- in a cluster -----------------------------------------------------------------------------

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: replicas}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}
    - {apiGroups: [example.com], apiVersions: [v1], resources: [gizmos], operations: [CREATE]}
  validations:
  - expression: EXPRESSION
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos, singular: gizmo}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {replicas: {type: string}}}}
"""


WRONG = (
    "example.com/v1, Kind=Gizmo: ERROR: <input>:1:22: found no matching overload for '_>_' applied to "
    "'(string, int)'\n | object.spec.replicas > 1\n | .....................^\n"
)


def status_of(cluster: Cluster) -> tuple[int, list[str]]:
    status = cluster.get("ValidatingAdmissionPolicy", "replicas").status
    checking = status.typeChecking
    return status.observedGeneration, [one.warning for one in checking.expressionWarnings] if checking else []


def test_a_policy_in_a_cluster_says_what_is_wrong_with_it_until_it_is_mended(cluster: Cluster) -> None:
    cluster.apply(CRD)
    cluster.settle()
    cluster.apply(POLICY.replace("EXPRESSION", "object.spec.replicas > 1"))
    cluster.settle()
    assert status_of(cluster) == (1, [WRONG])
    cluster.apply(POLICY.replace("EXPRESSION", "has(object.spec.replicas)"))
    cluster.settle()
    assert status_of(cluster) == (2, [])


def test_a_server_that_describes_nothing_for_a_while_is_waited_for() -> None:
    with Cluster(seed=1, faults=(ErrorResponse(503, "document", seconds=60),)) as cluster:
        cluster.apply(CRD)
        cluster.apply(POLICY.replace("EXPRESSION", "object.spec.replicas > 1"))
        cluster.advance(seconds=30)
        assert status_of(cluster) == (0, [])
        cluster.wait_until(lambda: status_of(cluster)[0] == 1)
        assert status_of(cluster) == (1, [WRONG])
