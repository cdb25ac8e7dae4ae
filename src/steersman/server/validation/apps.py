"""Deployments, ReplicaSets, ReplicationControllers, DaemonSets, StatefulSets and their history."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import apps_v1
from steersman.api.generated import core_v1 as v1
from steersman.api.generated.meta_v1 import LabelSelector
from steersman.server.validation import metadata as meta
from steersman.server.validation import names
from steersman.server.validation.field_errors import Found, Verbatim, fields, labels, selector
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


def deployment(found: Found, obj: apps_v1.Deployment) -> None:
    meta.check(found, obj.metadata)
    _deployment(found, obj.spec, None)


def deployment_update(found: Found, new: apps_v1.Deployment, old: apps_v1.Deployment) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _deployment(found, new.spec, old.spec)
    fixed_selector(found, new.spec.selector, old.spec.selector)


def _deployment(found: Found, spec: apps_v1.DeploymentSpec, old: apps_v1.DeploymentSpec | None) -> None:
    found.negative("spec.replicas", spec.replicas)
    selects(found, spec.selector, "deployment")
    if selected(found, spec.selector, spec.template):
        template_of(found, spec.template, None if old is None else old.template, "ReplicaSet")
    else:
        found.invalid("spec.selector", selector(spec.selector), "invalid label selector")
    _strategy(found, "spec.strategy", spec.strategy)
    found.negative("spec.minReadySeconds", spec.minReadySeconds)
    found.negative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)
    deadline = spec.progressDeadlineSeconds
    found.negative("spec.progressDeadlineSeconds", deadline)
    if deadline is not None and deadline <= spec.minReadySeconds:
        found.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _strategy(found: Found, path: str, strategy: apps_v1.DeploymentStrategy) -> None:
    rolling = strategy.rollingUpdate
    if strategy.type == "Recreate":
        if rolling is not None:
            alone = "may not be specified when strategy `type` is 'Recreate'"
            found.forbidden(f"{path}.rollingUpdate", alone)
    elif strategy.type == "RollingUpdate":
        if rolling is None:
            found.required(f"{path}.rollingUpdate", "this should be defaulted and never be nil")
        else:
            _rolling(found, f"{path}.rollingUpdate", rolling)
    else:
        shown = fields(Type=strategy.type, RollingUpdate=_rolling_shown(rolling))
        found.unsupported(path, shown, ("Recreate", "RollingUpdate"))


def _rolling_shown(rolling: Any) -> Verbatim | None:
    if rolling is None:
        return None
    return fields(MaxUnavailable=rolling.maxUnavailable or 0, MaxSurge=rolling.maxSurge or 0)


def _rolling(found: Found, path: str, rolling: apps_v1.RollingUpdateDeployment) -> None:
    unavailable, surge = rolling.maxUnavailable or 0, rolling.maxSurge or 0
    int_or_percent(found, f"{path}.maxUnavailable", unavailable)
    int_or_percent(found, f"{path}.maxSurge", surge)
    if number(unavailable) == 0 and number(surge) == 0:
        found.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    at_most_all(found, f"{path}.maxUnavailable", unavailable)


# -- ReplicaSets and ReplicationControllers ---------------------------------------------------


def replica_set(found: Found, obj: apps_v1.ReplicaSet) -> None:
    meta.check(found, obj.metadata)
    _replica_set(found, obj.spec, None)


def replica_set_update(found: Found, new: apps_v1.ReplicaSet, old: apps_v1.ReplicaSet) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    _replica_set(found, new.spec, old.spec)
    fixed_selector(found, new.spec.selector, old.spec.selector)


def _replica_set(found: Found, spec: apps_v1.ReplicaSetSpec, old: apps_v1.ReplicaSetSpec | None) -> None:
    found.negative("spec.replicas", spec.replicas)
    found.negative("spec.minReadySeconds", spec.minReadySeconds)
    selects(found, spec.selector, "deployment")
    if selected(found, spec.selector, spec.template):
        template_of(found, spec.template, None if old is None else old.template, "ReplicaSet")
    else:
        found.invalid("spec.selector", selector(spec.selector), "invalid label selector")


def replication_controller(found: Found, obj: v1.ReplicationController) -> None:
    meta.check(found, obj.metadata, names.long_name)
    _replication_controller(found, obj.spec, None)


def replication_controller_update(
    found: Found, new: v1.ReplicationController, old: v1.ReplicationController
) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is not old.spec:
        _replication_controller(found, new.spec, old.spec)


def _replication_controller(
    found: Found, spec: v1.ReplicationControllerSpec, old: v1.ReplicationControllerSpec | None
) -> None:
    found.negative("spec.minReadySeconds", spec.minReadySeconds)
    if not spec.selector:
        found.required("spec.selector")
    if spec.replicas is None:
        found.required("spec.replicas")
    found.negative("spec.replicas", spec.replicas)
    template = spec.template
    if template is None:
        found.required("spec.template")
        return
    if any(template.metadata.labels.get(key) != value for key, value in spec.selector.items()):
        found.invalid("spec.template.metadata.labels", labels(template.metadata.labels), MISMATCH)
    template_of(found, template, None if old is None else old.template, "ReplicationController")


# -- DaemonSets -------------------------------------------------------------------------------


def daemon_set(found: Found, obj: apps_v1.DaemonSet) -> None:
    meta.check(found, obj.metadata)
    _daemon_set(found, obj.spec, None)


def daemon_set_update(found: Found, new: apps_v1.DaemonSet, old: apps_v1.DaemonSet) -> None:
    meta.check_update(found, new.metadata, old.metadata)
    if new.spec is old.spec:
        return
    fixed_selector(found, new.spec.selector, old.spec.selector)
    _daemon_set(found, new.spec, old.spec)


def _daemon_set(found: Found, spec: apps_v1.DaemonSetSpec, old: apps_v1.DaemonSetSpec | None) -> None:
    label_selector(found, "spec.selector", spec.selector)
    template = spec.template
    chosen = compiled(spec.selector)
    if chosen is not None and not chosen.matches(template.metadata.labels):
        found.invalid("spec.template.metadata.labels", labels(template.metadata.labels), MISMATCH)
    if spec.selector is not None and spec.selector == LabelSelector():
        found.invalid("spec.selector", selector(spec.selector), "empty selector is invalid for daemonset")
    template_of(found, template, None if old is None else old.template, "DaemonSet")
    found.negative("spec.minReadySeconds", spec.minReadySeconds)
    _daemon_strategy(found, "spec.updateStrategy", spec.updateStrategy)
    found.negative("spec.revisionHistoryLimit", spec.revisionHistoryLimit)


def _daemon_strategy(found: Found, path: str, strategy: apps_v1.DaemonSetUpdateStrategy) -> None:
    rolling = strategy.rollingUpdate
    if strategy.type == "OnDelete":
        return
    if strategy.type != "RollingUpdate":
        shown = fields(Type=strategy.type, RollingUpdate=_rolling_shown(rolling))
        found.unsupported(path, shown, ("RollingUpdate", "OnDelete"))
        return
    path = f"{path}.rollingUpdate"
    if rolling is None:
        found.required(path)
        return
    unavailable, surge = rolling.maxUnavailable or 0, rolling.maxSurge or 0
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        int_or_percent(found, f"{path}.{name}", value)
    for name, value in (("maxUnavailable", unavailable), ("maxSurge", surge)):
        at_most_all(found, f"{path}.{name}", value)
    if number(unavailable) and number(surge):
        found.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not number(unavailable) and not number(surge):
        found.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
