"""Validation of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import Quantity as Amount
from steersman.api.label_syntax import key_errors
from steersman.api.quantity import Quantity
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import FieldErrors, format_strings, go_slice, go_struct
from steersman.server.validation.resources import parse_quantity
from steersman.server.validation.rules import AnyRules, GroupKind, Rules

_POD_SCOPES = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
_SCOPES = (*_POD_SCOPES, "BestEffort", "VolumeAttributesClass")
_EXISTS_ONLY_SCOPES = (
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
)
_CONFLICTING_SCOPES = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
_COMPUTE_RESOURCES = ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")


# -- ResourceQuotas ---------------------------------------------------------------------------


def validate_resource_quota(errors: FieldErrors, obj: v1.ResourceQuota) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_resource_quota_spec(errors, obj.spec)


def validate_resource_quota_update(errors: FieldErrors, new: v1.ResourceQuota, old: v1.ResourceQuota) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _validate_resource_quota_spec(errors, new.spec)
    if set(new.spec.scopes) != set(old.spec.scopes):
        errors.invalid("spec.scopes", format_strings(new.spec.scopes), IMMUTABLE)


def validate_resource_quota_status(errors: FieldErrors, new: v1.ResourceQuota, old: v1.ResourceQuota) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_resource_list(errors, "status.hard", new.status.hard)
    _validate_resource_list(errors, "status.used", new.status.used)


def _validate_resource_list(errors: FieldErrors, path: str, quantities: Mapping[str, Amount]) -> None:
    for name, amount in quantities.items():
        resources.validate_quota_resource_name(errors, f"{path}[{name}]", name)
        resources.validate_resource_quantity(errors, f"{path}[{name}]", name, amount)


def _validate_resource_quota_spec(errors: FieldErrors, spec: v1.ResourceQuotaSpec) -> None:
    _validate_resource_list(errors, "spec.hard", spec.hard)
    for scope in spec.scopes:
        if scope not in _SCOPES:
            errors.invalid("spec.scopes", spec.scopes, "unsupported scope")
        for name in sorted(spec.hard):
            if resources.is_quota_name(name) and not _scope_applies(scope, name):
                errors.invalid("spec.scopes", spec.scopes, "unsupported scope applied to resource")
    for pair in _CONFLICTING_SCOPES:
        if all(scope in spec.scopes for scope in pair):
            errors.invalid("spec.scopes", spec.scopes, "conflicting scopes")
    if spec.scopeSelector is not None:
        _validate_scope_selector(errors, "spec.scopeSelector.matchExpressions", spec, spec.scopeSelector)


def _scope_applies(scope: str, name: str) -> bool:
    """Whether a scope applies to a resource."""
    if scope in _POD_SCOPES:
        return name == "pods" or name in _COMPUTE_RESOURCES
    if scope == "BestEffort":
        return name == "pods"
    if scope == "VolumeAttributesClass":
        return name in ("persistentvolumeclaims", "requests.storage")
    return True


def _validate_scope_selector(
    errors: FieldErrors, path: str, spec: v1.ResourceQuotaSpec, selector: v1.ScopeSelector
) -> None:
    expressions = selector.matchExpressions
    for requirement in expressions:
        if requirement.scopeName not in _SCOPES:
            errors.invalid(f"{path}.scopeName", requirement.scopeName, "unsupported scope")
        for name in sorted(spec.hard):
            if resources.is_quota_name(name) and not _scope_applies(requirement.scopeName, name):
                shown = go_struct(
                    MatchExpressions=go_slice(
                        go_struct(ScopeName=e.scopeName, Operator=e.operator, Values=e.values or None)
                        for e in expressions
                    )
                )
                errors.invalid(path, shown, "unsupported scope applied to resource")
        if requirement.scopeName in _EXISTS_ONLY_SCOPES and requirement.operator != "Exists":
            errors.invalid(
                f"{path}.operator",
                requirement.operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            )
        if requirement.operator in ("In", "NotIn"):
            if not requirement.values:
                some = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.required(f"{path}.values", some)
        elif requirement.operator in ("Exists", "DoesNotExist"):
            if requirement.values:
                none = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.invalid(f"{path}.values", requirement.values, none)
        else:
            errors.invalid(f"{path}.operator", requirement.operator, "not a valid selector operator")
    chosen = [requirement.scopeName for requirement in expressions]
    for pair in _CONFLICTING_SCOPES:
        if all(scope in chosen for scope in pair):
            errors.invalid(path, format_strings(spec.scopes), "conflicting scopes")


# -- LimitRanges ------------------------------------------------------------------------------

_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def validate_limit_range(errors: FieldErrors, obj: v1.LimitRange) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_limit_range_items(errors, obj)


def validate_limit_range_update(errors: FieldErrors, new: v1.LimitRange, old: v1.LimitRange) -> None:
    meta.validate_changed_object_meta(errors, new.metadata, old.metadata, names.dns1123_subdomain)
    _validate_limit_range_items(errors, new)


def _validate_limit_range_items(errors: FieldErrors, obj: v1.LimitRange) -> None:
    seen: list[str] = []
    for i, item in enumerate(obj.spec.limits or ()):
        path = f"spec.limits[{i}]"
        if messages := key_errors(item.type):
            errors.invalid_each(f"{path}.type", item.type, messages)
        elif "/" not in item.type and item.type not in _LIMIT_TYPES:
            message = "must be a standard limit type or fully qualified"
            errors.invalid(f"{path}.type", item.type, message)
        if item.type in seen:
            errors.duplicate(f"{path}.type", item.type)
        seen.append(item.type)
        _validate_limit_range_item(errors, path, item)


def _validate_limit_range_item(errors: FieldErrors, path: str, item: v1.LimitRangeItem) -> None:
    name_check: Callable[[FieldErrors, str, str], object] = (
        resources.validate_container_resource_name
        if item.type in ("Pod", "Container")
        else resources.validate_resource_name
    )

    def validate_names(field: str) -> None:
        for name in getattr(item, field):
            name_check(errors, f"{path}.{field}[{name}]", name)

    validate_names("max")
    validate_names("min")
    for field, value in (("default", item.default), ("defaultRequest", item.defaultRequest)):
        if item.type != "Pod":
            validate_names(field)
        elif value:
            errors.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'")
    if item.type == "PersistentVolumeClaim" and "storage" not in item.min and "storage" not in item.max:
        either = "either minimum or maximum storage value is required, but neither was provided"
        errors.required(f"{path}.limits", either)
    validate_names("maxLimitRequestRatio")
    defaults, requests = (item.default, item.defaultRequest) if item.type != "Pod" else ({}, {})
    everything = {**item.max, **item.min, **defaults, **requests, **item.maxLimitRequestRatio}
    for name in everything:
        _validate_resource_bounds(errors, path, name, item, defaults, requests)


def _validate_resource_bounds(
    errors: FieldErrors,
    path: str,
    name: str,
    item: v1.LimitRangeItem,
    defaults: Mapping[str, Amount],
    requests: Mapping[str, Amount],
) -> None:
    """Validates that min, default, max and ratio of one resource agree."""
    least, most = _quantity_of(item.min, name), _quantity_of(item.max, name)
    default, request, ratio = (
        _quantity_of(defaults, name),
        _quantity_of(requests, name),
        _quantity_of(item.maxLimitRequestRatio, name),
    )

    def ordered(
        low: Quantity | None, high: Quantity | None, field: str, shown: Quantity | None, message: str
    ) -> None:
        if low is not None and high is not None and low > high:
            detail = message.format(low=low, high=high)
            errors.invalid(f"{path}.{field}[{name}]", str(shown), detail)

    ordered(least, most, "min", least, "min value {low} is greater than max value {high}")
    ordered(
        least,
        request,
        "defaultRequest",
        request,
        "min value {low} is greater than default request value {high}",
    )
    ordered(
        request,
        most,
        "defaultRequest",
        request,
        "default request value {low} is greater than max value {high}",
    )
    ordered(
        request,
        default,
        "defaultRequest",
        request,
        "default request value {low} is greater than default limit value {high}",
    )
    ordered(least, default, "default", least, "min value {low} is greater than default value {high}")
    ordered(default, most, "default", most, "default value {low} is greater than max value {high}")
    at = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < Quantity.of(1):
        errors.invalid(at, str(ratio), f"ratio {ratio} is less than 1")
    if ratio is not None and least is not None and most is not None and least.nanos:
        share = most.nanos / least.nanos
        if float(ratio) > share:
            errors.invalid(at, str(ratio), f"ratio {ratio} is greater than max/min = {share:f}")
    if default is not None and request not in (None, default) and not resources.is_overcommit_allowed(name):
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.invalid(f"{path}.defaultRequest[{name}]", str(request), detail)


def _quantity_of(quantities: Mapping[str, Amount], name: str) -> Quantity | None:
    return parse_quantity(quantities[name]) if name in quantities else None


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "LimitRange"): Rules[v1.LimitRange](validate_limit_range, validate_limit_range_update),
    ("", "ResourceQuota"): Rules[v1.ResourceQuota](
        validate_resource_quota, validate_resource_quota_update, status=validate_resource_quota_status
    ),
}
