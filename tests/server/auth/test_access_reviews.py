"""Access reviews: the answers and refusals of a real server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from steersman.api.errors import ApiError, BadRequest, Invalid
from steersman.api.generated.authorization_v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from steersman.api.generated.meta_v1 import ObjectMeta
from steersman.api.generated.rbac_v1 import ClusterRoleBinding, RoleRef, Subject
from steersman.server.auth.bootstrap_policy import bootstrap_policy
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.auth.reviews import (
    local_subject_access_review,
    self_subject_access_review,
    self_subject_rules_review,
    subject_access_review,
)
from steersman.server.auth.users import User

RBAC = RBACAuthorizer(bootstrap_policy())
ANN = User("ann", groups=("system:authenticated",))


def written(obj: object) -> Any:
    """As it is on the wire."""
    return msgspec.json.decode(msgspec.json.encode(obj))


def review(spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    body = msgspec.convert({"spec": spec, "metadata": metadata or {}}, SubjectAccessReview)
    answer = subject_access_review(body, RBAC)
    assert answer.spec == body.spec
    status: dict[str, Any] = written(answer.status)
    return status


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        (
            {
                "user": "a",
                "groups": ["system:masters"],
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            },
            {"allowed": True},
        ),
        (
            {
                "user": "a",
                "groups": ["system:authenticated"],
                "nonResourceAttributes": {"verb": "get", "path": "/api"},
            },
            {
                "allowed": True,
                "reason": 'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole'
                ' "system:discovery" to Group "system:authenticated"',
            },
        ),
        ({"user": "a", "resourceAttributes": {"verb": "get", "resource": "pods"}}, {"allowed": False}),
        ({"groups": ["g"], "resourceAttributes": {}}, {"allowed": False}),
        (
            {
                "user": "a",
                "resourceAttributes": {
                    "verb": "get",
                    "resource": "pods",
                    "fieldSelector": {"rawSelector": "a"},
                    "labelSelector": {
                        "requirements": [
                            {"key": "a", "operator": "Bogus", "values": ["x"]},
                            {"key": "b", "operator": "Exists"},
                        ]
                    },
                },
            },
            {
                "allowed": False,
                "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error;"
                " spec.resourceAttributes.labelSelector partially ignored due to parse error",
            },
        ),
        (
            {
                "user": "a",
                "resourceAttributes": {
                    "verb": "list",
                    "fieldSelector": {
                        "requirements": [
                            {"key": "a", "operator": "In", "values": ["x"]},
                            {"key": "a", "operator": "Exists"},
                        ]
                    },
                    "labelSelector": {"rawSelector": "a in (b"},
                },
            },
            {
                "allowed": False,
                "evaluationError": "spec.resourceAttributes.fieldSelector partially ignored due to parse error;"
                " spec.resourceAttributes.labelSelector ignored due to parse error",
            },
        ),
        (
            {
                "user": "a",
                "resourceAttributes": {
                    "verb": "list",
                    "fieldSelector": {"rawSelector": "a=b"},
                    "labelSelector": {"rawSelector": "a"},
                },
            },
            {"allowed": False},
        ),
    ],
)
def test_a_review_is_answered(spec: dict[str, Any], status: dict[str, Any]) -> None:
    assert review(spec) == status


PREFIX = '.authorization.k8s.io "" is invalid: '


@pytest.mark.parametrize(
    ("spec", "metadata", "message"),
    [
        (
            {},
            {},
            "[spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or"
            ' resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group'
            " must be specified]",
        ),
        (
            {"user": "a", "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
            {},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":""}: cannot be specified in combination'
            " with resourceAttributes",
        ),
        (
            {"user": "a", "resourceAttributes": {"verb": "get"}},
            {"name": "x"},
            'metadata: Invalid value: {"name":"x"}: must be empty',
        ),
        (
            {
                "user": "a",
                "resourceAttributes": {
                    "fieldSelector": {"rawSelector": "a=b", "requirements": [{"key": "", "operator": "In"}]},
                    "labelSelector": {},
                },
            },
            {},
            '[spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same'
            " time as requirements, spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must"
            " be specified, spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: must be"
            " specified when `operator` is 'In' or 'NotIn', spec.resourceAttributes.labelSelector.requirements:"
            " Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector"
            " is required]",
        ),
        (
            {
                "user": "a",
                "resourceAttributes": {
                    "labelSelector": {"requirements": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
                },
            },
            {},
            "spec.resourceAttributes.labelSelector.requirements[0].values: Forbidden: may not be specified when"
            " `operator` is 'Exists' or 'DoesNotExist'",
        ),
    ],
)
def test_a_review_that_makes_no_sense_is_refused(
    spec: dict[str, Any], metadata: dict[str, Any], message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        review(spec, metadata)
    assert refused.value.message == PREFIX + message
    assert refused.value.details == {"group": "authorization.k8s.io"}


POD = {"verb": "get", "resource": "pods", "namespace": "ns"}


def local(spec: dict[str, Any], **metadata: Any) -> LocalSubjectAccessReview:
    body = msgspec.convert({"spec": spec, "metadata": metadata}, LocalSubjectAccessReview)
    return local_subject_access_review(body, "ns", RBAC)


def test_a_local_review_is_of_the_requests_namespace() -> None:
    answer = local({"user": "a", "groups": ["system:masters"], "resourceAttributes": POD})
    assert answer.status.allowed
    assert answer.metadata == ObjectMeta(namespace="ns")


@pytest.mark.parametrize(
    ("spec", "metadata", "message"),
    [
        (
            {"user": "a", "resourceAttributes": POD | {"namespace": "x"}},
            {"namespace": "ns"},
            PREFIX + 'spec.resourceAttributes.namespace: Invalid value: "x": must match metadata.namespace',
        ),
        (
            {"user": "a", "nonResourceAttributes": {"verb": "get", "path": "/"}},
            {"name": "q"},
            PREFIX
            + '[metadata: Invalid value: {"name":"q","namespace":"ns"}: must be empty except for namespace,'
            ' spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of'
            " request]",
        ),
        (
            {"user": "a", "resourceAttributes": POD},
            {"namespace": "other"},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ],
)
def test_a_local_review_of_anything_else_is_refused(
    spec: dict[str, Any], metadata: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        local(spec, **metadata)
    assert refused.value.message == message


def test_one_may_ask_about_oneself() -> None:
    spec = {
        "resourceAttributes": {
            "group": "authorization.k8s.io",
            "resource": "selfsubjectaccessreviews",
            "verb": "create",
        }
    }
    body = msgspec.convert({"spec": spec}, SelfSubjectAccessReview)
    assert self_subject_access_review(body, ANN, RBAC).status.allowed
    assert not self_subject_access_review(body, User("ann"), RBAC).status.allowed
    with pytest.raises(Invalid, match="exactly one of"):
        self_subject_access_review(SelfSubjectAccessReview(), ANN, RBAC)


def test_one_may_ask_for_all_one_may_do() -> None:
    rbac = RBACAuthorizer(bootstrap_policy())
    rbac.put(
        ClusterRoleBinding(
            metadata=ObjectMeta(name="gone"),
            roleRef=RoleRef(kind="ClusterRole", name="absent"),
            subjects=(Subject(kind="User", name="ann"),),
        )
    )
    body = msgspec.convert({"spec": {"namespace": "default"}}, SelfSubjectRulesReview)
    answer = written(self_subject_rules_review(body, ANN, rbac))
    health = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
    assert answer == {
        "metadata": {},
        "spec": {},
        "status": {
            "resourceRules": [
                {
                    "verbs": ["create"],
                    "apiGroups": ["authorization.k8s.io"],
                    "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
                },
                {
                    "verbs": ["create"],
                    "apiGroups": ["authentication.k8s.io"],
                    "resources": ["selfsubjectreviews"],
                },
            ],
            "nonResourceRules": [
                {
                    "verbs": ["get"],
                    "nonResourceURLs": [
                        "/api",
                        "/api/*",
                        "/apis",
                        "/apis/*",
                        "/healthz",
                        "/livez",
                        "/openapi",
                        "/openapi/*",
                        "/readyz",
                        "/version",
                        "/version/",
                    ],
                },
                {"verbs": ["get"], "nonResourceURLs": health},
            ],
            "incomplete": False,
            "evaluationError": 'clusterrole.rbac.authorization.k8s.io "absent" not found',
        },
    }


def test_all_one_may_do_is_a_question_about_a_namespace() -> None:
    with pytest.raises(BadRequest) as refused:
        self_subject_rules_review(SelfSubjectRulesReview(), ANN, RBAC)
    assert refused.value.message == "no namespace on request"
