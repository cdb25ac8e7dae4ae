"""Validation of HorizontalPodAutoscalers and PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from steersman.api.generated import autoscaling_v1, autoscaling_v2, policy_v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, resources
from steersman.server.validation.apps import validate_at_most_100_percent, validate_int_or_percent
from steersman.server.validation.field_errors import FieldErrors, format_selector, go_struct
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import validate_label_selector

_METRIC_TYPES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_METRIC_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TARGET_TYPES = ("Utilization", "Value", "AverageValue")
_SELECT_POLICIES = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_AnySpec: TypeAlias = autoscaling_v1.HorizontalPodAutoscalerSpec | autoscaling_v2.HorizontalPodAutoscalerSpec
_SpecV1: TypeAlias = autoscaling_v1.HorizontalPodAutoscalerSpec
_NO_SCALE_TO_ZERO = "must specify at least one Object or External metric to support scaling to zero replicas"
_POPULATE = "must populate information for the given metric source"


def validate_autoscaler(errors: FieldErrors, obj: autoscaling_v2.HorizontalPodAutoscaler) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_autoscaler_spec(errors, obj.spec, None)


def validate_autoscaler_update(
    errors: FieldErrors,
    new: autoscaling_v2.HorizontalPodAutoscaler,
    old: autoscaling_v2.HorizontalPodAutoscaler,
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _validate_autoscaler_spec(errors, new.spec, old.spec)


def validate_autoscaler_v1(errors: FieldErrors, obj: autoscaling_v1.HorizontalPodAutoscaler) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_autoscaler_v1_spec(errors, obj.spec, None)


def validate_autoscaler_v1_update(
    errors: FieldErrors,
    new: autoscaling_v1.HorizontalPodAutoscaler,
    old: autoscaling_v1.HorizontalPodAutoscaler,
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_autoscaler_v1_spec(errors, new.spec, old.spec)


def _validate_autoscaler_v1_spec(errors: FieldErrors, spec: _SpecV1, old: _SpecV1 | None) -> None:
    """Validates the spec of autoscaling/v1, whose only metric is CPU utilization."""
    _validate_scale_target(errors, spec, old)
    if spec.minReplicas == 0:
        errors.forbidden("spec.metrics", _NO_SCALE_TO_ZERO)


def _validate_autoscaler_spec(
    errors: FieldErrors,
    spec: autoscaling_v2.HorizontalPodAutoscalerSpec,
    old: autoscaling_v2.HorizontalPodAutoscalerSpec | None,
) -> None:
    _validate_scale_target(errors, spec, old)
    for i, metric in enumerate(spec.metrics):
        _validate_metric(errors, f"spec.metrics[{i}]", metric)
    if spec.minReplicas == 0 and not any(metric.type in ("Object", "External") for metric in spec.metrics):
        errors.forbidden("spec.metrics", _NO_SCALE_TO_ZERO)
    behavior = spec.behavior
    if behavior is not None:
        for name, rules in (("scaleUp", behavior.scaleUp), ("scaleDown", behavior.scaleDown)):
            if rules is not None:
                _validate_scaling_rules(errors, f"spec.behavior.{name}", rules)


def _validate_scale_target(errors: FieldErrors, spec: _AnySpec, old: _AnySpec | None) -> None:
    """Validates the replica bounds and the scale target."""
    minimum, maximum = spec.minReplicas, spec.maxReplicas
    if minimum is not None and minimum < 1:
        errors.invalid("spec.minReplicas", minimum, "must be greater than or equal to 1")
    if maximum == 0:
        errors.required("spec.maxReplicas", "must be set and greater than 0")
    elif maximum < 0:
        errors.invalid("spec.maxReplicas", maximum, "must be greater than or equal to 1")
    if minimum is not None and maximum < minimum:
        errors.invalid("spec.maxReplicas", maximum, "must be greater than or equal to `minReplicas`")
    target, path = spec.scaleTargetRef, "spec.scaleTargetRef"
    _validate_object_reference(errors, path, target)
    old_target = None if old is None else old.scaleTargetRef
    if old_target is not None and (old_target.apiVersion, old_target.kind) == (
        target.apiVersion,
        target.kind,
    ):
        return
    version = target.apiVersion or ""
    if version.count("/") > 1:
        _invalid_api_version(errors, path, version)
    elif "/" not in version and target.kind != "ReplicationController":
        errors.invalid(f"{path}.apiVersion", version, "apiVersion must specify API group")


def _validate_object_reference(
    errors: FieldErrors,
    path: str,
    ref: autoscaling_v1.CrossVersionObjectReference | autoscaling_v2.CrossVersionObjectReference,
) -> None:
    for name, value in (("kind", ref.kind), ("name", ref.name)):
        if not value:
            errors.required(f"{path}.{name}")
        else:
            errors.invalid_each(f"{path}.{name}", value, names.path_segment(value))


def _invalid_api_version(errors: FieldErrors, path: str, version: str) -> None:
    errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")


def _validate_metric(errors: FieldErrors, path: str, metric: autoscaling_v2.MetricSpec) -> None:
    if not metric.type:
        errors.required(f"{path}.type", "must specify a metric source type")
    if metric.type not in _METRIC_TYPES:
        errors.not_supported(f"{path}.type", metric.type, _METRIC_TYPES)
    sources = [name for name in _METRIC_SOURCES.values() if getattr(metric, name) is not None]
    if sources:
        _validate_metric_source(errors, f"{path}.{sources[0]}", metric, sources[0])
    wanted = _METRIC_SOURCES.get(metric.type, "")
    if not wanted:
        errors.not_supported(f"{path}.type", metric.type, _METRIC_TYPES)
    elif wanted not in sources:
        errors.required(f"{path}.{wanted}", _POPULATE)
    if len(sources) != 1:
        for name in sources:
            if name != wanted:
                errors.forbidden(f"{path}.{name}", "must populate the given metric source only")


def _validate_metric_source(
    errors: FieldErrors, path: str, metric: autoscaling_v2.MetricSpec, name: str
) -> None:
    if name == "object" and metric.object is not None:
        source = metric.object
        described = source.describedObject
        _validate_object_reference(errors, f"{path}.describedObject", described)
        if (described.apiVersion or "").count("/") > 1:
            _invalid_api_version(errors, f"{path}.describedObject", described.apiVersion)
        _validate_metric_identifier(errors, f"{path}.metric", source.metric)
        _validate_metric_target(errors, f"{path}.target", source.target)
        if source.target.value is None and source.target.averageValue is None:
            either = "must set either a target value or averageValue"
            errors.required(f"{path}.target.averageValue", either)
    elif name == "external" and metric.external is not None:
        _validate_external_metric(errors, path, metric.external)
    elif name == "pods" and metric.pods is not None:
        _validate_metric_identifier(errors, f"{path}.metric", metric.pods.metric)
        _validate_metric_target(errors, f"{path}.target", metric.pods.target)
        if metric.pods.target.averageValue is None:
            errors.required(f"{path}.target.averageValue", "must specify a positive target averageValue")
    elif name == "resource" and metric.resource is not None:
        if not metric.resource.name:
            errors.required(f"{path}.name", "must specify a resource name")
        _validate_resource_target(errors, path, metric.resource.target)
    elif metric.containerResource is not None:
        container = metric.containerResource
        if not container.name:
            errors.required(f"{path}.name", "must specify a resource name")
        else:
            resources.validate_container_resource_name(errors, f"{path}.name", container.name)
        if not container.container:
            errors.required(f"{path}.container", "must specify a container")
        else:
            errors.invalid_each(
                f"{path}.container", container.container, names.dns1123_label(container.container)
            )
        _validate_resource_target(errors, path, container.target)


def _validate_external_metric(
    errors: FieldErrors, path: str, source: autoscaling_v2.ExternalMetricSource
) -> None:
    _validate_metric_identifier(errors, f"{path}.metric", source.metric)
    _validate_metric_target(errors, f"{path}.target", source.target)
    value, average = source.target.value, source.target.averageValue
    if value is None and average is None:
        either = "must set either a target value for metric or a per-pod target"
        errors.required(f"{path}.target.averageValue", either)
    if value is not None and average is not None:
        both = "may not set both a target value for metric and a per-pod target"
        errors.forbidden(f"{path}.target.value", both)


def _validate_resource_target(errors: FieldErrors, path: str, target: autoscaling_v2.MetricTarget) -> None:
    """Validates the target of a resource metric: a utilization or an average value, not both."""
    _validate_metric_target(errors, f"{path}.target", target)
    if target.averageUtilization is None and target.averageValue is None:
        either = "must set either a target raw value or a target utilization"
        errors.required(f"{path}.target.averageUtilization", either)
    if target.averageUtilization is not None and target.averageValue is not None:
        both = "may not set both a target raw value and a target utilization"
        errors.forbidden(f"{path}.target.averageValue", both)


def _validate_metric_identifier(
    errors: FieldErrors, path: str, metric: autoscaling_v2.MetricIdentifier
) -> None:
    if not metric.name:
        errors.required(f"{path}.name", "must specify a metric name")
    else:
        errors.invalid_each(f"{path}.name", metric.name, names.path_segment(metric.name))


def _validate_metric_target(errors: FieldErrors, path: str, target: autoscaling_v2.MetricTarget) -> None:
    if not target.type:
        errors.required(f"{path}.type", "must specify a metric target type")
    if target.type not in _TARGET_TYPES:
        either = "must be either Utilization, Value, or AverageValue"
        errors.invalid(f"{path}.type", target.type, either)
    for name, amount in (("value", target.value), ("averageValue", target.averageValue)):
        if amount is not None and resources.parse_quantity(amount).sign != 1:
            errors.invalid(f"{path}.{name}", str(resources.parse_quantity(amount)), "must be positive")
    if target.averageUtilization is not None and target.averageUtilization < 1:
        errors.invalid(f"{path}.averageUtilization", target.averageUtilization, "must be greater than 0")


def _validate_scaling_rules(errors: FieldErrors, path: str, rules: autoscaling_v2.HPAScalingRules) -> None:
    window = rules.stabilizationWindowSeconds
    at = f"{path}.stabilizationWindowSeconds"
    if window is not None and window < 0:
        errors.invalid(at, window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        errors.invalid(at, window, "must be less than or equal to 3600")
    if rules.selectPolicy is not None and rules.selectPolicy not in _SELECT_POLICIES:
        errors.not_supported(f"{path}.selectPolicy", rules.selectPolicy, _SELECT_POLICIES)
    if not rules.policies:
        errors.required(f"{path}.policies", "must specify at least one Policy")
    for i, policy in enumerate(rules.policies or ()):
        at = f"{path}.policies[{i}]"
        if policy.type not in _POLICY_TYPES:
            errors.not_supported(f"{at}.type", policy.type, _POLICY_TYPES)
        errors.positive(f"{at}.value", policy.value)
        errors.positive(f"{at}.periodSeconds", policy.periodSeconds)
        if policy.periodSeconds > 1800:
            errors.invalid(f"{at}.periodSeconds", policy.periodSeconds, "must be less than or equal to 1800")
    if rules.tolerance is not None:
        resources.validate_nonnegative_quantity(errors, f"{path}.tolerance", rules.tolerance)


def validate_autoscaler_status(
    errors: FieldErrors,
    new: autoscaling_v1.HorizontalPodAutoscaler | autoscaling_v2.HorizontalPodAutoscaler,
    old: autoscaling_v1.HorizontalPodAutoscaler | autoscaling_v2.HorizontalPodAutoscaler,
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    errors.nonnegative("status.currentReplicas", new.status.currentReplicas)
    errors.nonnegative("status.desiredReplicas", new.status.desiredReplicas)


# -- PodDisruptionBudgets ---------------------------------------------------------------------

_EVICTION_POLICIES = ("AlwaysAllow", "IfHealthyBudget")


def validate_disruption_budget(errors: FieldErrors, obj: policy_v1.PodDisruptionBudget) -> None:
    """Validates a PodDisruptionBudget; its metadata has only the generic rules."""
    _validate_disruption_budget_spec(errors, obj.spec)


def validate_disruption_budget_update(
    errors: FieldErrors, new: policy_v1.PodDisruptionBudget, old: policy_v1.PodDisruptionBudget
) -> None:
    if new.spec is not old.spec:
        _validate_disruption_budget_spec(errors, new.spec)


def _validate_disruption_budget_spec(errors: FieldErrors, spec: policy_v1.PodDisruptionBudgetSpec) -> None:
    if spec.minAvailable is not None and spec.maxUnavailable is not None:
        shown = go_struct(
            MinAvailable=spec.minAvailable,
            Selector=format_selector(spec.selector),
            MaxUnavailable=spec.maxUnavailable,
            UnhealthyPodEvictionPolicy=spec.unhealthyPodEvictionPolicy,
        )
        errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", spec.minAvailable), ("maxUnavailable", spec.maxUnavailable)):
        if value is not None:
            validate_int_or_percent(errors, f"spec.{name}", value)
            validate_at_most_100_percent(errors, f"spec.{name}", value)
    validate_label_selector(errors, "spec.selector", spec.selector)
    policy = spec.unhealthyPodEvictionPolicy
    if policy is not None and policy not in _EVICTION_POLICIES:
        errors.not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES)


def validate_disruption_budget_status(
    errors: FieldErrors, new: policy_v1.PodDisruptionBudget, old: policy_v1.PodDisruptionBudget
) -> None:
    meta.validate_conditions(errors, "status.conditions", new.status.conditions)
    for name, value in (
        ("disruptionsAllowed", new.status.disruptionsAllowed),
        ("currentHealthy", new.status.currentHealthy),
        ("desiredHealthy", new.status.desiredHealthy),
        ("expectedPods", new.status.expectedPods),
    ):
        errors.nonnegative(f"status.{name}", value)


RULES: Mapping[GroupKind, AnyRules] = {
    ("autoscaling", "HorizontalPodAutoscaler"): Rules[autoscaling_v2.HorizontalPodAutoscaler](
        validate_autoscaler, validate_autoscaler_update, status=validate_autoscaler_status
    ),
    ("policy", "PodDisruptionBudget"): Rules[policy_v1.PodDisruptionBudget](
        validate_disruption_budget,
        validate_disruption_budget_update,
        status=validate_disruption_budget_status,
        generic_metadata=True,
    ),
}


RULES_V1: Mapping[GroupKind, AnyRules] = {
    ("autoscaling", "HorizontalPodAutoscaler"): Rules[autoscaling_v1.HorizontalPodAutoscaler](
        validate_autoscaler_v1, validate_autoscaler_v1_update, status=validate_autoscaler_status
    ),
}
