"""What rules allow and what rules cover: upstream's decisions as tables."""

from __future__ import annotations

import pytest

from steersman.api.generated.rbac_v1 import PolicyRule
from steersman.server.auth.attributes import Attributes
from steersman.server.auth.rbac_rules import FULL_AUTHORITY, compact, rule_allows, rule_text, uncovered_rules
from steersman.server.auth.users import User

ANN = User("ann")


def rule(verbs: str, groups: str = "", resources: str = "", names: str = "", urls: str = "") -> PolicyRule:
    """A rule from words: ``-`` is the core group."""
    return PolicyRule(
        verbs=tuple(verbs.split()),
        apiGroups=tuple(group.replace("-", "") for group in groups.split()),
        resources=tuple(resources.split()),
        resourceNames=tuple(names.split()),
        nonResourceURLs=tuple(urls.split()),
    )


def asks(verb: str, group: str, resource: str, name: str = "") -> Attributes:
    resource, _, subresource = resource.partition("/")
    return Attributes(ANN, verb, group, resource, subresource, name=name)


@pytest.mark.parametrize(
    ("given", "asked", "allowed"),
    [
        (rule("*", "g", "r"), asks("v", "g", "r"), True),
        (rule("*", "g", "r"), asks("v", "h", "r"), False),
        (rule("*", "g", "r"), asks("v", "g", "s"), False),
        (rule("v", "*", "r"), asks("v", "h", "r"), True),
        (rule("v", "*", "r"), asks("w", "h", "r"), False),
        (rule("v", "g", "*"), asks("v", "g", "any"), True),
        (rule("v", "g", "*"), asks("v", "g", "any/sub"), True),
        (rule("v w", "g h", "r s"), asks("w", "g", "s"), True),
        (rule("v", "-", "r"), asks("v", "", "r"), True),
        (rule("v", "", "r"), asks("v", "", "r"), False),
        # subresources
        (rule("*", "*", "r"), asks("v", "g", "r/sub"), False),
        (rule("*", "*", "r/sub"), asks("v", "g", "r/sub"), True),
        (rule("*", "*", "r/sub"), asks("v", "g", "r"), False),
        (rule("*", "*", "r/sub"), asks("v", "g", "s/sub"), False),
        (rule("*", "*", "*/sub"), asks("v", "g", "s/sub"), True),
        (rule("*", "*", "*/sub"), asks("v", "g", "s/other"), False),
        (rule("*", "*", "*/sub"), asks("v", "g", "s/subtle"), False),
        (rule("*", "*", "*/*"), asks("v", "g", "s/sub"), False),
        # a review may name a subresource within the resource; then only that very name counts
        (rule("*", "*", "r/sub"), Attributes(ANN, "v", "g", "r/sub"), True),
        (rule("*", "*", "*/sub"), Attributes(ANN, "v", "g", "r/sub"), False),
        # names
        (rule("v", "g", "r", "a b"), asks("v", "g", "r", "b"), True),
        (rule("v", "g", "r", "a b"), asks("v", "g", "r", "c"), False),
        (rule("v", "g", "r", "a b"), asks("v", "g", "r"), False),
        (rule("v", "g", "r", "*"), asks("v", "g", "r", "c"), False),
        # paths
        (rule("v", urls="*"), Attributes(ANN, "v", path="/foo/bar"), True),
        (rule("v", urls="*"), Attributes(ANN, "w", path="/foo/bar"), False),
        (rule("v", urls="/foo/*"), Attributes(ANN, "v", path="/foo"), False),
        (rule("v", urls="/foo/*"), Attributes(ANN, "v", path="/foo/bar/one"), True),
        (rule("v", urls="/foo/*"), Attributes(ANN, "v", path="/notfoo/bar"), False),
        (rule("*", urls="/foo /foo/bar/one"), Attributes(ANN, "v", path="/foo/bar/one"), True),
        (rule("*", urls="/foo /foo/bar/one"), Attributes(ANN, "v", path="/foo/bar"), False),
        (rule("*", "*", "*"), Attributes(ANN, "v", path="/foo"), False),
        (rule("v", urls="*"), asks("v", "", ""), False),
        (rule("v", names="a", urls="/foo"), Attributes(ANN, "v", path="/foo"), True),
    ],
)
def test_a_rule_allows_what_upstream_says_it_does(
    given: PolicyRule, asked: Attributes, allowed: bool
) -> None:
    assert rule_allows(given, asked) is allowed


