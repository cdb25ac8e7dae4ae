"""Validation of Deployments, ReplicaSets, ReplicationControllers and DaemonSets, and what workloads share."""

from __future__ import annotations

from collections.abc import Mapping

from steersman.api.generated import apps_v1
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.base import IntOrString
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.status_errors import IMMUTABLE
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import (
    FieldErrors,
    Verbatim,
    format_labels,
    format_selector,
    go_struct,
)
from steersman.server.validation.pods.spec import validate_pod_template_spec
from steersman.server.validation.rules import AnyRules, GroupKind, Rules
from steersman.server.validation.selectors import compile_or_none, validate_label_selector

SELECTOR_MISMATCH = "`selector` does not match template `labels`"


def validate_workload_selector(errors: FieldErrors, selector: LabelSelector | None, kind: str) -> None:
    if selector is None:
        errors.required("spec.selector")
        return
    validate_label_selector(errors, "spec.selector", selector)
    if not selector.matchLabels and not selector.matchExpressions:
        errors.invalid("spec.selector", format_selector(selector), f"empty selector is invalid for {kind}")


def validate_selector_matches(
    errors: FieldErrors, selector: LabelSelector | Mapping[str, str] | None, template: v1.PodTemplateSpec
) -> bool:
    """Validates that the selector matches the template's labels; returns whether the selector is valid."""
    compiled = compile_or_none(selector)
    if compiled is None:
        return False
    if not compiled.empty and not compiled.matches(template.metadata.labels):
        errors.invalid(
            "spec.template.metadata.labels", format_labels(template.metadata.labels), SELECTOR_MISMATCH
        )
    return True


def validate_restarting_template(errors: FieldErrors, template: v1.PodTemplateSpec, kind: str) -> None:
    """Validates that the pods of a template restart always and have no deadline."""
    if template.spec.restartPolicy != "Always":
        at = "spec.template.spec.restartPolicy"
        errors.not_supported(at, template.spec.restartPolicy, ("Always",))
    if template.spec.activeDeadlineSeconds is not None:
        message = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.forbidden("spec.template.spec.activeDeadlineSeconds", message)


def validate_workload_template(
    errors: FieldErrors, template: v1.PodTemplateSpec, old: v1.PodTemplateSpec | None, kind: str
) -> None:
    """Validates a workload's template, unless it is unchanged."""
    if template is old or template == old:
        return
    validate_pod_template_spec(errors, "spec.template", template)
    validate_restarting_template(errors, template, kind)


def validate_int_or_percent(errors: FieldErrors, path: str, value: IntOrString) -> None:
    """Validates a count or a percentage: not negative."""
    if isinstance(value, int):
        errors.nonnegative(path, value)
    else:
        errors.invalid_each(path, value, names.percent(value))


def int_or_percent_value(value: IntOrString) -> int:
    if isinstance(value, int):
        return value
    if names.percent(value):
        return 0
    digits = value[:-1].lstrip("0")
    # As Go's Atoi, which returns the largest integer for more digits than fit.
    return int(digits or "0") if len(digits) <= 18 else 2**63 - 1


def validate_at_most_100_percent(errors: FieldErrors, path: str, value: IntOrString) -> None:
    if isinstance(value, str) and int_or_percent_value(value) > 100:
        errors.invalid(path, value, "must not be greater than 100%")


def validate_selector_immutable(
    errors: FieldErrors, new: LabelSelector | None, old: LabelSelector | None
) -> None:
    if new != old:
        errors.invalid("spec.selector", format_selector(new), IMMUTABLE)


# -- Deployments ------------------------------------------------------------------------------


def validate_deployment(errors: FieldErrors, obj: apps_v1.Deployment) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_deployment_spec(errors, obj.spec, None)


def validate_deployment_update(errors: FieldErrors, new: apps_v1.Deployment, old: apps_v1.Deployment) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _validate_deployment_spec(errors, new.spec, old.spec)
    validate_selector_immutable(errors, new.spec.selector, old.spec.selector)


