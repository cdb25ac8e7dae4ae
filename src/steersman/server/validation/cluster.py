"""PriorityClasses, RuntimeClasses, Leases and Events."""

from __future__ import annotations

from typing import Any

from steersman.api.generated import coordination_v1, node_v1, scheduling_v1
from steersman.api.generated import core_v1 as v1
from steersman.server.validation import metadata as meta
from steersman.server.validation import names, resources
from steersman.server.validation.field_errors import FieldErrors
from steersman.server.validation.pods.scheduling import tolerations
from steersman.server.validation.pods.spec import PREEMPTION

# -- PriorityClasses --------------------------------------------------------------------------

_HIGHEST = 1_000_000_000
_SYSTEM = {
    "system-node-critical": 2 * _HIGHEST + 1000,
    "system-cluster-critical": 2 * _HIGHEST,
}


def priority_class(errors: FieldErrors, obj: scheduling_v1.PriorityClass) -> None:
    meta.check(errors, obj.metadata, namespaced=False)
    name = obj.metadata.name
    if name.startswith("system-"):
        why = _system(obj, name)
        if why:
            says = "priority class names with 'system-' prefix are reserved for system use only. error: "
            errors.forbidden("metadata.name", says + why)
    elif obj.value > _HIGHEST:
        most = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        errors.forbidden("value", most)
    if obj.preemptionPolicy is not None:
        errors.enum("preemptionPolicy", obj.preemptionPolicy, PREEMPTION)


def _system(obj: scheduling_v1.PriorityClass, name: str) -> str:
    value = _SYSTEM.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if obj.value != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.globalDefault else ""


def priority_class_update(
    errors: FieldErrors, new: scheduling_v1.PriorityClass, old: scheduling_v1.PriorityClass
) -> None:
    meta.check_update(errors, new.metadata, old.metadata)
    if new.value != old.value:
        errors.forbidden("value", "may not be changed in an update.")
    errors.immutable("preemptionPolicy", new.preemptionPolicy, old.preemptionPolicy)


# -- RuntimeClasses ---------------------------------------------------------------------------


def runtime_class(errors: FieldErrors, obj: node_v1.RuntimeClass) -> None:
    meta.check(errors, obj.metadata, namespaced=False, kube=False)
    if not obj.handler:
        errors.required("handler")
    else:
        errors.invalid_each("handler", obj.handler, names.label(obj.handler))
    if obj.overhead is not None:
        resources.requirements(errors, "overhead", obj.overhead.podFixed, {})
    scheduling = obj.scheduling
    if scheduling is None:
        return
    meta.labels(errors, "scheduling.nodeSelector", scheduling.nodeSelector)
    path = "scheduling.tolerations"
    tolerations(errors, path, scheduling.tolerations)
    seen: list[tuple[str, str, str, str]] = []
    for i, one in enumerate(scheduling.tolerations):
        key = (one.key, one.operator, one.value, one.effect)
        if key in seen:
            errors.duplicate(f"{path}[{i}]", one)
        seen.append(key)


def runtime_class_update(errors: FieldErrors, new: node_v1.RuntimeClass, old: node_v1.RuntimeClass) -> None:
    meta.check_update(errors, new.metadata, old.metadata, kube=False)
    errors.immutable("handler", new.handler, old.handler)


# -- Leases -----------------------------------------------------------------------------------


def lease(errors: FieldErrors, obj: coordination_v1.Lease) -> None:
    meta.check(errors, obj.metadata, kube=False)
    _lease(errors, obj.spec)


def lease_update(errors: FieldErrors, new: coordination_v1.Lease, old: coordination_v1.Lease) -> None:
    meta.check_update(errors, new.metadata, old.metadata, kube=False)
    _lease(errors, new.spec)


def _lease(errors: FieldErrors, spec: coordination_v1.LeaseSpec) -> None:
    seconds, changes = spec.leaseDurationSeconds, spec.leaseTransitions
    if seconds is not None and seconds <= 0:
        errors.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    if changes is not None and changes < 0:
        errors.invalid("spec.leaseTransitions", changes, "must be greater than or equal to 0")


# -- Events -----------------------------------------------------------------------------------

_OTHER_NAMESPACE = "does not match event.namespace"


def event(errors: FieldErrors, obj: v1.Event) -> None:
    """An event of the core group; the real server asks little of those."""
    _event(errors, obj, obj.involvedObject.namespace, obj.reportingComponent, "reportingComponent")


def event_update(errors: FieldErrors, new: v1.Event, old: v1.Event) -> None:
    event(errors, new)


def _event(errors: FieldErrors, obj: Any, regarding: str, controller: str, called: str) -> None:
    namespace = obj.metadata.namespace
    at = "involvedObject.namespace"
    if obj.eventTime is None:
        if regarding:
            if namespace != regarding:
                errors.invalid(at, regarding, _OTHER_NAMESPACE)
        elif namespace not in ("", "default"):
            errors.invalid(at, regarding, _OTHER_NAMESPACE)
    else:
        if not regarding and namespace not in ("default", "kube-system"):
            errors.invalid(at, regarding, _OTHER_NAMESPACE)
        if not controller:
            errors.required(called)
        errors.invalid_each(called, controller, names.qualified(controller))
        for name, most in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
            value = getattr(obj, name)
            if not value:
                errors.required(name)
            if len(value) > most:
                errors.invalid(name, "", f"can have at most {most} characters")
        if len(getattr(obj, "note", "") or getattr(obj, "message", "")) > 1024:
            errors.invalid("message", "", "can have at most 1024 characters")
    errors.invalid_each("namespace", namespace, names.subdomain(namespace))


def new_event(errors: FieldErrors, obj: Any) -> None:
    """An event of the group ``events.k8s.io``, which is held to all its rules."""
    _new_event(errors, obj)
    meta.check(errors, obj.metadata)
    _series(errors, obj)
    if obj.eventTime is None:
        errors.required("eventTime")
    if obj.type not in ("Normal", "Warning"):
        errors.invalid("type", "", f"has invalid value: {obj.type}")
    for name, called in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
    ):
        if getattr(obj, name):
            errors.invalid(called, "", "needs to be unset")
    source = obj.deprecatedSource
    if source is not None and (source.component or source.host):
        errors.invalid("source", "", "needs to be unset")


def _new_event(errors: FieldErrors, obj: Any) -> None:
    _event(errors, obj, obj.regarding.namespace, obj.reportingController, "reportingController")


def _series(errors: FieldErrors, obj: Any) -> None:
    if obj.series is not None:
        if obj.series.count < 2:
            errors.invalid("series.count", "", "should be at least 2")
        if obj.series.lastObservedTime is None:
            errors.required("series.lastObservedTime")


def new_event_update(errors: FieldErrors, new: Any, old: Any) -> None:
    """Only the series of an event goes on."""
    _new_event(errors, new)
    meta.check_update(errors, new.metadata, old.metadata)
    if new.series != old.series:
        _series(errors, new)
    for name, called in (
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        # The real server looks at it twice.
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ):
        errors.immutable(called, getattr(new, name), getattr(old, name))
