"""Validation of the kinds that feature gates add: DeviceTaintRules, PodGroups and ResourcePoolStatusRequests."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import resource_v1alpha3, resource_v1beta2, scheduling_v1alpha2
from steersman.api.label_syntax import MAX_SUBDOMAIN, subdomain_errors
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.devices import MAX_DEVICE_CONDITIONS, validate_pool
from steersman.server.validation.field_errors import NULL, FieldErrors, go_slice, go_struct
from steersman.server.validation.resource_slices import validate_taint
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.volumes import validate_csi_driver_name

MAX_POOLS = 1000
MAX_CONDITIONS = 10
MAX_VALIDATION_ERROR = 256
"""Bytes of the reason why a pool is invalid."""
MAX_CLAIMS = 4
"""Claims of a PodGroup."""


def _at_least(errors: FieldErrors, path: str, number: int | None, least: int) -> None:
    if number is not None and number < least:
        errors.invalid(path, number, f"must be greater than or equal to {least}")


# -- PodGroups --------------------------------------------------------------------------------


def validate_pod_group(errors: FieldErrors, obj: scheduling_v1alpha2.PodGroup) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_template_reference(errors, "spec.podGroupTemplateRef", obj.spec.podGroupTemplateRef)
    _validate_policy(errors, "spec.schedulingPolicy", obj.spec.schedulingPolicy)
    if len(obj.spec.resourceClaims) > MAX_CLAIMS:
        errors.too_many("spec.resourceClaims", len(obj.spec.resourceClaims), MAX_CLAIMS)


def _validate_template_reference(
    errors: FieldErrors, path: str, reference: scheduling_v1alpha2.PodGroupTemplateReference | None
) -> None:
    if reference is None:
        return
    workload = reference.workload
    if workload is None:
        errors.invalid(path, "", "must specify one of: `workload`")
        return
    at = f"{path}.workload"
    if not workload.workloadName:
        errors.required(f"{at}.workloadName")
    else:
        errors.invalid_each(
            f"{at}.workloadName", workload.workloadName, subdomain_errors(workload.workloadName)
        )
    if not workload.podGroupTemplateName:
        errors.required(f"{at}.podGroupTemplateName")
    else:
        label = names.dns1123_label(workload.podGroupTemplateName)
        errors.invalid_each(f"{at}.podGroupTemplateName", workload.podGroupTemplateName, label)


def _validate_policy(
    errors: FieldErrors, path: str, policy: scheduling_v1alpha2.PodGroupSchedulingPolicy
) -> None:
    if policy.basic is None and policy.gang is None:
        errors.invalid(path, "", "must specify one of: `basic`, `gang`")
    if policy.basic is not None and policy.gang is not None:
        errors.invalid(path, "{basic, gang}", "must specify exactly one of: `basic`, `gang`")
    if policy.gang is not None:
        if not policy.gang.minCount:
            errors.required(f"{path}.gang.minCount")
        _at_least(errors, f"{path}.gang.minCount", policy.gang.minCount or None, 1)


_IMMUTABLE = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "priorityClassName",
    "priority",
)


def validate_pod_group_update(
    errors: FieldErrors, new: scheduling_v1alpha2.PodGroup, old: scheduling_v1alpha2.PodGroup
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    for name in _IMMUTABLE:
        if getattr(new.spec, name) != getattr(old.spec, name):
            errors.invalid(f"spec.{name}", NULL, IMMUTABLE)
    if new.spec.disruptionMode != old.spec.disruptionMode:
        # differs: with the gate WorkloadAwarePreemption, upstream calls it immutable, like the others.
        errors.forbidden("spec.disruptionMode")


def validate_pod_group_status(
    errors: FieldErrors, new: scheduling_v1alpha2.PodGroup, old: scheduling_v1alpha2.PodGroup
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    meta.validate_conditions(errors, "status.conditions", new.status.conditions)
    claims = {claim.name for claim in new.spec.resourceClaims}
    for i, status in enumerate(new.status.resourceClaimStatuses):
        if status.name not in claims:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.invalid(f"status.resourceClaimStatuses[{i}].name", status.name, detail)


# -- ResourcePoolStatusRequests ---------------------------------------------------------------


def validate_request(errors: FieldErrors, obj: resource_v1alpha3.ResourcePoolStatusRequest) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    spec = obj.spec
    _validate_driver(errors, "spec.driver", spec.driver)
    if spec.poolName is not None:
        validate_pool_name(errors, "spec.poolName", spec.poolName)
    _at_least(errors, "spec.limit", spec.limit, 1)
    if spec.limit is not None and spec.limit > MAX_POOLS:
        errors.invalid("spec.limit", spec.limit, f"must be less than or equal to {MAX_POOLS}")


def validate_request_update(
    errors: FieldErrors,
    new: resource_v1alpha3.ResourcePoolStatusRequest,
    old: resource_v1alpha3.ResourcePoolStatusRequest,
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec != old.spec:
        errors.invalid("spec", NULL, IMMUTABLE)


def validate_request_status(
    errors: FieldErrors,
    new: resource_v1alpha3.ResourcePoolStatusRequest,
    old: resource_v1alpha3.ResourcePoolStatusRequest,
) -> None:
    """A status is set once: then the request is complete."""
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    status = new.status
    if old.status is not None:
        if status != old.status:
            errors.invalid("status", _internal_status(status), IMMUTABLE)
        return
    if status is None:
        return
    meta.validate_conditions(errors, "status.conditions", status.conditions)
    if status.poolCount is None:
        errors.required("status.poolCount")
    _at_least(errors, "status.poolCount", status.poolCount, 0)
    if len(status.pools) > MAX_POOLS:
        errors.too_many("status.pools", len(status.pools), MAX_POOLS)
    else:
        for i, pool in enumerate(status.pools):
            _validate_pool(errors, f"status.pools[{i}]", pool)
    if len(status.conditions) > MAX_CONDITIONS:
        errors.too_many("status.conditions", len(status.conditions), MAX_CONDITIONS)
    else:
        # The list is a map by type as well: upstream finds each duplicate twice.
        seen: set[str] = set()
        for i, condition in enumerate(status.conditions):
            if condition.type in seen:
                errors.duplicate(f"status.conditions[{i}]", meta.format_condition(condition))
            seen.add(condition.type)


def _internal_status(status: resource_v1alpha3.ResourcePoolStatusRequestStatus | None) -> object:
    """A status as upstream's messages show it: with the fields of its internal type."""
    if status is None:
        return NULL
    conditions = go_slice(map(meta.format_condition, status.conditions))
    return go_struct(PoolCount=status.poolCount, Pools=status.pools or NULL, Conditions=conditions)


