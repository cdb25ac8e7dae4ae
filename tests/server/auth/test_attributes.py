"""Refusals, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.server.auth.attributes import Attributes, aggregate, forbidden
from steersman.server.auth.users import ANONYMOUS, User

ANN = User("ann")


@pytest.mark.parametrize(
    ("asked", "message", "details"),
    [
        (
            Attributes(ANONYMOUS, "list", "", "pods", namespace="default"),
            'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group ""'
            ' in the namespace "default"',
            {"kind": "pods"},
        ),
        (
            Attributes(ANN, "list", "", "pods"),
            'pods is forbidden: User "ann" cannot list resource "pods" in API group "" at the cluster scope',
            {"kind": "pods"},
        ),
        (
            Attributes(ANN, "update", "apps", "deployments", "scale", "ns", "web"),
            'deployments.apps "web" is forbidden: User "ann" cannot update resource "deployments/scale"'
            ' in API group "apps" in the namespace "ns"',
            {"name": "web", "group": "apps", "kind": "deployments"},
        ),
        (
            Attributes(ANONYMOUS, "get", path="/"),
            'forbidden: User "system:anonymous" cannot get path "/"',
            {},
        ),
        (
            Attributes(User("<b>&"), "get", path="/x"),
            'forbidden: User "&lt;b&gt;&amp;" cannot get path "/x"',
            {},
        ),
    ],
)
def test_a_refusal_says_who_may_not_do_what_where(
    asked: Attributes, message: str, details: dict[str, Any]
) -> None:
    error = forbidden(asked)
    assert (error.code, error.reason, error.message, error.details) == (403, "Forbidden", message, details)


def test_a_refusal_ends_with_the_reason_where_there_is_one() -> None:
    error = forbidden(Attributes(ANN, "get", path="/x"), "RBAC: something")
    assert error.message == 'forbidden: User "ann" cannot get path "/x": RBAC: something'


@pytest.mark.parametrize(
    ("errors", "told"), [([], ""), (["a"], "a"), (["a", "a"], "a"), (["b", "a", "b"], "[b, a]")]
)
def test_several_errors_are_told_in_one_line(errors: list[str], told: str) -> None:
    assert aggregate(errors) == told
