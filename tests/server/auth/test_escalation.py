"""Nobody grants what they do not have: refusals as a real server words them."""

from __future__ import annotations

import msgspec
import pytest

from steersman.api.errors import Forbidden, NotFound
from steersman.api.generated.meta_v1 import LabelSelector, ObjectMeta, OwnerReference
from steersman.api.generated.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from steersman.server.auth.escalation import check
from steersman.server.auth.rbac import GROUP, Policy, RBACAuthorizer
from steersman.server.auth.rbac_rules import FULL_AUTHORITY
from steersman.server.auth.users import User

RITA = User("rita", groups=("g1", "g2"))
PODS = PolicyRule(verbs=("get", "list"), apiGroups=("",), resources=("pods",))
SECRETS = PolicyRule(verbs=("get",), apiGroups=("",), resources=("secrets",))
LABELLED = AggregationRule(clusterRoleSelectors=(LabelSelector(matchLabels={"a": "b"}),))


def holding(*rules: PolicyRule) -> RBACAuthorizer:
    """What rita holds everywhere."""
    return RBACAuthorizer(
        [
            ClusterRole(metadata=ObjectMeta(name="held"), rules=rules),
            ClusterRole(metadata=ObjectMeta(name="cluster-admin"), rules=FULL_AUTHORITY),
            Role(metadata=ObjectMeta(namespace="ns", name="reader"), rules=(PODS,)),
            cluster_binding("held", "User:rita"),
        ]
    )


def cluster_binding(to: str, *words: str) -> ClusterRoleBinding:
    subjects = tuple(
        Subject(kind=kind, name=name) for kind, _, name in (word.partition(":") for word in words)
    )
    ref = RoleRef(apiGroup=GROUP, kind="ClusterRole", name=to)
    return ClusterRoleBinding(metadata=ObjectMeta(name=f"to-{to}"), roleRef=ref, subjects=subjects)


def binding(kind: str, to: str) -> RoleBinding:
    ref = RoleRef(apiGroup=GROUP, kind=kind, name=to)
    return RoleBinding(metadata=ObjectMeta(namespace="ns", name="b"), roleRef=ref)


def cluster_role(*rules: PolicyRule, aggregation: AggregationRule | None = None) -> ClusterRole:
    return ClusterRole(metadata=ObjectMeta(name="new"), rules=rules, aggregationRule=aggregation)


def escalate(plural: str, *names: str) -> PolicyRule:
    return PolicyRule(verbs=("escalate",), apiGroups=(GROUP,), resources=(plural,), resourceNames=names)


def bind(plural: str, *names: str) -> PolicyRule:
    return PolicyRule(verbs=("bind",), apiGroups=(GROUP,), resources=(plural,), resourceNames=names)


def test_a_role_may_be_made_of_what_its_maker_holds() -> None:
    check(holding(PODS), RITA, cluster_role(PODS))
    role = Role(metadata=ObjectMeta(namespace="ns", name="new"), rules=(PODS,))
    check(holding(PODS), RITA, role, namespace="ns")


def test_a_role_with_more_than_its_maker_holds_is_refused_and_the_surplus_named() -> None:
    big = cluster_role(
        PolicyRule(verbs=("get", "list"), apiGroups=("", "apps"), resources=("pods", "deployments")),
        PolicyRule(verbs=("get",), nonResourceURLs=("/x",)),
        PolicyRule(verbs=("get",), apiGroups=("",), resources=("secrets",), resourceNames=("a", "b")),
    )
    rbac = holding(PODS)
    rbac.put(cluster_binding("absent", "Group:g1"))
    with pytest.raises(Forbidden) as refused:
        check(rbac, RITA, big)
    assert refused.value.message == (
        'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "rita" (groups=["g1" "g2"])'
        " is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["deployments"], Verbs:["get" "list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}\n'
        '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}\n'
        '{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "list"]}\n'
        '{NonResourceURLs:["/x"], Verbs:["get"]}'
        '; resolution errors: [clusterroles.rbac.authorization.k8s.io "absent" not found]'
    )
    assert refused.value.details == {"name": "new", "group": GROUP, "kind": "clusterroles"}