def _validate_deployment_spec(
    errors: FieldErrors, spec: apps_v1.DeploymentSpec, old: apps_v1.DeploymentSpec | None
) -> None:
    errors.nonnegative("spec.replicas", spec.replicas)
    validate_workload_selector(errors, spec.selector, "deployment")
    if validate_selector_matches(errors, spec.selector, spec.template):
        validate_workload_template(errors, spec.template, None if old is None else old.template, "ReplicaSet")
    else:
        errors.invalid("spec.selector", format_selector(spec.selector), "invalid label selector")
    _validate_deployment_strategy(errors, "spec.strategy", spec.strategy)
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    errors.nonnegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
    deadline = spec.progressDeadlineSeconds
    errors.nonnegative("spec.progressDeadlineSeconds", deadline)
    if deadline is not None and deadline <= spec.minReadySeconds:
        errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _validate_deployment_strategy(
    errors: FieldErrors, path: str, strategy: apps_v1.DeploymentStrategy
) -> None:
    rolling = strategy.rollingUpdate
    if strategy.type == "Recreate":
        if rolling is not None:
            alone = "may not be specified when strategy `type` is 'Recreate'"
            errors.forbidden(f"{path}.rollingUpdate", alone)
    elif strategy.type == "RollingUpdate":
        if rolling is None:
            errors.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
        else:
            _validate_rolling_update(errors, f"{path}.rollingUpdate", rolling)
    else:
        shown = go_struct(Type=strategy.type, RollingUpdate=_format_rolling_update(rolling))
        errors.not_supported(path, shown, ("Recreate", "RollingUpdate"))


def _unavailable_and_surge(
    rolling: apps_v1.RollingUpdateDeployment | apps_v1.RollingUpdateDaemonSet,
) -> tuple[IntOrString, IntOrString]:
    """The two bounds of a rolling update; one that is not set is 0, and an empty text is none."""
    unavailable, surge = rolling.maxUnavailable, rolling.maxSurge
    return 0 if unavailable is None else unavailable, 0 if surge is None else surge


def _format_rolling_update(
    rolling: apps_v1.RollingUpdateDeployment | apps_v1.RollingUpdateDaemonSet | None,
) -> Verbatim | None:
    if rolling is None:
        return None
    unavailable, surge = _unavailable_and_surge(rolling)
    return go_struct(MaxUnavailable=unavailable, MaxSurge=surge)


def _validate_rolling_update(
    errors: FieldErrors, path: str, rolling: apps_v1.RollingUpdateDeployment
) -> None:
    unavailable, surge = _unavailable_and_surge(rolling)
    validate_int_or_percent(errors, f"{path}.maxUnavailable", unavailable)
    validate_int_or_percent(errors, f"{path}.maxSurge", surge)
    if int_or_percent_value(unavailable) == 0 and int_or_percent_value(surge) == 0:
        errors.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    validate_at_most_100_percent(errors, f"{path}.maxUnavailable", unavailable)


# -- ReplicaSets and ReplicationControllers ---------------------------------------------------


def validate_replica_set(errors: FieldErrors, obj: apps_v1.ReplicaSet) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_replica_set_spec(errors, obj.spec, None)


