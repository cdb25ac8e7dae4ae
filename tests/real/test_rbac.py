"""Our RBAC beside a real server's: the same policy, the same answers, the same refusals."""

from __future__ import annotations

import http.client
import itertools
import json
import ssl
from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
import pytest

from steersman.api.errors import ApiError
from steersman.api.generated.authorization_v1 import SubjectAccessReview
from steersman.api.generated.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from steersman.server.auth.attributes import Attributes, forbidden
from steersman.server.auth.bootstrap_policy import bootstrap_policy
from steersman.server.auth.escalation import check
from steersman.server.auth.impersonation import impersonate
from steersman.server.auth.rbac import Policy, RBACAuthorizer
from steersman.server.auth.reviews import subject_access_review
from steersman.server.auth.users import User
from tests.harness.child_process import until
from tests.harness.envtest import RealPlane

RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TYPES: dict[str, type[Policy]] = {
    "clusterroles": ClusterRole,
    "clusterrolebindings": ClusterRoleBinding,
    "roles": Role,
    "rolebindings": RoleBinding,
}


class Caller:
    """Somebody with an open connection to the real server."""

    def __init__(self, plane: RealPlane, context: ssl.SSLContext) -> None:
        self._connection = http.client.HTTPSConnection("127.0.0.1", plane.port, context=context, timeout=10)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def admin(plane: RealPlane) -> Iterator[Caller]:
    caller = Caller(plane, plane.tls())
    yield caller
    caller.close()


def policy(admin: Caller) -> list[Policy]:
    """Every role and binding the real server has."""
    found: list[Policy] = []
    for plural, type_ in TYPES.items():
        items = admin.ask("GET", f"{RBAC}/{plural}")[1]["items"]
        found += [msgspec.convert(item, type_) for item in items]
    return found


def test_a_fresh_server_has_the_policy_we_start_with(admin: Caller) -> None:
    real = {(type(obj).__name__, *obj.key): obj for obj in policy(admin)}
    for ours in bootstrap_policy():
        theirs = real[type(ours).__name__, *ours.key]
        assert theirs.metadata.labels == ours.metadata.labels
        assert theirs.metadata.annotations == ours.metadata.annotations
        if isinstance(ours, ClusterRole) and isinstance(theirs, ClusterRole):
            assert theirs.aggregationRule == ours.aggregationRule
            if ours.aggregationRule is not None and not theirs.rules:
                continue  # no controller has filled it
        if isinstance(ours, Role | ClusterRole) and isinstance(theirs, Role | ClusterRole):
            assert theirs.rules == ours.rules
        elif isinstance(ours, RoleBinding | ClusterRoleBinding):
            assert isinstance(theirs, RoleBinding | ClusterRoleBinding)
            assert (theirs.roleRef, theirs.subjects) == (ours.roleRef, ours.subjects)
    marked = [key for key, obj in real.items() if "kubernetes.io/bootstrapping" in obj.metadata.labels]
    assert sorted(marked) == sorted((type(obj).__name__, *obj.key) for obj in bootstrap_policy())


# -- the same answers -------------------------------------------------------------------------


def rule(verbs: str, resources: str, names: str = "", groups: str = "") -> dict[str, list[str]]:
    found = {"verbs": verbs.split(), "apiGroups": groups.split() or [""], "resources": resources.split()}
    return found | ({"resourceNames": names.split()} if names else {})


def write_policy(admin: Caller, namespace: str) -> None:
    """Roles of every shape, in one namespace and beyond it."""
    mark = namespace
    roles = {
        "named": [rule("get delete", "pods configmaps", "a b")],
        "sub": [rule("get", "*/status pods/log"), rule("update", "deployments/scale", groups="apps")],
        "star": [rule("*", "secrets")],
    }
    for name, rules in roles.items():
        admin.ask("POST", f"{RBAC}/namespaces/{mark}/roles", {"metadata": {"name": name}, "rules": rules})
    urls = {"verbs": ["get"], "nonResourceURLs": [f"/{mark}/*", f"/{mark}"]}
    wide = [rule("list watch", "*", groups="apps batch"), urls]
    admin.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": f"wide-{mark}"}, "rules": wide})
    subjects: dict[str, tuple[str, list[dict[str, str]]]] = {
        "named": ("Role", [{"kind": "User", "name": "ned"}, {"kind": "Group", "name": "team"}]),
        "sub": ("Role", [{"kind": "ServiceAccount", "name": "bot", "namespace": mark}]),
        "star": ("Role", [{"kind": "Group", "name": "team"}]),
        "absent": ("Role", [{"kind": "User", "name": "lost"}]),
        f"wide-{mark}": ("ClusterRole", [{"kind": "User", "name": "wendy"}]),
    }
    for name, (kind, who) in subjects.items():
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        body = {"metadata": {"name": name}, "roleRef": ref, "subjects": who}
        admin.ask("POST", f"{RBAC}/namespaces/{mark}/rolebindings", body)
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"wide-{mark}"}
    who = [{"kind": "Group", "name": "wide", "apiGroup": "rbac.authorization.k8s.io"}]
    body = {"metadata": {"name": f"wide-{mark}"}, "roleRef": ref, "subjects": who}
    admin.ask("POST", f"{RBAC}/clusterrolebindings", body)


