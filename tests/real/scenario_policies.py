"""Chapters of the scenario about admission policies: their expressions when they are written, and what they do to requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.real.scenario import (
    APPLY,
    CMS,
    DEPLOYMENTS,
    JSONPATCH,
    PODS,
    Ask,
    cm,
    delete,
    deployment,
    doc,
    get,
    patch,
    pod,
    post,
    put,
)

GROUP = "admissionregistration.k8s.io"
ROOT = f"/apis/{GROUP}/v1"
VALIDATING, VALIDATING_BINDINGS = (
    f"{ROOT}/validatingadmissionpolicies",
    f"{ROOT}/validatingadmissionpolicybindings",
)
MUTATING, MUTATING_BINDINGS = f"{ROOT}/mutatingadmissionpolicies", f"{ROOT}/mutatingadmissionpolicybindings"


def rule(resource: str = "configmaps", *operations: str, group: str = "", **more: Any) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": list(operations or ("CREATE", "UPDATE")),
        "resources": [resource],
        **more,
    }


def validating(
    name: str, *expressions: Any, rules: Any = None, constraints: Any = None, **spec: Any
) -> dict[str, Any]:
    validations = [each if isinstance(each, dict) else {"expression": each} for each in expressions]
    match = {"resourceRules": rules or [rule()], **(constraints or {})}
    return doc(
        f"{GROUP}/v1",
        "ValidatingAdmissionPolicy",
        name,
        spec={"matchConstraints": match, "validations": validations, **spec},
    )


def mutating(name: str, *mutations: Any, rules: Any = None, **spec: Any) -> dict[str, Any]:
    match = {"resourceRules": rules or [rule()]}
    return doc(
        f"{GROUP}/v1",
        "MutatingAdmissionPolicy",
        name,
        spec={"matchConstraints": match, "mutations": list(mutations), "reinvocationPolicy": "Never", **spec},
    )


def json_patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def applied(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def bound(
    policy: str, name: str = "", *actions: str, kind: str = "Validating", here: bool = True, **spec: Any
) -> dict[str, Any]:
    """A binding to the namespace of the chapter, unless it is for all of them."""
    if here:
        spec.setdefault(
            "matchResources",
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "<<ns>>"}}},
        )
    if kind == "Validating":
        spec["validationActions"] = list(actions or ("Deny",))
    return doc(
        f"{GROUP}/v1", f"{kind}AdmissionPolicyBinding", name or policy, spec={"policyName": policy, **spec}
    )


def bad(title: str, *expressions: Any, **spec: Any) -> Ask:
    return post(title, VALIDATING, validating("bad.test", *expressions, **spec))


def bad_mutation(title: str, *mutations: Any, **spec: Any) -> Ask:
    return post(title, MUTATING, mutating("bad.test", *mutations, **spec))


# fmt: off
EXPRESSIONS = (
    bad("an expression that does not parse", "object.a =="),
    bad("an expression that is no bool", "1 + 1"),
    bad("an expression of any type", "object.spec.replicas"),
    bad("an unknown variable", "self.a == 1"),
    bad("params without a kind of them", "params.a == 1"),
    bad("an unknown function", "object.metadata.name.shout()"),
    bad("a wrong type of a field of the request", "request.operation == 1"),
    bad("a field that the request does not have", "request.nothing == ''"),
    bad("an authorizer asked wrongly", "authorizer.group('apps').allowed()"),
    bad("a message that is no text", {"expression": "true", "messageExpression": "1"}),
    bad("a message that asks the authorizer", {"expression": "true", "messageExpression": "authorizer.path('/x').check('get').reason()"}),
    bad("an empty message", {"expression": "true", "message": "  "}),
    bad("a reason that there is not", {"expression": "true", "reason": "Nope"}),
    bad("a variable that does not parse", "true", variables=[{"name": "a", "expression": "1 +"}]),
    bad("a variable of a bad name", "true", variables=[{"name": "1a", "expression": "1"}]),
    bad("a variable before it is declared", "true", variables=[{"name": "a", "expression": "variables.b"}, {"name": "b", "expression": "1"}]),
    bad("a variable of another type", "variables.a == 'x'", variables=[{"name": "a", "expression": "1"}]),
    bad("a match condition that is no bool", "true", matchConditions=[{"name": "a", "expression": "'x'"}]),
    bad("a match condition with a variable", "true", matchConditions=[{"name": "a", "expression": "variables.a"}], variables=[{"name": "a", "expression": "true"}]),
    bad("an annotation that is a number", auditAnnotations=[{"key": "a", "valueExpression": "1"}]),
    bad("a bad pattern", "object.metadata.name.matches('(')"),
    bad("a mixed list", "object.metadata.name in ['a', 1]"),
    bad_mutation("a patch that is no list", json_patch("JSONPatch{op: 'remove', path: '/x'}")),
    bad_mutation("a patch with an unknown field", json_patch("[JSONPatch{op: 'remove', where: '/x'}]")),
    bad_mutation("a patch with a number for its path", json_patch("[JSONPatch{op: 'remove', path: 1}]")),
    bad_mutation("a configuration that is a map", applied("{'a': 'b'}")),
    bad_mutation("a configuration of another type", applied("Object.spec{a: 1}")),
    bad_mutation("a configuration that does not parse", applied("Object{")),
    bad_mutation("an empty patch", json_patch(" ")),
    bad_mutation("an unknown type of an object", applied("Thing{a: 1}")),
    post("a webhook with a bad match condition", f"{ROOT}/validatingwebhookconfigurations", doc(f"{GROUP}/v1", "ValidatingWebhookConfiguration", "bad.test", webhooks=[{"name": "a.b.c", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [rule()], "sideEffects": "None", "admissionReviewVersions": ["v1"], "matchConditions": [{"name": "x", "expression": "object.a == "}]}])),
)


def denied(title: str, body: Any, path: str = CMS, **more: Any) -> Ask:
    return post(title, path, body, **more)


def probe(title: str, name: str, **more: Any) -> Ask:
    """Asked until a policy is in force: a real server takes a moment."""
    return post(title, f"{CMS}?dryRun=All", cm(name, **more), until=422, head=True)


LIMITS = validating(
    "limits.test",
    {"expression": "!has(object.data) || object.data.size() <= 2", "message": "two entries at most"},
    {"expression": "!object.metadata.name.startsWith('forbidden')", "reason": "Forbidden"},
    {"expression": "!has(object.data) || !('count' in object.data) || int(object.data['count']) < 10", "messageExpression": "'count is ' + object.data['count'] + ', which is too much'"},
    {"expression": "variables.owner != 'nobody'", "messageExpression": "'owner ' + variables.owner + ' of ' + namespaceObject.metadata.name"},
    {"expression": "request.operation != 'UPDATE' || !has(oldObject.data) || !('kept' in oldObject.data) || (has(object.data) && 'kept' in object.data && object.data['kept'] == oldObject.data['kept'])", "message": "kept may not change"},
    {"expression": "request.userInfo.username != 'system:admin' || object.metadata.name != 'not-for-admin'"},
    {"expression": "object.metadata.name != 'unauthorized' || authorizer.requestResource.check('fly').allowed()"},
    {"expression": "object.metadata.name != 'large'", "reason": "RequestEntityTooLarge", "message": "too large"},
    {"expression": "object.metadata.name != 'divided' || 1 / int(object.data['zero']) > 0"},
    {"expression": "object.metadata.name != 'missing' || object.data['nothing'] == ''"},
    {"expression": "object.metadata.name != 'mixed' || object.data > 1"},
    {"expression": "object.metadata.name != 'authorized' || authorizer.group('').resource('configmaps').namespace(request.namespace).check('create').allowed()"},
    {"expression": "object.metadata.name != 'account' || authorizer.serviceAccount(request.namespace, 'default').group('').resource('secrets').namespace('kube-system').check('get').allowed()", "message": "the account may not"},
    {"expression": "object.metadata.name != 'path' || authorizer.path('/healthz').check('get').allowed()"},
    {"expression": "object.metadata.name != 'dry' || request.dryRun"},
    {"expression": "object.metadata.name != 'options' || request.options.fieldManager == 'me'"},
    {"expression": "object.metadata.name != 'long' || object.data['text'].size() > 5", "messageExpression": "'a\\nb'"},
    {"expression": "object.metadata.name != 'costly' || [1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, true))))))"},
    variables=[{"name": "labels", "expression": "has(object.metadata.labels) ? object.metadata.labels : {}"}, {"name": "owner", "expression": "'owner' in variables.labels ? variables.labels['owner'] : ''"}],
)
DENYING = (
    post("a policy", VALIDATING, LIMITS, head=True),
    post("an object before there is a binding", CMS, cm("forbidden-before")),
    post("a binding", VALIDATING_BINDINGS, bound("limits.test")),
    post("it is in force", f"{CMS}?dryRun=All", cm("forbidden-probe"), until=403, head=True),
    denied("an object that breaks no rule", cm("fine", data={"a": "1", "kept": "x"})),
    denied("too many entries", cm("many", data={"a": "1", "b": "2", "c": "3"})),
    denied("a forbidden name", cm("forbidden-name")),
    denied("a message of an expression", cm("count", data={"count": "11"})),
    denied("two broken rules", cm("forbidden-two", data={"count": "11"})),
    denied("a message of a variable and the namespace", cm("owned", metadata={"labels": {"owner": "nobody"}})),
    denied("for another owner", cm("owned", metadata={"labels": {"owner": "me"}}), head=True),
    denied("unauthorized", cm("unauthorized")),
    denied("too large", cm("large")),
    denied("a division by zero", cm("divided", data={"zero": "0"})),
    denied("a conversion that fails", cm("divided", data={"zero": "x"})),
    denied("a key that is missing", cm("missing", data={"a": "b"})),
    denied("a field that is missing", cm("missing")),
    denied("types that do not match", cm("mixed", data={"a": "b"})),
    denied("who is authorized", cm("authorized"), head=True),
    denied("an account that is not", cm("account")),
    denied("a path", cm("path"), head=True),
    denied("not in a dry run", cm("dry")),
    post("in a dry run", f"{CMS}?dryRun=All", cm("dry"), head=True),
    denied("without options", cm("options")),
    post("with options", f"{CMS}?fieldManager=me", cm("options"), head=True),
    denied("a message of two lines", cm("long", data={"text": "a"})),
    denied("an expression that costs too much", cm("costly")),
    denied("a generated name", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "forbidden-gen-"}}),
    patch("a change that is not allowed", f"{CMS}/fine", {"data": {"kept": "y"}}),
    patch("a change that is", f"{CMS}/fine", {"data": {"a": "2"}}),
    patch("by a JSON patch", f"{CMS}/fine", [{"op": "remove", "path": "/data/kept"}], JSONPATCH),
    patch("by an apply", f"{CMS}/forbidden-new?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "forbidden-new"}}, APPLY),
    put("an update", f"{CMS}/fine", cm("fine", data={"kept": "z"})),
    delete("a deletion is not asked about", f"{CMS}/fine", head=True),
    post("other resources are not asked about", PODS, pod("forbidden-pod"), head=True),
)

WARNING = (
    post("a policy", VALIDATING, validating("warns.test", {"expression": "object.metadata.name != 'bad'", "message": "not this name"}, {"expression": "object.metadata.name == '' || 1 / 0 == 1"}, matchConditions=[{"name": "not-exempt", "expression": "!object.metadata.name.startsWith('exempt')"}]), head=True),
    post("a binding that warns", VALIDATING_BINDINGS, bound("warns.test", "warns.test", "Warn", "Audit"), head=True),
    post("a policy that tells when", VALIDATING, validating("probe.test", "object.metadata.name != 'probe'"), head=True),
    post("its binding", VALIDATING_BINDINGS, bound("probe.test"), head=True),
    probe("they are in force", "probe"),
    post("a warning", CMS, cm("bad")),
    post("an error is a warning, too", CMS, cm("good")),
    post("exempt by a condition", CMS, cm("exempt-bad")),
    post("a policy whose errors are ignored", VALIDATING, validating("ignored.test", "1 / int(object.data['n']) == 1", "object.metadata.name != 'ignored-denied'", failurePolicy="Ignore", matchConditions=[{"name": "a", "expression": "object.metadata.name.startsWith('ignored')"}]), head=True),
    post("its binding, too", VALIDATING_BINDINGS, bound("ignored.test"), head=True),
    probe("it is in force", "ignored-denied"),
    post("an error that is ignored", CMS, cm("ignored-error"), head=True),
    post("a denial that is not", CMS, cm("ignored-denied", data={"n": "1"})),
    post("a policy whose condition fails", VALIDATING, validating("conditional.test", "true", matchConditions=[{"name": "a", "expression": "object.data['condition'] == 'x'"}, {"name": "b", "expression": "object.metadata.name.startsWith('conditional')"}]), head=True),
    post("the binding of that", VALIDATING_BINDINGS, bound("conditional.test"), head=True),
    probe("that is in force", "conditional-probe"),
    post("a condition that has no value", CMS, cm("conditional-1")),
    post("a condition that has none, and one that is false", CMS, cm("other-1"), head=True),
    post("a condition that holds", CMS, cm("conditional-2", data={"condition": "x"}), head=True),
)

PARAMS = (
    post("a policy", VALIDATING, validating("params.test", {"expression": "params == null || !has(object.data) || object.data.size() <= int(params.data['max'])", "messageExpression": "'at most ' + params.data['max'] + ' by ' + params.metadata.name"}, rules=[rule(resourceNames=["checked", "probe"])], paramKind={"apiVersion": "v1", "kind": "ConfigMap"}), head=True),
    post("a parameter", CMS, cm("limit", data={"max": "1"}), head=True),
    post("another", CMS, cm("wide", data={"max": "3"}, metadata={"labels": {"for": "selector"}}), head=True),
    post("a binding with a parameter", VALIDATING_BINDINGS, bound("params.test", "named.test", paramRef={"name": "limit", "parameterNotFoundAction": "Deny"})),
    probe("it is in force", "probe", data={"a": "1", "b": "2"}),
    post("denied by the parameter", CMS, cm("checked", data={"a": "1", "b": "2"})),
    post("admitted by the parameter", CMS, cm("checked", data={"a": "1"}), head=True),
    delete("the parameter goes", f"{CMS}/limit", head=True),
    patch("without its parameter", f"{CMS}/checked", {"data": {"a": "2"}}, until=422),
    delete("the binding goes", f"{VALIDATING_BINDINGS}/named.test", head=True),
    patch("with nothing in the way", f"{CMS}/checked", {"data": {"a": "3", "b": "1", "c": "1", "d": "1"}}, until=200, head=True),
    post("a binding with a selector", VALIDATING_BINDINGS, bound("params.test", "selected.test", paramRef={"selector": {"matchLabels": {"for": "selector"}}, "parameterNotFoundAction": "Allow"}), head=True),
    patch("denied by what is selected", f"{CMS}/checked", {"data": {"a": "4"}}, until=422),
    delete("the policy goes", f"{VALIDATING}/params.test", head=True),
    post("a policy with an unknown kind of parameters", VALIDATING, validating("unknown.test", "true", rules=[rule(resourceNames=["unknown"])], paramKind={"apiVersion": "nothing.test/v1", "kind": "Nothing"}), head=True),
    post("its binding", VALIDATING_BINDINGS, bound("unknown.test", paramRef={"name": "x", "parameterNotFoundAction": "Deny"}), head=True),
    post("a kind that is not served", f"{CMS}?dryRun=All", cm("unknown"), until=422),
    post("a policy for namespaces and what is in none", VALIDATING, validating("cluster.test", "request.namespace != '' || object.metadata.name != 'scene-denied'", rules=[rule("namespaces", "CREATE")]), head=True),
    post("the binding of that", VALIDATING_BINDINGS, bound("cluster.test", here=False), head=True),
    post("a namespace", "/api/v1/namespaces?dryRun=All", doc("v1", "Namespace", "scene-denied"), head=True),
)

OBJECTS = (
    post("a policy on deployments and their scale", VALIDATING, validating("scale.test", {"expression": "object.spec.replicas <= 5", "message": "five at most"}, rules=[rule("deployments", group="apps"), rule("deployments/scale", "UPDATE", group="apps")]), head=True),
    post("its binding", VALIDATING_BINDINGS, bound("scale.test"), head=True),
    post("it is in force", f"{DEPLOYMENTS}?dryRun=All", deployment("probe", replicas=6), until=422),
    post("a deployment", DEPLOYMENTS, deployment("web", replicas=2), head=True),
    patch("scaled too far", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 6}}),
    patch("scaled", f"{DEPLOYMENTS}/web/scale", {"spec": {"replicas": 5}}, head=True),
    post("a policy on deletions", VALIDATING, validating("keep.test", {"expression": "!has(oldObject.metadata.labels) || !('keep' in oldObject.metadata.labels)", "message": "is to be kept"}, rules=[rule("configmaps", "DELETE")]), head=True),
    post("the binding of that", VALIDATING_BINDINGS, bound("keep.test"), head=True),
    post("to be kept", CMS, cm("kept", metadata={"labels": {"keep": "yes"}}), head=True),
    delete("kept", f"{CMS}/kept?dryRun=All", until=422),
    patch("not to be kept any more", f"{CMS}/kept", {"metadata": {"labels": {"keep": None}}}, head=True),
    delete("not kept", f"{CMS}/kept", head=True),
    post("a policy for another version, exactly", VALIDATING, validating("exact.test", "false", rules=[{"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["horizontalpodautoscalers"]}], constraints={"matchPolicy": "Exact"}), head=True),
    get("the policy as it is stored", f"{VALIDATING}/exact.test"),
)

LABELS = mutating(
    "labels.test",
    applied("Object{metadata: Object.metadata{labels: {'team': 'a'}, ?annotations: has(object.metadata.annotations) ? optional.of({'seen': string(object.metadata.annotations.size())}) : optional.none()}}"),
    json_patch("[JSONPatch{op: 'test', path: '/metadata/name', value: 'patched'}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/name'), value: variables.name}]"),
    json_patch("object.metadata.name == 'data' ? [JSONPatch{op: 'add', path: '/data', value: {'n': string(1 + 2), 'who': request.userInfo.username}}] : []"),
    variables=[{"name": "name", "expression": "object.metadata.name + '-x'"}],
    matchConditions=[{"name": "not-exempt", "expression": "!object.metadata.name.startsWith('exempt')"}],
)
MUTATION = (
    post("a policy", MUTATING, LABELS),
    post("a binding", MUTATING_BINDINGS, bound("labels.test", kind="Mutating")),
    post("a policy that tells when", VALIDATING, validating("mutated.test", "!has(object.metadata.labels) || !('team' in object.metadata.labels) || object.metadata.name != 'probe'"), head=True),
    post("its binding", VALIDATING_BINDINGS, bound("mutated.test"), head=True),
    probe("they are in force", "probe"),
    post("a label is set", CMS, cm("plain")),
    post("a label is changed", CMS, cm("labelled", metadata={"labels": {"team": "b", "other": "c"}, "annotations": {"x": "y"}})),
    post("a patch whose test holds", CMS, cm("patched")),
    post("a patch of data", CMS, cm("data")),
    post("exempt by a condition", CMS, cm("exempt")),
    patch("a change sets it again", f"{CMS}/exempt", {"data": {"a": "b"}}),
    patch("an apply", f"{CMS}/plain?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain"}, "data": {"k": "v"}}, APPLY),
    post("a policy on pods", MUTATING, mutating("pods.test", applied("Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: 'Always'}), initContainers: [Object.spec.initContainers{name: 'init', image: 'registry.test/init:1'}]}}"), rules=[rule("pods", "CREATE")]), head=True),
    post("the binding of that", MUTATING_BINDINGS, bound("pods.test", kind="Mutating"), head=True),
    post("a policy on the result", VALIDATING, validating("initialized.test", "object.metadata.name != 'pod-probe' || !has(object.spec.initContainers)", rules=[rule("pods", "CREATE")]), head=True),
    post("the binding of the result", VALIDATING_BINDINGS, bound("initialized.test"), head=True),
    post("pods are mutated", f"{PODS}?dryRun=All", pod("pod-probe"), until=422, head=True),
    post("a pod", PODS, pod("mutated")),
    post("a policy that fails", MUTATING, mutating("fails.test", json_patch("[JSONPatch{op: 'replace', path: '/data/nothing', value: 'x'}]"), applied("Object{metadata: Object.metadata{labels: {'n': string(1 / int(object.data['zero']))}}}"), rules=[rule(resourceNames=["failing"])]), head=True),
    post("the binding of what fails", MUTATING_BINDINGS, bound("fails.test", kind="Mutating"), head=True),
    post("it fails", f"{CMS}?dryRun=All", cm("failing", data={"zero": "0"}), until=403),
    post("a policy of the wrong types", MUTATING, mutating("types.test", applied("Object{metadata: Object.spec{labels: {'a': 'b'}}}"), rules=[rule(resourceNames=["typed"])]), head=True),
    post("the binding of the wrong types", MUTATING_BINDINGS, bound("types.test", kind="Mutating"), head=True),
    post("the wrong types", f"{CMS}?dryRun=All", cm("typed"), until=403),
    post("a policy on an atomic list", MUTATING, mutating("atomic.test", applied("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'main', command: ['a']}]}}"), rules=[rule("pods", "CREATE", resourceNames=["atomic"])]), head=True),
    post("the binding of the atomic list", MUTATING_BINDINGS, bound("atomic.test", kind="Mutating"), head=True),
    post("an atomic list", f"{PODS}?dryRun=All", pod("atomic"), until=403),
    get("the policy as it is stored", f"{MUTATING}/labels.test"),
)
# fmt: on

CHAPTERS: Mapping[str, tuple[Ask, ...]] = {
    "policy-expressions": EXPRESSIONS,
    "policy-denying": DENYING,
    "policy-warning": WARNING,
    "policy-params": PARAMS,
    "policy-objects": OBJECTS,
    "policy-mutating": MUTATION,
}
