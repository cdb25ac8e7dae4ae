"""Views of ClusterRoles."""

from __future__ import annotations

from steersman.api.kinds import LabelSelector, Object, Struct
from steersman.api.scheme import Kind, register


class PolicyRule(Struct, frozen=True):
    apiGroups: tuple[str, ...] = ()
    nonResourceURLs: tuple[str, ...] = ()
    resourceNames: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    verbs: tuple[str, ...] | None = ()


class AggregationRule(Struct, frozen=True):
    clusterRoleSelectors: tuple[LabelSelector, ...] = ()


class ClusterRole(Object, frozen=True):
    aggregationRule: AggregationRule | None = None
    rules: tuple[PolicyRule, ...] | None = None


CLUSTERROLES = register(
    Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False, ClusterRole)
)