def validate_replica_set_update(
    errors: FieldErrors, new: apps_v1.ReplicaSet, old: apps_v1.ReplicaSet
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _validate_replica_set_spec(errors, new.spec, old.spec)
    validate_selector_immutable(errors, new.spec.selector, old.spec.selector)


def _validate_replica_set_spec(
    errors: FieldErrors, spec: apps_v1.ReplicaSetSpec, old: apps_v1.ReplicaSetSpec | None
) -> None:
    errors.nonnegative("spec.replicas", spec.replicas)
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    validate_workload_selector(errors, spec.selector, "deployment")
    if validate_selector_matches(errors, spec.selector, spec.template):
        validate_workload_template(errors, spec.template, None if old is None else old.template, "ReplicaSet")
    else:
        errors.invalid("spec.selector", format_selector(spec.selector), "invalid label selector")


def validate_replication_controller(errors: FieldErrors, obj: v1.ReplicationController) -> None:
    meta.validate_object_meta(errors, obj.metadata, names.subdomain_in_bytes)
    _validate_replication_controller_spec(errors, obj.spec, None)


def validate_replication_controller_update(
    errors: FieldErrors, new: v1.ReplicationController, old: v1.ReplicationController
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _validate_replication_controller_spec(errors, new.spec, old.spec)


def _validate_replication_controller_spec(
    errors: FieldErrors, spec: v1.ReplicationControllerSpec, old: v1.ReplicationControllerSpec | None
) -> None:
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    if not spec.selector:
        errors.required("spec.selector")
    if spec.replicas is None:
        errors.required("spec.replicas")
    errors.nonnegative("spec.replicas", spec.replicas)
    template = spec.template
    if template is None:
        errors.required("spec.template")
        return
    if any(template.metadata.labels.get(key) != value for key, value in spec.selector.items()):
        errors.invalid(
            "spec.template.metadata.labels", format_labels(template.metadata.labels), SELECTOR_MISMATCH
        )
    validate_workload_template(
        errors, template, None if old is None else old.template, "ReplicationController"
    )


# -- DaemonSets -------------------------------------------------------------------------------


def validate_daemon_set(errors: FieldErrors, obj: apps_v1.DaemonSet) -> None:
    meta.validate_object_meta(errors, obj.metadata)
    _validate_daemon_set_spec(errors, obj.spec, None)


def validate_daemon_set_update(errors: FieldErrors, new: apps_v1.DaemonSet, old: apps_v1.DaemonSet) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    validate_selector_immutable(errors, new.spec.selector, old.spec.selector)
    _validate_daemon_set_spec(errors, new.spec, old.spec)


def _validate_daemon_set_spec(
    errors: FieldErrors, spec: apps_v1.DaemonSetSpec, old: apps_v1.DaemonSetSpec | None
) -> None:
    validate_label_selector(errors, "spec.selector", spec.selector)
    template = spec.template
    compiled = compile_or_none(spec.selector)
    if compiled is not None and not compiled.matches(template.metadata.labels):
        errors.invalid(
            "spec.template.metadata.labels", format_labels(template.metadata.labels), SELECTOR_MISMATCH
        )
    if spec.selector is not None and spec.selector == LabelSelector():
        errors.invalid(
            "spec.selector", format_selector(spec.selector), "empty selector is invalid for daemonset"
        )
    validate_workload_template(errors, template, None if old is None else old.template, "DaemonSet")
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    _validate_daemon_set_strategy(errors, "spec.updateStrategy", spec.updateStrategy)
    errors.nonnegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)


def _validate_daemon_set_strategy(
    errors: FieldErrors, path: str, strategy: apps_v1.DaemonSetUpdateStrategy
) -> None:
    rolling = strategy.rollingUpdate
    if strategy.type == "OnDelete":
        return
    if strategy.type != "RollingUpdate":
        shown = go_struct(Type=strategy.type, RollingUpdate=_format_rolling_update(rolling))
        errors.not_supported(path, shown, ("RollingUpdate", "OnDelete"))
        return
    path = f"{path}.rollingUpdate"
    if rolling is None:
        errors.required(path)
        return
    unavailable, surge = _unavailable_and_surge(rolling)
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        validate_int_or_percent(errors, f"{path}.{name}", value)
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        validate_at_most_100_percent(errors, f"{path}.{name}", value)
    if int_or_percent_value(unavailable) and int_or_percent_value(surge):
        errors.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not int_or_percent_value(unavailable) and not int_or_percent_value(surge):
        errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


# -- status -----------------------------------------------------------------------------------

_MORE_THAN_REPLICAS = "cannot be greater than status.replicas"


def validate_deployment_status(errors: FieldErrors, new: apps_v1.Deployment, old: apps_v1.Deployment) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    status = new.status
    errors.nonnegative("status.observedGeneration", status.observedGeneration)
    errors.nonnegative("status.replicas", status.replicas)
    errors.nonnegative("status.updatedReplicas", status.updatedReplicas)
    errors.nonnegative("status.readyReplicas", status.readyReplicas)
    errors.nonnegative("status.availableReplicas", status.availableReplicas)
    errors.nonnegative("status.unavailableReplicas", status.unavailableReplicas)
    errors.nonnegative("status.terminatingReplicas", status.terminatingReplicas)
    errors.nonnegative("status.collisionCount", status.collisionCount)
    _validate_within_replicas(errors, "updatedReplicas", status.updatedReplicas, status.replicas)
    _validate_ready_replicas(errors, status)
    validate_collision_count(errors, status.collisionCount, old.status.collisionCount)


def validate_replica_set_status(
    errors: FieldErrors, new: apps_v1.ReplicaSet, old: apps_v1.ReplicaSet
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_replicas_status(errors, new.status)
    errors.nonnegative("status.terminatingReplicas", new.status.terminatingReplicas)
    _validate_within_replicas(
        errors, "fullyLabeledReplicas", new.status.fullyLabeledReplicas, new.status.replicas
    )
    _validate_ready_replicas(errors, new.status)


def validate_replication_controller_status(
    errors: FieldErrors, new: v1.ReplicationController, old: v1.ReplicationController
) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    _validate_replicas_status(errors, new.status)
    _validate_within_replicas(
        errors, "fullyLabeledReplicas", new.status.fullyLabeledReplicas, new.status.replicas
    )
    _validate_ready_replicas(errors, new.status)


def _validate_replicas_status(
    errors: FieldErrors, status: apps_v1.ReplicaSetStatus | v1.ReplicationControllerStatus
) -> None:
    errors.nonnegative("status.replicas", status.replicas)
    errors.nonnegative("status.fullyLabeledReplicas", status.fullyLabeledReplicas)
    errors.nonnegative("status.readyReplicas", status.readyReplicas)
    errors.nonnegative("status.availableReplicas", status.availableReplicas)
    errors.nonnegative("status.observedGeneration", status.observedGeneration)


def _validate_ready_replicas(
    errors: FieldErrors,
    status: apps_v1.DeploymentStatus | apps_v1.ReplicaSetStatus | v1.ReplicationControllerStatus,
) -> None:
    """Ready replicas are among all replicas, and available ones among the ready."""
    _validate_within_replicas(errors, "readyReplicas", status.readyReplicas, status.replicas)
    _validate_within_replicas(errors, "availableReplicas", status.availableReplicas, status.replicas)
    if status.availableReplicas > status.readyReplicas:
        errors.invalid(
            "status.availableReplicas", status.availableReplicas, "cannot be greater than readyReplicas"
        )


def _validate_within_replicas(errors: FieldErrors, field: str, count: int, replicas: int) -> None:
    if count > replicas:
        errors.invalid(f"status.{field}", count, _MORE_THAN_REPLICAS)


def validate_collision_count(errors: FieldErrors, new: int | None, old: int | None) -> None:
    """The collision count of a status never falls."""
    if old is not None and (new is None or new < old):
        errors.invalid("status.collisionCount", new or 0, "cannot be decremented")


def validate_daemon_set_status(errors: FieldErrors, new: apps_v1.DaemonSet, old: apps_v1.DaemonSet) -> None:
    meta.validate_object_meta_update(errors, new.metadata, old.metadata)
    status = new.status
    errors.nonnegative("status.currentNumberScheduled", status.currentNumberScheduled)
    errors.nonnegative("status.numberMisscheduled", status.numberMisscheduled)
    errors.nonnegative("status.desiredNumberScheduled", status.desiredNumberScheduled)
    errors.nonnegative("status.numberReady", status.numberReady)
    errors.nonnegative("status.observedGeneration", status.observedGeneration)
    errors.nonnegative("status.updatedNumberScheduled", status.updatedNumberScheduled)
    errors.nonnegative("status.numberAvailable", status.numberAvailable)
    errors.nonnegative("status.numberUnavailable", status.numberUnavailable)
    errors.nonnegative("status.collisionCount", status.collisionCount)
    validate_collision_count(errors, status.collisionCount, old.status.collisionCount)


RULES: Mapping[GroupKind, AnyRules] = {
    ("", "ReplicationController"): Rules[v1.ReplicationController](
        validate_replication_controller,
        validate_replication_controller_update,
        status=validate_replication_controller_status,
    ),
    ("apps", "DaemonSet"): Rules[apps_v1.DaemonSet](
        validate_daemon_set, validate_daemon_set_update, status=validate_daemon_set_status
    ),
    ("apps", "Deployment"): Rules[apps_v1.Deployment](
        validate_deployment, validate_deployment_update, status=validate_deployment_status
    ),
    ("apps", "ReplicaSet"): Rules[apps_v1.ReplicaSet](
        validate_replica_set, validate_replica_set_update, status=validate_replica_set_status
    ),
}
