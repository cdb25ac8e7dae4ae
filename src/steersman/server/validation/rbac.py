"""Roles and who has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated import rbac_v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import Found, Verbatim, fields
from steersman.server.validation.selectors import compiled, label_selector

GROUP = "rbac.authorization.k8s.io"

_Check: TypeAlias = Callable[[Found, Any], None]
_Update: TypeAlias = Callable[[Found, Any, Any], None]


def _check_role(*, namespaced: bool) -> _Check:
    """A check of Roles, or of ClusterRoles."""

    def check(found: Found, obj: rbac_v1.Role | rbac_v1.ClusterRole) -> None:
        meta.check(found, obj.metadata, names.segment, namespaced=namespaced)
        _role(found, obj, namespaced)

    return check


def _check_role_update(*, namespaced: bool) -> _Update:
    def check(
        found: Found, new: rbac_v1.Role | rbac_v1.ClusterRole, old: rbac_v1.Role | rbac_v1.ClusterRole
    ) -> None:
        meta.again(found, new.metadata, old.metadata, names.segment, namespaced=namespaced)
        _role(found, new, namespaced)
        meta.check_update(found, new.metadata, old.metadata)

    return check


def _role(found: Found, obj: rbac_v1.Role | rbac_v1.ClusterRole, namespaced: bool) -> None:
    for i, rule in enumerate(obj.rules or ()):
        _rule(found, f"rules[{i}]", rule, namespaced)
    if not isinstance(obj, rbac_v1.ClusterRole) or obj.aggregationRule is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = obj.aggregationRule.clusterRoleSelectors
    if not selectors:
        one = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        found.required(path, one)
    for i, selector in enumerate(selectors):
        label_selector(found, f"{path}[{i}]", selector)
        if compiled(selector) is None:
            found.invalid(f"{path}[{i}]", Verbatim("null"), "invalid label selector.")


def _rule(found: Found, path: str, rule: rbac_v1.PolicyRule, namespaced: bool) -> None:
    if not rule.verbs:
        found.required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.nonResourceURLs
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            found.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.apiGroups or rule.resources or rule.resourceNames:
            both = "rules cannot apply to both regular resources and non-resource URLs"
            found.invalid(at, urls, both)
        return
    if not rule.apiGroups:
        found.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        found.required(f"{path}.resources", "resource rules must supply at least one resource")


# -- bindings ---------------------------------------------------------------------------------


def _check_binding(*, namespaced: bool) -> _Check:
    """A check of RoleBindings, or of ClusterRoleBindings."""

    def check(found: Found, obj: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding) -> None:
        meta.check(found, obj.metadata, names.segment, namespaced=namespaced)
        _binding(found, obj, namespaced)

    return check


def _check_binding_update(*, namespaced: bool) -> _Update:
    """What a binding binds to is for ever; who is bound may change."""

    def check(
        found: Found,
        new: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding,
        old: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding,
    ) -> None:
        meta.again(found, new.metadata, old.metadata, names.segment, namespaced=namespaced)
        _binding(found, new, namespaced)
        meta.check_update(found, new.metadata, old.metadata)
        if new.roleRef != old.roleRef:
            ref = new.roleRef
            shown = fields(APIGroup=ref.apiGroup, Kind=ref.kind, Name=ref.name)
            found.invalid("roleRef", shown, "cannot change roleRef")

    return check


def _binding(found: Found, obj: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding, namespaced: bool) -> None:
    ref = obj.roleRef
    if ref.apiGroup != GROUP:
        found.unsupported("roleRef.apiGroup", ref.apiGroup, (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if ref.kind not in kinds:
        found.unsupported("roleRef.kind", ref.kind, kinds)
    if not ref.name:
        found.required("roleRef.name")
    else:
        found.each("roleRef.name", ref.name, names.segment(ref.name))
    for i, subject in enumerate(obj.subjects):
        _subject(found, f"subjects[{i}]", subject, namespaced)


def _subject(found: Found, path: str, subject: rbac_v1.Subject, namespaced: bool) -> None:
    if not subject.name:
        found.required(f"{path}.name")
    group = subject.apiGroup or ""
    if subject.kind == "ServiceAccount":
        if subject.name:
            found.each(f"{path}.name", subject.name, names.subdomain(subject.name))
        if group:
            found.unsupported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.namespace:
            found.required(f"{path}.namespace")
    elif subject.kind in ("User", "Group"):
        if group != GROUP:
            found.unsupported(f"{path}.apiGroup", group, (GROUP,))
    else:
        found.unsupported(f"{path}.kind", subject.kind, ("ServiceAccount", "User", "Group"))


role = _check_role(namespaced=True)
role_update = _check_role_update(namespaced=True)
cluster_role = _check_role(namespaced=False)
cluster_role_update = _check_role_update(namespaced=False)
binding = _check_binding(namespaced=True)
binding_update = _check_binding_update(namespaced=True)
cluster_binding = _check_binding(namespaced=False)
cluster_binding_update = _check_binding_update(namespaced=False)