@pytest.mark.parametrize(
    ("held", "wanted", "lacking"),
    [
        ([rule("get", "g", "r")], [rule("get", "g", "r")], []),
        ([rule("get", "g", "*/scale")], [rule("get", "g", "foo/scale")], []),
        ([rule("get", "g", "*/scale")], [rule("get", "g", "foo")], [rule("get", "g", "foo")]),
        ([rule("get", "g", "foo/scale")], [rule("get", "g", "*/scale")], [rule("get", "g", "*/scale")]),
        (
            [rule("delete", "g", "d"), rule("delete", "g", "b"), rule("update", "g", "b d")],
            [rule("delete update", "g", "b d")],
            [],
        ),
        (
            [rule("delete update", "g", "b d"), rule("delete", "g", "p")],
            [rule("delete update", "g", "b d p")],
            [rule("update", "g", "p")],
        ),
        ([rule("get", "*", "r")], [rule("get", "g h", "r")], []),
        ([rule("get", "g", "r")], [rule("get", "*", "r")], [rule("get", "*", "r")]),
        ([rule("*", "g", "r")], [rule("watch list", "g", "r")], []),
        ([rule("get list", "g", "r")], [rule("*", "g", "r")], [rule("*", "g", "r")]),
        ([rule("get", "g", "*")], [rule("get", "g", "r s/t")], []),
        ([rule("get", "g", "r")], [rule("get", "g", "*")], [rule("get", "g", "*")]),
        # names
        ([rule("get", "g", "r")], [rule("get", "g", "r", "a")], []),
        ([rule("get", "g", "r", "a")], [rule("get", "g", "r")], [rule("get", "g", "r")]),
        ([rule("get", "g", "r", "a b")], [rule("get", "g", "r", "b c")], [rule("get", "g", "r", "c")]),
        ([rule("get", "g", "r", "*")], [rule("get", "g", "r", "a")], [rule("get", "g", "r", "a")]),
        # paths
        ([rule("get", urls="/foo/*")], [rule("get", urls="/foo/bar /foo/*")], []),
        ([rule("get", urls="/foo/bar")], [rule("get", urls="/foo/*")], [rule("get", urls="/foo/*")]),
        ([rule("get", "*", "*")], [rule("get", urls="/foo")], [rule("get", urls="/foo")]),
        (list(FULL_AUTHORITY), [rule("any", "g", "r/s", "n"), rule("any", urls="/x")], []),
    ],
)
def test_rules_lack_what_upstream_says_they_do(
    held: list[PolicyRule], wanted: list[PolicyRule], lacking: list[PolicyRule]
) -> None:
    assert uncovered_rules(held, wanted) == lacking


def test_rules_for_the_same_resource_become_one() -> None:
    parts = uncovered_rules(
        [], [rule("get list", "-", "pods"), rule("get", "-", "secrets", "a"), rule("get", urls="/x")]
    )
    assert compact(parts) == [
        rule("get", urls="/x"),
        rule("get list", "-", "pods"),
        rule("get", "-", "secrets", "a"),
    ]


def test_a_rule_is_described_in_upstreams_form() -> None:
    assert rule_text(rule("get list", "- apps", "pods", "a")) == (
        '{APIGroups:["" "apps"], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}'
    )
    assert rule_text(rule("get", urls="/x")) == '{NonResourceURLs:["/x"], Verbs:["get"]}'
