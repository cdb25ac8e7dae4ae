"""Admission policies on a real API server: steersman and kube-controller-manager find the same wrong with them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from steersman.api.cel import CelError, Structs, Type, check
from steersman.api.cel.libraries import LIBRARY
from steersman.api.cel.policies import environment, with_variables
from steersman.api.cel.types import DYN, Sort
from steersman.api.errors import Invalid
from steersman.api.kinds.admission import VALIDATINGADMISSIONPOLICIES, ValidatingAdmissionPolicy
from steersman.api.scheme import Kind
from steersman.testing import Cluster
from tests.harness.child_process import until as wait_until
from tests.harness.custom_resources import definition
from tests.harness.envtest import Binary, RealPlane
from tests.harness.follow import until

STATUS = "validatingadmissionpolicy-status-controller"

GIZMO = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "ratio": {"type": "number"},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "either": {"x-kubernetes-int-or-string": True},
                "blob": {"type": "string", "format": "byte"},
                "when": {"type": "string", "format": "date-time"},
                "wait": {"type": "string", "format": "duration"},
                "tags": {
                    "type": "object",
                    "additionalProperties": {"type": "array", "items": {"type": "integer"}},
                },
                "in-use": {"type": "boolean"},
                "namespace": {"type": "string"},
                "a__b": {"type": "string"},
                "inner": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                },
                "parts": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
            },
        }
    },
}

DEPLOYMENT = (
    # fields
    "object.replicas > 1",
    "object.spec.replicas > 1",
    "object.spec.replicas > '1'",
    "has(object.spec.replica)",
    "has(object.spec.replicas.x)",
    "object.spec.replicas.x == 1",
    "object.metadata.namespace == 'a' && object.metadata.nam == ''",
    "object.metadata.labels.app == 1",
    "object.metadata.labels['app'] == 'a' || object.metadata.labels[1] == 'a'",
    "object.metadata.creationTimestamp > timestamp('2020-01-01T00:00:00Z')",
    "object.metadata.creationTimestamp == 'x'",
    "object.spec.strategy.rollingUpdate.maxSurge == 1",
    "object.spec.strategy.rollingUpdate.maxSurge == '25%'",
    "object.spec.template.spec.containers[0].resources.limits.cpu == '1'",
    "oldObject.spec == object.spec",
    "object == null || oldObject != null",
    "object.spec == 1",
    "object.spec.paused == null",
    "object.metadata.managedFields[0].fieldsV1.x == 1",
    # loops
    "object.spec.template.spec.containers.all(c, c.image.startsWith('a'))",
    "object.spec.template.spec.containers.all(c, c.imag.startsWith('a'))",
    "object.spec.template.spec.containers.all(c, c.image)",
    "object.spec.template.spec.containers.exists(c, c.ports.exists_one(p, p.containerPort == 'x'))",
    "object.spec.template.spec.containers.filter(c, c.name).size() > 0",
    "object.spec.template.spec.containers.map(c, c.name) == [1]",
    "object.spec.template.spec.containers.map(c, c.stdin, c.name).join() == 'a'",
    "object.spec.template.spec.containers.map(c, c.name, c.image).size() == 0",
    "object.spec.replicas.all(x, x)",
    "object.metadata.labels.all(k, k == 1)",
    "object.metadata.labels.all(k, v, v == 1)",
    "object.metadata.labels.transformMap(k, v, v + 1) == {}",
    "object.metadata.labels.transformMapEntry(k, v, {v: k}).all(k, k == 1)",
    "object.spec.template.spec.containers.sortBy(c, c.name)[0].foo == 1",
    "object.spec.template.spec.containers.sortBy(c, c)[0].name == ''",
    # optionals
    "object.?spec.?replicas.orValue('a') == 1",
    "object.?spec.?nothing.hasValue()",
    "object.spec.?replicas.optMap(r, r + 'a').hasValue()",
    "object.?spec.template.spec.containers[?0].orValue(1) == 1",
    "object.metadata.?labels[?'a'].orValue(2) == 2",
    "{?'a': object.spec.?replicas}.a == 'b'",
    "object.spec.?replicas.value() == 'x'",
    "object.?spec.optFlatMap(s, s.?replicas).orValue('x') == 'x'",
    # operators and functions
    "object.spec.replicas + 'a' == ''",
    "-object.metadata.name == ''",
    "!object.spec.replicas",
    "object.spec.paused && object.spec.replicas && object.metadata.name",
    "object.spec.replicas in ['a']",
    "object.metadata.name in object.metadata.labels && 1 in object.metadata.labels",
    "object.spec.replicas < 1.5 && object.spec.replicas < 1u && object.spec.replicas < 'a'",
    "object.spec.replicas == 1.5",
    "[object.spec.replicas, object.metadata.name].size() == 2",
    "{'a': object.spec.replicas, 'b': object.metadata.name}.a == 1",
    "type(object.spec.replicas) == string",
    "type(object.spec) == type(object.metadata)",
    "int(object.metadata) == 1",
    "duration(object.spec.replicas) > duration('1h')",
    "ip(object.spec.replicas).family() == 4",
    "cidr(object.metadata.name).containsIP(object.spec.replicas)",
    "semver(object.metadata.name).compareTo(object.metadata.name) == 1",
    "format.named('dns1123Label').value().validate(object.spec.replicas).hasValue()",
    "sets.contains(['a'], [object.spec.replicas])",
    "object.spec.template.spec.containers.map(c, c.name).isSorted()",
    "object.spec.template.spec.containers.isSorted()",
    "object.spec.template.spec.containers.map(c, c.ports).flatten().map(p, p.containerPort).sum() == 'a'",
    "[[object.spec.replicas]].flatten() == ['a']",
    "lists.range(object.metadata.name).size() == 0",
    "'%d'.format([object.metadata.name]) == 'a'",
    "'%s %d'.format([object.metadata.name, object.metadata]) == 'a'",
    "'%s'.format([object.spec]) == 'a'",
    "'%s'.format([object.metadata.labels]) == 'a'",
    "object.spec.selector.matchLabels == object.spec.template.metadata.labels",
    # what is not the object
    "request.namespace == namespaceObject.metadata.name",
    "authorizer.group('').resource('pods').check('create').allowed()",
    "variables.replicas == 'a'",
    "variables.spec.nothing == 'a'",
    "variables.wrong == 1",
    "variables.names.all(n, n == 1)",
    "object.\n  spec\n    .nothing == 'é' && 'é' == object.spec.replicas",
)
GIZMOS = (
    "object.spec.size == 'a'",
    "object.spec.ratio > 1 && object.spec.ratio == 'x'",
    "object.spec.open.x == 1",
    "object.spec.anything == 1",
    "object.spec.either == 1 && object.spec.either == 'a'",
    "object.spec.blob == 'a'",
    "object.spec.when < object.spec.wait",
    "object.spec.tags.a[0] == 'a'",
    "object.spec.tags.all(k, v, v.all(x, x == 'a'))",
    "object.spec.in__dash__use == 'a'",
    "object.spec.namespace == 1",
    "object.spec.__namespace__ == 1",
    "object.spec.a__underscores__b == 1",
    "object.spec.inner.metadata.name == 1",
    "object.spec.inner.kind == 1 || object.spec.inner.spec.x == 1",
    "object.spec.parts == [1]",
    "object.metadata.annotations.x == 1",
    "object.apiVersion == 1",
    "object.status.x == 1",
    "params.data.x == 1",
    "params.data == 1",
    "params.nothing == 1",
    "params == object",
)
MANY = ("object.spec.x == 1", "object.metadata.name == 1", "has(object.spec)", "object.data.x == 1")


def rule(group: str, version: str, *resources: str) -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": list(resources),
        "operations": ["CREATE", "UPDATE"],
    }


def policy(expressions: tuple[str, ...], *rules: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": list(rules)},
        "validations": [{"expression": one} for one in expressions],
        **spec,
    }


VARIABLES = [
    {"name": "replicas", "expression": "object.spec.replicas"},
    {"name": "spec", "expression": "object.spec"},
    {"name": "wrong", "expression": "object.spec.nothing"},
    {"name": "names", "expression": "object.spec.template.spec.containers.map(c, c.name)"},
    {"name": "twice", "expression": "variables.replicas * 2"},
]
POLICIES: dict[str, dict[str, Any]] = {
    "deployments": policy(DEPLOYMENT, rule("apps", "v1", "deployments"), variables=VARIABLES),
    "gizmos": policy(
        GIZMOS,
        rule("policies.example.com", "v1", "gizmos"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    ),
    "many": policy(
        MANY,
        rule("apps", "v1", "deployments", "statefulsets", "nothings", "deployments/scale"),
        rule("", "v1", "pods", "events", "ConfigMaps"),
        rule("*", "v1", "secrets"),
    ),
    "too-many": policy(
        ("object.x == 1",),
        rule("", "v1", *("pods", "services", "configmaps", "secrets", "endpoints", "nodes", "limitranges")),
        {**rule("", "v1", "events", "pods"), "apiGroups": ["", "apps"]},
        {
            **rule("apps", "v1", "deployments", "daemonsets", "replicasets", "statefulsets"),
            "apiGroups": ["apps", ""],
        },
        rule("batch", "v1", "jobs"),
    ),
    "all": policy(("object.x == 1",), rule("apps", "*", "deployments"), rule("apps", "v1", "*")),
    "unknown-parameters": policy(
        ("params.x == 1", "params.x == object.x"),
        rule("", "v1", "pods"),
        paramKind={"apiVersion": "nowhere.example.com/v1", "kind": "Nothing"},
    ),
    "definitions": policy(
        (
            "object.spec.versions[0].schema.openAPIV3Schema.properties.all(k, v, v.type == 1)",
            "object.spec.versions[0].schema.openAPIV3Schema.items.x == 1",
            "object.spec.versions[0].schema.openAPIV3Schema.not.type == 1",
        ),
        rule("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    ),
}
POLICIES["messages"] = policy((), rule("apps", "v1", "deployments"))
POLICIES["messages"]["validations"] = [
    {"expression": "object.spec.replicas > 1", "messageExpression": "'a' + object.spec.nothing"},
    {"expression": "object.spec.nothing == 1", "messageExpression": "string(object.spec)"},
]


def normal(warning: str) -> str:
    """A warning without the number upstream ends the names of types with."""
    return re.sub(r"\b([A-Z][A-Za-z]*)\d{2,9}\b", r"\1", warning)


async def judged(plane: RealPlane, binary: Binary) -> dict[str, Any]:
    """What a manager says of each policy."""
    mark = plane.mark()
    manager = plane.manager(
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--controllers={STATUS}",
        binary=binary,
    )
    found: dict[str, Any] = {}
    kind = VALIDATINGADMISSIONPOLICIES
    try:
        async with plane.connect() as api, asyncio.timeout(90):
            for name, spec in POLICIES.items():
                await api.create(kind.untyped, "", {"metadata": {"name": name}, "spec": spec})

            def looked(one: ValidatingAdmissionPolicy) -> bool:
                return one.status.observedGeneration == 1

            for name in POLICIES:
                await until(api, kind, "", name, looked)
                document = await api.get(kind.untyped, "", name)
                meta, status = document["metadata"], document["status"]
                owners = [
                    (one["manager"], one["operation"], one.get("subresource", ""), one["fieldsV1"])
                    for one in meta["managedFields"]
                    if one.get("subresource")
                ]
                warnings = {
                    one["fieldRef"]: normal(one["warning"])
                    for one in status["typeChecking"].get("expressionWarnings", ())
                }
                found[name] = {"warnings": warnings, "owners": owners, "status": sorted(status)}
                await api.delete(kind, "", name)
    finally:
        manager.stop()
    ours = [one for one in plane.audit(mark) if one.user.startswith("system:serviceaccount:kube-system:")]
    assert [one for one in ours if one.code == 403] == []
    return found


DEFINITION = definition(Kind("policies.example.com", "v1", "Gizmo", "gizmos", True, dict), GIZMO)


@pytest.fixture(scope="module")
def reference(plane: RealPlane) -> dict[str, Any]:
    """What kube-controller-manager says of each policy."""
    plane.kubectl("create", "-f", "-", stdin=json.dumps(DEFINITION))

    def described() -> bool:
        return "apis/policies.example.com/v1" in plane.kubectl("get", "--raw", "/openapi/v3")

    assert plane.apiserver is not None
    wait_until(described, plane.apiserver, 60, "the custom resource is described")
    said = asyncio.run(judged(plane, "kube-controller-manager"))
    assert len(said["deployments"]["warnings"]) > 50
    return said


@pytest.fixture(scope="module")
def ours(plane: RealPlane, reference: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(judged(plane, "steersman"))


@pytest.mark.compares("validatingadmissionpolicy-status-controller")
@pytest.mark.parametrize("name", POLICIES)
def test_both_managers_find_the_same_wrong(
    name: str, ours: dict[str, Any], reference: dict[str, Any]
) -> None:
    assert json.dumps(ours[name], indent=1) == json.dumps(reference[name], indent=1)


def test_the_same_is_wrong_with_policies_of_an_embedded_cluster(reference: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    with Cluster(seed=1) as cluster:
        cluster.create(DEFINITION)
        cluster.settle()
        for name, spec in POLICIES.items():
            cluster.create(
                {
                    "apiVersion": VALIDATINGADMISSIONPOLICIES.api_version,
                    "kind": VALIDATINGADMISSIONPOLICIES.name,
                    "metadata": {"name": name},
                    "spec": spec,
                }
            )
        cluster.settle()
        for name in POLICIES:
            status = cluster.get("ValidatingAdmissionPolicy", name).status
            assert status.observedGeneration == 1
            warnings = status.typeChecking.expressionWarnings if status.typeChecking else ()
            found[name] = {one.fieldRef: normal(one.warning) for one in warnings}
    expected = {name: reference[name]["warnings"] for name in POLICIES}
    assert json.dumps(found, indent=1) == json.dumps(expected, indent=1)


REFUSED = (
    "object.metadata.labels.transformList(k, v, size(v))[0] == 'x'",
    "[?object.spec.?replicas, 1].size() == 0",
    "object.spec.paused ? object.spec.replicas == 1 : object.metadata.name",
    "object.metadata.name.size() == 'a'",
    "object.metadata.name.matches(1)",
    "object.metadata.name.split('-')[0] == 0",
    "object.metadata.name.lowerAscii().indexOf('a') == 'b'",
    "[object.spec.strategy.rollingUpdate.maxSurge, 1].size() == 2",
    "string(object.spec.replicas) == 1",
    "quantity(object.spec.replicas).isLessThan(1)",
    "quantity(object.metadata.name).add(object.metadata.name).sign() == 1",
    "url(object.metadata.name).getHost() == 1",
    "'%d'.format([]) == ''",
    "request.kind.group == 1",
    "request.userInfo.groups.exists(g, g == 1)",
    "request.nothing == ''",
    "namespaceObject.metadata.labels.x == 1",
    "namespaceObject.status.conditions.all(c, c.status == true)",
    "authorizer.group('').resource(1).check('create').allowed()",
    "authorizer.allowed()",
    "authorizer.foo == 1",
    "1 + 'a' == 2",
    "x == 1",
    "x.y.z == 1",
    "foo(1)",
    "object.foo(1)",
    "cel.bind(x, 1, x)",
    "'a' in 'abc'",
    "[1, 'a'] == []",
    "[[], 'a'] == []",
    "{'a': 1, 'b': 'c'} == {}",
    "{'a': 1, 2: 3} == {}",
    "{'a': 1, 'b': dyn('c')} == {}",
    "{'a': dyn(1), dyn('b'): 2} == {}",
    "[1, dyn(2), dyn(3)] == []",
    "'%s %s'.format([1, 'a']) == ''",
    "'%s %s'.format([dyn(1), 'a']) == ''",
    "'%d'.format(['a']) == ''",
    "'%f'.format([1]) == ''",
    "'%e'.format([1]) == ''",
    "'%b'.format(['a']) == ''",
    "'%x'.format([true]) == ''",
    "'%X'.format([1.5]) == ''",
    "'%o'.format(['a']) == ''",
    "'%s'.format([authorizer]) == ''",
    "'%s'.format([[authorizer]]) == ''",
    "'%s'.format([{'a': authorizer}]) == ''",
    "'%s'.format([1, 2]) == ''",
    "'%s %%'.format([]) == ''",
    "'%z'.format([1]) == ''",
    "'%'.format([1]) == ''",
    "'%.f'.format([1.0]) == ''",
    "'%.3'.format([1.0]) == ''",
    "'%.3d'.format([1.0]) == ''",
    "duration('x') == duration('1h') && duration('1h1m1.5s') == duration('.5h') || duration('-1') == duration('0')",
    "timestamp('2020') == timestamp('2020-02-30T00:00:00Z') || timestamp('2020-01-01T00:00:00.5+01:00') == null",
    "'a'.matches('(') || 'a'.matches('a(?=b)') || 'a'.matches('a+b[[:alpha:]]\\\\pL(?P<x>y)(?i)z\\\\z')",
    "'a'.matches('a**') || matches('(', 'a') || 'a'.matches('(?:a|b){2,3}?') || 'a'.matches('\\\\1')",
    "int{}",
    "Foo{a: 1}",
    "object{a: 1}",
    "kubernetes.UserInfo{username: 1} == null",
    "kubernetes.UserInfo{username: 'a', x: 1} == null",
    "google.protobuf.Duration{seconds: 'a'} == null",
    "type(1) == 1",
    "int == 1",
    "type == int && list == map && type(int) == type && string == 1",
    "net.IP == 1",
    "optional_type == 1",
    "null_type == 1",
    "null == 1",
    "null == 'a' || null == [] || null == authorizer || null == optional.none() || null == duration('1s')",
    "[1].all(x, x)",
    "[1].exists(x, x + 'a')",
    "[1].exists_one(x, x)",
    "[1].existsOne(i, x, x)",
    "[1].existsOne(x, x)",
    "has(1) || {}.sortBy(x, x) || package || 9223372036854775808 == 1",
    "[1].map(x, x + 'a') == []",
    "[1].map(x, x, x) == []",
    "[1].filter(x, x) == []",
    "{'a': 1}.filter(k, k == 1) == []",
    "1.all(x, true)",
    "[1].all(x, [x].all(y, y == 'a') && x == 'b')",
    "[1].all(i, v, i == 'a' && v == 'b')",
    "['a'].transformMap(i, v, v) == 1",
    "['a'].transformMap(i, v, i, v) == 1",
    "['a'].transformMapEntry(i, v, {v: i}) == 1",
    "['a'].transformMapEntry(i, v, v) == {}",
    "['a'].transformList(i, v, i) == 1",
    "[3, 1].sortBy(x, -x) == 1",
    "[3, 1].sortBy(x, [x]) == 1",
    "[authorizer].sort() == 1",
    "optional.of(1).optMap(x, x + 'a') == 1",
    "optional.of(1).optFlatMap(x, x) == 1",
    "optional.of(1).or(optional.of('a')) == 1",
    "optional.of(1).orValue('a') == 1",
    "optional.of({'a': 1}).a == 1",
    "optional.of({'a': 1}).?a == 1",
    "optional.of([1])[0] == 1",
    "optional.of([1])[?'a'] == 1",
    "{'a': 1}.?a == 1",
    "{'a': 1}[?1] == 1",
    "[?1] == 1",
    "[?optional.of(1)] == 1",
    "{?'a': 1} == 1",
    "{?'a': optional.of(1)} == 1",
    "has({'a': 1}.a) == 1",
    "1.x == 1 || 'a'.?b == 1",
    "true ? 1 : 'a'",
    "1 ? true : false",
    "true && 1 && 'a' || [] || {}",
    "!1 || -'a' == 1 || -true",
    "1 < 'a' || 1 < 1.0 || 1u < 1 || true < false || [] < []",
    "1 == 1u || 1 == 1.0 || 1u == 1.0",
    "1 % 1.0 == 1 || 1 + 1u == 2",
    "b'a' + 'a' == b'' || b'\\\\x00' == '' || r'\\\\' == 1 || \"\"\"a\"\"\" == 1 || '\\\\u00e9' == 1",
    "0x1F == 'a' || 1u == 'a' || 1e3 == 'a' || .5 == 'a' || -1 == 'a' || - 1.5 == 'a' || --1 == 'a'",
    "'é€𝒳' == 1 || 'é' + 1 == ''",
    "'a' ==\n\t1 // why\n || 2 == 'b'",
    ".object == 1 || .size('a') == 'b' || .x == 1",
    "strings.quote(1) == '' || sets.contains([1], ['a'])",
    "params.x == 1 && request.options.x == 1 && 1 == 'a'",
    "object.namespace == 1 && object.x.y.z == 1 && namespaceObject.metadata.namespace == 1",
    "dyn(1) + 1 == 'a' || dyn(1) + dyn(1) == authorizer || size(dyn(1)) == 'a'",
    "dyn([1])[0] == authorizer || [dyn(1)][0] == authorizer || dyn(1).map(x, x) == authorizer || [] == authorizer",
    "object.x.add(1) == authorizer || object.x.compareTo(object.y) == authorizer || object.x.ip() == 'a'",
    "object.x.reverse() == authorizer || object.x.indexOf('a') == authorizer || object.x.sum() == authorizer",
    "variables.typed == 'a' || variables.list == 1 || variables.nothing == 1",
)
"""What a server refuses: its types are wrong whatever the objects are."""

_VALUES = {
    "bool": "true",
    "bytes": "b'a'",
    "double": "1.5",
    "duration": "duration('1s')",
    "dyn": "dyn(1)",
    "int": "1",
    "string": "'a'",
    "timestamp": "timestamp('2020-01-01T00:00:00Z')",
    "uint": "1u",
    "kubernetes.authorization.Authorizer": "authorizer",
    "kubernetes.authorization.PathCheck": "authorizer.path('/a')",
    "kubernetes.authorization.GroupCheck": "authorizer.group('')",
    "kubernetes.authorization.ResourceCheck": "authorizer.group('').resource('a')",
    "kubernetes.authorization.Decision": "authorizer.path('/a').check('get')",
    "kubernetes.URL": "url('http://a')",
    "kubernetes.Quantity": "quantity('1')",
    "kubernetes.NamedFormat": "format.named('uuid').value()",
    "kubernetes.Semver": "semver('1.0.0')",
    "net.IP": "ip('1.2.3.4')",
    "net.CIDR": "cidr('1.2.3.0/24')",
}
_PARAMETERS = {"A": "1", "B": "'b'", "K": "'k'", "T": "2", "V": "1.5"}


def value(type_: Type) -> str:
    """An expression of a type."""
    inner = [value(one) for one in type_.of]
    match type_.sort:
        case Sort.PARAMETER:
            return _PARAMETERS[type_.name]
        case Sort.LIST:
            return f"[{inner[0]}]"
        case Sort.MAP:
            return f"{{{inner[0]}: {inner[1]}}}"
        case Sort.OPAQUE if inner:
            return f"optional.of({inner[0]})"
    return _VALUES.get(str(type_)) or _VALUES[type_.name]


def calls() -> Iterator[str]:
    """Every function in every way it can be called, with what shows the type it is of."""
    for name, overloads in LIBRARY.items():
        for overload in overloads:
            args = [value(one) for one in overload.args]
            if ("@" in name and name != "@in") or name == "_?._":
                continue
            if name == "@in":
                call = " in ".join(args)
            elif "_" in name:
                pieces = [piece for piece in re.split("(_)", name) if piece]
                call = "".join(args.pop(0) if piece == "_" else f" {piece} " for piece in pieces)
                if name in ("_[_]", "_[?_]"):
                    call = call.replace(" [ ", "[").replace(" [? ", "[?")
            elif overload.method:
                call = f"({args[0]}).{name}({', '.join(args[1:])})"
            else:
                call = f"{name}({', '.join(args)})"
            yield f"({call}) == authorizer"


async def test_a_server_refuses_expressions_in_the_same_words(plane: RealPlane) -> None:
    variables = [("typed", "1"), ("list", "[object.x]")]
    known = with_variables(environment(Structs(), DYN, DYN), variables)
    expressions = [*REFUSED, *calls()]
    spec = policy(
        tuple(expressions),
        rule("", "v1", "pods"),
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        variables=[{"name": name, "expression": expression} for name, expression in variables],
    )
    async with plane.connect() as api:
        with pytest.raises(Invalid) as refused:
            await api.create(
                VALIDATINGADMISSIONPOLICIES.untyped, "", {"metadata": {"name": "no"}, "spec": spec}
            )
    theirs: dict[str, str] = {}
    for cause in refused.value.causes:
        theirs[cause.field] = cause.message.partition("compilation failed: ")[2]
    ours: dict[str, str] = {}
    for index, expression in enumerate(expressions):
        try:
            check(expression, known)
        except CelError as error:
            ours[f"spec.validations[{index}].expression"] = str(error)
    assert len(theirs) > 250
    differing = {
        expression: (ours.get(field, ""), theirs.get(field, ""))
        for index, expression in enumerate(expressions)
        if ours.get(field := f"spec.validations[{index}].expression", "") != theirs.get(field, "")
    }
    assert differing == {}