def questions(namespace: str) -> Iterator[dict[str, Any]]:
    """Users times verbs times resources."""
    people: list[dict[str, Any]] = [
        {"user": "system:anonymous", "groups": ["system:unauthenticated"]},
        {"user": "ned", "groups": ["system:authenticated"]},
        {"user": "tim", "groups": ["team", "wide", "system:authenticated"]},
        {"user": "wendy"},
        {"user": "lost"},
        {"user": f"system:serviceaccount:{namespace}:bot", "groups": ["system:serviceaccounts"]},
        {"user": "system:kube-controller-manager"},
        {"user": "system:serviceaccount:kube-system:deployment-controller"},
        {"groups": ["system:masters"]},
    ]
    resources: list[dict[str, str]] = [
        {"resource": "pods", "name": "a"},
        {"resource": "pods", "name": "c"},
        {"resource": "pods"},
        {"resource": "pods", "subresource": "log", "name": "a"},
        {"resource": "pods", "subresource": "status"},
        {"resource": "pods/log"},
        {"resource": "secrets"},
        {"resource": "secrets", "subresource": "any"},
        {"resource": "deployments", "group": "apps"},
        {"resource": "deployments", "group": "apps", "subresource": "scale"},
        {"resource": "selfsubjectaccessreviews", "group": "authorization.k8s.io"},
    ]
    verbs = ("get", "list", "update", "create")
    for who, where, verb, what in itertools.product(people, (namespace, "default", ""), verbs, resources):
        yield who | {"resourceAttributes": what | {"verb": verb, "namespace": where}}
    paths = ("/", "/api", "/apis/apps", "/healthz", "/metrics", f"/{namespace}", f"/{namespace}/x/y")
    for who, verb, path in itertools.product(people, ("get", "post"), paths):
        yield who | {"nonResourceAttributes": {"verb": verb, "path": path}}


def test_a_real_server_answers_every_question_as_we_do(
    plane: RealPlane, admin: Caller, namespace: str
) -> None:
    write_policy(admin, namespace)
    # Each kind reaches the server's authorizer by a watch of its own: the last of each must have come.
    starred = {"resource": "secrets", "verb": "get", "namespace": namespace}
    wide = {"resource": "jobs", "group": "batch", "verb": "list", "namespace": namespace}
    known(
        plane,
        admin,
        {"groups": ["team"], "resourceAttributes": starred},
        {"user": "wendy", "resourceAttributes": wide},
        {"groups": ["wide"], "nonResourceAttributes": {"verb": "get", "path": f"/{namespace}"}},
    )
    ours = RBACAuthorizer(policy(admin))
    asked = list(questions(namespace))
    allowed = 0
    for spec in asked:
        real = answer(admin, spec)
        body = msgspec.convert({"spec": spec}, SubjectAccessReview)
        status = subject_access_review(body, ours).status
        assert status.allowed is real["allowed"], spec
        allowed += status.allowed
        if not status.allowed:
            assert status.reason == real.get("reason", ""), spec
    # Neither answer is rare, or the agreement would mean little.
    assert len(asked) / 10 < allowed < len(asked) / 2


def known(plane: RealPlane, admin: Caller, *allowed: dict[str, Any]) -> None:
    """Wait until the real server's authorizer has seen what makes it allow these."""
    assert plane.apiserver is not None
    for spec in allowed:
        until(partial(_allows, admin, spec), plane.apiserver, 10, "the real server knows the policy")


def _allows(admin: Caller, spec: dict[str, Any]) -> bool:
    return bool(answer(admin, spec)["allowed"])


def answer(admin: Caller, spec: dict[str, Any]) -> dict[str, Any]:
    code, review = admin.ask("POST", REVIEWS, {"apiVersion": "authorization.k8s.io/v1", "spec": spec})
    assert code == 201, review
    status: dict[str, Any] = review["status"]
    return status


# -- the same refusals ------------------------------------------------------------------------


