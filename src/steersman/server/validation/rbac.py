"""Validation of Roles, ClusterRoles and their bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from steersman.api.generated import rbac_v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import FieldErrors, Verbatim, go_struct
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import compile_or_none, validate_label_selector

GROUP = "rbac.authorization.k8s.io"

Role: TypeAlias = rbac_v1.Role | rbac_v1.ClusterRole
RoleBinding: TypeAlias = rbac_v1.RoleBinding | rbac_v1.ClusterRoleBinding


def validate_role(errors: FieldErrors, obj: rbac_v1.Role) -> None:
    _validate_role(errors, obj, namespaced=True)


def validate_role_update(errors: FieldErrors, new: rbac_v1.Role, old: rbac_v1.Role) -> None:
    _validate_role_update(errors, new, old, namespaced=True)


def validate_cluster_role(errors: FieldErrors, obj: rbac_v1.ClusterRole) -> None:
    _validate_role(errors, obj, namespaced=False)


def validate_cluster_role_update(
    errors: FieldErrors, new: rbac_v1.ClusterRole, old: rbac_v1.ClusterRole
) -> None:
    _validate_role_update(errors, new, old, namespaced=False)


def _validate_role(errors: FieldErrors, obj: Role, *, namespaced: bool) -> None:
    meta.validate_object_meta(errors, obj.metadata, names.path_segment, namespaced=namespaced)
    _validate_role_rules(errors, obj, namespaced)


def _validate_role_update(errors: FieldErrors, new: Role, old: Role, *, namespaced: bool) -> None:
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.path_segment, namespaced=namespaced
    )
    _validate_role_rules(errors, new, namespaced)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)


def _validate_role_rules(errors: FieldErrors, obj: Role, namespaced: bool) -> None:
    for i, rule in enumerate(obj.rules or ()):
        _validate_policy_rule(errors, f"rules[{i}]", rule, namespaced)
    if not isinstance(obj, rbac_v1.ClusterRole) or obj.aggregationRule is None:
        return
    path = "aggregationRule.clusterRoleSelectors"
    selectors = obj.aggregationRule.clusterRoleSelectors
    if not selectors:
        one = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        errors.required(path, one)
    for i, selector in enumerate(selectors):
        validate_label_selector(errors, f"{path}[{i}]", selector)
        if compile_or_none(selector) is None:
            errors.invalid(f"{path}[{i}]", Verbatim("null"), "invalid label selector.")


def _validate_policy_rule(errors: FieldErrors, path: str, rule: rbac_v1.PolicyRule, namespaced: bool) -> None:
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


def validate_role_binding(errors: FieldErrors, obj: rbac_v1.RoleBinding) -> None:
    _validate_binding(errors, obj, namespaced=True)


def validate_role_binding_update(
    errors: FieldErrors, new: rbac_v1.RoleBinding, old: rbac_v1.RoleBinding
) -> None:
    _validate_binding_update(errors, new, old, namespaced=True)


def validate_cluster_role_binding(errors: FieldErrors, obj: rbac_v1.ClusterRoleBinding) -> None:
    _validate_binding(errors, obj, namespaced=False)


def validate_cluster_role_binding_update(
    errors: FieldErrors, new: rbac_v1.ClusterRoleBinding, old: rbac_v1.ClusterRoleBinding
) -> None:
    _validate_binding_update(errors, new, old, namespaced=False)


def _validate_binding(errors: FieldErrors, obj: RoleBinding, *, namespaced: bool) -> None:
    meta.validate_object_meta(errors, obj.metadata, names.path_segment, namespaced=namespaced)
    _validate_binding_fields(errors, obj, namespaced)


def _validate_binding_update(
    errors: FieldErrors, new: RoleBinding, old: RoleBinding, *, namespaced: bool
) -> None:
    """The roleRef of a binding is immutable; its subjects may change."""
    meta.validate_changed_object_meta(
        errors, new.metadata, old.metadata, names.path_segment, namespaced=namespaced
    )
    _validate_binding_fields(errors, new, namespaced)
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.roleRef != old.roleRef:
        ref = new.roleRef
        shown = go_struct(APIGroup=ref.apiGroup, Kind=ref.kind, Name=ref.name)
        errors.invalid("roleRef", shown, "cannot change roleRef")


def _validate_binding_fields(errors: FieldErrors, obj: RoleBinding, namespaced: bool) -> None:
    ref = obj.roleRef
    if ref.apiGroup != GROUP:
        errors.not_supported("roleRef.apiGroup", ref.apiGroup, (GROUP,))
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if ref.kind not in kinds:
        errors.not_supported("roleRef.kind", ref.kind, kinds)
    if not ref.name:
        errors.required("roleRef.name")
    else:
        errors.invalid_each("roleRef.name", ref.name, names.path_segment(ref.name))
    for i, subject in enumerate(obj.subjects):
        _validate_subject(errors, f"subjects[{i}]", subject, namespaced)


def _validate_subject(errors: FieldErrors, path: str, subject: rbac_v1.Subject, namespaced: bool) -> None:
    if not subject.name:
        errors.required(f"{path}.name")
    group = subject.apiGroup or ""
    if subject.kind == "ServiceAccount":
        if subject.name:
            errors.invalid_each(f"{path}.name", subject.name, names.dns1123_subdomain(subject.name))
        if group:
            errors.not_supported(f"{path}.apiGroup", group, ("",))
        if not namespaced and not subject.namespace:
            errors.required(f"{path}.namespace")
    elif subject.kind in ("User", "Group"):
        if group != GROUP:
            errors.not_supported(f"{path}.apiGroup", group, (GROUP,))
    else:
        errors.not_supported(f"{path}.kind", subject.kind, ("ServiceAccount", "User", "Group"))


RULES: Mapping[GroupKind, AnyRules] = {
    ("rbac.authorization.k8s.io", "ClusterRole"): Rules[rbac_v1.ClusterRole](
        validate_cluster_role, validate_cluster_role_update
    ),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): Rules[rbac_v1.ClusterRoleBinding](
        validate_cluster_role_binding, validate_cluster_role_binding_update
    ),
    ("rbac.authorization.k8s.io", "Role"): Rules[rbac_v1.Role](validate_role, validate_role_update),
    ("rbac.authorization.k8s.io", "RoleBinding"): Rules[rbac_v1.RoleBinding](
        validate_role_binding, validate_role_binding_update
    ),
}
