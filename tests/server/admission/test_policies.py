"""Admission policies in process: denials, warnings, parameters and mutations. What a real server answers is in tests/real."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from steersman.api.errors import ApiError
from steersman.api.generated.core_v1 import Binding, ObjectReference
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server.auth.attributes import Attributes, Decision
from steersman.server.auth.users import APISERVER
from steersman.server.rest.perform import perform
from steersman.server.rest.request import Request
from steersman.server.server import Server
from tests.server.admission.conftest import Asker

GROUP = "admissionregistration.k8s.io"
CONFIGMAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}


def policy(
    ask: Asker, kind: str, spec: dict[str, Any], binding: dict[str, Any] | None = None, name: str = "p"
) -> None:
    """Creates a policy and its binding."""
    constraints = {"resourceRules": [CONFIGMAPS], "namespaceSelector": {}, "objectSelector": {}}
    base = {"matchConstraints": {**constraints, "matchPolicy": "Equivalent"}, "failurePolicy": "Fail"}
    lower = kind.lower()
    ask.create(f"{lower}admissionpolicies.{GROUP}", {"metadata": {"name": name}, "spec": {**base, **spec}})
    actions = {"validationActions": ["Deny"]} if kind == "Validating" else {}
    bound = {"policyName": name, **actions, **(binding or {})}
    ask.create(f"{lower}admissionpolicybindings.{GROUP}", {"metadata": {"name": name}, "spec": bound})


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **more.pop("metadata", {})}, **more}


def refusal(ask: Asker, document: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask.create("configmaps", document)
    return caught.value


def test_a_policy_denies_what_breaks_its_rules_once_it_is_bound(ask: Asker) -> None:
    policy(
        ask,
        "Validating",
        {"validations": [{"expression": "object.metadata.name != 'bad'", "message": "not this"}]},
    )
    ask.create("configmaps", config_map("good"))
    error = refusal(ask, config_map("bad"))
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == (
        "configmaps \"bad\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: not this"
    )


def test_variables_are_computed_when_used_and_errors_follow_the_failure_policy(ask: Asker) -> None:
    spec: dict[str, Any] = {
        "variables": [{"name": "n", "expression": "int(object.data['n'])"}],
        "validations": [{"expression": "object.metadata.name == 'unused' || variables.n < 5"}],
    }
    policy(ask, "Validating", spec)
    ask.create("configmaps", config_map("unused"))
    assert "no such key: data" in refusal(ask, config_map("used")).message
    assert "failed expression" in refusal(ask, config_map("used", data={"n": "7"})).message
    policy(ask, "Validating", {**spec, "failurePolicy": "Ignore"}, name="q")


def test_an_error_of_a_variable_names_the_variables_on_the_way_to_it(ask: Asker) -> None:
    variables = [
        {"name": "a", "expression": "object.data"},
        {"name": "b", "expression": "variables.a.x == 'y'"},
    ]
    policy(ask, "Validating", {"variables": variables, "validations": [{"expression": "variables.b"}]})
    failing = "denied request: expression 'variables.b' resulted in error: composited variable \"b\" fails to evaluate: "
    assert refusal(ask, config_map("m", data={"z": "y"})).message.endswith(f"{failing}no such key: x")
    assert refusal(ask, config_map("m")).message.endswith(
        f'{failing}composited variable "a" fails to evaluate: no such key: data'
    )


def test_a_binding_may_warn(ask: Asker, server: Server) -> None:
    validation = {"expression": "false", "messageExpression": "'never ' + object.metadata.name"}
    policy(ask, "Validating", {"validations": [validation]}, {"validationActions": ["Warn", "Audit"]})
    for name in ("a", "b"):
        ask.create("configmaps", config_map(name))
        # Only those of the last request are kept.
        assert server.request_warnings == [
            f"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': never {name}"
        ]


def test_parameters_are_looked_up_by_name_and_selector(ask: Asker) -> None:
    ask.create("configmaps", config_map("small", data={"max": "1"}, metadata={"labels": {"x": "y"}}))
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "!has(object.data) || object.data.size() <= int(params.data.max)"}],
    }
    policy(ask, "Validating", spec, {"paramRef": {"name": "small", "parameterNotFoundAction": "Deny"}})
    selected = {"paramRef": {"selector": {"matchLabels": {"x": "y"}}, "parameterNotFoundAction": "Allow"}}
    policy(ask, "Validating", spec, selected, name="q")
    assert "failed expression" in refusal(ask, config_map("a", data={"b": "1", "c": "2"})).message
    ask.delete("configmaps", "small")
    assert "no params found" in refusal(ask, config_map("a")).message


def test_a_mutating_policy_patches_and_merges(ask: Asker) -> None:
    mutations = [
        {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'team': 'a'}}}"},
        },
        {
            "patchType": "JSONPatch",
            "jsonPatch": {
                "expression": "[JSONPatch{op: 'add', path: '/data', value: {'n': string(object.metadata.labels.size())}}]"
            },
        },
    ]
    policy(ask, "Mutating", {"mutations": mutations, "reinvocationPolicy": "Never"})
    made = ask.create("configmaps", config_map("a", metadata={"labels": {"x": "y"}}))
    assert dict(made.metadata.labels) == {"x": "y", "team": "a"}
    assert dict(made.data) == {"n": "2"}


def test_a_policy_is_evaluated_again_where_a_later_one_has_changed_the_object(ask: Asker) -> None:
    def mutation(expression: str) -> list[dict[str, Any]]:
        return [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}]

    count = "Object{data: {'seen': has(object.metadata.labels) ? 'labels' : 'none'}}"
    label = "Object{metadata: Object.metadata{labels: {'late': 'yes'}}}"
    policy(ask, "Mutating", {"mutations": mutation(count), "reinvocationPolicy": "IfNeeded"}, name="a")
    policy(ask, "Mutating", {"mutations": mutation(label), "reinvocationPolicy": "Never"}, name="b")
    made = ask.create("configmaps", config_map("x"))
    assert dict(made.data) == {"seen": "labels"}


def test_a_fork_has_the_policies_of_its_server(ask: Asker, server: Server) -> None:
    policy(ask, "Validating", {"validations": [{"expression": "false"}]})
    assert "failed expression" in refusal(Asker(server.fork()), config_map("a")).message


def test_requests_without_policies_load_no_cel() -> None:
    code = """