def _validate_pool(errors: FieldErrors, path: str, pool: resource_v1alpha3.PoolStatus) -> None:
    _validate_driver(errors, f"{path}.driver", pool.driver)
    if not pool.poolName:
        errors.required(f"{path}.poolName")
    else:
        validate_pool_name(errors, f"{path}.poolName", pool.poolName)
    if not pool.generation:
        errors.required(f"{path}.generation")
    _at_least(errors, f"{path}.generation", pool.generation, 0)
    _at_least(errors, f"{path}.resourceSliceCount", pool.resourceSliceCount, 1)
    for name in ("totalDevices", "allocatedDevices", "availableDevices", "unavailableDevices"):
        _at_least(errors, f"{path}.{name}", getattr(pool, name), 0)
    if pool.nodeName is not None:
        errors.invalid_each(f"{path}.nodeName", pool.nodeName, subdomain_errors(pool.nodeName))
    if pool.validationError is not None and len(pool.validationError.encode()) > MAX_VALIDATION_ERROR:
        errors.too_long(f"{path}.validationError", MAX_VALIDATION_ERROR)


def _validate_driver(errors: FieldErrors, path: str, driver: str) -> None:
    """A DNS subdomain, in any case."""
    if not driver:
        errors.required(path)
    else:
        errors.invalid_each(path, driver, map(_any_case, subdomain_errors(driver.lower())))


def _any_case(message: str) -> str:
    shown = message.replace("a lowercase RFC", "an RFC").replace("lower case alphanumeric", "alphanumeric")
    return shown.replace("'example.com'", "'Example.com'")


def validate_pool_name(errors: FieldErrors, path: str, name: str) -> None:
    """DNS subdomains separated by slashes."""
    if len(name.encode()) > MAX_SUBDOMAIN:
        errors.too_long(path, MAX_SUBDOMAIN)
    for i, segment in enumerate(name.split("/")):
        if not segment:
            errors.invalid(path, name, f"segment {i}: must not be empty")
        else:
            errors.invalid_each(
                path, segment, (f"segment {i}: {error}" for error in subdomain_errors(segment))
            )


# -- DeviceTaintRules -------------------------------------------------------------------------


def validate_taint_rule(errors: FieldErrors, obj: resource_v1beta2.DeviceTaintRule) -> None:
    meta.validate_object_meta(errors, obj.metadata, namespaced=False)
    _validate_taint_rule_spec(errors, obj.spec)


def validate_taint_rule_update(
    errors: FieldErrors, new: resource_v1beta2.DeviceTaintRule, old: resource_v1beta2.DeviceTaintRule
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_taint_rule_spec(errors, new.spec, old.spec.taint.effect)


def _validate_taint_rule_spec(
    errors: FieldErrors, spec: resource_v1beta2.DeviceTaintRuleSpec, old_effect: str = ""
) -> None:
    selector, at = spec.deviceSelector, "spec.deviceSelector"
    if selector is not None and selector.driver is not None:
        validate_csi_driver_name(errors, f"{at}.driver", selector.driver)
    if selector is not None and selector.pool is not None:
        validate_pool(errors, f"{at}.pool", selector.pool)
    if selector is not None and selector.device is not None:
        errors.invalid_each(f"{at}.device", selector.device, names.dns1123_label(selector.device))
    validate_taint(errors, "spec.taint", spec.taint, old_effect)


def validate_taint_rule_status(
    errors: FieldErrors, new: resource_v1beta2.DeviceTaintRule, old: resource_v1beta2.DeviceTaintRule
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    conditions = new.status.conditions
    meta.validate_conditions(errors, "status.conditions", conditions)
    if len(conditions) > MAX_DEVICE_CONDITIONS:
        errors.too_many("status.conditions", len(conditions), MAX_DEVICE_CONDITIONS)


RULES: Mapping[GroupKind, AnyRules] = {
    ("resource.k8s.io", "DeviceTaintRule"): Rules(
        validate_taint_rule, validate_taint_rule_update, status=validate_taint_rule_status
    ),
    ("resource.k8s.io", "ResourcePoolStatusRequest"): Rules(
        validate_request, validate_request_update, status=validate_request_status
    ),
    ("scheduling.k8s.io", "PodGroup"): Rules(
        validate_pod_group, validate_pod_group_update, status=validate_pod_group_status
    ),
}