def test_a_real_server_refuses_escalation_in_our_words(
    plane: RealPlane, admin: Caller, namespace: str
) -> None:
    name = f"rita-{namespace}"
    rita = User(name, groups=("system:authenticated",))
    rules = [
        rule(
            "create update",
            "roles clusterroles rolebindings clusterrolebindings",
            groups="rbac.authorization.k8s.io",
        ),
        rule("get", "pods"),
    ]
    admin.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    for bound in (name, f"absent-{namespace}"):
        subjects = [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}]
        body: dict[str, Any] = {
            "metadata": {"name": bound},
            "roleRef": ref | {"name": bound},
            "subjects": subjects,
        }
        admin.ask("POST", f"{RBAC}/clusterrolebindings", body)
    known(plane, admin, {"user": name, "resourceAttributes": {"verb": "get", "resource": "pods"}})
    ours = RBACAuthorizer(policy(admin))
    caller = Caller(plane, plane.tls(name))
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    big = [rule("get list", "pods secrets", groups="apps"), {"verbs": ["get"], "nonResourceURLs": ["/x"]}]
    writes: list[tuple[str, dict[str, Any]]] = [
        ("clusterroles", {"rules": big}),
        ("clusterroles", {"rules": [rule("get", "pods")], "aggregationRule": selector}),
        ("roles", {"rules": [rule("get", "pods", "a b"), rule("get list", "secrets", "a")]}),
        ("clusterrolebindings", {"roleRef": ref | {"name": "cluster-admin"}}),
        ("rolebindings", {"roleRef": ref | {"name": "system:kube-dns"}}),
        ("rolebindings", {"roleRef": ref | {"kind": "Role", "name": "nope"}}),
        ("clusterrolebindings", {"roleRef": ref | {"name": "nope"}}),
    ]
    for plural, fields in writes:
        home = "" if plural.startswith("cluster") else namespace
        path = f"{RBAC}/namespaces/{home}/{plural}" if home else f"{RBAC}/{plural}"
        document = {"metadata": {"name": f"new-{namespace}"}} | fields
        code, status = caller.ask("POST", path, document)
        with pytest.raises(ApiError) as refused:
            check(ours, rita, msgspec.convert(document, TYPES[plural]), namespace=home)
        assert (refused.value.code, refused.value.message) == (code, status["message"])
        assert refused.value.details == status["details"]
    caller.close()


def test_a_real_server_refuses_apply_and_update_that_would_create_without_that_right(
    plane: RealPlane, admin: Caller, namespace: str
) -> None:
    name = f"paul-{namespace}"
    paul = User(name, groups=("system:authenticated",))
    rules = [rule("get patch update", "services")]
    admin.ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    binding: dict[str, Any] = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}],
    }
    admin.ask("POST", f"{RBAC}/clusterrolebindings", binding)
    known(plane, admin, {"user": name, "resourceAttributes": {"verb": "patch", "resource": "services"}})
    caller = Caller(plane, plane.tls(name))
    path = f"/api/v1/namespaces/{namespace}/services/x"
    ours = forbidden(Attributes(paul, "create", "", "services", namespace=namespace, name="x"))
    for ports, expected in (([{"port": 80}], 403), ([], 422)):
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"ports": ports}}
        apply = {"Content_Type": "application/apply-patch+yaml"}
        for code, status in (
            caller.ask("PUT", path, body),
            caller.ask("PATCH", f"{path}?fieldManager=me", body, **apply),
        ):
            assert code == expected, status
            if code == 403:
                assert (status["message"], status["details"]) == (ours.message, ours.details)
    caller.close()


def test_a_real_server_refuses_impersonation_in_our_words(plane: RealPlane, admin: Caller) -> None:
    caller = Caller(plane, plane.tls("nemo"))
    nemo = User("nemo", groups=("system:authenticated",))
    ours = RBACAuthorizer(policy(admin))
    asked = Attributes(nemo, "list", "", "pods", namespace="default")
    for whom in (
        User("bob"),
        User("bob", "7", ("dev",)),
        User("system:serviceaccount:a:b"),
        User("system:node:n"),
        User("system:node:n", groups=("g",)),
        User("system:serviceaccount:a:b", "7"),
    ):
        headers = {"Impersonate_User": whom.name}
        if whom.uid:
            headers["Impersonate_Uid"] = whom.uid
        if whom.groups:
            headers["Impersonate_Group"] = whom.groups[0]
        code, status = caller.ask("GET", "/api/v1/namespaces/default/pods", **headers)
        with pytest.raises(ApiError) as refused:
            impersonate(ours, asked, whom)
        assert (refused.value.code, refused.value.message) == (code, status["message"])
    caller.close()
