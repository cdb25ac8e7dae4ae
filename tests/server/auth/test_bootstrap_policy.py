"""The bootstrap policy: that it is whole, and that it lets the parts of a cluster do their work."""

from __future__ import annotations

from collections import Counter

import pytest

from steersman.api.generated.meta_v1 import LabelSelector, ObjectMeta
from steersman.api.generated.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
)
from steersman.api.scheme import kind_of
from steersman.server.auth.attributes import Attributes
from steersman.server.auth.bootstrap_policy import aggregate_roles, bootstrap_policy, gated_policy
from steersman.server.auth.rbac import RBACAuthorizer
from steersman.server.auth.users import ANONYMOUS, User, service_account_user

ANN = User("ann", groups=("system:authenticated",))
MANAGER = User("system:kube-controller-manager", groups=("system:authenticated",))


def test_every_object_is_marked_as_of_the_bootstrap_policy() -> None:
    policy = bootstrap_policy()
    assert Counter(map(type, policy)) == {ClusterRole: 69, ClusterRoleBinding: 50, Role: 7, RoleBinding: 7}
    for obj in policy:
        assert obj.metadata.labels["kubernetes.io/bootstrapping"] == "rbac-defaults"
        assert obj.metadata.annotations == {"rbac.authorization.kubernetes.io/autoupdate": "true"}
        assert kind_of(obj).group == "rbac.authorization.k8s.io"


def test_every_binding_refers_to_a_role_of_the_policy() -> None:
    policy = bootstrap_policy()
    roles = {(type(obj).__name__, *obj.key) for obj in policy if isinstance(obj, Role | ClusterRole)}
    for obj in policy:
        if isinstance(obj, RoleBinding | ClusterRoleBinding):
            home = obj.metadata.namespace if obj.roleRef.kind == "Role" else ""
            assert (obj.roleRef.kind, home, obj.roleRef.name) in roles


def test_aggregated_roles_have_their_rules_from_the_start() -> None:
    roles = {obj.metadata.name: obj for obj in bootstrap_policy() if isinstance(obj, ClusterRole)}
    view, edit, admin = (roles[name].rules or () for name in ("view", "edit", "admin"))
    assert view == roles["system:aggregate-to-view"].rules
    assert len(view) < len(edit) < len(admin)
    assert all(rule in edit for rule in view)
    assert all(rule in admin for rule in edit)


def test_a_role_gathers_from_one_that_gathers_itself_and_takes_each_rule_once() -> None:
    def role(name: str, label: str = "", gathers: str = "", *rules: PolicyRule) -> ClusterRole:
        selectors = (LabelSelector(matchLabels={gathers: "true"}),)
        return ClusterRole(
            metadata=ObjectMeta(name=name, labels={label: "true"} if label else {}),
            aggregationRule=AggregationRule(clusterRoleSelectors=selectors) if gathers else None,
            rules=rules,
        )

    one, two = (PolicyRule(verbs=(verb,)) for verb in ("one", "two"))
    top, middle, *_ = aggregate_roles(
        (
            role("top", "", "t"),
            role("middle", "t", "m"),
            role("x", "m", "", one, two),
            role("y", "t", "", two),
        )
    )
    assert top.rules == middle.rules == (one, two)


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (Attributes(ANONYMOUS, "get", path="/healthz"), True),
        (Attributes(ANONYMOUS, "get", path="/version"), True),
        (Attributes(ANONYMOUS, "get", path="/api"), False),
        (Attributes(ANN, "get", path="/apis/apps/v1"), True),
        (Attributes(ANN, "post", path="/api"), False),
        (Attributes(ANN, "get", path="/metrics"), False),
        (Attributes(ANN, "create", "authorization.k8s.io", "selfsubjectaccessreviews"), True),
        (Attributes(ANN, "create", "authorization.k8s.io", "subjectaccessreviews"), False),
        (Attributes(ANN, "list", "", "pods", namespace="default"), False),
        (Attributes(User("m", groups=("system:monitoring",)), "get", path="/metrics"), True),
        (Attributes(MANAGER, "create", "", "serviceaccounts", "token", "kube-system", "x"), True),
        (Attributes(MANAGER, "list", "", "pods"), True),
        (Attributes(MANAGER, "delete", "", "pods", namespace="ns", name="p"), False),
        (
            Attributes(
                service_account_user("kube-system", "replicaset-controller", ""),
                "create",
                "",
                "pods",
                "",
                "ns",
            ),
            True,
        ),
        (
            Attributes(
                service_account_user("other", "replicaset-controller", ""), "create", "", "pods", "", "ns"
            ),
            False,
        ),
        (Attributes(User("x", groups=("system:nodes",)), "get", "", "nodes", name="n"), False),
        (Attributes(service_account_user("a", "b", ""), "get", path="/openid/v1/jwks"), True),
    ],
)
def test_the_policy_allows_what_a_fresh_server_does(asked: Attributes, allowed: bool) -> None:
    policy = RBACAuthorizer(bootstrap_policy())
    user = asked.user
    if user.name.startswith("system:serviceaccount:"):
        # The groups of all accounts, as authentication gives them.
        assert "system:serviceaccounts" in user.groups
    assert policy.authorize(asked).allowed is allowed


def test_a_feature_gate_adds_the_rights_of_its_controller() -> None:
    account = service_account_user("kube-system", "podgroup-protection-controller", "")

    def may(verb: str, *gates: str) -> bool:
        rights = RBACAuthorizer([*bootstrap_policy(), *gated_policy(frozenset(gates))])
        asked = Attributes(account, verb, "scheduling.k8s.io", "podgroups", namespace="a")
        return rights.authorize(asked).allowed

    assert may("update", "GenericWorkload")
    assert not may("update")
    # It has no more than it needs: the finalizer goes with an update, not with a patch.
    assert not may("patch", "GenericWorkload")