def test_members_of_system_masters_may_grant_anything() -> None:
    root = User("root", groups=("system:masters",))
    check(RBACAuthorizer(), root, cluster_role(*FULL_AUTHORITY))
    # Whether it makes sense is a matter of validation.
    check(RBACAuthorizer(), root, binding("Nonsense", "x"), namespace="ns")


@pytest.mark.parametrize(
    ("held", "name", "allowed"),
    [
        (escalate("clusterroles"), "", True),
        (escalate("roles"), "", False),
        (escalate("clusterroles", "new"), "new", True),
        # A create has no name in its path, so a rule for one name cannot be about it.
        (escalate("clusterroles", "new"), "", False),
        (escalate("clusterroles", "other"), "new", False),
    ],
)
def test_who_may_escalate_a_role_may_write_anything_into_it(
    held: PolicyRule, name: str, allowed: bool
) -> None:
    new = cluster_role(SECRETS)
    if allowed:
        check(holding(held), RITA, new, name=name)
    else:
        with pytest.raises(Forbidden):
            check(holding(held), RITA, new, name=name)


@pytest.mark.parametrize(
    ("held", "new", "old", "allowed"),
    [
        ((PODS,), cluster_role(aggregation=LABELLED), None, False),
        ((PODS,), cluster_role(), cluster_role(aggregation=LABELLED), False),
        (FULL_AUTHORITY, cluster_role(aggregation=LABELLED), None, True),
        ((escalate("clusterroles"),), cluster_role(aggregation=LABELLED), None, True),
        ((PODS,), cluster_role(aggregation=AggregationRule()), None, True),
    ],
)
def test_only_who_holds_everything_may_aggregate(
    held: tuple[PolicyRule, ...], new: ClusterRole, old: ClusterRole | None, allowed: bool
) -> None:
    if allowed:
        check(holding(*held), RITA, new, old)
        return
    with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
        check(holding(*held), RITA, new, old)


@pytest.mark.parametrize(
    ("held", "new", "allowed"),
    [
        ((PODS,), binding("Role", "reader"), True),
        ((SECRETS,), binding("Role", "reader"), False),
        ((bind("roles"),), binding("Role", "reader"), True),
        ((bind("roles", "reader"),), binding("Role", "reader"), True),
        ((bind("clusterroles"),), binding("Role", "reader"), False),
        ((bind("clusterroles", "cluster-admin"),), binding("ClusterRole", "cluster-admin"), True),
        ((bind("clusterroles", "cluster-admin"),), cluster_binding("cluster-admin"), True),
        ((PODS,), cluster_binding("cluster-admin"), False),
        (FULL_AUTHORITY, cluster_binding("cluster-admin"), True),
    ],
)
def test_a_role_may_be_bound_by_who_holds_it_or_may_bind_it(
    held: tuple[PolicyRule, ...], new: Policy, allowed: bool
) -> None:
    namespace = new.metadata.namespace
    if allowed:
        check(holding(*held), RITA, new, namespace=namespace)
        return
    with pytest.raises(Forbidden, match="is attempting to grant RBAC permissions not currently held"):
        check(holding(*held), RITA, new, namespace=namespace)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (binding("Role", "nope"), 'rolebindings.rbac.authorization.k8s.io "nope" not found'),
        (cluster_binding("nope"), 'clusterrolebindings.rbac.authorization.k8s.io "nope" not found'),
    ],
)
def test_a_role_that_is_not_there_can_only_be_bound_by_who_may_bind_it(new: Policy, message: str) -> None:
    namespace = new.metadata.namespace
    with pytest.raises(NotFound) as refused:
        check(holding(PODS), RITA, new, namespace=namespace)
    assert refused.value.message == message
    check(holding(bind("roles"), bind("clusterroles")), RITA, new, namespace=namespace)


def test_what_the_garbage_collector_writes_needs_no_rights() -> None:
    old = cluster_role(SECRETS)
    owned = msgspec.structs.replace(
        old.metadata, ownerReferences=(OwnerReference(name="o", uid="u"),), finalizers=("f",)
    )
    new = msgspec.structs.replace(old, metadata=owned)
    check(holding(PODS), RITA, new, old, name="new")
    with pytest.raises(Forbidden):
        check(holding(PODS), RITA, msgspec.structs.replace(new, rules=(SECRETS, PODS)), old, name="new")
