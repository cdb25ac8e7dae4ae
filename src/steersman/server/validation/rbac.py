"""Roles and who has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from steersman.api.generated import rbac_v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_struct
from steersman.server.validation.selectors import compiled, label_selector

GROUP = "rbac.authorization.k8s.io"

_Check: TypeAlias = Callable[[FieldErrors, Any], None]
_Update: TypeAlias = Callable[[FieldErrors, Any, Any], None]


def _check_role(*, namespaced: bool) -> _Check:
    """A check of Roles, or of ClusterRoles."""

    def check(errors: FieldErrors, obj: rbac_v1.Role | rbac_v1.ClusterRole) -> None:
        meta.check(errors, obj.metadata, names.segment, namespaced=namespaced)
        _role(errors, obj, namespaced)

    return check


def _check_role_update(*, namespaced: bool) -> _Update:
    def check(
        errors: FieldErrors, new: rbac_v1.Role | rbac_v1.ClusterRole, old: rbac_v1.Role | rbac_v1.ClusterRole
    ) -> None:
        meta.again(errors, new.metadata, old.metadata, names.segment, namespaced=namespaced)
        _role(errors, new, namespaced)
        meta.check_update(errors, new.metadata, old.metadata)

    return check


def _role(errors: FieldErrors, obj: rbac_v1.Role | rbac_v1.ClusterRole, namespaced: bool) -> None:
    for i, rule in enumerate(obj.rules or ()):
        _rule(errors, f"rules[{i}]", rule, namespaced)
    if not isinstance(obj, rbac_v1.ClusterRole) or obj.aggregationRule is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = obj.aggregationRule.clusterRoleSelectors
    if not selectors:
        one = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.required(path, one)
    for i, selector in enumerate(selectors):
        label_selector(errors, f"{path}[{i}]", selector)
        if compiled(selector) is None:
            errors.invalid(f"{path}[{i}]", Verbatim("null"), "invalid label selector.")


def _rule(errors: FieldErrors, path: str, rule: rbac_v1.PolicyRule, namespaced: bool) -> None:
    if not rule.verbs:
        errors.required(f"{path}.verbs", "verbs must contain at least one value")
    urls = rule.nonResourceURLs
    if urls:
        at = f"{path}.nonResourceURLs"
        if namespaced:
            errors.invalid(at, urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.apiGroups or rule.resources or rule.resourceNames:
            both = "rules cannot apply to both regular resources and non-resource URLs"
            errors.invalid(at, urls, both)
        return
    if not rule.apiGroups:
        errors.required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.resources:
        errors.required(f"{path}.resources", "resource rules must supply at least one resource")


# -- bindings ---------------------------------------------------------------------------------


def _check_binding(*, namespaced: bool) -> _Check:
    """A check of RoleBindings, or of ClusterRoleBindings."""

    def check(errors: FieldErrors, obj: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding) -> None:
        meta.check(errors, obj.metadata, names.segment, namespaced=namespaced)
        _binding(errors, obj, namespaced)

    return check


def _check_binding_update(*, namespaced: bool) -> _Update:
    """What a binding binds to is for ever; who is bound may change."""

    def check(
        errors: FieldErrors,
        new: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding,
        old: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding,
    ) -> None:
        meta.again(errors, new.metadata, old.metadata, names.segment, namespaced=namespaced)
        _binding(errors, new, namespaced)
        meta.check_update(errors, new.metadata, old.metadata)
        if new.roleRef != old.roleRef:
            ref = new.roleRef
            shown = go_struct(APIGroup=ref.apiGroup, Kind=ref.kind, Name=ref.name)
            errors.invalid("roleRef", shown, "cannot change roleRef")

    return check


def _binding(
    errors: FieldErrors, obj: rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding, namespaced: bool
) -> None:
    ref = obj.roleRef
    if ref.apiGroup != GROUP:
        errors.not_supported("roleRef.apiGroup", ref.apiGroup, (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if ref.kind not in kinds:
        errors.not_supported("roleRef.kind", ref.kind, kinds)
    if not ref.name:
        errors.required("roleRef.name")
    else:
        errors.invalid_each("roleRef.name", ref.name, names.segment(ref.name))
    for i, subject in enumerate(obj.subjects):
        _subject(errors, f"subjects[{i}]", subject, namespaced)


def _subject(errors: FieldErrors, path: str, subject: rbac_v1.Subject, namespaced: bool) -> None:
    if not subject.name:
        errors.required(f"{path}.name")
    group = subject.apiGroup or ""
    if subject.kind == "ServiceAccount":
        if subject.name:
            errors.invalid_each(f"{path}.name", subject.name, names.subdomain(subject.name))
        if group:
            errors.not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.namespace:
            errors.required(f"{path}.namespace")
    elif subject.kind in ("User", "Group"):
        if group != GROUP:
            errors.not_supported(f"{path}.apiGroup", group, (GROUP,))
    else:
        errors.not_supported(f"{path}.kind", subject.kind, ("ServiceAccount", "User", "Group"))


role = _check_role(namespaced=True)
role_update = _check_role_update(namespaced=True)
cluster_role = _check_role(namespaced=False)
cluster_role_update = _check_role_update(namespaced=False)
binding = _check_binding(namespaced=True)
binding_update = _check_binding_update(namespaced=True)
cluster_binding = _check_binding(namespaced=False)
cluster_binding_update = _check_binding_update(namespaced=False)
