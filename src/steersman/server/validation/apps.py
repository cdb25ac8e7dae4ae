"""Deployments, ReplicaSets, ReplicationControllers, DaemonSets, StatefulSets and their history."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import apps_v1
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import (
    FieldErrors,
    Verbatim,
    format_labels,
    format_selector,
    go_struct,
)
from steersman.server.validation.selectors import compiled, label_selector
from steersman.server.validation.templates import (
    MISMATCH,
    at_most_all,
    fixed_selector,
    int_or_percent,
    number,
    selected,
    selects,
    template_of,
)

# -- Deployments ------------------------------------------------------------------------------


def deployment(errors: FieldErrors, obj: apps_v1.Deployment) -> None:
    meta.check(errors, obj.metadata)
    _deployment(errors, obj.spec, None)


def deployment_update(errors: FieldErrors, new: apps_v1.Deployment, old: apps_v1.Deployment) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _deployment(errors, new.spec, old.spec)
    fixed_selector(errors, new.spec.selector, old.spec.selector)


def _deployment(
    errors: FieldErrors, spec: apps_v1.DeploymentSpec, old: apps_v1.DeploymentSpec | None
) -> None:
    errors.nonnegative("spec.replicas", spec.replicas)
    selects(errors, spec.selector, "deployment")
    if selected(errors, spec.selector, spec.template):
        template_of(errors, spec.template, None if old is None else old.template, "ReplicaSet")
    else:
        errors.invalid("spec.selector", format_selector(spec.selector), "invalid label selector")
    _strategy(errors, "spec.strategy", spec.strategy)
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    errors.nonnegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
    deadline = spec.progressDeadlineSeconds
    errors.nonnegative("spec.progressDeadlineSeconds", deadline)
    if deadline is not None and deadline <= spec.minReadySeconds:
        errors.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _strategy(errors: FieldErrors, path: str, strategy: apps_v1.DeploymentStrategy) -> None:
    rolling = strategy.rollingUpdate
    if strategy.type == "Recreate":
        if rolling is not None:
            alone = "may not be specified when strategy `type` is 'Recreate'"
            errors.forbidden(f"{path}.rollingUpdate", alone)
    elif strategy.type == "RollingUpdate":
        if rolling is None:
            errors.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
        else:
            _rolling(errors, f"{path}.rollingUpdate", rolling)
    else:
        shown = go_struct(Type=strategy.type, RollingUpdate=_rolling_shown(rolling))
        errors.not_supported(path, shown, ("Recreate", "RollingUpdate"))


def _rolling_shown(rolling: Any) -> Verbatim | None:
    if rolling is None:
        return None
    return go_struct(MaxUnavailable=rolling.maxUnavailable or 0, MaxSurge=rolling.maxSurge or 0)


def _rolling(errors: FieldErrors, path: str, rolling: apps_v1.RollingUpdateDeployment) -> None:
    unavailable, surge = rolling.maxUnavailable or 0, rolling.maxSurge or 0
    int_or_percent(errors, f"{path}.maxUnavailable", unavailable)
    int_or_percent(errors, f"{path}.maxSurge", surge)
    if number(unavailable) == 0 and number(surge) == 0:
        errors.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    at_most_all(errors, f"{path}.maxUnavailable", unavailable)


# -- ReplicaSets and ReplicationControllers ---------------------------------------------------


def replica_set(errors: FieldErrors, obj: apps_v1.ReplicaSet) -> None:
    meta.check(errors, obj.metadata)
    _replica_set(errors, obj.spec, None)


def replica_set_update(errors: FieldErrors, new: apps_v1.ReplicaSet, old: apps_v1.ReplicaSet) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _replica_set(errors, new.spec, old.spec)
    fixed_selector(errors, new.spec.selector, old.spec.selector)


def _replica_set(
    errors: FieldErrors, spec: apps_v1.ReplicaSetSpec, old: apps_v1.ReplicaSetSpec | None
) -> None:
    errors.nonnegative("spec.replicas", spec.replicas)
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    selects(errors, spec.selector, "deployment")
    if selected(errors, spec.selector, spec.template):
        template_of(errors, spec.template, None if old is None else old.template, "ReplicaSet")
    else:
        errors.invalid("spec.selector", format_selector(spec.selector), "invalid label selector")


def replication_controller(errors: FieldErrors, obj: v1.ReplicationController) -> None:
    meta.check(errors, obj.metadata, names.long_name)
    _replication_controller(errors, obj.spec, None)


def replication_controller_update(
    errors: FieldErrors, new: v1.ReplicationController, old: v1.ReplicationController
) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _replication_controller(errors, new.spec, old.spec)


def _replication_controller(
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
        errors.invalid("spec.template.metadata.labels", format_labels(template.metadata.labels), MISMATCH)
    template_of(errors, template, None if old is None else old.template, "ReplicationController")


# -- DaemonSets -------------------------------------------------------------------------------


def daemon_set(errors: FieldErrors, obj: apps_v1.DaemonSet) -> None:
    meta.check(errors, obj.metadata)
    _daemon_set(errors, obj.spec, None)


def daemon_set_update(errors: FieldErrors, new: apps_v1.DaemonSet, old: apps_v1.DaemonSet) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    fixed_selector(errors, new.spec.selector, old.spec.selector)
    _daemon_set(errors, new.spec, old.spec)


def _daemon_set(errors: FieldErrors, spec: apps_v1.DaemonSetSpec, old: apps_v1.DaemonSetSpec | None) -> None:
    label_selector(errors, "spec.selector", spec.selector)
    template = spec.template
    chosen = compiled(spec.selector)
    if chosen is not None and not chosen.matches(template.metadata.labels):
        errors.invalid("spec.template.metadata.labels", format_labels(template.metadata.labels), MISMATCH)
    if spec.selector is not None and spec.selector == LabelSelector():
        errors.invalid(
            "spec.selector", format_selector(spec.selector), "empty selector is invalid for daemonset"
        )
    template_of(errors, template, None if old is None else old.template, "DaemonSet")
    errors.nonnegative("spec.minReadySeconds", spec.minReadySeconds)
    _daemon_strategy(errors, "spec.updateStrategy", spec.updateStrategy)
    errors.nonnegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)


def _daemon_strategy(errors: FieldErrors, path: str, strategy: apps_v1.DaemonSetUpdateStrategy) -> None:
    rolling = strategy.rollingUpdate
    if strategy.type == "OnDelete":
        return
    if strategy.type != "RollingUpdate":
        shown = go_struct(Type=strategy.type, RollingUpdate=_rolling_shown(rolling))
        errors.not_supported(path, shown, ("RollingUpdate", "OnDelete"))
        return
    path = f"{path}.rollingUpdate"
    if rolling is None:
        errors.required(path)
        return
    unavailable, surge = rolling.maxUnavailable or 0, rolling.maxSurge or 0
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        int_or_percent(errors, f"{path}.{name}", value)
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        at_most_all(errors, f"{path}.{name}", value)
    if number(unavailable) and number(surge):
        errors.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not number(unavailable) and not number(surge):
        errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