import sys
from steersman.api.clock import RealClock
from steersman.api.generated.core_v1 import Namespace
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.server import admission, crd
from steersman.server.server import Server
from tests.harness import verbs

server = Server(RealClock())
server.extend(admission.default())
crd.install(server)
verbs.create(server, server.registry.find("", "v1", "namespaces"), "", Namespace(metadata=ObjectMeta(name="a")))
print([name for name in sys.modules if name.startswith("steersman.api.cel")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_patch_is_left_out_where_its_test_fails_and_refused_where_another_operation_fails(
    ask: Asker,
) -> None:
    label = "JSONPatch{op: 'add', path: '/metadata/labels', value: {'made': 'yes'}}"
    path = "JSONPatch{op: 'remove', path: '/data/' + object.metadata.annotations['path']}"
    check = "JSONPatch{op: 'test', path: '/data/a', value: 'b'}"
    for name, expression in (("removes", f"[{path}]"), ("tests", f"[{check}, {label}]")):
        mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]
        spec = {"mutations": mutations, "reinvocationPolicy": "Never"}
        policy(ask, "Mutating", spec, name=name)
    # The words of a test that fails, in a path that the author of the object chooses.
    hostile = {"annotations": {"path": "testing value test failed"}}
    error = refusal(ask, config_map("hostile", metadata=hostile, data={"a": "c"}))
    assert "Unable to remove nonexistent key" in error.message
    plain = {"annotations": {"path": "z"}}
    made = ask.create("configmaps", config_map("plain", metadata=plain, data={"a": "c", "z": ""}))
    assert not made.metadata.labels
    made = ask.create("configmaps", config_map("equal", metadata=plain, data={"a": "b", "z": ""}))
    assert made.metadata.labels == {"made": "yes"}


def test_a_patch_that_adds_an_unknown_field_is_an_error(ask: Asker) -> None:
    expression = "[JSONPatch{op: 'add', path: '/metadata/lables', value: {'made': 'yes'}}]"
    mutations = [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]
    policy(ask, "Mutating", {"mutations": mutations, "reinvocationPolicy": "Never"})
    error = refusal(ask, config_map("m"))
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message == 'Internal error occurred: strict decoding error: unknown field "metadata.lables"'


def rules(group: str, operation: str, *resources: str) -> dict[str, Any]:
    """The matchConstraints of a policy for resources."""
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [*resources]}
    return {"resourceRules": [rule], "matchPolicy": "Equivalent"}


def test_a_binding_is_matched_as_the_resource_that_it_was_posted_to(ask: Asker) -> None:
    nowhere = [{"expression": "object.target.name != 'bad'"}]
    for name, resource in (("legacy", "bindings"), ("own", "pods/binding")):
        spec = {"matchConstraints": rules("", "CREATE", resource), "validations": nowhere}
        policy(ask, "Validating", spec, name=name)
    ask.create("pods", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    body = Binding(metadata=ObjectMeta(name="p"), target=ObjectReference(name="bad"))
    for plural, name, subresource, by in (("bindings", "", "", "legacy"), ("pods", "p", "binding", "own")):
        request = Request(APISERVER, "create", ask.resource(plural), "default", name, subresource)
        with pytest.raises(ApiError, match=f"ValidatingAdmissionPolicy '{by}'"):
            perform(ask.server, request, body)


def test_no_policy_is_evaluated_for_a_review(ask: Asker) -> None:
    every = rules("*", "*", "*")
    policy(ask, "Validating", {"matchConstraints": every, "validations": [{"expression": "false"}]})
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    made = ask.create("selfsubjectaccessreviews.authorization.k8s.io", review)
    assert made.status.allowed
    refusal(ask, config_map("other"))


def test_the_request_of_a_namespace_is_checked_within_it(ask: Asker) -> None:
    class Recording:
        def authorize(self, attributes: Attributes) -> Decision:
            return Decision(attributes.namespace == attributes.name == "mine", "")

    check = "authorizer.requestResource.check('create').allowed()"
    spec = {"matchConstraints": rules("", "CREATE", "namespaces"), "validations": [{"expression": check}]}
    policy(ask, "Validating", spec)
    ask.server.authorizer = Recording()  # type: ignore[assignment]
    assert ask.create("namespaces", {"metadata": {"name": "mine"}}).metadata.name == "mine"


def test_a_check_with_a_field_selector_asks_about_that_selector(ask: Asker) -> None:
    class Recording:
        def authorize(self, attributes: Attributes) -> Decision:
            return Decision(attributes.field_selector == "spec.nodeName=one")

    pods = "authorizer.group('').resource('pods')"
    check = f"{pods}.fieldSelector('spec.nodeName=' + object.metadata.name).check('list').allowed()"
    policy(ask, "Validating", {"validations": [{"expression": check}]})
    ask.server.authorizer = Recording()  # type: ignore[assignment]
    ask.create("configmaps", config_map("one"))
    assert "failed expression" in refusal(ask, config_map("two")).message


def test_an_equivalent_rule_sees_an_event_of_the_other_group_in_its_own_form(ask: Asker) -> None:
    bad = [{"expression": "object.regarding.name != 'bad'"}]
    spec = {"matchConstraints": rules("events.k8s.io", "CREATE", "events"), "validations": bad}
    policy(ask, "Validating", spec)
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "bad"},
    }
    with pytest.raises(ApiError, match="denied request"):
        ask.create("events", event)
